"""Tools: a call, many tools, the list for a provider. The goals are those of the issue that asked for the tools."""

import asyncio
import contextlib
import functools
import gc
import importlib.util
import json
import sys
import tempfile
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from agentos import PUBLIC, AgentOS, Descriptor, ExtensionPack, Principal, ToolCall, ToolContext, ToolResult, tool
from agentos.interop import openai
from benchmarks import peers
from benchmarks._measure import (
    FLAT,
    Effort,
    Figure,
    Goal,
    Measurement,
    Probe,
    Row,
    Work,
    answer_of_child,
    cpu_below,
    ratio_at_most,
    take_turns,
    timed,
)

TEXT = '{"a": 17, "b": 25}'
EXPECTED = 42
CALLS = 2_000
MANY = 1_000
SIZES = (10, 1_000, 100_000)
HOT = 10
RULE = "numbers:add"
TWO_INTS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}

CALL_GOAL = cpu_below(12e-6)
OF_THE_FLOOR = ratio_at_most(6)
"""The same goal for any machine: 12 us where the floor is 2."""
A_THIRD = ratio_at_most(0.333)
REGISTER_GOAL = cpu_below(0.045)
MEMORY_GOAL = Goal(3_072, "ours", "B")
LIST_GOAL = cpu_below(0.0001)
NO_SLOWER = ratio_at_most(1)

Call = Callable[[str], Any]

# -- the same functions for everybody ----------------------------------------------------------------------------

_SOURCE = '''
{define} add_{number}(a: int, b: int) -> int:
    """Add two numbers, way {number}.

    Args:
        a: The first number.
        b: The second number.
    """
    return a + b
'''


@contextlib.contextmanager
def _modules(count: int) -> Iterator[tuple[ModuleType, ModuleType]]:
    """Write and import two modules of *count* functions, async and sync: some libraries read a function's source."""
    with tempfile.TemporaryDirectory() as folder:
        made = [_module(Path(folder), define, count) for define in ("async def", "def")]
        try:
            yield made[0], made[1]
        finally:
            for module in made:
                del sys.modules[module.__name__]


def _module(folder: Path, define: str, count: int) -> ModuleType:
    name = f"agentos_benchmark_{define.replace(' ', '_')}"
    file = folder / f"{name}.py"
    file.write_text("".join(_SOURCE.format(define=define, number=number) for number in range(count)))
    spec: Any = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _fresh(module: ModuleType) -> list[Callable[..., Any]]:
    """Return the functions of *module*, made anew: what a library remembers of a function must not help it."""
    spec: Any = module.__spec__
    spec.loader.exec_module(module)
    return [value for name, value in vars(module).items() if name.startswith("add_")]


# -- ours --------------------------------------------------------------------------------------------------------


async def _host_with(*tools: Any, name: str = "ours") -> AgentOS:
    host = AgentOS()
    await host.extensions.load_pack(ExtensionPack(name, "1.0", tools))
    return host


def _as_tool(function: Callable[..., Any], **fields: Any) -> Any:
    return tool(**{"effect": "read", "required_access": PUBLIC, "name": "add", **fields})(function)


def _through(host: AgentOS, name: str = "add", principal: Principal | None = None, id: str | None = None) -> Call:
    """Return what calls through the orchestrator: a call is made of JSON text, and a ToolResult comes out."""
    process = host.tools.process_tool_call

    async def call(text: str) -> ToolResult:
        return await process(ToolCall(name, text, id), principal)

    return call


def _floor(function: Callable[..., Any], around: Callable[..., Awaitable[Any]] | None = None) -> Call:
    """Return the least that a validated call can be: parse, check, await; *around* is how the function is run."""
    import jsonschema_rs

    is_valid = jsonschema_rs.validator_for(TWO_INTS, validate_formats=True, offline=True).is_valid
    run = functools.partial(around, function) if around else function

    async def call(text: str) -> Any:
        arguments = json.loads(text)
        if not is_valid(arguments):
            raise ValueError(text)
        return await run(**arguments)

    return call


