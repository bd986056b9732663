"""Personal data kept from leaving: e-mail addresses, cards, bank accounts, social security numbers, IP addresses.

detector  find         where they stand in a text: patterns, check digits, issuers  (on google-re2, phonenumbers)
_guard    PiiOptions   the guardrail `pii` and the tools `pii_scan` and `pii_redact`

Names, street addresses and dates of birth are not covered: they have no format. Nothing uses the network.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `pii-guard` with its guardrail and its tools."""
    from agentos import ExtensionPack, with_displays
    from agentos_pack_pii_guard._displays import DISPLAYS
    from agentos_pack_pii_guard._guard import PiiOptions, create_descriptors

    return ExtensionPack(
        name="pii-guard",
        version=__version__,
        description="Keeps personal data that has a format from leaving; names and addresses are not covered.",
        descriptors=with_displays(create_descriptors(context.options), DISPLAYS),
        options=PiiOptions,
    )
