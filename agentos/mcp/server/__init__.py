"""The host's tools for MCP clients.

server.py            MCPServer: what a principal may see, in both eras of the protocol; serve_stdio
stdio.py             stdin and stdout as a transport
content.py           tools and results in MCP's shape
shown_tools.py       what a client is shown: names, pages, what was searched for and loaded
own_tools.py         the server's own tools: search_tools, load_tools, proposals_*
client_calls.py      a call under way: progress to the client, cancellation to the tool
approval_prompts.py  approval in place
list_changed.py      list_changed to clients of both eras
documents.py         prompts and resources
"""