def _calling(runner: asyncio.Runner, call: Call, times: int, *, is_async: bool = True) -> Probe:
    async def each() -> None:
        for _ in range(times):
            await call(TEXT)

    def each_sync() -> None:
        for _ in range(times):
            call(TEXT)

    own: Any = _own(each if is_async else each_sync)
    return timed(lambda: (lambda: runner.run(own())) if is_async else own, times)


def _own(function: Any) -> Any:
    """Return *function* with code of its own: the interpreter adapts a call to who is called."""
    return FunctionType(function.__code__.replace(), function.__globals__, closure=function.__closure__)


def _check(runner: asyncio.Runner, call: Call, *, is_async: bool = True, read: Callable[[Any], Any]) -> None:
    """Refuse to measure something that does not work."""

    async def once() -> Any:
        result = call(TEXT)
        return await result if is_async else result

    if (value := read(runner.run(once()))) != EXPECTED:
        raise RuntimeError(f"expected {EXPECTED}, got {value!r}")


# -- the arguments of a call ------------------------------------------------------------------------------------


def arguments(effort: Effort) -> Iterator[Row]:
    """Measure what turns JSON text, or a mapping, into checked arguments, beside the same by the libraries alone."""
    import jsonschema_rs

    from agentos.schema.validation import Checker

    is_valid = jsonschema_rs.validator_for(TWO_INTS, validate_formats=True, offline=True).is_valid
    check = Checker(TWO_INTS, "two ints").arguments
    times, mapping = effort.size(CALLS * 10), json.loads(TEXT)

    def floor(text: str) -> Any:
        parsed = json.loads(text)
        if not is_valid(parsed):
            raise ValueError(text)
        return parsed

    def each(call: Callable[[Any], Any], given: Any) -> Probe:
        def work() -> None:
            for _ in range(times):
                call(given)

        return timed(lambda: work, times)

    took = take_turns(
        {"text": each(check, TEXT), "mapping": each(check, mapping), "floor": each(floor, TEXT)}, effort.rounds
    )
    beside = {"beside": "json.loads, jsonschema-rs", "theirs": took["floor"], "goal": ratio_at_most(1)}
    yield Row(what="the arguments of a call of two ints, from JSON text", ours=took["text"], **beside)
    yield Row(what="the same, from a mapping", ours=took["mapping"], **beside)


# -- one call ----------------------------------------------------------------------------------------------------


def call(effort: Effort) -> Iterator[Row]:
    times = effort.size(CALLS)
    with _modules(1) as (module, sync_module), asyncio.Runner() as runner:
        add, sync_add = _fresh(module)[0], _fresh(sync_module)[0]
        ours = runner.run(_host_with(_as_tool(add)))
        probes = {"ours": _ours(runner, _through(ours), times), "floor": _calling(runner, _floor(add), times)}
        ways = {way.title: way for way in peers.present(peers.WAYS)}
        for title, way in ways.items():
            try:
                made = runner.run(_made(way, add if way.is_async else sync_add))
            except ImportError as error:
                peers.skipped(f"{title}: {error}")
                continue
            _check(runner, made, is_async=way.is_async, read=way.read)
            probes[title] = _calling(runner, made, times, is_async=way.is_async)
        took = take_turns(probes, effort.rounds)
        runner.run(ours.shutdown())
    what = "a validated async call of two ints, JSON text in, ToolResult out"
    floor = {"beside": "floor: json, jsonschema-rs, await", "theirs": took["floor"]}
    yield Row(what=what, ours=took["ours"], goal=CALL_GOAL, **floor)
    yield Row(what="the same", ours=took["ours"], goal=OF_THE_FLOOR, **floor)
    for peer in sorted(list(took)[2:], key=lambda peer: took[peer].median):
        goal = A_THIRD if ways[peer].is_whole else None
        yield Row(what="the same", ours=took["ours"], beside=peer, theirs=took[peer], goal=goal)


async def _made(way: peers.Way, function: Callable[..., Any]) -> Call:
    return await way.make(function)


def _ours(runner: asyncio.Runner, call: Call, times: int) -> Probe:
    _check(runner, call, read=lambda result: result.output)
    return _calling(runner, call, times)


