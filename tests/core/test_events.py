"""What happened, told to observers: each type with its fields, in order, before the call returns, without a vote."""

import asyncio
import random
from datetime import UTC, datetime, timedelta

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit import Boom, Recorder, descriptor, pack, states

from agentos import Entry, Event, ExtensionManager, HookError, Override, PackEntry, PackLoadError, Source

pytestmark = pytest.mark.anyio

ID = "demo.key"


@pytest.fixture
def recorder(manager):
    recorder = Recorder()
    manager.on(recorder)
    return recorder


def raises(context):
    raise Boom("why")


async def turns(count=20):
    """Let everybody else go on as far as they can."""
    for _ in range(count):
        await asyncio.sleep(0)


# -- each type with its fields -------------------------------------------------------------------------------------


async def test_pack_loaded(manager, recorder):
    await manager.load(PackEntry(factory=lambda: pack("p", version="1.2"), identifier="mine"))
    (event,) = recorder.of("pack:loaded")

    assert (event.pack, event.version, event.key) == ("p", "1.2", "mine")
    assert event.source == Source("p", "1.2", "mine", "factory")


async def test_pack_failed(manager, recorder):
    outcome = await manager.load(PackEntry(factory=lambda: pack("p", version="1.2", on_activate=raises)))
    (event,) = recorder.of("pack:failed")

    assert (event.pack, event.version, event.key) == ("p", "1.2", "p")
    assert isinstance(event.error, PackLoadError)
    assert (event.error, event.reason) == (outcome.error, outcome.reason)
    assert "Boom: why" in event.reason


async def test_pack_failed_says_whose_doing_it_was(manager, recorder):
    await manager.load(PackEntry(factory=lambda: pack("p", version="1.2", on_activate=raises), identifier="mine"))
    (event,) = recorder.of("pack:failed")

    assert event.source == Source("p", "1.2", "mine", "factory")


async def test_pack_failed_of_a_pack_that_could_not_be_made(manager, recorder):
    def create():
        raise Boom("why")

    await manager.load(PackEntry(factory=create, identifier="mine"))
    (event,) = recorder.of("pack:failed")

    assert (event.pack, event.version, event.key) == (None, None, "mine")
    assert "Boom: why" in event.reason


async def test_pack_failed_of_a_reload(manager, recorder):
    broken = []

    def create():
        if broken:
            raise Boom("why")
        return pack("p")

    await manager.load(PackEntry(factory=create))
    broken.append(True)
    await manager.reload("p")
    (event,) = recorder.of("pack:failed")

    assert (event.pack, event.key) == ("p", "p")


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (PackEntry(factory=lambda: pack("p"), identifier="mine", enabled=False), "disabled"),
        (PackEntry(factory=lambda: pack("p"), identifier="mine"), "already_loaded"),
    ],
)
async def test_pack_skipped(manager, recorder, entry, reason):
    await manager.load(PackEntry(factory=lambda: pack("first"), identifier="mine"))
    await manager.load(entry)
    (event,) = recorder.of("pack:skipped")

    assert (event.key, event.reason) == ("mine", reason)


async def test_pack_unloaded(manager, recorder):
    await manager.load(PackEntry(factory=lambda: pack("p", version="1.2"), identifier="mine"))
    await manager.unload("mine")
    (event,) = recorder.of("pack:unloaded")

    assert (event.pack, event.version, event.key, event.error) == ("p", "1.2", "mine", None)
    assert event.source == Source("p", "1.2", "mine", "factory")


async def test_pack_unloaded_tells_what_its_hook_raised(manager, recorder):
    await manager.load_pack(pack("p", on_deactivate=raises))
    await manager.unload("p")
    (event,) = recorder.of("pack:unloaded")

    assert isinstance(event.error, HookError)


async def test_descriptor_activated(manager, recorder):
    await manager.load_pack(pack("p", descriptor("x", "payload"), version="1.2"))
    (event,) = recorder.of("descriptor:activated")

    assert (event.kind, event.id, event.pack, event.version, event.previous) == ("tool", "x", "p", "1.2", None)
    assert event.entry == manager.registry("tool").get_active("x")
    assert event.source == event.entry.source


async def test_descriptor_activated_has_the_entry_as_it_is_from_now_on(manager, recorder):
    await manager.load_pack(pack("p", descriptor("x")))
    (event,) = recorder.of("descriptor:activated")

    assert event.entry.state == "active"
    assert event.entry.activated_at is not None


