"""What the conformance checks need around them: a server on loopback that takes whatever it is sent."""  # noqa: INP001

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from agentos_pack_common.loopback import serving


@contextlib.asynccontextmanager
async def prepare(tmp: Path) -> AsyncIterator[dict[str, int]]:  # noqa: ARG001 - there is nothing to put there
    """Serve one resource."""
    async with serving({"/items": [{"name": "tea", "price": 2.5}]}) as port:
        yield {"port": port}
