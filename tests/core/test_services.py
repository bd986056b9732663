"""Shared services: made once, counted by owner, released with the last owner and in reverse."""

import asyncio

import pytest
from kit import Boom, descriptor, pack

from agentos import ExtensionManager, PackEntry, ServiceError

pytestmark = pytest.mark.anyio


class Connection:
    """Something worth sharing, which knows whether it is still open."""

    def __init__(self, name="connection"):
        self.name = name
        self.open = True

    def close(self):
        assert self.open
        self.open = False


class Tracker:
    """Makes connections and keeps what happened to them."""

    def __init__(self):
        self.log = []
        self.made = []

    def factory(self, name="s"):
        def make():
            self.log.append(f"+{name}")
            self.made.append(Connection(name))
            return self.made[-1]

        return make

    def dispose(self, connection):
        connection.close()
        self.log.append(f"-{connection.name}")


@pytest.fixture
def tracker():
    return Tracker()


async def loaded(manager, name, **hooks):
    """Load a pack and return its view of the services."""
    kept = []
    await manager.load_pack(pack(name, on_activate=lambda context: kept.append(context.services), **hooks))
    return kept[0]


async def turns(count=10):
    """Let everybody else go on as far as they can."""
    for _ in range(count):
        await asyncio.sleep(0)


# -- made once -----------------------------------------------------------------------------------------------------


async def test_a_hundred_askers_at_once_get_one_instance(manager):
    made = []

    async def factory():
        made.append(1)
        await turns(5)
        return Connection()

    owners = [await loaded(manager, f"p{n}") for n in range(100)]
    instances = await asyncio.gather(*(owner.get_or_create("s", factory) for owner in owners))

    assert made == [1]
    assert all(instance is instances[0] for instance in instances)


async def test_a_hundred_askers_of_one_owner_get_one_instance(manager):
    made = []

    async def factory():
        made.append(1)
        await turns(5)
        return Connection()

    instances = await asyncio.gather(*(manager.services.get_or_create("s", factory) for _ in range(100)))

    assert made == [1]
    assert len(set(map(id, instances))) == 1


async def test_an_instance_that_is_there_is_handed_out_without_its_factory(manager, tracker):
    first = await manager.services.get_or_create("s", tracker.factory())
    second = await (await loaded(manager, "p")).get_or_create("s", tracker.factory("other"))

    assert first is second
    assert tracker.log == ["+s"]


@pytest.mark.parametrize("instance", [None, 0, "", False])
async def test_an_instance_that_counts_as_false_is_made_once_too(manager, instance):
    made = []
    for _ in range(2):
        await manager.services.get_or_create("s", lambda: made.append(1) or instance)

    assert made == [1]
    assert manager.services.has("s")


async def test_services_of_different_ids_are_made_side_by_side(manager):
    both = asyncio.Barrier(2)

    async def factory():
        await both.wait()
        return Connection()

    await asyncio.wait_for(
        asyncio.gather(*(manager.services.get_or_create(id, factory) for id in ("a", "b"))), timeout=5
    )

    assert manager.services.has("a")


async def test_a_factory_may_ask_for_another_service(manager, tracker):
    async def factory():
        return [await manager.services.get_or_create("inner", tracker.factory("inner"))]

    outer = await manager.services.get_or_create("outer", factory)

    assert outer == [tracker.made[0]]


async def test_a_pack_can_ask_in_its_factory_and_in_every_hook(manager, tracker):
    async def ask(context):
        await context.services.get_or_create("s", tracker.factory())

    async def create(context):
        await ask(context)
        return pack("p", descriptor("x", on_activate=ask), on_activate=ask)

    await manager.load(PackEntry(factory=create))

    assert tracker.log == ["+s"]


# -- counted and released ------------------------------------------------------------------------------------------


async def test_a_service_is_released_with_its_last_owner(manager, tracker):
    for name in ("a", "b"):
        services = await loaded(manager, name)
        await services.get_or_create("s", tracker.factory(), dispose=tracker.dispose)
    await manager.unload("a")
    assert tracker.log == ["+s"]
    await manager.unload("b")

    assert tracker.log == ["+s", "-s"]


async def test_an_owner_counts_once_however_often_it_asks(manager, tracker):
    services = await loaded(manager, "p")
    for _ in range(3):
        await services.get_or_create("s", tracker.factory(), dispose=tracker.dispose)
    await services.release("s")

    assert tracker.log == ["+s", "-s"]


