"""Guardrails of a turn: on what a user says before a model has it, and on what the model says before others have it."""

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from agentos.errors import GuardrailBlockedError, ResponseRefusedError
from agentos.kinds.response_processor import RESPONSE_PROCESSOR
from agentos.model.guarding import GuardAction, GuardOutcome
from agentos.model.principal import Principal
from agentos.model.response import Response

if TYPE_CHECKING:
    from agentos.guards.guardrails import Guardrails


@attrs.frozen
class GuardedText:
    """What became of a text: what to go on with and, if it was blocked, the notice to show."""

    text: str
    notice: str | None = None
    response: Response | None = None

    @property
    def shown(self) -> str:
        """Return what a user sees."""
        return self.text if self.notice is None else self.notice


@attrs.frozen
class TurnGuards:
    """Asks the guardrails of a host about the texts of one turn, and its response processors where that is wanted."""

    host: Any
    principal: Principal | None
    session: Mapping[str, Any] | None
    responds: bool

    @property
    def _guardrails(self) -> "Guardrails":
        guardrails: Guardrails = self.host.tools.executor.guardrails
        return guardrails

    async def said_by_user(self, messages: list[Any]) -> str | None:
        """Ask about what the user said since the last answer, and put what became of it in its place.

        Returns a notice if something was blocked.
        """
        notice = None
        for number, message in _unanswered(messages) if self._guardrails.for_text("input") else ():
            messages[number], blocked = await self._guarded_message(message)
            notice = notice or blocked
        return notice

    async def _guarded_message(self, message: Mapping[str, Any]) -> tuple[Any, str | None]:
        key = "content" if "content" in message else "parts"
        content = message.get(key)
        if isinstance(content, str):
            text = await self._input(content)
            return {**message, key: text.text}, text.notice
        if not isinstance(content, Sequence):
            return message, None
        parts: list[Any] = []
        notice = None
        for part in content:
            if isinstance(part, Mapping) and isinstance(part.get("text"), str):
                text = await self._input(part["text"])
                notice = notice or text.notice
                parts.append({**part, "text": text.text})
            else:
                parts.append(part)
        return {**message, key: parts}, notice

    async def _input(self, text: str) -> GuardedText:
        return _of(await self._guardrails.check_input(text, self.principal, self.session))

    async def said_by_model(self, text: str, *, is_last: bool) -> GuardedText:
        """Ask about what a model or a tool says; the last of a turn goes through the response processors as well.

        Known secrets are masked in it, whoever is asked.
        """
        if is_last and self.responds:
            return await self._responded(text)
        if not text or not self._guardrails.for_text("output"):
            return GuardedText(self.host.extensions.masker.mask(text))
        return _of(await self._guardrails.check_output(text, self.principal, self.session))

    @property
    def holds_answers(self) -> bool:
        """Tell whether an answer must be whole before anybody has it: response processors are asked about it then."""
        return self.responds and bool(self.host.extensions.registry(RESPONSE_PROCESSOR.name).list_active())

    def let_out(self, chunks: AsyncIterable[str]) -> AsyncIterator[str]:
        """Yield what a model says as it comes, behind the guardrails; raise GuardrailBlockedError if one blocks."""
        return self._guardrails.stream(chunks, self.principal, self.session)

    async def _responded(self, text: str) -> GuardedText:
        try:
            response: Response = await self.host.respond(text, principal=self.principal, session=self.session)
        except GuardrailBlockedError as error:
            return blocked_text(error.reason)
        except ResponseRefusedError as error:
            return blocked_text(str(error))
        return GuardedText(response.text, response=response)


def _of(outcome: GuardOutcome) -> GuardedText:
    if outcome.action is not GuardAction.BLOCK:
        return GuardedText(outcome.value)
    reason = next(row.verdict.reason for row in outcome.verdicts if row.verdict.action is GuardAction.BLOCK)
    return blocked_text(reason)


def blocked_text(reason: str) -> GuardedText:
    """Return what stands in the place of a blocked text; its reason, which a guardrail may block too, is only shown."""
    return GuardedText("[A guardrail blocked this.]", f"[Blocked by a guardrail: {reason or 'no reason given'}]")


def _unanswered(messages: Sequence[Any]) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the user's messages that nobody has answered yet, and where they stand."""
    from agentos.interop._provider_calls import plain_data

    found: list[tuple[int, Mapping[str, Any]]] = []
    for number in range(len(messages) - 1, -1, -1):
        message = plain_data(messages[number])
        if not isinstance(message, Mapping) or not _is_of_user(message):
            break
        found.append((number, message))
    return found[::-1]


def _is_of_user(message: Mapping[str, Any]) -> bool:
    """Tell whether a user said it; Gemini's contents need not say so."""
    return message.get("role") == "user" or ("parts" in message and message.get("role") is None)
