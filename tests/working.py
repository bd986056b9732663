"""What the tests of workers share: hosts whose pack runs in a process of its own."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

from agentos import AgentOS, PackEntry, ToolCall
from agentos.processes.supervision import SupervisionRules

PACKS = Path(__file__).parent / "workers" / "packs"
PATIENT = SupervisionRules(strikes=100_000)
DEADLINE = 60.0


def entry(folder, name="fragile.py", **fields):
    fields = {"mount_timeout": 60.0, **fields}
    options = {"folder": str(folder), **fields.pop("options", {})}
    return PackEntry(module=str(PACKS / name), isolation="process", options=options, **fields)


@asynccontextmanager
async def working(*entries, rules=None, **options):
    """Run a host with these packs."""
    host = AgentOS(extension_manifest=list(entries), **{"budget": None, "mode": "auto", **options})
    if rules is not None:
        host.workers.rules = rules
    async with host:
        yield host


async def call(host, name, arguments=None, **options):
    async with asyncio.timeout(DEADLINE):
        return await host.tools.process_tool_call(ToolCall(name, arguments or {}, **options))


def state_of(host, tool, owner="fragile"):
    entries = host.extensions.explain("tool", tool).entries
    return next(((str(one.state), one.reason) for one in entries if one.source.pack == owner), None)


def worker_of(host, pack="fragile"):
    return next((one for one in host.workers.list() if one.pack == pack), None)


def notes(folder):
    file = folder / "notes"
    return file.read_text().split() if file.exists() else []
