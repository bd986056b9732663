"""What comes of a turn: how it ended, what is told on the way, and what it was asked for."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import attrs

from agentos.errors import AgentOSError
from agentos.model.planning import Plan
from agentos.model.response import Response
from agentos.model.tool_call import ToolCall, ToolResult

StoppedBy = Literal[
    "answer", "steps", "stuck", "tool", "guardrail", "approval", "length", "refusal", "time", "calls", "tokens"
]


class TurnError(AgentOSError, ValueError):
    """A turn that can't be resumed."""


@attrs.frozen
class Turn:
    """How a turn ended.

    `messages` is the whole conversation, ready for the next request: every call in it is answered. `content` is what
    to show: the model's answer, or of a turn that a tool ended what the tool said. `steps` counts the requests. A turn
    that a guardrail ended shows why; `messages` says only that something was blocked in its place.
    """

    messages: list[Any] = attrs.field(repr=False)
    content: str
    steps: int
    stopped_by: StoppedBy
    results: list[ToolResult] = attrs.field(factory=list, repr=False)
    response: Response | None = None
    """What the response processors made of the answer, where they were asked."""
    id: str | None = None
    """What `AgentOS.resume` knows a turn by that waits for approvals."""
    pending: tuple[str, ...] = ()
    """The proposals that it waits for."""
    tokens: int | None = None
    """How many tokens its requests and responses took, where the provider says."""
    plan: Plan | None = None
    """The plan as it is at the end, of a turn with one."""


@attrs.frozen(kw_only=True)
class TurnEvent:
    """Something that happened in a turn. `text` is a part of what the model says, behind the guardrails on output.

    `tool_call` has a call before it runs, `tool_result` what it came to, `approval` the proposal that a call waits for,
    `plan` a plan that is new or changed, and `end` the turn.
    """

    type: Literal["text", "tool_call", "tool_result", "approval", "plan", "end"]
    text: str = attrs.field(default="", repr=False)
    call: ToolCall | None = None
    result: ToolResult | None = attrs.field(default=None, repr=False)
    proposal: str | None = None
    plan: Plan | None = None
    turn: Turn | None = None


def _ids(value: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(value)


@attrs.frozen(kw_only=True)
class TurnOptions:
    """What a turn was asked for, beside who talks about what.

    is_plain: the turn asks for nothing but what the caller gave: no prompts of tools, and
    whatever ends a response without calls is an answer.
    """

    model: str | None = None
    strict: bool = False
    respond: bool = True
    media: bool = True
    wait: bool = True
    """A turn whose calls wait for a person ends; else the model is told that they wait."""
    is_plain: bool = False
    max_steps: int = 20
    max_seconds: float | None = None
    max_calls: int | None = None
    max_total_tokens: int | None = None
    persona: str | None = None
    memory: tuple[str, ...] | None = attrs.field(default=None, converter=_ids)
    """The memory-providers that are asked; empty: all of them; None: no memory."""
    planning: str | None = None
    """The planning-strategy; empty: the first in force; None: no plan."""
    more: Mapping[str, Any] = attrs.field(factory=dict)
    """What else goes into every request."""

    def __attrs_post_init__(self) -> None:
        _check_whole("max_steps", self.max_steps)
        for name in ("max_calls", "max_total_tokens"):
            if getattr(self, name) is not None:
                _check_whole(name, getattr(self, name))
        seconds = self.max_seconds
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if seconds is not None and (not is_number or not seconds > 0):
            raise ValueError(f"max_seconds: expected a positive number, got {seconds!r}")


def _check_whole(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}: expected a positive integer, got {value!r}")
