"""A server made with the official SDK, over stdio or, given a port, over streamable HTTP on loopback."""

import os
import socket
import sys

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("sdk", instructions="Count carefully.")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def pid() -> str:
    """Tell the process's number."""
    return str(os.getpid())


@server.tool()
async def steps(ctx: Context) -> str:
    """Tell how far it is."""
    for done in (1, 2, 3):
        await ctx.report_progress(done, 3, f"step {done}")
    return "done"


@server.tool()
async def wait(mark: str) -> str:
    """Wait without end, and write down when it is cancelled."""
    path = anyio.Path(mark)
    await path.write_text("started")
    try:
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(shield=True):
            await path.write_text("cancelled")
    return "never"


@server.tool()
async def grow(ctx: Context) -> str:
    """Have one tool more."""
    server.add_tool(lambda: "grown", name="grown", description="A tool that was not there.")
    await ctx.notify_tools_changed()
    return "grown"


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("it went wrong")


def main():
    if len(sys.argv) == 1:
        server.run()
        return
    import uvicorn

    door = socket.socket()
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door.bind(("127.0.0.1", int(sys.argv[1])))
    door.listen()
    sys.stdout.write(f"{door.getsockname()[1]}\n")
    sys.stdout.flush()
    app = server.streamable_http_app(json_response="--json" in sys.argv)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[door])


main()
