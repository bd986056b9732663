"""Edits of TOML. By lines, where packs stand under `[[packs]]` headers; else by tomlkit."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

import attrs

from agentos.cli.manifest_edit.edits import GONE, Keys

_HEADER = re.compile(r"[ \t]*(\[\[?)(.*?)(\]\]?)[ \t]*(#.*)?$")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_OPENING = "[{"
_CLOSING = "]}"


@attrs.frozen
class _Piece:
    """Some lines: a header, a key with its value, or what is between them. `value` is where the value stands."""

    kind: Literal["header", "pair", "between"]
    start: int
    end: int
    name: tuple[str, ...] = ()
    is_array: bool = False
    value: tuple[int, int] = (0, 0)


def edit_lines(text: str, keys: Keys, value: Any, meant: Any) -> str:  # noqa: ARG001 - an editor's signature
    """Edit packs and servers that stand under headers of their own; raise ValueError for everything else."""
    if keys[0] not in ("packs", "mcpServers") or len(keys) not in (2, 3):
        raise ValueError("neither about a pack nor about a server")
    pieces = list(_pieces(text))
    if any(piece.kind == "pair" and piece.name[:1] == keys[:1] for piece in _top(pieces)):
        raise ValueError("they stand in one value")
    if keys == ("packs", -1):
        tables = list(_tables(pieces))
        at = tables[-1][-1].end if tables else len(text)
        return _inserted(text, at, _entry(value))
    table = list(_tables(pieces))[int(keys[1])] if keys[0] == "packs" else _server(pieces, keys[:2])
    if len(keys) == 2:  # noqa: PLR2004 - the entry itself
        return _without(text, table[0].start, table[-1].end)
    return _with_field(text, table, str(keys[2]), value)


def _server(pieces: list[_Piece], name: Keys) -> list[_Piece]:
    """Return the pieces of one server: its header, its keys, and those of tables beneath it."""
    table: list[_Piece] = []
    is_inside = False
    for piece in pieces:
        if piece.kind == "header":
            is_inside = piece.name[:2] == name
        if is_inside and piece.kind != "between":
            table.append(piece)
    if not table or table[0].name != name:
        raise ValueError("it has no header of its own")
    return table


def _top(pieces: list[_Piece]) -> Iterator[_Piece]:
    for piece in pieces:
        if piece.kind == "header":
            return
        yield piece


def _tables(pieces: list[_Piece]) -> Iterator[list[_Piece]]:
    """Yield the pieces of each pack: its header, its keys, and those of tables beneath it."""
    table: list[_Piece] = []
    is_inside = False
    for piece in pieces:
        if piece.kind == "header":
            begins = piece.is_array and piece.name == ("packs",)
            if begins and table:
                yield table
                table = []
            is_inside = begins or (piece.name[:1] == ("packs",) and bool(table))
        if is_inside and piece.kind != "between":
            table.append(piece)
    if table:
        yield table


def _with_field(text: str, table: list[_Piece], key: str, value: Any) -> str:
    own = [table[0]]
    for piece in table[1:]:
        if piece.kind == "header":
            break
        own.append(piece)
    found = next((piece for piece in own[1:] if piece.name == (key,)), None)
    if value is GONE:
        if found is None:
            raise ValueError("the key stands elsewhere")
        return text[: found.start] + text[found.end :]
    if found is not None:
        return text[: found.value[0]] + _written(value) + text[found.value[1] :]
    return _inserted(text, own[-1].end, f"{_key(key)} = {_written(value)}\n")


def _inserted(text: str, at: int, more: str) -> str:
    """Put lines in; a header gets an empty line before it."""
    head, tail = text[:at], text[at:]
    if head and not head.endswith("\n"):
        head += "\n"
    if more.startswith("[") and head.strip():
        more = more if head.endswith("\n\n") else f"\n{more}"
        if tail and not tail.startswith("\n"):
            more += "\n"
    return head + more + tail


def _without(text: str, start: int, end: int) -> str:
    head, tail = text[:start], text[end:]
    if head.endswith("\n\n") or not head:
        tail = tail.removeprefix("\n")
    if not tail.strip() and head.endswith("\n\n"):
        head = head[:-1]
    return head + tail


def _entry(entry: dict[str, Any]) -> str:
    lines = [f"{_key(key)} = {_written(value)}" for key, value in entry.items()]
    return "\n".join(["[[packs]]", *lines, ""])


def _key(key: str) -> str:
    import tomlkit

    return key if _BARE.fullmatch(key) else tomlkit.string(key).as_string()


def _written(value: Any) -> str:
    """Write a value on one line."""
    import tomlkit

    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_written(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return str(tomlkit.item(value).as_string())


# -- reading lines ---------------------------------------------------------------------------------------------------


def _pieces(text: str) -> Iterator[_Piece]:
    at = 0
    while at < len(text):
        end = _end_of_line(text, at)
        line = text[at:end].rstrip("\n")
        bare = line.lstrip(" \t")
        if not bare or bare.startswith("#"):
            yield _Piece("between", at, end)
        elif bare.startswith("["):
            yield _header(line, at, end)
        else:
            piece = _pair(text, at)
            end = piece.end
            yield piece
        at = end


def _end_of_line(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def _header(line: str, start: int, end: int) -> _Piece:
    match = _HEADER.match(line)
    if match is None:
        raise ValueError("a header that can't be read")
    return _Piece("header", start, end, _names(match[2]), is_array=match[1] == "[[")


def _names(text: str) -> tuple[str, ...]:
    """Read a dotted key by having it parsed as one."""
    import tomllib

    data: Any = tomllib.loads(f"{text} = 0")
    names = []
    while isinstance(data, dict):
        ((name, data),) = data.items()
        names.append(name)
    return tuple(names)


def _pair(text: str, start: int) -> _Piece:
    """Read a key and its value, which may go over several lines."""
    equals = _skip(text, start, stop="=")
    begin = equals + 1
    while text[begin : begin + 1] in (" ", "\t"):
        begin += 1
    end = _skip(text, begin, stop="\n#")
    value_end = begin + len(text[begin:end].rstrip())
    return _Piece("pair", start, _end_of_line(text, end), _names(text[start:equals]), value=(begin, value_end))


def _skip(text: str, at: int, *, stop: str) -> int:
    """Return where one of *stop* stands outside of strings and brackets, or the end."""
    depth = 0
    while at < len(text):
        char = text[at]
        if depth == 0 and char in stop:
            return at
        if char in "\"'":
            at = _end_of_string(text, at)
            continue
        if char == "#":  # within a list over several lines
            at = _end_of_line(text, at)
            continue
        depth += (char in _OPENING) - (char in _CLOSING)
        at += 1
    return at


def _end_of_string(text: str, at: int) -> int:
    quote = text[at]
    triple = text[at : at + 3] == quote * 3
    closing = quote * 3 if triple else quote
    at += len(closing)
    while at < len(text):
        if quote == '"' and text[at] == "\\":
            at += 2
        elif text.startswith(closing, at):
            at += len(closing)
            while triple and text[at : at + 1] == quote:  # up to two quotes may end the string itself
                at += 1
            return at
        else:
            at += 1
    raise ValueError("a string without an end")


def comments(text: str) -> Counter[str]:
    """Return the comments in *text*, each as often as it is there."""
    return Counter(_comments(text))


def _comments(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        if text[at] in "\"'":
            at = _end_of_string(text, at)
        elif text[at] == "#":
            end = _end_of_line(text, at)
            yield text[at:end].rstrip()
            at = end
        else:
            at += 1


# -- by tomlkit --------------------------------------------------------------------------------------------------------


def edit_document(text: str, keys: Keys, value: Any, meant: Any) -> str:  # noqa: ARG001 - an editor's signature
    """Edit whatever stands in tables that are there, by tomlkit."""
    import tomlkit

    document = tomlkit.parse(text)
    at: Any = document
    *above, last = keys
    for key in above:
        at = at[key]
    if value is GONE:
        del at[last]
    elif last == -1:
        at.append(_inline(value))
    else:
        at[last] = _inline(value)
    written = tomlkit.dumps(document)
    if lost := set(_lines_of_comment(text)) - set(_lines_of_comment(written)):
        raise ValueError(f"{len(lost)} comments would be lost")
    return written


def _lines_of_comment(text: str) -> Iterator[str]:
    return (line.strip() for line in text.splitlines() if line.lstrip().startswith("#"))


def _inline(value: Any) -> Any:
    import tomlkit

    if isinstance(value, dict):
        table = tomlkit.inline_table()
        for key, item in value.items():
            table[key] = _inline(item)
        return table
    return value
