"""What goes is gone: nothing that a pack, a guest or a failed change brought outlives it."""

import asyncio
import contextlib
import subprocess
import sys

import pytest
from cancelling import cancelled_at
from kit import Boom, Recorder, descriptor, pack, states

from agentos import Descriptor, ExtensionManager, HookError, PackLoadError, SecretRequirement
from agentos.errors import ManagerClosedError, ServiceError


class Step:
    """A hook that says when it is reached, and goes on, or fails, when it is told."""

    def __init__(self, *, fails=False):
        self.reached, self.go_on, self.fails = asyncio.Event(), asyncio.Event(), fails

    async def __call__(self, context):
        self.reached.set()
        await self.go_on.wait()
        if self.fails:
            raise Boom("step")


class Instances:
    """Makes services and knows which were not disposed."""

    def __init__(self):
        self.alive = set()

    def make(self, id):
        self.alive.add(id)
        return id

    def getter(self, id="s", *, fails=False):
        async def hook(context):
            await context.services.get_or_create(id, lambda: self.make(id), dispose=self.alive.discard)
            if fails:
                raise Boom(id)

        return hook


async def turns(count=20):
    """Let everybody else go on as far as they can."""
    for _ in range(count):
        await asyncio.sleep(0)


def shown(manager, kind="tool"):
    """Return whose entries readers see on each stack."""
    registry = manager.registry(kind)
    return {id: [entry.payload for entry in registry.stack(id)] for id in registry.ids()}


@pytest.fixture
async def manager(anyio_backend):
    manager = ExtensionManager(drain_timeout=5)
    yield manager
    await manager.shutdown()


def versions(*packs):
    """Return a factory that gives one of *packs* after another."""
    left = list(packs)
    return lambda: left.pop(0)


# -- reloading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", ["pack", "descriptor"])
async def test_what_the_old_pack_registers_while_it_is_reloaded_goes_with_it(manager, of):
    step = Step()
    new = (
        pack("p", descriptor("x", "new"), on_activate=step)
        if of == "pack"
        else pack("p", descriptor("x", "new", on_activate=step))
    )
    await manager.load({"identifier": "p", "factory": versions(pack("p", descriptor("x", "old")), new)})
    old = manager.port("p")
    reloading = asyncio.create_task(manager.reload("p"))
    await step.reached.wait()
    await old.exchange("tool", [descriptor("y", "old")])
    step.go_on.set()
    assert (await reloading).status == "loaded"

    assert shown(manager) == {"x": ["new"]}


@pytest.mark.parametrize("of", ["pack", "descriptor"])
async def test_what_is_unregistered_while_a_reload_fails_stays_off(manager, of):
    step = Step(fails=True)
    first, second = pack("p", descriptor("x", "old"), descriptor("y", "old")), pack("p", descriptor("x", "new"))
    if of == "pack":
        second = pack("p", descriptor("x", "new"), on_activate=step)
    else:
        second = pack("p", descriptor("x", "new", on_activate=step))
    await manager.load({"identifier": "p", "factory": versions(first, second)})
    reloading = asyncio.create_task(manager.reload("p"))
    await step.reached.wait()
    dropping = asyncio.create_task(manager.port("p").exchange("tool", [], ["y"]))
    await turns()
    step.go_on.set()
    assert (await reloading).status == "failed"
    await dropping
    assert shown(manager) == {"x": ["old"]}
    await manager.unload("p")

    assert shown(manager) == {}


async def test_what_a_hook_takes_back_of_the_old_pack_while_a_reload_fails_stays_off(manager):
    async def take_back(context):
        await old.exchange("tool", [descriptor("x", "newer")], ["y"])
        raise Boom("new")

    first = pack("p", descriptor("x", "old"), descriptor("y", "old"))
    second = pack("p", descriptor("x", "new"), descriptor("y", "new"), descriptor("z", "new", on_activate=take_back))
    await manager.load({"identifier": "p", "factory": versions(first, second)})
    old = manager.port("p")
    assert (await manager.reload("p")).status == "failed"
    assert shown(manager) == {"x": ["newer"]}
    await manager.unload("p")

    assert shown(manager) == {}


