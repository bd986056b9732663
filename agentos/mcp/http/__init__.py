"""MCP over streamable HTTP: who may speak to the server, and within which bounds.

serving.py            http_app, serve_http
request_checks.py     what a request must be: its host, origin and method, and its bearer token
gateway.py            runs the checks, and bounds how many requests run and how long each takes
resource_metadata.py  the address of the server, and its metadata
pack_handlers.py      requests to the http-handlers of packs
handler_answer.py     what such a handler reads and writes
status_routes.py      whether it lives and takes requests, and figures about its work
connection_table.py   which connections have a place, and which of them make room
bounded_protocol.py   HTTP on one connection
web_server.py         the web server, and who accepts connections for it
"""

from agentos.mcp.http.serving import http_app, root_routes, serve_http

__all__ = ["http_app", "root_routes", "serve_http"]
