"""Measurements of agentos beside a floor or a peer, in the same run: `python -m benchmarks`.

__main__.py   chooses, runs and shows
_measure.py   the method: turns, CPU time, medians
_packs.py     what is loaded: packs of any number
_children.py  what is measured in a process of its own
core.py       loading, reading, changing, memory, import
tools.py      defining, listing and calling tools
peers.py      the same in other libraries
access.py     what the guard adds, approvals and audit on disk
mcp.py        calls over MCP: memory, stdio, HTTP
memory.py     search in sqlite-memory
conformance.py  the conformance suite, pack by pack
"""