async def test_what_a_new_pack_registered_goes_before_its_last_hook_when_its_load_fails(manager):
    log = []

    async def register(context):
        await context._port.exchange("tool", [descriptor("extra", log=log)])

    def gone(context):
        log.append(("-", "pack"))

    outcome = await manager.load_pack(
        pack("p", descriptor("x", log=log, bad_on="yes"), on_activate=register, on_deactivate=gone)
    )

    assert outcome.status == "failed"
    assert log == [("+", "extra"), ("+", "x"), ("-", "extra"), ("-", "pack")]


async def test_what_a_pack_declares_is_in_force_though_it_failed_to_exchange_it_while_it_was_loaded(manager):
    step, tasks = Step(fails=True), []

    async def exchange_meanwhile(context):
        other = descriptor("x", on_activate=step)
        tasks.append(asyncio.create_task(context._port.exchange("tool", [other])))
        await step.reached.wait()

    loading = asyncio.create_task(manager.load_pack(pack("p", descriptor("x"), on_activate=exchange_meanwhile)))
    await step.reached.wait()
    await turns()
    step.go_on.set()
    outcome = await loading
    with pytest.raises(HookError):
        await tasks[0]

    assert outcome.status == "loaded"
    assert manager.registry("tool").get_active("x") is not None


# -- unloading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", ["pack", "descriptor"])
async def test_a_pack_that_is_unloaded_can_register_nothing(manager, of):
    raised = []

    async def register(context):
        with pytest.raises(PackLoadError, match="is not loaded any more and can't register anything") as caught:
            await context._port.exchange("tool", [descriptor("late")])
        raised.append(caught.value)

    own, its = ({"on_deactivate": register}, {}) if of == "pack" else ({}, {"on_deactivate": register})
    await manager.load_pack(pack("p", descriptor("x", **its), **own))
    assert await manager.unload("p") == []

    assert len(raised) == 1
    assert shown(manager) == {}


async def test_a_pack_that_is_unloaded_may_take_back_what_it_has(manager):
    async def take_back(context):
        await context._port.exchange("tool", [], ["x"])

    await manager.load_pack(pack("p", descriptor("x", on_deactivate=take_back), on_deactivate=take_back))

    assert await manager.unload("p") == []


async def test_what_is_registered_while_an_unload_waits_goes_with_the_pack(manager):
    slow, other = Step(), Step()
    await manager.load_pack(pack("p", descriptor("x", "p")))
    port = manager.port("p")
    registering = asyncio.create_task(port.exchange("tool", [descriptor("y", "p", on_activate=slow)]))
    await slow.reached.wait()
    loading = asyncio.create_task(manager.load_pack(pack("q", descriptor("x", "q", on_activate=other))))
    await other.reached.wait()
    unloading = asyncio.create_task(manager.unload("p"))
    await turns()
    late = asyncio.create_task(port.exchange("tool", [descriptor("z", "p")]))
    await turns()
    slow.go_on.set()
    other.go_on.set()
    await asyncio.gather(registering, loading, unloading)
    with pytest.raises(PackLoadError):
        await late

    assert shown(manager) == {"x": ["q"]}


async def test_a_registration_that_waits_for_its_turn_when_the_unload_begins_is_refused(manager):
    step = Step()
    await manager.load_pack(pack("p", descriptor("x", "p")))
    loading = asyncio.create_task(manager.load_pack(pack("q", descriptor("y", "q", on_activate=step))))
    await step.reached.wait()
    registering = asyncio.create_task(manager.port("p").exchange("tool", [descriptor("y", "p")]))
    await turns()
    await manager.unload("p")
    step.go_on.set()
    await loading
    with pytest.raises(PackLoadError, match="is not loaded any more"):
        await registering

    assert shown(manager) == {"y": ["q"]}


async def test_what_a_failing_exchange_brings_back_goes_with_the_pack_that_is_unloaded(manager):
    step = Step(fails=True)
    await manager.load_pack(pack("p", descriptor("x", "p"), descriptor("y", "p")))
    exchange = manager.port("p").exchange("tool", [descriptor("z", "p", on_activate=step)], ["x"])
    exchanging = asyncio.create_task(exchange)
    await step.reached.wait()
    unloading = asyncio.create_task(manager.unload("p"))
    await turns()
    step.go_on.set()
    with pytest.raises(HookError):
        await exchanging
    await unloading

    assert shown(manager) == {}