async def test_an_owner_that_asked_in_several_hooks_counts_once(manager, tracker):
    async def ask(context):
        await context.services.get_or_create("s", tracker.factory(), dispose=tracker.dispose)

    async def create(context):
        await ask(context)
        return pack("p", descriptor("x", on_activate=ask), on_activate=ask)

    await manager.load(PackEntry(factory=create))
    await manager.unload("p")

    assert tracker.log == ["+s", "-s"]


async def test_an_owner_that_released_and_asked_again_counts_again(manager, tracker):
    services = await loaded(manager, "p")
    for _ in range(2):
        await services.get_or_create("s", tracker.factory(), dispose=tracker.dispose)
        await services.release("s")

    assert tracker.log == ["+s", "-s", "+s", "-s"]


async def test_a_service_made_anew_is_another_instance(manager, tracker):
    services = manager.services
    first = await services.get_or_create("s", tracker.factory(), dispose=tracker.dispose)
    await services.release("s")
    second = await services.get_or_create("s", tracker.factory(), dispose=tracker.dispose)

    assert (first.open, second.open) == (False, True)


async def test_an_owners_services_are_released_the_newest_first(manager, tracker):
    services = await loaded(manager, "p")
    for name in ("a", "b", "c"):
        await services.get_or_create(name, tracker.factory(name), dispose=tracker.dispose)
    await manager.unload("p")

    assert tracker.log == ["+a", "+b", "+c", "-c", "-b", "-a"]


async def test_a_service_is_released_before_what_it_was_made_of(manager, tracker):
    services = await loaded(manager, "p")

    async def outer():
        await services.get_or_create("inner", tracker.factory("inner"), dispose=tracker.dispose)
        return tracker.factory("outer")()

    await services.get_or_create("outer", outer, dispose=tracker.dispose)
    await manager.unload("p")

    assert tracker.log == ["+inner", "+outer", "-outer", "-inner"]


async def test_shutdown_releases_everything_in_reverse_the_hosts_last(tracker):
    manager = ExtensionManager()
    await manager.services.get_or_create("host", tracker.factory("host"), dispose=tracker.dispose)
    for name in ("a", "b"):
        services = await loaded(manager, name)
        await services.get_or_create(name, tracker.factory(name), dispose=tracker.dispose)
    tracker.log.clear()
    await manager.shutdown()

    assert tracker.log == ["-b", "-a", "-host"]


async def test_a_service_is_there_while_the_last_hooks_of_its_owner_run(manager, tracker):
    seen = []

    def hook(context):
        seen.append(tracker.made[0].open)

    services = await loaded(manager, "p", on_deactivate=hook)
    await services.get_or_create("s", tracker.factory(), dispose=tracker.dispose)
    await manager.unload("p")

    assert seen == [True]
    assert not tracker.made[0].open


async def test_an_async_dispose_is_awaited(manager):
    log = []

    async def dispose(instance):
        await turns(3)
        log.append(instance)

    await manager.services.get_or_create("s", lambda: "instance", dispose=dispose)
    await manager.services.release("s")

    assert log == ["instance"]


async def test_reloading_a_pack_hands_its_service_on(manager, tracker):
    async def create(context):
        await context.services.get_or_create("s", tracker.factory(), dispose=tracker.dispose)
        return pack("p")

    await manager.load(PackEntry(factory=create))
    await manager.reload("p")

    assert tracker.log == ["+s"]


async def test_disabling_a_pack_releases_nothing(manager, tracker):
    services = await loaded(manager, "p")
    await services.get_or_create("s", tracker.factory(), dispose=tracker.dispose)
    await manager.disable("p")

    assert tracker.log == ["+s"]


@pytest.mark.parametrize("where", ["factory", "pack hook", "descriptor hook", "a later descriptor's hook"])
async def test_a_pack_that_fails_to_load_releases_what_it_had(manager, tracker, where):
    async def ask(context):
        await context.services.get_or_create("s", tracker.factory(), dispose=tracker.dispose)

    def fail(context):
        raise Boom

    async def create(context):
        await ask(context)
        if where == "factory":
            raise Boom
        return pack(
            "p",
            descriptor("x", on_activate=fail if where == "descriptor hook" else ask),
            descriptor("y", on_activate=fail if where == "a later descriptor's hook" else ask),
            on_activate=fail if where == "pack hook" else ask,
        )

    outcome = await manager.load(PackEntry(factory=create))

    assert outcome.status == "failed"
    assert tracker.log == ["+s", "-s"]


