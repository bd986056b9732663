"""A server made with FastMCP, over stdio."""

from fastmcp import FastMCP

server = FastMCP("fast")


@server.tool(annotations={"readOnlyHint": True})
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


server.run(show_banner=False)
