"""GIFs for agents.

search  giphy_search  what a model calls, and what it is given of GIPHY's answer

The key is a secret, `giphy.apiKey`; without it the tool is not offered.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `giphy` with its one tool, gated by the secret giphy.apiKey."""
    from agentos_pack_common import WebClient, read_options

    from agentos import PUBLIC, Descriptor, ExtensionPack, SecretRequirement, tool, with_displays
    from agentos_pack_giphy._displays import DISPLAYS
    from agentos_pack_giphy.search import KEY, GiphyTools, Options

    options = read_options(Options, context.options)
    client = WebClient(options.policy())
    reads = tool(effect="read", required_access=PUBLIC, timeout=options.timeout + 5, idempotent=True, category="web")
    search = reads(GiphyTools(options, client).giphy_search)
    return ExtensionPack(
        name="giphy",
        version=__version__,
        description="Search GIPHY for animated pictures.",
        options=Options,
        descriptors=with_displays(
            [Descriptor("tool", search.name, search, required_secrets=[SecretRequirement(KEY)])], DISPLAYS
        ),
        on_deactivate=client.aclose,
    )
