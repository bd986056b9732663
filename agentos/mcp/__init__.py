"""MCP both ways: the host's tools for any client, and any server's tools for the host.

Serving
server.py       MCPServer: what a principal may see, in both eras of the protocol; serve_stdio
stdio.py        stdin and stdout as a transport
http.py         streamable HTTP: http_app, serve_http
_checks.py      what a request must be before anybody asks who sent it
_bearer.py      its token
_door.py        how many at once, at which pace, for how long
_resource.py    the address of the server, and its metadata
_uvicorn.py     the web server
auth.py         who a bearer token stands for: JWTVerifier (_jwt.py, _keys.py), TokenFile (_token_file.py, _tokens.py)
_content.py     tools and results in MCP's shape
_offer.py       what a client is shown: names, pages, what was searched for and loaded
_own_tools.py   the server's own tools: search_tools, load_tools, proposals_*
_calls.py       a call under way: progress to the client, cancellation to the tool
_asking.py      approval in place
_changes.py     list_changed to clients of both eras
_documents.py   prompts and resources

Taking in
servers.py      mcpServers of a manifest, as values
bridge.py       a server as a pack
client.py       a connection to a server, kept up
openapi.py      an OpenAPI document as a pack

Nothing here imports the SDK before it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentos.mcp.auth import JWTVerifier, TokenFile
    from agentos.mcp.http import http_app, serve_http
    from agentos.mcp.server import MCPServer, serve_stdio

_HOMES = {
    "JWTVerifier": "auth",
    "MCPServer": "server",
    "TokenFile": "auth",
    "http_app": "http",
    "serve_http": "http",
    "serve_stdio": "server",
}

__all__ = ["JWTVerifier", "MCPServer", "TokenFile", "http_app", "serve_http", "serve_stdio"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from agentos.interop._extras import needed

    needed("mcp", "mcp")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
