"""Messages in a stream of bytes: one to a line, bounded while they arrive, and checked before anybody sees them."""

import json
import re
from collections.abc import Iterator
from typing import Any

import attrs
from mcp_types import (
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from agentos.processes.lines import EXCERPT_SIZE

MAX_DEPTH = 100
"""How deep a message may be nested."""
_ID = rb'(\d{1,15}|"[A-Za-z0-9_.-]{1,64}")'
_VALUE = re.compile(rb"\s*:\s*" + _ID + rb"(?=\s*[,}])")
_LAST = re.compile(rb'"id"\s*:\s*' + _ID + rb"\s*\}\s*$")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")


def parse_message(line: bytes) -> JSONRPCMessage:
    """Return the message in *line*; raise ValueError or RecursionError if it is invalid."""
    return message_of(load_json(line))


def load_json(line: bytes, depth: int = MAX_DEPTH) -> Any:
    """Return the JSON in *line*, within bounds; raise ValueError or RecursionError if it is invalid."""
    data = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    if line.count(b"{") + line.count(b"[") > depth and _is_deep(data, depth):
        raise ValueError(f"nested deeper than {depth} levels")
    if _HALF_PAIR.search(line):
        json.dumps(data, ensure_ascii=False).encode("utf-8")  # half of a surrogate pair can't be
    return data


def message_of(data: Any) -> JSONRPCMessage:
    """Return the message that JSON says; raise ValueError if it is invalid."""
    if not isinstance(data, dict):
        raise ValueError("expected an object")  # noqa: TRY004 - not JSON-RPC
    if "method" in data:
        return (JSONRPCRequest if "id" in data else JSONRPCNotification).model_validate(data)
    return (JSONRPCResponse if "result" in data else JSONRPCError).model_validate(data)


def _is_deep(data: Any, depth: int) -> bool:
    level = [data]
    for _ in range(depth):
        inner = (item for one in level for item in (one.values() if type(one) is dict else one))
        level = [item for item in inner if type(item) in (dict, list)]
        if not level:
            return False
    return True


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def first_line(error: Exception) -> str:
    """Say in one line what is wrong with a message."""
    if isinstance(error, RecursionError):
        return "nested too deep"
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:EXCERPT_SIZE]


@attrs.frozen
class MessageOutline:
    """What is known of a message that can't be parsed: its id, and whether it is an answer or a request."""

    id: int | str | None
    is_answer: bool
    is_request: bool

    @classmethod
    def of(cls, line: bytes) -> "MessageOutline":
        """Look at the beginning and the end of *line*; what stands deeper in it is not the message's own."""
        keys = dict(top_level_keys(line[:EXCERPT_SIZE]))
        found = keys.get(b'"id"') or _LAST.search(line[-EXCERPT_SIZE:])
        is_answer = b'"result"' in keys or b'"error"' in keys
        return cls(None if found is None else json.loads(found[1]), is_answer, b'"method"' in keys)


def top_level_keys(head: bytes) -> Iterator[tuple[bytes, re.Match[bytes] | None]]:
    """Yield the strings of the outermost object, each with the id that follows it, if one does."""
    depth = 0
    for token in _TOKEN.finditer(head):
        if token[0] in (b"{", b"["):
            depth += 1
        elif token[0] in (b"}", b"]"):
            depth -= 1
        elif depth == 1:
            yield token[0], _VALUE.match(head, token.end())


def both_ends(line: bytes) -> bytes:
    """Return the beginning and the end of a line that is not kept."""
    return line if len(line) <= 2 * EXCERPT_SIZE else line[:EXCERPT_SIZE] + b" ... " + line[-EXCERPT_SIZE:]


def failure_answer(line: bytes, why: str) -> JSONRPCError | None:
    """Answer the request that a line was meant to answer, so that nobody waits for it in vain."""
    outline = MessageOutline.of(line)
    if outline.id is None or outline.is_request:
        return None
    error = ErrorData(code=INVALID_REQUEST, message=f"the answer can't be used: {why}")
    return JSONRPCError(jsonrpc="2.0", id=outline.id, error=error)
