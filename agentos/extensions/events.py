"""What happened, told to observers. They can't vote: one that raises is logged and changes nothing."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, ClassVar, cast

import attrs
from blinker import Signal

from agentos.base.containment import contained
from agentos.base.foreign import Border
from agentos.base.locks import Change, current_change
from agentos.extensions.event import Event
from agentos.model.overrides import Override
from agentos.model.trouble import Trouble
from agentos.secrets.masking import MaskingLogger
from agentos.stacks.entry import Entry

Listener = Callable[[Any], Any]

_telling: ContextVar["_Delivery | None"] = ContextVar("agentos_telling", default=None)


@attrs.frozen(kw_only=True)
class PackEvent(Event):
    """Something happened to a pack."""

    key: str
    pack: str | None
    version: str | None = None


@attrs.frozen(kw_only=True)
class PackLoaded(PackEvent):
    """A pack is loaded: its hooks have run and its descriptors are on their stacks."""

    type: ClassVar[str] = "pack:loaded"


@attrs.frozen(kw_only=True)
class PackFailed(PackEvent):
    """A pack could not be loaded, reloaded or enabled; nothing of it is left."""

    type: ClassVar[str] = "pack:failed"
    error: BaseException
    reason: str


@attrs.frozen(kw_only=True)
class PackSkipped(PackEvent):
    """An entry was passed over: `disabled` or `already_loaded`."""

    type: ClassVar[str] = "pack:skipped"
    reason: str


@attrs.frozen(kw_only=True)
class PackUnloaded(PackEvent):
    """A pack is gone. `error` is what its own `on_deactivate` raised, if it did."""

    type: ClassVar[str] = "pack:unloaded"
    error: BaseException | None = None


@attrs.frozen(kw_only=True)
class DescriptorEvent(Event):
    """Something happened to an entry of a stack."""

    entry: Entry
    previous: Entry | None = None
    reason: str = ""

    @property
    def kind(self) -> str:
        """Return the entry's kind."""
        return self.entry.kind

    @property
    def id(self) -> str:
        """Return the entry's id."""
        return self.entry.id

    @property
    def pack(self) -> str:
        """Return the name of the pack that brought it."""
        return self.entry.source.pack

    @property
    def version(self) -> str | None:
        """Return the version of the pack that brought it."""
        return self.entry.source.version


@attrs.frozen(kw_only=True)
class DescriptorActivated(DescriptorEvent):
    """An entry is in force, active or wrapped. `previous` is who was active before."""

    type: ClassVar[str] = "descriptor:activated"


@attrs.frozen(kw_only=True)
class DescriptorDeactivated(DescriptorEvent):
    """An entry went out of force. `error` is what its `on_deactivate` raised, if it did."""

    type: ClassVar[str] = "descriptor:deactivated"
    error: BaseException | None = None


@attrs.frozen(kw_only=True)
class DescriptorGated(DescriptorEvent):
    """An entry waits for a secret."""

    type: ClassVar[str] = "descriptor:gated"


@attrs.frozen(kw_only=True)
class DescriptorFailed(DescriptorEvent):
    """An entry's activation failed; the next best entry that works is in force."""

    type: ClassVar[str] = "descriptor:failed"
    error: BaseException


@attrs.frozen(kw_only=True)
class OverrideChanged(Event):
    """An override was set at run time, or taken away (`override` is None).

    `trouble` says that it is about nothing that is there, if so; it counts for what comes later all the same.
    """

    type: ClassVar[str] = "override:changed"
    kind: str
    id: str
    override: Override | None
    trouble: Trouble | None = None


@attrs.frozen(kw_only=True)
class SecretChanged(Event):
    """A secret came, went or has another value. The value itself is never told."""

    type: ClassVar[str] = "secret:changed"
    id: str


def _is_of(origin: Change | None, change: Change | None) -> bool:
    if origin is None or change is None:
        return origin is change
    return origin.descends_from(change)


