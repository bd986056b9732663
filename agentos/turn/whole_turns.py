"""Turns of a host: begun, streamed, kept while they wait for a person, and gone on with."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

import attrs

from agentos.base.foreign import to_the_end
from agentos.errors import StoreError
from agentos.model.persona import Persona
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult
from agentos.turn.adapters.client_kinds import adapter_for
from agentos.turn.adapters.model_adapter import Api
from agentos.turn.turn_outcome import Turn, TurnError, TurnEvent, TurnOptions
from agentos.turn.turn_run import Emit, TurnRun
from agentos.turn.waiting_turns import WaitingTurn, WaitingTurns

Work = Callable[[Emit | None], Coroutine[Any, Any, Turn]]
"""A turn, as a function of what is told on the way."""


class HostTurns:
    """Begins turns and goes on with them, for an AgentOS."""

    def __init__(self, host: Any, kept: WaitingTurns) -> None:
        self._host = host
        self._kept = kept

    def begin(
        self,
        client: Any,
        messages: str | Sequence[Any],
        *,
        api: Api | None = None,
        principal: Principal | None = None,
        session: Mapping[str, Any] | None = None,
        transcript: list[Any] | None = None,
        model: str | None = None,
        strict: bool = False,
        respond: bool = True,
        media: bool = True,
        wait: bool = True,
        max_steps: int = 20,
        max_seconds: float | None = None,
        max_calls: int | None = None,
        max_total_tokens: int | None = None,
        persona: str | None = None,
        memory: bool | Iterable[str] | None = None,
        plan: bool | str | None = None,
        **request: Any,
    ) -> Work:
        """Return a turn that begins when it is called; what is wrong with what was given is raised at once."""
        asked = Persona("none") if persona is None else self._host.personas.get(persona)
        if persona is not None:
            principal = self._host.personas.narrow(persona, principal)
        request = {**asked.model, **request}
        wished = request.pop("model", None)
        options = TurnOptions(
            model=model or wished,
            persona=persona,
            memory=_memory(memory, asked),
            planning=_planning(plan, asked),
            strict=strict,
            respond=respond,
            media=media,
            wait=wait,
            max_steps=max_steps,
            max_seconds=max_seconds,
            max_calls=max_calls,
            max_total_tokens=max_total_tokens,
            more=request,
        )
        adapter = adapter_for(client, api)
        said = [adapter.said(messages, by_user=True)] if isinstance(messages, str) else list(messages)

        async def work(emit: Emit | None) -> Turn:
            run = TurnRun(
                *(self._host, client, adapter, options),
                principal=principal,
                session=session,
                messages=said,
                transcript=transcript,
                emit=emit,
            )
            turn = await run.run()
            if run.unanswered is not None:
                await to_the_end(self._keep(run.unanswered))
            return turn

        return work

    async def _keep(self, waiting: WaitingTurn) -> None:
        try:
            await self._kept.keep(waiting)
        except StoreError as error:
            self._kept.logger.warning("turn %s can't be gone on with later: %s", waiting.id, error)

    # -- going on ----------------------------------------------------------------------------------------------

    def resume(
        self,
        turn: Turn | str,
        client: Any,
        *,
        session: Mapping[str, Any] | None = None,
        transcript: list[Any] | None = None,
    ) -> Work:
        """Return a turn that goes on with one that waited. What keeps it from ending well leaves it as it is then."""
        id = turn.id if isinstance(turn, Turn) else turn
        if not isinstance(id, str):
            raise TurnError("the turn does not wait for anything, so there is nothing to go on with")

        async def work(emit: Emit | None) -> Turn:
            kept = await self._kept.take(id)
            run: TurnRun | None = None
            try:
                results = [await self._result_now(one) for one in kept.results]
                run = await self._run(kept, client, session, transcript, emit)
                turn = await run.go_on(kept, results)
            except BaseException:
                is_begun = run is not None and run.messages != kept.messages
                await to_the_end(self._keep(run.unanswered or run.waiting(run.messages) if is_begun and run else kept))
                raise
            end = self._kept.drop(id) if run.unanswered is None else self._keep(run.unanswered)
            await to_the_end(end)
            return turn

        return work

    async def _run(
        self,
        kept: WaitingTurn,
        client: Any,
        session: Mapping[str, Any] | None,
        transcript: list[Any] | None,
        emit: Emit | None,
    ) -> TurnRun:
        principal = kept.principal
        return TurnRun(
            *(self._host, client, adapter_for(client, kept.api), kept.options),
            principal=None if principal is None else await self._host.approvals.present(principal),
            session=kept.session if session is None else session,
            messages=kept.messages,
            transcript=transcript,
            emit=emit,
        )

    async def _result_now(self, result: ToolResult) -> ToolResult:
        """Return what a call came to; of one that waits still, for which proposal that is now."""
        if result.pending is None:
            return result
        id = str(result.pending["proposal_id"])
        outcome: ToolResult | None = await self._host.approvals.outcome(id)
        if outcome is not None:
            return outcome
        latest = await self._host.approvals.latest(id)
        pending = {**result.pending, "proposal_id": latest.id, "expires_at": latest.expires_at.isoformat()}
        return attrs.evolve(result, meta={**result.meta, "pending": pending})


def _memory(wanted: bool | Iterable[str] | None, persona: Persona) -> Iterable[str] | None:
    """Return the providers to ask, empty for all, None for no memory; a persona says it where nobody else does."""
    if wanted is None:
        return persona.memory or None
    if wanted is False:
        return None
    return persona.memory if wanted is True else (wanted,) if isinstance(wanted, str) else tuple(wanted)


def _planning(wanted: bool | str | None, persona: Persona) -> str | None:
    """Return the strategy, empty for the first in force, None for no plan; a persona says it where nobody else does."""
    if wanted is None or wanted is True:
        return persona.planning or ("" if wanted else None)
    return None if wanted is False else wanted


async def streamed(work: Work) -> AsyncGenerator[TurnEvent, None]:
    """Yield what happens in a turn, and at last its end; whoever closes this cancels the turn."""
    told: asyncio.Queue[TurnEvent | None] = asyncio.Queue()
    task = asyncio.create_task(work(told.put_nowait))
    task.add_done_callback(lambda _: told.put_nowait(None))
    try:
        while (event := await told.get()) is not None:
            yield event
        yield TurnEvent(type="end", turn=await task)
    finally:
        task.cancel()
        await asyncio.wait([task])