async def test_unloading_by_a_name_that_another_pack_takes_meanwhile_locks_that_one(manager):
    step = Step()
    await manager.load({"identifier": "one", "factory": lambda: pack("p", descriptor("x", on_deactivate=step))})
    first = asyncio.create_task(manager.unload("p"))
    await step.reached.wait()
    loading = asyncio.create_task(
        manager.load({"identifier": "two", "factory": lambda: pack("p", descriptor("y", "two"))})
    )
    await turns()
    second = asyncio.create_task(manager.unload("p"))
    await turns()
    step.go_on.set()
    await asyncio.gather(first, loading)
    with contextlib.suppress(PackLoadError):
        await second

    assert [record.key for record in manager.packs()] == list(dict.fromkeys(shown(manager).get("y", [])))


async def test_clearing_takes_what_is_there_when_its_turn_comes(manager):
    step = Step()
    loading = asyncio.create_task(manager.load_pack(pack("a", descriptor("x", "a", on_activate=step))))
    await step.reached.wait()
    second = asyncio.create_task(manager.load_pack(pack("b", descriptor("x", "b"))))
    await manager.load_pack(pack("c", descriptor("y", "c")))
    clearing = asyncio.create_task(manager.clear("tool"))
    await turns()
    step.go_on.set()
    await asyncio.gather(loading, second, clearing)

    assert shown(manager) == {}


# -- changes that fail half-way -------------------------------------------------------------------------------------


async def test_what_is_registered_while_an_enable_fails_is_out_of_force(manager):
    step = Step(fails=True)
    await manager.load_pack(pack("p", descriptor("x", "p", on_activate=lambda context: None)))
    await manager.disable("p")
    await manager.port("p").exchange("tool", [descriptor("z", "p", on_activate=step)])
    enabling = asyncio.create_task(manager.enable("p"))
    await step.reached.wait()
    await manager.port("p").exchange("tool", [descriptor("y", "p")])
    step.go_on.set()
    with pytest.raises(HookError):
        await enabling

    assert [states(manager, id) for id in "xyz"] == [{"p": "disabled"}] * 3
    assert manager.registry("tool").list_active() == []


async def test_what_a_hook_changed_counts_when_the_change_around_it_fails(manager):
    """The stack of y is chosen for anew after the first hook, and not switched: the second one fails before."""
    await manager.load_pack(pack("q", descriptor("y", "q")))

    async def change_others(context):
        await manager.unregister("tool", "y")
        await manager.reconsider("tool", "a")

    def fail(context):
        raise Boom("b")

    add = [descriptor("a", on_activate=change_others), descriptor("b", on_activate=fail)]
    with pytest.raises(HookError):
        await manager.port("guest").exchange("tool", add, ["y"])

    assert shown(manager) == {}


async def test_what_a_hook_changed_on_a_stack_that_was_settled_counts(manager):
    """Dropping an unknown id locks its stack too, on which somebody else stands."""
    await manager.load_pack(pack("q", descriptor("y", "q")))

    async def remove(context):
        await manager.unregister("tool", "y")

    await manager.port("host").exchange("tool", [descriptor("x", "host", on_activate=remove)], ["y"])

    assert shown(manager) == {"x": ["host"]}


async def test_a_replacement_that_a_later_one_replaced_does_not_come_back_with_the_first_one(manager):
    await manager.load_pack(pack("p", descriptor("x", "first")))
    port = manager.port("p")

    async def replace(context):
        await port.exchange("tool", [descriptor("x", "third")])
        raise Boom("second")

    with pytest.raises(HookError):
        await port.exchange("tool", [descriptor("x", "second", on_activate=replace)])

    assert shown(manager) == {"x": ["third"]}


# -- services -------------------------------------------------------------------------------------------------------


async def test_a_service_of_a_failed_register_is_disposed(manager):
    instances = Instances()
    with pytest.raises(HookError):
        await manager.register(descriptor("x", on_activate=instances.getter(fails=True)))

    assert instances.alive == set()


