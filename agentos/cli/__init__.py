"""The command `agentos`. Everything here needs the extra `cli`.

main.py            where it begins: help costs nothing, a command's code is imported when it is named (command_list.py)
app.py             what every command gets: configuration, a host, a way to say things, one way to end badly
commands/          one file for each command, or for a few that belong together
terminal/          what is written and read: tables, JSON, logs, progress, questions, signals

layered_config.py  one manifest, layered with what is beside it, in the environment and on the command line
manifest_files.py  where manifests are (manifest_entries.py: the entries in one; hidden_secrets.py: what is not shown)
manifest_edit/     edits that keep comments and order: editing.py, toml_edits.py, node_edits.py for YAML and JSON
scaffolding.py     what `init` and `new pack` write (scaffold/)

probe/             packs loaded in a process of their own, where a bad one harms nobody; exit_guard.py for this process
inspection.py      the probe as commands use it
mcp_clients.py     where MCP clients keep their settings, and how this host is written there
host_session.py    a host at work in a command; calling.py makes one call, call_arguments.py reads its arguments
live_changes.py    what an operator changes while a host is served
chat_endpoint.py   the model that `chat` talks to; chat_conversation.py: the turns with it, and what is told of them
held_back.py       definitions that wait to be accepted

store_records.py, read_only_stores.py                         what the store holds, without loading a pack
faults.py                                                     what may be wrong, for `doctor`
"""
