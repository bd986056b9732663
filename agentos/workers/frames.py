"""Messages on a stream of bytes: JSON objects, one on each line.

What is invalid ends the stream for good: behind a line that is too long or not JSON, nobody can say where the next
message begins.
"""

import json
from collections.abc import Iterator
from typing import Any

MESSAGE_LIMIT = 8 * 1024 * 1024
"""How many bytes a message may have if nobody says otherwise."""
DEPTH_LIMIT = 512
"""How deep a message may be nested; what is within is bounded again by whoever reads it."""
_SHOWN = 80

Frame = dict[str, Any]

_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_decode = json.JSONDecoder().decode


class FrameError(ValueError):
    """What came is not a message, and nothing behind it can be read."""


class FrameTooLargeError(FrameError):
    """A message has more bytes than are allowed."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"a message of {size} bytes; at most {limit} are allowed (worker.message)")
        self.size = size
        self.limit = limit


def encode_frame(message: Frame, limit: int = MESSAGE_LIMIT) -> bytes:
    """Return *message* as a line; raise FrameTooLargeError if it is too long."""
    line = _encode(message).encode("ascii")
    if len(line) > limit:
        raise FrameTooLargeError(len(line), limit)
    return line + b"\n"


class Frames:
    """Makes messages of the bytes of one stream, however they are cut."""

    def __init__(self, limit: int = MESSAGE_LIMIT) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        """What came of a line whose end is yet to come."""
        self._held = 0
        self._error: FrameError | None = None

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the messages that *data* completes. Raise FrameError at one that is invalid, and ever after."""
        if self._error is not None:
            raise self._error
        try:
            yield from self._messages(data)
        except FrameError as error:
            self._error, self._parts = error, []
            raise

    def _messages(self, data: bytes) -> Iterator[Frame]:
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole = b"".join((*self._parts, line)) if self._parts else line
            self._parts, self._held = [], 0
            yield self._message(whole)
        if rest:
            self._parts.append(rest)
            self._held += len(rest)
            if self._held > self._limit:
                raise FrameTooLargeError(self._held, self._limit)

    def _message(self, line: bytes) -> Frame:
        if len(line) > self._limit:
            raise FrameTooLargeError(len(line), self._limit)
        try:
            message = _decode(line.decode("utf-8"))
        except UnicodeDecodeError:
            raise FrameError(f"a message that is not UTF-8: {_shown(line)}") from None
        except RecursionError:
            raise FrameError(f"a message that is nested deeper than {DEPTH_LIMIT} levels") from None
        except ValueError:
            raise FrameError(f"a message that is not JSON: {_shown(line)}") from None
        if type(message) is not dict:
            raise FrameError(f"a message that is not an object: {_shown(line)}")
        if line.count(b"[") + line.count(b"{") > DEPTH_LIMIT and is_deeper(message, DEPTH_LIMIT):
            raise FrameError(f"a message that is nested deeper than {DEPTH_LIMIT} levels")
        return message


def is_deeper(value: Any, limit: int) -> bool:
    """Tell whether plain JSON is nested deeper than *limit* levels, without recursion."""
    level, depth = [value], 0
    while level and depth <= limit:
        inner: list[Any] = []
        for one in level:
            inner += one.values() if type(one) is dict else one
        level, depth = [one for one in inner if type(one) in (dict, list)], depth + 1
    return depth > limit


def _shown(line: bytes) -> str:
    return ascii(line[:_SHOWN])
