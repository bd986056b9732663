"""What a turn has besides a model: a persona's voice, what is remembered of its principal, and a plan."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from agentos.errors import MemoryProviderError, PlanningError
from agentos.model.memory import quoted_memories
from agentos.model.planning import Plan
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult
from agentos.secrets.masking import MaskingLogger
from agentos.turn.adapters.model_adapter import joined
from agentos.turn.turn_outcome import TurnOptions

_KEPT = 1_500
"""How many characters of what was said, and of what was answered, are remembered."""
_PLAN = "The plan so far ([x] done, [>] under way, [!] failed, [-] skipped):\n"


class TurnAids:
    """The persona, the memory and the plan of one turn, each as far as the turn asked for it."""

    def __init__(
        self,
        host: Any,
        options: TurnOptions,
        principal: Principal | None,
        session: Mapping[str, Any] | None,
        ask: Callable[[str], Awaitable[str]],
    ) -> None:
        self._host = host
        self._options = options
        self._principal = principal
        self._session = session
        self._ask = ask
        self._goal = ""
        self._prompt = ""
        self._recalled = ""
        self.plan: Plan | None = None

    async def begin(self, messages: Sequence[Any]) -> bool:
        """Make the persona's prompt, recall what fits what the user said, and plan; tell whether there is a new plan.

        Raises PersonaError. A provider or a strategy that fails is left out.
        """
        options = self._options
        if options.persona is None and options.memory is None and options.planning is None:
            return False
        self._goal = user_text(messages)
        if options.persona is not None:
            personas = self._host.personas
            self._prompt = await personas.prompt(options.persona, principal=self._principal, session=self._session)
        if options.memory is not None and self._goal:
            providers = options.memory or None
            hits = await self._host.memory.recall(self._goal, principal=self._principal, providers=providers)
            self._recalled = quoted_memories(hits)
        if options.planning is None or self.plan is not None or not self._goal:
            return False
        return await self._planned(self._host.planning.plan(self._goal, strategy=options.planning or None, **self._who))

    def system(self, tools: str) -> str:
        """Return what the model is told beside the conversation, with the prompts of its *tools*."""
        plan = "" if self.plan is None or not self.plan.steps else _PLAN + self.plan.as_text()
        return joined(self._prompt, tools, self._recalled, plan)

    async def refine(self, results: Sequence[ToolResult]) -> bool:
        """Bring the plan up to date after calls; tell whether it changed."""
        if self.plan is None:
            return False
        return await self._planned(self._host.planning.refine(self.plan, results, **self._who))

    async def remember(self, answer: str) -> None:
        """Remember what was said and answered, where the turn has a memory; one that fails is logged."""
        memory = self._options.memory
        if memory is None or not self._goal or not self._host.memory.providers:
            return
        text = f"The user said: {self._goal[:_KEPT]}\nThe answer was: {answer[:_KEPT]}"
        provider = memory[0] if memory else None
        try:
            await self._host.memory.remember(text, principal=self._principal, tags=("turn",), provider=provider)
        except MemoryProviderError as error:
            self._logger.warning("a turn was not remembered: %s", error)

    async def _planned(self, planning: Awaitable[Plan]) -> bool:
        before = self.plan
        try:
            self.plan = await planning
        except PlanningError as error:
            self._logger.warning("a turn goes on with the plan as it is: %s", error)
        return self.plan is not before

    @property
    def _who(self) -> dict[str, Any]:
        return {"principal": self._principal, "session": self._session, "ask": self._ask}

    @property
    def _logger(self) -> MaskingLogger:
        return MaskingLogger("agentos.turns", self._host.extensions.masker)


def user_text(messages: Sequence[Any]) -> str:
    """Return the text of the last message of the user that has one; answers to calls do not count."""
    from agentos.interop._provider_calls import plain_data

    for message in reversed(messages):
        said = plain_data(message)
        if isinstance(said, Mapping) and said.get("role", "user") == "user" and (text := _text_of(said)):
            return text
    return ""


def _text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content", message.get("parts"))
    if isinstance(content, str):
        return content.strip()
    if not isinstance(content, Sequence):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str)).strip()
