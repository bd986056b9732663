"""What the conformance checks need around them: a server on loopback that answers as Slack does."""  # noqa: INP001

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from agentos_pack_common.loopback import serving


@contextlib.asynccontextmanager
async def prepare(tmp: Path) -> AsyncIterator[dict[str, int]]:  # noqa: ARG001 - there is nothing to put there
    """Take any message."""
    taken = {"ok": True, "channel": "C024BE91L", "ts": "1700000000.000100"}
    async with serving({"/api/chat.postMessage": taken}) as port:
        yield {"port": port}
