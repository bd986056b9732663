"""MCP servers, loaded as packs.

manifest_servers.py   the servers that a manifest names, checked
server_spec.py        ServerSpec: one server as an operator describes it
bridge.py             Bridge: a server as a pack whose tools follow the server's list
bridged_tools.py      checks what a server says of a tool, and makes a Tool of it
bridged_documents.py  resources, templates and prompts of a server, asked for when they are wanted
connection.py         ServerConnection: connects again whenever the connection is lost
session.py            ServerSession: one connection, from its start to its end
server_process.py     a server that is a process
http_transport.py     a server at a url
message_filter.py     which messages of a server reach the SDK
unreadable_tools.py   lists in which some tools can't be parsed
call_results.py       an answer to a call, as a ToolResult
progress_reports.py   progress of a call, at a bounded pace
server_questions.py   what a server asks for during a call: passed on, or refused
server_text.py        a server's text, shortened and without secrets
limits.py             ServerLimits: how much a server may send, how long it may take
"""
