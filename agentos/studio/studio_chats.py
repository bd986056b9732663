"""Conversations with a model on the page Chat: each of one principal, bounded, and valid whenever it is stopped."""

import asyncio
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final, Literal

import attrs

from agentos.base.foreign import Border
from agentos.errors import AgentOSError
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolCall, ToolResult

if TYPE_CHECKING:
    from agentos.host import AgentOS
    from agentos.turn.adapters.model_adapter import Api
    from agentos.turn.turn_outcome import Turn, TurnEvent

KEPT: Final = 20
"""How many conversations of one principal are kept; the one that was used least lately goes."""
KEPT_ALL: Final = 200
RUNNING: Final = 3
"""How many turns of one principal run at once."""
LIFE: Final = 24 * 3600.0
"""For how many seconds a conversation is kept that nobody says anything in."""
QUESTION: Final = 100_000
TEXT: Final = 2_000_000
"""How many characters a conversation may have."""
ENTRIES: Final = 400
"""How many entries of a conversation are shown: the newest."""
_SECONDS: Final = 900.0
_STEPS: Final = 20
_LOOK: Final = 0.5
"""After how many seconds it is looked for what somebody decided, here or in another host on the store."""
_ENDINGS: Final[Mapping[str, str]] = {
    "steps": "The model had not come to an end after {steps} steps.",
    "stuck": "The model made the same calls again and again, so the turn was ended.",
    "length": "The answer was cut at the model's length limit.",
    "refusal": "The model, or whoever offers it, refused to answer.",
    "time": "The turn took too long and was ended.",
}


class ChatError(AgentOSError, ValueError):
    """Something that can't be said, or a conversation that is not there."""


@attrs.define(eq=False)
class ChatEntry:
    """What one part of a conversation shows."""

    kind: Literal["user", "model", "call", "note"]
    text: str = attrs.field(default="", repr=False)
    call: ToolCall | None = None
    result: ToolResult | None = attrs.field(default=None, repr=False)


@attrs.define(eq=False)
class StudioChat:
    """A conversation: every message so far, each call in it answered, and what is shown of it."""

    id: str
    owner: str
    """The key of the principal that it is of."""
    persona: str | None = None
    messages: list[Any] = attrs.field(factory=list, repr=False)
    entries: list[ChatEntry] = attrs.field(factory=list, repr=False)
    waiting: "Turn | None" = attrs.field(default=None, repr=False)
    """The last turn, if its calls wait for a person."""
    task: "asyncio.Task[None] | None" = attrs.field(default=None, repr=False)
    """What goes on with the conversation, or waits for a decision."""
    is_answering: bool = False
    used: float = 0.0

    @property
    def topic(self) -> str:
        """Return the topic of its changes."""
        return f"chat-{self.id}"

    @property
    def title(self) -> str:
        """Return what it is called: the beginning of what was asked first."""
        first = next((one.text for one in self.entries if one.kind == "user"), "")
        return " ".join(first.split())[:60] or "New conversation"

    @property
    def is_busy(self) -> bool:
        """Tell whether an answer is under way."""
        return self.is_answering


