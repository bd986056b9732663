"""A turn under way: ask the model, run its calls, answer, until it is done, has to wait, or comes to a limit."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import attrs

from agentos.errors import AgentOSError, GuardrailBlockedError
from agentos.interop._provider_calls import ModelCall, Reply, ToolList, host_calls, pending_ids, results_of
from agentos.model.principal import Principal
from agentos.model.response import Response
from agentos.model.tool_call import ToolCall, ToolResult
from agentos.secrets.masking import Masker
from agentos.tools.wire_names import WireNames
from agentos.turn.adapters.model_adapter import Assembler, Ending, ModelAdapter, ModelRequest
from agentos.turn.model_requests import chunks, whole
from agentos.turn.turn_aids import TurnAids
from agentos.turn.turn_guards import GuardedText, TurnGuards, blocked_text
from agentos.turn.turn_outcome import StoppedBy, Turn, TurnEvent, TurnOptions
from agentos.turn.waiting_turns import WaitingTurn

_SAME = 3
_ALTERNATING = 6
_NOTE = (
    "[Note: you keep making the same calls with the same arguments, and the results will not change. "
    "Use what you have, try something else, or tell the user what is missing.]"
)
Emit = Callable[[TurnEvent], None]


@attrs.frozen
class _Said:
    """What a model said, and what became of its words."""

    reply: Reply
    ending: Ending
    words: GuardedText


class TurnRun:
    """A turn under way. What is in `messages` is valid whenever it is looked at."""

    def __init__(
        self,
        host: Any,
        client: Any,
        adapter: ModelAdapter,
        options: TurnOptions,
        *,
        principal: Principal | None,
        session: Mapping[str, Any] | None,
        messages: Iterable[Any],
        transcript: list[Any] | None = None,
        emit: Emit | None = None,
    ) -> None:
        self._host = host
        self._client = client
        self._adapter = adapter
        self._options = options
        self._principal = principal
        self._session = session
        self._transcript: list[Any] = [] if transcript is None else transcript
        self._emit = emit
        self._aids = TurnAids(host, options, principal, session, self._ask_aside)
        self._guards = TurnGuards(host, principal, session, options.respond)
        self._past: list[tuple[tuple[str, str], ...]] = []
        self._is_warned = False
        self._words = GuardedText("")
        self.id = uuid.uuid4().hex
        self.messages = list(messages)
        self.results: list[ToolResult] = []
        self.steps = 0
        self.tokens: int | None = None
        self.unanswered: WaitingTurn | None = None
        """What to go on with when the calls that wait are decided on."""

    # -- from the beginning to the end -------------------------------------------------------------------------

    async def run(self, *, is_new: bool = True) -> Turn:
        """Go on until the turn ends. A turn that is not new has been through the guardrails on input already."""
        try:
            async with asyncio.timeout(self._options.max_seconds) as clock:
                return await self._run(is_new=is_new)
        except TimeoutError:
            if not clock.expired():
                raise
            return self._ended("time")

    async def go_on(self, kept: WaitingTurn, results: Sequence[ToolResult]) -> Turn:
        """Go on with a turn that waited, whose last calls came to *results*."""
        self.id, self.steps, self.tokens, self.results = kept.id, kept.steps, kept.tokens, list(kept.earlier)
        self._aids.plan = kept.plan
        told = [place for place, result in enumerate(kept.results) if result.pending is None]
        self.answer(kept.calls, list(results), told=told)
        ended = await self.after_calls(results) if kept.calls else None
        return await self.run(is_new=False) if ended is None else self._ended(ended)

    async def _run(self, *, is_new: bool) -> Turn:
        notice = await self._guards.said_by_user(self.messages) if is_new else None
        if notice is not None:
            return Turn(self.messages, notice, 0, "guardrail")
        self._tell_plan(is_changed=await self._aids.begin(self.messages))
        while self.steps < self._options.max_steps:
            self.steps += 1
            tools = self._adapter.tools(self._host, self._principal, strict=self._options.strict)
            ended = await self._take(await self._ask(tools), tools)
            if ended == "answer":
                await self._aids.remember(self._words.shown)
            if ended is not None:
                return self._ended(ended)
        return self._ended("steps")

    def _ended(self, by: StoppedBy) -> Turn:
        waiting = self.unanswered if by == "approval" else None
        return Turn(
            self.messages,
            self._words.shown,
            self.steps,
            by,
            self.results,
            self._words.response,
            None if waiting is None else self.id,
            () if waiting is None else waiting.pending,
            self.tokens,
            self._aids.plan,
        )

    # -- asking ------------------------------------------------------------------------------------------------

    async def _ask(self, tools: ToolList) -> _Said:
        options, streams = self._options, self._emit is not None
        asked = ModelRequest(
            model=options.model,
            messages=self.messages,
            tools=tools,
            system="" if options.is_plain else self._aids.system(self._host.tools.system_prompt(self._principal)),
            more=options.more,
            is_first=self.steps == 1,
            streams=streams,
            counts=options.max_total_tokens is not None,
        )
        request, method = self._adapter.request(asked), self._adapter.method(self._client, streams=streams)
        if streams:
            return await self._hear(method, request)
        response = await whole(method, request)
        return await self._guarded(response)

    async def _ask_aside(self, text: str) -> str:
        """Ask the model something that is no part of the conversation, without tools."""
        asked = ModelRequest(
            model=self._options.model,
            messages=[self._adapter.said(text, by_user=True)],
            tools=ToolList((), WireNames()),
            system="",
            more=self._options.more,
            is_first=False,
            streams=False,
            counts=False,
        )
        response = await whole(self._adapter.method(self._client, streams=False), self._adapter.request(asked))
        self._ending(response)
        return self._adapter.text(self._adapter.read(response))

    async def _guarded(self, response: Any) -> _Said:
        """Read a response, and put what guardrails and processors made of its words in their place."""
        reply, ending = self._adapter.read(response), self._ending(response)
        said = self._adapter.text(reply)
        words = await self._guards.said_by_model(said, is_last=not reply.calls and ending.by != "pause")
        return _Said(self._worded(reply, said, words.text), ending, words)

    def _worded(self, reply: Reply, said: str, text: str) -> Reply:
        if said == text:
            return reply
        made = self._adapter.with_text(reply, text)
        return made if made.messages or not text.strip() else Reply([self._adapter.said(text)], reply.calls)

    def _ending(self, response: Any) -> Ending:
        ending = self._adapter.ending(response)
        if ending.tokens is not None:
            self.tokens = (self.tokens or 0) + ending.tokens
        return ending

    async def _hear(self, method: Callable[..., Any], request: Mapping[str, Any]) -> _Said:
        """Let what a model says out as it comes; an answer that processors must see whole is let out at its end."""
        assembler = self._adapter.assembler()
        heard: list[str] = []

        async def texts() -> AsyncGenerator[str, None]:
            async with aclosing(chunks(method, request)) as parts:
                async for part in parts:
                    if text := assembler.add(part):
                        heard.append(text)
                        yield text
            if text := self._unheard(assembler, "".join(heard)):
                heard.append(text)
                yield text

        if self._guards.holds_answers:
            async with aclosing(texts()) as parts:
                async for _ in parts:
                    pass
            said = await self._guarded(assembler.response())
            self._tell_text(said.words.shown)
            return said
        let_out: list[str] = []
        try:
            async for part in self._guards.let_out(texts()):
                let_out.append(part)
                self._tell_text(part)
            response = assembler.response()
        except GuardrailBlockedError as error:
            return self._blocked("".join(let_out), error.reason)
        except BaseException:
            self._keep("".join(let_out))
            raise
        text = "".join(let_out)
        reply, ending = self._adapter.read(response), self._ending(response)
        is_response = self._options.respond and not reply.calls
        words = GuardedText(text, response=Response(text) if is_response else None)
        return _Said(self._worded(reply, self._said_as_heard(reply, "".join(heard)), text), ending, words)

    def _unheard(self, assembler: Assembler, heard: str) -> str:
        """Return the words that came with the end of a response alone: no part of it had them."""
        try:
            said = self._adapter.text(self._adapter.read(assembler.response()))
        except AgentOSError:
            return ""  # it is raised again by whoever takes the response in
        return said[len(heard) :] if said.startswith(heard) else ""

    def _said_as_heard(self, reply: Reply, heard: str) -> str:
        """Return what was heard, if a reply's words are the same but for spaces; else those, which nobody has seen."""
        said = self._adapter.text(reply)
        return heard if said.split() == heard.split() else said

    def _blocked(self, let_out: str, reason: str) -> _Said:
        """Return what is left of a response that a guardrail cut off; calls in it are not known, and never ran."""
        blocked = blocked_text(reason)
        self._tell_text(blocked.shown)
        kept = f"{let_out}\n\n{blocked.text}" if let_out.strip() else blocked.text
        words = GuardedText(kept, f"{let_out}\n\n{blocked.shown}" if let_out.strip() else blocked.shown)
        return _Said(Reply([self._adapter.said(kept)], []), Ending("answer", None), words)

    def _keep(self, let_out: str) -> None:
        """Keep what was let out of a response that never came to its end: the user has seen it."""
        if let_out.strip():
            self._extend([self._adapter.said(let_out)])

    # -- taking it in ------------------------------------------------------------------------------------------

    async def _take(self, said: _Said, tools: ToolList) -> StoppedBy | None:
        """Take the model's reply in; return by what the turn ended, or None if it goes on."""
        reply, self._words = said.reply, said.words
        if said.words.notice is not None:
            self._add(reply, [_blocked() for _ in reply.calls])
            return "guardrail"
        if not reply.calls:
            self._add(reply, [])
            return self._without_calls(said.ending)
        is_stuck = self._repeats(reply.calls, tools)
        if is_stuck and self._is_warned:
            self._add(reply, [_refused() for _ in reply.calls])
            return "stuck"
        results = await self._run_calls(said, tools)
        self._add(reply, results, _NOTE if is_stuck else "")
        self._is_warned = self._is_warned or is_stuck
        return await self.after_calls(results)

    def _without_calls(self, ending: Ending) -> StoppedBy | None:
        if ending.by == "pause":
            return None
        return "answer" if self._options.is_plain else ending.by

    async def after_calls(self, results: Sequence[ToolResult]) -> StoppedBy | None:
        """Return by what the turn ended after calls, or None if it goes on."""
        if self.unanswered is not None:
            return "approval"
        self._tell_plan(is_changed=await self._aids.refine(results))
        stopping = next((result for result in results if result.stop), None)
        if stopping is not None:
            self._words = await self._guards.said_by_model(stopping.content, is_last=True)
            self._tell_text(self._words.shown)
            return "tool" if self._words.notice is None else "guardrail"
        calls, tokens = self._options.max_calls, self._options.max_total_tokens
        if calls is not None and len(self.results) > calls:
            return "calls"
        return "tokens" if tokens is not None and (self.tokens or 0) >= tokens else None

    # -- calls -------------------------------------------------------------------------------------------------

    async def _run_calls(self, said: _Said, tools: ToolList) -> list[ToolResult]:
        """Run the calls of a reply; of one that was cut at its length, and beyond the limit, they are not run."""
        calls, limit = said.reply.calls, self._options.max_calls
        if said.ending.by == "length" and not self._options.is_plain:
            return [_cut() for _ in calls]
        allowed = len(calls) if limit is None else max(0, limit - len(self.results))
        for call in host_calls(calls[:allowed], tools):
            self._tell(type="tool_call", call=_masked_call(call, self._host.extensions.masker))
        try:
            if self._emit is not None:
                await asyncio.sleep(0)  # whoever listens hears of a call before it runs
            results = await results_of(self._host, calls[:allowed], tools, self._principal, self._session)
        except asyncio.CancelledError:
            self._add(said.reply, [_cancelled() for _ in calls])
            raise
        return [*results, *(_too_many(limit) for _ in calls[allowed:])]

    def _add(self, reply: Reply, results: list[ToolResult], note: str = "") -> None:
        """Add what was said with all its answers, at once: no call is ever left without one."""
        self._extend(reply.messages)
        self.answer(reply.calls, results, note)

    def answer(
        self, calls: Sequence[ModelCall], results: list[ToolResult], note: str = "", told: Collection[int] = ()
    ) -> None:
        """Add the answers to calls, which are the last that was said; some may have to be given again later.

        *told* are the places of those that everybody knows already.
        """
        results = [attrs.evolve(result, call_id=call.id) for call, result in zip(calls, results, strict=True)]
        before = list(self.messages)
        self._extend(self._adapter.answers(calls, _noted(results, note), media=self._options.media))
        self.results.extend(results)
        for place, result in enumerate(results):
            if place not in told:
                self._tell_result(result)
        if self._options.wait and pending_ids(results):
            earlier = self.results[: len(self.results) - len(results)]
            self.unanswered = self.waiting(before, calls, results, earlier)

    def waiting(
        self,
        messages: list[Any],
        calls: Sequence[ModelCall] = (),
        results: Sequence[ToolResult] = (),
        earlier: Sequence[ToolResult] | None = None,
    ) -> WaitingTurn:
        """Return what to go on with later: the conversation up to *calls*, and what these came to so far."""
        return WaitingTurn(
            id=self.id,
            api=self._adapter.api,
            messages=messages,
            calls=tuple(calls),
            results=tuple(results),
            earlier=tuple(self.results if earlier is None else earlier),
            steps=self.steps,
            tokens=self.tokens,
            principal=self._principal,
            session=self._session,
            options=self._options,
            plan=self._aids.plan,
        )

    def _extend(self, messages: Sequence[Any]) -> None:
        self.messages.extend(messages)
        self._transcript.extend(messages)

    def _repeats(self, calls: Sequence[ModelCall], tools: ToolList) -> bool:
        """Tell whether the same calls came three times in a row, or two kinds of calls in turns, three times each."""
        self._past.append(tuple((tools.names.decode(call.name), _canonical(call.arguments_json)) for call in calls))
        last = self._past[-_ALTERNATING:]
        if len(last) >= _SAME and len(set(last[-_SAME:])) == 1:
            return True
        return len(last) == _ALTERNATING and len(set(last[::2])) == len(set(last[1::2])) == 1

    # -- telling -----------------------------------------------------------------------------------------------

    def _tell(self, **event: Any) -> None:
        if self._emit is not None:
            self._emit(TurnEvent(**event))

    def _tell_plan(self, *, is_changed: bool) -> None:
        if is_changed:
            self._tell(type="plan", plan=self._aids.plan)

    def _tell_text(self, text: str) -> None:
        if text:
            self._tell(type="text", text=text)

    def _tell_result(self, result: ToolResult) -> None:
        if result.pending is None:
            self._tell(type="tool_result", result=result)
        else:
            self._tell(type="approval", result=result, proposal=str(result.pending["proposal_id"]))


