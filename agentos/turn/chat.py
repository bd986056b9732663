"""A chat loop for any OpenAI-compatible client: ask the model, run its calls, answer, until it is done."""

import asyncio
import inspect
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import attrs

from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult

if TYPE_CHECKING:
    from agentos.interop._provider_calls import ModelCall, Reply, ToolHost, ToolList

Message = dict[str, Any]
StoppedBy = Literal["answer", "steps", "stuck", "tool"]

_SAME = 3
_ALTERNATING = 6
_NOTE = (
    "[Note: you keep making the same calls with the same arguments, and the results will not change. "
    "Use what you have, try something else, or tell the user what is missing.]"
)


@attrs.frozen
class Turn:
    """How a turn ended.

    `messages` is the whole conversation, ready for the next request: every call in it is answered. `content` is what
    to show: the model's answer, or of a turn that a tool ended what the tool said. `steps` counts the requests.
    """

    messages: list[Any] = attrs.field(repr=False)
    content: str
    steps: int
    stopped_by: StoppedBy
    results: list[ToolResult] = attrs.field(factory=list, repr=False)


async def run_turn(
    host: "ToolHost",
    client: Any,
    messages: Sequence[Any],
    *,
    model: str | None = None,
    principal: Principal | None = None,
    session: Mapping[str, Any] | None = None,
    max_steps: int = 20,
    strict: bool = False,
    transcript: list[Any] | None = None,
    **request: Any,
) -> Turn:
    """Ask *client*'s *model*, run the calls it makes for *principal*, and go on until it answers.

    *client* has `chat.completions.create`, sync or async, such as `AsyncOpenAI`; *request* goes to it as it is. A
    client that knows its model needs no *model*.
    *messages* is not changed. What is added goes to *transcript* too, as it happens: it is valid whenever you look,
    also after an error of the client or a cancellation.
    """
    _check(max_steps, request)
    turn = _TurnState(host, principal, session, list(messages), [] if transcript is None else transcript)
    for step in range(1, max_steps + 1):
        tools = turn.offered(strict=strict)
        wanted = {} if model is None else {"model": model}
        response = await _create(client, {**_fitting(request, tools, step), **wanted, "messages": list(turn.messages)})
        ended = await turn.take(response, tools)
        if ended is not None:
            return Turn(turn.messages, ended[1], step, ended[0], turn.results)
    return Turn(turn.messages, turn.last_words, max_steps, "steps", turn.results)


def _check(max_steps: int, request: Mapping[str, Any]) -> None:
    if isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 1:
        raise ValueError(f"max_steps: expected a positive integer, got {max_steps!r}")
    if "tools" in request:
        raise ValueError("tools: a turn offers what the principal may call; register a tool with the host instead")
    if request.get("stream"):
        raise ValueError("stream: a turn reads whole responses; listen to the host's events to see tools as they run")


def _fitting(request: Mapping[str, Any], tools: "ToolList", step: int) -> dict[str, Any]:
    """Return the request with its tools. A choice that forces a call holds for the first step, or no answer comes."""
    made = dict(request)
    if tools:
        made["tools"] = tools
    if not tools or (step > 1 and made.get("tool_choice") not in ("auto", "none")):
        made.pop("tool_choice", None)
    if not tools:
        made.pop("parallel_tool_calls", None)
    return made


async def _create(client: Any, request: dict[str, Any]) -> Any:
    """Make one request. A sync client is called in a thread, so that it does not hold up the event loop."""
    create = client.chat.completions.create
    if inspect.iscoroutinefunction(inspect.unwrap(create)):
        return await create(**request)
    made = await asyncio.to_thread(create, **request)
    return await made if inspect.isawaitable(made) else made


class _TurnState:
    """A turn under way."""

    def __init__(
        self,
        host: "ToolHost",
        principal: Principal | None,
        session: Mapping[str, Any] | None,
        messages: list[Any],
        transcript: list[Any],
    ) -> None:
        self._host = host
        self._principal = principal
        self._session = session
        self._transcript = transcript
        self._past: list[tuple[tuple[str, str], ...]] = []
        self._is_warned = False
        self.messages = messages
        self.results: list[ToolResult] = []
        self.last_words = ""

    def offered(self, *, strict: bool) -> "ToolList":
        from agentos.interop import openai

        return openai.tools(self._host, self._principal, strict=strict)

    async def take(self, response: Any, tools: "ToolList") -> tuple[StoppedBy, str] | None:
        """Take the model's reply in; return by what the turn ended and what to show, or None if it goes on."""
        from agentos.interop import openai

        reply = openai.read(response)
        self.last_words = _text_of(reply)
        if not reply.calls:
            self._add(reply, [])
            return "answer", self.last_words
        is_stuck = self._repeats(reply.calls, tools)
        if is_stuck and self._is_warned:
            self._add(reply, [_refused() for _ in reply.calls])
            return "stuck", self.last_words
        results = await self._run(reply, tools)
        self._add(reply, results, _NOTE if is_stuck else "")
        self._is_warned = self._is_warned or is_stuck
        stopping = next((result for result in results if result.stop), None)
        return None if stopping is None else ("tool", stopping.content)

    async def _run(self, reply: "Reply", tools: "ToolList") -> list[ToolResult]:
        from agentos.interop._provider_calls import results_of

        try:
            return await results_of(self._host, reply.calls, tools, self._principal, self._session)
        except asyncio.CancelledError:
            self._add(reply, [_cancelled() for _ in reply.calls])
            raise

    def _add(self, reply: "Reply", results: list[ToolResult], note: str = "") -> None:
        """Add what was said with all its answers, at once: no call is ever left without one."""
        from agentos.interop import openai

        answers = openai.answers(reply.calls, results)
        if note:
            answers[-1]["content"] = f"{answers[-1]['content']}\n\n{note}"
        self.results.extend(results)
        self.messages.extend([*reply.messages, *answers])
        self._transcript.extend([*reply.messages, *answers])

    def _repeats(self, calls: Sequence["ModelCall"], tools: "ToolList") -> bool:
        """Tell whether the same calls came three times in a row, or two kinds of calls in turns, three times each."""
        self._past.append(tuple((tools.names.decode(call.name), _canonical(call.arguments_json)) for call in calls))
        last = self._past[-_ALTERNATING:]
        if len(last) >= _SAME and len(set(last[-_SAME:])) == 1:
            return True
        return len(last) == _ALTERNATING and len(set(last[::2])) == len(set(last[1::2])) == 1


def _canonical(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True)


def _text_of(reply: "Reply") -> str:
    message = reply.messages[0]
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or message.get("refusal") or ""


def _refused() -> ToolResult:
    return ToolResult.fail("Refused", "not run: the same calls were made again and again, so the turn was ended")


def _cancelled() -> ToolResult:
    return ToolResult.fail("Cancelled", "the turn was cancelled while this call ran; it may have taken effect or not")
