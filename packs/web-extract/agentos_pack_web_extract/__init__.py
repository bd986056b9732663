"""Web pages and PDFs as text, for agents.

tools     create_descriptors  the three as tools
pages     fetch_page          a page as Markdown, text or source, part by part
links     extract_links       where a page leads
pdfs      extract_pdf         the text of a PDF, from the web or from a folder
fetching  what a server sent, as text
child     runs the reading in a process of its own        (_child is what runs there: on trafilatura and pypdf)
settings  the options

Parsers of foreign files can loop, blow up and crash. None runs in the host: each call starts a process with limits on
time, memory and output, and ends it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `web-extract` with its three tools."""
    from agentos_pack_common import WebClient, read_options

    from agentos import ExtensionPack, with_displays
    from agentos_pack_web_extract._displays import DISPLAYS
    from agentos_pack_web_extract.settings import Options
    from agentos_pack_web_extract.tools import create_descriptors

    options = read_options(Options, context.options)
    client = WebClient(options.policy())
    return ExtensionPack(
        name="web-extract",
        version=__version__,
        description="Web pages and PDFs as text, fetched through a guarded client and read in a process with limits.",
        options=Options,
        descriptors=with_displays(create_descriptors(options, client), DISPLAYS),
        on_deactivate=client.aclose,
    )