def _masked_call(call: ToolCall, masker: Masker) -> ToolCall:
    """Return a call as others are told of it; what runs is as the model said it."""
    told = {name: masker.mask_data(getattr(call, name)) for name in ("name", "arguments", "id")}
    return attrs.evolve(call, **told)


def _canonical(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True)


def _noted(results: list[ToolResult], note: str) -> list[ToolResult]:
    """Return results with a note for the model behind the last of them."""
    if not note:
        return results
    last = results[-1]
    if last.pending is not None and last.error is not None:
        error = attrs.evolve(last.error, message=f"{last.error.message}\n\n{note}")
        return [*results[:-1], attrs.evolve(last, error=error)]
    return [*results[:-1], attrs.evolve(last, content=f"{last.content}\n\n{note}")]


def _refused() -> ToolResult:
    return ToolResult.fail("Refused", "not run: the same calls were made again and again, so the turn was ended")


def _blocked() -> ToolResult:
    return ToolResult.fail("Refused", "not run: a guardrail blocked what was said with this call, and ended the turn")


def _cancelled() -> ToolResult:
    return ToolResult.fail("Cancelled", "the turn was cancelled while this call ran; it may have taken effect or not")


def _cut() -> ToolResult:
    return ToolResult.fail(
        "Refused",
        "not run: the reply was cut at its length limit, so the call may not be whole; repeat it, and say less",
    )


def _too_many(limit: int | None) -> ToolResult:
    return ToolResult.fail("Refused", f"not run: the turn may make {limit} calls, so it was ended")
