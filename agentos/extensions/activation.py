"""Walking a stack from who was in force to who should be.

Every change is the same act: change the facts, decide again, and walk. Make before break: what is new is activated
first, then readers are switched over in one step, then calls under way on what is old may end, then what is old is
deactivated. Undoing a change that failed is the same act with the facts put back.
"""

import asyncio
import inspect
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import attrs

from agentos.base.claims import Change, Claims, current_raised
from agentos.base.foreign import FOREIGN, call_with, let_cancellation_pass, to_the_end
from agentos.errors import HookError
from agentos.extensions.events import (
    DescriptorActivated,
    DescriptorDeactivated,
    DescriptorFailed,
    DescriptorGated,
    EventBus,
)
from agentos.model.descriptor import Descriptor, Hook
from agentos.model.pack_context import PackContext
from agentos.model.source import Source
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.secrets.sources import SecretScope
from agentos.stacks.decide import Facts, Offer, Verdict, decide
from agentos.stacks.entry import Entry, EntryState, LifecycleContext
from agentos.stacks.in_use import Users
from agentos.stacks.registry import Stack

Key = tuple[str, str]


class Owner(Protocol):
    """Whoever brought descriptors: a loaded pack, or the host."""

    source: Source
    scope: SecretScope
    context: PackContext
    seats: "list[Seat]"
    disabled: str | None


class Seat:
    """A descriptor's place on its stack, and what has become of it. The part that changes."""

    __slots__ = (
        "activated_at",
        "activation_seconds",
        "entry",
        "failure",
        "offer",
        "order",
        "owner",
        "shown",
        "users",
        "warm",
    )

    def __init__(
        self, descriptor: Descriptor[Any], owner: Owner, sequence: int, base_priority: int | None = None
    ) -> None:
        self.owner = owner
        self.offer = Offer(descriptor, owner.source, sequence, base_priority, owner=self)
        self.users = Users()
        self.entry: Entry | None = None
        self.warm = False
        """Its on_activate has finished, its on_deactivate has not begun."""
        self.shown = False
        """Readers have seen it in force."""
        self.order = 0
        self.failure: HookError | None = None
        self.activated_at: datetime | None = None
        self.activation_seconds: float | None = None

    @property
    def key(self) -> Key:
        """Name the stack this is on."""
        return self.offer.descriptor.key

    def place(self) -> Entry:
        """Return the entry as last published, or one that is waiting for its turn."""
        if self.entry is not None:
            return self.entry
        descriptor = self.offer.descriptor
        return Entry(
            descriptor=descriptor,
            sequence=self.offer.sequence,
            source=self.offer.source,
            priority=descriptor.priority or 0,
            state=EntryState.SHADOWED,
            reason="waits for the change under way on its stack",
            seat=self,
        )


class _Stack:
    """The seats of one stack, and which of them are in force."""

    __slots__ = ("chain", "dirty", "seats", "warm")

    def __init__(self) -> None:
        self.seats: list[Seat] = []
        self.chain: tuple[Seat, ...] = ()
        self.warm: list[Seat] = []
        self.dirty = False


