from agentos.interop import anthropic as anthropic
from agentos.interop import gemini as gemini
from agentos.interop import langchain as langchain
from agentos.interop import mcp as mcp
from agentos.interop import openai as openai
from agentos.interop import pydantic_ai as pydantic_ai
from agentos.interop.langchain import as_langchain_tools as as_langchain_tools
from agentos.interop.pydantic_ai import as_toolset as as_toolset
