"""A storm of everything a manager can be asked for, at once, with hooks that fail, dawdle and cancel.

Every life has a seed of its own, which a failure names: `STORM_SEED=... pytest tests/extensions/test_storm.py` lives
that one again, step for step. Nothing in it depends on time: what is slow gives way to others a number of times.
"""

import asyncio
import contextlib
import gc
import itertools
import logging
import os
import random
import threading
from contextvars import ContextVar
from typing import ClassVar

import attrs
import pytest
from kit import Boom

from agentos import PUBLIC, AgentOS, Descriptor, ExtensionManager, ExtensionPack, SecretRequirement, ToolCall
from agentos.errors import AgentOSError
from agentos.stacks.decide import choose
from agentos.stacks.slot import Slot

KINDS = ("tool", "note")
IDS = "abcd"
MADE, GIVEN, GUESTS = ("p0", "p1", "p2", "p3"), ("o0", "o1"), ("g0", "g1")
SECRETS = ("s0", "s1")
SERVICES = ("v0", "v1", "v2")
STEPS_PER_LIFE, STARTS_PER_PHASE = 1000, 20
STEPS = (
    *("load", "load", "load_given", "unload", "reload", "reload", "enable", "disable"),
    *("exchange", "exchange", "exchange", "refresh", "register", "unregister", "remove", "clear"),
    *("reconsider", "override", "set_secret", "refresh_secrets"),
    *("get_service", "get_service_of_another", "release_service", "use", "use", "cancel", "cancel"),
)
PATIENCE = 100_000
"""So many turns of the loop, and who is not at an end then hangs."""

_depth: ContextVar[int] = ContextVar("storm_depth", default=0)


def slots():
    """Return the slots that are in memory, those of other tests in this process as well."""
    return [one for one in gc.get_objects() if type(one) is Slot]


