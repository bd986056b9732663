"""Edits of JSON in its text: what an edit is not about stays as it was written, to the byte."""

import json
import re
from collections import Counter
from typing import Any

import attrs

from agentos.cli.manifest_edit.edits import GONE, Keys

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_PLAIN = re.compile(r"[^\s,\]}]+")


@attrs.frozen
class Node:
    """A value in the text, and what is in it: by name in an object, by number in a list."""

    begin: int
    end: int
    members: "tuple[Member, ...] | None" = None
    """None for what holds nothing else."""

    def at(self, key: str | int) -> "Member | None":
        """Return what stands under *key*; the last, if a name stands twice."""
        return next((one for one in reversed(self.members or ()) if one.key == key), None)


@attrs.frozen
class Member:
    """One thing in an object or a list; *begin* is where its name begins, if it has one."""

    key: str | int
    begin: int
    node: Node


def edit_text(text: str, keys: Keys, value: Any, meant: Any) -> str:  # noqa: ARG001 - an editor's signature
    """Return *text* with *value* at *keys*."""
    try:
        root = _value(text, _past_space(text, 0))
    except RecursionError:
        raise ValueError("too deep to be edited") from None
    *above, last = keys
    node = root
    for depth, key in enumerate(above):
        member = node.at(key)
        if member is None or text[member.node.begin : member.node.end] == "null":
            return _put(text, node, key, _nested(keys[depth + 1 :], value))
        node = member.node
    return _removed(text, node, last) if value is GONE else _put(text, node, last, value)


def comments(text: str) -> Counter[str]:  # noqa: ARG001 - an editor's signature
    """Return the comments in *text*: JSON has none."""
    return Counter()


def _nested(keys: Keys, value: Any) -> Any:
    for key in reversed(keys):
        value = [value] if isinstance(key, int) else {key: value}
    return value


# -- reading -----------------------------------------------------------------------------------------------------------


def _past_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _value(text: str, at: int) -> Node:
    if text[at] == '"':
        return Node(at, _DECODER.raw_decode(text, at)[1])
    if text[at] not in "{[":
        found = _PLAIN.match(text, at)
        if found is None:
            raise ValueError("expected a value")
        return Node(at, found.end())
    members: list[Member] = []
    end, place = "}" if text[at] == "{" else "]", _past_space(text, at + 1)
    while text[place] != end:
        members.append(_member(text, place, None if end == "}" else len(members)))
        place = _past_space(text, members[-1].node.end)
        if text[place] == ",":
            place = _past_space(text, place + 1)
    return Node(at, place + 1, tuple(members))


def _member(text: str, at: int, number: int | None) -> Member:
    if number is not None:
        return Member(number, at, _value(text, at))
    key, end = _DECODER.raw_decode(text, at)
    colon = _past_space(text, end)
    return Member(key, at, _value(text, _past_space(text, colon + 1)))


# -- writing -----------------------------------------------------------------------------------------------------------


def _put(text: str, node: Node, key: str | int, value: Any) -> str:
    if node.members is None:
        raise ValueError("nothing can be put into a plain value")
    member = node.at(key)
    if member is not None:
        margin = _margin(text, member.begin)
        return text[: member.node.begin] + _written(text, value, margin) + text[member.node.end :]
    if node.members:
        return _behind(text, node, key, value)
    outer = _margin(text, node.begin)
    inner = outer + _unit(text)
    new = _named(text, key, value, inner)
    inside = f"\n{inner}{new}\n{outer}" if "\n" in text.strip() else new
    return text[: node.begin + 1] + inside + text[node.end - 1 :]


def _behind(text: str, node: Node, key: str | int, value: Any) -> str:
    """Put a new thing behind the last one, on a line of its own where the first one has one."""
    members = node.members or ()
    gap = text[node.begin + 1 : members[0].begin]
    if "\n" not in gap:
        gap = " " if ", " in text or "\n" in text.strip() else ""
    last = members[-1].node.end
    return f"{text[:last]},{gap}{_named(text, key, value, _margin(text, members[0].begin))}{text[last:]}"


def _named(text: str, key: str | int, value: Any, margin: str) -> str:
    written = _written(text, value, margin)
    if isinstance(key, int):
        return written
    colon = ":" if '":' in text and '": ' not in text else ": "
    return f"{json.dumps(key, ensure_ascii=text.isascii())}{colon}{written}"


def _written(text: str, value: Any, margin: str) -> str:
    """Write a value as the rest is written: on lines of its own, or on one, with spaces or without."""
    ascii_only = text.isascii()
    if "\n" not in text.strip():
        separators = (", ", ": ") if '": ' in text else (",", ":")
        return json.dumps(value, ensure_ascii=ascii_only, separators=separators)
    return json.dumps(value, ensure_ascii=ascii_only, indent=_unit(text)).replace("\n", f"\n{margin}")


def _unit(text: str) -> str:
    """Return by how much the text is indented in one step."""
    found = re.search(r"\n([ \t]+)\S", text)
    return "  " if found is None else found[1]


def _margin(text: str, at: int) -> str:
    """Return the white space before what stands on the line of *at*."""
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _removed(text: str, node: Node, key: str | int) -> str:
    members = node.members or ()
    found = node.at(key)
    if found is None:
        raise LookupError(key)
    at = members.index(found)
    if len(members) == 1:
        return text[: node.begin + 1] + text[node.end - 1 :]
    if found is members[-1]:
        return text[: members[at - 1].node.end] + text[found.node.end :]
    return text[: found.begin] + text[members[at + 1].begin :]
