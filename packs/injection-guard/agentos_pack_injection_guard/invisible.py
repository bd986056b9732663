"""Characters that nobody sees and models read: they carry whole sentences past a person."""

import re
from collections.abc import Callable

_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{2,6}\U000e007f")
"""A flag of a part of a country, the only thing that tags are for."""
_UNSEEN = re.compile(
    "[\u200b\u2060-\u2064\u206a-\u206f\ufff9-\ufffb\u180e\u115f\u1160\u3164\uffa0\ufeff\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
    "|[\ufe00-\ufe0f]{2,}"  # one of them chooses how a sign looks; more of them are data
)
_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""They show a text in another order than it is read in."""
_JOINER = re.compile("[\u200c\u200d]")
_ASCII_LIMIT = 0x80


def stripped(text: str) -> str:
    """Return *text* without characters that nobody sees; flags, emoji and scripts that need joiners stay whole."""
    if text.isascii():
        return text
    flags = _FLAG.findall(text)
    kept = _FLAG.sub("\0\0\0", text) if flags else text
    kept = _DIRECTION.sub("", _UNSEEN.sub("", kept))
    kept = _JOINER.sub(_joining(kept), kept)
    for flag in flags:
        kept = kept.replace("\0\0\0", flag, 1)
    return kept


def _joining(text: str) -> Callable[[re.Match[str]], str]:
    """Return what keeps a joiner only between characters that can be joined: none of ASCII can."""

    def kept(match: re.Match[str]) -> str:
        around = text[max(match.start() - 1, 0) : match.start()], text[match.end() : match.end() + 1]
        is_joining = all(one and ord(one) >= _ASCII_LIMIT and not _JOINER.match(one) for one in around)
        return match[0] if is_joining else ""

    return kept
