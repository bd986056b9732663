"""What the conformance checks need around them: a server that takes messages, and a message that waits."""  # noqa: INP001

import contextlib
import datetime as dt
from collections.abc import AsyncIterator
from pathlib import Path

from agentos_pack_common.loopback import serving

from agentos import ToolCall
from agentos.testing import fake_secrets, make_host


@contextlib.asynccontextmanager
async def prepare(tmp: Path) -> AsyncIterator[dict[str, str | int]]:
    """Serve the target, and schedule a message for tomorrow."""
    later = (dt.datetime.now(dt.UTC) + dt.timedelta(days=1)).isoformat(timespec="seconds")
    entry = {"module": "agentos_pack_notify", "options": {"path": str(tmp / "notify.db")}}
    async with serving({"/hook": {}}) as port:
        secrets = fake_secrets(values={"apprise.urls": f"ops=json://127.0.0.1:{port}/hook"})
        async with make_host(entry, secrets=secrets) as host:
            call = ToolCall("notify_schedule", {"target": "ops", "title": "Tea", "body": "It is ready", "at": later})
            made = await host.tools.process_tool_call(call)
        yield {"port": port, "later": later, "message": made.output["id"]}
