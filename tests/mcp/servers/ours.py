"""A server made of an agentos host, over stdio."""

import asyncio

from agentos import PUBLIC, AgentOS, tool
from agentos.mcp import serve_stdio


@tool(effect="read", required_access=PUBLIC)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def main():
    async with AgentOS() as host:
        await host.tools_service().register_tool(add)
        await serve_stdio(host)


asyncio.run(main())
