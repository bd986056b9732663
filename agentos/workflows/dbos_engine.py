"""DBOS, which records the steps of runs: one for the process, shared by all hosts on one store.

DBOS is an object of the process: it has one database, and its own functions find it by a global name. So it is launched
when the first host needs it, hosts on the same store share it, and the last one that leaves ends it. A host on another
durable store is refused meanwhile. A host in memory shares whatever there is, since nothing of its runs has to last.

A run is worked on in *segments*: each time a host takes a run, it begins a DBOS workflow of its own, whose id is the
run's with the number of the segment. It ends normally when the run waits, so nothing of DBOS is held meanwhile,
neither a task nor a row that is pending. DBOS gives each execution a token of its own and checks it in the
transaction of every step that it writes; a host that takes a run over cancels the last segment first, which takes
that token away.
"""

import asyncio
import contextlib
import contextvars
import importlib.util
import json
import logging
import tempfile
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from agentos.errors import WorkflowError
from agentos.store.locations import StorePlace

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

T = TypeVar("T")

_NAME = "agentos"
_SEGMENT = "agentos_segment"
_VERSION = "agentos-1"
"""What DBOS calls the version of the application: versions of workflows are ours, and stand with their runs."""
_SIDE_BY_SIDE = 8
"""How many segments are read at once."""
_BUSY = 30.0
"""For how many seconds a write waits for others who write the file."""


@attrs.frozen
class RecordedStep:
    """A step that was written down: its place and name in the run, and what it came to."""

    key: str
    kind: str
    name: str
    payload: dict[str, Any] = attrs.field(repr=False)
    ended_at: float | None = None


