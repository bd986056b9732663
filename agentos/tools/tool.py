"""A tool: what a model may call, said once."""

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MethodType
from typing import Any, Literal, TypeVar, overload

import attrs

from agentos.errors import ToolDefinitionError
from agentos.model.descriptor import SecretRequirement, as_requirements
from agentos.model.display import Display
from agentos.model.field_checks import did_you_mean, fault_of_name
from agentos.rules.intervention import as_rules

Effect = Literal["read", "mutate", "destructive"]
EFFECTS = ("read", "mutate", "destructive")
PLACEMENTS = ("inline", "thread")
INTERVENTIONS = ("never", "required", "always")

F = TypeVar("F", bound=Callable[..., Any])
Builder = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Turns validated arguments into the keywords that a function declared."""


class _Public:
    """Said aloud: open to every principal."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "PUBLIC"

    def __reduce__(self) -> str:
        return "PUBLIC"


PUBLIC = _Public()
"""The access of a tool that every principal may call."""

Access = _Public | tuple[str, ...]


def _access(value: Any) -> Access:
    """Return rules as a tuple; what can't be rules is one that none can be, and is refused with the others."""
    if isinstance(value, _Public):
        return value
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


def _intervention(value: Any) -> Any:
    """Return rules as rules; a word or a function is left as it is."""
    return as_rules(value) if isinstance(value, list | tuple) else value


