"""Give real places to send to: a web server and a mail server."""

import asyncio
import json
import re
import warnings
from contextlib import asynccontextmanager
from email import message_from_bytes, policy

import pytest

from agentos import AgentOS, ToolCall


class Hook:
    """A web server that takes JSON, answers with `status`, and keeps what came."""

    def __init__(self):
        self.received = []
        self.arrived = asyncio.Queue()
        self.status = "200 OK"
        self.headers = ""
        self.port = 0
        self.held = None
        self.pours = None
        self.pause = 0.0
        self.gone = asyncio.Event()
        self.is_over = False

    @asynccontextmanager
    async def serving(self):
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            self.is_over = True
            server.close()
            await server.wait_closed()

    async def _answer(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)[1])
        self.received.append(json.loads(await reader.readexactly(length)))
        self.arrived.put_nowait(self.received[-1])
        if self.held is not None:
            await self.held.wait()
        if self.pours is not None:
            await self._pour(writer)
            return
        writer.write(f"HTTP/1.1 {self.status}\r\n{self.headers}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
        writer.close()
        await writer.wait_closed()

    async def _pour(self, writer):
        """Answer with as many chunks as `pours` yields, or until nobody listens any more."""
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        try:
            for chunk in self.pours:
                writer.write(chunk)
                await writer.drain()
                await asyncio.sleep(self.pause)
                if self.is_over:
                    break
        except ConnectionError:
            self.gone.set()
        writer.close()


@pytest.fixture(autouse=True)
def _nothing_leaves_the_machine(_nothing_leaves_the_machine, monkeypatch):
    """Lead what a service would send elsewhere to a proxy that is not there: deliveries run in another process."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("no_proxy", raising=False)


@pytest.fixture
async def hook():
    async with Hook().serving() as server:
        yield server


@pytest.fixture
async def mailbox():
    """Yield a real SMTP server that wants a password, as its port and the messages that it took."""
    from aiosmtpd.smtp import SMTP, AuthResult

    class Keeper:
        def __init__(self):
            self.messages = []
            self.recipients = []

        async def handle_DATA(self, server, session, envelope):  # noqa: N802 - aiosmtpd's name
            self.recipients.append((envelope.mail_from, *envelope.rcpt_tos))
            self.messages.append(message_from_bytes(envelope.content, policy=policy.default))
            return "250 OK"

    def check(server, session, envelope, mechanism, data):
        return AuthResult(success=(data.login, data.password) == (b"robot", b"pass-word-9"), handled=False)

    keeper = Keeper()
    loop = asyncio.get_running_loop()
    sessions = []

    def session():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a password goes without TLS, on loopback
            sessions.append(SMTP(keeper, authenticator=check, auth_required=True, auth_require_tls=False, loop=loop))
        return sessions[-1]

    server = await loop.create_server(session, "127.0.0.1", 0)
    keeper.port = server.sockets[0].getsockname()[1]
    yield keeper
    server.close()
    await server.wait_closed()
    for one in sessions:
        if one.transport is not None:
            one.transport.abort()
        one._handler_coroutine.cancel()
    await asyncio.gather(*(one._handler_coroutine for one in sessions), return_exceptions=True)


@pytest.fixture
def hosting(tmp_path):
    """Return a context manager for a host with the pack on one file."""

    @asynccontextmanager
    async def host(urls, *, mode="auto", options=None, **settings):
        given = {"path": str(tmp_path / "notify.db"), "secrets": {"apprise.urls": urls} if urls else {}}
        entry = {"module": "agentos_pack_notify", "options": {**given, **(options or {})}, "required": True}
        async with AgentOS(extension_manifest={"packs": [entry]}, mode=mode, **settings) as made:
            yield made

    return host


@pytest.fixture
def call():
    """Return a function that calls a tool of a host for a principal."""

    async def calling(host, name, principal=None, **arguments):
        return await host.tools.process_tool_call(ToolCall(name, arguments), principal)

    return calling
