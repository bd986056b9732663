"""MCP: a call in memory, over stdio and over HTTP, beside the SDK's bare server and FastMCP with the same tools.

The SDK's bare server looks a name up and awaits the function: no arguments are checked, nobody is asked for access,
nothing is recorded. All three are called by the SDK's client. What is counted is the CPU time of both ends, the process
of the server included; elapsed time stands beside it.
"""

import asyncio
import contextlib
import functools
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
from typing_extensions import TypedDict

from agentos import PUBLIC, AgentOS, ExtensionPack, Tool, tool
from benchmarks import peers
from benchmarks._measure import FLAT, ROOT, Effort, Figure, Measurement, Row, ratio_at_most, take_turns

SIZES = (1, 1_000, 10_000)
CALLS = {"memory": 200, "stdio": 100, "http": 60}
ARGUMENTS = {"a": 17, "b": 25}
EXPECTED = {"sum": 42}

ENOUGH = 0.3
"""How many seconds a turn lasts at most: of slow calls fewer are made."""

CLOSE = ratio_at_most(1.15)
A_THIRD = ratio_at_most(0.333)

Server = Any


class Sum(TypedDict):
    """What the tool returns."""

    sum: int


async def add(a: int, b: int) -> Sum:
    """Add two numbers."""
    return {"sum": a + b}


def _names(count: int) -> list[str]:
    return [f"add_{number}" for number in range(count)]


def _tool(name: str) -> Tool:
    return tool(effect="read", required_access=PUBLIC, name=name)(add)


# -- the three servers -------------------------------------------------------------------------------------------


async def _host(count: int, **options: Any) -> AgentOS:
    host = AgentOS(budget=None, **options)
    await host.extensions.load_pack(ExtensionPack("ours", "1.0", [_tool(name) for name in _names(count)]))
    await host.initialize()
    return host


async def _ours(count: int) -> Server:
    from agentos.mcp import MCPServer

    return MCPServer(await _host(count), search_above=None).server


async def _stored(count: int, file: Path) -> tuple[Server, Callable[[], Any]]:
    """Return a server whose host keeps its records in a file, and what writes those that wait."""
    from agentos.mcp import MCPServer

    host = await _host(count, store=file)
    return MCPServer(host, search_above=None).server, host.audit.head


async def _bare(count: int) -> Server:
    """Return the least that the SDK needs, with the look-up of schemas that keeps a call from listing all tools."""
    import mcp_types as types
    from mcp.server.lowlevel import Server as LowLevel

    model = _tool("model")
    shape = {"description": model.description, "input_schema": model.input_schema, "output_schema": model.output_schema}
    tools = {name: types.Tool(name=name, **shape) for name in _names(count)}

    async def list_tools(ctx: Any, params: Any) -> Any:
        return types.ListToolsResult(tools=list(tools.values()))

    async def call_tool(ctx: Any, params: Any) -> Any:
        if params.name not in tools:
            raise ValueError(params.name)
        result = await add(**params.arguments)
        text = types.TextContent(text=json.dumps(result))
        return types.CallToolResult(content=[text], structured_content=dict(result))

    def input_schema(name: str) -> Any:
        found = tools.get(name)
        return None if found is None else found.input_schema

    return LowLevel("bare", on_list_tools=list_tools, on_call_tool=call_tool, get_tool_input_schema=input_schema)


async def _fast(count: int) -> Any:
    from fastmcp import FastMCP
    from fastmcp.tools import Tool as FastTool

    server: Any = FastMCP("fast")
    for name in _names(count):
        server.add_tool(FastTool.from_function(add, name=name))
    return server


MAKERS = {"ours": _ours, "sdk": _bare, "fastmcp": _fast}

# -- servers in processes of their own ---------------------------------------------------------------------------


async def _serve(who: str, transport: str, count: int) -> None:
    """Serve until the client is gone, or the process is ended."""
    await (_serve_stdio if transport == "stdio" else _serve_http)(who, count)


