"""HTTP requests for agents, to hosts that the operator named and to no others.

tools        http_get, http_request  what a model calls
settings     the options: which hosts, and which secret goes to which of them
requests     what is sent: checked, and shown before a person approves it
answers      what came back: plain, without secrets, bounded

Every hop is checked by the guarded client of agentos. A secret is named in the options, filled in here, sent to its
own origin alone, and masked in whatever comes back.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `http-request` with its two tools, for the hosts that its options name."""
    from agentos_pack_common import WebClient

    from agentos import ExtensionPack, with_displays
    from agentos_pack_http_request._displays import DISPLAYS
    from agentos_pack_http_request.settings import Options, read_settings
    from agentos_pack_http_request.tools import create_descriptors

    settings = read_settings(context.options)
    client = WebClient(settings.policy)

    return ExtensionPack(
        name="http-request",
        version=__version__,
        description="HTTP requests to named hosts, with secrets by reference, every hop checked and bounded.",
        options=Options,
        descriptors=with_displays(create_descriptors(settings, client), DISPLAYS),
        on_deactivate=client.aclose,
    )
