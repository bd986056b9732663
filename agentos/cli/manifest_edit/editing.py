"""Edits of a person's manifest: what the edit is not about stays as it was written, comments and order included.

An edit is made in the text, then the new text is read again: it must say exactly what was meant. Where it would not,
nothing is written, and the person is told what to write by hand. The file is replaced at once or not at all.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentos.base.atomic_files import FileChangedError, replace_file
from agentos.cli.app import Fail
from agentos.cli.manifest_edit.edits import GONE, Keys
from agentos.errors import ManifestError
from agentos.model.parsing import _PARSERS, read_file


def add_pack(path: Path, entry: Mapping[str, Any]) -> None:
    """Add an entry behind the packs of the manifest at *path*."""
    edit(path, {("packs", -1): dict(entry)})


def edit(path: Path, changes: Mapping[Keys, Any]) -> None:
    """Set what stands at each path, in mappings that are there already, and write once; GONE takes it away.

    They are made in their order: what is taken out of a list moves what stands behind it.
    """
    before = path.read_bytes()
    bom = b"\xef\xbb\xbf" if before.startswith(b"\xef\xbb\xbf") else b""
    written = text = before[len(bom) :].decode("utf-8")
    data = read_file(path)
    for keys, value in changes.items():
        meant = applied({} if data is None else data, keys, value)
        if meant != data:
            written, data = _edited(path, written, keys, value, meant), meant
    if written == text:
        return
    try:
        replace_file(path, bom + written.encode("utf-8"), expected=before)
    except FileChangedError as error:
        raise Fail(str(error)) from None


def applied(data: Any, keys: Keys, value: Any) -> Any:
    """Return a copy of *data* with *value* at *keys*; -1 as the last key of a list adds to it."""
    data = copy.deepcopy(data)
    *above, last = keys
    at = data
    for position, key in enumerate(above):
        if isinstance(at, dict) and at.get(key) is None:
            at[key] = [] if isinstance(keys[position + 1], int) else {}
        at = at[key]
    if value is GONE:
        del at[last]
    elif last == -1:
        at.append(copy.deepcopy(value))
    else:
        at[last] = copy.deepcopy(value)
    return data


def _edited(path: Path, text: str, keys: Keys, value: Any, meant: Any) -> str:
    """Return the text after the edit; it must say *meant*, and keep the comments. What goes takes its own with it."""
    plain = text.replace("\r\n", "\n")
    edits, comments = _editors(path.suffix.lower())
    for edit in edits:
        try:
            written = edit(plain, keys, value, meant)
            if value is not GONE and comments(plain) - comments(written):
                continue
            written = _with_line_ends(text, plain, written)
            if _says(_parsed(path, written), meant):
                return written
        except (LookupError, ValueError, TypeError, AttributeError):
            continue  # the text is laid out in a way that this editor does not know
    raise Fail(
        f"{path.name} is laid out in a way that can't be edited without rewriting it", hint=_by_hand(keys, value)
    )


def _editors(suffix: str) -> tuple[list[Any], Any]:
    """Return the functions that edit such a file, the first one that can counts, and the one that finds comments."""
    if suffix == ".toml":
        from agentos.cli.manifest_edit import toml_text as _toml

        return [_toml.edit_lines, _toml.edit_document], _toml.comments
    if suffix == ".json":
        from agentos.cli.manifest_edit import json_text as _json

        return [_json.edit_text], _json.comments
    from agentos.cli.manifest_edit import yaml_text as _yaml

    return [_yaml.edit_nodes], _yaml.comments


def _with_line_ends(text: str, plain: str, written: str) -> str:
    """Give the lines of *written* the ends that they have in *text*; new ones end as the line before them."""
    if plain == text:
        return written
    if text.count("\n") == text.count("\r\n"):
        return written.replace("\n", "\r\n")
    return "".join(_ended(text, plain, written))


def _ended(text: str, plain: str, written: str) -> Iterator[str]:
    """Yield the lines of *written*: those of *plain* as they are in *text*."""
    from difflib import SequenceMatcher

    old, before, now = text.split("\n"), plain.split("\n"), written.split("\n")
    end = ""
    for tag, start, stop, first, last in SequenceMatcher(None, before, now, autojunk=False).get_opcodes():
        for number in range(first, last):
            at = min(start + number - first, stop - 1) if tag != "insert" else None
            end = end if at is None else "\r" if old[at].endswith("\r") else ""
            line = old[at] if tag == "equal" and at is not None else now[number] + end
            yield line if number == len(now) - 1 else f"{line}\n"


def _parsed(path: Path, text: str) -> Any:
    try:
        return _PARSERS[path.suffix.lower()](text)
    except (ValueError, RecursionError, ManifestError):
        return GONE


def _says(data: Any, meant: Any) -> bool:
    """Tell whether two manifests say the same; no packs and an empty list of them are one thing, as with servers."""
    return bool(_stripped(data) == _stripped(meant))


def _stripped(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    return {key: value for key, value in data.items() if value or key not in ("packs", "mcpServers")}


def _by_hand(keys: Keys, value: Any) -> str:
    """Say what a person has to write; what may be a secret they know themselves."""
    from agentos.cli.hidden_secrets import shown_tree
    from agentos.model.parsing import show_path

    if value is GONE:
        return f"take {show_path(keys)} out by hand"
    said = json.dumps(shown_tree(value, keys), default=str, ensure_ascii=False)
    if keys[-1] == -1:
        return f"add {said} to {show_path(keys[:-1])} by hand"
    return f"set {show_path(keys)} to {said} by hand"