async def _serve_stdio(who: str, count: int) -> None:
    if who == "ours":
        from agentos.mcp import serve_stdio

        await serve_stdio(await _host(count), search_above=None)
    elif who == "sdk":
        from mcp.server.stdio import stdio_server

        server = await _bare(count)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
    else:
        await (await _fast(count)).run_stdio_async(show_banner=False)


async def _serve_http(who: str, count: int) -> None:
    if who == "ours":
        from agentos.mcp.http.serving import serve_http

        host = await _host(count)
        await serve_http(host, port=0, verifier=None, search_above=None, ready=functools.partial(print, flush=True))
        return
    import uvicorn

    made = await MAKERS[who](count)
    app = made.streamable_http_app() if who == "sdk" else made.http_app()
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False, ws="none"))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    print(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp", flush=True)
    await serving


def _command(who: str, transport: str, count: int) -> list[str]:
    return ["-m", "benchmarks.mcp", who, transport, str(count)]


# -- clients -----------------------------------------------------------------------------------------------------


@attrs.frozen
class Case:
    """What is called, how, and how many tools are around it."""

    who: str
    transport: str
    count: int
    mode: str = "auto"
    own_client: bool = False


@attrs.frozen
class Link:
    """An open connection, the process at its other end, and what has to be done before a turn is over."""

    client: Any
    pid: int | None = None
    finish: Callable[[], Any] | None = None


@contextlib.asynccontextmanager
async def _linked(case: Case) -> AsyncIterator[Link]:
    from mcp import Client

    if case.transport == "memory":
        async with _in_memory(case) as link:
            yield link
    elif case.transport == "stdio":
        async with _over_stdio(case) as link:
            yield link
    else:
        async with _process(case) as (address, pid), Client(address, mode=case.mode) as client:
            yield Link(client, pid)


@contextlib.asynccontextmanager
async def _in_memory(case: Case) -> AsyncIterator[Link]:
    from mcp import Client

    if case.who == "stored":
        with tempfile.TemporaryDirectory() as folder:
            server, finish = await _stored(case.count, Path(folder, "agentos.db"))
            async with Client(server, mode=case.mode) as client:
                yield Link(client, finish=finish)
        return
    server = await MAKERS[case.who](case.count)
    if case.own_client:
        from fastmcp import Client as FastClient

        async with FastClient(server) as client:
            yield Link(client)
    else:
        async with Client(getattr(server, "_mcp_server", server), mode=case.mode) as client:
            yield Link(client)


@contextlib.asynccontextmanager
async def _over_stdio(case: Case) -> AsyncIterator[Link]:
    from mcp import Client, StdioServerParameters

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "pid")
        arguments = [*_command(case.who, "stdio", case.count), str(file)]
        parameters = StdioServerParameters(command=sys.executable, args=arguments, cwd=str(ROOT), env=dict(os.environ))
        async with Client(parameters, mode=case.mode, read_timeout_seconds=300) as client:
            yield Link(client, int(file.read_text()))  # noqa: ASYNC240 - a few bytes, before anything is measured


