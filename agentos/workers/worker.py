"""The worker of one pack: a process that is started when it is needed, and again when it died.

What the pack offers are proxies that ask the worker. Hooks that ran are run again in every new process, since it knows
nothing of the one before.
"""

import asyncio
import contextlib
import contextvars
import functools
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from agentos.base.canonical import canonical
from agentos.base.foreign import to_the_end
from agentos.errors import AgentOSError, PackLoadError, WorkerDiedError
from agentos.extensions.deferral import defer_end
from agentos.model.descriptor import Descriptor, Hook
from agentos.model.extension_pack import ExtensionPack
from agentos.model.isolation import WorkerInfo, WorkerState
from agentos.model.manifest import PackEntry
from agentos.model.pack_context import PackContext
from agentos.processes.spawned_process import CannotStartError
from agentos.processes.supervision import Supervision, SupervisionRules
from agentos.workers.declaration import RemotePack, pack_request
from agentos.workers.host_answers import HostAnswers
from agentos.workers.launching import LaunchPlan
from agentos.workers.wire_values import RemoteError
from agentos.workers.worker_events import (
    WorkerDegraded,
    WorkerDied,
    WorkerEvent,
    WorkerMounting,
    WorkerReady,
    WorkerRecovered,
)
from agentos.workers.worker_log import WorkerLog
from agentos.workers.worker_process import GRACE, WorkerProcess

MOST_WAITING = 100
"""How many calls may wait for a worker that mounts."""
_UNTIL_GATED = 1.0
"""For how many seconds at most a call that ended in a death waits until what its pack offers is gated, and whoever
restarts a degraded worker until it is in force again."""
_SLACK = 1.0
"""How many seconds longer than a mount may take a call waits for it: the one before may have to end first."""
_STOPPED = "it was stopped"
_MOMENTARY = ("gate", "troubles")
_HOOKS = ("hook", "check")


class ProcessGoneError(Exception):
    """The process that was asked is gone; the message says why."""


@attrs.frozen(kw_only=True)
class WorkerSurroundings:
    """What a worker needs of its host."""

    plan: Callable[[], Awaitable[LaunchPlan]]
    clock: Callable[[], float]
    rules: SupervisionRules
    mask: Callable[[str], str]
    tell: Callable[[WorkerEvent], Awaitable[None]]
    refresh: Callable[[ExtensionPack], Awaitable[None]]
    """Has the gates of all that a pack offers asked again."""
    recall: Callable[[], Awaitable[Mapping[str, Any] | None]]
    """Returns what the pack declared last time."""
    remember: Callable[[Mapping[str, Any]], Awaitable[None]]


