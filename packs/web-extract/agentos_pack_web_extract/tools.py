"""The three tools, made for what the options allow."""

from typing import Any

from agentos_pack_common import Root, WebClient

from agentos import PUBLIC, Descriptor, tool
from agentos_pack_web_extract.child import Reader
from agentos_pack_web_extract.links import LinkTools
from agentos_pack_web_extract.pages import PageTools
from agentos_pack_web_extract.pdfs import PdfTools
from agentos_pack_web_extract.settings import Options

_GRACE = 60.0
"""Seconds to wait for a place among those that read, and for a process to start."""


def create_descriptors(options: Options, client: WebClient) -> list[Descriptor[Any]]:
    """Return the tools. Files of this machine can be named only if there is a root, and only by who may read files."""
    reader = Reader(options.extract_seconds)
    root = None if options.root is None else Root(options.root, writable=False)
    pdfs = PdfTools(client, reader, root, options.max_bytes)
    seconds = options.timeout + options.extract_seconds + _GRACE
    shared: dict[str, Any] = {"effect": "read", "timeout": seconds, "idempotent": True, "category": "web"}
    public = tool(required_access=PUBLIC, **shared)
    reads_pdf = tool(name="extract_pdf", required_access=PUBLIC if root is None else "files:read", **shared)
    made = (
        public(PageTools(client, reader).fetch_page),
        public(LinkTools(client, reader).extract_links),
        reads_pdf(pdfs.from_web if root is None else pdfs.from_web_or_file),
    )
    return [Descriptor("tool", one.name, one) for one in made]