@pytest.mark.parametrize("turn", range(1, 5))
async def test_a_service_of_a_cancelled_register_is_disposed(manager, turn):
    instances = Instances()
    get = instances.getter()

    async def hook(context):
        await get(context)
        await turns(3)

    if await cancelled_at(turn, manager.register(descriptor("x", on_activate=hook))):
        assert instances.alive == set()
        assert shown(manager) == {}
    else:
        assert instances.alive == {"s"}


async def test_a_service_of_a_guest_goes_with_its_last_entry(manager):
    instances = Instances()
    port = manager.port("guest")
    await port.exchange("tool", [descriptor("x", on_activate=instances.getter()), descriptor("y")])
    await port.exchange("tool", [], ["x"])
    assert instances.alive == {"s"}
    await port.exchange("tool", [], ["y"])

    assert instances.alive == set()


async def test_a_guest_that_had_nothing_left_may_come_again(manager):
    instances = Instances()
    port = manager.port("guest")
    for _ in range(2):
        await port.exchange("tool", [descriptor("x", "x", on_activate=instances.getter())])
        assert instances.alive == {"s"}
        await manager.unregister("tool", "x")
        assert instances.alive == set()


async def test_a_service_of_a_guests_failed_exchange_is_disposed(manager):
    instances = Instances()
    with pytest.raises(HookError):
        await manager.port("guest").exchange("tool", [descriptor("x", on_activate=instances.getter(fails=True))])

    assert instances.alive == set()


async def test_the_services_of_all_guests_go_with_a_clearing_that_is_cancelled(manager):
    """Disposing the first one takes a while, in which the caller is cancelled."""
    instances, step = Instances(), asyncio.Event()

    async def slow(context):
        await context.services.get_or_create("slow", object, dispose=lambda instance: step.wait())

    await manager.port("one").exchange("tool", [descriptor("x", on_activate=slow)])
    await manager.port("two").exchange("tool", [descriptor("x", on_activate=instances.getter(), wraps=True)])
    clearing = asyncio.create_task(manager.clear("tool"))
    await turns()
    clearing.cancel()
    await turns()
    step.set()
    with pytest.raises(asyncio.CancelledError):
        await clearing

    assert instances.alive == set()


async def test_a_guest_whose_first_exchange_fails_goes_on_with_the_one_that_waits(manager):
    instances, step = Instances(), Step(fails=True)
    port = manager.port("guest")
    first = asyncio.create_task(port.exchange("tool", [descriptor("x", on_activate=step)]))
    await step.reached.wait()
    second = asyncio.create_task(port.exchange("tool", [descriptor("x", "2", on_activate=instances.getter())]))
    await turns()
    step.go_on.set()
    with pytest.raises(HookError):
        await first
    await second

    assert shown(manager) == {"x": ["2"]}
    assert instances.alive == {"s"}


async def test_a_service_of_a_cancelled_load_is_disposed(manager):
    """The pack is made, and its key, which only its factory knows, is locked by somebody else."""
    instances, step = Instances(), Step()

    async def make(context):
        await instances.getter()(context)
        return pack("p")

    first = asyncio.create_task(manager.load_pack(pack("p", on_activate=step)))
    await step.reached.wait()
    second = asyncio.create_task(manager.load({"factory": make}))
    await turns()
    assert instances.alive == {"s"}
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    assert instances.alive == set()
    step.go_on.set()
    await first


async def test_who_goes_while_somebody_else_makes_the_service_gets_no_share(manager):
    making, alive, kept = asyncio.Event(), set(), []

    async def make():
        await making.wait()
        alive.add("s")
        return "s"

    await manager.load_pack(pack("p", on_activate=lambda context: kept.append(context.services)))
    first = asyncio.create_task(manager.services.get_or_create("s", make, dispose=alive.discard))
    await turns()
    second = asyncio.create_task(kept[0].get_or_create("s", make, dispose=alive.discard))
    await turns()
    await manager.unload("p")
    making.set()
    await first
    with pytest.raises(ServiceError):
        await second
    await manager.services.release("s")

    assert alive == set()


