"""Packs whose tools go on when their time is up."""

import asyncio
import threading

from testing.parts import Text, pack, reads, undo

from agentos import ToolContext


def leaves_the_rest_to_a_task_when_time_is_short():
    kept = []

    @reads
    async def look_up(text: Text, *, context: ToolContext) -> str:
        """Look a text up in the table of known ones."""
        if context.tool.timeout is not None:
            kept.append(asyncio.create_task(asyncio.sleep(3600)))
        return "found"

    return pack(look_up)


def goes_on():
    @reads
    async def look_up(text: Text, *, context: ToolContext) -> str:
        """Look a text up in the table of known ones."""
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            if context.tool.timeout is not None:
                await asyncio.sleep(2)
        return "found"

    return pack(look_up)


def goes_on_in_a_thread_of_the_loop():
    @reads
    async def look_up(text: Text, *, context: ToolContext) -> str:
        """Look a text up in the table of known ones."""
        if context.tool.timeout is not None:
            over = threading.Event()
            undo.append(over.set)
            await asyncio.to_thread(over.wait, 60)
        return "found"

    return pack(look_up)


_busy = []


def can_not_be_called_again():
    @reads
    async def look_up(text: Text, *, context: ToolContext) -> str:
        """Look a text up in the table of known ones."""
        if _busy:
            raise ValueError("it is busy")
        if context.tool.timeout is not None:
            _busy.append(text)
            undo.append(_busy.clear)
        await asyncio.sleep(0.05)
        return "found"

    return pack(look_up)