class _Delivery:
    """One event being told to one listener. What the listener starts is nested only as long as this lasts."""

    __slots__ = ("open",)

    def __init__(self) -> None:
        self.open = True


@attrs.define(eq=False)
class _Noted:
    """An event that is noted, and those who have not heard it; None until the first one is told."""

    number: int
    event: Event
    origin: Change | None
    listeners: deque[Listener] | None = None
    telling: int = 0


class EventBus:
    """Delivers events one after another, in the order in which things happened."""

    def __init__(self, logger: MaskingLogger) -> None:
        self._signal = Signal()
        self._queue: deque[_Noted] = deque()
        self._posted = 0
        self._untold: dict[int, None] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._turn = asyncio.Lock()
        self._logger = logger

    @property
    def is_heard(self) -> bool:
        """Tell whether anybody listens: what nobody hears need not be said."""
        return bool(self._signal.receivers)

    def on(self, listener: Listener) -> Listener:
        """Call *listener* with every event from now on. Returns it, so it decorates too."""
        if not callable(listener):
            raise TypeError(f"expected a callable listener, got {type(listener).__name__}")
        self._signal.connect(listener, weak=False)
        return listener

    def off(self, listener: Listener) -> None:
        """Stop calling *listener*."""
        self._signal.disconnect(listener)

    def post(self, event: Event) -> None:
        """Note that something happened; `deliver` tells it."""
        if self._signal.receivers:
            self._posted += 1
            self._untold[self._posted] = None
            self._queue.append(_Noted(self._posted, event, current_change()))

    async def deliver(self, change: Change | None = None) -> None:
        """Return when what was noted so far is told; for *change* that has just ended, what it noted.

        Inside a listener or a hook what it noted itself is told at once, after what was noted before: waiting for a
        turn there could wait for itself.
        """
        around, telling = current_change(), _telling.get()
        if around is not None or (telling is not None and telling.open):
            mine = (one.number for one in reversed(self._queue) if _is_of(one.origin, change or around))
            await self._tell_up_to(next(mine, 0))
        elif self._untold:
            last = self._posted
            async with self._turn:
                while self._queue and (number := self._queue[0].number) <= last:
                    await self._heard(number - 1)
                    await self._tell_up_to(number)
            await self._heard(last)

    async def _heard(self, last: int) -> None:
        """Return when everybody has heard what was noted up to *last*, whoever tells it."""
        while self._untold and next(iter(self._untold)) <= last:
            told = asyncio.get_running_loop().create_future()
            self._waiting.append(told)
            await told

    async def _tell_up_to(self, last: int) -> None:
        """Tell what is noted up to *last* to those who have not heard it: each hears everything in order, and once."""
        while self._queue and (noted := self._queue[0]).number <= last:
            if noted.listeners is None:
                noted.listeners = deque(cast("Iterable[Listener]", self._signal.receivers.values()))
            listener = noted.listeners.popleft() if noted.listeners else None
            if not noted.listeners:
                self._queue.popleft()
            noted.telling += 1
            try:
                if listener is not None:
                    await self._tell(listener, noted.event)
            finally:
                noted.telling -= 1
                if not (noted.telling or noted.listeners):
                    self._end(noted)

    def _end(self, noted: _Noted) -> None:
        """Note that everybody has heard, and wake those who wait for it."""
        self._untold.pop(noted.number, None)
        waiting, self._waiting = self._waiting, []
        for told in waiting:
            if not told.done():
                told.set_result(None)

    async def _tell(self, listener: Listener, event: Event) -> None:
        # Not `send`: it stops at the first error, keeps no order, and can't mix sync with async.
        telling = _Delivery()
        token = _telling.set(telling)
        try:
            with Border() as border:  # a listener is foreign code and has no vote
                await contained(lambda: listener(event))
        finally:
            telling.open = False
            _telling.reset(token)
        if border.error is not None:
            self._logger.error("a listener raised on %s", event.type, exc_info=border.error)
