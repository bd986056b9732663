"""The functions as tools, over one folder. All but grep_files are sync and run in threads."""

from collections.abc import Callable
from typing import Any, Literal

from agentos_pack_common import Root

from agentos import Tool, tool
from agentos_pack_files.changing import ChangingTools
from agentos_pack_files.grepping import LineSearch
from agentos_pack_files.options import FilesOptions
from agentos_pack_files.reading import ReadingTools
from agentos_pack_files.searching import NameSearch

Effect = Literal["mutate", "destructive"]

_SECONDS = 30


def create_tools(root: Root, options: FilesOptions) -> tuple[Tool, ...]:
    """Return the tools; those that change something only if the folder may be written."""
    changing = _changing(ChangingTools(root, options)) if root.writable else ()
    return (*_reading(root, options), *changing)


def _reading(root: Root, options: FilesOptions) -> tuple[Tool, ...]:
    reading = ReadingTools(root, options)
    reads = tool(effect="read", required_access="files:read", timeout=_SECONDS, idempotent=True, category="files")
    functions = (
        reading.read_file,
        reading.list_dir,
        NameSearch(root).search_files,
        LineSearch(root, options).grep_files,
    )
    return tuple(reads(function) for function in functions)


def _changing(changing: ChangingTools) -> tuple[Tool, ...]:
    functions: list[tuple[Effect, Callable[..., Any], Callable[..., Any]]] = [
        ("mutate", changing.write_file, changing.preview_write),
        ("mutate", changing.edit_file, changing.preview_edit),
        ("mutate", changing.move_file, changing.preview_move),
        ("destructive", changing.delete_file, changing.preview_delete),
    ]
    return tuple(
        tool(
            effect=effect,
            required_access="files:write",
            timeout=_SECONDS,
            ordered=True,
            category="files",
            dry_run=dry_run,
        )(function)
        for effect, function, dry_run in functions
    )
