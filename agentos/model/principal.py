"""Who a call is made for, and the one predicate of what it may call."""

from collections.abc import Iterable
from typing import Any, Literal

import attrs

from agentos.model.field_checks import fault_of_name
from agentos.model.tool_pattern import NamedTool, ToolBounds

EVERYTHING = "*"

_HOST = "system"


def _rules(value: Iterable[str]) -> frozenset[str]:
    if isinstance(value, str):
        raise TypeError(f"access: expected a set of rule ids, got the string {value!r}; write {{{value!r}}}")
    return frozenset(value)


def _scopes(value: Iterable[str] | None) -> frozenset[str] | None:
    return None if value is None else _rules(value)


@attrs.frozen
class Principal:
    """Who a call is made for: what it holds, and to what a token narrowed it.

    `scopes` is None where nothing was narrowed. A rule counts as held only if it is in both. A service holds what is
    named: `*` means nothing for it.
    """

    id: str
    kind: Literal["user", "service", "system"] = "user"
    access: frozenset[str] = attrs.field(default=frozenset(), converter=_rules)
    scopes: frozenset[str] | None = attrs.field(default=None, converter=_scopes)
    bounds: tuple[ToolBounds, ...] = attrs.field(default=(), kw_only=True)
    """What personas leave of its tools; each narrows, and none widens."""
    key: str = attrs.field(init=False, repr=False, eq=False)
    """The name that no other principal has: the id of a user, `service:bot`, `system`.

    By it calls are counted, proposals and grants bound, and records written.
    """

    @key.default
    def _key(self) -> str:
        return self.id if self.kind == "user" or self.id == _HOST else f"{self.kind}:{self.id}"

    def __attrs_post_init__(self) -> None:
        if fault := fault_of_name(self.id):
            raise ValueError(f"Principal.id: {fault}")
        if self.kind not in ("user", "service", "system"):
            raise ValueError(f"Principal.kind: expected user, service or system, got {self.kind!r}")
        if self.kind != "system" and self.id == _HOST:
            raise ValueError(f"Principal.id: {_HOST!r} is the host itself; give a {self.kind} an id of its own")
        if self.kind == "user" and self.id.startswith(("service:", "system:")):
            raise ValueError(f"Principal.id: {self.id!r} reads as a principal of another kind; leave the colon out")

    @classmethod
    def system(cls) -> "Principal":
        """Return the host itself, which may call everything."""
        return SYSTEM

    @property
    def held(self) -> frozenset[str]:
        """Return the rules that count: never more than `access`, and without `*` where scopes narrow it."""
        access = self.access - {EVERYTHING} if self.kind == "service" else self.access
        if self.scopes is None:
            return access
        wanted = self.scopes - {EVERYTHING}
        return wanted if EVERYTHING in access else access & wanted

    def narrow(self, scopes: Iterable[str]) -> "Principal":
        """Return this principal with at most *scopes*. It can only shrink, and never yields `*`."""
        wanted = _rules(scopes) - {EVERYTHING}
        held = wanted & self.scopes if self.scopes is not None else wanted
        if EVERYTHING not in self.access or self.kind == "service":
            held &= self.access
        return attrs.evolve(self, access=held, scopes=held)

    def within(self, *bounds: ToolBounds) -> "Principal":
        """Return this principal with no more tools than each of *bounds* leaves."""
        added = tuple(one for one in dict.fromkeys(bounds) if one not in self.bounds)
        return attrs.evolve(self, bounds=(*self.bounds, *added)) if added else self

    def reaches(self, tool: NamedTool, qualified_id: str) -> bool:
        """Tell whether every persona that narrowed this principal leaves it *tool*, whatever rules are held."""
        return not self.bounds or all(one.admits(tool, qualified_id) for one in self.bounds)

    def may_call(self, tool: Any) -> bool:
        """Tell whether the rules let this principal call *tool*: it is public, or every rule it requires is held."""
        return tool.is_public or EVERYTHING in (held := self.held) or held.issuperset(tool.required_access)

    def missing(self, tool: Any) -> tuple[str, ...]:
        """Return the rules that *tool* requires and this principal does not hold: none, if it may call it."""
        if self.may_call(tool):
            return ()
        held = self.held
        return tuple(rule for rule in tool.required_access if rule not in held)


SYSTEM = Principal(_HOST, "system", frozenset({EVERYTHING}))
