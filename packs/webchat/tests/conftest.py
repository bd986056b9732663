"""Serve a host with the pack over HTTP on loopback, and read its streams as a page does."""

import asyncio
import contextlib
import json
import uuid
from contextlib import asynccontextmanager

import httpx2
import pytest

from agentos import AgentOS, Principal
from agentos.mcp.auth import Verified
from agentos.mcp.http import serve_http

DEADLINE = 60.0
PATH = "/packs/webchat/webchat/"
WHO = {name: Principal(name) for name in ("ann", "bob", "eve")}
TOKENS = {
    **WHO,
    "narrow": Principal("ann", access={"webchat", "mail"}).narrow({"mail"}),
    "meant": Principal("ann", access={"webchat", "mail"}).narrow({"webchat"}),
}


class Tokens:
    """Knows a token for each principal: its own name."""

    async def verify(self, token):
        return Verified(TOKENS[token], "client", frozenset({"*"}), None, token) if token in TOKENS else None


class Stream:
    """The events of one stream, as they come; each that is read is said to be taken, unless told otherwise."""

    def __init__(self, page, answer, conversation):
        self._page = page
        self._lines = answer.aiter_lines()
        self._conversation = conversation
        self.last = None

    async def next(self, *, takes=True):
        """Return the next message."""
        fields = {}
        async with asyncio.timeout(DEADLINE):
            async for line in self._lines:
                name, _, value = line.partition(": ")
                if name:
                    fields[name] = value
                elif not line and "event" in fields:
                    break
                elif not line:
                    fields = {}
            else:
                raise EOFError
        self.last = fields["id"]
        if takes:
            await self._page.post("taken", {"conversation": self._conversation, "last": self.last})
        return json.loads(fields["data"])

    async def answer(self, *, takes=True):
        """Return the next message that is not the page's own."""
        while (said := await self.next(takes=takes))["from"] != "agent":
            pass
        return said

    async def end(self):
        """Read to the end of the stream; return the messages that came until then."""
        found = []
        with contextlib.suppress(EOFError):
            while True:
                found.append(await self.next(takes=False))
        return found


class Page:
    """What a page of somebody does."""

    def __init__(self, client, token):
        self.client = client
        self.headers = {"authorization": f"Bearer {token}"} if token else {}

    async def get(self, path, **headers):
        return await self.client.get(PATH + path, headers={**self.headers, **headers})

    async def post(self, path, said, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.post(PATH + path, json=said, headers={**self.headers, **named})

    async def say(self, text, *, id=None, conversation="main", **headers):
        said = {"id": id or str(uuid.uuid4()), "conversation": conversation, "text": text}
        return await self.post("messages", said, **headers)

    @asynccontextmanager
    async def stream(self, *, conversation="main", last=None):
        headers = {**self.headers, **({"last-event-id": last} if last else {})}
        url = f"{PATH}events?conversation={conversation}"
        async with self.client.stream("GET", url, headers=headers) as answer:
            assert answer.status_code == 200, await answer.aread()
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield Stream(self, answer, conversation)


class Served:
    """A host, and the pages that are open at it."""

    def __init__(self, host, client, stop):
        self.host = host
        self.client = client
        self.stop = stop

    def page(self, token="ann"):
        return Page(self.client, token)


async def echo(message, principal):
    return f"{principal.id}: {message.text}"


@pytest.fixture
def chatting():
    """Return a context manager for a served host with the pack."""

    @asynccontextmanager
    async def serve(handler=echo, *, options=None, permissions=("http:public",), senders=("ann", "bob"), **more):
        entry = {
            "module": "agentos_pack_webchat",
            "options": options or {},
            "permissions": permissions,
            "required": True,
        }
        isolation = more.pop("isolation", "inline")
        manifest = {
            "principals": {name: {} for name in WHO},
            "channels": {"webchat": {"senders": {one: one for one in senders}, **more.pop("channel", {})}},
            "packs": [{**entry, "isolation": isolation}],
        }
        async with AgentOS(extension_manifest=manifest, store=more.pop("store", None)) as host:
            if handler is not None:
                host.channels.handle(handler)
            await host.channels.start()
            await running(host)
            ready = asyncio.get_running_loop().create_future()
            verifier = more.pop("verifier", Tokens())
            server = asyncio.create_task(serve_http(host, port=0, ready=ready.set_result, verifier=verifier, **more))

            async def stop():
                server.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await server

            try:
                async with asyncio.timeout(DEADLINE):
                    await asyncio.wait([ready, server], return_when=asyncio.FIRST_COMPLETED)
                    address = ready.result().removesuffix("/mcp")
                async with httpx2.AsyncClient(base_url=address, trust_env=False, timeout=DEADLINE) as client:
                    yield Served(host, client, stop)
            finally:
                await stop()

    return serve


async def running(host):
    async with asyncio.timeout(DEADLINE):
        while not all(one.is_running for one in await host.channels.known()):  # noqa: ASYNC110 - it tells no event
            await asyncio.sleep(0.01)
