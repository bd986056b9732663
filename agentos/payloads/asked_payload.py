"""A payload is asked: what of it is called, how long that may take, and whatever it does."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from agentos.base.foreign import Border
from agentos.payloads.foreign_job import ForeignJob, Outcome, Threads, is_async
from agentos.stacks.entry import Entry

Finds = Callable[[Any], Callable[..., Any]]
"""Returns what of a payload is called."""


async def ask_payload(
    entry: Entry,
    finds: str | Finds,
    *given: Any,
    threads: Threads,
    seconds: float,
    most: float = math.inf,
    on_loop: bool = False,
    **named: Any,
) -> Outcome:
    """Call what *finds* names or returns of an entry's payload; return what came of it, and raise nothing of it.

    It may take as many seconds as the payload says by its `timeout`, by default *seconds*, and no more than *most*. It
    runs in a thread if it is not async, unless *on_loop*.
    """
    with Border() as border:  # already to look at a payload may run its code
        payload = entry.payload
        function = getattr(payload, finds) if isinstance(finds, str) else finds(payload)
        job = ForeignJob(
            partial(function, *given, **named),
            is_async=on_loop or is_async(function),
            seconds=min(_seconds(payload, seconds), most),
            threads=threads,
            users=entry._slot.users,  # noqa: SLF001 - the slot is our own
        )
        job.start()
    return await job.outcome() if border.error is None else (None, border.error)


def _seconds(payload: Any, default: float) -> float:
    said = getattr(payload, "timeout", default)
    is_limit = type(said) in (int, float) and math.isfinite(said) and said > 0
    return float(said) if is_limit else default
