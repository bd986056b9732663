"""Hand out books, hosts with tools to call, and people."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Annotated

import pytest

from agentos import AgentOS, ExtensionPack, Principal, Schema, ToolCall, tool

Text = Annotated[str, "Any text", Schema(maxLength=100_000)]


@pytest.fixture
def people():
    """Return who may only read, two who may use tasks and the tools around them, and one who may use tasks alone."""
    rules = {"tasks:read", "tasks:write"}
    return SimpleNamespace(
        ria=Principal("ria", access={"tasks:read"}),
        ann=Principal("ann", access={*rules, "tools:use"}),
        bob=Principal("bob", access={*rules, "tools:use"}),
        tim=Principal("tim", access=rules),
        service=Principal("ann", kind="service", access=rules),
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tasks.db"


@pytest.fixture
async def book(path):
    from agentos_pack_tasks.records import open_book

    made = open_book(path)
    await made.open()
    yield made
    await made.close()


class Workshop:
    """Tools for tasks to call; `made` has what they did, `gate` lets the slow one come back."""

    def __init__(self):
        self.made = []
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()

    def pack(self):
        return ExtensionPack("workshop", "1.0", [*self.tools()])

    def tools(self):
        use = {"required_access": "tools:use", "timeout": 30}
        workshop = self

        @tool(effect="read", **use)
        async def echo(text: Text, *, context) -> str:
            """Say a text back."""
            workshop.made.append(("echo", text, context.principal.id))
            return text

        @tool(effect="read", **use)
        async def repeat(text: Text, times: Annotated[int, "How often", Schema(minimum=1, maximum=100)]) -> str:
            """Say a text several times."""
            return text * times

        @tool(effect="mutate", **use)
        async def post(text: Text, *, context) -> str:
            """Post a text somewhere."""
            workshop.made.append(("post", text, context.principal.id))
            return f"posted {text}"

        @tool(effect="destructive", **use)
        async def wipe(text: Text) -> str:
            """Wipe something."""
            workshop.made.append(("wipe", text))
            return "wiped"

        @tool(effect="read", **use)
        async def fail(text: Text) -> str:
            """Fail with a text."""
            raise ValueError(text)

        @tool(effect="read", **use)
        async def slow(text: Text) -> str:
            """Say a text back when it is let to."""
            workshop.begun.set()
            await workshop.gate.wait()
            return text

        @tool(effect="read", **use)
        async def slow_to_fail(text: Text) -> str:
            """Fail with a text when it is let to."""
            await slow.function(text)
            raise ValueError(text)

        return echo, repeat, post, wipe, fail, slow, slow_to_fail


@pytest.fixture
def workshop():
    return Workshop()


@pytest.fixture
def hosting(path, workshop):
    """Return a context manager for a host with the pack on one file, and with tools for its tasks to call."""

    @asynccontextmanager
    async def host(*, mode="auto", options=None, **settings):
        given = {"path": str(path)} if options is None else options
        entry = {"module": "agentos_pack_tasks", "options": given, "required": True}
        async with AgentOS(extension_manifest={"packs": [entry]}, mode=mode, **settings) as made:
            await made.extensions.load_pack(workshop.pack())
            yield made

    return host


@pytest.fixture
def call():
    """Return a function that calls a tool of a host for a principal."""

    async def calling(host, name, principal=None, **arguments):
        return await host.tools.process_tool_call(ToolCall(name, arguments), principal)

    return calling


@pytest.fixture
def done(call):
    """Return a function that calls a tool, approves it if that is needed, and returns the output of its success."""

    async def doing(host, name, principal=None, **arguments):
        result = await call(host, name, principal, **arguments)
        if result.error is not None and result.error.type == "ApprovalRequired":
            result = await host.approvals.approve(result.error.details["proposal_id"], by=principal)
        assert result.success, result.content
        return result.output

    return doing
