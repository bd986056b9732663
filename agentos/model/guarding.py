"""What guardrails say, what they are asked about, and how a function or an object becomes one."""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Literal, TypeVar

import attrs

from agentos.errors import DescriptorError
from agentos.model.field_checks import did_you_mean, fault_of_name, frozen_mapping

Stage = Literal["input", "output", "tool_call", "tool_result"]
STAGES: tuple[Stage, ...] = ("input", "output", "tool_call", "tool_result")
HELD_BACK = 256
"""How many characters of a stream a guard sees together that does not say how many."""
HOLDS_BACK_LIMIT = 4_096
MARK = "__guardrail__"
"""The attribute that a function gets by `@guardrail`."""

F = TypeVar("F", bound=Callable[..., Any])


class GuardAction(StrEnum):
    """What a guardrail wants done, from the mildest to the strongest."""

    ALLOW = "allow"
    FLAG = "flag"
    SANITIZE = "sanitize"
    BLOCK = "block"

    @property
    def severity(self) -> int:
        """Return how strong it is: of several answers the strongest counts."""
        return _SEVERITIES[self]


_SEVERITIES = {action: number for number, action in enumerate(GuardAction)}


@attrs.frozen
class GuardVerdict:
    """What one guardrail says. `reason` is read by people and models: it never has the text that was found."""

    action: GuardAction = attrs.field(converter=GuardAction)
    reason: str = attrs.field(default="", validator=attrs.validators.instance_of(str))
    code: str | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.instance_of(str)))
    replacement: Any = attrs.field(default=None, repr=False)
    details: Mapping[str, Any] = attrs.field(factory=dict, converter=frozen_mapping, repr=False)

    @classmethod
    def allow(cls) -> "GuardVerdict":
        """Say that nothing is wrong."""
        return _ALLOWED

    @classmethod
    def flag(cls, reason: str, code: str | None = None) -> "GuardVerdict":
        """Let it pass, and say what is strange about it."""
        return cls(GuardAction.FLAG, reason, code)

    @classmethod
    def sanitize(cls, replacement: Any, reason: str, code: str | None = None) -> "GuardVerdict":
        """Put *replacement* in its place."""
        return cls(GuardAction.SANITIZE, reason, code, replacement)

    @classmethod
    def block(cls, reason: str, code: str | None = None) -> "GuardVerdict":
        """Let it not pass."""
        return cls(GuardAction.BLOCK, reason, code)


_ALLOWED = GuardVerdict(GuardAction.ALLOW)


class GuardedCall:
    """The call that a guardrail is asked about. Its arguments are a copy: changing them changes nothing."""

    __slots__ = ("_arguments", "_copy", "_effect", "_name", "_tool")

    def __init__(self, tool: str, name: str, arguments: Mapping[str, Any], effect: str) -> None:
        self._tool = tool
        self._name = name
        self._effect = effect
        self._arguments = arguments
        self._copy: dict[str, Any] | None = None

    @property
    def tool(self) -> str:
        """Return the fully-qualified id of the tool."""
        return self._tool

    @property
    def name(self) -> str:
        """Return the tool's name."""
        return self._name

    @property
    def effect(self) -> str:
        """Return what the tool does: read, mutate or destructive."""
        return self._effect

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the validated arguments."""
        if self._copy is None:
            self._copy = copied_json(self._arguments)
        return self._copy

    def is_untouched(self, arguments: Mapping[str, Any]) -> bool:
        """Tell whether this is about *arguments* and nobody has had the copy of them, which can be changed."""
        return self._copy is None and self._arguments is arguments

    def __repr__(self) -> str:
        return f"<GuardedCall {self._tool}>"


def copied_json(value: Any) -> Any:
    """Return a copy of JSON values that shares nothing with them that can be changed."""
    if isinstance(value, Mapping):
        return {key: copied_json(item) if item.__class__ in _NESTED else item for key, item in value.items()}
    if isinstance(value, list):
        return [copied_json(item) if item.__class__ in _NESTED else item for item in value]
    return value


_NESTED = (dict, list)


@attrs.frozen
class GuardRow:
    """What one guardrail said, and how long it took."""

    id: str
    pack: str
    verdict: GuardVerdict
    seconds: float


@attrs.frozen
class GuardOutcome:
    """What the guardrails of a stage came to. `value` is the text to go on with: empty where it was blocked."""

    action: GuardAction
    value: str = attrs.field(repr=False)
    verdicts: tuple[GuardRow, ...] = ()


# -- how a payload says what it is -------------------------------------------------------------------------------------


def _patterns(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


@attrs.frozen(kw_only=True)
class GuardSettings:
    """What a guardrail says of itself."""

    stage: Stage | None = None
    tools: tuple[str, ...] = attrs.field(default=("*",), converter=_patterns)
    sanitizes: bool = False
    timeout: float = 5.0
    on_failure: Literal["block", "allow"] = "block"
    holds_back: int | None = None

    def __attrs_post_init__(self) -> None:
        for name, fault in self._faults():
            raise DescriptorError(f"guardrail: {name}: {fault}")

    def _faults(self) -> Iterable[tuple[str, str]]:
        if self.stage is not None and self.stage not in STAGES:
            yield (
                "stage",
                f"expected one of {', '.join(STAGES)}, got {self.stage!r}{did_you_mean(str(self.stage), STAGES)}",
            )
        yield from fault_of_patterns(self.tools)
        if not isinstance(self.sanitizes, bool):
            yield "sanitizes", f"expected True or False, got {self.sanitizes!r}"
        if fault := fault_of_seconds(self.timeout):
            yield "timeout", fault
        if self.on_failure not in ("block", "allow"):
            yield "on_failure", f"expected block or allow, got {self.on_failure!r}"
        held = self.holds_back
        if held is not None and (type(held) is not int or not 0 <= held <= HOLDS_BACK_LIMIT):
            yield "holds_back", f"expected at most {HOLDS_BACK_LIMIT} characters, got {held!r}"


def fault_of_patterns(tools: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    """Say what keeps *tools* from being patterns of tools' names."""
    if not tools:
        yield "tools", "expected at least one pattern; say '*' for every tool"
    for pattern in tools:
        if fault := fault_of_name(pattern):
            yield "tools", f"{fault}; name a tool, `pack:tool`, or a pattern such as `files:delete_*`"