class Settler:
    """Keeps every stack in the state that the facts ask for."""

    def __init__(
        self,
        *,
        claims: Claims,
        events: EventBus,
        masker: Masker,
        logger: MaskingLogger,
        facts: Callable[[], Facts],
        publish: Callable[[Key, Stack | None], None],
        switched: Callable[[Collection[Key]], None],
        hook_timeout: float | None,
        drain_timeout: float,
    ) -> None:
        self._claims = claims
        self._events = events
        self._masker = masker
        self._logger = logger
        self._facts = facts
        self._publish = publish
        self._switched = switched
        self._hook_timeout = hook_timeout
        self._drain_timeout = drain_timeout
        self._stacks: dict[Key, _Stack] = {}
        self._activations = 0

    # -- facts about stacks ------------------------------------------------------------------------------------

    def seats(self, key: Key) -> Sequence[Seat]:
        """Return the seats on one stack."""
        stack = self._stacks.get(key)
        return stack.seats if stack else ()

    def all_keys(self) -> list[Key]:
        """Return every stack there is."""
        return list(self._stacks)

    def push(self, seat: Seat) -> None:
        """Put *seat* on its stack."""
        stack = self._stacks.setdefault(seat.key, _Stack())
        stack.seats.append(seat)
        stack.dirty = True

    def pull(self, seat: Seat) -> None:
        """Take *seat* off its stack."""
        stack = self._stacks[seat.key]
        stack.seats.remove(seat)
        stack.dirty = True

    def touch(self, seats: Iterable[Seat]) -> None:
        """Note that a fact about *seats* changed: they are decided again, and one that had failed is tried again."""
        for seat in seats:
            seat.failure = None
            self._stacks[seat.key].dirty = True

    # -- the one act -------------------------------------------------------------------------------------------

    async def carry_out(self, change: Change, keys: Iterable[Key], alter: Callable[[], None]) -> None:
        """Alter the facts and walk, to the end: an activation that fails is contained."""
        keys = await self._claim(change, keys)
        try:
            alter()
            if self._needs_walk(keys):
                await to_the_end(self._walk(keys))
        finally:
            self._let_go(change, keys)

    async def attempt(
        self,
        change: Change,
        keys: Iterable[Key],
        alter: Callable[[], Collection[Seat]],
        undo: Callable[[], None],
    ) -> None:
        """Alter the facts and walk; if one of the seats that *alter* returns fails to activate, undo and raise."""
        keys = await self._claim(change, keys)
        try:
            await self._walk(keys, must=alter())
        except BaseException:
            undo()
            await to_the_end(self._walk(keys))
            raise
        finally:
            self._let_go(change, keys)

    async def reconsider(self, change: Change, seats: Iterable[Seat]) -> None:
        """Decide again on the stacks of *seats*, because a fact about them changed."""
        seats = list(seats)

        def alter() -> None:
            self.touch(seat for seat in seats if seat in self.seats(seat.key))

        await self.carry_out(change, [seat.key for seat in seats], alter)

    async def _claim(self, change: Change, keys: Iterable[Key]) -> list[Key]:
        """Claim the stacks. Those that a change further up is walking are left to it: it looks again at its end."""
        keys = list(dict.fromkeys(keys))
        refused = await self._claims.acquire(change, [("stack", key) for key in keys])
        return [key for key in keys if ("stack", key) not in refused]

    def _let_go(self, change: Change, keys: Iterable[Key]) -> None:
        self._claims.release(change, [("stack", key) for key in keys])

    def _needs_walk(self, keys: Iterable[Key]) -> bool:
        return any(stack.dirty for key in keys if (stack := self._stacks.get(key)) is not None)

    async def _walk(self, keys: Sequence[Key], must: Collection[Seat] = ()) -> None:
        plans: dict[Key, list[Verdict]] = {}
        while True:
            for key in keys:
                stack = self._stacks.get(key)
                if stack is not None and stack.dirty:
                    stack.dirty = False
                    plans[key] = decide([seat.offer for seat in stack.seats], self._facts())
            if not plans:
                return
            if await self._warm_up(plans, must):
                leaving = self._switch(plans)
                plans = {}
                if leaving:
                    await to_the_end(self.retire(leaving))

    async def _warm_up(self, plans: dict[Key, list[Verdict]], must: Collection[Seat]) -> bool:
        """Activate what the plans need, strongest last. False when the facts changed meanwhile."""
        for key, verdicts in plans.items():
            chain: list[Seat] = [verdict.offer.owner for verdict in verdicts if verdict.state.in_force]
            for position in range(len(chain) - 1, -1, -1):
                seat = chain[position]
                if seat.warm:
                    continue
                below = chain[position + 1] if position + 1 < len(chain) else None
                error = await self._activate(seat, below)
                if error is not None:
                    if seat in must:
                        self._tell_of_failure(seat, error)
                        raise error
                    seat.failure = error
                    self._stacks[key].dirty = True
                if seat.offer.descriptor.on_activate is not None and self._needs_walk(plans):
                    return False
        return True

    def _tell_of_failure(self, seat: Seat, error: HookError) -> None:
        entry = attrs.evolve(seat.place(), state=EntryState.FAILED, reason=str(error))
        self._events.post(DescriptorFailed(entry=entry, source=entry.source, reason=entry.reason, error=error))

    async def _activate(self, seat: Seat, below: Seat | None) -> HookError | None:
        descriptor = seat.offer.descriptor
        began = time.perf_counter()
        planned = [] if below is None else [below]
        if descriptor.on_activate is not None:
            try:
                await self.run_hook(
                    f"on_activate of {descriptor.kind}:{descriptor.id} (pack {seat.offer.source.pack})",
                    descriptor.on_activate,
                    self._context(seat, planned),
                )
            except HookError as error:
                return error
            finally:
                planned.clear()
        seat.order = self.take_order()
        seat.warm = True
        seat.activated_at = datetime.now(UTC)
        seat.activation_seconds = time.perf_counter() - began
        self._stacks[seat.key].warm.append(seat)
        return None

    def take_order(self) -> int:
        """Return the next number in the order of activations, packs' own hooks among them."""
        self._activations += 1
        return self._activations

    def active(self, key: Key) -> Seat | None:
        """Return the seat that is active on a stack."""
        stack = self._stacks.get(key)
        return stack.chain[0] if stack is not None and stack.chain else None

    def _switch(self, plans: dict[Key, list[Verdict]]) -> dict[Seat, Entry | None]:
        """Show readers the new state, without a pause between stacks; return what goes out of force."""
        leaving: dict[Seat, Entry | None] = {}
        for key, verdicts in plans.items():
            stack = self._stacks[key]
            previous = stack.chain[0].place() if stack.chain else None
            stack.chain = tuple(verdict.offer.owner for verdict in verdicts if verdict.state.in_force)
            entries = tuple(self._show(verdict, previous) for verdict in verdicts)
            if entries:
                active = entries[_index_of_active(verdicts)] if stack.chain else None
                self._publish(key, Stack(entries, active))
            else:
                self._publish(key, None)
            leaving.update((seat, previous) for seat in stack.warm if seat not in stack.chain)
            if not stack.seats and not stack.warm:
                del self._stacks[key]
        self._switched(plans)
        return leaving

    def _show(self, verdict: Verdict, previous: Entry | None) -> Entry:
        seat: Seat = verdict.offer.owner
        before = seat.entry
        options = self._options(seat, verdict.options)
        if before is None or (before.state, before.reason, before.priority, before.activated_at, before.options) != (
            verdict.state,
            verdict.reason,
            verdict.priority,
            seat.activated_at,
            options,
        ):
            seat.entry = Entry(
                descriptor=verdict.offer.descriptor,
                sequence=verdict.offer.sequence,
                source=verdict.offer.source,
                priority=verdict.priority,
                state=verdict.state,
                reason=verdict.reason,
                activated_at=seat.activated_at,
                activation_seconds=seat.activation_seconds,
                options=options,
                seat=seat,
            )
        assert seat.entry is not None  # noqa: S101 - set above
        if verdict.state.in_force and not seat.shown:
            seat.shown = True
            if self._events.is_heard:
                self._events.post(DescriptorActivated(entry=seat.entry, previous=previous, source=seat.offer.source))
        elif before is None or before.state is not verdict.state:
            self._tell_why_not(seat, seat.entry, previous)
        return seat.entry

    def _tell_why_not(self, seat: Seat, entry: Entry, previous: Entry | None) -> None:
        told: dict[str, Any] = {
            "entry": entry,
            "previous": previous,
            "source": entry.source,
            "reason": entry.reason,
        }
        if entry.state is EntryState.GATED:
            self._events.post(DescriptorGated(**told))
        elif entry.state is EntryState.FAILED and seat.failure is not None:
            self._events.post(DescriptorFailed(error=seat.failure, **told))

    async def retire(self, leaving: Mapping[Seat, Entry | None]) -> None:
        """Let calls under way end, up to the limit, then deactivate, the last activated first.

        With each seat comes who was active before it left.
        """
        going = sorted(leaving, key=lambda seat: seat.order, reverse=True)
        await self._drain(going)
        for seat in going:
            await self._deactivate(seat, leaving[seat])

    async def _drain(self, leaving: Iterable[Seat]) -> None:
        busy = [seat for seat in leaving if seat.users.count]
        if not busy:
            return
        try:
            async with asyncio.timeout(self._drain_timeout):
                for seat in busy:
                    await seat.users.drained()
        except TimeoutError:
            names = ", ".join(f"{seat.key[0]}:{seat.key[1]}" for seat in busy if seat.users.count)
            self._logger.warning("calls on %s did not end within %s s", names, self._drain_timeout)

    async def _deactivate(self, seat: Seat, previous: Entry | None) -> None:
        descriptor = seat.offer.descriptor
        error: HookError | None = None
        if descriptor.on_deactivate is not None:
            try:
                await self.run_hook(
                    f"on_deactivate of {descriptor.kind}:{descriptor.id} (pack {seat.offer.source.pack})",
                    descriptor.on_deactivate,
                    self._context(seat, []),
                )
            except HookError as raised:
                error = raised
                current_raised().append(raised)
                self._logger.warning("%s", raised)
        seat.warm = False
        stack = self._stacks[seat.key]
        stack.warm.remove(seat)
        if not stack.seats and not stack.warm and not stack.dirty:
            del self._stacks[seat.key]
        if seat.shown:
            seat.shown = False
            entry = seat.place()
            self._events.post(
                DescriptorDeactivated(entry=entry, previous=previous, source=seat.offer.source, error=error)
            )

    def _options(self, seat: Seat, said: Mapping[str, Any]) -> Mapping[str, Any]:
        given = seat.owner.context.options
        return {**given, **said} if said else given

    def _context(self, seat: Seat, planned: Sequence[Seat]) -> LifecycleContext:
        given = seat.owner.context
        descriptor = seat.offer.descriptor
        said = self._facts().overrides.resolve(descriptor.kind, descriptor.id, seat.offer.source.pack)
        return LifecycleContext(
            options=self._options(seat, said.options),
            services=given.services,
            logger=given.logger,
            manifest_entry=given.manifest_entry,
            source=given.source,
            secrets=seat.owner.scope,
            port=given._port,  # noqa: SLF001 - a context made from a context
            entry=seat.place(),
            find_below=lambda: self._beneath(seat, planned),
        )

    def _beneath(self, seat: Seat, planned: Sequence[Seat]) -> Entry | None:
        """Return who is in force beneath *seat* now; while it is being activated, who will be."""
        stack = self._stacks.get(seat.key)
        chain = stack.chain if stack is not None else ()
        if seat in chain:
            beneath = chain[chain.index(seat) + 1 :]
        elif planned:
            beneath = tuple(planned)
        else:
            mine = seat.place()
            beneath = tuple(one for one in chain if _rank(one.place()) < _rank(mine))
        return beneath[0].place() if beneath else None

    async def run_hook(self, where: str, hook: Hook | None, context: PackContext) -> None:
        """Run a hook, sync or async, within the limit. Whatever it raises becomes a HookError without secrets."""
        if hook is None:
            return
        failure: BaseException
        clock = None
        try:
            answer = call_with(hook, context)
            if inspect.isawaitable(answer):
                async with asyncio.timeout(self._hook_timeout) as clock:
                    await answer
        except FOREIGN as error:  # a hook is foreign code: it fails into a record
            let_cancellation_pass(error)
            failure = error
        else:
            return
        if clock is not None and clock.expired():
            message = f"took longer than {self._hook_timeout} s"
        else:
            message = f"raised {self._masker.describe(failure)}"
        raise HookError(where, message) from self._masker.cleanse(failure)

    # -- the end -----------------------------------------------------------------------------------------------

    def withdraw(self) -> dict[Seat, Entry | None]:
        """Show readers that nothing is in force any more; return what goes, and who was active before."""
        leaving: dict[Seat, Entry | None] = {}
        for key, stack in self._stacks.items():
            active = stack.chain[0].place() if stack.chain else None
            leaving.update((seat, active) for seat in stack.warm)
            stack.chain = ()
            self._publish(key, None)
        self._switched(self._stacks)
        return leaving


def _rank(entry: Entry) -> tuple[int, int]:
    return (entry.priority, entry.sequence)


def _index_of_active(verdicts: Iterable[Verdict]) -> int:
    return next(index for index, verdict in enumerate(verdicts) if verdict.state is EntryState.ACTIVE)


def missing_secrets(offer: Offer) -> list[str]:
    """Return the secrets that gate *offer*."""
    required = offer.descriptor.required_secrets
    if not required:
        return []
    scope: SecretScope = offer.owner.owner.scope
    return [secret.id for secret in required if not secret.optional and not scope.has(secret.id)]


def failure(offer: Offer) -> str | None:
    """Return why *offer*'s last activation failed."""
    seat: Seat = offer.owner
    return None if seat.failure is None else str(seat.failure)
