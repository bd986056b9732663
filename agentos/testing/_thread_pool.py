"""The pool of threads that an event loop works in by default, in a sandbox: it knows what has not ended."""

import asyncio
import functools
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

_PREFIX = "asyncio"
"""Its threads are called as those of an event loop's own pool: while they are idle they are nobody's."""


class CountingPool(ThreadPoolExecutor):
    """A pool of threads that knows what was handed to it and goes on."""

    def __init__(self) -> None:
        super().__init__(thread_name_prefix=_PREFIX)
        self._unfinished: dict[Future[Any], str] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Have *fn* called in a thread, and remember it until that has ended."""
        future = super().submit(fn, *args, **kwargs)
        self._unfinished[future] = _named(fn)
        future.add_done_callback(self._forget)  # called at once if it is done by now
        return future

    def _forget(self, future: "Future[Any]") -> None:
        self._unfinished.pop(future, None)

    @property
    def unfinished(self) -> "dict[Future[Any], str]":
        """Return what waits or runs, each with the name of its function."""
        return dict(self._unfinished)


def _named(fn: Any) -> str:
    """Return the name of a function; `asyncio.to_thread` hands over a context that runs it."""
    if isinstance(fn, functools.partial):
        fn = fn.args[0] if fn.args and getattr(fn.func, "__name__", "") == "run" else fn.func
    return getattr(fn, "__qualname__", None) or type(fn).__name__


@contextmanager
def counting_pool() -> Iterator[CountingPool]:
    """Have the running event loop work in a pool that counts. What goes on at the end is waited for by nobody."""
    loop, pool = asyncio.get_running_loop(), CountingPool()
    before = getattr(loop, "_default_executor", None)  # there is no other way to ask
    loop.set_default_executor(pool)
    try:
        yield pool
    finally:
        loop.set_default_executor(before or ThreadPoolExecutor(thread_name_prefix=_PREFIX))
        pool.shutdown(wait=False)
