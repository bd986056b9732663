"""The core: loading, reading, changing, memory, import. The goals are those of the issue that asked for the core."""

import asyncio
import functools
import json
import random
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

from agentos import Descriptor, ExtensionManager, ExtensionManifest, Override, PackEntry
from benchmarks import _packs
from benchmarks._children import STATM
from benchmarks._measure import (
    FLAT,
    Effort,
    Figure,
    Measurement,
    Probe,
    Row,
    Work,
    answer_of_child,
    cpu_below,
    cpu_of_child,
    ratio_at_most,
    take_turns,
    timed,
)
from benchmarks._packs import KIND, payload

SECONDS_PER_DESCRIPTOR = 0.25 / 10_000
"""The goal for loading: 10,000 descriptors in a quarter of a second."""

PACKS, PER_PACK = 1_000, 10
STACKS = (10, 1_000, 100_000)
OFF = Override(enabled=False)


def _sizes(effort: Effort) -> list[int]:
    return [*STACKS[:-1], effort.size(STACKS[-1])]


# -- loading -----------------------------------------------------------------------------------------------------


def load(effort: Effort) -> Iterator[Row]:
    packs = effort.size(PACKS)
    count = packs * PER_PACK
    with asyncio.Runner() as runner:
        plain = functools.partial(_packs.factories, packs, PER_PACK)
        took = take_turns(
            {
                "factories": _loading(runner, plain),
                "named": _loading(runner, plain, named=True),
                "hooks": _loading(runner, functools.partial(plain, on_activate=_packs.hook)),
                "ready": _loading(runner, lambda: [make() for make in plain()]),
                "pluggy": timed(lambda: functools.partial(_register, _plugins(packs, PER_PACK))),
            },
            effort.rounds,
        )
    what = f"load {packs:,} packs with {PER_PACK} descriptors"
    goal = cpu_below(count * SECONDS_PER_DESCRIPTOR)
    peer = {"beside": f"pluggy: register {packs:,} plugins", "theirs": took["pluggy"]}
    yield Row(what=f"{what}, made by factories", ours=took["factories"], goal=goal, **peer)
    yield Row(what=f"{what}, the same with identifiers", ours=took["named"], goal=goal, **peer)
    yield Row(what=f"{what}, made before", ours=took["ready"], goal=goal, **peer)
    bare = {"beside": "the same without hooks", "theirs": took["factories"]}
    yield Row(what=f"{what}, async on_activate", ours=took["hooks"], **bare)


def _loading(runner: asyncio.Runner, makers: Callable[[], Iterable[Any]], *, named: bool = False) -> Probe:
    def prepare() -> Work:
        manifest = _packs.manifest_of(makers(), named=named)
        return lambda: runner.run(_packs.load_all(manifest))

    return timed(prepare)


def _plugins(plugins: int, hooks: int, *, shared: bool = False) -> list[object]:
    """Return pluggy plugins that implement hooks of their own, or all the same hooks."""
    import pluggy

    mark = pluggy.HookimplMarker(KIND)

    def implementation(self: object) -> None:
        """Do nothing."""

    def plugin(number: int) -> object:
        names = [f"hook{0 if shared else number}_{index}" for index in range(hooks)]
        return type(f"Plugin{number}", (), {name: mark(_copy(implementation)) for name in names})()

    return [plugin(number) for number in range(plugins)]


def _copy(function: Any) -> Any:
    return type(function)(function.__code__, function.__globals__)


def _register(plugins: Iterable[object]) -> Any:
    import pluggy

    manager = pluggy.PluginManager(KIND)
    for plugin in plugins:
        manager.register(plugin)
    return manager


def deep(effort: Effort) -> Iterator[Row]:
    with asyncio.Runner() as runner:
        for packs, goal in ((10, None), (100, None), (effort.size(PACKS), ratio_at_most(1.5))):
            took = take_turns(
                {
                    "ours": _loading(runner, functools.partial(_same_ids, packs)),
                    "pluggy": timed(
                        lambda packs=packs: functools.partial(_register, _plugins(packs, PER_PACK, shared=True))
                    ),
                },
                effort.rounds,
            )
            yield Row(
                what=f"load {packs:,} packs that offer the same {PER_PACK} ids",
                ours=took["ours"],
                beside=f"pluggy: {packs:,} plugins with the same {PER_PACK} hooks",
                theirs=took["pluggy"],
                goal=goal,
            )


