"""Something that is wrong, and what to do about it."""

from collections.abc import Callable, Iterable
from typing import Literal

import attrs

Level = Literal["error", "warning"]


@attrs.frozen
class Trouble:
    """Something that is wrong (`error`) or looks so (`warning`), what it is about, and the cure."""

    level: Level
    about: str
    message: str
    cure: str

    def __str__(self) -> str:
        return f"{self.about}: {self.message}; cure: {self.cure}"


SelfCheck = Callable[[], Iterable[Trouble]]
"""Says what is wrong with something that is in force; nothing, if all is well."""