async def test_descriptor_activated_names_who_was_active_before(manager, recorder):
    await manager.load_pack(pack("old", descriptor("x")))
    await manager.load_pack(pack("new", descriptor("x")))
    event = recorder.of("descriptor:activated")[1]

    assert (event.pack, event.previous.source.pack) == ("new", "old")


async def test_descriptor_activated_is_told_of_a_wrapped_entry_too(manager, recorder):
    await manager.load_pack(pack("ground", descriptor("x", priority=-5)))
    await manager.load_pack(pack("top", descriptor("x", wraps=True, priority=5)))
    await manager.load_pack(pack("base", descriptor("x")))
    event = recorder.of("descriptor:activated")[2]

    assert (event.pack, event.entry.state, event.previous.source.pack) == ("base", "wrapped", "top")


async def test_descriptor_activated_means_exactly_that(manager, recorder):
    await manager.load_pack(pack("strong", descriptor("x", priority=5)))
    recorder.events.clear()
    await manager.load_pack(pack("shadowed", descriptor("x")))
    await manager.load_pack(pack("disabled", descriptor("x", priority=9, enabled_by_default=False)))
    await manager.load_pack(pack("gated", descriptor("x", priority=9, required_secrets=[ID])))
    await manager.load_pack(pack("failing", descriptor("x", priority=9, on_activate=raises)))

    assert recorder.of("descriptor:activated") == []


async def test_descriptor_activated_is_told_after_the_hook_has_finished(manager):
    log = []
    manager.on(lambda event: log.append(event.type))

    async def hook(context):
        await turns(3)
        log.append("hook")

    await manager.load_pack(pack("p", descriptor("x", on_activate=hook)))

    assert log == ["hook", "descriptor:activated", "pack:loaded"]


async def test_descriptor_deactivated(manager, recorder):
    await manager.load_pack(pack("p", descriptor("x"), version="1.2"))
    entry = manager.registry("tool").get_active("x")
    await manager.unload("p")
    (event,) = recorder.of("descriptor:deactivated")

    assert (event.kind, event.id, event.pack, event.version, event.error) == ("tool", "x", "p", "1.2", None)
    assert event.entry == event.previous == entry
    assert event.source == entry.source


async def test_descriptor_deactivated_tells_what_the_hook_raised(manager, recorder):
    await manager.load_pack(pack("p", descriptor("x", on_deactivate=raises)))
    await manager.unload("p")
    (event,) = recorder.of("descriptor:deactivated")

    assert isinstance(event.error, HookError)


async def test_descriptor_deactivated_of_a_wrapped_entry_names_the_one_that_was_active(manager, recorder):
    await manager.load_pack(pack("ground", descriptor("x", priority=-5)))
    await manager.load_pack(pack("base", descriptor("x")))
    await manager.load_pack(pack("top", descriptor("x", wraps=True)))
    await manager.unload("base")
    event = recorder.of("descriptor:deactivated")[-1]

    assert (event.pack, event.previous.source.pack) == ("base", "top")


async def test_descriptor_gated(manager, recorder):
    await manager.load_pack(pack("p", descriptor("x", required_secrets=[ID])))
    (event,) = recorder.of("descriptor:gated")

    assert (event.kind, event.id, event.pack, event.entry.state) == ("tool", "x", "p", "gated")
    assert ID in event.reason


async def test_descriptor_gated_is_told_again_when_the_secret_goes(manager, recorder):
    await manager.load_pack(pack("p", descriptor("x", required_secrets=[ID])))
    await manager.set_secret(ID, "a real value")
    recorder.events.clear()
    await manager.set_secret(ID, None)

    assert {"descriptor:gated", "descriptor:deactivated"} <= set(recorder.types)


async def test_descriptor_failed(manager, recorder):
    await manager.load_pack(pack("p", descriptor("x", required_secrets=[ID], on_activate=raises)))
    await manager.set_secret(ID, "a real value")
    (event,) = recorder.of("descriptor:failed")

    assert (event.kind, event.id, event.pack, event.entry.state) == ("tool", "x", "p", "failed")
    assert isinstance(event.error, HookError)
    assert "Boom: why" in event.reason


async def test_override_changed(manager, recorder):
    await manager.load_pack(pack("p", descriptor("x")))
    await manager.set_override("tools", "p:x", {"priority": 3})
    (event,) = recorder.of("override:changed")

    assert (event.kind, event.id, event.override) == ("tool", "p:x", Override(priority=3))


