"""The functions as tools, over one folder. They are sync and run in threads."""

from collections.abc import Callable
from typing import Any

from agentos_pack_common import Root

from agentos import Tool, tool
from agentos_pack_archive._limits import Limits
from agentos_pack_archive.creating import CreatingTools
from agentos_pack_archive.extracting import ExtractingTools
from agentos_pack_archive.listing import ListingTools

_SECONDS = 120


def create_tools(root: Root, limits: Limits) -> tuple[Tool, ...]:
    """Return the tools; those that write only if the folder may be written."""
    reads = tool(effect="read", required_access="files:read", timeout=_SECONDS, idempotent=True, category="files")
    listing = reads(ListingTools(root, limits).zip_list)
    return (*_writing(root, limits), listing) if root.writable else (listing,)


def _writing(root: Root, limits: Limits) -> tuple[Tool, ...]:
    creating, extracting = CreatingTools(root, limits), ExtractingTools(root, limits)
    functions: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
        (creating.zip_create, creating.preview_create),
        (extracting.zip_extract, extracting.preview_extract),
    ]
    return tuple(
        tool(
            effect="mutate",
            required_access=("files:read", "files:write"),
            timeout=_SECONDS,
            ordered=True,
            category="files",
            dry_run=dry_run,
        )(function)
        for function, dry_run in functions
    )
