"""Packs whose tools do not take a cancellation for what it is."""

import asyncio
import contextlib
import threading

from testing.parts import Text, pack, reads, undo

from agentos import PUBLIC, ToolContext, tool


def goes_on():
    @reads
    async def look_up(text: Text, *, context: ToolContext) -> str:
        """Look a text up in the table of known ones."""
        try:
            await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            if context.tool.timeout is None:
                await asyncio.sleep(2)
        return "found"

    return pack(look_up)


def takes_it_for_a_failure():
    @reads
    async def look_up(text: Text) -> str:
        """Look a text up in the table of known ones."""
        try:
            await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            raise ValueError("it was interrupted") from None
        return "found"

    return pack(look_up)


def never_lets_go():
    @reads
    async def look_up(text: Text) -> str:
        """Look a text up in the table of known ones."""
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.1)

    return pack(look_up)


def never_lets_go_of_what_it_waits_for():
    waits = tool(effect="read", required_access=PUBLIC, timeout=60)

    async def wait():
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.1)

    @waits
    async def look_up(text: Text) -> str:
        """Look a text up in the table of known ones."""
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(wait())

    return pack(look_up)


_busy = []


def can_not_be_called_again():
    @reads
    async def look_up(text: Text, *, context: ToolContext) -> str:
        """Look a text up in the table of known ones."""
        if _busy:
            raise ValueError("it is busy")
        if context.tool.timeout is None:
            _busy.append(text)
            undo.append(_busy.clear)
        await asyncio.sleep(0.01)
        _busy.clear()
        return "found"

    return pack(look_up)


def goes_on_in_a_thread_of_the_loop():
    @reads
    async def look_up(text: Text, *, context: ToolContext) -> str:
        """Look a text up in the table of known ones."""
        try:
            await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            if context.tool.timeout is None:
                over = threading.Event()
                undo.append(over.set)
                asyncio.get_running_loop().run_in_executor(None, over.wait, 60)
            raise
        return "found"

    return pack(look_up)
