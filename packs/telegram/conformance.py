"""What the conformance checks need around them: a server on loopback that answers as the Bot API does."""  # noqa: INP001

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from agentos_pack_common.loopback import serving


@contextlib.asynccontextmanager
async def prepare(tmp: Path) -> AsyncIterator[dict[str, int]]:  # noqa: ARG001 - there is nothing to put there
    """Take any message."""
    taken = {"ok": True, "result": {"message_id": 7, "chat": {"id": -1001234}}}
    async with serving({"/bot4242:the-token-of-the-checks/sendMessage": taken}) as port:
        yield {"port": port}
