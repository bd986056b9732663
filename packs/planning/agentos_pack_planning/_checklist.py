"""A checklist: the steps are what was asked for, and each round of calls ticks one off."""

import re
from collections.abc import Sequence
from typing import Literal

import attrs

from agentos import Plan, PlanContext, PlanStep, ToolResult

TEXT = 300
"""How much of a step's text is kept."""
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)]|\[[ xX]?\])\s+(?P<text>\S.*)$")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")
_READ = 20_000


@attrs.frozen(kw_only=True)
class PlanningOptions:
    """The options of the pack."""

    max_steps: int = attrs.field(default=10, validator=[attrs.validators.ge(1), attrs.validators.le(50)])


class Checklist:
    """Makes a step of each list item of a goal; of one without a list, of each sentence."""

    def __init__(self, max_steps: int) -> None:
        self.max_steps = max_steps

    async def plan(self, goal: str, context: PlanContext) -> Plan:  # noqa: ARG002 - the signature is the contract
        """Return the steps that *goal* names itself."""
        return self.of_texts(_asked_for(goal))

    async def refine(self, plan: Plan, results: Sequence[ToolResult], context: PlanContext) -> Plan:  # noqa: ARG002
        """Tick the next step off: done if any call went well, failed if none did. Calls that wait say nothing yet."""
        results = [result for result in results if result.pending is None]
        left = next((step for step in plan.steps if step.status in ("pending", "running")), None)
        if left is None or not results:
            return plan
        status: Literal["done", "failed"] = "done" if any(result.success for result in results) else "failed"
        changed = [attrs.evolve(step, status=status) if step is left else step for step in plan.steps]
        return attrs.evolve(plan, steps=changed)

    def of_texts(self, texts: Sequence[str]) -> Plan:
        """Return a plan of steps with these texts, numbered from one."""
        kept = [" ".join(text.split())[:TEXT] for text in texts if text.strip()][: self.max_steps]
        return Plan([PlanStep(str(number), text) for number, text in enumerate(kept, 1)])


def _asked_for(goal: str) -> list[str]:
    lines = goal[:_READ].splitlines()
    items = [found["text"] for line in lines if (found := _ITEM.match(line)) is not None]
    return items or [sentence for line in lines for sentence in _SENTENCE.split(line.strip()) if sentence]
