"""Web search for agents, by whichever provider there is a key for.

tools      web_search, search_providers  what a model calls
engine     which providers are asked, who takes over when one fails, and for how long one is left alone
providers  how each is asked, and where its results stand in its answer
keyless    the one that needs no key: ddgs, in a process of its own      (_ddgs_child is what runs there)
pauses     how long a provider wants to be left alone
fusion     several lists of results as one
hits       one result: foreign text made plain, its address checked
settings   the options

Keys are secrets, all of them optional. A provider without one is left out, and the answer says so.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `web-search` with its two tools."""
    from agentos_pack_common import read_options

    from agentos import ExtensionPack, with_displays
    from agentos_pack_web_search._displays import DISPLAYS
    from agentos_pack_web_search.engine import Engine
    from agentos_pack_web_search.settings import Options
    from agentos_pack_web_search.tools import create_descriptors

    engine = Engine(read_options(Options, context.options))
    return ExtensionPack(
        name="web-search",
        version=__version__,
        description="Search the web by Brave, Tavily, Serper, SearXNG or ddgs, with fallback and rank fusion.",
        options=Options,
        descriptors=with_displays(create_descriptors(engine), DISPLAYS),
        on_deactivate=engine.aclose,
    )
