"""Calls under way: progress reaches the client, cancellation reaches the tool, and nothing is left behind."""

import asyncio
import contextlib
import sys
import threading
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

import agentos.mcp.server.client_calls as calls
from agentos import PUBLIC, ExtensionPack, tool
from agentos.mcp import MCPServer

sys.path.append(str(Path(__file__).parent))
import fixture_pack as pack

ERAS = ("legacy", "2026-07-28")


@pytest.fixture(params=ERAS)
def era(request):
    return request.param


@pytest.fixture
async def host(anyio_backend):
    async with pack.hosted(mode="auto") as host:
        yield host


@pytest.fixture
def server(host):
    return MCPServer(host)


@pytest.fixture
async def client(server, era):
    async with Client(server.server, mode=era) as client:
        yield client


class Reports:
    def __init__(self):
        self.told = []

    async def __call__(self, done, total, message):
        self.told.append((done, total, message))


async def until(condition):
    with anyio.fail_after(5):
        while not condition():
            await asyncio.sleep(0)


# -- progress --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["count", "count_in_thread"])
async def test_progress_reaches_a_client_that_asked_for_it_before_the_result(client, name):
    reports = Reports()
    result = await client.call_tool(name, {"to": 3}, progress_callback=reports)

    assert reports.told == [(1, 3, "1 of 3"), (2, 3, "2 of 3"), (3, 3, "3 of 3")]
    assert result.content[0].text == "3"


async def test_progress_of_another_call_is_not_mine(client):
    mine, others = Reports(), Reports()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: client.call_tool("count", {"to": 2}, progress_callback=mine))
        group.start_soon(lambda: client.call_tool("count", {"to": 5}, progress_callback=others))

    assert [total for _, total, _ in mine.told] == [2] * 2
    assert [total for _, total, _ in others.told] == [5] * 5


async def test_progress_that_is_none_or_does_not_grow_is_left_out(client):
    reports = Reports()
    await client.call_tool("strange_progress", {}, progress_callback=reports)

    assert [(done, total) for done, total, _ in reports.told] == [(2, 4), (3, None)]
    assert len(reports.told[1][2]) < 2_100


async def test_nobody_listens_to_the_host_while_no_client_asked_for_progress(client, host):
    heard = []

    @tool(effect="read", required_access=PUBLIC)
    async def look() -> None:
        """Look whether anybody listens."""
        heard.append(host.extensions.events.is_heard)

    await host.extensions.load_pack(ExtensionPack("look", "1", [look]))
    await client.call_tool("look", {})
    await client.call_tool("look", {}, progress_callback=Reports())
    await client.call_tool("look", {})

    assert heard == [False, True, False]
    assert not host.extensions.events.is_heard


async def test_progress_of_a_mutating_call_is_told(client):
    reports = Reports()
    await client.call_tool("write", {"path": "x"}, progress_callback=reports)

    assert reports.told == [(1, 1, "writing")]


class SlowSession:
    """A client's side that does not read."""

    def __init__(self):
        self.asked = []
        self.reads = asyncio.Event()
        self._request_outbound = None

    async def report_progress(self, done, total, message):
        self.asked.append(done)
        await self.reads.wait()


class SlowContext:
    def __init__(self):
        self.session = SlowSession()
        self.meta = {"progress_token": 1}


async def test_a_client_that_does_not_read_holds_up_no_tool(server, host, monkeypatch):
    monkeypatch.setattr(calls, "END_GRACE", 0.01)
    ctx = SlowContext()
    finished = []

    async def call():
        finished.append(await host.tools.process_tool_call({"name": "count", "arguments": {"to": 500}, "id": "a"}))
        return finished[0]

    result = await server._calls.run(ctx, "a", call())

    assert result is finished[0]
    assert len(ctx.session.asked) == 1
    await until(lambda: len(asyncio.all_tasks()) <= 2)


async def test_of_what_a_slow_client_did_not_read_the_latest_is_kept(server, host):
    ctx = SlowContext()

    async def call():
        result = await host.tools.process_tool_call({"name": "count", "arguments": {"to": 500}, "id": "a"})
        ctx.session.reads.set()
        return result

    await server._calls.run(ctx, "a", call())

    assert ctx.session.asked[-100:] == list(range(401, 501))
    assert len(ctx.session.asked) < 500


# -- cancellation ----------------------------------------------------------------------------------------------------


