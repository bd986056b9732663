"""Secrets kept from leaving: tokens and passwords in arguments, results and streams.

formats   FORMATS        how the tokens of some two hundred services look
detector  find           where such tokens stand in a text                  (on google-re2)
_guard    SecretOptions  the guardrail `secrets` and the tool `scan_secrets`

Nothing uses the network, and nothing that was found is told: only what it looks like.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `secret-guard` with its guardrail and its tool."""
    from agentos import ExtensionPack, with_displays
    from agentos_pack_secret_guard._displays import DISPLAYS
    from agentos_pack_secret_guard._guard import SecretOptions, create_descriptors

    return ExtensionPack(
        name="secret-guard",
        version=__version__,
        description="Keeps tokens and passwords from leaving in arguments, results and streams.",
        descriptors=with_displays(create_descriptors(context.options), DISPLAYS),
        options=SecretOptions,
    )
