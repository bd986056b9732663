"""What the tests of interop share: a host with a few tools, and a loopback endpoint that plays a script."""

import contextlib
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs
import pytest

from agentos import PUBLIC, AgentOS, Tool, ToolContext, ToolResult, tool


@tool(effect="read", required_access=PUBLIC)
async def add(a: int, b: int = 10) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


@tool(effect="read", required_access=PUBLIC)
async def fail() -> None:
    """Fail every time."""
    raise RuntimeError("no luck today")


@tool(effect="read", required_access=PUBLIC)
async def finish(text: str) -> ToolResult:
    """End the turn."""
    return ToolResult.ok(text, stop=True)


@tool(effect="read", required_access=PUBLIC)
async def whoami(context: ToolContext) -> dict[str, Any]:
    """Tell who calls."""
    return {"principal": context.principal.id, "call": context.tool_call.id, "session": dict(context.session)}


@tool(effect="read", required_access="vault:read")
async def open_vault() -> str:
    """Open the vault."""
    return "gold"


async def _shout(args: dict[str, Any], context: ToolContext) -> str:
    return args["text"].upper()


shout = Tool.from_schema(
    name="text.shout/größer",
    description="Shout a text.",
    input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    effect="read",
    required_access=PUBLIC,
    execute=_shout,
)
TOOLS = [add, fail, finish, whoami, open_vault, shout]


@pytest.fixture
async def host(anyio_backend):
    async with AgentOS() as host:
        await host.tools_service().sync(TOOLS)
        yield host


@attrs.define
class Endpoint:
    """An endpoint on loopback: answers what its script says, and keeps what it was asked.

    `check(request)` says what is wrong with a request, which is then refused as a provider would.
    """

    url: str
    script: list[Any] = attrs.field(factory=list)
    requests: list[dict[str, Any]] = attrs.field(factory=list)
    paths: list[str] = attrs.field(factory=list)
    check: Callable[[dict[str, Any]], str | None] = lambda _: None

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        self.paths.append(path)
        self.requests.append(body)
        fault = self.check(body)
        if fault is not None:
            return 400, {"error": {"message": fault, "type": "invalid_request_error"}}
        return 200, self.script.pop(0)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    endpoint: Endpoint

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = self.endpoint.answer(self.path, body)
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        """Say nothing."""


@contextlib.contextmanager
def serving():
    handler = type("ScriptHandler", (Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    handler.endpoint = Endpoint(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield handler.endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def endpoint():
    with serving() as endpoint:
        yield endpoint
