"""Whether a call runs, is asked about or is refused, and why: one pure function.

The order is fixed: access, denials, destructive, always, grants, mode, rules, default. The first step that has an
answer gives it, and they stand in such an order that the most cautious answer wins.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, get_args

import attrs

from agentos.rules.intervention import POLICIES, Policy
from agentos.tools.tool import EFFECTS, Effect

Mode = Literal["approve", "auto", "unattended"]
Answer = Literal["run", "ask", "refuse"]

MODES: Final[tuple[str, ...]] = get_args(Mode)


@attrs.frozen
class Decision:
    """What becomes of a call, which step of the order said so, and why."""

    answer: Answer
    step: str
    reason: str


@attrs.frozen(kw_only=True)
class Question:
    """All that decides about one call, as of one moment.

    `denial` and `grant` are the words of what denies or allows it. `policy` is the tool's intervention, resolved for
    the arguments of this call, and `policy_reason` says which rule that was.
    """

    tool: str
    effect: Effect
    missing_access: tuple[str, ...] = ()
    denial: str | None = None
    policy: Policy | None = None
    policy_reason: str = ""
    grant: str | None = None
    mode: Mode = "approve"


def decide(question: Question) -> Decision:
    """Say whether the call runs, is asked about or is refused, by which step, and why.

    An effect, policy or mode that is not known counts as the most cautious one.
    """
    decision = next(filter(None, (step(question) for step in _STEPS)), None) or _default(question)
    return decision if decision.answer != "ask" else _asked(question, decision)


def _asked(question: Question, decision: Decision) -> Decision:
    """Let *decision* ask where somebody is there to answer, and refuse where nobody is."""
    if _is_known(question.mode, ("approve", "auto")):
        return decision
    known = _is_known(question.mode, MODES)
    mode = "mode unattended" if known else f"mode {_shown(question.mode)}, which is unknown and counts as unattended,"
    return Decision("refuse", decision.step, f"{decision.reason}; in {mode} nobody is there to ask, so it is refused")


def _access(question: Question) -> Decision | None:
    if not question.missing_access:
        return None
    missing = ", ".join(map(str, question.missing_access))
    return Decision("refuse", "access", f"{question.tool} requires access that the principal does not hold: {missing}")


def _denials(question: Question) -> Decision | None:
    if question.denial is None:
        return None
    words = str(question.denial)
    is_sentence = words.startswith(f"{question.tool} ")
    return Decision("refuse", "denials", words if is_sentence else f"{question.tool} is denied: {words or 'no reason'}")


def _destructive(question: Question) -> Decision | None:
    if _is_known(question.effect, ("read", "mutate")):
        return None
    does = "may destroy something"
    if not _is_known(question.effect, EFFECTS):
        does = f"has the effect {_shown(question.effect)}, which is unknown and counts as destructive"
    return Decision("ask", "destructive", f"{question.tool} {does}, and no grant, rule or mode waives asking for that")


def _always(question: Question) -> Decision | None:
    if question.policy is None or _is_known(question.policy, ("never", "required")):
        return None
    why = _why(question)
    if not _is_known(question.policy, POLICIES):
        why = f"its intervention is {_shown(question.policy)}, which is unknown and counts as always"
    return Decision("ask", "always", f"{question.tool} always asks, since {why}; no grant or mode waives it")


def _grants(question: Question) -> Decision | None:
    if not isinstance(question.grant, str) or not question.grant:
        return None
    return Decision("run", "grants", f"{question.tool} is allowed by {question.grant}")


def _mode(question: Question) -> Decision | None:
    if not (question.mode == "auto" and question.effect == "mutate" and question.policy != "required"):
        return None
    return Decision("run", "mode", f"{question.tool} changes something, and mode auto runs such a call without asking")


def _rules(question: Question) -> Decision | None:
    if question.policy is None:
        return None
    why = _why(question)
    if question.policy == "never":
        return Decision("run", "rules", f"{question.tool} runs without asking, since {why}")
    return Decision("ask", "rules", f"{question.tool} asks, since {why}; a grant can waive it, a mode can't")


def _default(question: Question) -> Decision:
    if question.effect == "read":
        return Decision("run", "default", f"{question.tool} only reads, and reading runs without asking")
    asks = "mode approve asks" if question.mode == "approve" else "without a grant one has to ask"
    return Decision("ask", "default", f"{question.tool} changes something, and {asks} before every such call")


_STEPS: Final[tuple[Callable[[Question], Decision | None], ...]] = (
    _access,
    _denials,
    _destructive,
    _always,
    _grants,
    _mode,
    _rules,
)


def _why(question: Question) -> str:
    return question.policy_reason or f"its intervention says {question.policy}"


def _is_known(value: Any, known: tuple[str, ...]) -> bool:
    return isinstance(value, str) and value in known


def _shown(value: Any) -> str:
    return f"{value!r:.60}"
