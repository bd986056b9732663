"""What the conformance checks need around them: a server on loopback with a page and a PDF."""  # noqa: INP001

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from agentos_pack_common.loopback import serving


@contextlib.asynccontextmanager
async def prepare(tmp: Path) -> AsyncIterator[dict[str, int]]:
    """Serve a page and a PDF."""
    pages = {f"/{name}": (tmp / name).read_bytes() for name in ("page.html", "report.pdf")}
    async with serving(pages) as port:
        yield {"port": port}
