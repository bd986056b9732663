"""MCP both ways: the host's tools for any client, and any server's tools for the host.

server/            the host's tools for clients of both eras: MCPServer, serve_stdio
http/              the same over streamable HTTP: http_app, serve_http
auth/              who a bearer token stands for: JWTVerifier, TokenFile
client/            other MCP servers, each loaded as a pack
content_blocks.py  results as MCP's content, and a bridged server's content as results
questions.py       how the person is asked for whom a call is under way
report_queue.py    progress of a call on its way to its reader
json_rpc.py        JSON-RPC messages in a stream of bytes: what both sides read

Nothing here imports the SDK before it is asked for.
"""

from agentos.base.extras import import_extra
from agentos.base.lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(globals(), before=lambda: import_extra("mcp", "mcp"))
