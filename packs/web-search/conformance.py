"""What the conformance checks need around them: a server on loopback that answers as SearXNG does."""  # noqa: INP001

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from agentos_pack_common.loopback import serving

_HIT = {"title": "Tea", "url": "https://example.org/tea", "content": "How tea is made"}


@contextlib.asynccontextmanager
async def prepare(tmp: Path) -> AsyncIterator[dict[str, int]]:  # noqa: ARG001 - there is nothing to put there
    """Serve one hit."""
    async with serving({"/search": {"results": [_HIT]}}) as port:
        yield {"port": port}
