from agentos.mcp.auth import JWTVerifier as JWTVerifier
from agentos.mcp.auth import TokenFile as TokenFile
from agentos.mcp.http.serving import http_app as http_app
from agentos.mcp.http.serving import serve_http as serve_http
from agentos.mcp.server.mcp_server import MCPServer as MCPServer
from agentos.mcp.server.mcp_server import serve_stdio as serve_stdio
