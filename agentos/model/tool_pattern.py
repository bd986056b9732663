"""The one matcher for names of tools."""

import fnmatch
import re
from collections.abc import Iterable, Sequence
from typing import Protocol

import attrs

from agentos.model.field_checks import fault_of_name


class NamedTool(Protocol):
    """The part of a tool that patterns look at."""

    @property
    def name(self) -> str:
        """Return its name."""
        ...

    @property
    def aliases(self) -> Sequence[str]:
        """Return its other names."""
        ...


@attrs.frozen
class ToolPattern:
    """What names tools, in `deny`, grants, guardrails and personas: a tool, `pack:tool`, or a glob over either."""

    text: str
    _glob: re.Pattern[str] = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_glob", re.compile(fnmatch.translate(self.text)))

    def fits(self, tool: NamedTool, qualified_id: str) -> bool:
        """Tell whether this is about a tool, by its id, its name or an alias."""
        names = (qualified_id, tool.name, *tool.aliases)
        return self.text in names or any(self._glob.match(name) for name in names)


def _patterns(value: Iterable[str] | str) -> tuple[ToolPattern, ...]:
    given = (value,) if isinstance(value, str) else tuple(value)
    for pattern in given:
        if isinstance(pattern, str) and (fault := fault_of_name(pattern)):
            raise ValueError(f"{fault}; name a tool, `pack:tool`, or a pattern such as `files:read_*`")
    return tuple(one if isinstance(one, ToolPattern) else ToolPattern(one) for one in given)


@attrs.frozen
class ToolBounds:
    """What of its tools is left to a principal: those that `tools` names, without those that `deny` names."""

    tools: tuple[ToolPattern, ...] = attrs.field(default="*", converter=_patterns)
    deny: tuple[ToolPattern, ...] = attrs.field(default=(), converter=_patterns)

    def admits(self, tool: NamedTool, qualified_id: str) -> bool:
        """Tell whether a tool is left."""
        named = any(one.text == "*" or one.fits(tool, qualified_id) for one in self.tools)
        return named and not self.denies(tool, qualified_id)

    def denies(self, tool: NamedTool, qualified_id: str) -> bool:
        """Tell whether `deny` names a tool: then it does not run beneath another one either."""
        return any(one.fits(tool, qualified_id) for one in self.deny)

    def as_data(self) -> dict[str, list[str]]:
        """Return it as JSON."""
        return {"tools": [one.text for one in self.tools], "deny": [one.text for one in self.deny]}