# -- other calls -------------------------------------------------------------------------------------------------


async def _add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def _add_sync(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def _add_below(a: int, b: int, *, context: ToolContext) -> ToolResult:
    """Add two numbers by the tool beneath."""
    return await context.below({"a": a, "b": b})


async def _within_20(function: Callable[..., Any], **arguments: Any) -> Any:
    async with asyncio.timeout(20):
        return await function(**arguments)


def calls(effort: Effort) -> Iterator[Row]:
    times = effort.size(CALLS)
    with asyncio.Runner() as runner:
        hosts = {name: runner.run(make) for name, make in _hosts().items()}
        probes = {name: _ours(runner, _through(host), times) for name, host in hosts.items()}
        plain = hosts["plain"]
        ada = Principal("ada", access={RULE})
        probes["id"] = _ours(runner, _through(plain, id="call_1"), times)
        probes["principal"] = _ours(runner, _through(hosts["ruled"], principal=ada), times)
        probes["batch"] = _batches(runner, _ten_calls(plain), times)
        probes["floor timeout"] = _calling(runner, _floor(_add, _within_20), times)
        probes["floor thread"] = _calling(runner, _floor(_add_sync, asyncio.to_thread), times)
        probes["floor batch"] = _batches(runner, _ten_floors(_floor(_add)), times)
        took = take_turns(probes, effort.rounds)
        for host in hosts.values():
            runner.run(host.shutdown())
    bare = {"beside": "the same without", "theirs": took["plain"]}
    yield Row(what="a call with an id, as every provider sends one", ours=took["id"], **bare)
    yield Row(what="a call of a tool with a rule, for a principal that holds it", ours=took["principal"], **bare)
    yield Row(what="a call with a listener attached", ours=took["heard"], **bare)
    yield Row(what="a call of a wrapper that calls context.below", ours=took["wrapped"], **bare)
    yield _beside_floor(took, "a call of a tool with timeout=20", "timeout", "floor in asyncio.timeout(20)")
    yield _beside_floor(took, "a call of a sync tool, in a thread", "thread", "floor in asyncio.to_thread")
    yield _beside_floor(took, "a call, ten of them side by side", "batch", "ten floors in asyncio.gather")


def _hosts() -> dict[str, Any]:
    return {
        "plain": _host_with(_as_tool(_add)),
        "ruled": _host_with(_as_tool(_add, required_access=RULE)),
        "timeout": _host_with(_as_tool(_add, timeout=20)),
        "thread": _host_with(_as_tool(_add_sync)),
        "heard": _heard(),
        "wrapped": _wrapped(),
    }


async def _heard() -> AgentOS:
    host = await _host_with(_as_tool(_add))
    host.extensions.on(lambda _: None)
    return host


async def _wrapped() -> AgentOS:
    host = await _host_with(_as_tool(_add), name="beneath")
    await host.extensions.load_pack(
        ExtensionPack("above", "1.0", [Descriptor("tool", "add", _as_tool(_add_below), wraps=True)])
    )
    return host


def _ten_calls(host: AgentOS) -> Callable[[], Awaitable[Any]]:
    process = host.tools.process_tool_calls

    async def ten() -> Any:
        return await process([ToolCall("add", TEXT) for _ in range(10)])

    return ten


def _ten_floors(call: Call) -> Callable[[], Awaitable[Any]]:
    async def ten() -> Any:
        return await asyncio.gather(*[call(TEXT) for _ in range(10)])

    return ten


def _batches(runner: asyncio.Runner, ten: Callable[[], Awaitable[Any]], times: int) -> Probe:
    async def each() -> None:
        for _ in range(times // 10):
            await ten()

    own = _own(each)
    return timed(lambda: lambda: runner.run(own()), times)


def _beside_floor(took: dict[str, Figure], what: str, name: str, floor: str) -> Row:
    return Row(what=what, ours=took[name], beside=floor, theirs=took[f"floor {name}"])


# -- many tools --------------------------------------------------------------------------------------------------


async def _registered(functions: Sequence[Callable[..., Any]]) -> AgentOS:
    return await _host_with(*[_as_tool(one, name=one.__name__) for one in functions])


async def _register_and_list(functions: Sequence[Callable[..., Any]]) -> tuple[AgentOS, Any]:
    host = await _registered(functions)
    return host, (host.tools.list_available_tools(), openai.tools(host))


async def _register_and_list_peer(
    shelf: peers.Shelf, functions: Sequence[Callable[..., Any]]
) -> tuple[Any, Sequence[Any]]:
    held = shelf.register(functions)
    return held, await shelf.listed(held)


def register(effort: Effort) -> Iterator[Row]:
    count = effort.size(MANY)
    with _modules(count) as (module, sync_module), asyncio.Runner() as runner:
        probes = {"ours": _registering(runner, module, _register_and_list)}
        for shelf in _usable(runner, module, sync_module):
            probes[shelf.title] = _registering(
                runner,
                module if shelf.is_async else sync_module,
                functools.partial(_register_and_list_peer, shelf),
            )
        took = take_turns(probes, effort.rounds)
    what = f"@tool on {count:,} functions, load them as one pack, list, list for OpenAI"
    yield Row(what=what, ours=took["ours"], goal=REGISTER_GOAL)
    for peer in sorted(list(took)[1:], key=lambda peer: took[peer].median):
        yield Row(what="the same", ours=took["ours"], beside=peer, theirs=took[peer], goal=NO_SLOWER)


def _registering(runner: asyncio.Runner, module: ModuleType, make: Callable[..., Any]) -> Probe:
    kept: list[Any] = []

    def prepare() -> Work:
        kept.clear()
        functions = _fresh(module)
        return lambda: kept.append(runner.run(make(functions)))

    return timed(prepare)


def _usable(runner: asyncio.Runner, module: ModuleType, sync_module: ModuleType) -> list[peers.Shelf]:
    """Return the libraries that are here and list what they were given."""
    usable = []
    for shelf in peers.present(peers.SHELVES):
        functions = _fresh(module if shelf.is_async else sync_module)[:3]
        try:
            _, listed = runner.run(_register_and_list_peer(shelf, functions))
        except ImportError as error:
            peers.skipped(f"{shelf.title}: {error}")
            continue
        if len(listed) != len(functions):
            raise RuntimeError(f"{shelf.title}: expected {len(functions)} tools, got {len(listed)}")
        usable.append(shelf)
    return usable


def memory(effort: Effort) -> Iterator[Row]:
    """Measure what a function tool takes, its function aside: by itself, and loaded and listed."""
    count = effort.size(MANY)
    script = "from benchmarks.tools import traced; print(traced({}, is_loaded={}))"
    probes: dict[str, Probe] = {
        name: functools.partial(answer_of_child, "-c", script.format(count, name == "loaded"))
        for name in ("loaded", "alone")
    }
    took = take_turns(probes, effort.few, "B")
    what = f"memory per function tool of two ints, {count:,} loaded and listed"
    yield Row(what=what, ours=took["loaded"], beside="the tools alone", theirs=took["alone"], goal=MEMORY_GOAL)


def traced(count: int, *, is_loaded: bool) -> float:
    """Return the bytes per tool that Python's allocator handed out and that are still held, in a process of its own."""
    with _modules(count) as (module, _), asyncio.Runner() as runner:
        _hold(runner, _fresh(module), is_loaded=is_loaded)  # what is made once stays out of the count
        functions = _fresh(module)
        gc.collect()
        tracemalloc.start()
        held = _hold(runner, functions, is_loaded=is_loaded)
        gc.collect()
        size = tracemalloc.get_traced_memory()[0]
        del held
    return size / count


def _hold(runner: asyncio.Runner, functions: Sequence[Callable[..., Any]], *, is_loaded: bool) -> Any:
    if not is_loaded:
        return [_as_tool(one, name=one.__name__) for one in functions]
    host = runner.run(_registered(functions))
    return host, host.tools.list_available_tools()


LISTINGS = 100


def list_again(effort: Effort) -> Iterator[Row]:
    count = effort.size(MANY)
    with _modules(count) as (module, sync_module), asyncio.Runner() as runner:
        host, _ = runner.run(_register_and_list(_fresh(module)))
        probes = {
            "ours": timed(lambda: functools.partial(_list_ours, host, LISTINGS), LISTINGS),
            "copy": timed(lambda: functools.partial(_copy, list(openai.tools(host)), LISTINGS), LISTINGS),
        }
        for shelf in _usable(runner, module, sync_module):
            held = shelf.register(_fresh(module if shelf.is_async else sync_module))
            probes[shelf.title_of_list] = timed(functools.partial(_listing, runner, shelf, held))
        took = take_turns(probes, effort.rounds)
        runner.run(host.shutdown())
    what = f"openai.tools(host) again, {count:,} tools"
    yield Row(what=what, ours=took["ours"], beside="list.copy", theirs=took["copy"], goal=LIST_GOAL)
    for peer in sorted(list(took)[2:], key=lambda peer: took[peer].median):
        yield Row(what="the same", ours=took["ours"], beside=peer, theirs=took[peer])


def _list_ours(host: AgentOS, times: int) -> None:
    for _ in range(times):
        openai.tools(host)


def _copy(items: list[Any], times: int) -> None:
    for _ in range(times):
        items.copy()


def _listing(runner: asyncio.Runner, shelf: peers.Shelf, held: Any) -> Work:
    return lambda: runner.run(_listed(shelf, held))


async def _listed(shelf: peers.Shelf, held: Any) -> Sequence[Any]:
    return await shelf.listed(held)


def growth(effort: Effort) -> Iterator[Row]:
    sizes = [*SIZES[:-1], effort.size(SIZES[-1])]
    times = effort.size(CALLS)
    with asyncio.Runner() as runner:
        hosts = {size: runner.run(_host_with(*_named(size))) for size in sizes}
        probes = {}
        for size, host in hosts.items():
            hot = [f"add_{number}" for number in range(0, size, size // HOT)]
            probes[str(size)] = _ours(runner, _in_turn(host, hot), times)
        probes["first"] = _first_calls(runner, effort.size(MANY))
        took = take_turns(probes, effort.rounds)
        for host in hosts.values():
            runner.run(host.shutdown())
    small, *larger = sizes
    for size in larger:
        yield Row(
            what=f"a call of one of {HOT} tools among {size:,}",
            ours=took[str(size)],
            beside=f"the same among {small:,}",
            theirs=took[str(small)],
            goal=FLAT,
        )
    yield Row(
        what="the first call of a tool: its validators are compiled",
        ours=took["first"],
        beside="any other call",
        theirs=took[str(small)],
    )


def _named(count: int) -> list[Any]:
    return [_as_tool(_add, name=f"add_{number}") for number in range(count)]


def _in_turn(host: AgentOS, names: Sequence[str]) -> Call:
    """Return what calls one tool after the other."""
    process = host.tools.process_tool_call
    given = [ToolCall(name, TEXT) for name in names]
    position = 0

    async def call(text: str) -> ToolResult:
        nonlocal position
        position = (position + 1) % len(given)
        return await process(given[position])

    return call


def _first_calls(runner: asyncio.Runner, count: int) -> Probe:
    def prepare() -> Work:
        host = runner.run(_host_with(*_named(count)))
        call = _in_turn(host, [f"add_{number}" for number in range(count)])

        async def each() -> None:
            for _ in range(count):
                await call(TEXT)

        return lambda: runner.run(each())

    return timed(prepare, count)


MEASUREMENTS = [
    Measurement("tool_arguments", "the arguments of a call, beside the libraries alone", arguments),
    Measurement("tool_call", "a validated async call of two ints, beside peers", call),
    Measurement("tool_calls", "other calls: id, rule, listener, wrapper, timeout, thread, side by side", calls),
    Measurement("tool_register", "registering and listing 1,000 function tools, beside peers", register),
    Measurement("tool_memory", "bytes per function tool", memory),
    Measurement("tool_list", "listing 1,000 tools for a provider again, beside peers", list_again),
    Measurement("tool_growth", "calls among 10, 1,000 and 100,000 tools", growth),
]
