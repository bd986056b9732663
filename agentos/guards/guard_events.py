"""What guardrails tell: that they flagged, sanitized or blocked something. The text itself is never told."""

from typing import ClassVar

import attrs

from agentos.extensions.event import Event
from agentos.model.guarding import GuardAction


@attrs.frozen(kw_only=True)
class GuardrailEvent(Event):
    """A guardrail had something to say."""

    guard: str
    pack: str
    stage: str
    code: str | None
    reason: str
    principal: str
    tool: str | None = None
    """The fully-qualified id of the tool that was called; None for a text."""
    call_id: str | None = None


@attrs.frozen(kw_only=True)
class GuardrailFlagged(GuardrailEvent):
    """Something passed that a guardrail finds strange."""

    type: ClassVar[str] = "guardrail:flagged"


@attrs.frozen(kw_only=True)
class GuardrailSanitized(GuardrailEvent):
    """A guardrail put something else in its place."""

    type: ClassVar[str] = "guardrail:sanitized"


@attrs.frozen(kw_only=True)
class GuardrailBlocked(GuardrailEvent):
    """A guardrail let something not pass."""

    type: ClassVar[str] = "guardrail:blocked"


EVENTS: dict[GuardAction, type[GuardrailEvent]] = {
    GuardAction.FLAG: GuardrailFlagged,
    GuardAction.SANITIZE: GuardrailSanitized,
    GuardAction.BLOCK: GuardrailBlocked,
}
