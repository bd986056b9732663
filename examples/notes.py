"""A pack whose tools change something: what waits for a person, and what a host denies."""

from pathlib import Path
from typing import Annotated, Any

from agentos import PUBLIC, ExtensionPack, PackContext, ToolContext, tool


def _preview(args: dict[str, Any], context: ToolContext) -> str:
    return f"one more line in {_file(context).name}: {args['text']!r}"


def _file(context: ToolContext) -> Path:
    return Path(context.options["file"])


@tool(effect="read", required_access=PUBLIC)
def read_notes(*, context: ToolContext) -> list[str]:
    """Read all notes."""
    file = _file(context)
    return file.read_text("utf-8").splitlines() if file.exists() else []


@tool(effect="mutate", required_access="notes:write", dry_run=_preview)
def add_note(text: Annotated[str, "What to remember"], *, context: ToolContext) -> str:
    """Write a note."""
    with _file(context).open("a", encoding="utf-8") as file:
        file.write(text + "\n")
    return "noted"


@tool(effect="destructive", required_access="notes:write")
def clear_notes(*, context: ToolContext) -> str:
    """Delete all notes."""
    _file(context).unlink(missing_ok=True)
    return "all notes are gone"


def create_extension_pack(context: PackContext) -> ExtensionPack:
    """Return the pack; the option `file` says where the notes are kept."""
    if "file" not in context.options:
        raise ValueError("say options.file: where the notes are kept")
    return ExtensionPack("notes", "1.0.0", [read_notes, add_note, clear_notes], description="Keeps notes in a file.")