class Storm:
    """One life of a manager."""

    def __init__(self, seed):
        self.dice = dice = random.Random(seed)
        self.at_once, self.ids = dice.choice((2, 8, 20)), IDS[: dice.randrange(1, 5)]
        self.bad_luck, self.liveliness = dice.choice((0.03, 0.1, 0.3)), dice.choice((0.05, 0.2, 0.5))
        self.numbers = itertools.count(1)
        self.before = slots()
        self.manager = self.make_manager()
        self.on, self.busy, self.instances = set(), set(), set()
        self.heard, self.heard_late = [], []
        self.in_force, self.loaded = set(), {}
        self.contexts, self.ports, self.entries = [], [], []
        self.under_way = {}
        self.taken = 0
        self.wrong = []
        self.manager.on(self.listen)
        self.manager.on(self.listen_slowly)

    def make_manager(self):
        return ExtensionManager(secrets=self.vault, hook_timeout=None, drain_timeout=3600)

    # -- what packs are made of ----------------------------------------------------------------------------------

    async def vault(self, id):
        await self.dawdle()
        return self.dice.choice([None, "value-of-" + id])

    async def dawdle(self):
        for _ in range(self.dice.choice((0, 0, 1, 2, 5))):
            await asyncio.sleep(0)

    def misbehave(self):
        if self.dice.random() > self.bad_luck:
            return
        match self.dice.randrange(4):
            case 0:
                raise asyncio.CancelledError
            case 1:
                asyncio.current_task().cancel()
            case _:
                raise Boom("foreign code failed")

    async def be_foreign(self, context):
        """Do what foreign code does: take its time, change something else, fail."""
        self.contexts = [*self.contexts[-5:], context]
        await self.dawdle()
        if _depth.get() < 3 and self.dice.random() < self.liveliness:
            token = _depth.set(_depth.get() + 1)
            try:
                if self.dice.random() < 0.7:
                    await self.step(context)
                else:
                    self.start(context)
            finally:
                _depth.reset(token)
        self.misbehave()
        await self.dawdle()

    def hooks(self, what):
        """Return two hooks; what is on, is busy, and that neither runs out of turn, is written down."""
        who = f"{what} {next(self.numbers)}"

        def begin(is_on):
            if who in self.busy or (who in self.on) is is_on:
                self.wrong.append(f"{who}: a hook runs out of turn, busy: {sorted(self.busy)}")
            self.on.discard(who)

        async def activate(context):
            begin(True)
            self.busy.add(who)
            try:
                await self.be_foreign(context)
            finally:
                self.busy.discard(who)
            self.on.add(who)

        async def deactivate(context):
            begin(False)
            self.busy.add(who)
            try:
                await self.be_foreign(context)
            finally:
                self.busy.discard(who)

        def activate_now(context):
            begin(True)
            self.misbehave()
            self.on.add(who)

        def deactivate_now(context):
            begin(False)
            self.misbehave()

        if self.dice.random() < 0.3:
            return who, {"on_activate": activate_now, "on_deactivate": deactivate_now}
        return who, {"on_activate": activate, "on_deactivate": deactivate}

    def descriptor(self, kind=None, id=None):
        dice, (who, hooks) = self.dice, self.hooks("descriptor")
        return Descriptor(
            kind or dice.choice(KINDS),
            id or dice.choice(self.ids),
            who,
            priority=dice.choice((None, None, 1, 2)),
            wraps=dice.random() < 0.25,
            required_secrets=[SecretRequirement(dice.choice(SECRETS))] if dice.random() < 0.2 else [],
            enabled_by_default=dice.random() < 0.95,
            gate=self.gate if dice.random() < 0.1 else None,
            **(
                hooks
                if dice.random() < 0.9
                else {"on_activate": lambda: self.on.add(who), "on_deactivate": lambda: self.on.discard(who)}
            ),
        )

    def gate(self):
        return self.dice.choice((None, None, "shut"))

    def descriptors(self, kind, most):
        ids = self.dice.sample(self.ids, self.dice.randrange(min(most, len(self.ids)) + 1))
        return [self.descriptor(kind, id) for id in ids]

    def pack(self, name):
        _who, hooks = self.hooks(f"pack {name}")
        parts = [one for kind in KINDS for one in self.descriptors(kind, 2)]
        return ExtensionPack(name, "1.0", parts, **hooks)

    async def make_pack(self, context):
        await self.be_foreign(context)
        if self.dice.random() < 0.3:
            await self.get_service(context)
        return self.pack(context.manifest_entry.identifier)

    # -- listeners -----------------------------------------------------------------------------------------------

    def listen(self, event):
        self.heard.append(event)
        if event.type == "descriptor:activated":
            if event.entry._slot in self.in_force:
                self.wrong.append(f"{event.entry} was told to be activated twice")
            self.in_force.add(event.entry._slot)
        elif event.type == "descriptor:deactivated":
            if event.entry._slot not in self.in_force:
                self.wrong.append(f"{event.entry} was told to be deactivated, and is not active")
            self.in_force.discard(event.entry._slot)
        elif event.type == "pack:loaded":
            self.loaded[event.key] = self.loaded.get(event.key, 0) + 1
        elif event.type == "pack:unloaded":
            self.loaded[event.key] = self.loaded.get(event.key, 0) - 1
            if self.loaded[event.key] < 0:
                self.wrong.append(f"{event.key} was told to be unloaded, and is not loaded")
        self.misbehave()

    async def listen_slowly(self, event):
        self.heard_late.append(event)
        if self.dice.random() < 0.2:
            await self.be_foreign(None)

    # -- steps ---------------------------------------------------------------------------------------------------

    def start(self, context=None):
        """Take a step in a task of its own."""
        task = asyncio.create_task(self.step(context))
        self.under_way[task] = None
        task.add_done_callback(self.end)

    def end(self, task):
        self.under_way.pop(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.wrong.append(f"a step raised {error!r}")

    async def step(self, context=None):
        self.taken += 1
        take = getattr(self, self.dice.choice(STEPS))
        with contextlib.suppress(AgentOSError, Boom):
            await take(context)

    async def load(self, context):
        name = self.dice.choice(MADE)
        await self.manager.load({"identifier": name, "factory": self.make_pack, "permissions": ["tools:register"]})

    async def load_given(self, context):
        await self.manager.load_pack(self.pack(self.dice.choice(GIVEN)))

    async def unload(self, context):
        await self.manager.unload(self.dice.choice((*MADE, *GIVEN)))

    async def reload(self, context):
        await self.manager.reload(self.dice.choice(MADE))

    async def enable(self, context):
        await self.manager.enable(self.dice.choice((*MADE, *GIVEN)))

    async def disable(self, context):
        await self.manager.disable(self.dice.choice((*MADE, *GIVEN)))

    async def exchange(self, context):
        """Register and take back as a pack, as a guest, as who runs this hook, or as somebody who was here before."""
        kind = self.dice.choice(KINDS)
        port = self.manager.port(self.dice.choice((*MADE, *GIVEN, *GUESTS)))
        if context is not None and self.dice.random() < 0.5 and context._port is not None:
            port = context._port
        elif self.ports and self.dice.random() < 0.2:
            port = self.dice.choice(self.ports)
        self.ports = [*self.ports[-5:], port]
        await port.exchange(kind, self.descriptors(kind, 2), self.dice.choices(self.ids, k=self.dice.randrange(3)))

    async def refresh(self, context):
        await self.manager.port(self.dice.choice((*MADE, *GUESTS))).refresh(self.dice.choice(KINDS))

    async def register(self, context):
        entry = await self.manager.register(self.descriptor())
        self.entries = [*self.entries[-5:], entry]

    async def unregister(self, context):
        await self.manager.unregister(self.dice.choice(KINDS), self.dice.choice(self.ids))

    async def remove(self, context):
        stack = self.manager.registry(self.dice.choice(KINDS)).stack(self.dice.choice(self.ids))
        if candidates := [*stack, *self.entries]:
            await self.manager.remove(self.dice.choice(candidates))

    async def clear(self, context):
        if self.dice.random() < 0.2:
            await self.manager.clear(self.dice.choice(KINDS))

    async def reconsider(self, context):
        await self.manager.reconsider(self.dice.choice(KINDS), self.dice.choice(self.ids))

    async def override(self, context):
        said = self.dice.choice((None, {"priority": self.dice.randrange(4)}, {"enabled": self.dice.random() < 0.5}))
        pack = self.dice.choice(("", "p0:", "o0:"))
        await self.manager.set_override(self.dice.choice(KINDS), pack + self.dice.choice(self.ids), said)

    async def set_secret(self, context):
        id = self.dice.choice(SECRETS)
        await self.manager.set_secret(id, self.dice.choice((None, "value-of-" + id, "another-value-of-" + id)))

    async def refresh_secrets(self, context):
        await self.manager.refresh_secrets()

    async def get_service(self, context):
        id = self.dice.choice(SERVICES)
        instance = f"{id} {next(self.numbers)}"

        async def make():
            await self.be_foreign(None)
            self.instances.add(instance)
            return instance

        async def dispose(made):
            self.instances.remove(made)
            await self.be_foreign(None)

        services = self.manager.services if context is None else context.services
        await services.get_or_create(id, make, dispose=dispose)

    async def get_service_of_another(self, context):
        if self.contexts:
            await self.get_service(self.dice.choice(self.contexts))

    async def release_service(self, context):
        services = self.manager.services if context is None else context.services
        await services.release(self.dice.choice(SERVICES))

    async def use(self, context):
        """Use what is in force, as a call does."""
        with self.manager.registry(self.dice.choice(KINDS)).using(self.dice.choice(self.ids)) as entry:
            if entry is not None and str(entry.payload) not in self.on:
                self.wrong.append(f"{entry} is in force and its hook has not run")
            await self.dawdle()
            await self.dawdle()

    async def cancel(self, context):
        if self.under_way:
            self.dice.choice(list(self.under_way)).cancel()

    # -- a life --------------------------------------------------------------------------------------------------

    async def live(self, steps):
        """Take *steps*, those that hooks and listeners take among them, and end."""
        while self.taken < steps:
            for _ in range(STARTS_PER_PHASE):
                self.start()
                await self.dawdle()
                while len(self.under_way) > self.at_once:
                    await asyncio.sleep(0)
            if self.taken < steps or self.dice.random() < 0.5:  # the end may come in the middle
                await self.quiet()
                self.check()
        await self.shut_down()
        await self.quiet()
        self.check_end()

    async def shut_down(self):
        ending = asyncio.create_task(self.end_host())
        await self.dawdle()
        if self.dice.random() < 0.3:
            ending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ending
        await self.until_done(self.end_host)  # one that was cancelled before it began did nothing

    async def end_host(self):
        await self.manager.shutdown()

    async def until_done(self, begin):
        """Do something in a task of its own, since foreign code may cancel that; again until it is done."""
        while True:
            task = asyncio.create_task(begin())
            await asyncio.wait({task})
            if not task.cancelled():
                return task.result()

    async def quiet(self):
        """Wait until nothing is under way; who hangs is named."""
        for _ in range(PATIENCE):
            if not self.under_way:
                break
            await asyncio.sleep(0)
        if self.under_way:
            stacks = "\n".join(str(task.get_stack()) + str(task.get_coro()) for task in self.under_way)
            pytest.fail(f"{len(self.under_way)} steps hang:\n{stacks}")
        await self.until_done(self.manager.events.deliver)
        for _ in range(20):
            await asyncio.sleep(0)
        if self.under_way:  # a listener began something
            await self.quiet()

    # -- what must hold when nothing is under way ------------------------------------------------------------------

    def check(self):
        assert self.wrong == []
        assert asyncio.all_tasks() == {asyncio.current_task()}
        self.check_owners()
        self.check_stacks()
        self.check_services()
        self.check_events()
        self.check_locks()

    def check_owners(self):
        manager = self.manager
        packs = {id(loaded) for loaded in manager._packs}
        for stack in manager._registries.all().values():
            for slot in stack.slots():
                assert not slot.owner.closed, f"{slot.view()} outlives its pack"
                assert slot in slot.owner.slots
                assert id(slot.owner) in packs or slot.owner.source.origin == "host"
        for loaded in manager._packs:
            assert not loaded.closed
            assert [slot.key for slot in loaded.slots if not slot.is_stacked] == []
            keys = [slot.key for slot in loaded.slots]
            assert len(set(keys)) == len(keys)
        assert all(owner.slots for owner in manager._registration._guests.values() if owner.scope.closed)

    def check_stacks(self):
        registries = self.manager._registries
        assert registries._unseen == {}
        on = set()
        for key, stack in registries.all().items():
            assert (stack.activated, stack._unshown) == ((), None), key
            assert stack.in_force == stack.plan == choose(stack.eligible)
            assert {entry._slot for entry in stack.entries()} == set(stack.slots())
            assert all(slot.order for slot in stack.in_force)
            assert not any(slot.order for slot in stack.slots() if slot not in stack.in_force)
            on.update(str(slot.descriptor.payload) for slot in stack.in_force)
            for slot in stack.slots():
                self.check_gates(slot)
        assert {who for who in self.on if who.startswith("descriptor")} == on
        packs = [loaded.key for loaded in self.manager._packs if loaded.disabled is None]
        assert sorted(who.split()[1] for who in self.on if who.startswith("pack")) == sorted(packs)

    def check_gates(self, slot):
        missing = any(not slot.owner.scope.has(need.id) for need in slot.descriptor.required_secrets)
        if slot.owner.disabled is None and slot.obstacle is None:
            assert not missing, f"{slot.view()} is in force without its secret"
        if slot.obstacle is not None and "missing secret" in slot.obstacle.reason:
            assert missing, f"{slot.view()} waits for a secret that is there"

    def check_services(self):
        held = self.manager._hub._services
        assert {service.instance for service in held.values()} == self.instances
        for service in held.values():
            assert service.owners
            assert not any(getattr(owner, "closed", False) for owner in service.owners)
        assert self.manager._hub._leaving == []

    def check_events(self):
        events = self.manager.events
        assert not events._queue
        assert not events._untold
        assert not events._waiting
        assert self.heard == self.heard_late
        assert len(set(map(id, self.heard))) == len(self.heard)
        stacks = self.manager._registries.all().values()
        assert self.in_force == {slot for stack in stacks for slot in stack.in_force}
        assert {key for key, count in self.loaded.items() if count} == {one.key for one in self.manager._packs}
        self.heard.clear()
        self.heard_late.clear()

    def check_locks(self):
        locks = self.manager._locks
        assert not locks._holders
        assert not locks._waiters
        assert not locks._under_way
        assert not locks._idlers

    def check_end(self):
        self.check()
        assert not self.on
        assert not self.instances
        assert not self.in_force
        assert self.manager._registries.all() == {}
        assert self.manager.packs() == []
        self.check_memory()

    def check_memory(self):
        """Let go of what a life has kept, but not of the manager: it holds nothing itself."""
        self.contexts, self.ports, self.entries, self.heard_late = [], [], [], []
        gc.collect()
        assert [one for one in slots() if not any(one is other for other in self.before)] == []


class Answer:
    """A tool that checks, while it runs, that it is in force."""

    description = "Answer, for tests."
    input_schema: ClassVar = {"type": "object", "properties": {}}
    effect, required_access = "read", PUBLIC

    def __init__(self, storm, name, who):
        self.storm, self.name, self.who = storm, name, who

    def __str__(self):
        return self.who

    async def execute(self, args, context):
        for _ in range(2):
            if self.who not in self.storm.on:
                self.storm.wrong.append(f"{self.who} runs and is not in force")
            await self.storm.dawdle()
        return "done"


class HostStorm(Storm):
    """One life of a host, whose tools are called."""

    def make_manager(self):
        self.host = AgentOS(extension_secrets=self.vault, budget=None, pins="off")
        return self.host.extensions

    def descriptor(self, kind=None, id=None):
        made = super().descriptor(kind, id)
        if made.kind != "tool":
            return made
        return attrs.evolve(made, payload=Answer(self, made.id, made.payload))

    async def use(self, context):
        result = await self.host.tools.process_tool_call(ToolCall(self.dice.choice(self.ids), {}))
        if not result.success and result.error.type not in ("UnknownTool", "WorkerDied", "Cancelled"):
            self.wrong.append(str(result.error))

    async def listen_slowly(self, event):
        """Change nothing: a call waits for those who hear of it, and what they take off would wait for the call."""
        self.heard_late.append(event)
        await self.dawdle()

    async def end_host(self):
        await self.host.shutdown()


def live(seed, steps, kind=Storm):
    """Live one life; a failure says with which seed it is lived again."""
    storm = kind(seed)
    try:
        asyncio.run(storm.live(steps))
    except BaseException as error:
        error.add_note(f"to repeat it: STORM_SEED={seed}")
        raise
    return storm.taken


@pytest.fixture
def seed(caplog):
    """Return the seed of a storm: the same one each time, unless `STORM_SEED` says another, or `random`."""
    caplog.set_level(logging.CRITICAL, "agentos")
    caplog.set_level(logging.CRITICAL, "asyncio")
    asked = os.environ.get("STORM_SEED", "14")
    return str(random.SystemRandom().randrange(2**32)) if asked == "random" else asked


@pytest.mark.parametrize("kind", [Storm, HostStorm])
def test_a_storm_leaves_nothing(seed, kind):
    live(seed, STEPS_PER_LIFE, kind)


@pytest.mark.proof
@pytest.mark.timeout(500)
@pytest.mark.skipif(os.environ.get("STORM_SEED", "random") != "random", reason="one life is lived again")
def test_a_hundred_thousand_steps_leave_nothing(seed):
    threads, taken = threading.active_count(), 0
    for number in itertools.count():
        taken += live(f"{seed}.{number}", STEPS_PER_LIFE, HostStorm if number % 10 == 9 else Storm)
        if taken >= 100_000:
            break

    assert threading.active_count() == threads
