"""What the conformance checks need around them: a task without a tool, and one with a tool."""  # noqa: INP001

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agentos import ToolCall
from agentos.testing import make_host


@contextlib.asynccontextmanager
async def prepare(tmp: Path) -> AsyncIterator[dict[str, int]]:
    """Create the tasks, and tell their numbers."""
    entry = {"module": "agentos_pack_tasks", "options": {"path": str(tmp / "tasks.db")}}
    async with make_host(entry) as host:

        async def create(**arguments: Any) -> int:
            result = await host.tools.process_tool_call(ToolCall("task_create", arguments))
            number: int = result.output["id"]
            return number

        plan = await create(title="Plan the trip")
        listing = await create(title="List what is left", tool="task_list", arguments={})
    yield {"plan": plan, "list": listing}
