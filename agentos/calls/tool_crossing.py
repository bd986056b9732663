"""How a tool crosses from a pack in a process of its own: all that is said of it, and its functions."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from agentos.model.crossing import Crossing, Function, describe_any, functions_of_any, proxy_of_any
from agentos.schema.validation import compile_schema
from agentos.tools.tool import PUBLIC, FunctionTool, Tool, Toolset, as_tool

_FUNCTIONS = ("execute", "dry_run", "intervention")
_APART = (*_FUNCTIONS, "function", "toolset", "required_access", "placement", "inherits")
_PLAIN = tuple(field.name for field in attrs.fields(Tool) if field.name not in _APART)


def _describe(payload: Any) -> Mapping[str, Any]:
    tool = as_tool(payload)
    if tool is None:
        return describe_any(payload)
    toolset, intervention = tool.toolset, tool.intervention
    return {
        **{name: getattr(tool, name) for name in _PLAIN},
        "required_access": None if tool.is_public else tool.required_access,
        "toolset": None if toolset is None else [toolset.id, toolset.system_prompt],
        "intervention": None if callable(intervention) else _rules(intervention),
        "is_function": isinstance(tool, FunctionTool),
    }


def _rules(intervention: Any) -> Any:
    if not isinstance(intervention, tuple):
        return intervention
    return [{"policy": rule.policy, "match": dict(rule.match), "kind": rule.kind} for rule in intervention]


# -- where the pack runs -----------------------------------------------------------------------------------------------


def _functions(payload: Any) -> Mapping[str, Function]:
    tool = as_tool(payload)
    if tool is None:
        return functions_of_any(payload)
    found = {name: getattr(tool, name) for name in _FUNCTIONS if callable(getattr(tool, name))}
    return {name: _served(function, _is_async(tool, name)) for name, function in found.items()}


def _is_async(tool: Tool, name: str) -> bool:
    if name == "execute":
        return tool.is_async
    return attrs.evolve(tool, execute=getattr(tool, name), function=None, placement=None).is_async


def _served(function: Callable[[Any, Any], Any], is_async: bool) -> Function:
    """Return a function of a tool as it is asked for: arguments that the context has come as None."""

    def run(arguments: Any, context: Any) -> Any:
        value = function(context.arguments if arguments is None else arguments, context)
        return _together(value, context) if issubclass(type(value), Iterator) or inspect.isasyncgen(value) else value

    async def run_on_loop(arguments: Any, context: Any) -> Any:
        value = run(arguments, context)
        while inspect.isawaitable(value):
            value = await value
        return _together(value, context) if issubclass(type(value), Iterator) else value

    return run_on_loop if is_async else run


def _together(value: Any, context: Any) -> Any:
    from agentos.calls.yielded import collected, gathered

    return collected(value, context) if inspect.isasyncgen(value) else gathered(value, context)


# -- in the host -------------------------------------------------------------------------------------------------------


def _proxy(said: Mapping[str, Any], functions: Mapping[str, Function]) -> Any:
    if "input_schema" not in said:
        return proxy_of_any(said, functions)
    given = {**said, **{name: _asked(function) for name, function in functions.items()}}
    access, toolset, is_function = given.pop("required_access"), given.pop("toolset"), given.pop("is_function")
    tool = (FunctionTool if is_function else Tool)(**given, required_access=PUBLIC if access is None else access)
    compile_schema(tool.input_schema, f"the input schema of tool {tool.name!r}")  # it was not derived here
    if tool.output_schema is not None:
        compile_schema(tool.output_schema, f"the output schema of tool {tool.name!r}")
    return tool if toolset is None else attrs.evolve(tool, toolset=Toolset(toolset[0], (tool,), toolset[1]))


def _asked(function: Function) -> Function:
    async def ask(arguments: Any, context: Any) -> Any:
        own = context._call.arguments  # noqa: SLF001 - the same values do not cross twice
        return await function(None if arguments is own else arguments, context)

    return ask


TOOL_CROSSING = Crossing(_describe, _functions, _proxy)
