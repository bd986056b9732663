"""Workflows: what a host starts, looks at and decides on."""

import asyncio
import contextlib
import importlib
import inspect
import json
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from agentos.access.audit import Audit
from agentos.access.grants import name_of
from agentos.access.proposals import ProposalError, principal_data, stored_principal
from agentos.calls.approvals import Approvals
from agentos.calls.orchestrator import ToolOrchestrator
from agentos.errors import Problem, WorkflowError
from agentos.extensions.event import Event
from agentos.extensions.manager import ExtensionManager
from agentos.interop._provider_calls import named_principal
from agentos.kinds.workflow import settings_of_workflow
from agentos.model.field_checks import did_you_mean, fault_of_name
from agentos.model.principal import EVERYTHING, Principal
from agentos.model.workflow import RunState, StepRecord, WorkflowRun, WorkflowSettings
from agentos.model.workflow_definition import WorkflowDefinition
from agentos.payloads.foreign_job import ForeignJob, is_async
from agentos.payloads.payload_context import PayloadContext
from agentos.secrets.masking import MaskingLogger
from agentos.stacks.entry import Entry, EntryState
from agentos.tools.service import ToolsService
from agentos.workflows import cron as cron_times
from agentos.workflows import workflow_events as events
from agentos.workflows.approval_tool import approval_tool
from agentos.workflows.dbos_engine import DbosEngine
from agentos.workflows.definition_checks import Surroundings, inputs_to_start, problems_of
from agentos.workflows.flow_services import FlowServices
from agentos.workflows.live_flow import LiveFlow
from agentos.workflows.run_execution import RunExecution, recorded_steps
from agentos.workflows.run_store import SIGNALS, Claim, RunStore, claim_of_new
from agentos.workflows.run_views import output_of, records_of, time_of
from agentos.workflows.run_watch import LEASE, RunWatch
from agentos.workflows.schedules import Missed, WorkflowSchedule, check_schedule, due_times, schedule_of

if TYPE_CHECKING:
    from agentos.access.idempotency import Idempotency
    from agentos.store import Store

UnknownDecision = Literal["retry", "done", "fail"]
"""What a person decides of a step whose end is unknown."""

_DECISIONS = ("retry", "done", "fail")
_RUNS_LISTED = 1_000
_KEY_LIMIT = 200
_SIZE = 1_000_000
_POLL = 0.2
_RUNS = (EntryState.ACTIVE, EntryState.WRAPPED, EntryState.SHADOWED)
_TOLD: Mapping[str, tuple[Callable[..., Event], tuple[str, ...]]] = {
    "taken_over": (events.WorkflowTakenOver, ("owner",)),
    "waiting": (events.WorkflowWaiting, ("reason",)),
    "unknown": (events.WorkflowUnknown, ("step", "reason")),
    "held": (events.WorkflowHeld, ("reason",)),
}
"""The events of what becomes of a run, and which facts each has."""


class WorkflowHost(Protocol):
    """What of a host its workflows use."""

    @property
    def extensions(self) -> ExtensionManager:
        """Return what is loaded."""
        ...

    @property
    def tools(self) -> ToolOrchestrator:
        """Return the one door."""
        ...

    @property
    def approvals(self) -> Approvals:
        """Return the inbox."""
        ...

    @property
    def audit(self) -> Audit:
        """Return the audit log."""
        ...

    def tools_service(self, owner: str = "builtin") -> ToolsService:
        """Return what tools are registered with."""
        ...


