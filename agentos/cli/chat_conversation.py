"""A conversation with a model at a terminal or through a pipe: its turns, and what is told of them on the way."""

import uuid
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from agentos.cli.app import App, Fail
from agentos.cli.chat_endpoint import Endpoint, ThinkingClient, shown_arguments
from agentos.cli.host_session import save_result_media
from agentos.extensions.event import Event
from agentos.kinds.planning_strategy import PlanChanged
from agentos.model.tool_call import ToolResult

if TYPE_CHECKING:
    from agentos.cli.terminal.call_progress import ProgressLine
    from agentos.host import AgentOS
    from agentos.turn.turn_outcome import Turn, TurnEvent


@attrs.frozen(kw_only=True)
class ChatWishes:
    """What was asked of a conversation, beside the model."""

    max_steps: int
    persona: str | None
    memory: bool | None
    plan: bool | None
    media_folder: str | None
    streams: bool
    waits: bool
    """A call that waits for a person ends the turn, until somebody decides; else the model is told that it waits."""


class Conversation:
    """A conversation: every message so far, each call in it answered."""

    def __init__(
        self, app: App, host: "AgentOS", client: Any, endpoint: Endpoint, wishes: ChatWishes, progress: "ProgressLine"
    ) -> None:
        from agentos.turn.adapters.client_kinds import adapter_for

        self._out = app.out
        self._host = host
        self._endpoint = endpoint
        self._wishes = wishes
        self._progress = progress
        self._adapter = adapter_for(client, endpoint.api)
        self._client = ThinkingClient(client, self._adapter, host, progress, endpoint.model)
        self._options: dict[str, Any] = {
            "api": endpoint.api,
            "model": endpoint.model,
            "principal": app.principal,
            "session": {"id": uuid.uuid4().hex},
            "persona": wishes.persona,
            "memory": wishes.memory,
            "plan": wishes.plan,
            "max_steps": wishes.max_steps,
            "wait": wishes.waits,
            **endpoint.request,
        }
        self.messages = endpoint.messages
        self.waiting: Turn | None = None
        """The last turn, if its calls wait for a person."""
        self.saved: list[list[Path | None]] = []
        """Where the media of each result are."""
        host.extensions.on(self._show_plan)

    async def turn(self, question: str) -> "Turn":
        """Ask, let the model call tools, and return its answer. What was said until an error or a cancel is kept."""
        asked = [*self.messages, self._adapter.said(question, by_user=True)]
        added: list[Any] = []
        self.waiting = None
        options = {**self._options, "stream": self._wishes.streams, "transcript": added}
        try:
            turn = await self._told(self._host.turn(self._client, asked, **options))
        except BaseException:
            if added:
                self.messages = [*asked, *added]
            raise
        return self._ended(turn)

    async def is_decided(self) -> bool:
        """Tell whether there is a turn to go on with: somebody decided on all that it waited for."""
        turn = self.waiting
        return turn is not None and None not in [await self._host.approvals.outcome(id) for id in turn.pending]

    async def go_on(self) -> "Turn":
        """Go on with the turn that waited. One that fails or is cancelled can be gone on with again."""
        waited = self.waiting
        if waited is None:
            raise RuntimeError("there is no turn to go on with")
        known = sum(result.pending is None for result in waited.results)
        options = {"stream": self._wishes.streams, "session": self._options["session"]}
        return self._ended(await self._told(self._host.resume(waited, self._client, **options), known))

    def _ended(self, turn: "Turn") -> "Turn":
        self.messages = turn.messages
        self.waiting = turn if turn.stopped_by == "approval" else None
        return turn

    # -- what is told on the way ---------------------------------------------------------------------------------

    async def _told(self, made: Any, known: int = 0) -> "Turn":
        """Return how a turn ends, its answer shown. The media of *known* results of it were saved already."""
        if self._wishes.streams:
            return await self._streamed(made)
        turn: Turn = await made
        self._keep_media(turn.results[known:])
        if turn.content:
            self._out.say(turn.content)
        return turn

    async def _streamed(self, made: Any) -> "Turn":
        text = ""
        try:
            async with aclosing(made) as events:
                async for event in events:
                    text += event.text
                    self._tell(event)
        finally:
            self._progress.clear()
            self._out.end_line()
        turn: Turn = event.turn
        if turn.content and not text:
            self._out.say(turn.content)
        return turn

    def _tell(self, event: "TurnEvent") -> None:
        if event.text:
            self._progress.clear()
            self._out.part(event.text)
        elif event.call is not None:
            self._progress.arguments[event.call.id] = shown_arguments(self._host, event.call.arguments)
        elif event.type == "tool_result" and event.result is not None:
            self._keep_media([event.result])

    def _keep_media(self, results: Iterable[ToolResult]) -> None:
        for result in results:
            saved = save_result_media(self._out, result, self._wishes.media_folder)
            self.saved.append(saved)
            for file in filter(None, saved):
                self._out.note(f"saved {file}")

    def _show_plan(self, event: Event) -> None:
        if isinstance(event, PlanChanged) and event.plan.steps:
            self._progress.clear()
            self._out.note(f"plan:\n{event.plan.as_text()}")

    # -- in words ------------------------------------------------------------------------------------------------

    def masked(self, text: str) -> str:
        """Return *text* without known secrets."""
        return self._host.extensions.masker.mask(text)

    def fault(self, error: Exception) -> Fail:
        """Return what to say of an endpoint that did not answer as it should."""
        return self._endpoint.fault(self._host, error)
