"""What came back: read within bounds, unpacked within the same, and decoded without trust."""

import json
import re
import zlib
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from agentos.web.web_errors import WebError, host_name

_COUNT_LIMIT = 200
_SIZE_LIMIT = 65_536
_CHARSET = re.compile(r"charset=[\"']?([A-Za-z0-9_-]+)", re.IGNORECASE)
# What a server names is looked up nowhere else: codecs are code, and some of them take long.
_CHARSETS = frozenset({"utf-8", "us-ascii", "iso-8859-1", "iso-8859-15", "latin-1", "windows-1252", "utf-16"})
_GZIP, _ZLIB, _RAW = 31, 15, -15


class Headers(Mapping[str, str]):
    """Headers of an answer, whatever the case of their names; values of the same name are joined with a comma."""

    __slots__ = ("_values",)

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._values: dict[str, str] = {}
        for name, value in pairs:
            key = name.lower()
            self._values[key] = f"{self._values[key]}, {value}" if key in self._values else value

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<Headers {', '.join(self._values)}>"


@attrs.frozen
class WebResponse:
    """An answer, whatever its status. The body is unpacked and within the limits."""

    status: int
    headers: Headers = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)
    url: str = attrs.field(repr=False)
    """Where it came from in the end."""
    host: str = ""

    @property
    def text(self) -> str:
        """Return the body as text, by the charset that the answer names, else UTF-8; never fails."""
        return decoded(self.body, self.headers.get("content-type", ""))

    def json(self) -> Any:
        """Return the body as JSON; raise WebError if it is not JSON."""
        try:
            return parse_json(self.text)
        except (ValueError, RecursionError):
            pass
        failure = bad_response(self.host, "did not answer with JSON")
        failure.is_sent = True
        raise failure


def decoded(body: bytes | bytearray, content_type: str) -> str:
    """Return a body as text, by the charset that its type names, else UTF-8; never fails."""
    found = _CHARSET.search(content_type)
    charset = found[1].lower() if found else ""
    return body.decode(charset if charset in _CHARSETS else "utf-8", "replace").removeprefix("\ufeff")


def parse_json(text: str) -> Any:
    """Return JSON as values; raise ValueError or RecursionError for anything else, NaN and the like included."""

    def refuse(name: str) -> Any:
        raise ValueError(name)

    return json.loads(text, parse_constant=refuse)


def bad_response(host: str, what: str) -> WebError:
    """Return what is raised for an answer that can't be used."""
    return WebError("bad_response", f"{host_name(host)} {what}", host)


def read_headers(raw: Iterable[tuple[bytes, bytes]], host: str) -> Headers:
    """Return the headers of an answer, if they are not too many or too long."""
    pairs = list(raw)
    if len(pairs) > _COUNT_LIMIT or sum(len(name) + len(value) for name, value in pairs) > _SIZE_LIMIT:
        raise bad_response(host, f"answered with more than {_COUNT_LIMIT} headers or {_SIZE_LIMIT} bytes of them")
    return Headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs)


async def read_body(chunks: AsyncIterable[bytes], headers: Headers, limit: int, host: str) -> bytes:
    """Read a body to its end; stop at once when more than *limit* has come, or more than that is unpacked."""
    said = headers.get("content-length", "")
    if said.isdecimal() and len(said) < _DIGITS and int(said) > limit:
        raise _too_large(host, limit)
    unpack = _unpacker(headers.get("content-encoding", ""), host)
    came, body = 0, bytearray()
    async for chunk in chunks:
        came += len(chunk)
        body += chunk if unpack is None else unpack.feed(chunk, limit - len(body))
        if came > limit or len(body) > limit:
            raise _too_large(host, limit)
    if unpack is not None and came:
        unpack.end()
    return bytes(body)


_DIGITS = 20


def _too_large(host: str, limit: int) -> WebError:
    message = f"{host_name(host)} answered with more than {limit} bytes; ask for less, or raise max_bytes"
    return WebError("too_large", message, host)


def _unpacker(coding: str, host: str) -> "_Unpacker | None":
    word = coding.strip().lower()
    if word in ("", "identity"):
        return None
    if word not in ("gzip", "x-gzip", "deflate"):
        raise bad_response(host, "answered in an encoding that was not asked for; only gzip and deflate are unpacked")
    return _Unpacker(host, is_gzip=word != "deflate")


class _Unpacker:
    """Unpacks one stream of gzip or deflate, never more of it than asked for."""

    def __init__(self, host: str, *, is_gzip: bool) -> None:
        self._host = host
        self._stream = zlib.decompressobj(_GZIP) if is_gzip else None
        self._head = b""

    def feed(self, chunk: bytes, room: int) -> bytes:
        """Return what *chunk* adds; at most one byte more than there is *room*."""
        if self._stream is None:  # some servers send deflate without the header that says so: two bytes tell
            self._head += chunk
            if len(self._head) < 2:  # noqa: PLR2004
                return b""
            is_plain = self._head[0] & 0x0F == zlib.DEFLATED and int.from_bytes(self._head[:2], "big") % 31 == 0
            self._stream, chunk = zlib.decompressobj(_ZLIB if is_plain else _RAW), self._head
        try:
            return self._stream.decompress(chunk, room + 1)
        except zlib.error:
            pass
        raise bad_response(self._host, "answered with a body that can't be unpacked")

    def end(self) -> None:
        """Refuse a stream that was cut off, or goes on after its end."""
        if self._stream is None or not self._stream.eof or self._stream.unused_data:
            raise bad_response(self._host, "answered with a packed body that is cut off or goes on after its end")