class Workflows:
    """`host.workflows`: starts runs, says how they are, and carries them as long as the host runs.

    lease: after how many seconds of silence another host takes this one for dead and goes on with its runs.
    """

    def __init__(
        self,
        host: "WorkflowHost",
        store: "Store",
        idempotency: "Idempotency",
        principals: Mapping[str, Principal],
        clock: Callable[[], float],
        *,
        carries: bool = True,
    ) -> None:
        self._host = host
        self._carries = carries
        self._store = store
        self._idempotency = idempotency
        self._principals = principals
        self._manager = host.extensions
        self._registry = self._manager.registry("workflow")
        self._executors = self._manager.registry("workflow-executor")
        self._masker = self._manager.masker
        self._logger = MaskingLogger("agentos.workflows", self._masker)
        self._runs = RunStore(store, clock)
        self._engine: DbosEngine | None = None
        self._attaching = asyncio.Lock()
        self._is_ready = False
        self._is_closed = False
        self.lease = LEASE
        self._ended: dict[str, asyncio.Event] = {}
        self._told: dict[str, str] = {}
        """Why schedules could not start their workflows, as it was logged."""

    @cached_property
    def _watch(self) -> RunWatch:
        return RunWatch(self._runs, self._made, self._keep_schedules, self._logger, lease=self.lease)

    # -- beginning and ending ----------------------------------------------------------------------------------

    @property
    def is_wanted(self) -> bool:
        """Tell whether a workflow is in force."""
        return bool(self._registry.ids())

    async def open(self) -> None:
        """Begin to carry runs: those that can go on, and those of hosts that are gone.

        A host does so by itself, unless it was made with `carry_workflows=False`.
        """
        self._carries = True
        await self.prepare()

    async def prepare(self) -> None:
        """See that runs can be started and asked about; begin to carry them, if this host does."""
        if self._is_closed:
            raise WorkflowError("the host is shut down; make a new one")
        if not self._is_ready:
            await self._store.open()
            await self._offer_questions()
            self._is_ready = True
        if self._carries:
            await self._watch.open()

    async def _offer_questions(self) -> None:
        """Register the tool by which workflows ask a person."""
        service = self._host.tools_service()
        if not any(info.name == "workflow_approval" for info in service.own_tools()):
            await service.register_tool(approval_tool())

    async def close(self) -> None:
        """Let every run go, and leave DBOS."""
        self._is_closed = True
        if "_watch" in vars(self):
            await self._watch.close()
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.detach(self)

    async def _attached(self) -> DbosEngine:
        async with self._attaching:
            if self._engine is None:
                self._engine = await DbosEngine.attach(self._store.place, self)
            return self._engine

    # -- starting ----------------------------------------------------------------------------------------------

    async def start(
        self,
        workflow: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        principal: Principal | str | None = None,
        key: str | None = None,
    ) -> WorkflowRun:
        """Start a run and return it, once it is stored. A host that carries no runs leaves it to those that do.

        principal: who starts it, or the id of one of the manifest. A workflow that declares a principal calls its tools
        as that one, with no more than who starts it holds; one that declares none calls them as who starts it. Where
        neither says who it is, they are called for the host itself, as other calls are, and a warning says so. A
        declared principal that the manifest does not have holds nothing: its tools are the public ones.
        key: the same workflow started again with the same key is the run that there is already.
        """
        await self.prepare()
        if key is not None and (not isinstance(key, str) or not 0 < len(key) <= _KEY_LIMIT):
            raise WorkflowError(f"key: expected a text of 1 to {_KEY_LIMIT} characters, got {key!r:.60}")
        data = self._data_of(workflow, inputs, self._who(principal))
        if self._carries:
            await self._attached()
        row, _ = await self._add(uuid.uuid4().hex, workflow, data, key=key)
        return await self._shown(row)

    def _data_of(self, workflow: str, inputs: Mapping[str, Any] | None, who: Principal | None) -> dict[str, Any]:
        """Return what a new run is, once everything that can be wrong with it was looked at."""
        entry = self._registry.get_active(workflow) if isinstance(workflow, str) else None
        if entry is None:
            raise WorkflowError(f"no workflow {workflow!r} is in force{did_you_mean(workflow, self._registry.ids())}")
        settings = _settings(entry)
        is_known = settings.principal in self._principals
        if settings.principal is None:
            who = named_principal(self._host, who, f"workflow {workflow!r} is started")
        elif not is_known and (who is None or who.id != settings.principal):
            self._logger.warning("workflow %r: %s", workflow, self._why_unknown(settings.principal))
        given = {} if inputs is None else inputs
        _check_inputs(entry.payload, workflow, given)
        as_data = {}
        if isinstance(entry.payload, WorkflowDefinition):
            around = self._around(self._caller(settings, who))
            given = inputs_to_start(entry.payload, given, around)
            as_data = {"definition": entry.payload.to_dict()}
        return {
            **as_data,
            "inputs": _as_json(self._masker.mask_data(dict(given)), f"workflow {workflow!r}: inputs"),
            "declared": settings.principal,
            "is_known": is_known,
            "starter": None if who is None else principal_data(who),
            "version": settings.version,
            "timeout": settings.timeout,
        }

    def check(self, workflow: str, *, principal: Principal | str | None = None) -> Sequence[Problem]:
        """List everything that keeps a workflow that is data from being started; of a function nothing is known.

        principal: who would start it, if it declares no principal.
        """
        entry = self._registry.get_active(workflow) if isinstance(workflow, str) else None
        if entry is None:
            raise WorkflowError(f"no workflow {workflow!r} is in force{did_you_mean(workflow, self._registry.ids())}")
        if not isinstance(entry.payload, WorkflowDefinition):
            return []
        return problems_of(entry.payload, self._around(self._caller(_settings(entry), self._who(principal))))

    def _caller(self, settings: WorkflowSettings, who: Principal | None) -> Principal | None:
        """Return whom the tools of a workflow would be called for, if that is known."""
        return who if settings.principal is None else _within(self._declared(settings.principal, who), who)

    def _declared(self, id: str, who: Principal | None) -> Principal:
        """Return the principal that a workflow declares: the manifest's, or one who holds nothing."""
        if id in self._principals:
            return self._principals[id]
        return who if who is not None and who.id == id else Principal(id, kind="service")

    def _why_unknown(self, id: str) -> str:
        return (
            f"its principal {id!r} is not one of the manifest's{did_you_mean(id, self._principals)}, so its tools are "
            f"called for one who holds nothing; add [principals.{id}]"
        )

    def _around(self, who: Principal | None) -> Surroundings:
        """Return what a definition may name. Without a principal it may name every tool there is."""
        tools = self._host.tools
        entries = self._registry.list_active()
        return Surroundings(
            tool=lambda name: tools.get_tool(name, who),
            tool_names=lambda: [info.name for info in tools.listed(who)],
            executors=self._executors.ids(),
            workflows={one.id: getattr(one.payload, "inputs", None) for one in entries},
            principals=self._principals,
        )

    def _who(self, principal: Principal | str | None) -> Principal | None:
        if principal is None or type(principal) is Principal:
            return principal
        if isinstance(principal, str):
            if principal in self._principals:
                return self._principals[principal]
            known = did_you_mean(principal, self._principals)
            raise WorkflowError(f"principal: {principal!r} is not one of the manifest's{known}")
        raise TypeError(f"principal: expected a Principal or the id of one, got {type(principal).__name__}")

    async def _add(
        self, id: str, workflow: str, data: dict[str, Any], *, key: str | None = None, parent: Claim | None = None
    ) -> tuple[dict[str, Any], bool]:
        """Store a run, and begin with it here if there is room."""
        now, timeout = self._runs.now(), data["timeout"]
        deadline = None if timeout is None else now + timeout
        taken = self._carries and self._watch.has_room
        version = data["version"]
        row, is_new = await self._runs.add(
            id, workflow, version, data, key=key, deadline=deadline, parent=parent, taken=taken
        )
        if is_new:
            by = None if (starter := _starter_of(data)) is None else starter.key
            self._audit("started", row, by=by, declared=data["declared"])
            await self._emit(events.WorkflowStarted(**_named(row), started_by=by))
            if taken:
                self._watch.carry(claim_of_new(row))
        return row, is_new

    async def _start_child(
        self, parent: Claim, id: str, workflow: str, inputs: Mapping[str, Any], who: Principal
    ) -> None:
        if await self._runs.get(id) is None:
            await self._add(id, workflow, self._data_of(workflow, inputs, who), parent=parent)

    # -- carrying ----------------------------------------------------------------------------------------------

    async def _made(self, claim: Claim) -> RunExecution | None:
        """Return what carries a run that was claimed; None if it is held instead."""
        row = await self._runs.get(claim.id)
        if row is None or not self._runs.is_genuine(row):
            await self._over(claim, "failed", {"error": {"type": "Forged", "message": "it was changed in the store"}})
            return None
        entry = self._entry_of(claim.workflow, claim.version)
        if entry is None and "definition" in claim.data:  # it goes on with the tasks that it began with
            entry = self._registry.get_active(claim.workflow)
        try:
            why = None if entry is not None else self._why_no_code(claim)
            who = None if entry is None else await self._principal_of(claim.data)
        except (ProposalError, WorkflowError) as error:
            why, who = str(error), None
        if entry is None or who is None:
            await self._hold(claim, why or "its code is not here")
            return None
        services = await self._services()
        body = partial(_called, _payload_of(entry, claim), claim.data["inputs"])
        return RunExecution(services, claim, who, body, self._tell, self._logger)

    def _entry_of(self, workflow: str, version: str) -> Entry | None:
        """Return the entry of a workflow in a version: the active one, or another on its stack."""
        for entry in self._registry.stack(workflow):
            if entry.state in _RUNS and _settings(entry).version == version:
                return entry
        return None

    def _why_no_code(self, claim: Claim) -> str:
        there = [_settings(one).version for one in self._registry.stack(claim.workflow) if one.state in _RUNS]
        if not there:
            return f"no workflow {claim.workflow!r} is in force"
        versions = ", ".join(dict.fromkeys(there))
        return f"it began with version {claim.version!r} of {claim.workflow!r}, and what is in force is {versions}"

    async def _principal_of(self, data: Mapping[str, Any]) -> Principal:
        """Return whom a run's tools are called for, as that is now."""
        starter = _starter_of(data)
        if data["declared"] is None:
            if starter is None:
                raise WorkflowError("it is not known whom its tools are called for")
            return await self._host.approvals.present(starter)
        if data["declared"] not in self._principals and data.get("is_known", True):
            raise WorkflowError(f"its principal {data['declared']!r} is not one of the manifest's any more")
        starter = None if starter is None else await self._host.approvals.present(starter)
        return _within(self._declared(data["declared"], starter), starter)

    async def _hold(self, claim: Claim, reason: str) -> None:
        if claim.wants == "cancel" and not claim.waits and claim.segment <= 1:  # nothing was done
            await self._over(claim, "cancelled", {"error": {"type": "Cancelled", "message": "the run was cancelled"}})
        elif await self._runs.settle(claim, "held", reason=reason, waits=claim.waits):
            await self._tell(claim, "held", {"reason": reason})

    async def _over(self, claim: Claim, state: str, result: Mapping[str, Any]) -> None:
        if await self._runs.settle(claim, state, result=result):
            await self._tell(claim, state, result)

    async def _services(self) -> FlowServices:
        return FlowServices(
            tools=self._host.tools,
            approvals=self._host.approvals,
            idempotency=self._idempotency,
            runs=self._runs,
            engine=await self._attached(),
            masker=self._masker,
            is_fresh=self._watch.is_fresh,
            execute=self._execute,
            start_child=self._start_child,
            tell_step=self._tell_step,
        )

    async def _execute(self, id: str, task: Any, inputs: Mapping[str, Any], who: Principal, run: str) -> Any:
        """Have an executor execute a task."""
        entry = self._executors.get_active(id)
        if entry is None:
            raise WorkflowError(f"no workflow-executor {id!r} is in force{did_you_mean(id, self._executors.ids())}")
        context = PayloadContext(entry, who, {"id": f"workflow:{run}"})
        execute = entry.payload.execute
        job = ForeignJob(
            lambda: execute(task, dict(inputs), context),
            is_async=is_async(execute),
            seconds=None,
            threads=self._host.tools.executor.threads,
            users=entry._slot.users,  # noqa: SLF001 - the slot is our own
        )
        answer, error = await job.start().outcome()
        if error is not None:
            raise error
        return answer

    # -- what is told ------------------------------------------------------------------------------------------

    async def _tell_step(self, claim: Claim, key: str, kind: str, name: str, payload: Mapping[str, Any]) -> None:
        state = "skipped" if "skipped" in payload else "done" if payload["ok"] else "failed"
        error = None if payload["ok"] else payload["error"]["type"]
        said: dict[str, Any] = {"run": claim.id, "workflow": claim.workflow, "version": claim.version}
        await self._emit(events.WorkflowStepEnded(**said, step=key, name=name, kind=kind, state=state, error=error))

    async def _tell(self, claim: Claim, what: str, facts: Mapping[str, Any]) -> None:
        """Tell what became of a run: by an event, and on record where it is over or taken over."""
        said: dict[str, Any] = {"run": claim.id, "workflow": claim.workflow, "version": claim.version}
        error = facts.get("error") or {}
        if what == "finished":
            event: Event = events.WorkflowFinished(**said)
        elif what == "failed":
            event = events.WorkflowFailed(**said, error=error["type"], message=error["message"])
        elif what == "cancelled":
            event = events.WorkflowCancelled(**said, reason=error["message"])
        elif what == "paused":
            event = events.WorkflowPaused(**said)
        else:
            made, names = _TOLD[what]
            event = made(**said, **{name: facts[name] for name in names})
        if what not in ("waiting", "paused"):
            self._host.audit.note(f"workflow:{what}", None, **said, **({"error": error["type"]} if error else {}))
        if what in ("finished", "failed", "cancelled") and (over := self._ended.pop(claim.id, None)) is not None:
            over.set()
        await self._emit(event)
        self._watch.kick()

    async def _emit(self, event: Event) -> None:
        self._manager.events.post(event)
        await self._manager.events.deliver()

    def _audit(self, what: str, row: Mapping[str, Any], **facts: Any) -> None:
        self._host.audit.note(f"workflow:{what}", None, **_named(row), **facts)

    # -- looking -----------------------------------------------------------------------------------------------

    async def result(self, id: str) -> Any:
        """Wait until the run is over and return its output; raise WorkflowError if it failed or was cancelled."""
        await self.prepare()
        while True:
            over = self._ended.setdefault(id, asyncio.Event())
            row = await self._row(id)
            if RunState(row["state"]).is_over:
                self._ended.pop(id, None)
                return output_of(row)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL):
                    await over.wait()

    async def get(self, id: str) -> WorkflowRun:
        """Return the run as it is now, with its steps; raise WorkflowError if it is unknown."""
        row = await self._row(id)
        engine = await self._attached()
        recorded = await recorded_steps(engine, id, row["segment"])
        waits = await self._runs.waits(id)
        execution = self._watch.execution(id)
        flow = None if execution is None else execution.flow
        return await self._shown(row, records_of(recorded, waits, flow, row))

    async def list(
        self, *, workflow: str | None = None, state: RunState | str | None = None, limit: int = 100
    ) -> Sequence[WorkflowRun]:
        """Return runs, the newest first, without their steps."""
        if state is not None:
            state = RunState(state)
        if type(limit) is not int or not 1 <= limit <= _RUNS_LISTED:
            raise WorkflowError(f"limit: expected 1 to {_RUNS_LISTED:,}, got {limit!r}")
        rows = await self._runs.list(workflow, state, limit)
        return [await self._shown(row) for row in rows]

    async def _row(self, id: str) -> dict[str, Any]:
        row = await self._runs.get(id) if isinstance(id, str) else None
        if row is None:
            raise WorkflowError(f"there is no run {str(id)[:64]!r}; `workflows.list()` lists them", run=str(id)[:64])
        return row

    async def _shown(self, row: Mapping[str, Any], steps: Sequence[StepRecord] = ()) -> WorkflowRun:
        data = json.loads(row["data"])
        result = {} if row["result"] is None else json.loads(row["result"])
        starter, declared = _starter_of(data), data["declared"]
        caller = starter if declared is None else self._declared(declared, starter)
        return WorkflowRun(
            id=row["id"],
            workflow=row["workflow"],
            version=row["version"],
            state=RunState(row["state"]),
            inputs=data["inputs"],
            output=result.get("output"),
            error=result.get("error"),
            steps=tuple(steps),
            reason=row["reason"],
            principal=None if caller is None else caller.key,
            started_by=None if starter is None else starter.key,
            key=row["run_key"],
            parent=row["parent"],
            created_at=time_of(row["created_at"]),
            updated_at=time_of(row["updated_at"]),
        )

    # -- deciding ----------------------------------------------------------------------------------------------

    async def cancel(self, id: str, reason: str = "", *, by: Principal | str | None = None) -> WorkflowRun:
        """Stop a run and undo what it did, as far as its steps say how. A step under way ends first.

        Raises WorkflowError for one that is over already.
        """
        return await self._wanted(id, "cancel", reason, by)

    async def pause(self, id: str, *, by: Principal | str | None = None) -> WorkflowRun:
        """Let no further step of a run begin, until `resume`. A step under way ends first."""
        return await self._wanted(id, "pause", "", by)

    async def _wanted(self, id: str, wants: str, reason: str, by: Principal | str | None) -> WorkflowRun:
        await self.prepare()
        row = await self._row(id)
        if not await self._runs.want(id, wants):
            state = (await self._row(id))["state"]
            raise WorkflowError(f"the run {id} is {state}: it can't be {_PAST[wants]}", run=id)
        self._audit(wants, row, by=name_of(by), reason=self._masker.mask(reason)[:500])
        execution = self._watch.execution(id)
        if execution is not None:
            execution.want(wants)
        self._watch.kick()
        return await self._shown(await self._row(id))

    async def resume(
        self,
        id: str,
        *,
        unknown: UnknownDecision | None = None,
        output: Any = None,
        by: Principal | str | None = None,
    ) -> WorkflowRun:
        """Go on with a run that is paused, held or unknown.

        unknown: what is decided of the steps whose end is unknown: `retry` them, take them for `done` with *output*, or
        `fail` them. Without it, what is unknown is only looked at again.
        """
        await self.prepare()
        row = await self._row(id)
        if unknown is not None and unknown not in _DECISIONS:
            raise WorkflowError(f"unknown: expected one of {', '.join(_DECISIONS)}, got {unknown!r}", run=id)
        decisions = {} if row["decisions"] is None else json.loads(row["decisions"])
        if unknown is not None:
            if row["state"] != RunState.UNKNOWN:
                raise WorkflowError(f"the run {id} is {row['state']}: nothing of it is unknown", run=id)
            decision = {"decision": unknown, "output": _as_json(output, "output"), "id": uuid.uuid4().hex[:8]}
            waits = [wait for wait in await self._runs.waits(id) if wait.kind == "unknown"]
            decisions |= {wait.step: {**decision, "attempt": int(wait.ref or 1)} for wait in waits}
        if not await self._runs.requeue(id, decisions):
            raise WorkflowError(f"the run {id} is {row['state']}: there is nothing to resume", run=id)
        self._audit("resumed", row, by=name_of(by), decision=unknown)
        await self._emit(events.WorkflowResumed(**_named(row)))
        self._watch.kick()
        return await self._shown(await self._row(id))

    async def signal(self, id: str, name: str, value: Any = None) -> None:
        """Give a run a value that it waits for, or will wait for, with `flow.wait_for`."""
        row = await self._row(id)
        if fault := fault_of_name(name):
            raise WorkflowError(f"signal: name: {fault}", run=id)
        if RunState(row["state"]).is_over:
            raise WorkflowError(f"the run {id} is {row['state']}: nothing waits for a signal", run=id)
        kept = _as_json(self._masker.mask_data(value), "signal: value")
        if not await self._runs.put_signal(id, name, kept):
            raise WorkflowError(f"the run {id} has {SIGNALS:,} signals that it has not taken; no more are kept", run=id)
        self._watch.kick()

    # -- schedules ---------------------------------------------------------------------------------------------

    async def schedule(
        self,
        id: str,
        workflow: str,
        cron: str,
        *,
        timezone: str = "UTC",
        inputs: Mapping[str, Any] | None = None,
        missed: Missed = "once",
        principal: Principal | str | None = None,
    ) -> WorkflowSchedule:
        """Start a workflow by the clock; a schedule of that id is replaced.

        cron: five fields, in *timezone*. missed: whether times that passed while no host was there are skipped, made up
        for once, or all of them, the last 100 at the most. principal: as for `start`.
        """
        await self.prepare()
        check_schedule(id, cron, timezone, missed)
        data = self._data_of(workflow, inputs, self._who(principal))
        said = {"cron": cron, "timezone": timezone, "missed": missed}
        said |= {"inputs": data["inputs"], "starter": data["starter"]}
        next_at = next(cron_times.times_after(cron, timezone, self._runs.now()))
        await self._runs.put_schedule(id, workflow, said, next_at)
        self._host.audit.note("workflow:scheduled", None, schedule=id, workflow=workflow, cron=cron)
        return schedule_of(
            {"id": id, "workflow": workflow, "data": json.dumps(said), "next_at": next_at, "last_at": None}
        )

    async def unschedule(self, id: str) -> None:
        """Start nothing more by that schedule."""
        if not await self._runs.drop_schedule(id):
            raise WorkflowError(f"there is no schedule {id!r}")
        self._host.audit.note("workflow:unscheduled", None, schedule=id)

    async def schedules(self) -> Sequence[WorkflowSchedule]:
        """Return the schedules."""
        return [schedule_of(row) for row in await self._runs.schedules()]

    async def _keep_schedules(self) -> None:
        """Start what is due, and look again at what is held."""
        await self._release_held()
        for row in await self._runs.due_schedules():
            try:
                await self._start_due(row)
            except WorkflowError as error:
                if self._told.get(row["id"]) != str(error):  # it is looked at again and again
                    self._told[row["id"]] = str(error)
                    self._logger.warning("the schedule %s can't start its workflow: %s", row["id"], error)

    async def _start_due(self, row: Mapping[str, Any]) -> None:
        """Start a schedule's workflow for the times that have come. Each has a key: of several hosts one starts it."""
        said, now = json.loads(row["data"]), self._runs.now()
        if self._registry.get_active(row["workflow"]) is None:
            return  # another host may have it
        starter = (
            None if said["starter"] is None else await self._host.approvals.present(stored_principal(said["starter"]))
        )
        data = self._data_of(row["workflow"], said["inputs"], starter)
        wanted, upcoming = due_times(said, row["next_at"], now)
        for time in wanted:
            await self._add(uuid.uuid4().hex, row["workflow"], data, key=f"schedule:{row['id']}:{time:.0f}")
        last = wanted[-1] if wanted else row["last_at"]
        await self._runs.move_schedule(row["id"], row["next_at"], upcoming, last)

    async def _release_held(self) -> None:
        """Let go on what another host held, which has other code, or this one did before it had the code."""
        for row in await self._runs.held():
            data = json.loads(row["data"])
            is_here = self._entry_of(row["workflow"], row["version"]) is not None
            if "definition" in data:
                is_here = self._registry.get_active(row["workflow"]) is not None
            if not is_here:
                continue
            with contextlib.suppress(ProposalError, WorkflowError):  # whom its tools are called for is unknown still
                await self._principal_of(data)
                await self._runs.requeue(row["id"], json.loads(row["decisions"] or "{}"))