@attrs.define(eq=False, kw_only=True)
class ChatModel:
    """The model that the page talks to, and all conversations with it. The key stays with the client."""

    client: Callable[[], Any] = attrs.field(repr=False)
    """Makes the SDK's client, when somebody asks first."""
    model: str | None = None
    api: "Api | None" = None
    place: str = ""
    """Where it is, as people are told."""
    system: str = ""
    _made: Any = attrs.field(default=None, init=False, repr=False)
    _chats: dict[str, StudioChat] = attrs.field(factory=dict, init=False, repr=False)

    # -- conversations -------------------------------------------------------------------------------------------

    def chats_of(self, principal: Principal) -> list[StudioChat]:
        """Return the conversations of a principal, the one used last first."""
        self._forget()
        own = [one for one in self._chats.values() if one.owner == principal.key]
        return sorted(own, key=lambda one: -one.used)

    def chat(self, principal: Principal, id: str) -> StudioChat:
        """Return a conversation of a principal; those of others are unknown."""
        found = self._chats.get(id)
        if found is None or found.owner != principal.key:
            raise ChatError("there is no such conversation; it may have been forgotten")
        return found

    def begin(self, principal: Principal, persona: str | None) -> StudioChat:
        """Begin a conversation; the one that was used least lately goes where there are too many."""
        own = self.chats_of(principal)
        for old in own[KEPT - 1 :]:
            self.drop(old)
        while len(self._chats) >= KEPT_ALL:
            self.drop(min(self._chats.values(), key=lambda one: one.used))
        made = StudioChat(id=uuid.uuid4().hex, owner=principal.key, persona=persona, used=time.time())
        self._chats[made.id] = made
        return made

    def drop(self, chat: StudioChat) -> None:
        """Forget a conversation, and end what goes on in it."""
        self.stop(chat)
        self._chats.pop(chat.id, None)

    def stop(self, chat: StudioChat) -> None:
        """End the answer under way; what was said and done so far stays."""
        if chat.task is not None:
            chat.task.cancel()

    def _forget(self) -> None:
        for chat in [one for one in self._chats.values() if one.used < time.time() - LIFE and not one.is_answering]:
            self.drop(chat)

    async def end(self) -> None:
        """End all answers, and close the client."""
        tasks = [one.task for one in self._chats.values() if one.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        made, self._made = self._made, None
        close = getattr(made, "close", None)
        if callable(close):
            with Border():
                closed = close()
                if asyncio.iscoroutine(closed):
                    await closed

    # -- turns ---------------------------------------------------------------------------------------------------

    def say(
        self, host: "AgentOS", principal: Principal, chat: StudioChat, text: str, told: Callable[..., None]
    ) -> None:
        """Ask the model, in the background; *told* is called with the topic whenever something is new."""
        from agentos.turn.adapters.client_kinds import adapter_for

        running = sum(one.is_answering for one in self._chats.values() if one.owner == principal.key)
        if chat.is_answering or running >= RUNNING:
            raise ChatError("an answer is under way; stop it first, or wait for it")
        if not text.strip() or len(text) > QUESTION:
            raise ChatError(f"expected a question of up to {QUESTION:,} characters")
        if _size(chat.messages) + len(text) > TEXT:
            raise ChatError("this conversation is too long; begin another one")
        self.stop(chat)  # if it waits for a decision: another message goes on without it
        chat.waiting, chat.used = None, time.time()
        chat.entries.append(ChatEntry("user", text))
        if not chat.messages and self.system and self.api in (None, "chat"):
            chat.messages.append({"role": "system", "content": self.system})
        asked = [*chat.messages, adapter_for(self._client(), self.api).said(text, by_user=True)]
        added: list[Any] = []
        options = {
            "principal": principal,
            "session": {"id": chat.id},
            "persona": chat.persona,
            "transcript": added,
            "max_steps": _STEPS,
            "max_seconds": _SECONDS,
            "model": self.model,
            "api": self.api,
        }
        made = lambda: host.turn(self._client(), asked, stream=True, **options)  # noqa: E731 - begun in its task
        chat.is_answering = True
        chat.task = asyncio.create_task(self._run(host, chat, made, asked, added, told))
        chat.task.add_done_callback(lambda task: _ended(chat, task, told))  # also of one that never began

    def _client(self) -> Any:
        if self._made is None:
            self._made = self.client()
        return self._made

    async def _run(
        self,
        host: "AgentOS",
        chat: StudioChat,
        made: Callable[[], Any],
        asked: list[Any],
        added: list[Any],
        told: Callable[..., None],
    ) -> None:
        try:
            await self._answered(host, chat, made, asked, added, told)
            while chat.waiting is not None:
                await self._decided(host, chat)
                waited, chat.is_answering = chat.waiting, True
                resume = lambda turn=waited: host.resume(  # noqa: E731 - begun below
                    turn, self._client(), stream=True, session={"id": chat.id}
                )
                await self._answered(host, chat, resume, chat.messages, [], told)
        except asyncio.CancelledError:
            pass  # what was said so far stays; who is told is told when the task has ended

    async def _decided(self, host: "AgentOS", chat: StudioChat) -> None:
        """Wait until somebody decided on all that the turn waits for."""
        while chat.waiting is not None:
            outcomes = [await host.approvals.outcome(id) for id in chat.waiting.pending]
            if None not in outcomes:
                return
            await asyncio.sleep(_LOOK)

    async def _answered(
        self,
        host: "AgentOS",
        chat: StudioChat,
        made: Callable[[], Any],
        asked: list[Any],
        added: list[Any],
        told: Callable[..., None],
    ) -> None:
        """Take what a turn tells until it ends; one that fails or is stopped leaves a conversation that is valid."""
        turn: Turn | None = None
        with Border() as border:  # an endpoint and its SDK are foreign: whatever they raise is told
            try:
                async with aclosing(made()) as events:
                    async for event in events:
                        _take(chat, event)
                        turn = event.turn or turn
                        told(chat.topic)
            finally:
                if turn is None:
                    chat.waiting = None
                    chat.messages = [*asked, *added] if added else [*chat.messages]
        if border.error is not None:
            words = host.extensions.masker.describe(border.error)
            chat.entries.append(ChatEntry("note", f"The model did not answer: {words[:2_000]}"))
        if turn is not None:
            _end(chat, turn)
        chat.is_answering = False
        del chat.entries[:-ENTRIES]
        told(chat.topic)


def _ended(chat: StudioChat, task: "asyncio.Task[None]", told: Callable[..., None]) -> None:
    """Say that nothing goes on any more, unless something else has begun."""
    if chat.task is not task:
        return
    if chat.is_answering:
        chat.entries.append(ChatEntry("note", "Stopped. A tool that ran may have taken effect or not."))
    chat.task, chat.is_answering, chat.used = None, False, time.time()
    told(chat.topic)


def _take(chat: StudioChat, event: "TurnEvent") -> None:
    """Put what happened in a turn into what is shown."""
    entries = chat.entries
    if event.type == "text":
        if not entries or entries[-1].kind != "model":
            entries.append(ChatEntry("model"))
        entries[-1].text += event.text
    elif event.type == "tool_call":
        entries.append(ChatEntry("call", call=event.call))
    elif event.type in ("tool_result", "approval") and event.result is not None:
        call_id = event.result.call_id
        calls = [one for one in entries if one.kind == "call" and one.call is not None]
        found = next((one for one in reversed(calls) if one.call is not None and one.call.id == call_id), None)
        if found is None:
            entries.append(found := ChatEntry("call"))
        found.result = event.result


def _end(chat: StudioChat, turn: "Turn") -> None:
    chat.messages = turn.messages
    chat.waiting = turn if turn.stopped_by == "approval" else None
    last = chat.entries[-1] if chat.entries else None
    if turn.content and chat.waiting is None and (last is None or last.kind != "model"):
        chat.entries.append(ChatEntry("model", turn.content))
    elif turn.content and last is not None and last.kind == "model" and turn.stopped_by == "guardrail":
        last.text = turn.content
    if turn.stopped_by in _ENDINGS:
        chat.entries.append(ChatEntry("note", _ENDINGS[turn.stopped_by].format(steps=turn.steps)))


def _size(messages: Sequence[Any]) -> int:
    with suppress(TypeError, ValueError, RecursionError):
        return len(json.dumps(messages, default=str))
    return TEXT


def arguments_in(call: ToolCall | None) -> dict[str, Any]:
    """Return what a call is made with; nothing of one whose arguments are no object."""
    given = None if call is None else call.arguments
    if isinstance(given, str):
        with suppress(ValueError, RecursionError):
            given = json.loads(given)
    return dict(given) if isinstance(given, Mapping) else {}
