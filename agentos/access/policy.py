"""What a host decided about calls, said once, and the one matcher for names of tools."""

import fnmatch
import math
import re
from collections.abc import Iterable
from typing import Literal

import attrs

from agentos.access.budgets import Budget, as_budgets
from agentos.access.gate import MODES, Mode
from agentos.model.field_checks import fault_of_name
from agentos.tools.tool import Tool

PINS = ("first-use", "strict", "off")


def _patterns(value: Iterable[str] | str) -> tuple[str, ...]:
    patterns = (value,) if isinstance(value, str) else tuple(value)
    for pattern in patterns:
        if fault := fault_of_name(pattern):
            raise ValueError(f"deny: {fault}; name a tool, `pack:tool`, or a pattern such as `files:delete_*`")
    return patterns


@attrs.frozen
class ToolPattern:
    """What `deny` and the grants that forbid name: a tool, `pack:tool`, or a glob over either."""

    text: str
    _glob: re.Pattern[str] = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_glob", re.compile(fnmatch.translate(self.text)))

    def fits(self, tool: Tool, qualified_id: str) -> bool:
        """Tell whether this is about a tool, by its id, its name or an alias."""
        names = (qualified_id, tool.name, *tool.aliases)
        return self.text in names or any(self._glob.match(name) for name in names)


@attrs.frozen(kw_only=True)
class Policy:
    """A host's decisions: the mode, what is denied, how much, how long a proposal waits, and who may approve it."""

    mode: Mode = "approve"
    deny: tuple[str, ...] = attrs.field(default=(), converter=_patterns)
    budgets: tuple[Budget, ...] = attrs.field(default=(), converter=as_budgets)
    proposal_ttl: float = 600.0
    allow_other_approver: bool = attrs.field(default=False, converter=bool)
    pins: Literal["first-use", "strict", "off"] = "first-use"
    audit_arguments: bool = attrs.field(default=False, converter=bool)
    _denials: tuple[ToolPattern, ...] = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        for name, value, known in (("mode", self.mode, MODES), ("pins", self.pins, PINS)):
            if value not in known:
                raise ValueError(f"{name}: expected one of {', '.join(known)}, got {value!r}")
        ttl = self.proposal_ttl
        if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not math.isfinite(ttl) or ttl <= 0:
            raise ValueError(f"proposal_ttl: expected a positive number of seconds, got {ttl!r}")
        object.__setattr__(self, "_denials", tuple(map(ToolPattern, self.deny)))

    def denies(self, tool: Tool, qualified_id: str) -> str | None:
        """Return the pattern of `deny` that a tool fits, by its id, name or an alias; None if none does."""
        return next((one.text for one in self._denials if one.fits(tool, qualified_id)), None)
