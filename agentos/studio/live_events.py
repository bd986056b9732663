"""What happens in the host, kept within bounds, and the streams that tell pages of it.

One listener keeps the newest events and calls; each stream remembers how far it came. However many events there are, a
stream is sent at most a few messages a second, and a reader that is too slow is told how many it missed.
"""

import asyncio
import itertools
import json
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import attrs
from jinja2 import Environment
from starlette.responses import Response, StreamingResponse

from agentos.access.proposals import Proposal
from agentos.base.foreign import Border
from agentos.extensions.event import Event
from agentos.model.principal import Principal
from agentos.studio.sign_in import StudioSession, is_operator
from agentos.tools.tool_events import ToolApproval, ToolEvent, ToolFinished, ToolProgress, ToolStarted

if TYPE_CHECKING:
    from agentos.host import AgentOS

EVENTS_KEPT: Final = 2_000
CALLS_KEPT: Final = 1_000
STEPS_KEPT: Final = 100
"""How many steps of one call are kept: the first, and the newest."""
STREAMS: Final = 100
STREAMS_PER_SESSION: Final = 12
_TICK: Final = 0.25
"""For how many seconds events are gathered before pages are told."""
_HEARTBEAT: Final = 15.0
_LOOK: Final = 0.5
"""After how many seconds it is looked for what waits for approval, also in other hosts on the store."""
_WAITED: Final = 200
_ROWS: Final = 50
"""How many rows one message has at most."""
_TOPICS: Final[Mapping[str, tuple[str, ...]]] = {
    "pack": ("packs", "stacks", "tools"),
    "descriptor": ("packs", "stacks"),
    "override": ("stacks",),
    "secret": ("secrets", "stacks"),
    "tools": ("tools", "pins"),
    "tool": ("calls",),
    "proposal": ("approvals",),
    "worker": ("workers", "packs"),
    "channel": ("channels",),
    "workflow": ("workflows",),
}
"""Which parts of pages show what events of a sort are about."""


@attrs.frozen
class CallStep:
    """Something that happened in a call, and when."""

    at: datetime
    what: str
    note: str = ""


@attrs.define(eq=False)
class SeenCall:
    """A call as its events tell of it."""

    number: int
    tool: str
    principal: str
    call_id: str | None
    pack: str
    began: datetime
    state: str = "running"
    seconds: float | None = None
    error: str | None = None
    done: float | None = None
    total: float | None = None
    message: str = ""
    proposal: str | None = None
    changed: int = 0
    """The number of the last event about it."""
    steps: deque[CallStep] = attrs.field(factory=lambda: deque(maxlen=STEPS_KEPT))