_PAST = {"cancel": "cancelled", "pause": "paused"}


def _called(payload: Any, inputs: Mapping[str, Any], flow: LiveFlow) -> Awaitable[Any]:
    """Call a workflow: a function with its inputs by name, or a definition by what runs definitions."""
    answer: Awaitable[Any]
    if inspect.iscoroutinefunction(payload):
        answer = payload(flow, **inputs)
    else:
        module = importlib.import_module("agentos.workflows.definition_flow")
        answer = module.run_definition(payload, flow, inputs)
    return answer


def _check_inputs(payload: Any, workflow: str, inputs: Mapping[str, Any]) -> None:
    """Raise WorkflowError if a workflow's function can't be called with *inputs*."""
    if not isinstance(inputs, Mapping):
        raise WorkflowError(f"workflow {workflow!r}: inputs: expected a mapping, got {type(inputs).__name__}")
    if not inspect.iscoroutinefunction(payload):
        return
    try:
        inspect.signature(payload).bind(None, **inputs)
    except TypeError as error:
        raise WorkflowError(f"workflow {workflow!r}: inputs: {error}") from None


def _payload_of(entry: Entry, claim: Claim) -> Any:
    """Return the code of a run: if it is data, what was stored with the run."""
    kept = claim.data.get("definition")
    return entry.payload if kept is None else WorkflowDefinition.from_dict(kept)


def _within(declared: Principal, starter: Principal | None) -> Principal:
    """Return the principal of a workflow with no more than who started it holds."""
    if starter is None or EVERYTHING in starter.held:
        return declared
    return declared.narrow(starter.held).within(*starter.bounds)


def _settings(entry: Entry) -> WorkflowSettings:
    return settings_of_workflow(entry.payload) or WorkflowSettings()


def _as_json(value: Any, what: str) -> Any:
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise WorkflowError(f"{what}: expected JSON: {error}") from None
    if len(text) > _SIZE:
        raise WorkflowError(f"{what}: expected at most {_SIZE:,} characters of JSON, got {len(text):,}")
    return json.loads(text)


def _starter_of(data: Mapping[str, Any]) -> Principal | None:
    return None if data["starter"] is None else stored_principal(data["starter"])


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"run": row["id"], "workflow": row["workflow"], "version": row["version"]}
