"""Workflows to use as they are.

research   web-research     searches, reads pages side by side, and makes a report that cites what it says
digest     nightly-digest   what is new in feeds, pages and files, sent as one message
triage     incident-triage  proposes how severe an incident is, asks a person, and writes it down; as data
passages   which passages of a text are about a question
feeds      what stands in an RSS or Atom feed

The first two are functions, the third is a definition.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `recipes` with its three workflows."""
    from agentos_pack_common import read_options

    from agentos import Descriptor, ExtensionPack
    from agentos_pack_recipes.digest import digest_workflow
    from agentos_pack_recipes.research import research_workflow
    from agentos_pack_recipes.triage import IncidentAssessor, RecipeOptions, triage_definition

    options = read_options(RecipeOptions, context.options)
    return ExtensionPack(
        name="recipes",
        version=__version__,
        description="Workflows to use as they are: research with citations, a digest, triage of incidents.",
        options=RecipeOptions,
        descriptors=[
            Descriptor("workflow", "web-research", research_workflow(options.principal)),
            Descriptor("workflow", "nightly-digest", digest_workflow(options.principal)),
            triage_definition(options.principal, options.notify),
            Descriptor("workflow-executor", "incident-assessor", IncidentAssessor()),
        ],
    )
