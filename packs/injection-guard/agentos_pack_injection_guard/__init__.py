"""Instructions that come in what tools return: seen, and kept from choosing where things go.

invisible  stripped            texts without characters that nobody sees and models read
phrases    suspicious          sentences that speak to a model instead of telling it something     (on google-re2)
taint      Memory, traced      destinations in arguments that came from a tool and not from the user
_guards    InjectionOptions    the guardrails `invisible-characters`, `injection` and `taint`

Detectors of sentences miss much and flag harmless texts, so they only flag. What counts is that a person who is asked
about a call reads where its destination came from. Nothing uses the network.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `injection-guard` with its three guardrails."""
    from agentos import ExtensionPack
    from agentos_pack_injection_guard._guards import InjectionOptions, create_descriptors

    return ExtensionPack(
        name="injection-guard",
        version=__version__,
        description="Flags instructions in what tools return, removes invisible text, traces destinations.",
        descriptors=create_descriptors(context.options),
        options=InjectionOptions,
    )
