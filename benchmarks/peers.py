"""The libraries beside agentos: how each runs a tool, and how each registers and lists many, by its documented way.

Where a library offers several ways, the one with the least around it is taken. Whatever is not installed is skipped and
named. Imports are within the functions: `python -m benchmarks` needs none of these libraries.
"""

import functools
import importlib.metadata
import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import attrs

from benchmarks._measure import Effort, Measurement, Probe, Row, answer_of_child, take_turns

Function = Callable[..., Any]
Call = Callable[[str], Any]
"""JSON text in; out comes what the library itself returns, or an awaitable of it."""


def _same(result: Any) -> Any:
    return result


@attrs.frozen
class Way:
    """One way to run a tool."""

    distribution: str
    how: str
    make: Callable[[Function], Awaitable[Call]]
    """Make a tool of a function; return what calls it."""
    read: Callable[[Any], Any] = _same
    """Return the tool's value from what a call returned."""
    is_async: bool = True
    is_whole: bool = True
    """Whether it is how the library runs a call, rather than parts of it put together by hand."""

    @property
    def title(self) -> str:
        """Return the name for a table."""
        return f"{titled(self.distribution)}: {self.how}"


@attrs.frozen
class Shelf:
    """How many tools are registered, and listed for a request."""

    distribution: str
    adding: str
    listing: str
    register: Callable[[Sequence[Function]], Any]
    listed: Callable[[Any], Awaitable[Sequence[Any]]]
    is_async: bool = True

    @property
    def title(self) -> str:
        """Return the name for a table of registering and listing."""
        return f"{titled(self.distribution)}: {self.adding}, {self.listing}"

    @property
    def title_of_list(self) -> str:
        """Return the name for a table of listing alone."""
        return f"{titled(self.distribution)}: {self.listing}"


Found = TypeVar("Found", Way, Shelf)


def titled(distribution: str) -> str:
    return f"{distribution.removesuffix('-slim')} {importlib.metadata.version(distribution)}"


def present(wanted: Iterable[Found]) -> list[Found]:
    """Return what is installed; name the rest."""
    wanted = list(wanted)
    missing = sorted({one.distribution for one in wanted if not is_installed(one.distribution)})
    if missing:
        skipped(f"not installed: {', '.join(missing)}")
    return [one for one in wanted if one.distribution not in missing]


def is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def skipped(why: str) -> None:
    print(f"    skipped, {why}", file=sys.stderr, flush=True)


# -- pydantic-ai -------------------------------------------------------------------------------------------------


def _run_context() -> Any:
    from pydantic_ai import RunContext, RunUsage
    from pydantic_ai.models.test import TestModel

    return RunContext(deps=None, model=TestModel(), usage=RunUsage())


async def _pydantic_agent(function: Function) -> Call:
    from pydantic_ai import Agent

    return await _pydantic_manager(function, hooks=Agent().root_capability)


async def _pydantic_manager(function: Function, hooks: Any = None) -> Call:
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.toolsets import FunctionToolset

    manager = await ToolManager(FunctionToolset([function]), root_capability=hooks).for_run_step(_run_context())
    name = function.__name__

    async def call(text: str) -> Any:
        return await manager.handle_call(ToolCallPart(name, text, "1"))

    return call


async def _pydantic_toolset(function: Function) -> Call:
    from pydantic_ai.toolsets import FunctionToolset

    toolset: Any = FunctionToolset([function])
    context = _run_context()
    name = function.__name__
    tool = (await toolset.get_tools(context))[name]
    validate = tool.args_validator.validate_json

    async def call(text: str) -> Any:
        return await toolset.call_tool(name, validate(text), context, tool)

    return call


def _pydantic_register(functions: Sequence[Function]) -> Any:
    from pydantic_ai.toolsets import FunctionToolset

    return FunctionToolset(list(functions))


async def _pydantic_listed(toolset: Any) -> list[Any]:
    return [tool.tool_def for tool in (await toolset.get_tools(_run_context())).values()]


# -- langchain-core ----------------------------------------------------------------------------------------------


async def _langchain(function: Function) -> Call:
    [tool] = _langchain_register([function])

    async def call(text: str) -> Any:
        return await tool.ainvoke(json.loads(text))

    return call


