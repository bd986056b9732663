"""List the files of agentos that one `tools/call` over HTTP passes through: `python -m benchmarks.files_of_a_call`.

A call by the SDK's client, with a bearer token bound to the server, in both eras of the protocol. A file counts if a
function of it runs between the request's entry into the ASGI app and the end of its response. A switch is a call from
one of these files into another, or back.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import attrs
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

import agentos
from agentos import AgentOS, Principal, tool
from agentos.mcp import TokenFile, http_app
from agentos.testing import make_host
from benchmarks._measure import Measurement

MEASUREMENTS: list[Measurement] = []
"""Nothing here is measured in time."""

ERAS = ("2026-07-28", "legacy")
_HOME = str(Path(agentos.__file__).parent)
_URL = "http://127.0.0.1/mcp"

App = Callable[[Any, Any, Any], Awaitable[None]]


@attrs.define
class Passage:
    """The files that a call has passed through, in the order in which it first reached them."""

    files: dict[str, None] = attrs.field(factory=dict)
    switches: int = 0
    _last: str = ""

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note every function of agentos that runs until the end of the block, in whatever task."""
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(_HOME):
            return
        self.files[file.removeprefix(f"{_HOME}/")] = None
        self.switches += file != self._last and bool(self._last)
        self._last = file


def noting(app: App, passage: Passage) -> App:
    """Return *app* with the passage of each `tools/call` noted."""

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        message = await receive() if scope["type"] == "http" and scope["method"] == "POST" else None
        replay = iter([] if message is None else [message])

        async def replayed() -> Any:
            return next(replay, None) or await receive()

        if message is None or b'"tools/call"' not in message.get("body", b""):
            await app(scope, replayed, send)
            return
        with passage.noted():
            await app(scope, replayed, send)

    return noted


@tool(effect="read", required_access=["math"])
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def passage_of(era: str) -> Passage:
    """Return the passage of the second call of a tool: what is made once was made by the first."""
    with tempfile.TemporaryDirectory() as folder:
        tokens = TokenFile(Path(folder) / "tokens.json")
        token = tokens.issue(Principal("somebody", access={"math"}), audience=_URL)
        async with make_host(add) as host:
            return await _called(host, tokens, token, era)


async def _called(host: AgentOS, tokens: TokenFile, token: str, era: str) -> Passage:
    app = http_app(host, verifier=tokens, resource_url=_URL)
    passages = [Passage(), Passage()]
    async with app.router.lifespan_context(app):
        for passage in passages:
            http = httpx2.AsyncClient(
                transport=httpx2.ASGITransport(noting(app, passage)),  # type: ignore[arg-type]  # an ASGI app
                headers={"Authorization": f"Bearer {token}"},
            )
            async with http, Client(streamable_http_client(_URL, http_client=http), mode=era) as client:
                result = await client.call_tool("add", {"a": 1, "b": 2})
                assert not result.is_error, result.content
    return passages[-1]


def main() -> None:
    """Print the files for each era."""
    for era in ERAS:
        passage = asyncio.run(passage_of(era))
        print(f"{era}: {len(passage.files)} files, {passage.switches} switches")
        for file in passage.files:
            print(f"    {file}")


if __name__ == "__main__":
    main()
