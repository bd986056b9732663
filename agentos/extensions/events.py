"""What happened, told to observers. They can't vote: one that raises is logged and changes nothing."""

import asyncio
import inspect
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, ClassVar, cast

import attrs
from blinker import Signal

from agentos.base.foreign import Border
from agentos.base.locks import Change, current_change
from agentos.model.overrides import Override
from agentos.model.source import Source
from agentos.secrets.masking import MaskingLogger
from agentos.stacks.entry import Entry

Listener = Callable[[Any], Any]

_telling: ContextVar["_Delivery | None"] = ContextVar("agentos_telling", default=None)


def _now() -> datetime:
    return datetime.now(UTC)


@attrs.frozen(kw_only=True)
class Event:
    """Something that happened. `source` says whose doing it was, if a pack's."""

    type: ClassVar[str]
    source: Source | None = None
    timestamp: datetime = attrs.field(factory=_now)


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
    """An override was set at run time, or taken away (`override` is None)."""

    type: ClassVar[str] = "override:changed"
    kind: str
    id: str
    override: Override | None


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


class EventBus:
    """Delivers events one after another, in the order in which things happened."""

    def __init__(self, logger: MaskingLogger) -> None:
        self._signal = Signal()
        self._queue: deque[tuple[int, Event, Change | None]] = deque()
        self._posted = 0
        self._untold: dict[int, None] = {}
        self._told = asyncio.Condition()
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
            self._queue.append((self._posted, event, current_change()))

    async def deliver(self, change: Change | None = None) -> None:
        """Return when what was noted so far is told; for *change* that has just ended, what it noted.

        Inside a listener or a hook only its own events are told, and at once: waiting for a turn there could wait for
        itself.
        """
        around, telling = current_change(), _telling.get()
        if around is not None or (telling is not None and telling.open):
            await self._empty(lambda origin: _is_of(origin, change or around))
        elif self._untold:
            last = self._posted
            async with self._turn:
                await self._empty(lambda _: True)
            async with self._told:
                await self._told.wait_for(lambda: not self._untold or next(iter(self._untold)) > last)

    async def _empty(self, is_wanted: Callable[[Change | None], bool]) -> None:
        while (noted := next((one for one in self._queue if is_wanted(one[2])), None)) is not None:
            self._queue.remove(noted)
            try:
                await self._tell(noted[1])
            finally:
                self._untold.pop(noted[0], None)
                async with self._told:
                    self._told.notify_all()

    async def _tell(self, event: Event) -> None:
        # Not `send`: it stops at the first error, keeps no order, and can't mix sync with async.
        for listener in cast("list[Listener]", list(self._signal.receivers.values())):
            telling = _Delivery()
            token = _telling.set(telling)
            try:
                with Border() as border:  # a listener is foreign code and has no vote
                    answer = listener(event)
                    if inspect.isawaitable(answer):
                        await answer
            finally:
                telling.open = False
                _telling.reset(token)
            if border.error is not None:
                self._logger.error("a listener raised on %s", event.type, exc_info=border.error)
