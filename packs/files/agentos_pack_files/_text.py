"""Bytes into text and back, so that what was not touched keeps its bytes: encoding, byte order mark, line ends."""

import codecs
import re
from collections import Counter
from typing import Literal

import attrs

LineEnding = Literal["lf", "crlf", "cr", "mixed", "none"]

LINE_END = re.compile(r"\r\n|\n|\r")
ENDS: dict[str, LineEnding] = {"\n": "lf", "\r\n": "crlf", "\r": "cr"}
ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "latin-1", "cp1252", "shift_jis", "gb18030", "koi8-r")
_BOMS = (  # the longer first: a UTF-32 mark begins with one of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_PROBE = 8_192


class BinaryError(ValueError):
    """Bytes that are no text."""


@attrs.frozen
class Text:
    """A text, and what is needed to write it again."""

    text: str = attrs.field(repr=False)
    encoding: str
    bom: bytes = b""
    is_guess: bool = False
    """True when the bytes are not UTF-8 and nothing says what they are: then they are taken as Latin-1."""

    def encoded(self, text: str) -> bytes:
        """Return *text* as this one was: in its encoding and with its mark."""
        return self.bom + text.encode(self.encoding)


def decode_text(data: bytes, encoding: str | None = None, *, is_cut: bool = False) -> Text:
    """Decode the bytes of a file; *is_cut* says that they may end within a character.

    Raise BinaryError for what is no text, and UnicodeDecodeError for what does not fit the *encoding* that was named.
    """
    bom, marked = next(((mark, name) for mark, name in _BOMS if data.startswith(mark)), (b"", None))
    body = data[len(bom) :]
    if encoding is None and marked is None and looks_binary(body):
        raise BinaryError
    if named := encoding or marked:
        return Text(_decoded(body, named, is_cut=is_cut), named, bom)
    try:
        return Text(_decoded(body, "utf-8", is_cut=is_cut), "utf-8")
    except UnicodeDecodeError:
        return Text(body.decode("latin-1"), "latin-1", is_guess=True)


def _decoded(data: bytes, encoding: str, *, is_cut: bool) -> str:
    return codecs.getincrementaldecoder(encoding)("strict").decode(data, final=not is_cut)


def looks_binary(data: bytes) -> bool:
    """Tell whether the first bytes have a NUL, which no text of a usual encoding without a mark has."""
    return b"\0" in data[:_PROBE]


def line_ending(text: str) -> LineEnding:
    """Name how the lines of a text end."""
    found = {ENDS[end] for end in LINE_END.findall(text)}
    return found.pop() if len(found) == 1 else "mixed" if found else "none"


def usual_end(text: str) -> str:
    """Return how most lines of a text end; the line feed, if none does."""
    return max(Counter(LINE_END.findall(text)).items(), key=lambda item: item[1], default=("\n", 0))[0]


def with_ends(text: str, end: str) -> str:
    """Return *text* with every line ended by *end*."""
    return LINE_END.sub(lambda _: end, text)


def split_lines(text: str) -> list[str]:
    """Return the lines of a text, each with its end; only LF, CRLF and CR end a line."""
    ends = [match.end() for match in LINE_END.finditer(text)]
    starts = [0, *ends]
    lines = [text[start:end] for start, end in zip(starts, ends, strict=False)]
    return lines if starts[-1] == len(text) else [*lines, text[starts[-1] :]]