def big(effort: Effort) -> Iterator[Row]:
    """Measure whether one pack takes time by its size, with a tenth of room for the processor's caches."""
    few = 1_000
    with asyncio.Runner() as runner:
        for factor in (10, effort.size(100)):
            took = take_turns(
                {
                    size: _loading(runner, functools.partial(_packs.factories, 1, int(size)))
                    for size in (f"{few}", f"{few * factor}")
                },
                effort.few,
            )
            yield Row(
                what=f"load one pack with {few * factor:,} descriptors",
                ours=took[f"{few * factor}"],
                beside=f"one with {few:,}",
                theirs=took[f"{few}"],
                goal=ratio_at_most(factor * 1.1),
            )


def _same_ids(packs: int) -> list[Callable[[], Any]]:
    ids = _packs.ids_of(0, PER_PACK)
    return [_packs.factory_of(f"pack{number}", ids) for number in range(packs)]


def manifest(effort: Effort) -> Iterator[Row]:
    packs = effort.size(PACKS)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "manifest.json")
        entries = [{"package": f"installed{number}", "options": {"level": number}} for number in range(packs)]
        file.write_text(json.dumps({"packs": entries}))
        took = take_turns(
            {
                "ours": timed(lambda: functools.partial(ExtensionManifest.from_file, file)),
                "json": timed(lambda: lambda: json.loads(file.read_text())),
            },
            effort.rounds,
        )
    what = f"read, check and structure a manifest of {packs:,} packs"
    yield Row(what=what, ours=took["ours"], beside="json.loads alone", theirs=took["json"])


def entry_points(effort: Effort) -> Iterator[Row]:
    packs = effort.size(PACKS)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "site")
        _packs.install(folder, packs, PER_PACK)
        uncached = {"XDG_CACHE_HOME": str(_cache(Path(place, "off"), off=True))}
        cached = {"XDG_CACHE_HOME": str(_cache(Path(place, "on")))}

        def child(who: str, env: dict[str, str]) -> Probe:
            task = ("-m", "benchmarks._children", "installed", who, str(folder), str(packs))
            return functools.partial(answer_of_child, *task, env=env)

        peers = {
            "stevedore: NamedExtensionManager": child("named", uncached),
            "stevedore: EnabledExtensionManager": child("enabled", uncached),
            "stevedore: Named..., its disk cache warm": child("named", cached),
        }
        ours = {"found": child("agentos", uncached), "made": child("factories", uncached)}
        took = take_turns({**ours, **peers}, effort.rounds)
    what = f"load {packs:,} installed packs by entry point"
    for peer in peers:
        yield Row(what=what, ours=took["found"], beside=peer, theirs=took[peer])
    what = f"load {packs:,} packs with {PER_PACK} descriptors, made by factories"
    peer = "stevedore: NamedExtensionManager"
    yield Row(what=what, ours=took["made"], beside=peer, theirs=took[peer], goal=ratio_at_most(1))


def _cache(home: Path, *, off: bool = False) -> Path:
    """Return a home for stevedore's cache of entry points, which is on disk and outlives a process."""
    folder = home / "python-entrypoints"
    folder.mkdir(parents=True)
    if off:
        (folder / ".disable").touch()
    return home


# -- reading -----------------------------------------------------------------------------------------------------


class Plain:
    """The floor of a registry: a dict behind a method."""

    __slots__ = ("_items",)

    def __init__(self, items: dict[str, Any]) -> None:
        self._items = items

    def get(self, id: str) -> Any:
        """Look *id* up, and nothing else."""
        return self._items.get(id)


LOOKUPS = 300_000
HOT = 10


def lookup(effort: Effort) -> Iterator[Row]:
    with asyncio.Runner() as runner:
        managers = {size: runner.run(_manager_with(size)) for size in _sizes(effort)}
    probes: dict[str, Probe] = {}
    for size, manager in managers.items():
        registry = manager.registry(KIND)
        floor = Plain({entry.id: entry for entry in registry.list_active()})
        for spread, ids in (("all", _shuffled(registry.ids())), ("hot", _hot(registry.ids()))):
            probes[f"ours {spread} {size}"] = _looking_up(registry.get_active, ids)
            probes[f"floor {spread} {size}"] = _looking_up(floor.get, ids)
    took = take_turns(probes, effort.rounds * 2)
    for size in managers:
        yield Row(
            what=f"get_active, {size:,} ids in random order",
            ours=took[f"ours all {size}"],
            beside="a dict behind a method",
            theirs=took[f"floor all {size}"],
            goal=ratio_at_most(3),
        )
    large, small = max(managers), min(managers)
    yield _growth(f"get_active, {HOT} ids among {large:,}", took[f"ours hot {large}"], small, took[f"ours hot {small}"])
    floors = took[f"floor hot {large}"], took[f"floor hot {small}"]
    yield Row(
        what=f"(the dict itself, {HOT} ids among {large:,})",
        ours=floors[0],
        beside=f"the same among {small}",
        theirs=floors[1],
    )


