"""Packs whose tools can be called one at a time only."""

import asyncio

from testing.parts import Text, pack, reads


def waits_for_itself():
    running = []

    @reads
    async def look_up(text: Text) -> str:
        """Look a text up in the table of known ones."""
        if running:
            await asyncio.Event().wait()
        running.append(text)
        await asyncio.sleep(0)
        running.clear()
        return "found"

    return pack(look_up)


def keeps_one_call_in_what_all_share():
    running = []

    @reads
    async def look_up(text: Text) -> str:
        """Look a text up in the table of known ones."""
        if running:
            raise ValueError("it is busy")
        running.append(text)
        try:
            await asyncio.sleep(0)
        finally:
            running.clear()
        return "found"

    return pack(look_up)
