"""Stacks: one order, reasons that stay true for whoever holds an entry, and a push that touches what it changes."""

import threading

import pytest
from kit import descriptor, pack

from agentos import EntryState
from agentos.stacks.rank import rank

DEEP = 50


@pytest.fixture
async def deep(manager):
    for number in range(DEEP):
        await manager.load_pack(pack(f"p{number}", descriptor("a")))
    return manager


def reasons(manager):
    return {entry.source.pack: entry.reason for entry in manager.registry("tool").stack("a")}


async def test_entries_stand_by_rank(deep):
    await deep.load_pack(pack("low", descriptor("a", priority=-1)))
    await deep.load_pack(pack("high", descriptor("a", priority=1)))
    entries = deep.registry("tool").stack("a")

    assert entries == sorted(entries, key=rank, reverse=True)
    assert [entries[0].pack, entries[-1].pack] == ["high", "low"]


async def test_every_shadowed_entry_names_who_shadows_it_now(deep):
    assert set(reasons(deep).values()) == {
        f"strongest of {DEEP} eligible entries: registered later at the same priority 0",
        f"shadowed by p{DEEP - 1} 1.0: registered later at the same priority 0",
    }


async def test_an_entry_that_a_reader_holds_keeps_its_reason(deep):
    held = deep.registry("tool").stack("a")
    before = [entry.reason for entry in held]
    await deep.load_pack(pack("high", descriptor("a", priority=7)))

    assert [entry.reason for entry in held] == before
    assert reasons(deep)["p0"] == "shadowed by high 1.0: priority 7 over 0"


async def test_the_active_entry_counts_what_was_pushed_beneath_it(deep):
    await deep.load_pack(pack("high", descriptor("a", priority=7)))
    await deep.load_pack(pack("low", descriptor("a")))

    assert reasons(deep)["high"] == f"strongest of {DEEP + 2} eligible entries: priority 7 over 0"


async def test_what_an_owner_sees_of_its_own_names_who_shadows_it_now(manager):
    await manager.load_pack(pack("mine", descriptor("a")))
    port = manager.port("mine")
    for name in ("other", "another"):
        await manager.load_pack(pack(name, descriptor("a")))

    assert [entry.reason for entry in port.entries("tool")] == [
        "shadowed by another 1.0: registered later at the same priority 0"
    ]


async def test_a_push_asks_nothing_of_those_that_stand_there(manager):
    asked = []

    def gate(number):
        return lambda: asked.append(number)

    for number in range(DEEP):
        await manager.load_pack(pack(f"p{number}", descriptor("a", gate=gate(number))))

    assert asked == list(range(DEEP))


async def test_what_comes_back_into_force_is_judged_again(manager):
    shut = []
    await manager.load_pack(pack("low", descriptor("a", gate=lambda: shut[0] if shut else None)))
    await manager.load_pack(pack("high", descriptor("a")))
    shut.append("changed meanwhile")
    await manager.unload("high")

    assert reasons(manager) == {"low": "changed meanwhile"}


async def test_what_stays_in_force_is_judged_again_when_its_stack_changes(manager):
    shut = []
    await manager.load_pack(pack("high", descriptor("a", gate=lambda: shut[0] if shut else None)))
    shut.append("changed meanwhile")
    await manager.load_pack(pack("low", descriptor("a", priority=-1)))

    assert reasons(manager) == {"high": "changed meanwhile", "low": "the only eligible entry of 2"}


async def test_a_push_makes_new_entries_only_of_those_whose_state_changes(deep):
    shown = deep.registry("tool")._stacks["a"]._shown
    before = {id(entry) for entry in shown}
    await deep.load_pack(pack("top", descriptor("a")))
    made = [entry.pack for entry in deep.registry("tool")._stacks["a"]._shown if id(entry) not in before]

    assert made == [f"p{DEEP - 1}", "top"]


async def test_a_reader_in_another_thread_sees_every_stack_whole(manager):
    await manager.load_pack(pack("first", descriptor("a")))
    registry, stop, torn = manager.registry("tool"), threading.Event(), []

    def read():
        while not stop.is_set():
            entries = registry.stack("a")
            active = [entry for entry in entries if entry.state is EntryState.ACTIVE]
            if len(active) != 1 or entries != sorted(entries, key=rank, reverse=True):
                torn.append(entries)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(DEEP):
            await manager.load_pack(pack(f"p{number}", descriptor("a", priority=number % 7)))
        for number in range(DEEP):
            await manager.unload(f"p{number}")
    finally:
        stop.set()
        reader.join()

    assert torn == []


async def test_an_entry_can_be_hashed_and_not_changed(deep):
    entry = deep.registry("tool").get_active("a")

    assert len({entry, entry}) == 1
    with pytest.raises(AttributeError):
        entry.priority = 5


async def test_the_reason_is_part_of_how_an_entry_is_shown(manager):
    await manager.load_pack(pack("only", descriptor("a")))

    assert "reason='the only entry'" in repr(manager.registry("tool").get_active("a"))


async def test_a_pack_that_fails_leaves_a_stack_on_which_nobody_is_in_force_as_it_was(manager):
    def fail(context):
        raise ValueError("no")

    await manager.load_pack(pack("off", descriptor("a", enabled_by_default=False)))
    before = manager.explain("tool", "a")
    await manager.load_pack(pack("bad", descriptor("a", on_activate=fail)))

    assert manager.explain("tool", "a") == before
