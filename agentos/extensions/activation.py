"""Bringing stacks from who is in force to who should be.

Every change is the same act: change the facts, choose again, and update. Make before break: what is new is activated
first, then readers are switched over in one step, then calls under way on what is old may end, then what is old is
deactivated. Undoing a change that failed is the same act with the facts put back.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from agentos.base.containment import contained
from agentos.base.foreign import Border, call_with, to_the_end
from agentos.base.locks import Change, ChangeLocks, current_raised
from agentos.errors import HookError
from agentos.extensions.events import (
    DescriptorActivated,
    DescriptorDeactivated,
    DescriptorFailed,
    DescriptorGated,
    EventBus,
)
from agentos.extensions.registries import Registries
from agentos.model.descriptor import Hook
from agentos.model.pack_context import PackContext
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.stacks.entry import Entry, EntryState, LifecycleContext
from agentos.stacks.rank import rank
from agentos.stacks.slot import Key, Slot
from agentos.stacks.stack import Stack

Leaving = dict[Slot, Entry | None]
"""What goes out of force; with each slot, who was active before it left."""

Keys = Callable[[], Iterable[Key]]
"""Names the stacks that a change is about, as of now: while it waits for its turn others may come."""


def keys_of(slots: Iterable[Slot]) -> list[Key]:
    """Name the stacks of *slots*."""
    return [slot.key for slot in slots]


class StackActivator:
    """Keeps in force on every stack what the facts ask for."""

    def __init__(
        self,
        *,
        locks: ChangeLocks,
        events: EventBus,
        masker: Masker,
        logger: MaskingLogger,
        registries: Registries,
        hook_timeout: float | None,
        drain_timeout: float,
    ) -> None:
        self._locks = locks
        self._events = events
        self._masker = masker
        self._logger = logger
        self._registries = registries
        self._hook_timeout = hook_timeout
        self._drain_timeout = drain_timeout
        self._activations = 0

    # -- the one act -------------------------------------------------------------------------------------------

    async def carry_out(self, change: Change, keys: Keys, alter: Callable[[], None]) -> None:
        """Alter the facts and update the stacks, to the end: an activation that fails is contained."""
        locked = await self._lock(change, keys)
        try:
            alter()
            if any(stack.plan is None for stack in self._stacks(locked).values()):
                await to_the_end(self._settle(change, locked))
        finally:
            self._locks.release(change, locked)

    async def attempt(
        self, change: Change, keys: Keys, alter: Callable[[], Collection[Slot]], undo: Callable[[], None]
    ) -> None:
        """Alter the facts and update; if one of the slots that *alter* returns fails to activate, undo and raise."""
        locked = await self._lock(change, keys)
        try:
            await self._settle(change, locked, must=alter())
        except BaseException:
            await to_the_end(self._undo(change, locked, keys, undo))
            raise
        finally:
            self._locks.release(change, locked)

    async def _undo(self, change: Change, locked: Collection[Key], keys: Keys, undo: Callable[[], None]) -> None:
        """Put the facts back. What came meanwhile is on stacks that are not locked yet."""
        locked = list(dict.fromkeys([*locked, *await self._lock(change, keys)]))
        try:
            undo()
            await self._settle(change, locked)
        finally:
            self._locks.release(change, locked)

    async def reconsider(self, change: Change, choose: Callable[[], Collection[Slot]]) -> None:
        """Judge again the slots that *choose* returns when it is this change's turn: a fact about them changed."""
        await self.carry_out(change, lambda: keys_of(choose()), lambda: self._registries.judge_again(choose()))

    async def _lock(self, change: Change, keys: Keys) -> list[Key]:
        """Lock the stacks that *keys* names, until it names no other.

        Those that a change further up is updating are left to it: it looks again at its end. So does one that is
        cancelled here, since others may have left to it what it had by then.
        """
        locked: dict[Key, None] = {}
        wanted: list[Key] = []
        try:
            while True:
                wanted = [key for key in dict.fromkeys(keys()) if key not in locked]
                refused = await self._locks.acquire(change, wanted) if wanted else wanted
                if len(refused) == len(wanted):  # at this moment, without a wait: nobody let go of them meanwhile
                    return list(locked)
                locked.update((key, None) for key in wanted if key not in refused)
        except BaseException:
            await to_the_end(self._settle(change, [key for key in (*locked, *wanted) if key in change.held]))
            raise

    async def _settle(self, change: Change, keys: Collection[Key], must: Collection[Slot] = ()) -> None:
        """Update the stacks and let go of them in the same step: nobody who left one to this change comes too late."""
        await self._update(keys, must)
        self._locks.release(change, keys)

    def _stacks(self, keys: Iterable[Key]) -> dict[Key, Stack]:
        return {key: stack for key in keys if (stack := self._registries.find(key)) is not None}

    async def _update(self, keys: Collection[Key], must: Collection[Slot]) -> None:
        """Activate what should be in force, switch readers over, deactivate what should not; until nothing is left."""
        planned: dict[Key, Stack] = {}
        try:
            while True:
                for key, stack in self._stacks(keys).items():
                    if stack.plan is None:
                        self._registries.plan(stack)
                        planned[key] = stack
                if not planned:
                    return
                if await self._activate_all(planned.values(), must):
                    leaving, planned = self._switch(planned), {}
                    if leaving:
                        await to_the_end(self.retire(leaving))
        except BaseException:
            for stack in planned.values():
                stack.plan = None  # it was chosen and not switched
            raise

    async def _activate_all(self, stacks: Collection[Stack], must: Collection[Slot]) -> bool:
        """Activate what the plans need, strongest last. False when one of the stacks changed meanwhile."""
        changes, now = self._registries.changes, datetime.now(UTC)
        for stack in stacks:
            below: Slot | None = None
            for slot in reversed(stack.plan or ()):
                if slot.order:
                    pass
                elif slot.descriptor.on_activate is None:
                    self._note_activation(stack, slot, now, 0.0)
                else:
                    await self._activate(stack, slot, below, must)
                    if changes != self._registries.changes and any(one.plan is None for one in stacks):
                        return False
                    changes, now = self._registries.changes, datetime.now(UTC)
                below = slot
        return True

    async def _activate(self, stack: Stack, slot: Slot, below: Slot | None, must: Collection[Slot]) -> None:
        """Run the on_activate of *slot*. Raise what it raises if *slot* is one of *must*, else note it."""
        began = time.perf_counter()
        planned = [] if below is None else [below]
        try:
            await self._run_descriptor_hook("on_activate", slot, planned)
        except HookError as error:
            if slot not in must:
                self._registries.fail(slot, error)
                return
            entry = slot.view_as(EntryState.FAILED, str(error))
            self._events.post(DescriptorFailed(entry=entry, source=entry.source, reason=entry.reason, error=error))
            raise
        finally:
            planned.clear()
        self._note_activation(stack, slot, datetime.now(UTC), time.perf_counter() - began)

    def _note_activation(self, stack: Stack, slot: Slot, at: datetime, seconds: float) -> None:
        slot.order = self.take_order()
        slot.activated_at, slot.activation_seconds = at, seconds
        stack.activated = (*stack.activated, slot)

    def take_order(self) -> int:
        """Return the next number in the order of activations, packs' own hooks among them."""
        self._activations += 1
        return self._activations

    def active(self, key: Key) -> Slot | None:
        """Return the slot that is active on a stack."""
        stack = self._registries.find(key)
        return stack.in_force[0] if stack is not None and stack.in_force else None

    def _switch(self, stacks: Mapping[Key, Stack]) -> Leaving:
        """Show readers the new state, without a pause between stacks; return what goes out of force."""
        leaving: Leaving = {}
        for key, stack in stacks.items():
            previous, before = stack.active, (*stack.in_force, *stack.activated, *stack.withdrawn_in_use())
            renewed = stack.switch()
            self._registries.publish(key, stack)
            if self._events.is_heard:
                for slot, old in renewed:
                    self._tell(slot, old, previous)
            for slot in stack.in_force:
                slot.is_shown = True
            leaving.update((slot, previous) for slot in before if slot not in stack.in_force)
        self._registries.note_switch(stacks)
        return leaving

    def _tell(self, slot: Slot, old: Entry | None, previous: Entry | None) -> None:
        """Post what readers see now of a slot and did not see before."""
        entry = slot.view()
        if entry.state.in_force and not slot.is_shown:
            self._events.post(DescriptorActivated(entry=entry, previous=previous, source=entry.source))
        elif old is not None and old.state is entry.state:
            return
        elif entry.state is EntryState.GATED:
            self._events.post(DescriptorGated(entry=entry, previous=previous, source=entry.source, reason=entry.reason))
        elif entry.state is EntryState.FAILED and slot.failure is not None:
            self._events.post(
                DescriptorFailed(
                    entry=entry, previous=previous, source=entry.source, reason=entry.reason, error=slot.failure
                )
            )

    # -- going out of force ------------------------------------------------------------------------------------

    async def retire(self, leaving: Mapping[Slot, Entry | None]) -> None:
        """Let calls under way end, up to the limit, then deactivate, the last activated first."""
        going = sorted(leaving, key=lambda slot: slot.order, reverse=True)
        await self._drain([slot for slot in going if slot.is_used])
        for slot in going:
            await self._deactivate(slot, leaving[slot])

    async def _drain(self, busy: Sequence[Slot]) -> None:
        if not busy:
            return
        try:
            async with asyncio.timeout(self._drain_timeout):
                for slot in busy:
                    await slot.users.drained()
        except TimeoutError:
            names = ", ".join(f"{slot.key[0]}:{slot.key[1]}" for slot in busy if slot.is_used)
            self._logger.warning("calls on %s did not end within %s s", names, self._drain_timeout)

    async def _deactivate(self, slot: Slot, previous: Entry | None) -> None:
        if not slot.order:  # it was called by its full id, and never in force
            return
        error: HookError | None = None
        try:
            await self._run_descriptor_hook("on_deactivate", slot, [])
        except HookError as raised:
            error = raised
            current_raised().append(raised)
            self._logger.warning("%s", raised)
        slot.order = 0
        if slot.is_shown:
            slot.is_shown = False
            entry = slot.view()
            self._events.post(DescriptorDeactivated(entry=entry, previous=previous, source=entry.source, error=error))

    def withdraw(self) -> Leaving:
        """Show readers that nothing is in force any more; return what goes, and who was active before."""
        leaving: Leaving = {}
        stacks = self._registries.all()
        for key, stack in stacks.items():
            in_use = [slot for slot in stack.eligible if slot.is_used]
            leaving.update(dict.fromkeys((*stack.in_force, *stack.activated, *in_use), stack.active))
            for slot in stack.slots():
                self._registries.pull(slot)
            stack.hide()
            self._registries.publish(key, stack)
        self._registries.note_switch(stacks)
        return leaving

    # -- hooks -------------------------------------------------------------------------------------------------

    async def _run_descriptor_hook(self, name: str, slot: Slot, planned: Sequence[Slot]) -> None:
        descriptor = slot.descriptor
        if (hook := getattr(descriptor, name)) is not None:
            where = f"{name} of {descriptor.kind}:{descriptor.id} (pack {slot.source.pack})"
            await self.run_hook(where, hook, self._context(slot, planned))

    def _context(self, slot: Slot, planned: Sequence[Slot]) -> LifecycleContext:
        given = slot.owner.context
        return LifecycleContext(
            options=slot.merged_options(),
            services=given.services,
            logger=given.logger,
            manifest_entry=given.manifest_entry,
            source=given.source,
            secrets=slot.owner.scope,
            port=given._port,  # noqa: SLF001 - a context made from a context
            entry=self._registries.view(slot),
            find_below=lambda: self._beneath(slot, planned),
        )

    def _beneath(self, slot: Slot, planned: Sequence[Slot]) -> Entry | None:
        """Return who is in force beneath *slot* now; while it is being activated, who will be."""
        stack = self._registries.find(slot.key)
        in_force = stack.in_force if stack is not None else ()
        if slot in in_force:
            beneath = in_force[in_force.index(slot) + 1 :]
        elif planned:
            beneath = tuple(planned)
        else:
            mine = rank(slot)
            beneath = tuple(one for one in in_force if rank(one) < mine)
        return self._registries.view(beneath[0]) if beneath else None

    async def run_hook(self, where: str, hook: Hook | None, context: PackContext) -> None:
        """Run a hook, sync or async, within the limit. Whatever it raises becomes a HookError without secrets."""
        if hook is None:
            return
        clock = None
        with Border() as border:  # a hook is foreign code: it fails into a record
            async with asyncio.timeout(self._hook_timeout) as clock:
                await contained(lambda: call_with(hook, context))
        if border.error is None:
            return
        if clock is not None and clock.expired():
            message = f"took longer than {self._hook_timeout} s"
        else:
            message = f"raised {self._masker.describe(border.error)}"
        raise HookError(where, message) from self._masker.cleanse(border.error)