def _growth(what: str, ours: Figure, small: int, theirs: Figure) -> Row:
    return Row(what=what, ours=ours, beside=f"the same among {small:,}", theirs=theirs, goal=FLAT)


def _shuffled(ids: Sequence[str]) -> list[str]:
    order = random.Random(1)
    chosen = order.sample(ids, len(ids))
    return (chosen * (LOOKUPS // len(chosen) + 1))[:LOOKUPS]


def _hot(ids: Sequence[str]) -> list[str]:
    return list(ids[:: max(1, len(ids) // HOT)][:HOT]) * (LOOKUPS // HOT)


def _looking_up(get: Callable[[str], Any], ids: Sequence[str]) -> Probe:
    def work() -> None:
        for id in ids:
            get(id)

    # A code object of its own: the interpreter adapts a call to who is called, and one of the two would never fit.
    own = FunctionType(work.__code__.replace(), work.__globals__, closure=work.__closure__)
    return timed(lambda: own, len(ids))


def call(effort: Effort) -> Iterator[Row]:
    packs = effort.size(PACKS)
    with asyncio.Runner() as runner:
        manager = runner.run(_packs.load_all(_packs.manifest_of(_packs.factories(packs, PER_PACK))))
    registry = manager.registry(KIND)
    hooks = _register(_plugins(packs, PER_PACK)).hook
    ids, names = registry.ids(), [f"hook{number}_{index}" for number in range(packs) for index in range(PER_PACK)]

    def ours() -> None:
        for id in ids:
            registry.get_active(id).payload()

    def theirs() -> None:
        for name in names:
            getattr(hooks, name)()

    took = take_turns(
        {"ours": timed(lambda: ours, len(ids)), "pluggy": timed(lambda: theirs, len(names))}, effort.rounds
    )
    what = f"get_active(id).payload(), {len(ids):,} ids"
    yield Row(what=what, ours=took["ours"], beside="pluggy: call a hook with one impl", theirs=took["pluggy"])


# -- changing ----------------------------------------------------------------------------------------------------


async def _manager_with(stacks: int) -> ExtensionManager:
    """Return a manager with that many stacks, from at most a hundred packs: making it is not what is measured."""
    packs = min(100, stacks // 10)
    return await _packs.load_all(_packs.manifest_of(_packs.factories(packs, stacks // packs)))


Change = Callable[[ExtensionManager, str], Coroutine[Any, Any, None]]
REPEATS = 20


async def _toggle(manager: ExtensionManager, id: str) -> None:
    await manager.set_override(KIND, id, OFF)
    await manager.set_override(KIND, id, None)


async def _shadow(manager: ExtensionManager, id: str) -> None:
    await manager.remove(await manager.register(Descriptor(KIND, id, payload)))


async def _come_and_go(manager: ExtensionManager, id: str) -> None:
    await manager.remove(await manager.register(Descriptor(KIND, f"new-{id}", payload)))


async def _adopt_and_unload(manager: ExtensionManager, id: str) -> None:
    outcome = await manager.load_pack(_packs.make_pack(f"one-more-{id}", [f"new-{id}"]))
    await manager.unload(outcome.key)


async def _make_and_unload(manager: ExtensionManager, id: str) -> None:
    factory = _packs.factory_of(f"one-more-{id}", [f"new-{id}"])
    outcome = await manager.load(PackEntry(factory=factory))
    await manager.unload(outcome.key)


def change(effort: Effort) -> Iterator[Row]:
    changes: dict[str, Change] = {
        "set_override off and on again": _toggle,
        "register over an entry and remove": _shadow,
        "register a new id and remove": _come_and_go,
    }
    with asyncio.Runner() as runner:
        managers = {size: runner.run(_manager_with(size)) for size in _sizes(effort)}
        yield from _compare_changes(runner, managers, changes, "stacks", effort)


def pack_change(effort: Effort) -> Iterator[Row]:
    with asyncio.Runner() as runner:
        managers = {
            packs: runner.run(_packs.load_all(_packs.manifest_of(_packs.factories(packs, 1))))
            for packs in (10, 1_000, effort.size(10_000))
        }
        changes = {"load_pack and unload": _adopt_and_unload, "load a factory and unload": _make_and_unload}
        yield from _compare_changes(runner, managers, changes, "packs", effort)


def _compare_changes(
    runner: asyncio.Runner,
    managers: dict[int, ExtensionManager],
    changes: dict[str, Change],
    noun: str,
    effort: Effort,
) -> Iterator[Row]:
    probes = {
        f"{what} {size}": _changing(runner, manager, make)
        for what, make in changes.items()
        for size, manager in managers.items()
    }
    took = take_turns(probes, effort.rounds)
    small, *larger = sorted(managers)
    for what in changes:
        for size in larger:
            yield _growth(f"{what}, among {size:,} {noun}", took[f"{what} {size}"], small, took[f"{what} {small}"])


def _changing(runner: asyncio.Runner, manager: ExtensionManager, make: Change) -> Probe:
    ids = _hot(manager.registry(KIND).ids())[:HOT] * REPEATS

    async def change_each() -> None:
        for id in ids:
            await make(manager, id)

    return timed(lambda: lambda: runner.run(change_each()), len(ids))


# -- memory and import -------------------------------------------------------------------------------------------


def memory(effort: Effort) -> Iterator[Row]:
    few, many = effort.size(10_000), effort.size(100_000)
    ways = [("traced", "memory", few), ("traced", "memory", many)]
    if STATM.exists():
        ways.append(("resident", "resident memory", many))
    for how, title, size in ways:
        probes: dict[str, Probe] = {
            what: functools.partial(answer_of_child, "-m", "benchmarks._children", how, what, str(size))
            for what in ("manager", "descriptors")
        }
        took = take_turns(probes, effort.few, "B")
        yield Row(
            what=f"{title} per descriptor, {size:,} loaded",
            ours=took["manager"],
            beside="the descriptors alone, in a dict",
            theirs=took["descriptors"],
        )


HOST_NAMES = "AgentOS, Descriptor, ExtensionManager, ExtensionManifest, ExtensionPack, PackEntry"


def import_time(effort: Effort) -> Iterator[Row]:
    """Measure the bare import, which may put off nearly everything, and the import of what a host can't do without."""
    took = take_turns(
        {
            "bare": _importing("import agentos"),
            "names": _importing(f"from agentos import {HOST_NAMES}"),
            "attrs": _importing("import attrs, cattrs"),
            "whole": functools.partial(cpu_of_child, "-c", f"from agentos import {HOST_NAMES}"),
            "empty": functools.partial(cpu_of_child, "-c", "pass"),
        },
        effort.rounds * 2,
    )
    floor = {"beside": "import attrs, cattrs", "theirs": took["attrs"], "goal": ratio_at_most(3)}
    yield Row(what="import agentos", ours=took["bare"], **floor)
    yield Row(what="from agentos import the names a host uses", ours=took["names"], **floor)
    yield Row(what="the same, whole process", ours=took["whole"], beside='python -c "pass"', theirs=took["empty"])


def _importing(statement: str) -> Probe:
    code = f"import time; began = time.process_time(); {statement}; print(time.process_time() - began)"
    return functools.partial(answer_of_child, "-c", code)


MEASUREMENTS = [
    Measurement("load", "loading packs, beside pluggy", load),
    Measurement("deep", "loading packs onto the same few stacks, beside pluggy", deep),
    Measurement("big", "loading one pack of many descriptors", big),
    Measurement("manifest", "reading a manifest file", manifest),
    Measurement("entry_points", "loading installed packs, beside stevedore", entry_points),
    Measurement("lookup", "get_active, beside a dict", lookup),
    Measurement("call", "calling what is active, beside pluggy", call),
    Measurement("change", "one change among many stacks", change),
    Measurement("pack_change", "one pack more and less among many packs", pack_change),
    Measurement("memory", "bytes per descriptor", memory),
    Measurement("import", "import agentos, beside attrs and cattrs", import_time),
]
