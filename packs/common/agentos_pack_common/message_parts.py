"""Messages to services that bound them: texts cut into parts, and the parts of one message sent in order."""

import asyncio
import unicodedata
from collections.abc import Awaitable, Callable, Sequence

from agentos import NotSentError

_NEAR = 4
"""A part ends at a line or a word that ends in its last quarter."""
_BACK = 16
"""How many characters a cut moves back for the sake of what is seen as one."""
_LEAST = 1.0
"""For how many seconds a service is left alone at the least that says that it is asked too often."""
_JOINER = "\u200d"
_FOLLOWING = frozenset({_JOINER, "\ufe0e", "\ufe0f", "\u20e3", *map(chr, range(0x1F3FB, 0x1F400))})
"""What belongs to the character before it, beside combining marks: joiners, selectors and colours of emoji."""


class PartlySentError(Exception):
    """Some parts of a message were sent, and then one was not."""


def _one(_: str) -> int:
    return 1


def split_text(text: str, limit: int, weigh: Callable[[str], int] = _one) -> list[str]:
    """Return *text* in parts of at most *limit*, cut where a line or a word ends if that is near.

    *weigh* says how much a character counts: not all services count characters. Parts of blanks alone are left out.
    """
    parts, start, used = [], 0, 0
    for place, char in enumerate(text):
        weight = weigh(char)
        if used + weight > limit:
            end = _cut(text, start, place)
            parts.append(text[start:end])
            start, used = end, sum(map(weigh, text[end:place]))
        used += weight
    parts.append(text[start:])
    return [part for part in parts if part.strip()]


def _cut(text: str, start: int, place: int) -> int:
    """Return where a part ends that began at *start* and has no room for what is at *place*."""
    least = place - (place - start) // _NEAR
    for sign in ("\n", " "):
        if (found := text.rfind(sign, least, place)) > start:
            return found + 1
    for end in range(place, max(start, place - _BACK), -1):
        is_joined = text[end] in _FOLLOWING or unicodedata.combining(text[end]) or text[end - 1] == _JOINER
        if not is_joined:
            return end
    return place


async def send_parts(sends: Sequence[Callable[[], Awaitable[str]]], *, patience: float = 30.0) -> list[str]:
    """Send the parts of a message, one after the other, and return their receipts.

    NotSentError of the first part passes: nothing was sent. A later one waits for up to *patience* seconds if the
    service says when to come again; otherwise the message was sent in part, which is PartlySentError.
    """
    receipts: list[str] = []
    for send in sends:
        try:
            receipts.append(await _sent(send, patience if receipts else 0.0))
        except NotSentError as error:
            if not receipts:
                raise
            why = f"{len(receipts)} of {len(sends)} parts were sent, and then: {error}"
            raise PartlySentError(why) from None
    return receipts


async def _sent(send: Callable[[], Awaitable[str]], patience: float) -> str:
    while True:
        try:
            return await send()
        except NotSentError as error:
            if error.retry_after is None or error.retry_after > patience or patience < _LEAST:
                raise
            seconds = max(error.retry_after, _LEAST)
        patience -= seconds
        await asyncio.sleep(seconds)
