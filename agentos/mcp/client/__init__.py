"""MCP servers, taken in as packs."""