async def test_override_changed_tells_that_one_was_taken_away(manager, recorder):
    await manager.set_override("tools", "x", {"priority": 3})
    await manager.set_override("tools", "x", None)

    assert [event.override for event in recorder.of("override:changed")] == [Override(priority=3), None]


async def test_secret_changed(manager, recorder):
    await manager.set_secret(ID, "a real value")

    assert [event.id for event in recorder.of("secret:changed")] == [ID]


async def one_of_each():
    """Return events of every type."""
    recorder = Recorder()
    manager = ExtensionManager()
    manager.on(recorder)
    await manager.load_pack(pack("p", descriptor("x", required_secrets=[ID], on_activate=raises)))
    await manager.load_pack(pack("q", descriptor("y")))
    await manager.load_pack(pack("bad", on_activate=raises))
    await manager.load(PackEntry(factory=lambda: pack("off"), enabled=False))
    await manager.set_secret(ID, "a real value")
    await manager.set_override("tools", "y", {"enabled": False})
    await manager.shutdown()
    return {event.type: event for event in recorder.events}


TYPES = [
    *("pack:loaded", "pack:failed", "pack:skipped", "pack:unloaded"),
    *("descriptor:activated", "descriptor:deactivated", "descriptor:gated", "descriptor:failed"),
    *("override:changed", "secret:changed"),
]


@pytest.mark.parametrize("type", TYPES)
async def test_an_event_has_a_type_an_aware_time_stamp_and_a_source(type):
    event = (await one_of_each())[type]

    assert isinstance(event, Event)
    assert event.timestamp.utcoffset() == timedelta(0)
    assert datetime.now(UTC) >= event.timestamp
    assert event.source is None or isinstance(event.source, Source)


@pytest.mark.parametrize("type", TYPES)
async def test_an_event_is_frozen(type):
    event = (await one_of_each())[type]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        event.timestamp = None


@pytest.mark.parametrize("type", [type for type in TYPES if type.startswith("descriptor")])
async def test_an_event_of_a_descriptor_has_its_entry(type):
    event = (await one_of_each())[type]

    assert isinstance(event.entry, Entry)
    assert (event.kind, event.id, event.pack) == (event.entry.kind, event.entry.id, event.entry.source.pack)


# -- order ---------------------------------------------------------------------------------------------------------


async def test_a_pack_is_told_after_its_descriptors(manager, recorder):
    await manager.load_pack(pack("p", descriptor("a"), descriptor("b")))

    assert [(event.type, getattr(event, "id", None)) for event in recorder.events] == [
        ("descriptor:activated", "a"),
        ("descriptor:activated", "b"),
        ("pack:loaded", None),
    ]


async def test_the_new_entry_is_told_before_the_old_one(manager, recorder):
    await manager.load_pack(pack("old", descriptor("x")))
    recorder.events.clear()
    await manager.load_pack(pack("new", descriptor("x")))

    assert [(event.type, event.pack) for event in recorder.events] == [
        ("descriptor:activated", "new"),
        ("descriptor:deactivated", "old"),
        ("pack:loaded", "new"),
    ]


async def test_unloading_is_told_after_what_it_takes_with_it(manager, recorder):
    await manager.load_pack(pack("old", descriptor("x")))
    await manager.load_pack(pack("new", descriptor("x")))
    recorder.events.clear()
    await manager.unload("new")

    assert [(event.type, event.pack) for event in recorder.events] == [
        ("descriptor:activated", "old"),
        ("descriptor:deactivated", "new"),
        ("pack:unloaded", "new"),
    ]


async def test_shutdown_tells_the_end_of_everything_the_newest_first(recorder):
    manager = ExtensionManager()
    manager.on(recorder)
    await manager.load_pack(pack("a", descriptor("a")))
    await manager.load_pack(pack("b", descriptor("b")))
    recorder.events.clear()
    await manager.shutdown()

    assert [(event.type, event.pack) for event in recorder.events] == [
        ("descriptor:deactivated", "b"),
        ("pack:unloaded", "b"),
        ("descriptor:deactivated", "a"),
        ("pack:unloaded", "a"),
    ]


async def test_time_stamps_never_go_back(manager, recorder):
    for name in "abc":
        await manager.load_pack(pack(name, descriptor("x")))
    await manager.unload("c")
    stamps = [event.timestamp for event in recorder.events]

    assert stamps == sorted(stamps)


