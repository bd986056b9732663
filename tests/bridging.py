"""What the tests of bridged MCP servers share: hosts with servers, calls, waiting with a deadline, counting leaks."""

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import warm_starts

from agentos import AgentOS, ExtensionManifest, ToolCall
from agentos.mcp.client.limits import ServerLimits
from agentos.mcp.client.manifest_servers import server_entries

SERVERS = Path(__file__).parent / "mcp" / "servers"
FAST = ServerLimits(first_delay=0.01, longest_delay=0.05, pause=0.01, grace=0.3, connect=10.0)
"""Limits for tests: short delays, and a deadline that a busy machine keeps."""
DEADLINE = 20.0


def program(name, *args):
    """Return the command of a fixture server that needs nothing but Python itself."""
    return {"command": sys.executable, "args": ["-S", "-E", str(SERVERS / name), *args]}


def plain(*args, **said):
    """Return the well-behaved server, whose tools the operator says are harmless."""
    return {**program("plain.py", *args), "effects": {"*": "read"}, **said}


def hostile(mode, **said):
    """Return a server that misbehaves."""
    return {**program("hostile.py", mode), "effects": {"*": "read"}, **said}


def manifest_of(servers, *, packs=(), limits=FAST):
    """Return a manifest of packs with MCP servers after them."""
    named = ExtensionManifest.from_dict({"mcpServers": servers})
    return ExtensionManifest(packs=[*packs, *server_entries(named, limits=limits)])


@asynccontextmanager
async def bridged(servers, *, packs=(), limits=FAST, **options):
    """Run a host with MCP servers."""
    options = {"budget": None, "mode": "auto", **options}
    async with AgentOS(extension_manifest=manifest_of(servers, packs=packs, limits=limits), **options) as host:
        yield host


async def call(host, name, arguments=None, **options):
    """Call a tool; no call may take longer than the deadline."""
    async with asyncio.timeout(DEADLINE):
        return await host.tools.process_tool_call(ToolCall(name, arguments or {}, **options))


def bridge_of(host, name="plain"):
    """Return the bridge of a server."""
    return host.extensions.registry("mcp-server").stack(name)[0].payload


def state_of(host, tool, owner="mcp/plain"):
    """Return the state and the reason of an owner's entry, or None."""
    entries = host.extensions.explain("tool", tool).entries
    return next(((str(one.state), one.reason) for one in entries if one.source.pack == owner), None)


async def until(host, condition, seconds=DEADLINE):
    """Wait until *condition* holds, looking again whenever something happened on the stacks."""
    happened = asyncio.Event()

    def listener(event):
        happened.set()

    host.extensions.on(listener)
    try:
        async with asyncio.timeout(seconds):
            while not condition():
                happened.clear()
                await happened.wait()
    finally:
        host.extensions.off(listener)


async def eventually(condition, seconds=DEADLINE):
    """Wait until *condition* holds of something that tells nobody when it changes: a file, a process."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


def descriptors():
    """Return the open file descriptors of this process."""
    return {link.name: _target(link) for link in Path("/proc/self/fd").iterdir()}


def _target(link):
    try:
        return str(link.readlink())
    except OSError:
        return ""


_others = set()


def note_others():
    """Remember the processes that other tests started: a database server, say. They are nobody's leak."""
    _others.clear()
    _others.update(_all_children())


def children():
    """Return the processes that the test started and that are not reaped, zombies included."""
    return [pid for pid in _all_children() if pid not in _others | warm_starts.PIDS]


def _all_children():
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:
            continue
        if int(stat.rpartition(")")[2].split()[1]) == os.getpid():
            found.append(int(folder.name))
    return found


def tasks():
    """Return the tasks that run, but for those of the test itself."""
    running = (task for task in asyncio.all_tasks() if "TestRunner" not in repr(task.get_coro()))
    return {task.get_name() for task in running}


def is_alive(pid):
    """Tell whether a process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
