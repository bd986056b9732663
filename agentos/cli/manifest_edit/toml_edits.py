"""Edits of TOML. By statements, where packs and servers stand under headers of their own; else by tomlkit."""

import tomllib
from collections.abc import Iterator
from typing import Any

import attrs
import tomlkit

from agentos.cli.manifest_edit.edits import GONE, Keys, Splice, end_of_line, line_after, spliced


@attrs.frozen
class Statement:
    """A header, or a key with its value, over as many lines as it has."""

    start: int
    end: int
    is_header: bool
    name: tuple[str, ...]


def _statements(text: str) -> Iterator[Statement]:
    """Yield what stands in *text*; blank lines and comments are left out."""
    at = 0
    while at < len(text):
        start, at = at, end_of_line(text, at + 1)
        if not (first := text[start:at].strip()) or first.startswith("#"):
            continue
        while (said := _parsed(text[start:at])) is None and at < len(text):
            at = end_of_line(text, at + 1)
        is_header = first.startswith("[")
        yield Statement(start, at, is_header, tuple(_names(said, 0 if is_header else 1)))


def _parsed(statement: str) -> Any:
    """Return what a statement says; None if it goes on in the next line."""
    try:
        return tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return None


def _names(said: Any, most: int) -> Iterator[str]:
    while said and isinstance(said, dict | list):
        said = said[0] if isinstance(said, list) else said
        if said:
            name, said = next(iter(said.items()))
            yield name
            if most:
                return


def edit(text: str, keys: Keys, value: Any) -> str:
    """Return *text* with *value* at *keys*."""
    try:
        return spliced(text, [_splice(text, keys, value)])
    except LookupError:
        return _by_document(text, keys, value)


def _splice(text: str, keys: Keys, value: Any) -> Splice:
    """Return the edit of a pack or server that stands under a header of its own; raise LookupError for the rest."""
    if keys[0] not in ("packs", "mcpServers", "personas") or len(keys) not in (2, 3):
        raise LookupError("neither about a pack nor about a server, nor about a persona")
    found = list(_statements(text))
    tables = _tables(found, keys)
    if keys[0] == "personas" and (tables or len(keys) != 2):  # noqa: PLR2004 - a table and its name
        raise LookupError("it is there already")
    if keys == ("packs", -1):
        if not tables and any(one.name[:1] == ("packs",) for one in found):
            raise LookupError("they stand in one value")
        return _new_table(text, tables[-1][-1].end if tables else len(text), "[[packs]]", value)
    if keys[0] in ("mcpServers", "personas") and len(keys) == 2 and value is not GONE:  # noqa: PLR2004 - a table and its name
        return _server(text, found, tables, keys, value)
    table = tables[int(keys[1]) if keys[0] == "packs" else 0]
    return _without(text, table) if len(keys) == 2 else _field(text, table, str(keys[2]), value)  # noqa: PLR2004


def _tables(found: list[Statement], keys: Keys) -> list[list[Statement]]:
    """Return the statements of each pack, or of one server: its header, its keys, and the tables beneath it."""
    top = keys[:1] if keys[0] == "packs" else keys[:2]
    tables: list[list[Statement]] = []
    is_inside = False
    for one in found:
        if one.is_header:
            is_inside = one.name[: len(top)] == top and (one.name == top or bool(tables))
            if one.name == top:
                tables.append([])
        if is_inside:
            tables[-1].append(one)
    return tables


def _server(text: str, found: list[Statement], tables: list[list[Statement]], keys: Keys, entry: Any) -> Splice:
    """Put a server, or a new persona, in its own place, or under a header of its own behind all others."""
    top = str(keys[0])
    servers = [one for one in found if one.name[:1] == (top,)]
    if not tables and any(not one.is_header or len(one.name) == 1 for one in servers):
        raise LookupError("they stand in one value, or under one header")
    header = f"[{top}.{tomlkit.key(str(keys[1])).as_string()}]"
    if tables:
        return tables[0][0].start, tables[0][-1].end, _lines(header, entry)
    ends = [one.end for index, one in enumerate(found) if _is_in_tables(found[: index + 1], top)]
    return _new_table(text, ends[-1] if ends else len(text), header, entry)


def _is_in_tables(until: list[Statement], top: str) -> bool:
    header = next((one for one in reversed(until) if one.is_header), None)
    return header is not None and header.name[:1] == (top,)


def _lines(header: str, entry: Any) -> str:
    return f"{header}\n" + "".join(_pair(key, item) for key, item in entry.items())


def _new_table(text: str, at: int, header: str, entry: Any) -> Splice:
    """Put a new table behind the others, with an empty line before it, and behind it if something follows."""
    start, end, lines = line_after(text, at, _lines(header, entry))
    before = "" if not text.strip() or text[:start].endswith(("\n\n", "\n\r\n")) else "\n"
    behind = "" if not text[end:] or text[end] in "\r\n" else "\n"
    return start, end, f"{before}{lines}{behind}"


def _without(text: str, table: list[Statement]) -> Splice:
    """Take a table away, with one of the empty lines around it."""
    start, end = table[0].start, table[-1].end
    is_blank_before = start == 0 or text[:start].endswith(("\n\n", "\n\r\n"))
    if is_blank_before and text[end : end + 2].startswith(("\n", "\r\n")):
        end = end_of_line(text, end + 1)
    if not text[end:].strip() and start and is_blank_before:
        start = text.rindex("\n", 0, start - 1) + 1
    return start, end, ""


def _field(text: str, table: list[Statement], key: str, value: Any) -> Splice:
    own = [table[0]]
    for one in table[1:]:
        if one.is_header:
            break
        own.append(one)
    found = next((one for one in own[1:] if one.name == (key,)), None)
    if found is None:
        if value is GONE:
            raise LookupError("the key stands elsewhere")
        return line_after(text, own[-1].end, _pair(key, value))
    if value is GONE:
        return found.start, found.end, ""
    statement = tomlkit.parse(text[found.start : found.end])
    statement[key] = _inline(value)
    return found.start, found.end, tomlkit.dumps(statement).replace("\r\n", "\n")


def _by_document(text: str, keys: Keys, value: Any) -> str:
    """Edit whatever stands in tables that are there."""
    document = tomlkit.parse(text)
    at: Any = document
    for key in keys[:-1]:
        at = at[key]
    if value is GONE:
        del at[keys[-1]]
    elif keys[-1] == -1:
        at.append(_inline(value))
    else:
        at[keys[-1]] = _inline(value)
    return tomlkit.dumps(document)


def _pair(key: str, value: Any) -> str:
    return tomlkit.dumps({key: _inline(value)})


def _inline(value: Any) -> Any:
    """Return what tomlkit writes on one line."""
    if isinstance(value, list):
        array = tomlkit.array()
        array.extend(map(_inline, value))
        return array
    if not isinstance(value, dict):
        return value
    table = tomlkit.inline_table()
    table.update({key: _inline(item) for key, item in value.items()})
    return table
