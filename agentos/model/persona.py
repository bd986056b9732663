"""Personas: in whose voice a turn speaks, and what it leaves of a principal's tools."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from agentos.model.field_checks import fault_of_name, frozen_mapping
from agentos.model.guarding import fault_of_parameters
from agentos.model.tool_pattern import ToolBounds

SystemPrompt = str | Callable[[Any], Any]
"""A text, or a function of a context, sync or async, that returns one."""


def _check_id(_: Any, field: "attrs.Attribute[str]", value: object) -> None:
    if (fault := fault_of_name(value)) is not None:
        raise ValueError(f"Persona.{field.name}: {fault}")


def _check_text(_: Any, field: "attrs.Attribute[str]", value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"Persona.{field.name}: expected a text, got {type(value).__name__}")


def _check_prompt(_: Any, field: "attrs.Attribute[Any]", value: object) -> None:
    if not isinstance(value, str) and (fault := fault_of_parameters(value, 1)):
        raise TypeError(f"Persona.{field.name}: expected a text or a function of a context; {fault}")


def _names(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


@attrs.frozen
class Persona:
    """A way to speak and act in a turn. It can only narrow what its principal may call, never widen it."""

    id: str = attrs.field(validator=_check_id)
    description: str = attrs.field(default="", validator=_check_text)
    system_prompt: SystemPrompt = attrs.field(default="", repr=False, validator=_check_prompt)
    """What the model is told: a text, or a function of a context that returns one."""
    tools: tuple[str, ...] = attrs.field(default=("*",), converter=_names)
    """Which tools are left: names, `pack:tool`, or patterns of either."""
    deny: tuple[str, ...] = attrs.field(default=(), converter=_names)
    """Which of these are not."""
    model: Mapping[str, Any] = attrs.field(factory=dict, converter=frozen_mapping)
    """What goes into each request, such as `model` and `temperature`; what the caller of a turn says counts more."""
    memory: tuple[str, ...] = attrs.field(default=(), converter=_names)
    """The ids of the memory-providers that its turns recall from, and remember with the first; none: no memory."""
    planning: str | None = None
    """The id of the planning-strategy of its turns; None: no plan."""
    greeting: str = attrs.field(default="", validator=_check_text)
    """What a program shows before the user has said something."""
    bounds: ToolBounds = attrs.field(init=False, repr=False, eq=False)
    """What it leaves of a principal's tools."""

    @bounds.default
    def _bounds(self) -> ToolBounds:
        try:
            return ToolBounds(self.tools, self.deny)
        except ValueError as error:
            raise ValueError(f"Persona.tools: {error}") from None

    def __attrs_post_init__(self) -> None:
        for id in (*self.memory, *(() if self.planning is None else (self.planning,))):
            if fault := fault_of_name(id):
                raise ValueError(f"Persona: {fault}")
