"""Packs whose tools do not survive what they are given."""

import asyncio
import traceback

from testing.parts import Text, pack, reads

from agentos import ToolResult

KNOWN = {"a": 1, "b": 2}


def slips():
    @reads
    async def look_up(text: Text) -> int:
        """Look a text up in the table of known ones."""
        return KNOWN[text]

    return pack(look_up)


def slips_in_a_thread():
    @reads
    def look_up(text: Text) -> int:
        """Look a text up in the table of known ones."""
        return [1, 2][len(text)]

    return pack(look_up)


def exits():
    @reads
    async def look_up(text: Text) -> int:
        """Look a text up in the table of known ones."""
        if text not in KNOWN:
            raise SystemExit(1)
        return KNOWN[text]

    return pack(look_up)


def returns_what_is_no_json():
    @reads
    async def look_up(text: Text):
        """Look a text up in the table of known ones."""
        return object() if "'" in text else 1

    return pack(look_up)


def returns_what_does_not_fit():
    @reads
    async def look_up(text: Text) -> int:
        """Look a text up in the table of known ones."""
        return KNOWN.get(text, "unknown")

    return pack(look_up)


def shows_its_traceback():
    @reads
    async def look_up(text: Text) -> ToolResult:
        """Look a text up in the table of known ones."""
        try:
            return ToolResult.ok(KNOWN[text])
        except KeyError:
            return ToolResult.fail("Unknown", traceback.format_exc())

    return pack(look_up)


def never_ends():
    @reads
    async def look_up(text: Text) -> int:
        """Look a text up in the table of known ones."""
        if "'" in text:
            await asyncio.Event().wait()
        return 1

    return pack(look_up)


def keeps_the_loop_to_itself():
    @reads
    async def look_up(text: Text) -> int:
        """Look a text up in the table of known ones."""
        while "'1'='1'" in text:
            pass
        return 1

    return pack(look_up)
