"""How a function or an object becomes middleware of tools."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import attrs

from agentos.errors import DescriptorError
from agentos.model.guarding import fault_of_parameters, fault_of_patterns, fault_of_seconds

MIDDLEWARE_MARK = "__middleware__"
"""The attribute that a function gets by `@middleware`."""

F = TypeVar("F", bound=Callable[..., Any])


def _patterns(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


@attrs.frozen(kw_only=True)
class MiddlewareSettings:
    """What middleware says of itself."""

    tools: tuple[str, ...] = attrs.field(default=("*",), converter=_patterns)
    timeout: float | None = None
    """For how many seconds it may work itself, without the time that the rest takes; None is a minute."""

    def __attrs_post_init__(self) -> None:
        for name, fault in fault_of_patterns(self.tools):
            raise DescriptorError(f"tool-middleware: {name}: {fault}")
        if self.timeout is not None and (fault_of_time := fault_of_seconds(self.timeout)):
            raise DescriptorError(f"tool-middleware: timeout: {fault_of_time}")


def middleware(*, tools: str | Iterable[str] = "*", timeout: float | None = None) -> Callable[[F], F]:
    """Make middleware of a function, which goes into a pack's `descriptors` as it is; its name is the id.

    It is called with the call and with `next`, which runs the rest and returns its ToolResult; it returns a ToolResult.
    """
    settings = MiddlewareSettings(tools=tools, timeout=timeout)

    def mark(function: F) -> F:
        setattr(function, MIDDLEWARE_MARK, settings)
        return function

    return mark


def middleware_settings(payload: Any) -> MiddlewareSettings:
    """Return what a payload says of itself; raise DescriptorError if it is no middleware."""
    if isinstance(payload, type) or (fault := fault_of_parameters(payload, 2)):
        fault = f"got the class {payload.__name__}" if isinstance(payload, type) else fault
        raise DescriptorError(f"expected a function of a call and of what is next; {fault}")
    said = getattr(payload, MIDDLEWARE_MARK, None)
    if isinstance(said, MiddlewareSettings):
        return said
    names = [field.name for field in attrs.fields(MiddlewareSettings)]
    return MiddlewareSettings(**{name: getattr(payload, name) for name in names if hasattr(payload, name)})
