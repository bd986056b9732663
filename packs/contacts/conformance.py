"""What the conformance checks need around them: an address book with somebody in it."""  # noqa: INP001

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from agentos import ToolCall
from agentos.testing import make_host


@contextlib.asynccontextmanager
async def prepare(tmp: Path) -> AsyncIterator[dict[str, str]]:
    """Add a contact, and tell its id."""
    options = {"path": str(tmp / "contacts.db"), "create": True}
    entry = {"module": "agentos_pack_contacts", "options": options, "permissions": ["tools:register"]}
    async with make_host(entry) as host:
        made = await host.tools.process_tool_call(ToolCall("contacts_create", {"name": "Ada Lovelace"}))
    yield {"contact": made.output["id"]}
