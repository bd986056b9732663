"""The host's tools for MCP clients.

mcp_server.py        MCPServer: what a principal may see, in both eras of the protocol; serve_stdio
stdio.py             stdin and stdout as a transport
wire_format.py       tools and results in MCP's shape
shown_tools.py       what a client is shown: names, pages, what was searched for and loaded
own_tools.py         the server's own tools: search_tools, load_tools, proposals_*
client_calls.py      a call under way: progress to the client, cancellation to the tool
approval_prompts.py  asking the person at the client to approve a call
list_changed.py      list_changed notifications to clients of both eras
documents.py         prompts and resources
served_host.py       the part of a host that a server needs
"""