async def test_listeners_are_told_in_the_order_in_which_they_came(manager):
    log = []

    async def first(event):
        await turns(3)
        log.append(("first", event.type))

    manager.on(first)
    manager.on(lambda event: log.append(("second", event.type)))
    await manager.load_pack(pack("p"))

    assert log == [("first", "pack:loaded"), ("second", "pack:loaded")]


# -- listeners -----------------------------------------------------------------------------------------------------


async def test_an_async_listener_is_awaited_before_the_call_returns(manager):
    told = []

    async def listener(event):
        await turns()
        told.append(event.type)

    manager.on(listener)
    await manager.load_pack(pack("p", descriptor("x")))

    assert told == ["descriptor:activated", "pack:loaded"]


@pytest.mark.parametrize(
    "change",
    [
        lambda manager: manager.load_pack(pack("q", descriptor("y"))),
        lambda manager: manager.load(PackEntry(factory=lambda: pack("q"))),
        lambda manager: manager.reload("p"),
        lambda manager: manager.disable("p"),
        lambda manager: manager.unload("p"),
        lambda manager: manager.set_override("tools", "x", {"enabled": False}),
        lambda manager: manager.set_secret(ID, "a real value"),
        lambda manager: manager.registry("tool").register(descriptor("y")),
        lambda manager: manager.registry("tool").unregister("x"),
        lambda manager: manager.registry("tool").clear(),
        lambda manager: manager.load_manifest(),
        lambda manager: manager.shutdown(),
    ],
    ids=[
        *("load_pack", "load", "reload", "disable", "unload", "set_override", "set_secret"),
        *("register", "unregister", "clear", "load_manifest", "shutdown"),
    ],
)
async def test_every_change_is_told_before_its_call_returns(change):
    told = []

    async def listener(event):
        await turns()
        told.append(event)

    manager = ExtensionManager({"packs": [{"factory": lambda: pack("of the manifest")}]})
    await manager.load(PackEntry(factory=lambda: pack("p", descriptor("x"))))
    manager.on(listener)
    await change(manager)
    count = len(told)
    assert count
    await turns(100)

    assert len(told) == count
    await manager.shutdown()


async def test_a_listener_is_returned_so_that_on_decorates(manager):
    @manager.on
    def listener(event):
        pass

    assert callable(listener)


async def test_a_listener_that_is_no_function_is_refused(manager):
    with pytest.raises(TypeError, match="callable"):
        manager.on("listener")


async def test_a_listener_hears_nothing_from_before_it_came(manager):
    await manager.load_pack(pack("early"))
    recorder = Recorder()
    manager.on(recorder)
    await manager.load_pack(pack("late"))

    assert [event.pack for event in recorder.events] == ["late"]


async def test_a_listener_that_is_off_hears_nothing_more(manager, recorder):
    await manager.load_pack(pack("early"))
    manager.off(recorder)
    await manager.load_pack(pack("late"))

    assert [event.pack for event in recorder.events] == ["early"]


async def test_turning_off_a_listener_that_was_never_on_is_harmless(manager):
    manager.off(lambda event: None)

    assert (await manager.load_pack(pack("p"))).status == "loaded"


async def test_a_listener_that_is_on_twice_is_told_once(manager, recorder):
    manager.on(recorder)
    await manager.load_pack(pack("p"))

    assert recorder.types == ["pack:loaded"]


class Watcher:
    def __init__(self):
        self.types = []

    def watch(self, event):
        self.types.append(event.type)

    async def watch_later(self, event):
        await turns(3)
        self.types.append(event.type)


@pytest.mark.parametrize("method", ["watch", "watch_later"])
async def test_a_bound_method_is_kept_and_can_be_turned_off(manager, method):
    watcher = Watcher()
    manager.on(getattr(watcher, method))
    await manager.load_pack(pack("a"))
    manager.off(getattr(watcher, method))
    await manager.load_pack(pack("b"))

    assert watcher.types == ["pack:loaded"]


async def test_methods_of_two_objects_are_two_listeners(manager):
    one, two = Watcher(), Watcher()
    manager.on(one.watch)
    manager.on(two.watch)
    manager.off(one.watch)
    await manager.load_pack(pack("p"))

    assert (one.types, two.types) == ([], ["pack:loaded"])


async def test_a_listener_that_nobody_else_holds_is_kept(manager):
    told = []
    manager.on(lambda event: told.append(event.type))
    await manager.load_pack(pack("p"))

    assert told == ["pack:loaded"]


async def test_a_listener_may_turn_itself_off(manager):
    told = []

    def once(event):
        told.append(event.type)
        manager.off(once)

    manager.on(once)
    await manager.load_pack(pack("p", descriptor("x")))

    assert told == ["descriptor:activated"]