def _langchain_register(functions: Sequence[Function]) -> list[Any]:
    from langchain_core.tools import StructuredTool

    return [StructuredTool.from_function(coroutine=one, parse_docstring=True) for one in functions]


async def _langchain_listed(tools: list[Any]) -> list[Any]:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    return [convert_to_openai_tool(tool) for tool in tools]


# -- openai-agents -----------------------------------------------------------------------------------------------


async def _openai_agents(function: Function) -> Call:
    from agents.tool_context import ToolContext

    [tool] = _openai_agents_register([function]).tools
    name = function.__name__

    async def call(text: str) -> Any:
        context = ToolContext(context=None, tool_name=name, tool_call_id="1", tool_arguments=text)
        return await tool.on_invoke_tool(context, text)

    return call


def _openai_agents_register(functions: Sequence[Function]) -> Any:
    from agents import Agent, function_tool

    return Agent(name="peer", tools=[function_tool(one) for one in functions])


async def _openai_agents_listed(agent: Any) -> list[Any]:
    from agents import RunContextWrapper
    from agents.models.chatcmpl_converter import Converter

    tools = await agent.get_all_tools(RunContextWrapper(None))
    return [Converter.tool_to_openai(tool) for tool in tools]


# -- semantic-kernel ---------------------------------------------------------------------------------------------


async def _semantic_kernel(function: Function) -> Call:
    from semantic_kernel.functions import KernelArguments

    kernel = _semantic_kernel_register([function])
    registered = kernel.get_function("peer", function.__name__)

    async def call(text: str) -> Any:
        return await kernel.invoke(registered, KernelArguments(**json.loads(text)))

    return call


async def _semantic_kernel_model(function: Function) -> Call:
    from semantic_kernel.contents import ChatHistory, FunctionCallContent

    kernel = _semantic_kernel_register([function])
    name = f"peer-{function.__name__}"

    async def call(text: str) -> Any:
        history = ChatHistory()
        await kernel.invoke_function_call(FunctionCallContent(id="1", name=name, arguments=text), history)
        return history

    return call


def _last_message(history: Any) -> Any:
    return int(history.messages[-1].items[0].result)


def _semantic_kernel_register(functions: Sequence[Function]) -> Any:
    from semantic_kernel import Kernel
    from semantic_kernel.functions import kernel_function

    kernel = Kernel()
    kernel.add_functions("peer", [kernel_function(one) for one in functions])
    return kernel


async def _semantic_kernel_listed(kernel: Any) -> list[Any]:
    from semantic_kernel.connectors.ai.function_calling_utils import kernel_function_metadata_to_function_call_format

    functions = kernel.get_full_list_of_function_metadata()
    return [kernel_function_metadata_to_function_call_format(one) for one in functions]


# -- agno --------------------------------------------------------------------------------------------------------


async def _agno(function: Function) -> Call:
    from agno.utils.functions import get_function_call

    functions = _agno_register([function])
    name = function.__name__

    async def call(text: str) -> Any:
        made: Any = get_function_call(name, text, "1", functions)
        return await made.aexecute()

    return call


def _agno_register(functions: Sequence[Function]) -> dict[str, Any]:
    from agno.tools.function import Function as AgnoFunction

    return {one.__name__: AgnoFunction.from_callable(one) for one in functions}


async def _agno_listed(functions: dict[str, Any]) -> list[Any]:
    return [{"type": "function", "function": one.to_dict()} for one in functions.values()]


# -- smolagents --------------------------------------------------------------------------------------------------


async def _smolagents(function: Function) -> Call:
    from smolagents.tools import validate_tool_arguments

    [tool] = _smolagents_register([function])

    def call(text: str) -> Any:
        arguments = json.loads(text)
        validate_tool_arguments(tool, arguments)
        return tool(**arguments, sanitize_inputs_outputs=True)

    return call


def _smolagents_register(functions: Sequence[Function]) -> list[Any]:
    from smolagents import tool

    return [tool(one) for one in functions]


async def _smolagents_listed(tools: list[Any]) -> list[Any]:
    from smolagents.models import get_tool_json_schema

    return [get_tool_json_schema(tool) for tool in tools]


# -- FastMCP -----------------------------------------------------------------------------------------------------


