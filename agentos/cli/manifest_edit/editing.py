"""Edits of a person's manifest: what the edit is not about stays as it was written, comments and order included.

An edit is made in the text, then the new text is read again: it must say exactly what was meant. Where it would not,
nothing is written, and the person is told what to write by hand. The file is replaced at once or not at all.
"""

import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentos.base.atomic_files import FileChangedError, replace_file
from agentos.cli.app import Fail
from agentos.cli.hidden_secrets import shown_tree
from agentos.cli.manifest_edit import node_edits, toml_edits
from agentos.cli.manifest_edit.edits import GONE, Keys
from agentos.model.parsing import parse_text, read_file, show_path

_COMMENT = re.compile(r"""(?:[^"'#]|"[^"]*"|'[^']*'|(?<=\S)#)*?(?<!\S)(#.*)""")
"""A line with a comment behind whatever stands there; a sign in quotes begins no comment."""


def add_pack(path: Path, entry: Mapping[str, Any]) -> None:
    """Add an entry behind the packs of the manifest at *path*."""
    edit(path, {("packs", -1): dict(entry)})


def put(path: Path, key: str, name: str, entry: Mapping[str, Any]) -> None:
    """Put an entry into the mapping *key* at the top of the file at *path*, which need not have that yet."""
    data = read_file(path)
    is_there = isinstance(data, dict) and isinstance(data.get(key), dict)
    if is_there or path.suffix.lower() == ".toml":
        edit(path, {(key, name): dict(entry)})
    else:
        edit(path, {(key,): {name: dict(entry)}})


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
    try:
        written = _editor(path.suffix.lower())(text, keys, value)
        is_kept = value is GONE or not _comments(text) - _comments(written)
        if is_kept and _stripped(parse_text(written, path.suffix)) == _stripped(meant):
            return written
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError):
        pass  # the text is laid out in a way that this editor does not know
    raise Fail(
        f"{path.name} is laid out in a way that can't be edited without rewriting it", hint=_by_hand(keys, value)
    )


def _editor(suffix: str) -> Callable[[str, Keys, Any], str]:
    if suffix == ".toml":
        return toml_edits.edit
    return node_edits.edit_json if suffix == ".json" else node_edits.edit_yaml


def _comments(text: str) -> Counter[str]:
    """Return the comments in *text*, each as often as it is there; lines of a text over several lines may count too."""
    return Counter(found[1].rstrip() for line in text.split("\n") if (found := _COMMENT.match(line)))


def _stripped(data: Any) -> Any:
    """Return what a manifest says; no packs and an empty list of them are one thing, as with servers."""
    if not isinstance(data, dict):
        return data
    return {key: value for key, value in data.items() if value or key not in ("packs", "mcpServers")}


def _by_hand(keys: Keys, value: Any) -> str:
    """Say what a person has to write; what may be a secret they know themselves."""
    if value is GONE:
        return f"take {show_path(keys)} out by hand"
    said = json.dumps(shown_tree(value, keys), default=str, ensure_ascii=False)
    if keys[-1] == -1:
        return f"add {said} to {show_path(keys[:-1])} by hand"
    return f"set {show_path(keys)} to {said} by hand"
