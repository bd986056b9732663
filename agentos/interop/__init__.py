"""Interop: what is offered, in the shapes that others speak, and the calls that come back.

openai.py       tools and run for OpenAI-compatible endpoints, chat and responses
anthropic.py    the same for Anthropic
gemini.py       the same for google-genai
mcp.py          tools in MCP's shape
langchain.py    as_langchain_tools(host); needs the extra `langchain`
pydantic_ai.py  as_toolset(host); needs the extra `pydantic-ai`

Nothing here imports a provider's SDK before it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentos.interop.langchain import as_langchain_tools
    from agentos.interop.pydantic_ai import as_toolset

_MODULES = ("anthropic", "gemini", "langchain", "mcp", "openai", "pydantic_ai")
_HOMES = {"as_langchain_tools": "langchain", "as_toolset": "pydantic_ai"}

__all__ = ["as_langchain_tools", "as_toolset"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
