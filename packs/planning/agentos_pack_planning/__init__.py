"""Two ways to plan a turn.

_checklist     Checklist    the steps are what was asked for
_plan_and_act  PlanAndAct   the model makes the plan, and keeps it true

A persona `planner` has the second.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `planning` with its strategies and its persona."""
    from agentos_pack_common import read_options

    from agentos import Descriptor, ExtensionPack, Persona
    from agentos_pack_planning._checklist import Checklist, PlanningOptions
    from agentos_pack_planning._plan_and_act import PlanAndAct

    most = read_options(PlanningOptions, context.options).max_steps
    checklist = Checklist(most)
    planner = Persona(
        "planner",
        "Makes a plan first, and works through it.",
        "Work through the plan step by step. Say what you did and what is left; if a step can't be done, say why.",
        planning="plan-and-act",
    )
    return ExtensionPack(
        name="planning",
        version=__version__,
        description="Plans for turns: a checklist of what was asked for, or a plan that the model makes.",
        descriptors=[
            Descriptor("planning-strategy", "plan-and-act", PlanAndAct(checklist)),
            Descriptor("planning-strategy", "checklist", checklist),
            planner,
        ],
        options=PlanningOptions,
    )