async def _fastmcp(function: Function) -> Call:
    from fastmcp.tools import Tool

    tool = Tool.from_function(function)

    async def call(text: str) -> Any:
        return await tool.run(json.loads(text))

    return call


def _structured(result: Any) -> Any:
    return result.structured_content["result"]


async def _fastmcp_server(function: Function) -> Call:
    server = _fastmcp_register([function])
    name = function.__name__

    async def call(text: str) -> Any:
        return await server.call_tool(name, json.loads(text))

    return call


def _fastmcp_register(functions: Sequence[Function]) -> Any:
    from fastmcp import FastMCP

    server: Any = FastMCP("peer")
    for one in functions:
        server.tool(one)
    return server


async def _fastmcp_listed(server: Any) -> list[Any]:
    return [tool.to_mcp_tool() for tool in await server.list_tools()]


# -- all of them -------------------------------------------------------------------------------------------------

WAYS = [
    Way("pydantic-ai-slim", "args_validator, then call_tool", _pydantic_toolset, is_whole=False),
    Way("pydantic-ai-slim", "ToolManager.handle_call, no hooks", _pydantic_manager),
    Way("pydantic-ai-slim", "ToolManager.handle_call of an Agent", _pydantic_agent),
    Way("openai-agents", "FunctionTool.on_invoke_tool", _openai_agents),
    Way("fastmcp", "tool.run", _fastmcp, _structured),
    Way("fastmcp", "server.call_tool", _fastmcp_server, _structured),
    Way("semantic-kernel", "kernel.invoke", _semantic_kernel, attrgetter("value")),
    Way("semantic-kernel", "kernel.invoke_function_call", _semantic_kernel_model, _last_message),
    Way("smolagents", "validate_tool_arguments, tool(), sync", _smolagents, is_async=False),
    Way("agno", "FunctionCall.aexecute", _agno, attrgetter("result")),
    Way("langchain-core", "StructuredTool.ainvoke", _langchain),
]

SHELVES = [
    Shelf("semantic-kernel", "add_functions", "metadata", _semantic_kernel_register, _semantic_kernel_listed),
    Shelf("smolagents", "@tool", "get_tool_json_schema", _smolagents_register, _smolagents_listed, is_async=False),
    Shelf("pydantic-ai-slim", "FunctionToolset", "get_tools", _pydantic_register, _pydantic_listed),
    Shelf("agno", "Function.from_callable", "to_dict", _agno_register, _agno_listed),
    Shelf("openai-agents", "function_tool", "get_all_tools", _openai_agents_register, _openai_agents_listed),
    Shelf("langchain-core", "from_function", "convert_to_openai_tool", _langchain_register, _langchain_listed),
    Shelf("fastmcp", "server.tool", "list_tools", _fastmcp_register, _fastmcp_listed),
]

_IMPORTS = {
    "agno": "from agno.tools.function import Function",
    "fastmcp": "from fastmcp import FastMCP",
    "langchain-core": "from langchain_core.tools import StructuredTool",
    "openai-agents": "from agents import Agent, function_tool",
    "pydantic-ai-slim": "from pydantic_ai.toolsets import FunctionToolset",
    "semantic-kernel": "from semantic_kernel import Kernel",
    "smolagents": "from smolagents import tool",
}
_OURS = "from agentos import AgentOS, tool; from agentos.interop import openai"


def imports(effort: Effort) -> Iterator[Row]:
    """Measure what importing each costs, in processes of their own."""
    statements = {one.distribution: _IMPORTS[one.distribution] for one in present(SHELVES)}
    probes = {name: _importing(statement) for name, statement in {"ours": _OURS, **statements}.items()}
    took = take_turns(probes, effort.rounds)
    for name, statement in statements.items():
        beside = f"{titled(name)}: {statement}"
        yield Row(what="import AgentOS, tool and interop.openai", ours=took["ours"], beside=beside, theirs=took[name])


def _importing(statement: str) -> Probe:
    code = f"import time; began = time.process_time(); {statement}; print(time.process_time() - began)"
    return functools.partial(answer_of_child, "-c", code)


MEASUREMENTS = [Measurement("peer_imports", "importing each peer", imports, default=False)]
