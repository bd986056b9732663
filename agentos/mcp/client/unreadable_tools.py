"""Lists of tools in which not every tool can be read: a bad one must not cost the others.

Only such a list is looked at piece by piece. What is around the tools in it is held to the same rules as any message.
"""

import json
import re
from collections.abc import Iterator

from agentos.mcp.json_rpc import MAX_DEPTH, first_line, load_json, top_level_keys
from agentos.processes.lines import EXCERPT_SIZE

UNREADABLE = "agentos/unreadable"
"""The key under which the stand-in of a tool says why that can't be read."""

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[{}\[\],:]', re.DOTALL)
"""A text that does not end reaches to the end: to look for it again from each quote in it would take too long."""
_MOST_TOKENS = 1_000_000
_PLACE = [b"", b'"result"', b'"tools"']
"""The keys that lead to the tools, from the outermost object on."""

Span = tuple[int, int]


def readable_list(line: bytes) -> bytes:
    """Return the list of tools in *line* with a stand-in for each tool that can't be read.

    What can be read as a whole, and what is no such list, is returned as it is.
    """
    try:
        load_json(line)
    except (ValueError, RecursionError):
        return with_stand_ins(line)
    return line


def with_stand_ins(line: bytes) -> bytes:
    """Return *line*, which can't be read as a whole, with a stand-in for each tool that can't be read."""
    spans = _spans_of_tools(line)
    if not spans or not line[slice(*spans[0])].strip():
        return line
    tools = b",".join(_tool(line[start:end]) for start, end in spans)
    return line[: spans[0][0]] + tools + line[spans[-1][1] :]


def _tool(text: bytes) -> bytes:
    try:
        load_json(text, MAX_DEPTH - len(_PLACE))
    except (ValueError, RecursionError) as error:
        name = dict(top_level_keys(text[:EXCERPT_SIZE])).get(b'"name"')
        said = {} if name is None else {"name": json.loads(name[1])}
        return json.dumps({**said, UNREADABLE: first_line(error)}).encode()
    return text


def _spans_of_tools(line: bytes) -> list[Span]:
    """Return where each tool of a list begins and ends; nothing if that can't be told."""
    found: list[Span] = []
    start = None
    for word, path, at in _walk(line):
        if path != _PLACE:
            continue
        if start is None:
            start = at.end() if word == b"[" else None
        elif word in (b",", b"]"):
            found.append((start, at.start()))
            start = at.end()
            if word == b"]":
                return found
    return []


def _walk(line: bytes) -> Iterator[tuple[bytes, list[bytes], re.Match[bytes]]]:
    """Yield brackets and commas, each with the keys that lead to what it stands in; however deep that is."""
    path: list[bytes] = []
    key = text = b""
    for count, token in enumerate(_TOKEN.finditer(line)):
        word = token[0]
        if count == _MOST_TOKENS:
            return
        if word in (b"{", b"["):
            path.append(key)
            key = b""
        elif word == b":":
            key = text
        elif word not in (b",", b"}", b"]"):
            text = word
            continue
        yield word, path, token
        if word == b",":
            key = b""
        elif word in (b"}", b"]"):
            if not path:
                return
            path.pop()
