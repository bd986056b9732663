"""Plans: what is to be done, step by step, and how far it is."""

from collections.abc import Iterable
from typing import Any, Literal, get_args

import attrs

from agentos.model.field_checks import did_you_mean, fault_of_name

StepStatus = Literal["pending", "running", "done", "failed", "skipped"]
STATUSES: tuple[StepStatus, ...] = get_args(StepStatus)
STEPS_LIMIT = 50
TEXT_LIMIT = 500
_MARKS = {"pending": "[ ]", "running": "[>]", "done": "[x]", "failed": "[!]", "skipped": "[-]"}


def _check_id(_: Any, field: "attrs.Attribute[str]", value: object) -> None:
    if (fault := fault_of_name(value)) is not None:
        raise ValueError(f"PlanStep.{field.name}: {fault}")


def _check_text(_: Any, field: "attrs.Attribute[str]", value: object) -> None:
    if not isinstance(value, str) or not value.strip() or len(value) > TEXT_LIMIT:
        raise ValueError(f"PlanStep.{field.name}: expected a text of 1 to {TEXT_LIMIT} characters")


def _check_status(_: Any, field: "attrs.Attribute[str]", value: object) -> None:
    if value not in STATUSES:
        hint = did_you_mean(str(value), STATUSES)
        raise ValueError(f"PlanStep.{field.name}: expected one of {', '.join(STATUSES)}, got {value!r}{hint}")


@attrs.frozen
class PlanStep:
    """One step of a plan."""

    id: str = attrs.field(validator=_check_id)
    text: str = attrs.field(validator=_check_text)
    status: StepStatus = attrs.field(default="pending", validator=_check_status)


def _steps(value: Iterable[PlanStep]) -> tuple[PlanStep, ...]:
    return tuple(value)


@attrs.frozen
class Plan:
    """The steps to a goal, in their order."""

    steps: tuple[PlanStep, ...] = attrs.field(default=(), converter=_steps)
    goal: str = attrs.field(default="", repr=False)
    strategy: str = ""
    """The id of the planning-strategy that made it."""

    def __attrs_post_init__(self) -> None:
        if not all(type(step) is PlanStep for step in self.steps) or len(self.steps) > STEPS_LIMIT:
            raise ValueError(f"Plan.steps: expected at most {STEPS_LIMIT} of PlanStep")
        if len({step.id for step in self.steps}) < len(self.steps):
            raise ValueError("Plan.steps: an id stands there twice")

    @property
    def is_done(self) -> bool:
        """Tell whether no step is left to do."""
        return not any(step.status in ("pending", "running") for step in self.steps)

    def as_text(self) -> str:
        """Return it as a list with a mark before each step, for people and models."""
        return "\n".join(f"{_MARKS[step.status]} {step.id}. {' '.join(step.text.split())}" for step in self.steps)
