"""What the conformance checks need around them: a server on loopback that answers as GIPHY does."""  # noqa: INP001

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agentos_pack_common.loopback import serving

_IMAGE = {"url": "https://media.giphy.com/media/cat/giphy.gif", "width": "200", "height": "120"}
_ANSWER: dict[str, Any] = {
    "data": [
        {
            "id": "cat",
            "title": "A cat",
            "url": "https://giphy.com/gifs/cat",
            "rating": "g",
            "images": {"original": _IMAGE, "fixed_height": _IMAGE},
        }
    ],
    "pagination": {"total_count": 1, "count": 1, "offset": 0},
    "meta": {"status": 200, "msg": "OK"},
}


@contextlib.asynccontextmanager
async def prepare(tmp: Path) -> AsyncIterator[dict[str, int]]:  # noqa: ARG001 - there is nothing to put there
    """Serve one picture."""
    async with serving({"/v1/gifs/search": _ANSWER}) as port:
        yield {"port": port}