async def test_a_pack_that_fails_to_load_keeps_nothing_from_the_other_owners(manager, tracker):
    await (await loaded(manager, "good")).get_or_create("s", tracker.factory(), dispose=tracker.dispose)

    async def create(context):
        await context.services.get_or_create("s", tracker.factory(), dispose=tracker.dispose)
        raise Boom

    await manager.load(PackEntry(factory=create))
    assert tracker.log == ["+s"]
    await manager.unload("good")

    assert tracker.log == ["+s", "-s"]


async def test_a_registered_descriptors_service_goes_with_it(manager, tracker):
    async def ask(context):
        await context.services.get_or_create("s", tracker.factory(), dispose=tracker.dispose)

    entry = await manager.registry("tool").register(descriptor("x", on_activate=ask))
    await manager.registry("tool").remove(entry)

    assert tracker.log == ["+s", "-s"]


# -- has, release, tagged ------------------------------------------------------------------------------------------


async def test_has_tells_whether_there_is_an_instance(manager):
    services = manager.services
    before = services.has("s")
    await services.get_or_create("s", Connection)
    during = services.has("s")
    await services.release("s")

    assert (before, during, services.has("s")) == (False, True, False)


async def test_a_service_that_is_being_made_is_not_there_yet(manager):
    seen = []
    await manager.services.get_or_create("s", lambda: seen.append(manager.services.has("s")))

    assert seen == [False]


async def test_every_owner_sees_what_there_is(manager):
    await manager.services.get_or_create("s", Connection)

    assert (await loaded(manager, "p")).has("s")


async def test_release_tells_whether_there_was_a_share(manager):
    services = manager.services
    await services.get_or_create("s", Connection)

    assert [await services.release("s"), await services.release("s"), await services.release("unknown")] == [
        True,
        False,
        False,
    ]


async def test_releasing_what_one_does_not_own_changes_nothing(manager, tracker):
    await manager.services.get_or_create("s", tracker.factory(), dispose=tracker.dispose)
    stranger = await loaded(manager, "stranger")

    assert await stranger.release("s") is False
    assert tracker.log == ["+s"]


async def test_services_are_found_by_their_tags(manager):
    services = manager.services
    await services.get_or_create("a", Connection, tags=["http", "pool"])
    await services.get_or_create("b", Connection, tags=("pool",))
    await services.get_or_create("c", Connection)

    assert (services.tagged("pool"), services.tagged("http"), services.tagged("none")) == (["a", "b"], ["a"], [])


async def test_a_released_service_is_not_found_by_its_tags(manager):
    await manager.services.get_or_create("a", Connection, tags=["pool"])
    await manager.services.release("a")

    assert manager.services.tagged("pool") == []


# -- while it is disposed ------------------------------------------------------------------------------------------


async def test_nothing_is_handed_out_while_it_is_disposed(manager, tracker):
    disposing, go_on = asyncio.Event(), asyncio.Event()

    async def dispose(connection):
        disposing.set()
        await go_on.wait()
        tracker.dispose(connection)

    old = await manager.services.get_or_create("s", tracker.factory(), dispose=dispose)
    releasing = asyncio.create_task(manager.services.release("s"))
    await disposing.wait()
    asking = asyncio.create_task(manager.services.get_or_create("s", tracker.factory()))
    await turns()
    early, there = asking.done(), manager.services.has("s")
    go_on.set()
    await releasing
    new = await asking

    assert (early, there) == (False, False)
    assert new is not old
    assert (old.open, new.open) == (False, True)
    assert tracker.log == ["+s", "-s", "+s"]


async def test_many_owners_that_come_and_go_never_get_a_closed_instance(manager, tracker):
    owners = [await loaded(manager, f"p{n}") for n in range(20)]

    async def use(owner, pause):
        for _ in range(5):
            connection = await owner.get_or_create("s", slow, dispose=dispose)
            assert connection.open
            await turns(pause)
            assert connection.open
            await owner.release("s")
            await turns(pause)

    async def slow():
        await turns(2)
        return tracker.factory()()

    async def dispose(connection):
        tracker.dispose(connection)
        await turns(2)

    await asyncio.wait_for(asyncio.gather(*(use(owner, n % 5) for n, owner in enumerate(owners))), timeout=30)

    assert not any(connection.open for connection in tracker.made)
    assert tracker.log == ["+s", "-s"] * len(tracker.made)