async def test_a_service_that_is_got_while_its_owner_goes_is_released(manager):
    instances, step, kept = Instances(), asyncio.Event(), []

    async def slow(instance):
        await step.wait()

    async def get(context):
        kept.append(context.services)
        await context.services.get_or_create("slow", object, dispose=slow)

    await manager.load_pack(pack("p", on_activate=get))
    unloading = asyncio.create_task(manager.unload("p"))
    await turns()
    with contextlib.suppress(ServiceError):
        await kept[0].get_or_create("late", lambda: instances.make("late"), dispose=instances.alive.discard)
    step.set()
    await unloading

    assert instances.alive == set()


@pytest.mark.parametrize("turn", range(1, 6))
async def test_a_cancelled_release_disposes_to_the_end_or_not_at_all(manager, turn):
    log = []

    async def dispose(instance):
        log.append("began")
        await turns(3)
        log.append("ended")

    await manager.services.get_or_create("s", object, dispose=dispose)
    await cancelled_at(turn, manager.services.release("s"))

    assert log == ([] if manager.services.has("s") else ["began", "ended"])


# -- secrets --------------------------------------------------------------------------------------------------------


def gated(who, **hooks):
    return Descriptor("tool", "x", who, required_secrets=[SecretRequirement("k")], **hooks)


async def test_a_secret_whose_setting_is_cancelled_before_its_turn_is_not_set(manager, recorder):
    step = Step()
    await manager.load_pack(pack("p", gated("p")))
    loading = asyncio.create_task(manager.load_pack(pack("q", descriptor("x", "q", on_activate=step))))
    await step.reached.wait()
    setting = asyncio.create_task(manager.set_secret("k", "value-of-k"))
    await turns()
    setting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await setting
    step.go_on.set()
    await loading

    assert states(manager, "x") == {"q": "active", "p": "gated"}
    assert recorder.of("secret:changed") == []
    await manager.set_secret("k", "value-of-k")
    assert len(recorder.of("secret:changed")) == 1


async def test_a_secret_whose_setting_is_cancelled_in_a_hook_is_set_for_everybody(manager, recorder):
    step = Step()
    await manager.load_pack(pack("p", gated("p", on_activate=step)))
    setting = asyncio.create_task(manager.set_secret("k", "value-of-k"))
    await step.reached.wait()
    setting.cancel()
    await turns()
    step.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await setting

    assert states(manager, "x") == {"p": "active"}
    assert len(recorder.of("secret:changed")) == 1


# -- events ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def recorder(manager):
    recorder = Recorder()
    manager.on(recorder)
    return recorder


async def test_what_a_hook_takes_off_is_told_after_it_was_told_to_be_there(manager, recorder):
    await manager.load_pack(pack("low", descriptor("x", "low")))

    async def take_off(context):
        await manager.unregister("tool", "x")

    await manager.load_pack(pack("high", descriptor("x", "high"), on_deactivate=take_off))
    await manager.unload("high")

    told = [event.type for event in recorder.events if getattr(event, "pack", None) == "low" and "desc" in event.type]
    assert told == ["descriptor:activated", "descriptor:deactivated"] * 2


async def test_every_listener_hears_in_order_what_is_told_while_another_is_slow(manager):
    heard, step = [], Step()

    async def slow(event):
        if event.type == "descriptor:activated" and event.id == "x":
            await step(event)

    async def unload_it(context):
        await manager.unload("p")

    manager.on(slow)
    manager.on(lambda event: heard.append(event.type) if getattr(event, "pack", "") == "p" else None)
    loading = asyncio.create_task(manager.load_pack(pack("p", descriptor("x"))))
    await step.reached.wait()
    other = asyncio.create_task(manager.load_pack(pack("q", on_activate=unload_it)))
    await turns()
    step.go_on.set()
    await asyncio.gather(loading, other)

    assert heard == ["descriptor:activated", "pack:loaded", "descriptor:deactivated", "pack:unloaded"]


async def test_a_listener_hears_what_happened_though_the_caller_is_cancelled_in_another(manager):
    step = Step()
    heard = Recorder()
    manager.on(step)
    manager.on(heard)
    setting = asyncio.create_task(manager.set_secret("k", "value-of-k"))
    await step.reached.wait()
    setting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await setting
    step.go_on.set()
    await manager.set_secret("other", "value-of-other")

    assert [event.id for event in heard.events] == ["k", "other"]


