"""One run on this host: from the moment it is taken until it is let go."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from agentos.errors import StepFailedError
from agentos.model.principal import Principal
from agentos.secrets.masking import MaskingLogger
from agentos.workflows.dbos_engine import DbosEngine, RecordedStep, segment_id
from agentos.workflows.flow_services import FlowServices
from agentos.workflows.live_flow import LiveFlow
from agentos.workflows.run_store import Claim, Fenced, Wait

_WORDS = 2_000

Body = Callable[[LiveFlow], Awaitable[Any]]


class RunExecution:
    """Carries a run that was claimed: replays what is recorded, goes on, and says in the store what became of it."""

    def __init__(
        self,
        services: FlowServices,
        claim: Claim,
        principal: Principal,
        body: Body,
        tell: Callable[[Claim, str, Mapping[str, Any]], Awaitable[None]],
        logger: MaskingLogger,
    ) -> None:
        self.claim = claim
        self._services = services
        self._principal = principal
        self._body = body
        self._tell = tell
        self._logger = logger
        self._wants = claim.wants
        self._ending: Mapping[str, Any] | None = claim.ending
        self._is_released = False
        self._trouble: BaseException | None = None
        self.flow: LiveFlow | None = None

    # -- from outside ------------------------------------------------------------------------------------------

    def want(self, wants: str) -> None:
        """Let no further step begin: `cancel`, `pause`, `release` to another host, or `expire` for its time is up."""
        if wants == "release":
            self._is_released = True
        elif self._ending is not None:
            return  # how it ends is decided
        elif wants == "expire":
            self._ending = _timed_out()
        else:
            self._wants = wants
        if self.flow is not None:
            self.flow.drain()

    def abort(self) -> None:
        """Stop what is under way: its steps are not recorded, and whoever takes the run finds them cut off."""
        self._is_released = True
        if self.flow is not None:
            self.flow.abort()

    # -- carrying ----------------------------------------------------------------------------------------------

    async def carry(self) -> None:
        """Work on the run until it stands or is over. Whatever keeps it from that is raised: the run is ours still."""
        claim, engine = self.claim, self._services.engine
        try:
            if claim.taken_from is not None:
                await engine.abandon(segment_id(claim.id, claim.segment - 1))
                await self._tell(claim, "taken_over", {"owner": claim.taken_from})
            recorded = await recorded_steps(engine, claim.id, claim.segment - 1)
            await engine.run(segment_id(claim.id, claim.segment), lambda: self._segment(recorded))
            if self._trouble is not None:
                raise self._trouble
        except Fenced:
            self._logger.warning("the run %s is another host's now", claim.id)

    async def _segment(self, recorded: Sequence[RecordedStep]) -> None:
        try:
            await self._carry(recorded)
        except (Fenced, Exception) as error:  # noqa: BLE001 - DBOS must not take it for the end of the run
            self._trouble = error

    async def _carry(self, recorded: Sequence[RecordedStep]) -> None:
        flow = self.flow = LiveFlow(self._services, self.claim, self._principal, recorded)
        now = self._services.runs.now()
        if self._ending is None and self.claim.deadline is not None and self.claim.deadline <= now:
            self._ending = _timed_out()
        if self._ending is not None or self._wants is not None or self._is_released:
            flow.drain()
        task = flow.body(lambda: self._body(flow))
        has_ended = await flow.stands(task)
        self._see_trouble(flow)
        if flow.fault is not None:
            await self._fail({"type": "Nondeterminism", "message": flow.fault}, flow)
        elif self._ending is not None or self._wants == "cancel":
            await self._cancel(flow)
        elif not has_ended:
            await self._stand(flow)
        elif (error := task.exception()) is not None:
            await self._fail(self._said(error), flow)
        else:
            await self._finish(task.result(), flow)

    def _see_trouble(self, flow: LiveFlow) -> None:
        """Raise what keeps the run from being carried on here, or now."""
        if flow.is_lost:
            raise Fenced
        if flow.trouble is not None:
            raise flow.trouble

    def _said(self, error: BaseException) -> dict[str, Any]:
        kind = error.type if isinstance(error, StepFailedError) else type(error).__name__
        said = {"type": kind, "message": self._services.masker.mask(str(error))[:_WORDS]}
        return {**said, "step": error.step} if isinstance(error, StepFailedError) else said

    async def _finish(self, output: Any, flow: LiveFlow) -> None:
        payload = flow._bounded({"ok": True, "output": output})  # noqa: SLF001 - one thing in two files
        if not payload["ok"]:
            await self._fail(payload["error"], flow)
        else:
            await self._over("finished", {"output": payload["output"]})

    async def _fail(self, error: Mapping[str, Any], flow: LiveFlow) -> None:
        await self._undo({"state": "failed", "error": dict(error)}, flow)

    async def _cancel(self, flow: LiveFlow) -> None:
        said = {"type": "Cancelled", "message": "the run was cancelled"}
        ending = self._ending or {"state": "cancelled", "error": said}
        if self._ending is None:
            self._ending = ending
            await self._services.runs.end(self.claim, ending)
        await self._services.runs.cancel_children(self.claim)
        await self._undo(ending, flow)

    async def _undo(self, ending: Mapping[str, Any], flow: LiveFlow) -> None:
        """Undo what was done, then say how the run ended."""
        failed: list[dict[str, Any]] = []
        if flow.has_undo:
            if self._ending is None:
                self._ending = ending
                await self._services.runs.end(self.claim, ending)
            task = flow.undoing()
            has_ended = await flow.stands(task)
            self._see_trouble(flow)
            if not has_ended:
                await self._stand(flow)
                return
            failed = task.result()
        error = {**ending["error"], **({"not_undone": failed} if failed else {})}
        await self._over(ending["state"], {"error": error})

    async def _over(self, state: str, result: Mapping[str, Any]) -> None:
        if not await self._services.runs.settle(self.claim, state, result=result):
            raise Fenced
        await self._tell(self.claim, state, result)

    async def _stand(self, flow: LiveFlow) -> None:
        """Let the run go: it waits, is paused, or nobody knows how a step ended."""
        state, reason = self._standing(flow)
        waits: list[Wait] = list(flow.waits)
        wants = self._wants if state == "queued" else None
        if not await self._services.runs.settle(self.claim, state, reason=reason, waits=waits, wants=wants):
            raise Fenced
        if state != "queued":
            step = next(iter(flow.unknown), "")
            await self._tell(self.claim, state, {"reason": reason or "", "step": step})

    def _standing(self, flow: LiveFlow) -> tuple[str, str | None]:
        if flow.unknown:
            return "unknown", "; ".join(f"step {key}: {reason}" for key, reason in flow.unknown.items())
        if self._is_released:
            return "queued", None
        if self._wants == "pause" and self._ending is None:
            return "paused", None
        return "waiting", "; ".join(wait.reason for wait in flow.waits[:3]) or None


def _timed_out() -> dict[str, Any]:
    return {"state": "failed", "error": {"type": "Timeout", "message": "the run took longer than its workflow allows"}}


async def recorded_steps(engine: DbosEngine, run: str, segments: int) -> list[RecordedStep]:
    """Return what was recorded in the first *segments* of a run."""
    return await engine.steps([segment_id(run, number) for number in range(1, segments + 1)]) if segments > 0 else []
