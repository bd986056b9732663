"""The flow of a run that is under way: what was recorded is answered at once, what is new is done and recorded."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import partial
from typing import Any, NoReturn

import attrs

from agentos.access.idempotency import Key
from agentos.access.proposals import ProposalError
from agentos.access.stored_results import result_from_text, result_to_text
from agentos.base.foreign import settled
from agentos.errors import StepFailedError, StoreError, WorkflowError
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolCall, ToolResult
from agentos.model.workflow import StepKind
from agentos.model.workflow_definition import Retry
from agentos.payloads.foreign_job import is_async
from agentos.secrets.masking import MaskingLogger
from agentos.workflows.approval_tool import APPROVAL_TOOL
from agentos.workflows.dbos_engine import RecordedStep, step_name
from agentos.workflows.flow import Flow, Milestone, Undo
from agentos.workflows.flow_services import FlowServices
from agentos.workflows.run_store import Claim, Fenced, Wait

_SHORT = 1.0
"""A wait of at most so many seconds holds its task."""
_LOOK = 0.25
"""After how many seconds a step that waits beside others looks again."""
_BRANCHES = 1_000
_SIZE = 1_000_000
"""How many characters of JSON a step may give."""
_WORDS = 2_000
_UNDO_RETRY = Retry(3, delay=0.5, max_delay=5)
_FINAL = frozenset(
    {
        *("Refused", "ProposalInvalid", "InvalidArguments", "UnknownTool", "DefinitionChanged", "GuardrailBlocked"),
        *("InvalidOutput", "ResultNotSerialisable", "TooLarge", "NotJSON", "Unknown"),
    }
)
"""Types of errors after which nothing is tried again: they would be the same."""
_MAY_HAVE_RUN = frozenset({"Timeout", "TimedOut", "WorkerDied", "Cancelled"})
"""Types of errors after which a tool that must not run twice is not tried again: it may have taken effect."""


@attrs.define
class _Branch:
    """Where in the run code is: what it does side by side has a place of its own."""

    prefix: str = ""
    count: int = 0

    def next(self) -> str:
        """Return the place of the next step."""
        place = f"{self.prefix}{self.count}"
        self.count += 1
        return place


_BRANCH: ContextVar[_Branch] = ContextVar("agentos_workflow_branch")


@attrs.frozen
class _Done:
    """A step that says how it is undone."""

    order: int
    key: str
    name: str
    undo: Undo
    value: Any


class LiveFlow(Flow):
    """The flow of one run, as long as this host works on it."""

    def __init__(
        self, services: FlowServices, claim: Claim, principal: Principal, recorded: Iterable[RecordedStep]
    ) -> None:
        self.id, self.workflow, self.version = claim.id, claim.workflow, claim.version
        self.principal = principal.key
        self.logger = MaskingLogger(f"agentos.workflows.{claim.workflow}", services.masker)
        self._services = services
        self._claim = claim
        self._who = principal
        self._recorded = {step.key: (order, step) for order, step in enumerate(recorded)}
        self._order = len(self._recorded)
        self._earlier = {wait.step: wait for wait in claim.waits}
        self._waits: dict[str, Wait] = {}
        self._done: list[_Done] = []
        self._active = 1
        self._busy = 0
        self._is_draining = False
        self._is_stopped = False
        self.is_lost = False
        self.unknown: dict[str, str] = {}
        """The steps whose end is unknown, and what is known of each."""
        self._attempts: dict[str, int] = {}
        """Which attempt of each step is under way."""
        self.fault: str | None = None
        """Why the run can't go on as it is: its code is not what it was."""
        self.trouble: StoreError | None = None
        """Why nothing of it can be written down now."""
        self.running: dict[str, tuple[str, str]] = {}
        """The kinds and names of the steps under way, by their keys."""
        self._names: dict[str, str] = {}
        self._stands = asyncio.Event()

    # -- for whoever carries the run ---------------------------------------------------------------------------

    @property
    def waits(self) -> Sequence[Wait]:
        """Return what is waited for; what is unknown waits for a decision."""
        return [*self._waits.values(), *map(self._undecided, self.unknown)]

    def _undecided(self, key: str) -> Wait:
        name, attempt = self._names.get(key, key), self._attempts.get(key, 1)
        return Wait(step=key, name=name, kind="unknown", ref=str(attempt), since=self._since(key))

    @property
    def has_undo(self) -> bool:
        """Tell whether a step that was done says how it is undone."""
        return bool(self._done)

    def drain(self) -> None:
        """Let no further step begin; what is recorded is still answered."""
        self._is_draining = True

    def abort(self) -> None:
        """Stop everything, wherever it is."""
        self._is_stopped = True
        self._stands.set()

    async def stands(self, task: "asyncio.Task[Any]") -> bool:
        """Wait until *task* has ended, or everything in it waits; tell whether it has ended. Then it is stopped."""
        standing = asyncio.ensure_future(self._stands.wait())
        try:
            await asyncio.wait([task, standing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            standing.cancel()
        is_well = not self.is_lost and self.fault is None and self.trouble is None
        has_ended = task.done() and not task.cancelled() and is_well
        self._is_stopped = True
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=5.0)
        if task.done() and not task.cancelled():
            task.exception()  # looked at, whether it counts or not
        return has_ended

    def body(self, function: Callable[[], Awaitable[Any]]) -> "asyncio.Task[Any]":
        """Begin *function*, in the first branch."""
        _BRANCH.set(_Branch())
        return asyncio.ensure_future(_whole(function))

    def undoing(self) -> "asyncio.Task[Any]":
        """Begin to undo what was done, the last step first."""
        self._stands = asyncio.Event()
        self._active, self._busy = 1, 0
        self._is_draining = self._is_stopped = False
        self._waits.clear()
        self.unknown.clear()
        _BRANCH.set(_Branch("u"))
        return asyncio.ensure_future(self._undo())

    async def _undo(self) -> list[dict[str, Any]]:
        """Undo step by step, and return what could not be undone."""
        failed: list[dict[str, Any]] = []
        for done in sorted(self._done, key=lambda one: -one.order):
            payload = await self._step("undo", done.name, partial(self._undone, done), key=f"u{done.key}")
            if not payload["ok"]:
                failed.append({"step": done.key, "name": done.name, **payload["error"]})
        return failed

    async def _undone(self, done: _Done, key: str) -> dict[str, Any]:
        try:
            call = done.undo(done.value) if callable(done.undo) else done.undo
        except Exception as error:  # noqa: BLE001 - the workflow's own function
            return self._failed(error)
        if call is None:
            return {"ok": True, "output": None}
        arguments = call.arguments if isinstance(call.arguments, Mapping) else json.loads(call.arguments or "{}")
        return await self._called(key, call.name, arguments, _UNDO_RETRY, None)

    # -- steps -------------------------------------------------------------------------------------------------

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        retry: Retry | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as promised
        undo: Undo = None,
        name: str | None = None,
    ) -> ToolResult:
        """Call a tool by the one door."""

        async def work(key: str) -> dict[str, Any]:
            return await self._called(key, tool, dict(arguments or {}), retry, timeout)

        payload = await self._step("call", name or tool, work, undo=undo)
        self._raise_of(payload, name or tool)
        return result_from_text(payload["result"])

    async def step(
        self,
        function: Callable[..., Any],
        *args: Any,
        retry: Retry | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as promised
        undo: Undo = None,
        name: str | None = None,
    ) -> Any:
        """Call a function."""
        said = str(name or getattr(function, "__name__", type(function).__name__))

        async def once() -> Any:
            if is_async(function):
                return await function(*args)
            return await settled(await asyncio.to_thread(function, *args))

        return await self._output("step", said, partial(self._tried, once, retry, timeout), undo)

    async def execute(
        self,
        executor: str,
        task: Any,
        inputs: Mapping[str, Any] | None = None,
        *,
        retry: Retry | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as promised
        undo: Undo = None,
        name: str | None = None,
    ) -> Any:
        """Have an executor execute a task."""
        once = partial(self._services.execute, executor, task, dict(inputs or {}), self._who, self.id)
        return await self._output("execute", name or executor, partial(self._tried, once, retry, timeout), undo)

    async def gather(self, *steps: Awaitable[Any], return_exceptions: bool = False) -> list[Any]:
        """Do steps side by side."""
        if len(steps) > _BRANCHES:
            raise ValueError(f"gather: expected at most {_BRANCHES} steps, got {len(steps)}")
        if not steps:
            return []
        place = self._branch().next()
        self._active += len(steps) - 1
        left = len(steps)

        async def branch(number: int, step: Awaitable[Any]) -> Any:
            nonlocal left
            _BRANCH.set(_Branch(f"{place}.{number}."))
            try:
                return await step
            finally:
                left -= 1
                if left:  # the last one's place is that of whoever waits for them
                    self._active -= 1
                    self._look_whether_it_stands()

        found = await asyncio.gather(*(branch(*one) for one in enumerate(steps)), return_exceptions=True)
        errors = [one for one in found if isinstance(one, BaseException)]
        if errors and not return_exceptions:
            raise errors[0]
        return found

    async def sleep(
        self, seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0, name: str | None = None
    ) -> None:
        """Go on after a time."""
        total = seconds + 60 * minutes + 3600 * hours + 86_400 * days

        async def work(key: str) -> dict[str, Any]:
            since = self._since(key)
            await self._until(Wait(step=key, name=name or "sleep", kind="sleep", due_at=since + total, since=since))
            return {"ok": True, "output": None}

        await self._step("sleep", name or "sleep", work)

    async def approve(
        self, text: str, *, details: Mapping[str, Any] | None = None, name: str | None = None
    ) -> Mapping[str, Any]:
        """Ask a person."""
        asked = {"text": text, "details": dict(details or {}), "workflow": self.workflow, "run": self.id}

        async def work(key: str) -> dict[str, Any]:
            result = await self._attempted(key, APPROVAL_TOOL, {**asked, "step": key}, 1, None)
            if not result.success:
                return self._payload_of(result)
            latest = await self._services.approvals.latest(str(result.meta.get("proposal")))
            at = None if latest.decided_at is None else latest.decided_at.isoformat()
            return {"ok": True, "output": {"by": latest.decided_by, "at": at, "proposal": latest.id}}

        said: Mapping[str, Any] = await self._output("approve", name or "approve", work)
        return said

    async def wait_for(
        self,
        signal: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as promised
        name: str | None = None,
    ) -> Any:
        """Return the value of the next signal."""
        said = name or signal

        async def work(key: str) -> dict[str, Any]:
            since = self._since(key)
            due = None if timeout is None else since + timeout
            while True:
                is_there, value = await self._services.runs.take_signal(self._claim, key, signal)
                if is_there:
                    return {"ok": True, "output": value}
                if due is not None and self._services.runs.now() >= due:
                    message = f"no signal {signal!r} came within {timeout} seconds"
                    return {"ok": False, "error": {"type": "Timeout", "message": message}}
                await self._stand(Wait(step=key, name=said, kind="signal", ref=signal, due_at=due, since=since))

        return await self._output("signal", said, work)

    async def run(
        self, workflow: str, inputs: Mapping[str, Any] | None = None, *, undo: Undo = None, name: str | None = None
    ) -> Any:
        """Start another workflow, and return its output."""
        said = name or workflow

        async def work(key: str) -> dict[str, Any]:
            child = hashlib.sha256(f"{self.id}:{key}".encode()).hexdigest()[:32]
            try:
                await self._services.start_child(self._claim, child, workflow, dict(inputs or {}), self._who)
            except WorkflowError as error:
                return self._failed(error)
            while True:
                row = await self._services.runs.get(child)
                if row is not None and row["state"] in ("finished", "failed", "cancelled"):
                    return _ended_child(row)
                await self._stand(Wait(step=key, name=said, kind="workflow", ref=child, since=self._since(key)))

        return await self._output("workflow", said, work, undo)

    async def now(self) -> datetime:
        """Return the time."""

        async def work(_: str) -> dict[str, Any]:
            return {"ok": True, "output": self._services.runs.now()}

        return datetime.fromtimestamp(await self._output("now", "now", work), UTC)

    async def skipped(self, name: str, reason: str) -> None:
        """Record that something was not done."""

        async def work(_: str) -> dict[str, Any]:
            return {"ok": True, "output": None, "skipped": reason}

        await self._step("skip", name, work)

    def milestone(self) -> Milestone:
        """Return what branches wait for."""
        return _LiveMilestone(self)

    # -- doing and recording -----------------------------------------------------------------------------------

    def _branch(self) -> _Branch:
        branch = _BRANCH.get(None)
        if branch is None:
            raise RuntimeError("a flow is used by the function of its workflow, and by nothing else")
        return branch

    async def _output(
        self, kind: StepKind, name: str, work: Callable[[str], Awaitable[dict[str, Any]]], undo: Undo = None
    ) -> Any:
        payload = await self._step(kind, name, work, undo=undo)
        self._raise_of(payload, name)
        return payload["output"]

    def _raise_of(self, payload: Mapping[str, Any], name: str) -> None:
        if not payload["ok"]:
            error = payload["error"]
            raise StepFailedError(name, error["type"], error["message"], error.get("details"))

    async def _step(
        self,
        kind: StepKind,
        name: str,
        work: Callable[[str], Awaitable[dict[str, Any]]],
        *,
        undo: Undo = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        """Return what a step came to: what was recorded, or what *work* comes to now."""
        key = self._branch().next() if key is None else key
        if self._is_stopped:
            raise asyncio.CancelledError
        order, recorded = self._recorded.get(key, (0, None))
        if recorded is None:
            order, payload = await self._new(key, kind, name, work)
        elif (recorded.kind, recorded.name) != (kind, name):
            self.fault = (
                f"step {key} was {recorded.kind} {recorded.name!r} when the run began and is {kind} {name!r} now: "
                "the workflow's steps changed, but not its version, or they depend on more than its inputs"
            )
            await self._never()
        else:
            payload = recorded.payload
        if undo is not None and payload["ok"]:
            value = result_from_text(payload["result"]) if "result" in payload else payload["output"]
            self._done.append(_Done(order, key, name, undo, value))
        return payload

    async def _new(
        self, key: str, kind: StepKind, name: str, work: Callable[[str], Awaitable[dict[str, Any]]]
    ) -> tuple[int, dict[str, Any]]:
        if self._is_draining:
            await self._never(stops=False)
        self._busy += 1
        self.running[key] = (kind, name)
        self._names[key] = name
        began = self._services.runs.now()
        try:
            await self._see_that_it_is_ours()
            payload = self._bounded(await work(key))
            await self._record(key, kind, name, {**payload, "at": began})
        except Fenced:
            await self._lose()
        except StoreError as error:  # it is not the workflow's: the run is gone on with once the store is back
            self.trouble = error
            await self._never()
        finally:
            self._busy -= 1
            self.running.pop(key, None)
            self._waits.pop(key, None) if not self._is_stopped else None
        self._order += 1
        await self._services.tell_step(self._claim, key, kind, name, payload)
        return self._order, payload

    async def _record(self, key: str, kind: StepKind, name: str, payload: dict[str, Any]) -> None:
        try:
            await self._services.engine.record(step_name(key, kind, name), payload)
        except BaseException as error:
            if self._services.engine.is_lost(error):
                await self._lose()
            if not isinstance(error, Exception):
                raise
            raise StoreError(f"step {key} can't be recorded now: {type(error).__name__}", unavailable=True) from None

    def _bounded(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return a payload that can be written down: JSON, not too large, with known secrets masked."""
        try:
            masked: dict[str, Any] = self._services.masker.mask_data(payload)
            size = len(json.dumps(masked, allow_nan=False))
        except (TypeError, ValueError) as error:
            return {"ok": False, "error": {"type": "NotJSON", "message": f"what the step gave is not JSON: {error}"}}
        if size > _SIZE:
            message = f"the step gave {size:,} characters of JSON, and {_SIZE:,} is the most that is kept"
            return {"ok": False, "error": {"type": "TooLarge", "message": message}}
        return masked

    async def _see_that_it_is_ours(self) -> None:
        """Before something is done, see that nobody took the run for dead: only if this host was silent for long."""
        if not self._services.is_fresh() and not await self._services.runs.is_ours(self._claim):
            await self._lose()

    async def _lose(self) -> NoReturn:
        self.is_lost = True
        await self._never()

    async def _never(self, *, stops: bool = True) -> NoReturn:
        """Go no further in this branch: with *stops* the whole run stops here."""
        if self._is_stopped:
            raise asyncio.CancelledError
        if stops:
            self._is_stopped = True
            self._stands.set()
        else:
            self._active -= 1
            self._look_whether_it_stands()
        await self._hang()

    async def _hang(self) -> NoReturn:
        """Wait to be stopped."""
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nothing ends this")

    # -- waiting -----------------------------------------------------------------------------------------------

    def _since(self, key: str) -> float:
        """Return when a step was first reached."""
        earlier = self._earlier.get(key)
        return self._services.runs.now() if earlier is None else earlier.since

    async def _until(self, wait: Wait) -> None:
        """Return when the time of *wait* has come."""
        while (left := (wait.due_at or 0.0) - self._services.runs.now()) > 0:
            if left <= _SHORT:
                await asyncio.sleep(left)
            else:
                await self._stand(wait)

    async def _stand(self, wait: Wait) -> None:
        """Wait for a while, beside others that go on; if nothing does, the run is let go and this never returns."""
        key = wait.step
        if self._earlier.get(key) != wait and self._waits.get(key) != wait:
            await self._services.runs.put_wait(self._claim, wait)
        self._waits[key] = wait
        self._active -= 1
        self._busy -= 1
        self._look_whether_it_stands()
        await asyncio.sleep(_LOOK)
        if self._is_draining:
            await self._hang()
        self._active += 1
        self._busy += 1

    def wake(self, branches: int) -> None:
        """Count branches as active, or with a negative number as waiting for others."""
        self._active += branches
        self._look_whether_it_stands()

    def _look_whether_it_stands(self) -> None:
        if self._active <= 0 and self._busy <= 0:
            self._stands.set()

    async def _stop_as_unknown(self, key: str, reason: str) -> NoReturn:
        self.unknown[key] = reason
        self._busy -= 1
        await self._never(stops=False)

    # -- functions and executors -------------------------------------------------------------------------------

    async def _tried(
        self, once: Callable[[], Awaitable[Any]], retry: Retry | None, limit: float | None, key: str
    ) -> dict[str, Any]:
        async def attempt(number: int) -> dict[str, Any]:
            try:
                async with asyncio.timeout(limit) as clock:
                    return {"ok": True, "output": await once(), "attempts": number}
            except TimeoutError as error:
                if not clock.expired():
                    return {**self._failed(error), "attempts": number}
                message = f"it took longer than {limit} seconds"
                return {"ok": False, "error": {"type": "Timeout", "message": message}, "attempts": number}
            except Exception as error:  # noqa: BLE001 - the workflow's own function
                return {**self._failed(error), "attempts": number}

        return await self._again(key, attempt, retry)

    def _failed(self, error: BaseException) -> dict[str, Any]:
        kind = error.type if isinstance(error, WorkflowError) else type(error).__name__
        return {"ok": False, "error": {"type": kind, "message": self._services.masker.mask(str(error))[:_WORDS]}}

    async def _again(
        self,
        key: str,
        attempt: Callable[[int], Awaitable[dict[str, Any]]],
        retry: Retry | None,
        is_final: Callable[[Mapping[str, Any]], bool] = lambda _: False,
    ) -> dict[str, Any]:
        """Try until it works, or the last attempt failed, or trying again makes no sense."""
        earlier = self._earlier.get(key)
        number = int(earlier.ref or 1) if earlier is not None and earlier.kind in ("retry", "unknown") else 1
        if earlier is not None and earlier.kind == "retry":
            await self._until(earlier)
        while True:
            payload = await attempt(number)
            if payload["ok"] or retry is None or number >= retry.attempts:
                return payload
            error = payload["error"]
            if error["type"] in _FINAL or error["type"] in retry.not_on or is_final(error):
                return payload
            due, (_, name) = self._services.runs.now() + retry.wait(number), self.running.get(key, ("", key))
            number += 1
            since = self._since(key)
            await self._until(Wait(step=key, name=name, kind="retry", ref=str(number), due_at=due, since=since))

    # -- tools -------------------------------------------------------------------------------------------------

    async def _called(
        self, key: str, tool: str, arguments: Mapping[str, Any], retry: Retry | None, limit: float | None
    ) -> dict[str, Any]:
        async def attempt(number: int) -> dict[str, Any]:
            return {**self._payload_of(await self._attempted(key, tool, arguments, number, limit)), "attempts": number}

        may_repeat = self._may_repeat(tool)
        return await self._again(key, attempt, retry, lambda error: not may_repeat and error["type"] in _MAY_HAVE_RUN)

    def _payload_of(self, result: ToolResult) -> dict[str, Any]:
        error = result.error
        found = {"proposal": result.meta["proposal"]} if result.meta.get("proposal") else {}
        if result.success or error is None:
            return {"ok": True, "result": result_to_text(result), **found}
        details = {name: value for name, value in error.details.items() if name != "token"}
        return {"ok": False, "error": {"type": error.type, "message": error.message, "details": details}, **found}

    def _may_repeat(self, tool: str) -> bool:
        ready = self._services.tools.catalog.find(tool)
        return ready is None or ready.tool.effect == "read" or bool(ready.tool.idempotent)

    async def _attempted(
        self, key: str, tool: str, arguments: Mapping[str, Any], number: int, limit: float | None
    ) -> ToolResult:
        """Make a call, or go on with it where it was cut off."""
        self._attempts[key] = number
        ready = self._services.tools.catalog.find(tool)
        name = f"workflow:{self.id}:{key}:{number}"
        if ready is None or (ready.tool.effect == "read" and ready.tool.intervention in (None, "never")):
            return await self._through_door(key, ToolCall(tool, arguments), limit)
        decision = self._claim.decisions.get(key)
        if decision is not None and decision["attempt"] == number:
            if decision["decision"] == "done":
                return ToolResult.ok(decision.get("output"))
            if decision["decision"] == "fail":
                return _failure("Unknown", "a person took it for failed: whether it took effect was unknown")
            name = f"{name}:{decision['id']}"
        if self._claim.segment > 1:
            found = await self._cut_off(key, name, ready.qualified_id, may_repeat=self._may_repeat(tool))
            if isinstance(found, ToolResult):
                return found
            name = found
        return await self._through_door(key, ToolCall(tool, arguments, idempotency_key=name), limit)

    async def _cut_off(self, key: str, name: str, tool: str, *, may_repeat: bool) -> ToolResult | str:
        """Return what a call came to that an earlier host made; or by which key it is to be made now."""
        proposals = await self._services.runs.proposals(self._who.key, name)
        if proposals:
            return await self._decided(key, proposals[-1])
        state = await self._services.idempotency.state(Key(self._who.key, tool, name))
        if state != "running":
            return name
        if may_repeat:
            return f"{name}:{self._claim.fence}"
        return await self._stop_as_unknown(key, f"{tool} was called, and whether it took effect is unknown")

    async def _through_door(self, key: str, call: ToolCall, limit: float | None) -> ToolResult:
        services = self._services
        only_if = services.runs.insist_on(self._claim) if call.idempotency_key else None
        session = {"id": f"workflow:{self.id}"}
        try:
            async with asyncio.timeout(limit) as clock:
                result = await services.tools.process_tool_call(call, self._who, session=session, only_if=only_if)
        except TimeoutError:
            if not clock.expired():
                raise
            return _failure("Timeout", f"{call.name} took longer than {limit} seconds")
        details: Mapping[str, Any] = {} if result.error is None else result.error.details
        if details.get("lost"):
            await self._lose()
        if details.get("unavailable") and result.error is not None:
            raise StoreError(result.error.message, unavailable=True)
        if details.get("unknown"):
            await self._stop_as_unknown(key, f"{call.name}: {result.error.message if result.error else ''}")
        if result.error is not None and result.error.type == "Cancelled" and result.meta.get("replayed"):
            return await self._after_cancelled(key, call, limit)
        if result.pending is not None:
            return await self._decided(key, str(result.pending["proposal_id"]))
        return result

    async def _after_cancelled(self, key: str, call: ToolCall, limit: float | None) -> ToolResult:
        """Go on with a call that was cancelled while it ran, because its host ended."""
        if not self._may_repeat(call.name):
            await self._stop_as_unknown(key, f"{call.name} was cut off, and whether it took effect is unknown")
        again = attrs.evolve(call, idempotency_key=f"{call.idempotency_key}:{self._claim.fence}")
        return await self._through_door(key, again, limit)

    async def _decided(self, key: str, proposal: str) -> ToolResult:
        """Wait for a person, and return what the call came to."""
        approvals, (_, name) = self._services.approvals, self.running.get(key, ("", key))
        try:
            while True:
                latest = await approvals.latest(proposal)
                if latest.state == "expired":  # it waits for as long as it takes
                    latest = await approvals.ask_again(latest.id)
                result = await approvals.outcome(latest.id)
                if latest.state == "unknown" and result is not None:
                    await self._stop_as_unknown(key, f"{latest.tool}: {result.content}")
                if result is not None:
                    return attrs.evolve(result, meta={**result.meta, "proposal": latest.id})
                wait = Wait(step=key, name=name, kind="proposal", ref=latest.id, since=self._since(key))
                await self._stand(wait)
        except ProposalError as error:
            return _failure("ProposalInvalid", str(error), {"proposal": proposal})


class _LiveMilestone(Milestone):
    """Who waits for it is not active, so that a run in which everything waits is let go."""

    def __init__(self, flow: LiveFlow) -> None:
        self._flow = flow
        self._event = asyncio.Event()
        self._waiting = 0

    def reach(self) -> None:
        """Let those go on that wait: they count as active again from here on, not from when they have their turn."""
        self._flow.wake(self._waiting)
        self._waiting = 0
        self._event.set()

    async def reached(self) -> None:
        """Go on once it is reached."""
        if not self._event.is_set():
            self._waiting += 1
            self._flow.wake(-1)
            await self._event.wait()


def _failure(type: str, message: str, details: Mapping[str, Any] | None = None) -> ToolResult:
    """Return how a step failed whose call has no result of its own."""
    return ToolResult.fail(type, message, details)


async def _whole(function: Callable[[], Awaitable[Any]]) -> Any:
    return await function()


def _ended_child(row: Mapping[str, Any]) -> dict[str, Any]:
    result = {} if row["result"] is None else json.loads(row["result"])
    if row["state"] == "finished":
        return {"ok": True, "output": result.get("output")}
    error = result.get("error") or {"type": "Cancelled", "message": f"the run {row['id']} was {row['state']}"}
    return {"ok": False, "error": {**error, "details": {"run": row["id"]}}}
