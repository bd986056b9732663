"""Processes that are started here: MCP servers over stdio, the workers that packs run in, programs that packs run.

backoff.py           how long to wait before trying again
spawned_process.py   a process in a group of its own, its output, and its end
guardian.py          ends a group when this process is gone, however it went
lines.py             lines of a stream of bytes, bounded while they arrive
programs.py          a program run to its end, within limits
program_start.py     how a program is found and started
program_pipes.py     what a program says, and when it ends
supervision.py       when to start one, and when to leave it alone for a while
"""
