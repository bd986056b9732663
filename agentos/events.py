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

from agentos.model.overrides import Override
from agentos.model.source import Source
from agentos.secrets.masking import MaskingLogger
from agentos.stacks.entry import Entry

Listener = Callable[[Any], Any]

_delivering: ContextVar[bool] = ContextVar("agentos_delivering", default=False)


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


class EventBus:
    """Delivers events one after another, in the order in which things happened."""

    def __init__(self, logger: MaskingLogger) -> None:
        self._signal = Signal()
        self._queue: deque[Event] = deque()
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
            self._queue.append(event)

    async def deliver(self, *, nested: bool = False) -> None:
        """Tell everything noted so far and return when it is told.

        Inside a listener or a hook it is told at once: waiting for a turn there could wait for itself.
        """
        if nested or _delivering.get():
            await self._empty()
        elif self._queue or self._turn.locked():
            async with self._turn:
                await self._empty()

    async def _empty(self) -> None:
        token = _delivering.set(True)
        try:
            while self._queue:
                await self._tell(self._queue.popleft())
        finally:
            _delivering.reset(token)

    async def _tell(self, event: Event) -> None:
        # Not `send`: it stops at the first error, keeps no order, and can't mix sync with async.
        for listener in cast("list[Listener]", list(self._signal.receivers.values())):
            try:
                answer = listener(event)
                if inspect.isawaitable(answer):
                    await answer
            except Exception:  # a listener is foreign code and has no vote
                self._logger.exception("a listener raised on %s", event.type)