async def test_what_a_cancelled_change_did_is_told(manager, recorder):
    step = Step()
    await manager.load_pack(pack("p", descriptor("x", on_deactivate=step)))
    unloading = asyncio.create_task(manager.unload("p"))
    await step.reached.wait()
    unloading.cancel()
    await turns()
    step.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await unloading

    assert recorder.types[-2:] == ["descriptor:deactivated", "pack:unloaded"]


# -- the end --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", range(1, 8))
async def test_a_cancelled_shutdown_is_whole(turn):
    log, instances = [], Instances()
    manager = ExtensionManager()
    slow = {"on_deactivate": lambda context: turns(2)}
    await manager.load_pack(pack("p", descriptor("x", **slow), descriptor("y", **slow), log=log))
    await manager.port("guest").exchange("tool", [descriptor("z", on_activate=instances.getter())])
    await cancelled_at(turn, manager.shutdown())
    await manager.shutdown()

    assert log == [("+", "pack p"), ("-", "pack p")]
    assert shown(manager) == {}
    assert instances.alive == set()


async def test_a_registration_under_way_ends_before_the_shutdown_or_is_refused():
    asked, answer = asyncio.Event(), asyncio.Event()

    async def vault(id):
        asked.set()
        await answer.wait()
        return "value-of-k"

    log = []
    manager = ExtensionManager(secrets=vault)
    registering = asyncio.create_task(
        manager.register(descriptor("x", log=log, required_secrets=[SecretRequirement("k")]))
    )
    await asked.wait()
    ending = asyncio.create_task(manager.shutdown())
    await turns()
    answer.set()
    with contextlib.suppress(ManagerClosedError):
        await registering
    await ending

    assert shown(manager) == {}
    assert log in ([], [("+", "x"), ("-", "x")])


async def test_the_answer_of_a_vault_that_counts_already_is_not_replaced_by_a_later_one():
    """Two packs ask for one secret at the same time; nobody would judge the first one again."""
    answers = [asyncio.get_running_loop().create_future() for _ in range(2)]
    asked = iter(answers)

    async def vault(id):
        return await next(asked)

    manager = ExtensionManager(secrets=vault)
    needs = [SecretRequirement("k")]
    loads = [
        asyncio.create_task(manager.load_pack(pack(name, descriptor(name, required_secrets=needs)))) for name in "ab"
    ]
    await turns()
    answers[0].set_result("value-of-k")
    await loads[0]
    answers[1].set_result(None)
    await loads[1]

    assert [manager.registry("tool").get_active(name) is not None for name in "ab"] == [True, True]
    await manager.shutdown()


# -- who cancels -----------------------------------------------------------------------------------------------------

CTRL_C = """
import asyncio, signal
from agentos import Descriptor, ExtensionManager, ExtensionPack

def interrupt(*_):
    signal.raise_signal(signal.SIGINT)

async def main():
    manager = ExtensionManager()
    {listening}
    await manager.load_pack(ExtensionPack("p", "1", [Descriptor("note", "x", "x"{hook})]))
    await asyncio.sleep(0)
    print("went on")

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(
    ("listening", "hook"),
    [("manager.on(interrupt)", ""), ("pass", ", on_activate=interrupt")],
    ids=["listener", "hook"],
)
def test_ctrl_c_counts_also_while_foreign_code_runs(listening, hook):
    """The signal's handler cancels the main task between two of its steps, as if the foreign code did."""
    script = CTRL_C.format(listening=listening, hook=hook)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "interrupted\n"


async def test_a_hook_that_cancels_its_task_ends_no_unload_half_way(manager):
    log = []

    def cancel(_):
        asyncio.current_task().cancel()

    await manager.load_pack(pack("p", descriptor("x", on_deactivate=cancel), descriptor("y", log=log)))
    await manager.unload("p")

    assert shown(manager) == {}
    assert log == [("+", "y"), ("-", "y")]
    assert asyncio.current_task().cancelling() == 0
