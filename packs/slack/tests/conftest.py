"""Serve a Slack of our own on loopback, and hosts that it sends its events to."""

import asyncio
import contextlib
import json
import time
from contextlib import asynccontextmanager

import httpx2
import pytest
from agentos_pack_slack.signed_requests import signature_of
from loopback import Site, serving

from agentos import AgentOS
from agentos.mcp.http.serving import serve_http

TOKEN = "xoxb-not-for-others"
SIGNING = "8f742231b10e8888abcd99yyyzzz85a5"
JSON = {"Content-Type": "application/json"}
ANN = "T1TEAM/U1ANN"


def event(number, text="hello", *, kind="message", user="U1ANN", channel="D1", envelope=None, **more):
    """Return an event as Slack sends it."""
    said = {"type": kind, "user": user, "text": text, "ts": f"1700000000.{number:06}", "channel": channel, **more}
    return {
        "type": "event_callback",
        "team_id": "T1TEAM",
        "api_app_id": "A1",
        "event_id": f"Ev{number}",
        "event": said,
        "authorizations": [{"team_id": "T1TEAM", "user_id": "U0BOT", "is_bot": True}],
        **(envelope or {}),
    }


def refusal(code, status=200, **headers):
    return status, {**JSON, **headers}, json.dumps({"ok": False, "error": code}).encode()


class SlackServer(Site):
    """Speaks the part of the Web API that the pack uses; `troubles` are answers that come first."""

    def __init__(self):
        super().__init__()
        self.sent = []
        self.asked = []
        self.troubles = []
        self.pages["/api/chat.postMessage"] = self.answer

    def answer(self, request):
        said = json.loads(request.body)
        self.asked.append(said)
        if self.troubles:
            trouble = self.troubles.pop(0)
            return trouble(said) if callable(trouble) else trouble
        if request.header("authorization") != f"Bearer {TOKEN}":
            return refusal("invalid_auth")
        return self.take(said)

    def take(self, said):
        self.sent.append(said)
        body = {"ok": True, "channel": said["channel"], "ts": f"1700000001.{len(self.sent):06}"}
        return 200, JSON, json.dumps(body).encode()


@pytest.fixture
def slack():
    with serving(SlackServer()) as site:
        yield site


@pytest.fixture
def until():
    """Return a function that waits until something is so."""

    async def wait(condition):
        async with asyncio.timeout(60):
            while not (found := condition()):  # noqa: ASYNC110 - what is waited for happens in a thread
                await asyncio.sleep(0.01)
        return found

    return wait


class EventSender:
    """Sends events as Slack does: signed, to the served host."""

    def __init__(self, client):
        self.client = client

    async def send(self, said, *, secret=SIGNING, age=0, headers=None, **changed):
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        timestamp = str(int(time.time()) - age).encode()
        signed = {
            "x-slack-request-timestamp": timestamp.decode(),
            "x-slack-signature": signature_of(secret, timestamp, body).decode(),
            "content-type": "application/json",
        }
        all_headers = {**signed, **(headers or {})}
        sent = {name: value for name, value in all_headers.items() if value is not None}
        return await self.client.post("/packs/slack/events/", content=changed.get("body", body), headers=sent)


@pytest.fixture
def hosting(slack, until):
    """Return a context manager for a served host with the pack, which echoes what it is told."""

    @asynccontextmanager
    async def host(
        *,
        handler=None,
        running=True,
        serves=True,
        channels=None,
        mode="auto",
        isolation="inline",
        token=TOKEN,
        **options,
    ):
        entry = {
            "module": "agentos_pack_slack",
            "options": {"baseUrl": f"{slack.url}/api", "channels": channels or {}, **options},
            "permissions": ["http:public"],
            "required": True,
            "isolation": isolation,
        }
        manifest = {"principals": {"ann": {}}, "channels": {"slack": {"senders": {ANN: "ann"}}}, "packs": [entry]}
        secrets = {"slack.botToken": token, "slack.signingSecret": SIGNING}

        async def echo(message, principal):
            return f"{principal.id}: {message.text}"

        async with AgentOS(extension_manifest=manifest, extension_secrets=secrets, mode=mode) as made:
            made.channels.handle(handler or echo)
            if running:
                await made.channels.start()
                await until(lambda: made.channels._running.get("slack"))
            async with contextlib.AsyncExitStack() as stack:
                yield made, EventSender(await stack.enter_async_context(served(made)) if serves else None)

    return host


@asynccontextmanager
async def served(host):
    """Serve a host where tokens are asked for, as one is that others can reach; yield a client."""

    class NoTokens:
        async def verify(self, token):
            return None

    ready = asyncio.get_running_loop().create_future()
    server = asyncio.create_task(serve_http(host, port=0, verifier=NoTokens(), ready=ready.set_result))
    try:
        async with asyncio.timeout(60):
            await asyncio.wait([ready, server], return_when=asyncio.FIRST_COMPLETED)
            address = ready.result().removesuffix("/mcp")
        async with httpx2.AsyncClient(base_url=address, trust_env=False, timeout=60) as client:
            yield client
    finally:
        server.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await server
