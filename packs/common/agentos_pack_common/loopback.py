"""A web server on loopback for the tests of packs: every path has one answer.

Nothing that runs in a host uses it.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *([0-9]{1,9})\r\n", re.IGNORECASE)
_TYPES: Final = {"html": "text/html; charset=utf-8", "pdf": "application/pdf"}


@contextlib.asynccontextmanager
async def serving(pages: Mapping[str, Any]) -> AsyncIterator[int]:
    """Serve *pages* by their paths, to any method, and yield the port.

    Bytes are sent as they are, with the type that the path's ending says; everything else is sent as JSON.
    """
    talks: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.create_task(_talk(reader, writer, pages))
        talks.add(talk)
        talk.add_done_callback(talks.discard)

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for talk in (left := list(talks)):
            talk.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await server.wait_closed()


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pages: Mapping[str, Any]) -> None:
    """Answer one request."""
    try:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = await reader.readuntil(b"\r\n\r\n")
            if length := _LENGTH.search(head):
                await reader.readexactly(int(length[1]))
            writer.write(_answer(head, pages))
            await writer.drain()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _answer(head: bytes, pages: Mapping[str, Any]) -> bytes:
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0].decode("ascii", "replace")
    status, page = ("200 OK", pages[path]) if path in pages else ("404 Not Found", {"error": "there is no such page"})
    body = page if isinstance(page, bytes) else json.dumps(page).encode()
    ending = _TYPES.get(path.rpartition(".")[2], "application/octet-stream")
    kind = ending if isinstance(page, bytes) else "application/json"
    said = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return said.encode() + (b"" if method == b"HEAD" else body)
