"""Many changes at once: stacks stay whole, readers see no half state, nothing is deactivated under a call."""

import asyncio
import contextvars
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit import descriptor, pack, states
from thorough import examples

from agentos import EntryState, ExtensionManager
from agentos.base.locks import ChangeLocks


class Slow:
    """Hooks that take a few turns of the loop and check that no two of one entry overlap."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.on = {}
        self.busy = set()

    def hooks(self, who):
        async def change(to):
            assert who not in self.busy
            assert self.on.get(who, False) is not to
            self.busy.add(who)
            for _ in range(self.random.randrange(4)):
                await asyncio.sleep(0)
            self.busy.discard(who)
            self.on[who] = to

        return {"on_activate": lambda context: change(True), "on_deactivate": lambda context: change(False)}


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**32))
def test_hundreds_of_interleaved_changes_end_in_the_state_that_the_facts_ask_for(seed):
    asyncio.run(storm(seed))


async def storm(seed):
    dice = random.Random(seed)
    slow = Slow(seed)
    manager = ExtensionManager()
    registry = manager.registry("tool")
    for name in "abcd":
        await manager.load_pack(
            pack(name, *(descriptor(id, f"{name}:{id}", **slow.hooks(f"{name}:{id}")) for id in "xyz"))
        )

    async def one_change():
        name, id = dice.choice("abcd"), dice.choice("xyz")
        match dice.randrange(4):
            case 0:
                await manager.disable(name)
            case 1:
                await manager.enable(name)
            case 2:
                await manager.set_override("tools", f"{name}:{id}", {"priority": dice.randrange(5)})
            case _:
                await manager.set_override("tools", f"{name}:{id}", {"enabled": dice.random() < 0.5})

    async def reader(stop):
        while not stop.is_set():
            for id in "xyz":
                active = registry.get_active(id)
                stack = registry.stack(id)
                assert [entry for entry in stack if entry.state is EntryState.ACTIVE] == ([active] if active else [])
                if active is not None:
                    assert slow.on.get(active.payload), f"{active.payload} is shown before its hook has finished"
            await asyncio.sleep(0)

    stop = asyncio.Event()
    reading = asyncio.create_task(reader(stop))
    await asyncio.wait_for(asyncio.gather(*(one_change() for _ in range(200))), 60)
    stop.set()
    await reading

    in_force = {entry.payload for id in "xyz" for entry in registry.stack(id) if entry.state.in_force}
    assert {who for who, is_on in slow.on.items() if is_on} == in_force
    for id in "xyz":
        strongest = [entry for entry in registry.stack(id) if entry.state is not EntryState.DISABLED]
        assert registry.get_active(id) == (strongest[0] if strongest else None)
    assert await manager.shutdown() == []
    assert not any(slow.on.values())


async def test_changes_on_different_stacks_run_side_by_side(manager):
    both = asyncio.Barrier(2)

    async def meet(context):
        await both.wait()

    await asyncio.wait_for(
        asyncio.gather(
            manager.load_pack(pack("a", descriptor("x", on_activate=meet))),
            manager.load_pack(pack("b", descriptor("y", on_activate=meet))),
        ),
        5,
    )

    assert states(manager, "x") == {"a": "active"}


async def test_two_changes_on_one_stack_never_interleave(manager):
    inside = []

    async def alone(context):
        assert not inside
        inside.append(1)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        inside.pop()

    await asyncio.gather(
        *(manager.load_pack(pack(f"p{n}", descriptor("x", on_activate=alone, on_deactivate=alone))) for n in range(30))
    )

    assert len(manager.registry("tool").stack("x")) == 30


async def test_a_use_under_way_ends_before_the_old_entry_is_deactivated(manager):
    log = []
    registry = manager.registry("tool")
    await manager.load_pack(pack("old", descriptor("x", "old", log=log)))
    using, go_on = asyncio.Event(), asyncio.Event()

    async def call():
        with registry.using("x") as entry:
            using.set()
            await go_on.wait()
            log.append(("used", entry.payload))

    task = asyncio.create_task(call())
    await using.wait()
    loading = asyncio.create_task(manager.load_pack(pack("new", descriptor("x", "new", log=log))))
    while registry.get_active("x").payload != "new":
        await asyncio.sleep(0)
    assert ("-", "old") not in log
    go_on.set()
    await asyncio.gather(task, loading)

    assert log == [("+", "old"), ("+", "new"), ("used", "old"), ("-", "old")]


async def test_draining_is_bounded(caplog):
    manager = ExtensionManager(drain_timeout=0.01)
    log = []
    await manager.load_pack(pack("old", descriptor("x", "old", log=log)))
    elsewhere = contextvars.copy_context()
    with manager.registry("tool").using("x"):
        await asyncio.create_task(manager.unload("old"), context=elsewhere)

    assert log == [("+", "old"), ("-", "old")]
    assert "did not end within 0.01 s" in caplog.text
    await manager.shutdown()


async def test_a_use_can_unload_its_own_pack_without_waiting_for_itself(manager):
    await manager.load_pack(pack("p", descriptor("x")))
    with manager.registry("tool").using("x"):
        await asyncio.wait_for(manager.unload("p"), 4)

    assert manager.packs() == []


async def test_using_an_unknown_id_gives_nothing(manager):
    with manager.registry("tool").using("nope") as entry:
        assert entry is None


async def test_a_change_cancelled_while_it_waits_for_its_turn_changes_nothing(manager):
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def waits(context):
        reached.set()
        await go_on.wait()

    first = asyncio.create_task(manager.load_pack(pack("a", descriptor("x", "a", on_activate=waits))))
    await reached.wait()
    second = asyncio.create_task(manager.load_pack(pack("b", descriptor("x", "b"))))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    go_on.set()
    await first
    third = await asyncio.wait_for(manager.load_pack(pack("c", descriptor("x", "c"))), 5)

    assert third.status == "loaded"
    assert states(manager, "x") == {"c": "active", "a": "shadowed"}


@given(
    plans=st.lists(
        st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3), min_size=1, max_size=3), max_size=8
    )
)
def test_locks_never_deadlock_and_never_overlap(plans):
    """Each plan is a chain of nested changes; each claims its keys while those further up hold theirs."""

    async def main():
        locks = ChangeLocks()
        holders = {}

        async def nest(levels):
            if not levels:
                await asyncio.sleep(0)
                return
            with locks.change() as change:
                refused = await locks.acquire(change, levels[0])
                mine = list(set(levels[0]) - refused)
                for key in mine:
                    assert key not in holders
                    holders[key] = change
                await asyncio.sleep(0)
                await nest(levels[1:])
                for key in mine:
                    del holders[key]

        await asyncio.wait_for(asyncio.gather(*(nest(plan) for plan in plans)), 2)
        await asyncio.wait_for(locks.idle(), 1)

    asyncio.run(main())
