"""MCP both ways: the host's tools for any client, and any server's tools for the host.

server/          the host's tools for clients of both eras: MCPServer, serve_stdio
http/            the same over streamable HTTP: http_app, serve_http
auth/            who a bearer token stands for: JWTVerifier, TokenFile
client/          other MCP servers, each loaded as a pack
report_queue.py  progress of a call on its way to its reader
json_rpc.py      JSON-RPC messages in a stream of bytes: what both sides read

Nothing here imports the SDK before it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentos.mcp.auth import JWTVerifier, TokenFile
    from agentos.mcp.http.serving import http_app, serve_http
    from agentos.mcp.server.mcp_server import MCPServer, serve_stdio

_HOMES = {
    "JWTVerifier": "auth",
    "MCPServer": "server.mcp_server",
    "TokenFile": "auth",
    "http_app": "http.serving",
    "serve_http": "http.serving",
    "serve_stdio": "server.mcp_server",
}

__all__ = ["JWTVerifier", "MCPServer", "TokenFile", "http_app", "serve_http", "serve_stdio"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from agentos.base.extras import import_extra

    import_extra("mcp", "mcp")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