# -- no vote -------------------------------------------------------------------------------------------------------

ERRORS = [Boom("no"), SystemExit("no"), asyncio.CancelledError("no"), TimeoutError("no")]


def objecting(error, is_async):
    def listener(event):
        raise error

    async def async_listener(event):
        await asyncio.sleep(0)
        raise error

    return async_listener if is_async else listener


async def story(manager):
    """Do a bit of everything and return what came of it."""
    outcomes = [
        await manager.load_pack(pack("a", descriptor("x", required_secrets=[ID]))),
        await manager.load_pack(pack("b", descriptor("x", priority=1))),
        await manager.load_pack(pack("bad", descriptor("x", on_activate=raises))),
        await manager.load(PackEntry(factory=lambda: pack("c", descriptor("y")))),
    ]
    await manager.set_secret(ID, "a real value")
    await manager.set_override("tools", "b:x", {"priority": -1})
    await manager.reload("c")
    await manager.disable("b")
    seen = [(outcome.status, outcome.key) for outcome in outcomes], states(manager, "x"), states(manager, "y")
    return seen, await manager.unload("a"), await manager.shutdown()


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_listener_that_raises_on_every_event_changes_nothing(error, is_async):
    async def tell(*listeners):
        manager = ExtensionManager()
        for listener in listeners:
            manager.on(listener)
        return await story(manager)

    assert asyncio.run(tell(objecting(error, is_async))) == asyncio.run(tell())


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_listener_that_raises_does_not_undo_the_load_of_a_manifest(error):
    async def load():
        manager = ExtensionManager({"packs": [{"factory": lambda: pack("a")}, {"factory": lambda: pack("b")}]})
        manager.on(objecting(error, is_async=True))
        report = await manager.load_manifest()
        return [outcome.status for outcome in report.outcomes], [record.name for record in manager.packs()]

    assert asyncio.run(load()) == (["loaded", "loaded"], ["a", "b"])


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_listener_that_raises_does_not_keep_the_others_from_hearing(error):
    recorder = Recorder()

    async def load():
        manager = ExtensionManager()
        manager.on(objecting(error, is_async=False))
        manager.on(recorder)
        await manager.load_pack(pack("p", descriptor("x")))

    asyncio.run(load())

    assert recorder.types == ["descriptor:activated", "pack:loaded"]


async def test_a_listener_that_raises_is_logged(manager, caplog):
    manager.on(objecting(Boom("no"), is_async=False))
    await manager.load_pack(pack("p"))

    assert "a listener raised on pack:loaded" in caplog.text
    assert "Boom: no" in caplog.text


# -- listeners that change things ----------------------------------------------------------------------------------


async def test_a_listener_may_load_a_pack(manager, recorder):
    async def listener(event):
        if event.type == "pack:loaded" and event.pack == "first":
            await manager.load_pack(pack("second", descriptor("x")))

    manager.on(listener)
    await asyncio.wait_for(manager.load_pack(pack("first")), 5)

    assert [record.name for record in manager.packs()] == ["first", "second"]
    assert [event.pack for event in recorder.of("pack:loaded")] == ["first", "second"]


async def test_what_a_listener_changes_is_told_before_the_first_call_returns(manager):
    told = []

    async def listener(event):
        if event.type == "pack:loaded" and event.pack == "first":
            await manager.load_pack(pack("second"))

    async def slow(event):
        await turns()
        told.append(event.pack)

    manager.on(listener)
    manager.on(slow)
    await asyncio.wait_for(manager.load_pack(pack("first")), 5)

    assert sorted(told) == ["first", "second"]


async def test_a_listener_may_unload_the_pack_it_is_told_of(manager):
    async def listener(event):
        if event.type == "pack:loaded":
            await manager.unload(event.key)

    manager.on(listener)
    await asyncio.wait_for(manager.load_pack(pack("p", descriptor("x"))), 5)

    assert manager.packs() == []


async def test_a_listener_may_change_the_stack_it_is_told_of(manager):
    async def listener(event):
        if event.type == "descriptor:activated" and event.pack == "p":
            await manager.set_override("tools", "p:x", {"enabled": False})

    manager.on(listener)
    await asyncio.wait_for(manager.load_pack(pack("p", descriptor("x"))), 5)

    assert states(manager, "x") == {"p": "disabled"}


