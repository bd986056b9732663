"""Foreign text: bytes decoded without trust, and text without what can't be seen."""

import codecs
import re

from agentos.base.quoting import quoted

__all__ = ["decode", "plain", "quoted"]

_BOMS = (  # the longer ones first: that of UTF-32 begins like that of UTF-16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# What is declared is looked up nowhere else: codecs are code, and some of them unpack, take long or see what is
# not there (UTF-7).
_CHARSETS = {
    **{name: name for name in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "koi8-r", "koi8-u")},
    **{name: name for name in ("shift_jis", "euc-jp", "iso-2022-jp", "euc-kr", "big5", "gbk", "gb18030")},
    **{f"iso-8859-{part}": f"iso-8859-{part}" for part in range(2, 17) if part != 12},  # noqa: PLR2004 - there is none
    **{f"windows-{page}": f"cp{page}" for page in (874, *range(1250, 1259))},
    **{f"cp{page}": f"cp{page}" for page in (437, 850, 852, 855, 858, 866, 932, 949, 950, *range(1250, 1259))},
    **dict(
        zip(("utf8", "utf-16", "utf-32", "macintosh"), ("utf-8", "utf-16-le", "utf-32-le", "mac-roman"), strict=True)
    ),
    **dict(zip(("sjis", "shift-jis", "gb2312"), ("shift_jis", "shift_jis", "gbk"), strict=True)),
    **dict.fromkeys(("iso-8859-1", "latin-1", "latin1"), "cp1252"),  # as every browser reads it
}

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|(?:\x1b[]PX^_]|[\x90\x98\x9d-\x9f])[^\n\x07\x1b\x90\x98\x9c-\x9f]{0,4096}(?:\x07|\x1b\\|\x9c)"  # titles, links
    r"|\x1b[ -/]*[0-~]"
)
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0e-\x1f\x7f-\x9f"  # controls; tab and line feed stay
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufdd0-\ufdef"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000))
    + "]"
)
_SELECTORS = re.compile("(?<![^\ufe0e\ufe0f\u200c\u200d])[\ufe0e\ufe0f]+")
_JOINERS = re.compile(
    "(?<![^\\x00-\\x7f\u200c\u200d])[\u200c\u200d]+|[\u200c\u200d]{2,}|[\u200c\u200d](?![^\\x00-\\x7f])"
)


def decode(data: bytes, declared: str | None = None) -> str:
    """Return *data* as text: by its byte order mark, the *declared* charset, else UTF-8; it never fails.

    What can't be decoded becomes U+FFFD. A charset that is not one of the usual ones is not looked up.
    """
    for mark, charset in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(charset, "replace")
    charset = _CHARSETS.get((declared or "").strip().lower(), "utf-8")
    return data.decode(charset, "replace").removeprefix("\ufeff")


def plain(text: str) -> str:
    """Return *text* without control and escape sequences, bidirectional overrides and invisible characters.

    Lines end in a line feed; tabs stay. Joiners stay between letters that need them, and one variation selector
    after a character, so that emoji and the scripts of Asia stay whole. Half a surrogate pair becomes U+FFFD.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _BREAKS.sub("\n", _ESCAPES.sub("", text))
    text = _INVISIBLE.sub("", _SURROGATES.sub("\ufffd", text))
    return _JOINERS.sub("", _SELECTORS.sub("", text))