def fault_of_seconds(value: object) -> str | None:
    """Say what keeps *value* from being a time limit."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0:
        return None
    return f"expected a positive number of seconds, got {value!r}"


def guardrail(
    stage: Stage | None = None,
    *,
    tools: str | Iterable[str] = "*",
    sanitizes: bool = False,
    timeout: float = 5.0,
    on_failure: Literal["block", "allow"] = "block",
    holds_back: int | None = None,
) -> Callable[[F], F]:
    """Make a guardrail of a function, which goes into a pack's `descriptors` as it is; its name is the id.

    It is called with the text, the `GuardedCall` or the `ToolResult`, and a `GuardContext`.
    """
    if stage is None or callable(stage):
        raise DescriptorError(f"@guardrail: say at which stage it is asked: stage= one of {', '.join(STAGES)}")
    settings = GuardSettings(
        stage=stage,
        tools=tools,
        sanitizes=sanitizes,
        timeout=timeout,
        on_failure=on_failure,
        holds_back=holds_back,
    )

    def mark(function: F) -> F:
        setattr(function, MARK, settings)
        return function

    return mark


def settings_of(payload: Any) -> GuardSettings:
    """Return what a payload says of itself: by its decorator, or as attributes."""
    said = getattr(payload, MARK, None)
    if isinstance(said, GuardSettings):
        return said
    names = [field.name for field in attrs.fields(GuardSettings) if field.name != "stage"]
    return GuardSettings(**{name: getattr(payload, name) for name in names if hasattr(payload, name)})


def functions_of(payload: Any) -> dict[Stage, Callable[..., Any]]:
    """Return what of a payload is asked at each stage; raise DescriptorError if it is no guardrail."""
    if isinstance(payload, type):
        raise DescriptorError(f"expected a guardrail, got the class {payload.__name__}; give an object of it")
    stage = settings_of(payload).stage
    if stage is not None:
        found: dict[Stage, Any] = {stage: payload}
    else:
        methods = {stage: getattr(payload, f"evaluate_{stage}", None) for stage in STAGES}
        found = {stage: method for stage, method in methods.items() if method is not None}
    if not found:
        expected = "expected a function with @guardrail, or an object with " + ", ".join(
            f"evaluate_{stage}" for stage in STAGES
        )
        raise DescriptorError(f"{expected}; got {type(payload).__name__}")
    for function in found.values():
        if fault := fault_of_parameters(function, 2):
            raise DescriptorError(f"{getattr(function, '__qualname__', function)}: {fault}")
    return found


def fault_of_parameters(function: Any, count: int) -> str | None:
    """Say what keeps *function* from being called with so many arguments; None if nothing does."""
    if not callable(function):
        return f"expected a function, got {type(function).__name__}"
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return f"expected a function of {count} arguments"
    except ValueError:  # one of C that does not say what it takes
        return None
    return None
