"""Interop: what is offered, in the shapes that others speak, and the calls that come back.

openai.py       tools and run for OpenAI-compatible endpoints, chat and responses
anthropic.py    the same for Anthropic
gemini.py       the same for google-genai
mcp.py          tools in MCP's shape
langchain.py    as_langchain_tools(host); needs the extra `langchain`
pydantic_ai.py  as_toolset(host); needs the extra `pydantic-ai`

Nothing here imports a provider's SDK before it is asked for.
"""

from agentos.base.lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(globals())
