"""The inside of a worker: requests as lines of JSON on standard input, answers and events on standard output."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

Handler = Callable[..., Awaitable[Any]]


def tell(**line: Any) -> None:
    """Send a line to whoever started the worker."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def serve(handlers: dict[str, Handler]) -> None:
    """Answer requests, each in a task of its own, until standard input ends."""
    reader = asyncio.StreamReader(limit=2**22)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with asyncio.TaskGroup() as requests:
        while line := await reader.readline():
            requests.create_task(_answer(handlers, **json.loads(line)))
    transport.close()


async def _answer(handlers: dict[str, Handler], id: int, do: str, **arguments: Any) -> None:
    tell(id=id, answer=await handlers[do](**arguments))