def _names(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


@attrs.frozen(kw_only=True, eq=False)
class Tool:
    """What a model may call.

    `effect` and `required_access` are never guessed. `execute(args, context)` may be sync or async; None means that
    the tool is declared and waits for its handler.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any] = attrs.field(repr=False)
    effect: Effect
    required_access: Access = attrs.field(converter=_access)
    execute: Callable[[Any, Any], Any] | None = attrs.field(default=None, repr=False)
    output_schema: Mapping[str, Any] | None = attrs.field(default=None, repr=False)
    intervention: Any = attrs.field(default=None, converter=_intervention)
    """`never`, `required` or `always`; rules, the first that matches counts; or a function (args, context) of those."""
    placement: Literal["inline", "thread"] | None = None
    timeout: float | None = None
    ordered: bool = False
    idempotent: bool = False
    cost: float = 1.0
    """What a call takes of a budget's cost units."""
    dry_run: Callable[[Any, Any], Any] | None = attrs.field(default=None, repr=False)
    display_name: str | None = None
    category: str | None = None
    display: Display | None = attrs.field(default=None, repr=False)
    """How people are shown a call, its result and its approval; None: as its schemas and its output are."""
    system_prompt: str | None = attrs.field(default=None, repr=False)
    aliases: tuple[str, ...] = attrs.field(default=(), converter=_names)
    version: str | None = None
    coerce: bool = False
    required_secrets: tuple[SecretRequirement, ...] = attrs.field(default=(), converter=as_requirements)
    """What its descriptor requires; without them it is gated."""
    wraps: bool = False
    """Its descriptor wraps: the tool calls the one beneath it by `context.below`."""
    toolset: "Toolset | None" = attrs.field(default=None, repr=False)
    inherits: bool = attrs.field(default=False, repr=False)
    """Its input schema is that of the tool beneath it: what it is called with, `context.below()` hands on."""
    is_hidden: bool = attrs.field(default=False, repr=False)
    """It is called by who knows its name and offered to nobody: for tools of agentos itself."""
    function: Callable[..., Any] | None = attrs.field(default=None, repr=False)
    """The function that `@tool` was put on; calling the tool calls it."""

    def __attrs_post_init__(self) -> None:
        for field, fault in _faults(self):
            raise ToolDefinitionError(f"tool {self.name!r}", field, fault)

    @classmethod
    def from_schema(
        cls,
        *,
        name: str,
        description: str,
        input_schema: Mapping[str, Any],
        effect: Effect,
        required_access: Any,
        execute: Callable[[Any, Any], Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> "Tool":
        """Make a tool from hand-written JSON Schema. An object schema is closed unless it says otherwise."""
        schema = dict(input_schema)
        if schema.get("type") == "object" and "properties" in schema and not (_OPENERS & schema.keys()):
            schema["additionalProperties"] = False
        _check_schemas(name, schema, output_schema)
        return cls(
            name=name,
            description=description,
            input_schema=schema,
            effect=effect,
            required_access=required_access,
            execute=execute,
            output_schema=output_schema,
            **fields,
        )

    @property
    def is_public(self) -> bool:
        """Tell whether every principal may call it."""
        return self.required_access is PUBLIC

    @property
    def is_async(self) -> bool:
        """Tell whether it runs on the event loop rather than in a thread."""
        if self.placement is not None:
            return self.placement == "inline"
        return is_async(self.function or self.execute)

    def bind(self, handler: Callable[[Any, Any], Any]) -> "Tool":
        """Return this tool with *handler* to run it: `handler(args, context)`, sync or async."""
        if not callable(handler):
            raise ToolDefinitionError(
                f"tool {self.name!r}", "handler", f"expected a function, got {type(handler).__name__}"
            )
        return attrs.evolve(self, execute=handler, function=None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function that the tool was made from, as if it were no tool."""
        if self.function is None:
            raise TypeError(f"tool {self.name!r} was not made from a function; call it through a host")
        return self.function(*args, **kwargs)


def _check_schemas(name: str, input_schema: Mapping[str, Any], output_schema: Mapping[str, Any] | None) -> None:
    from agentos.schema.validation import compile_schema

    compile_schema(input_schema, f"the input schema of tool {name!r}")
    kind = input_schema.get("type", "object")
    if "object" not in ([kind] if isinstance(kind, str) else kind):
        raise ToolDefinitionError(f"tool {name!r}", "input_schema", f"arguments are an object, not of type {kind!r}")
    if output_schema is not None:
        compile_schema(output_schema, f"the output schema of tool {name!r}")


_OPENERS = {"additionalProperties", "unevaluatedProperties", "$ref", "allOf", "anyOf", "oneOf", "patternProperties"}


def _members(tools: Iterable[object]) -> tuple[Tool, ...]:
    return tuple(required_tool(one, "Toolset", "tools") for one in tools)


def required_tool(value: object, where: str, part: str) -> Tool:
    """Return *value* as a tool; refuse anything else, naming where it was given."""
    if (made := as_tool(value)) is None:
        raise ToolDefinitionError(where, part, f"expected a Tool, got {type(value).__name__}")
    return made


@attrs.frozen(eq=False)
class Toolset:
    """Tools under one identifier, with a system prompt that is given once when any of them is offered."""

    id: str
    tools: tuple[Tool, ...] = attrs.field(converter=_members)
    system_prompt: str = attrs.field(default="", repr=False)

    def __iter__(self) -> Iterator[Tool]:
        return (attrs.evolve(one, toolset=self) for one in self.tools)

    def __len__(self) -> int:
        return len(self.tools)


def is_async(function: Any) -> bool:
    """Tell whether calling *function* gives something to await or to iterate asynchronously."""
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return True
    call = getattr(type(function), "__call__", None)  # noqa: B004 - whether it is async, not whether it is callable
    return inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call)


def _faults(tool: Tool) -> Iterable[tuple[str, str]]:
    if fault := fault_of_name(tool.name):
        yield "name", fault
    elif ":" in tool.name:
        yield "name", "a tool's name has no colon; `pack:tool` is how others name it"
    if not isinstance(tool.description, str):
        yield "description", f"expected a string, got {type(tool.description).__name__}"
    if not isinstance(tool.input_schema, Mapping):
        yield "input_schema", f"expected a JSON Schema as a mapping, got {type(tool.input_schema).__name__}"
    if tool.effect not in EFFECTS:
        yield "effect", f"expected one of {', '.join(EFFECTS)}, got {tool.effect!r}"
    yield from _faults_of_access(tool.required_access)
    if tool.execute is not None and not callable(tool.execute):
        yield "execute", f"expected a function, got {type(tool.execute).__name__}"
    if tool.placement is not None and tool.placement not in PLACEMENTS:
        yield "placement", f"expected one of {', '.join(PLACEMENTS)}, got {tool.placement!r}"
    if tool.timeout is not None and not _is_seconds(tool.timeout):
        yield "timeout", f"expected a positive number of seconds, got {tool.timeout!r}"
    if not (_is_seconds(tool.cost) or tool.cost == 0):
        yield "cost", f"expected a number of units that is not negative, got {tool.cost!r}"
    if not _is_intervention(tool.intervention):
        expected = f"expected one of {', '.join(INTERVENTIONS)}, a list of rules or a function"
        yield "intervention", f"{expected}, got {tool.intervention!r}"
    if not isinstance(tool.wraps, bool):
        yield "wraps", f"expected True or False, got {type(tool.wraps).__name__}"
    yield from _faults_beside(tool)


def _faults_beside(tool: Tool) -> Iterable[tuple[str, str]]:
    if tool.display is not None and not isinstance(tool.display, Display):
        yield "display", f"expected a Display, got {type(tool.display).__name__}"
    for alias in tool.aliases:
        if (fault := fault_of_name(alias)) or ":" in alias or alias == tool.name:
            yield "aliases", fault or f"{alias!r} has a colon or is the tool's own name"


def _faults_of_access(access: Access) -> Iterable[tuple[str, str]]:
    if isinstance(access, _Public):
        return
    if not access:
        yield "required_access", "an empty tuple says nothing; say PUBLIC if everybody may call it"
    for rule in access:
        if isinstance(rule, _Public):
            yield "required_access", "PUBLIC stands alone, not among rules"
        elif not isinstance(rule, str):
            yield "required_access", f"expected rule ids or PUBLIC, got {type(rule).__name__}"
        elif fault := fault_of_name(rule):
            yield "required_access", fault
        elif rule == "*":
            yield "required_access", "'*' is held by principals, not required by tools; say PUBLIC or name a rule"


def _is_intervention(value: Any) -> bool:
    if value is None or isinstance(value, tuple):
        return True
    return value in INTERVENTIONS if isinstance(value, str) else callable(value)


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0


@attrs.frozen(kw_only=True, eq=False)
class FunctionTool(Tool):
    """A tool made from a function. In a class it is a method: taken from an instance, it is bound to it."""

    _build: Builder | None = attrs.field(default=None, repr=False)
    _context_parameter: str | None = attrs.field(default=None, repr=False)
    _is_method: bool = attrs.field(default=False, repr=False)

    def __get__(self, instance: Any, owner: type | None = None) -> "FunctionTool":
        if instance is None or not self._is_method:
            return self
        function = self.function.__get__(instance, owner)  # type: ignore[union-attr]
        execute = _bound(function, self._build, self._context_parameter)
        return attrs.evolve(self, function=function, execute=execute, is_method=False)


@overload
def tool(function: F, /) -> Tool: ...
@overload
def tool(
    *,
    effect: Effect,
    required_access: Any,
    name: str | None = None,
    description: str | None = None,
    **fields: Any,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Any = None,
    /,
    *,
    effect: Any = None,
    required_access: Any = None,
    name: str | None = None,
    description: str | None = None,
    **fields: Any,
) -> Any:
    """Make a tool of a function or method: schemas from its type hints, descriptions from its docstring.

    A parameter `context: ToolContext` is injected and never in the schema. Other keywords are those of `Tool`:
    timeout, ordered, idempotent, dry_run, display, intervention, placement, aliases, system_prompt, coerce,
    required_secrets, wraps, ...
    """
    if function is not None or effect is None or required_access is None:
        shown = getattr(function, "__qualname__", "a function")
        raise ToolDefinitionError(
            f"@tool on {shown}",
            "",
            "say effect= (read, mutate or destructive) and required_access= (rule ids, or PUBLIC); neither is guessed",
        )

    check_keywords(fields, "@tool")

    fields |= {"effect": effect, "required_access": required_access}
    return functools.partial(_from_function, name=name, description=description, **fields)


def check_keywords(fields: Iterable[str], where: str) -> None:
    """Refuse keywords of a tool's definition that no tool has, or that are derived."""
    for field in fields:
        if field not in _KEYWORDS:
            raise ToolDefinitionError(where, field, f"unknown keyword{did_you_mean(field, _KEYWORDS)}")


_DERIVED = ("input_schema", "execute", "function", "inherits")
_KEYWORDS = [field.name for field in attrs.fields(Tool) if field.name not in _DERIVED]


def _from_function(
    function: Callable[..., Any], *, name: str | None, description: str | None, **fields: Any
) -> FunctionTool:
    from agentos.schema.signature import Signature

    called = name or getattr(function, "__name__", None)
    if called is None:
        raise ToolDefinitionError(
            f"@tool on a {type(function).__name__}", "name", "it has no name of its own; say name="
        )
    is_method = _first_parameter(function) in ("self", "cls")
    signature = Signature.of(function, method=is_method)
    derived = signature.input()
    if "output_schema" not in fields:
        fields["output_schema"] = signature.output()
    build, context = derived.build, derived.context_parameter
    return FunctionTool(
        name=called,
        description=description if description is not None else signature.docs.description,
        input_schema=derived.schema,
        execute=None if is_method else _bound(function, build, context),
        function=function,
        build=build,
        context_parameter=context,
        is_method=is_method,
        **fields,
    )


def _first_parameter(function: Callable[..., Any]) -> str | None:
    if inspect.ismethod(function):
        return None
    code = getattr(function, "__code__", None)
    return code.co_varnames[0] if code is not None and code.co_argcount else None


def _call(function: Callable[..., Any], args: Mapping[str, Any], _: Any) -> Any:
    return function(**args)


def _bound(function: Callable[..., Any], build: Builder | None, context: str | None) -> Callable[[Any, Any], Any]:
    """Return *function* as `execute(args, context)`, paying only for what it uses."""
    if build is None and context is None:
        return MethodType(_call, function)  # a third of a closure's memory
    if context is None:
        return lambda args, _: function(**build(args))  # type: ignore[misc]
    if build is None:
        return lambda args, given: function(**args, **{context: given})
    return lambda args, given: function(**build(args), **{context: given})


def takes_nothing(tool: Tool) -> bool:
    """Tell whether a tool was made of a function without parameters but for the context."""
    return isinstance(tool, FunctionTool) and not tool.input_schema.get("properties")


def inheriting(tool: Tool, beneath: Tool) -> Tool:
    """Return a wrapper that takes what the tool beneath it takes; its own function is given none of it.

    If it does not say what a call would do, or how one is shown, the tool beneath does.
    """
    execute = tool.execute
    return attrs.evolve(
        tool,
        input_schema=beneath.input_schema,
        coerce=beneath.coerce,
        execute=None if execute is None else lambda _, context: execute({}, context),
        dry_run=tool.dry_run or beneath.dry_run,
        display=tool.display or beneath.display,
        inherits=True,
    )


_SIGNS = ("input_schema", "execute", "effect", "required_access")


def looks_like_tool(value: object) -> bool:
    """Tell whether *value* means to be a tool: it has a name and at least two of a tool's other parts."""
    return isinstance(value, Tool) or (hasattr(value, "name") and sum(hasattr(value, sign) for sign in _SIGNS) > 1)


def as_tool(value: object) -> Tool | None:
    """Return *value* as a tool: itself, or made of an object that has a tool's parts. None if it is no tool."""
    if isinstance(value, Tool):
        return value
    if not looks_like_tool(value) or isinstance(value, type):
        return None
    missing = [
        part for part in ("description", "input_schema", "effect", "required_access") if not hasattr(value, part)
    ]
    if missing:
        raise ToolDefinitionError(f"tool {getattr(value, 'name', '')!r}", "", f"missing {', '.join(missing)}")
    given = {field.name: getattr(value, field.name) for field in attrs.fields(Tool) if hasattr(value, field.name)}
    given.pop("function", None)
    return Tool.from_schema(**given)