class DbosEngine:
    """DBOS as it runs in this process, for one database."""

    _running: "DbosEngine | None" = None
    _turn = threading.Lock()

    def __init__(self, place: StorePlace) -> None:
        self.place = place
        self._users: set[object] = set()
        self._starter = ThreadPoolExecutor(1, "agentos-workflows")
        self._work: dict[str, Callable[[], Awaitable[None]]] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._sql: Engine | None = None
        self._launched: asyncio.Future[None] | None = None
        self._dbos: Any = None
        self._segment: Any = None

    # -- beginning and ending ----------------------------------------------------------------------------------

    @classmethod
    async def attach(cls, place: StorePlace, user: object) -> "DbosEngine":
        """Return the engine of *place*, launched now if there is none; raise WorkflowError if there can't be."""
        if importlib.util.find_spec("dbos") is None:
            raise WorkflowError("workflows need DBOS, which is not installed: pip install 'agentos-host[workflows]'")
        with cls._turn:
            engine = cls._running
            if engine is None:
                engine = cls._running = cls(place)
            elif place.is_durable and engine.place != place:
                raise WorkflowError(
                    f"this process runs workflows on the store at {engine.place.shown}, and DBOS has one database in a "
                    f"process: shut down the hosts on it first, or run those on {place.shown} in another process"
                )
            engine._users.add(user)
        try:
            await engine._launch_once()
        except BaseException:
            await engine.detach(user)
            raise
        return engine

    async def _launch_once(self) -> None:
        """Launch DBOS in a thread, once, whoever waits for it."""
        loop = asyncio.get_running_loop()
        if self._launched is None:
            self._launched = loop.run_in_executor(self._starter, self._launch)
        if self._launched.get_loop() is loop:
            await asyncio.shield(self._launched)
        else:  # another loop launched it, maybe one that is gone: the same thread serves us next
            await loop.run_in_executor(self._starter, lambda: None)
            if not self._launched.done() or self._launched.exception() is not None:
                raise WorkflowError(f"DBOS could not be launched on {self.place.shown}")

    def _launch(self) -> None:
        logger = logging.getLogger("dbos")
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())  # else DBOS adds one that writes to the terminal
        from dbos import DBOS

        executor = f"agentos-{uuid.uuid4().hex}"
        self._sql = self._engine()
        DBOS(  # its address of PostgreSQL is not used: the engine connects
            config={
                "name": _NAME,
                "system_database_url": "postgresql+psycopg:///agentos"
                if self.place.dsn
                else f"sqlite:///{self._path()}",
                "system_database_engine": self._sql,
                "executor_id": executor,
                "application_version": _VERSION,
                "serializer": _json_serializer(),
                "use_listen_notify": False,
                "notification_listener_polling_interval_sec": 0.2,  # nothing listens; its thread ends sooner
                "enable_otlp": False,
                "log_level": "CRITICAL",
            }
        )
        if DBOS.executor_id != executor:
            raise WorkflowError(
                "this process uses DBOS for something else already, and there is one DBOS in a process: "
                "run the host with workflows in a process of its own"
            )

        async def run_segment(segment: str) -> None:
            await self._run_segment(segment)

        self._dbos = DBOS
        self._segment = DBOS.workflow(name=_SEGMENT, max_recovery_attempts=None)(run_segment)
        DBOS.listen_queues([])  # what waits is ours to take, by its lease
        try:
            DBOS.launch()
        except Exception as error:  # noqa: BLE001 - whatever DBOS or a driver raises
            reason = type(getattr(error, "orig", None) or error).__name__  # its words may have the address in them
            raise WorkflowError(f"DBOS can't be launched on {self.place.shown}: {reason}") from None

    def _path(self) -> Path:
        if self.place.path is not None:
            return self.place.path.with_name(f"{self.place.path.name}.workflows")
        self._folder = self._folder or tempfile.TemporaryDirectory(prefix="agentos-workflows-")
        return Path(self._folder.name) / "workflows.db"

    def _engine(self) -> "Engine":
        from sqlalchemy import create_engine, event

        if self.place.dsn is not None:
            import psycopg

            dsn = self.place.dsn
            return create_engine(
                "postgresql+psycopg://",
                creator=lambda: psycopg.connect(dsn, connect_timeout=10),
                pool_size=5,
                max_overflow=10,
                pool_pre_ping=True,
                hide_parameters=True,
            )
        path = self._path()
        path.touch(mode=0o600)
        is_durable = self.place.is_durable
        engine = create_engine(f"sqlite:///{path}", hide_parameters=True)

        def prepare(connection: Any, _: Any) -> None:
            connection.isolation_level = "IMMEDIATE"
            connection.execute(f"PRAGMA busy_timeout={_BUSY * 1000:.0f}")
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(f"PRAGMA synchronous={'FULL' if is_durable else 'OFF'}")

        event.listen(engine, "connect", prepare)
        return engine

    async def detach(self, user: object) -> None:
        """Leave; the last one ends DBOS."""
        with self._turn:
            self._users.discard(user)
            is_last = not self._users and DbosEngine._running is self
        loop = asyncio.get_running_loop()
        if is_last:
            await loop.run_in_executor(self._starter, self._destroy)
            with self._turn:
                DbosEngine._running = None if DbosEngine._running is self else DbosEngine._running
            self._starter.shutdown(wait=False)
        # DBOS made its threads the loop's own, and they are gone, or go with the last host: the loop gets new ones.
        loop.set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))

    def _destroy(self) -> None:
        if self._dbos is not None:
            self._dbos.destroy(destroy_registry=True)
        if self._sql is not None:
            self._sql.dispose()
        if self._folder is not None:
            self._folder.cleanup()

    # -- segments ----------------------------------------------------------------------------------------------

    async def run(self, segment: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run *work* as a segment; it records its steps with `record`, and raises nothing."""
        await _apart(self._started(segment, work))

    async def _started(self, segment: str, work: Callable[[], Awaitable[None]]) -> None:
        from dbos import SetWorkflowID

        self._work[segment] = work
        try:
            with SetWorkflowID(segment):
                handle = await self._dbos.start_workflow_async(self._segment, segment)
            # Whatever became of the row: the run itself is settled in the store.
            with contextlib.suppress(Exception):
                await handle.get_result(polling_interval_sec=0.5)
        finally:
            self._work.pop(segment, None)

    async def _run_segment(self, segment: str) -> None:
        work = self._work.pop(segment, None)
        if work is not None:
            await work()

    async def record(self, name: str, payload: dict[str, Any]) -> None:
        """Write down a step of the segment under way; raise DBOS's error if the segment is not ours any more."""
        await self._dbos.reserve_step().run_async({"name": name}, _given, payload)

    def is_lost(self, error: BaseException) -> bool:
        """Tell whether *error* says that the segment is not ours any more."""
        from dbos import error as errors

        return isinstance(error, errors.DBOSWorkflowConflictIDError | errors.DBOSWorkflowCancelledError)

    async def abandon(self, segment: str) -> None:
        """Let whoever works on a segment write no further step of it."""
        await _apart(self._dbos.cancel_workflow_async(segment))

    async def steps(self, segments: Sequence[str]) -> list[RecordedStep]:
        """Return what was recorded in *segments*, in order."""
        places = asyncio.Semaphore(_SIDE_BY_SIDE)

        async def read(segment: str) -> list[Any]:
            async with places:
                found: list[Any] = await self._dbos.list_workflow_steps_async(segment)
                return found

        async def read_all() -> list[list[Any]]:
            return await asyncio.gather(*(read(segment) for segment in segments))

        return list(_recorded(step for steps in await _apart(read_all()) for step in steps))


def segment_id(run: str, number: int) -> str:
    """Return the id of a run's segment."""
    return f"{run}.{number}"


def step_name(key: str, kind: str, name: str) -> str:
    """Return by what name a step is recorded."""
    return f"{key} {kind}:{name}"


def _recorded(steps: Iterable[Any]) -> Iterable[RecordedStep]:
    for step in steps:
        key, _, rest = step["function_name"].partition(" ")
        kind, _, name = rest.partition(":")
        ended = step["completed_at_epoch_ms"]
        if isinstance(step["output"], dict):
            yield RecordedStep(key, kind, name, step["output"], None if ended is None else ended / 1000)


async def _given(payload: dict[str, Any]) -> dict[str, Any]:
    return payload


async def _apart(work: Awaitable[T]) -> T:
    """Do *work* outside of whatever segment is under way around it: DBOS would take it for a part of that."""

    async def done() -> T:
        return await work

    task = asyncio.get_running_loop().create_task(done(), context=contextvars.Context())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        raise


def _json_serializer() -> Any:
    """Return what DBOS writes values with: JSON, errors included."""
    from dbos import Serializer

    class JsonSerializer(Serializer):
        """JSON; an error becomes its type and its words."""

        def name(self) -> str:
            return "agentos_json"

        def serialize(self, data: Any) -> str:
            return json.dumps(data, default=_as_json)

        def deserialize(self, serialized_data: str) -> Any:
            data = json.loads(serialized_data)
            if isinstance(data, dict) and data.keys() == {"__error__", "message"}:
                return RuntimeError(f"{data['__error__']}: {data['message']}")
            return data

    return JsonSerializer()


def _as_json(value: Any) -> Any:
    if isinstance(value, BaseException):
        return {"__error__": type(value).__name__, "message": str(value)[:2000]}
    raise TypeError(f"a {type(value).__name__} is not JSON")
