"""The host's tools for MCP clients.

mcp_server.py        MCPServer: what a principal may see, in both eras of the protocol; serve_stdio
stdio.py             stdin and stdout as a transport
wire_format.py       tools and results in MCP's shape
shown_tools.py       what a client is shown: names, pages, what was searched for and loaded
own_tools.py         the server's own tools: search_tools, load_tools, call_tool, proposals_*
client_calls.py      a call under way: progress to the client, cancellation to the tool
approval_prompts.py  asking the person at the client to approve a call
client_questions.py  questions of a bridged server to the person at the client
list_changed.py      list_changed notifications to clients of both eras
documents.py         prompts and resources
bridged_offers.py    resources, templates and prompts of bridged servers, as they came
served_host.py       the part of a host that a server needs
"""
