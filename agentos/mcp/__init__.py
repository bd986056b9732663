"""MCP both ways: the host's tools for any client, and any server's tools for the host.

server/  the host's tools for clients of both eras: MCPServer, serve_stdio
http/    the same over streamable HTTP: http_app, serve_http
auth/    who a bearer token stands for: JWTVerifier, TokenFile
client/  servers of others, each taken in as a pack

Nothing here imports the SDK before it is asked for.
"""

from agentos.base.lazy_exports import lazy_exports
from agentos.interop._sdk_imports import needed

__all__, __getattr__, __dir__ = lazy_exports(globals(), before=lambda: needed("mcp", "mcp"))