# -- what fails ----------------------------------------------------------------------------------------------------


async def test_a_failing_factory_raises_to_its_asker(manager):
    def factory():
        raise Boom("no")

    with pytest.raises(Boom):
        await manager.services.get_or_create("s", factory)

    assert not manager.services.has("s")


async def test_a_failing_factory_lets_the_next_asker_try(manager):
    attempts = []

    async def factory():
        attempts.append(1)
        await turns(2)
        if len(attempts) < 3:
            raise Boom
        return "made"

    answers = await asyncio.wait_for(
        asyncio.gather(*(manager.services.get_or_create("s", factory) for _ in range(5)), return_exceptions=True), 5
    )

    assert [type(answer) for answer in answers] == [Boom, Boom, str, str, str]


async def test_a_failing_factory_leaves_no_owner_behind(manager, tracker):
    failing = await loaded(manager, "failing")

    def factory():
        raise Boom

    with pytest.raises(Boom):
        await failing.get_or_create("s", factory)
    await manager.services.get_or_create("s", tracker.factory(), dispose=tracker.dispose)
    await manager.services.release("s")

    assert tracker.log == ["+s", "-s"]


def bad_dispose(error):
    def dispose(instance):
        raise error

    return dispose


@pytest.mark.parametrize("error", [Boom("why"), SystemExit("why"), asyncio.CancelledError("why")], ids=repr)
def test_a_dispose_that_raises_is_contained_and_shutdown_goes_on_and_reports_it(error, tracker):
    async def make_and_shut_down():
        manager = ExtensionManager()
        services = manager.services
        await services.get_or_create("a", tracker.factory("a"), dispose=tracker.dispose)
        await services.get_or_create("b", Connection, dispose=bad_dispose(error))
        await services.get_or_create("c", tracker.factory("c"), dispose=tracker.dispose)
        return await manager.shutdown()

    raised = asyncio.run(make_and_shut_down())

    assert tracker.log == ["+a", "+c", "-c", "-a"]
    assert [type(one) for one in raised] == [ServiceError]
    assert "service 'b' raised" in str(raised[0])
    assert type(error).__name__ in str(raised[0])


async def test_a_dispose_that_raises_is_reported_by_unload(manager):
    services = await loaded(manager, "p")
    await services.get_or_create("s", Connection, dispose=bad_dispose(Boom("why")))
    raised = await manager.unload("p")

    assert [type(one) for one in raised] == [ServiceError]
    assert isinstance(raised[0].__cause__, Boom)


async def test_a_dispose_that_raises_is_logged(manager, caplog):
    await manager.services.get_or_create("s", Connection, dispose=bad_dispose(Boom("why")))
    await manager.services.release("s")

    assert "dispose of the service 's' raised" in caplog.text


async def test_a_service_whose_dispose_raised_can_be_made_again(manager, tracker):
    await manager.services.get_or_create("s", Connection, dispose=bad_dispose(Boom("why")))
    await manager.services.release("s")

    assert await manager.services.get_or_create("s", tracker.factory()) is tracker.made[0]


# -- cycles --------------------------------------------------------------------------------------------------------


async def test_a_service_that_needs_itself_raises_instead_of_waiting_for_ever(manager):
    async def factory():
        return await manager.services.get_or_create("s", factory)

    with pytest.raises(ServiceError, match="'s' needs itself"):
        await asyncio.wait_for(manager.services.get_or_create("s", factory), 5)

    assert not manager.services.has("s")


async def test_services_that_need_each_other_raise_instead_of_waiting_for_ever(manager):
    async def a():
        return await manager.services.get_or_create("b", b)

    async def b():
        return await manager.services.get_or_create("a", a)

    with pytest.raises(ServiceError, match="'a' needs itself"):
        await asyncio.wait_for(manager.services.get_or_create("a", a), 5)


async def test_services_that_two_tasks_make_and_that_need_each_other_do_not_wait_for_ever(manager):
    async def a():
        await turns()
        return await manager.services.get_or_create("b", b)

    async def b():
        await turns()
        return await manager.services.get_or_create("a", a)

    answers = await asyncio.wait_for(
        asyncio.gather(
            manager.services.get_or_create("a", a), manager.services.get_or_create("b", b), return_exceptions=True
        ),
        5,
    )

    assert ServiceError in [type(answer) for answer in answers]