async def cancelled_call(client, name, arguments=None, **options):
    """Call and go away as soon as the tool runs."""
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def leave():
                await until(lambda: "waiting" in pack.seen)
                scope.cancel()

            group.start_soon(leave)
            await client.call_tool(name, arguments or {}, **options)
    assert scope.cancelled_caught


async def test_a_cancelled_call_reaches_the_tool_which_can_clean_up(client):
    await cancelled_call(client, "wait")
    await until(lambda: "cleaned up" in pack.seen)


async def test_a_cancelled_call_is_on_record_as_cancelled(client, host):
    await cancelled_call(client, "wait")
    await until(lambda: "cleaned up" in pack.seen)
    await until(lambda: not len(host.tools.executor.services.in_flight))

    assert (await host.audit.records())[-1].data["error"] == "Cancelled"


async def test_a_cancelled_call_with_progress_leaves_no_listener(client, host):
    await cancelled_call(client, "wait", progress_callback=Reports())
    await until(lambda: not host.extensions.events.is_heard)


async def test_the_connection_is_good_after_a_cancelled_call(client):
    await cancelled_call(client, "wait")

    assert (await client.call_tool("add", {"a": 1})).structured_content == {"sum": 11}


async def test_a_client_that_goes_away_cancels_its_calls(server):
    async def call(client):
        with contextlib.suppress(MCPError):
            await client.call_tool("wait", {})

    async with anyio.create_task_group() as group, Client(server.server, mode="legacy") as client:
        group.start_soon(call, client)
        await until(lambda: "waiting" in pack.seen)

    assert pack.seen == ["waiting", "cleaned up"]


async def test_a_sync_tool_learns_that_nobody_waits(host, client):
    noticed = threading.Event()

    @tool(effect="read", required_access=PUBLIC)
    def patient(*, context) -> None:
        """Wait in a thread."""
        pack.seen.append("waiting")
        while not context.cancelled:
            pass
        noticed.set()

    await host.extensions.load_pack(ExtensionPack("patient", "1", [patient]))
    await cancelled_call(client, "patient")

    assert await asyncio.to_thread(noticed.wait, 5)


async def test_a_tool_that_ignores_its_cancellation_is_left_behind_and_ends_with_the_server(
    host, client, server, monkeypatch, caplog
):
    monkeypatch.setattr(calls, "END_GRACE", 0.01)

    @tool(effect="read", required_access=PUBLIC)
    async def stubborn() -> None:
        """Go on."""
        pack.seen.append("waiting")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pack.seen.append("ignored")
            await asyncio.Event().wait()

    await host.extensions.load_pack(ExtensionPack("stubborn", "1", [stubborn]))
    await cancelled_call(client, "stubborn")
    await until(lambda: server._calls._abandoned)
    await server.close()

    await until(lambda: not server._calls._abandoned)
    assert "goes on after its call" in caplog.text


@pytest.mark.parametrize("raised", [None, LookupError("too late")])
async def test_a_call_that_is_cancelled_before_it_runs_is_cancelled_all_the_same(server, raised):
    """It waits for a person, say; what it raises at the end is nobody's business any more."""
    waits = asyncio.Event()

    async def call():
        waits.set()
        try:
            await asyncio.Event().wait()
        finally:
            if raised is not None:
                raise raised

    task = asyncio.create_task(server._calls.run(SlowContext(), "b", call()))
    await waits.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_a_call_raises_is_met_by_whoever_waits(server):
    async def broken():
        raise LookupError("not here")

    with pytest.raises(LookupError, match="not here"):
        await server._calls.run(SlowContext(), "c", broken())


# -- afterwards ------------------------------------------------------------------------------------------------------


async def test_nothing_is_left_when_the_last_client_is_gone(host, server, era):
    before = asyncio.all_tasks()
    async with Client(server.server, mode=era) as client:
        await client.list_tools()
        await client.call_tool("count", {"to": 3}, progress_callback=Reports())
        await cancelled_call(client, "wait")
    await until(lambda: asyncio.all_tasks() == before)

    assert not host.extensions.events.is_heard
    assert not server._calls._senders


async def test_a_host_that_is_shut_down_has_no_tools_any_more(era):
    async with pack.hosted() as host:
        server = MCPServer(host)
    async with Client(server.server, mode=era) as client:
        assert "there is no tool called" in (await client.call_tool("add", {"a": 1})).content[0].text
