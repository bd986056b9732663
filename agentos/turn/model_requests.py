"""Requests to a model's client, sync or async. What a sync one does is done in threads: the event loop goes on."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator, Mapping
from typing import Any

from agentos.base.foreign import settled

_END = object()


async def whole(method: Callable[..., Any], request: Mapping[str, Any]) -> Any:
    """Make one request, and return what the client returns."""
    if inspect.iscoroutinefunction(inspect.unwrap(method)):
        return await method(**request)
    made = await asyncio.to_thread(method, **request)
    return await made if inspect.isawaitable(made) else made


async def chunks(method: Callable[..., Any], request: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
    """Make one request, and yield the parts of its response. Whoever closes this closes the connection."""
    made = await whole(method, request)
    if not isinstance(made, AsyncIterable):
        async for chunk in _from_threads(made):
            yield chunk
        return
    try:
        async for chunk in made:
            yield chunk
    finally:
        await settled(_closing(made)())


async def _from_threads(made: Any) -> AsyncGenerator[Any, None]:
    iterator: Iterator[Any] = iter(made)
    loop = asyncio.get_running_loop()
    reading: asyncio.Future[Any] | None = None
    try:
        while True:
            reading = loop.run_in_executor(None, next, iterator, _END)
            chunk = await asyncio.shield(reading)
            if chunk is _END:
                return
            yield chunk
    finally:
        if reading is None or reading.done():
            _closing(made)()
        else:  # a thread still waits for the next part
            reading.add_done_callback(lambda ended: (ended.exception(), _closing(made)()))


def _closing(made: Any) -> Callable[[], Any]:
    """Return what closes a stream: SDKs' streams have `close`, generators that or `aclose`."""
    found: Callable[[], Any] = getattr(made, "aclose", None) or getattr(made, "close", None) or (lambda: None)
    return found