async def test_a_cycle_through_a_task_of_its_own_raises_instead_of_waiting_for_ever(manager):
    async def factory():
        return await asyncio.create_task(manager.services.get_or_create("s", factory))

    with pytest.raises(ServiceError):
        await asyncio.wait_for(manager.services.get_or_create("s", factory), 5)


async def test_a_dispose_that_asks_for_its_own_service_raises_instead_of_waiting_for_ever():
    manager = ExtensionManager()

    async def dispose(instance):
        await manager.services.get_or_create("s", Connection)

    await manager.services.get_or_create("s", Connection, dispose=dispose)
    raised = await asyncio.wait_for(manager.shutdown(), 5)

    assert [type(one) for one in raised] == [ServiceError]


async def test_a_dispose_that_releases_its_own_service_is_harmless(manager):
    async def dispose(instance):
        await manager.services.release("s")

    await manager.services.get_or_create("s", Connection, dispose=dispose)

    assert await asyncio.wait_for(manager.services.release("s"), 5) is True


async def test_a_service_can_be_made_after_a_cycle_was_broken(manager):
    async def cyclic():
        return await manager.services.get_or_create("s", cyclic)

    with pytest.raises(ServiceError):
        await manager.services.get_or_create("s", cyclic)

    assert await manager.services.get_or_create("s", lambda: "made") == "made"


# -- cancelling ----------------------------------------------------------------------------------------------------


async def test_a_cancelled_maker_lets_the_next_asker_make_it(manager):
    began = asyncio.Event()

    async def endless():
        began.set()
        await asyncio.Event().wait()

    maker = asyncio.create_task(manager.services.get_or_create("s", endless))
    await began.wait()
    asker = asyncio.create_task(manager.services.get_or_create("s", lambda: "made"))
    await turns()
    maker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await maker

    assert await asyncio.wait_for(asker, 5) == "made"


async def test_a_cancelled_asker_leaves_the_maker_and_the_other_askers_alone(manager):
    go_on = asyncio.Event()

    async def factory():
        await go_on.wait()
        return "made"

    tasks = [asyncio.create_task(manager.services.get_or_create("s", factory)) for _ in range(3)]
    await turns()
    tasks[1].cancel()
    await turns()
    go_on.set()
    answers = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)

    assert [answers[0], type(answers[1]), answers[2]] == ["made", asyncio.CancelledError, "made"]


async def test_an_asker_cancelled_in_the_moment_the_maker_ends_leaves_everybody_else_alone(manager):
    go_on = asyncio.Event()

    async def factory():
        await go_on.wait()
        return "made"

    tasks = [asyncio.create_task(manager.services.get_or_create("s", factory)) for _ in range(3)]
    await turns()
    go_on.set()
    tasks[1].cancel()
    answers = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)

    assert [answers[0], type(answers[1]), answers[2]] == ["made", asyncio.CancelledError, "made"]


async def test_a_cancelled_load_releases_what_its_pack_had(manager, tracker):
    reached = asyncio.Event()

    async def hook(context):
        await context.services.get_or_create("s", tracker.factory(), dispose=tracker.dispose)
        reached.set()
        await asyncio.Event().wait()

    loading = asyncio.create_task(manager.load_pack(pack("p", on_activate=hook)))
    await reached.wait()
    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading

    assert tracker.log == ["+s", "-s"]


# -- after the end -------------------------------------------------------------------------------------------------


async def test_nothing_is_made_after_shutdown():
    manager = ExtensionManager()
    await manager.shutdown()

    with pytest.raises(ServiceError, match="shut down"):
        await manager.services.get_or_create("s", Connection)


@pytest.mark.parametrize("end", ["unloaded", "failed to load"])
async def test_what_a_pack_asks_for_when_it_is_gone_is_refused_or_released_with_the_rest(tracker, end):
    manager = ExtensionManager()
    kept = []

    def create(context):
        kept.append(context.services)
        if end == "failed to load":
            raise Boom
        return pack("p")

    await manager.load(PackEntry(factory=create))
    if end == "unloaded":
        await manager.unload("p")
    try:
        await kept[0].get_or_create("s", tracker.factory(), dispose=tracker.dispose)
    except ServiceError:
        assert tracker.made == []
    await manager.shutdown()

    assert not any(connection.open for connection in tracker.made)
