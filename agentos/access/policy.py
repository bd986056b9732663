"""What a host decided about calls, said once."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs

from agentos.access.budgets import Budget, as_budgets
from agentos.access.gate import MODES, Mode
from agentos.model.field_checks import fault_of_name
from agentos.model.settings import Settings
from agentos.model.tool_pattern import ToolPattern
from agentos.tools.tool import Tool

PINS = ("first-use", "strict", "off")


def _patterns(value: Iterable[str] | str) -> tuple[str, ...]:
    if not isinstance(value, Iterable):
        raise TypeError(f"deny: expected names or patterns of tools, got {type(value).__name__}")
    patterns = (value,) if isinstance(value, str) else tuple(value)
    for pattern in patterns:
        if fault := fault_of_name(pattern):
            raise ValueError(f"deny: {fault}; name a tool, `pack:tool`, or a pattern such as `files:delete_*`")
    return patterns


def _budgets(value: Any) -> tuple[Budget, ...]:
    return as_budgets(Budget(**value) if isinstance(value, Mapping) else value)


def _require_choice(name: str, value: Any, known: Sequence[str]) -> None:
    if value not in known:
        raise ValueError(f"{name}: expected one of {', '.join(known)}, got {value!r}")


def _require_seconds(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"proposal_ttl: expected a positive number of seconds, got {value!r}")


@attrs.frozen(kw_only=True)
class Policy:
    """A host's decisions: the mode, what is denied, how much, how long a proposal waits, and who may approve it."""

    mode: Mode
    deny: tuple[str, ...] = attrs.field(converter=_patterns)
    budgets: tuple[Budget, ...] = attrs.field(converter=_budgets)
    proposal_ttl: float
    allow_other_approver: bool = attrs.field(converter=bool)
    pins: Literal["first-use", "strict", "off"]
    _denials: tuple[ToolPattern, ...] = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        _require_choice("mode", self.mode, MODES)
        _require_choice("pins", self.pins, PINS)
        _require_seconds(self.proposal_ttl)
        object.__setattr__(self, "_denials", tuple(map(ToolPattern, self.deny)))

    @classmethod
    def of(cls, settings: Settings, *, is_durable: bool) -> "Policy":
        """Check *settings*, and return what follows from them for a store that lasts, or for one in memory.

        All that is wrong with them is told at once.
        """
        if len(faults := list(_faults(settings))) > 1:
            raise ValueError("\n  ".join((f"the settings of the host have {len(faults)} problems:", *faults)))
        return cls(
            mode=settings.mode,  # type: ignore[arg-type]  # checked below
            deny=settings.deny,
            budgets=settings.budget,
            proposal_ttl=settings.seconds_to_approve(is_durable=is_durable),
            allow_other_approver=settings.allow_other_approver,
            pins=settings.pins,  # type: ignore[arg-type]  # checked below
        )

    def denies(self, tool: Tool, qualified_id: str) -> str | None:
        """Return the pattern of `deny` that a tool fits, by its id, name or an alias; None if none does."""
        return next((one.text for one in self._denials if one.fits(tool, qualified_id)), None)


def _faults(settings: Settings) -> Iterator[str]:
    checks: tuple[Callable[[], object], ...] = (
        lambda: _require_choice("mode", settings.mode, MODES),
        lambda: _patterns(settings.deny),
        lambda: _budgets(settings.budget),
        lambda: _require_seconds(settings.seconds_to_approve(is_durable=True)),
        lambda: _require_choice("pins", settings.pins, PINS),
    )
    for check in checks:
        try:
            check()
        except (TypeError, ValueError) as error:
            yield str(error)