class LiveEvents:
    """Keeps what happened last, and wakes the streams that tell of it."""

    def __init__(self, host: "AgentOS") -> None:
        self._host = host
        self._numbers = itertools.count(1)
        self.last = 0
        """The number of the newest event."""
        self.events: deque[tuple[int, Event]] = deque(maxlen=EVENTS_KEPT)
        self.calls: OrderedDict[int, SeenCall] = OrderedDict()
        """The newest calls by their number, the one that changed last at the end."""
        self._open: dict[Any, deque[SeenCall]] = {}
        """Calls that run, by what their events have in common."""
        self.marks: dict[str, int] = {}
        """The number of the newest event of each topic."""
        self._streams: set[asyncio.Task[Any]] = set()
        self._woken = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self._waiting: Any = None
        self.waited: deque[str] = deque(maxlen=_WAITED)
        """The ids of proposals that were seen waiting, the latest at the end."""

    # -- hearing -----------------------------------------------------------------------------------------------

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen to the host for the time of the block."""
        self._host.extensions.on(self._hear)
        try:
            yield
        finally:
            self._host.extensions.off(self._hear)

    def _hear(self, event: Event) -> None:
        self.last = number = next(self._numbers)
        if isinstance(event, ToolEvent):
            self._note_call(number, event)
        self.events.append((number, event))
        topics = _TOPICS.get(event.type.partition(":")[0], ())
        self.mark(*topics, *(("approvals",) if isinstance(event, ToolApproval) else ()))

    def mark(self, *topics: str) -> None:
        """Say that parts of pages which show *topics* are out of date."""
        for topic in topics:
            self.marks[topic] = self.last = next(self._numbers)
        self._woken.set()

    def _note_call(self, number: int, event: ToolEvent) -> None:
        key = (event.tool, event.principal, event.call_id)
        running = self._open.get(key)
        if isinstance(event, ToolStarted) or not running:
            pack = event.tool.partition(":")[0]
            call = SeenCall(number, event.tool, event.principal, event.call_id, pack, event.timestamp)
            self._open.setdefault(key, deque()).append(call)
        else:  # of calls that nobody gave an id, the one that has run for longest
            call = running[0]
        self._note_step(call, event)
        call.changed = number
        self.calls[call.number] = call
        self.calls.move_to_end(call.number)
        if isinstance(event, ToolFinished | ToolApproval):
            self._close(key, call)
        while len(self.calls) > CALLS_KEPT:
            _, forgotten = self.calls.popitem(last=False)
            self._close((forgotten.tool, forgotten.principal, forgotten.call_id), forgotten)

    def _close(self, key: Any, call: SeenCall) -> None:
        running = self._open.get(key, deque())
        with suppress(ValueError):
            running.remove(call)
        if not running:
            self._open.pop(key, None)

    def _note_step(self, call: SeenCall, event: ToolEvent) -> None:
        what, note = event.type.partition(":")[2], ""
        if isinstance(event, ToolProgress):
            call.done, call.total, call.message = event.done, event.total, event.message
            note = f"{event.done:g}{'' if event.total is None else f' of {event.total:g}'} {event.message}".strip()
        elif isinstance(event, ToolApproval):
            call.state, call.proposal, note = "waiting", event.proposal, event.reason
        elif isinstance(event, ToolFinished):
            call.state, call.seconds, call.error = "done" if event.success else "failed", event.seconds, event.error
            note = event.error or ""
        call.steps.append(CallStep(event.timestamp, what, note[:500]))

    def calls_for(self, principal: Principal, after: int = 0) -> list[SeenCall]:
        """Return the calls that *principal* may see and that changed since event *after*, the newest first."""
        sees_all, found = is_operator(principal), list[SeenCall]()
        for call in reversed(self.calls.values()):
            if call.changed <= after:
                break
            if sees_all or call.principal == principal.key:
                found.append(call)
        return found

    # -- telling -----------------------------------------------------------------------------------------------

    @contextmanager
    def stream(self, session: StudioSession, task: "asyncio.Task[Any]") -> Iterator[None]:
        """Count a stream for the time of the block."""
        self._streams.add(task)
        session.streams += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_for_proposals())
        try:
            yield
        finally:
            self._streams.discard(task)
            session.streams -= 1
            if not self._streams and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    def has_room(self, session: StudioSession) -> bool:
        """Tell whether one more stream may be opened."""
        return len(self._streams) < STREAMS and session.streams < STREAMS_PER_SESSION

    async def _look_for_proposals(self) -> None:
        """Notice what waits, as long as somebody looks: other hosts on the store tell nobody here."""
        while True:
            with Border() as border:
                self.note_waiting(found := await self._host.approvals.pending())
                waiting = [one.id for one in found]
                if waiting != self._waiting:
                    self._waiting = waiting
                    self.mark("approvals")
            if border.error is not None:
                self._host.extensions.logger.warning("what waits for approval can't be read: %s", border.error)
            await asyncio.sleep(_LOOK)

    def note_waiting(self, proposals: Iterable[Proposal]) -> None:
        """Remember what waits, so that pages can show what became of it."""
        known = set(self.waited)
        self.waited.extend(one.id for one in proposals if one.id not in known)

    async def next_event(self, after: int) -> bool:
        """Wait until something happened since *after*; False if nothing did for as long as a heartbeat lasts."""
        try:
            async with asyncio.timeout(_HEARTBEAT):
                while self.last <= after:
                    self._woken.clear()
                    await self._woken.wait()
        except TimeoutError:
            return False
        return True

    async def end_streams(self) -> None:
        """End all streams, which have no end of their own."""
        for task in list(self._streams):
            task.cancel()


def event_stream(
    live: LiveEvents,
    session: StudioSession,
    principal: Principal,
    topics: frozenset[str],
    still: Callable[[], Awaitable[Principal | None]],
    templates: Environment,
    since: int,
) -> Response:
    """Answer with a stream that tells *principal* of *topics*, until it is signed out or the browser leaves.

    still: says whom the session stands for now; another one than before ends the stream.
    since: the newest event when the page was made; what happened before the stream began is told at once.
    """
    if not live.has_room(session):
        return Response("Too many streams are open; close other tabs", 429, media_type="text/plain")
    messages = _messages(live, session, principal, topics, still, templates, since)
    return StreamingResponse(messages, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _messages(
    live: LiveEvents,
    session: StudioSession,
    principal: Principal,
    topics: frozenset[str],
    still: Callable[[], Awaitable[Principal | None]],
    templates: Environment,
    since: int,
) -> AsyncIterator[str]:
    task = asyncio.current_task()
    if task is None:  # pragma: no cover - a response is always sent by a task
        return
    row = templates.get_template("parts/call_row.html") if "calls" in topics else None
    at = min(since, live.last)
    yield "retry: 2000\n\n"
    with live.stream(session, task), suppress(asyncio.CancelledError):
        while True:
            has_more = await live.next_event(at)
            if await still() != principal:
                return
            if not has_more:
                yield ": still here\n\n"
                continue
            before, at = at, live.last
            changed = sorted(topic for topic in topics if live.marks.get(topic, 0) > before)
            if row is not None and "calls" in changed:
                yield _rows(live, principal, before, row)
            if rest := [topic for topic in changed if topic != "calls"]:
                yield _message("changed", {"topics": rest})
            await asyncio.sleep(_TICK)


def _rows(live: LiveEvents, principal: Principal, after: int, row: Any) -> str:
    """Return a message with the rows of calls that changed: of many, the newest, and how many are left out."""
    calls = live.calls_for(principal, after)
    shown = calls[:_ROWS]
    html = "".join(row.render(call=call) for call in reversed(shown))
    return _message("calls", {"rows": html, "left": len(calls) - len(shown)})


def _message(name: str, said: Mapping[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(said)}\n\n"