@contextlib.asynccontextmanager
async def _process(case: Case) -> AsyncIterator[tuple[str, int]]:
    """Run a server over HTTP; yield its address and its process."""
    command = [sys.executable, *_command(case.who, "http", case.count)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        address = (await process.stdout.readline()).decode().strip() if process.stdout is not None else ""
        yield address, process.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


# -- measuring ---------------------------------------------------------------------------------------------------


@attrs.frozen
class Spent:
    """Seconds for each call: CPU time of both ends, of the server's process alone, and elapsed."""

    both: float
    server: float
    elapsed: float


class Caller:
    """A client that lives in a task of its own and makes calls when asked: a connection belongs to one task."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._orders: asyncio.Queue[tuple[int, asyncio.Future[Spent]] | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._is_ready: asyncio.Future[None] | None = None

    async def open(self) -> None:
        """Connect, list every tool as a host does, and make sure that a call does what it should."""
        self._is_ready = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(self._is_ready))
        await asyncio.wait([self._task, self._is_ready], return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            await self._task

    async def make(self, calls: int) -> Spent:
        """Make *calls*, one after another, or as many as there is time for."""
        done: asyncio.Future[Spent] = asyncio.get_running_loop().create_future()
        self._orders.put_nowait((calls, done))
        return await done

    async def close(self) -> None:
        """Disconnect."""
        self._orders.put_nowait(None)
        if self._task is not None:
            await self._task

    async def _live(self, ready: "asyncio.Future[None]") -> None:
        async with _linked(self.case) as link:
            await _list_all(link.client, self.case)
            last = _names(self.case.count)[-1]
            _check(await link.client.call_tool(last, ARGUMENTS))
            slow = (await _spend(attrs.evolve(link, finish=None), last, 3)).elapsed
            ready.set_result(None)
            while (order := await self._orders.get()) is not None:
                calls, done = order
                done.set_result(await _spend(link, last, max(1, min(calls, int(ENOUGH / slow)))))


async def _list_all(client: Any, case: Case) -> None:
    """Page through the list: the SDK's client lists again before each call of a tool that it has not seen."""
    if case.own_client:
        await client.list_tools()
        return
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        if (cursor := page.next_cursor) is None:
            return


def _check(result: Any) -> None:
    """Refuse to measure something that does not work."""
    if result.structured_content != EXPECTED:
        raise RuntimeError(f"expected {EXPECTED}, got {result!r}")


async def _spend(link: Link, name: str, calls: int) -> Spent:
    call = link.client.call_tool
    gc.collect()
    theirs, busy, began = _cpu_of(link.pid), time.process_time_ns(), time.perf_counter_ns()
    for _ in range(calls):
        await call(name, ARGUMENTS)
    if link.finish is not None:
        await link.finish()
    elapsed, own, server = time.perf_counter_ns() - began, time.process_time_ns() - busy, _cpu_of(link.pid) - theirs
    return Spent(*((part / 1e9 / calls) for part in (own + server, server, elapsed)))


def _cpu_of(pid: int | None) -> int:
    """Return the CPU time of a process in ns, by the clock that Linux has for each."""
    return 0 if pid is None else time.clock_gettime_ns((~pid << 3) | 2)


@contextlib.contextmanager
def _callers(cases: Sequence[Case]) -> Iterator[tuple[asyncio.Runner, list[Caller]]]:
    """Open every connection, and close all of them in the end."""
    with asyncio.Runner() as runner:
        callers: list[Caller] = []
        try:
            for case in cases:
                callers.append(Caller(case))
                runner.run(callers[-1].open())
            gc.collect()
            gc.freeze()  # once: a million objects of tools would be looked through at every turn
            yield runner, callers
        finally:
            gc.unfreeze()
            for caller in reversed(callers):
                runner.run(caller.close())


Took = dict[Case, dict[str, Figure]]
"""What each case took, by what was measured: the fields of Spent."""


def _measure(cases: Sequence[Case], calls: int, rounds: int) -> Took:
    """Let every case take turns; return what each took, by what was measured."""
    kept: dict[Case, list[Spent]] = {case: [] for case in cases}
    with _callers(cases) as (runner, callers):

        def probe(caller: Caller) -> float:
            # Records are written every fifth of a second: with fewer calls a turn would pay for more than its share.
            many = calls * 5 if caller.case.who == "stored" else calls
            kept[caller.case].append(runner.run(caller.make(many)))
            return 0.0

        take_turns({str(caller.case): functools.partial(probe, caller) for caller in callers}, rounds)
    return {case: _figures(spent[1:]) for case, spent in kept.items()}


def _figures(spent: Sequence[Spent]) -> dict[str, Figure]:
    return {field.name: Figure([getattr(one, field.name) for one in spent]) for field in attrs.fields(Spent)}


# -- rows --------------------------------------------------------------------------------------------------------

VIA = {"memory": "in memory", "stdio": "over stdio", "http": "over HTTP"}
COUNTED = {"both": "CPU", "server": "CPU of the server alone", "elapsed": "elapsed"}


def _sizes(effort: Effort) -> list[int]:
    return sorted({effort.size(size) for size in SIZES})


def _cases(transport: str, sizes: Sequence[int]) -> list[Case]:
    whos = ["ours", "sdk", *(["fastmcp"] if peers.is_installed("fastmcp") else [])]
    cases = [Case(who, transport, count) for count in sizes for who in whos]
    if transport == "memory":
        cases += [attrs.evolve(case, own_client=True) for case in cases if case.who == "fastmcp"]
        cases.append(Case("stored", transport, 1))
    return cases + [Case(who, transport, 1, mode="legacy") for who in ("ours", "sdk")]


def _measured(transport: str, effort: Effort) -> Iterator[Row]:
    missing = [name for name in ("mcp", "fastmcp") if not peers.is_installed(name)]
    if missing:
        peers.skipped(f"not installed: {', '.join(missing)}")
    if "mcp" not in missing:
        sizes = _sizes(effort)
        took = _measure(_cases(transport, sizes), effort.size(CALLS[transport]), effort.rounds * 3)
        yield from _rows(transport, took, sizes)


def _rows(transport: str, took: Took, sizes: Sequence[int]) -> Iterator[Row]:
    via = VIA[transport]
    for count in sizes:
        what = f"a call {via}, {count:,} tool{'s' if count > 1 else ''}"
        yield from _beside_sdk(what, took, Case("ours", transport, count))
        yield from _beside_fastmcp(what, took, Case("ours", transport, count))
    yield from _beside_sdk(f"a call {via}, handshake era", took, Case("ours", transport, 1, mode="legacy"))
    if (stored := took.get(Case("stored", transport, 1))) is not None:
        theirs = took[Case("sdk", transport, 1)]["both"]
        what = f"a call {via}, 1 tool, its record on disk, CPU"
        yield Row(what=what, ours=stored["both"], beside=_titled("sdk"), theirs=theirs, goal=CLOSE)
    first = took[Case("ours", transport, sizes[0])]["both"]
    for count in sizes[1:]:
        ours = took[Case("ours", transport, count)]["both"]
        what = f"a call {via}, the last of {count:,} tools, CPU"
        yield Row(what=what, ours=ours, beside=f"the same of {sizes[0]}", theirs=first, goal=FLAT)


def _beside_sdk(what: str, took: Took, case: Case) -> Iterator[Row]:
    ours, theirs = took[case], took[attrs.evolve(case, who="sdk")]
    for field, name in COUNTED.items():
        if field == "both" or case.transport != "memory":
            goal = CLOSE if field == "both" else None
            row = {"ours": ours[field], "beside": _titled("sdk"), "theirs": theirs[field]}
            yield Row(what=f"{what}, {name}", goal=goal, **row)


def _beside_fastmcp(what: str, took: Took, case: Case) -> Iterator[Row]:
    for own in (False, True):
        theirs = took.get(attrs.evolve(case, who="fastmcp", own_client=own))
        if theirs is not None:
            beside = f"{_titled('fastmcp')}{', by its own client' if own else ''}"
            goal = A_THIRD if case.transport == "memory" else None
            row = {"ours": took[case]["both"], "beside": beside, "theirs": theirs["both"], "goal": goal}
            yield Row(what=f"{what}, {COUNTED['both']}", **row)


def _titled(who: str) -> str:
    return f"{peers.titled('mcp')}: bare low-level server" if who == "sdk" else peers.titled("fastmcp")


MEASUREMENTS = [
    Measurement(
        "mcp_memory",
        "a call in memory, beside the SDK's bare server and FastMCP",
        functools.partial(_measured, "memory"),
    ),
    Measurement(
        "mcp_stdio", "the same over stdio, with a process for each server", functools.partial(_measured, "stdio")
    ),
    Measurement("mcp_http", "the same over HTTP on loopback", functools.partial(_measured, "http")),
]


def main() -> None:
    """Be one of the servers: who, transport, number of tools, and where to tell the process."""
    who, transport, count, *files = sys.argv[1:]
    for file in files:
        Path(file).write_text(str(os.getpid()))
    asyncio.run(_serve(who, transport, int(count)))


if __name__ == "__main__":
    main()