class PackWorker:
    """Mounts a process when it is needed, asks it, and notes its deaths."""

    def __init__(self, entry: PackEntry, surroundings: WorkerSurroundings) -> None:
        self.entry = entry
        self._around = surroundings
        self._supervision = Supervision(surroundings.rules, surroundings.clock)
        self.log = WorkerLog(surroundings.mask)
        self._context: PackContext | None = None
        self._pack: ExtensionPack | None = None
        self._remote: _WorkersPack | None = None
        self._declared: Mapping[str, Any] | None = None
        self._process: WorkerProcess | None = None
        self._mount: asyncio.Task[WorkerProcess] | None = None
        self._retry: asyncio.Task[None] | None = None
        self._last_words = ""
        """What the last process that died said at the end, for people."""
        self._telling: asyncio.Task[None] | None = None
        self._waiting = 0
        self._is_stopped = False
        self._is_shut = False
        self._gates_shut = asyncio.Event()
        """What the pack offers was found to be shut, and is out of force."""

    # -- what is known -------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Return the name of its pack, or what its entry is called as long as that is not known."""
        return self.entry.label if self._pack is None else self._pack.name

    def info(self) -> WorkerInfo:
        """Return what others may know of it."""
        supervision, process = self._supervision, self._process
        pid = process.pid if process is not None and process.is_open else None
        return WorkerInfo(
            pack=self.name,
            state=supervision.state,
            pid=pid,
            since=self._at(supervision.since),
            strikes=supervision.strikes,
            reason=None if supervision.reason is None else f"{supervision.reason}{self._last_words}{self._next_try}",
            calls=0 if process is None else process.calls,
            restarts=max(0, supervision.mount - 1),
            rss=None if pid is None else _resident(pid),
        )

    def why_not(self) -> str | None:
        """Say why it can't be asked now, and when it is tried again; None if it can, be it after a start.

        Models may read it, so it has no text of the process in it.
        """
        supervision = self._supervision
        if not supervision.is_on_trial or supervision.state is WorkerState.READY:
            return None
        return (
            f"the worker of pack {self.name!r} is degraded: {supervision.reason}{self._next_try or '; it is tried now'}"
        )

    @property
    def _next_try(self) -> str:
        at = self._supervision.retry_at
        return "" if at is None else f"; the next try is at {self._at(at):%Y-%m-%dT%H:%M:%SZ}"

    @property
    def is_resting(self) -> bool:
        """Tell whether there is no process, and none is about to be."""
        return self._supervision.state in (WorkerState.DORMANT, WorkerState.DEGRADED)

    def gate(self, own: Callable[[], str | None] | None) -> str | None:
        """Say what keeps something of its pack out of force, and note that this was asked."""
        reason = self.why_not()
        self._is_shut = reason is not None
        if reason is None:
            self._gates_shut.clear()
        return own() if reason is None and own is not None else reason

    def note_switch(self) -> None:
        """Note that stacks were switched: what was found to be shut is out of force by now."""
        if self._is_shut:
            self._gates_shut.set()

    def _at(self, moment: float) -> datetime:
        """Return a moment of the clock as a time of day."""
        return datetime.now(UTC) + timedelta(seconds=moment - self._around.clock())

    # -- its pack ------------------------------------------------------------------------------------------------------

    async def make(self, context: PackContext) -> ExtensionPack:
        """Return its pack, of proxies. The process is started only if what the pack declares is not known."""
        self._context = context
        if self._process is None:
            self._declared = await self._around.recall()
        else:
            await self.stop()  # its factory has to run again
            self._declared = self._pack = self._remote = None
        self._is_stopped = False
        is_known = self._declared is not None
        if not is_known:
            await self._first_mount()
        self._remote = remote = self._understood()
        if not is_known:
            await self._around.remember(self._declared or {})
        self._pack = self._with_hooks(remote.pack)
        return self._pack

    async def _first_mount(self) -> None:
        try:
            await self._mounted()
        except WorkerDiedError as error:
            raise PackLoadError(self.name, f"in a process of its own: {error.why}") from error.__cause__

    def _understood(self) -> "_WorkersPack":
        """Return the pack that was declared; raise PackLoadError if that is not understood."""
        try:
            return _WorkersPack(self._declared or {}, self)
        except Exception as error:
            said = self._around.mask(f"{type(error).__name__}: {error}")
            message = f"in a process of its own: what it declares is not understood: {said}"
            raise PackLoadError(self.name, message) from error

    def _with_hooks(self, pack: ExtensionPack) -> ExtensionPack:
        """Return *pack* with hooks that begin and end the worker as well."""
        return attrs.evolve(
            pack,
            on_activate=functools.partial(self._activate, pack.on_activate),
            on_deactivate=functools.partial(self._deactivate, pack.on_deactivate),
        )

    async def _activate(self, hook: Hook | None, context: PackContext) -> None:
        self._is_stopped, self._context, self.log.logger = False, context, context.logger
        if hook is not None:
            await hook(context)
        if self.entry.eager:
            await self._mounted()

    async def _deactivate(self, hook: Hook | None, context: PackContext) -> None:
        """Run the last hook, then end the process."""
        try:
            if hook is not None:
                await hook(context)
        finally:
            await self.leave()

    # -- asking --------------------------------------------------------------------------------------------------------

    async def ask_if_awake(self, op: str, body: Any, *, idempotent: bool = False) -> Any:
        """Ask, but start no process for a hook or a check: what ran is run again in every process that is to come."""
        if op not in _HOOKS:
            return await self.ask(op, body, idempotent=idempotent)
        return [] if self.is_resting else await self.ask(op, body)

    async def ask(self, op: str, body: Any, *, idempotent: bool = False) -> Any:
        """Return what the process answers, started if there is none; raise what it raised, or WorkerDiedError.

        What is idempotent is asked once more if the process died meanwhile.
        """
        try:
            return await self._ask(op, body)
        except WorkerDiedError as error:
            if not (idempotent and error.may_have_run) or self._is_stopped:
                raise
        return await self._ask(op, body)

    async def _ask(self, op: str, body: Any) -> Any:
        process = await self._ready()
        try:
            answer = await process.ask(op, body)
        except ProcessGoneError as gone:
            await self._until_gated()
            raise WorkerDiedError(self.name, str(gone), may_have_run=True) from None
        except RemoteError:
            self._supervision.succeeded(process.number)
            raise
        self._supervision.succeeded(process.number)
        return answer

    @property
    def is_ready(self) -> bool:
        """Tell whether there is a process that can be asked."""
        return self._process is not None and self._process.is_open and self._supervision.state is WorkerState.READY

    async def _ready(self) -> WorkerProcess:
        """Return the process; start one if there is none, and wait for it within bounds."""
        if self._process is not None and self.is_ready:
            return self._process
        if (why := self._why_no_start()) is not None:
            raise WorkerDiedError(self.name, why, may_have_run=False)
        patience = self.entry.mount_timeout + _SLACK
        self._waiting += 1
        try:
            async with asyncio.timeout(patience) as deadline:
                return await self._mounted()
        except TimeoutError:
            if not deadline.expired():
                raise
            why = f"it was not ready within {patience:g} s"
            raise WorkerDiedError(self.name, why, may_have_run=False) from None
        finally:
            self._waiting -= 1

    def _why_no_start(self) -> str | None:
        if self._is_stopped:
            return _STOPPED
        if self._supervision.state is WorkerState.DEGRADED:
            return f"it is degraded: {self._supervision.reason}"
        if self._waiting >= MOST_WAITING:
            return f"it is not ready, and {MOST_WAITING} calls wait for it already"
        return None

    async def _until_gated(self) -> None:
        """Wait until what a degraded worker offers is gated, so that the caller finds it so."""
        if self._pack is not None and self._supervision.state is WorkerState.DEGRADED:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_UNTIL_GATED):
                    await self._gates_shut.wait()

    # -- mounting ------------------------------------------------------------------------------------------------------

    async def _mounted(self) -> WorkerProcess:
        """Return a process that is ready: all who need one wait for the same."""
        if self.is_ready and self._process is not None:
            return self._process
        if self._mount is None or self._mount.done():
            # In a context of its own: it is no part of the call or the change that needs it.
            self._mount = asyncio.create_task(
                self._start(), name=f"mount of {self.name}", context=contextvars.Context()
            )
        return await asyncio.shield(self._mount)

    async def _start(self) -> WorkerProcess:
        if self._process is not None:
            await self._process.ended.wait()
        number = self._supervision.begin()
        process = self._process = self._new_process(number)
        self._tell(WorkerMounting)
        try:
            await self._prepare(process)
        except BaseException as error:
            process.end(self._why_not_mounted(error), at_once=True)
            await to_the_end(process.ended.wait())
            if isinstance(error, asyncio.CancelledError):
                raise
            raise WorkerDiedError(self.name, self._why_not_mounted(error), may_have_run=False) from error
        self._note_ready(process)
        return process

    def _new_process(self, number: int) -> WorkerProcess:
        context = self._needed_context
        self.log.begin(context.logger)
        answers = HostAnswers(attrs.evolve(context, logger=self.log))  # type: ignore[arg-type]  # all that is used
        return WorkerProcess(
            number,
            limits=self.entry.worker,
            handle=answers.handle,
            note=self.log.note,
            on_end=self._ended,
            silence=self._around.rules.silence,
            mask=self._around.mask,
        )

    async def _prepare(self, process: WorkerProcess) -> None:
        plan = await self._around.plan()
        async with asyncio.timeout(self.entry.mount_timeout):
            await process.start(plan)
            await self._take(await process.ask("make", pack_request(self._needed_context)))
            if self._remote is not None:
                await self._remote.replay(process.ask)

    @property
    def _needed_context(self) -> PackContext:
        assert self._context is not None  # noqa: S101 - a pack is made with one
        return self._context

    async def _take(self, declared: Mapping[str, Any]) -> None:
        """Take what the pack declares; refuse it if it is not what it was, as long as it is loaded."""
        if self._remote is None:
            self._declared = declared
        elif canonical(_lasting(declared)) != canonical(_lasting(self._declared or {})):
            await self._around.remember(declared)
            raise PackLoadError(self.name, "it declares something else than before; reload it")
        else:
            self._remote.note_gates((one["kind"], one["id"], one["gate"]) for one in declared["descriptors"])

    def _why_not_mounted(self, error: BaseException) -> str:
        if isinstance(error, TimeoutError):
            return f"it was not ready within {self.entry.mount_timeout:g} s"
        if isinstance(error, ProcessGoneError):
            return str(error)
        if isinstance(error, asyncio.CancelledError):
            return _STOPPED
        if isinstance(error, PackLoadError):
            return error.message
        said = str(error) if isinstance(error, CannotStartError) else f"{type(error).__name__}: {error}"
        return f"it could not be made: {self._around.mask(said)}"

    def _note_ready(self, process: WorkerProcess) -> None:
        was_degraded = self._supervision.is_on_trial
        if self._supervision.mounted(process.number):
            self._tell(WorkerReady)
            if was_degraded:
                self._tell(WorkerRecovered, gates=True)

    # -- the end -------------------------------------------------------------------------------------------------------

    async def _ended(self, process: WorkerProcess, reason: str) -> None:
        """Note the end of a process: whoever waits for it gets one error."""
        is_death = self._supervision.struck(process.number, reason)
        process.peer.fail(ProcessGoneError(reason))
        if not is_death:
            return
        words = self.log.last_words
        self._last_words = f": {words}" if words else ""
        self._tell(WorkerDied)
        if self._supervision.state is WorkerState.DEGRADED:
            self._tell(WorkerDegraded, gates=True)
            self._retry = asyncio.create_task(self._try_again(), context=contextvars.Context())

    async def _try_again(self) -> None:
        """Wait until it is time to try again, and do. What fails there is noted by the next end."""
        at = self._supervision.retry_at or 0.0
        while (left := at - self._around.clock()) > 0:  # noqa: ASYNC110 - the clock may be another than the loop's
            await asyncio.sleep(left)
        with contextlib.suppress(WorkerDiedError):
            await self._mounted()

    async def restart(self) -> None:
        """End the process and mount it anew, whatever was held against it. Raise WorkerDiedError if that fails."""
        if self._is_stopped:
            raise WorkerDiedError(self.name, "its pack is not in force", may_have_run=False)
        was_degraded = self._supervision.is_on_trial
        await self.stop()
        self._is_stopped = False
        await self._mounted()
        if was_degraded:
            self._tell(WorkerRecovered, gates=True)
            await asyncio.wait([asyncio.ensure_future(self.told())], timeout=_UNTIL_GATED)

    async def leave(self) -> None:
        """Stop; at the end of a host, together with all others."""
        wait = functools.partial(asyncio.wait, [asyncio.ensure_future(self.stop())])
        if not defer_end(wait):
            await to_the_end(wait())

    async def stop(self) -> None:
        """End the process, politely and then firmly; return when nothing of it is left."""
        self._is_stopped = True
        for task in (self._retry, self._mount):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait([task])
        if self._process is not None:
            if self.is_ready:
                await self._release(self._process)
            self._supervision.stopped()
            await self._process.stop(_STOPPED)
        self._supervision.stopped()

    async def _release(self, process: WorkerProcess) -> None:
        """Have the services of the process disposed of; it is ended whatever becomes of that."""
        with contextlib.suppress(TimeoutError, ProcessGoneError, RemoteError):
            async with asyncio.timeout(GRACE):
                await process.ask("end", None)

    # -- telling -------------------------------------------------------------------------------------------------------

    def _tell(self, kind: type[WorkerEvent], *, gates: bool = False) -> None:
        """Tell what happened, and have the gates asked again if it concerns them; nobody waits for that."""
        supervision = self._supervision
        event = kind(
            key=self.entry.key or self.name,
            pack=self.name,
            mount=supervision.mount,
            reason=f"{supervision.reason or ''}{self._last_words}",
        )
        told = self._told(event, self._telling, gates=gates)
        self._telling = asyncio.create_task(told, context=contextvars.Context())

    async def told(self) -> None:
        """Return when all that happened is told."""
        if self._telling is not None:
            await asyncio.wait([self._telling])

    async def _told(self, event: WorkerEvent, before: "asyncio.Task[None] | None", *, gates: bool) -> None:
        if before is not None:
            await asyncio.wait([before])
        if gates and self._pack is not None:
            with contextlib.suppress(AgentOSError):  # at the end of the host nothing is decided any more
                await self._around.refresh(self._pack)
        await self._around.tell(event)


