"""MCP servers: each is a pack of its own whose tools its bridge registers."""

from agentos.model.kind import Kind, declare_own_kind

MCP_SERVER = declare_own_kind(Kind("mcp-server", reader="the bridge, which connects it and offers its tools"))