async def test_a_hooks_own_change_is_told_before_the_hook_goes_on(manager, recorder):
    seen = []

    async def hook(context):
        await manager.load_pack(pack("inner"))
        seen.extend(recorder.types)

    await asyncio.wait_for(manager.load_pack(pack("outer", on_activate=hook)), 5)

    assert seen == ["pack:loaded"]


async def test_shutdown_from_a_listener_does_not_wait_for_ever(manager):
    async def listener(event):
        if event.type == "pack:loaded":
            await manager.shutdown()

    manager.on(listener)
    await asyncio.wait_for(manager.load_pack(pack("p", descriptor("x"))), 5)

    assert manager.packs() == []


# -- many at once --------------------------------------------------------------------------------------------------


class OneAtATime:
    """A slow listener that checks that it is told one thing after another."""

    def __init__(self, seed=0):
        self.dice = random.Random(seed)
        self.events = []
        self.busy = None
        self.overlaps = []

    async def __call__(self, event):
        if self.busy is not None:
            self.overlaps.append((self.busy.type, event.type))
        self.busy = event
        await turns(self.dice.randrange(5))
        self.busy = None
        self.events.append(event)


@given(seed=st.integers(0, 2**32))
def test_concurrent_changes_are_told_one_after_another_in_the_order_in_which_they_happened(seed):
    asyncio.run(tell_many(seed))


async def tell_many(seed):
    dice = random.Random(seed)
    slow, quick = OneAtATime(seed), Recorder()
    manager = ExtensionManager()
    manager.on(slow)
    manager.on(quick)

    async def pause(context):
        await turns(dice.randrange(4))

    async def one(number):
        name, id = f"p{number}", dice.choice("xyz")
        await manager.load_pack(pack(name, descriptor(id, on_activate=pause, on_deactivate=pause)))
        mine = [event.pack for event in slow.events if event.type == "pack:loaded"]
        assert name in mine, "the call returned before it was told"
        if dice.random() < 0.5:
            await manager.unload(name)

    await asyncio.wait_for(asyncio.gather(*(one(number) for number in range(20))), 30)
    await manager.shutdown()

    assert slow.overlaps == []
    assert slow.events == quick.events
    stamps = [event.timestamp for event in quick.events]
    assert stamps == sorted(stamps)
    check_alternation(quick.events)


def check_alternation(events):
    """Each entry comes into force and goes out of force in turn."""
    in_force = set()
    for event in events:
        if event.type == "descriptor:activated":
            assert event.entry not in in_force
            in_force.add(event.entry)
        elif event.type == "descriptor:deactivated":
            in_force.remove(event.entry)
    assert in_force == set()


async def test_a_call_does_not_return_while_a_hook_elsewhere_tells_its_events(manager):
    """A change within a hook tells what is waiting at once; whose events these are must still wait for them."""
    old_goes, gate, hook_runs = asyncio.Event(), asyncio.Event(), asyncio.Event()
    told = []

    async def slow_to_go(context):
        await old_goes.wait()

    async def listener(event):
        if event.type == "descriptor:activated" and event.pack == "new":
            await gate.wait()
        told.append((event.type, event.pack))

    async def hook(context):
        hook_runs.set()
        await manager.load_pack(pack("inner"))

    await manager.load_pack(pack("old", descriptor("x", on_deactivate=slow_to_go)))
    manager.on(listener)
    loading = asyncio.create_task(manager.load_pack(pack("new", descriptor("x"))))
    await turns()
    nested = asyncio.create_task(manager.load_pack(pack("outer", on_activate=hook)))
    await hook_runs.wait()
    await turns()
    old_goes.set()
    await turns()
    early = loading.done()
    gate.set()
    await asyncio.wait_for(asyncio.gather(loading, nested), 5)

    assert not early
    assert told.index(("descriptor:activated", "new")) < told.index(("pack:loaded", "new"))


async def test_a_task_that_a_listener_started_waits_for_its_turn_like_everybody(manager):
    slow = OneAtATime()
    tasks = []
    go = asyncio.Event()

    async def background():
        await go.wait()
        await manager.load_pack(pack("background"))

    def starts(event):
        if not tasks:
            tasks.append(asyncio.create_task(background()))

    manager.on(starts)
    await manager.load_pack(pack("first"))
    manager.on(slow)
    slow.dice = random.Random(3)
    go.set()
    await asyncio.wait_for(
        asyncio.gather(tasks[0], *(manager.load_pack(pack(f"p{n}", descriptor(f"{n}"))) for n in range(5))), 5
    )

    assert slow.overlaps == []