class _WorkersPack(RemotePack):
    """The pack of a worker: all of it, and what it registers while it runs, is gated while that is degraded."""

    def __init__(self, declaration: Mapping[str, Any], worker: PackWorker) -> None:
        self._worker = worker
        self._made: dict[tuple[str, str], tuple[str, Descriptor[Any]]] = {}
        super().__init__(declaration, worker.ask_if_awake)

    def descriptor(self, said: Mapping[str, Any]) -> Descriptor[Any]:
        """Return the descriptor that was told of: the same one if the same is told again, by another process."""
        key, told = (said["kind"], said["id"]), canonical(_without_moment(said))
        before = self._made.get(key)
        if before is not None and before[0] == told:
            self.note_gates([(*key, said["gate"])])
            return before[1]
        made = super().descriptor(said)
        made = attrs.evolve(made, gate=functools.partial(self._worker.gate, made.gate))
        self._made[key] = told, made
        return made


def _lasting(declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a pack declares but for what is true of one moment."""
    kept = {name: value for name, value in declared.items() if name not in _MOMENTARY}
    return kept | {"descriptors": [_without_moment(one) for one in declared["descriptors"]]}


def _without_moment(descriptor: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in descriptor.items() if name not in _MOMENTARY}


def _resident(pid: int) -> int | None:
    """Return how many bytes of memory a process has in use, where the system says so."""
    import resource
    from pathlib import Path

    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * resource.getpagesize()
    return None
