"""How a secret value may be spelled in a text, and where in a text it stands so: the one table of encodings.

What encodes character by character is matched character by character, so that a value is found whichever of its
characters were encoded, in whichever case, also inside of another encoding. What encodes a value as a whole is searched
for as text. A text that holds no value costs a few `in` for each: something of a value stands in every spelling (its
clue), and only where that is seen is the text gone through.
"""

import base64
import functools
import html
import html.entities
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

_SHORTEST_WITHIN = 6
"""How many bytes a value must have to be told from chance inside of a longer base64 text."""
_CLUE = 24
"""How long a clue is: to look for a longer one costs more in short texts."""
_DOUBLED = 16
"""How many backslashes may stand for one: twice as many for each JSON around JSON."""
READINGS = 50_000
"""How often a text is read on in vain from where a value may begin, for all values together."""
_RUN = rf"\\{{1,{_DOUBLED}}}"
"""The backslashes of an escape."""
_ALNUM = re.compile("[A-Za-z0-9]+")
_LETTERS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f", "\v": "v", "\a": "a", "\0": "0", "\x1b": "e"}

Span = tuple[int, int]


# -- characters --------------------------------------------------------------------------------------------------------


def _hex(number: int, width: int = 0) -> str:
    """Return a pattern of hexadecimal digits in either case."""
    return re.sub("[a-f]", lambda digit: f"[{digit[0]}{digit[0].upper()}]", f"{number:0{width}x}")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _backslash(character: str) -> Iterable[str]:
    """JSON, Python (text, bytes and ASCII), JavaScript, C and shells, and JSON in JSON."""
    number, pair, encoded = ord(character), character.encode("utf-16-be", "surrogatepass"), _bytes(character)
    units = [int.from_bytes(pair[at : at + 2]) for at in range(0, len(pair), 2)]
    yield _RUN + _RUN.join(f"u{_hex(unit, 4)}" for unit in units)
    yield _RUN + rf"(?:u\{{0{{0,5}}{_hex(number)}\}}|U{_hex(number, 8)})"
    yield _RUN + _RUN.join(f"x{_hex(byte, 2)}" for byte in encoded)
    yield _RUN + _RUN.join(f"{byte:03o}" for byte in encoded)
    if 0x7F < number < 0x100:  # noqa: PLR2004 - Latin-1 has a byte for it, which is another than those of UTF-8
        yield _RUN + f"(?:x{_hex(number, 2)}|{number:03o})"
    if not _ALNUM.fullmatch(character) and character != "\\":
        yield _RUN + re.escape(character)
    if character in _LETTERS:
        yield _RUN + _LETTERS[character]


def _percent(character: str) -> Iterable[str]:
    """URLs, quoted up to four times."""
    for again in _levels(character == "%"):
        yield "".join(f"%(?:25){again}{_hex(byte, 2)}" for byte in _bytes(character))


def _plus(character: str) -> Iterable[str]:
    """Forms and queries: a blank is a plus."""
    if character == " ":
        yield r"\+"


def _html(character: str) -> Iterable[str]:
    """HTML and XML, by name and by number, escaped up to four times."""
    number = ord(character)
    names = "".join(f"|{name}" for name in _entities().get(character, ()))
    for again in _levels(character == "&"):
        yield f"&(?:amp;){again}(?:#0{{0,8}}{number};|#[xX]0{{0,8}}{_hex(number)};{names})"


def _levels(are_told_apart: bool) -> Iterable[str]:
    """Return how often what is encoded may be encoded again: where that is the same text, each for itself."""
    return [f"{{{level}}}" for level in range(4)] if are_told_apart else ["{0,3}"]


@functools.cache
def _entities() -> Mapping[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name, character in html.entities.html5.items():
        if name.endswith(";"):
            names.setdefault(character, []).append(name)
    return names


CHARACTERS: Mapping[str, Callable[[str], Iterable[str]]] = {
    "backslash": _backslash,
    "percent": _percent,
    "plus": _plus,
    "html": _html,
}
"""What encodes a value character by character: each says in which patterns a character may stand."""
_STARTS = frozenset("\\%+&")
"""What an encoded character begins with."""
_STARTS_CLASS = r"\\%+&"


@functools.lru_cache(1_000)
def _encoded(character: str) -> Sequence[re.Pattern[str]]:
    """Return the patterns of a character; they are one where no text can be read in two ways."""
    patterns = [one for spell in CHARACTERS.values() for one in spell(character)]
    return [re.compile(one) for one in (patterns if character in "&%" else ["|".join(patterns)])]


def _after_encoded(character: str, text: str, at: int) -> Iterator[int]:
    if text[at : at + 1] in _STARTS:
        for pattern in _encoded(character):
            if found := pattern.match(text, at):
                yield found.end()


def _after_character(character: str, text: str, at: int) -> Iterator[int]:
    """Yield where *character* ends that begins at a place of *text*, in any spelling."""
    if text.startswith(character, at):
        yield at + 1
    yield from _after_encoded(character, text, at)


def _after_backslashes(count: int, text: str, at: int) -> Iterator[int]:
    """Yield where so many backslashes may end: each may be several, and the last of those another character's."""
    found = re.compile(rf"\\{{{count},{_DOUBLED * count}}}").match(text, at)
    if found:
        yield at + count
        if not text.startswith("\\" * _DOUBLED, found.end()):  # else whatever is next is too far away
            yield from range(max(at + count, found.end() - _DOUBLED) + 1, found.end() + 1)
    ends = {at}
    for _ in range(count):
        ends = {end for one in ends for end in _after_encoded("\\", text, one)}
    yield from ends


def _after_line_end(text: str, at: int) -> Iterator[int]:
    """Yield where a line end of any system ends."""
    yield from _after_character("\n", text, at)
    for end in _after_character("\r", text, at):
        yield end
        yield from _after_character("\n", text, end)


def _after(part: str, text: str, at: int) -> Iterable[int]:
    """Return where *part* of a value ends that begins at a place of *text*."""
    if part[0] == "\\":
        return _after_backslashes(len(part), text, at)
    if part == "\n":
        return _after_line_end(text, at)
    if len(part) > 1:
        return (at + len(part),) if text.startswith(part, at) else ()
    return _after_character(part, text, at)


class UnreadableTextError(ValueError):
    """A text could be read in too many ways to find a value in it."""


class Readings:
    """Counts how often a text was read on in vain from where a value may begin; raises when that is too often."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = READINGS

    def spend(self, count: int) -> None:
        """Note *count* more."""
        self._left -= count
        if self._left < 0:
            raise UnreadableTextError


def _spans(parts: Sequence[str], text: str, readings: Readings) -> Iterator[Span]:
    """Yield where *parts* stand in *text* one after the other."""
    first = parts[0]
    starts = re.escape(first) if len(first) > 1 and first[0] != "\\" else rf"[\r{re.escape(first[0])}{_STARTS_CLASS}]"
    end = 0
    for found in re.finditer(starts, text):
        if found.start() >= end and (last := _end_of(parts, text, found.start(), readings)):
            yield found.start(), last
            end = last


def _end_of(parts: Sequence[str], text: str, at: int, readings: Readings) -> int | None:
    ends, tried = {*_after(parts[0], text, at)}, 0
    for part in parts[1:]:
        tried += len(ends)
        ends = {end for one in ends for end in _after(part, text, one)}
        if not ends:
            break
    if ends:
        return max(ends)
    readings.spend(tried)
    return None


_HEX = "(3[0-9]|[46][1-9a-fA-F]|[57][0-9aA])"
_DECIMAL = "(4[89]|5[0-7]|6[5-9]|[78][0-9]|90|9[7-9]|1[01][0-9]|12[0-2])"
_OCTAL = "(06[0-7]|07[01]|1[04][1-7]|1[1256][0-7]|1[37][0-2])"
_CODED = {
    "%": re.compile(rf"%(?:25){{0,3}}{_HEX}"),
    "&": re.compile(rf"&(?:amp;){{0,3}}#(?:[xX]0{{0,8}}{_HEX}|0{{0,8}}{_DECIMAL});"),
    "\\": re.compile(rf"\\\\{{0,15}}(?:(?:u00|u\{{0{{0,5}}|U000000|x){_HEX}|{_OCTAL})"),
}
"""A letter or digit that is encoded, though no encoding has to, by what it begins with: that is found fast."""


def _decoded(found: re.Match[str]) -> str:
    base = 16 if found[1] else 10 if found[0][0] == "&" else 8
    return chr(int(found[1] or found[2], base))


def with_plain_letters(text: str) -> str:
    """Return *text* with those letters and digits as they are that somebody encoded; most texts are the same then."""
    for start, pattern in _CODED.items():
        if start in text and (start != "\\" or _NUMERIC.search(text)):
            text = pattern.sub(_decoded, text)
    return text


_NUMERIC = re.compile(r"\\(?:[xU01]|u[0{])")


# -- values as a whole -------------------------------------------------------------------------------------------------


class _Whole(NamedTuple):
    """A spelling of a value as a whole: the text that is the value's alone, and whether more of it shares its ends."""

    text: str
    shares_start: bool = False
    shares_end: bool = False


def _in_hex(encoded: bytes) -> Iterable[_Whole]:
    yield _Whole(encoded.hex())


def _in_base64(encoded: bytes) -> Iterable[_Whole]:
    """Yield the digits that are of *encoded* alone where it stands in a longer text at each of the three offsets."""
    for before in range(3 if len(encoded) >= _SHORTEST_WITHIN else 1):
        digits = base64.b64encode(bytes(before) + encoded).decode()
        first, end = -(-8 * before // 6), 8 * (before + len(encoded)) // 6
        yield _Whole(digits[first:end], before > 0, (before + len(encoded)) % 3 > 0)


WHOLES: Mapping[str, Callable[[bytes], Iterable[_Whole]]] = {"hex": _in_hex, "base64": _in_base64}
"""What encodes a value as a whole: the texts that it may come to."""
_FOLDS = re.compile(r"[\r\n][\r\n \t]*|\\\\{0,15}(?:[rn]|(/))[ \t]*|%(?:0[aAdD]|(2[fF])|(2[bB])|(3[dD]))")
_URL_SAFE = str.maketrans("-_", "+/")
_DIGIT = re.compile("[A-Za-z0-9+/]")


def without_breaks(text: str) -> str:
    """Return *text* without line breaks, escaped ones as well, and blanks, if there is a line break in it."""
    has_escaped = "\\n" in text or "\\r" in text
    if not has_escaped and "\n" not in text and "\r" not in text:
        return text
    joined = _bytes(text)  # deletes a set of characters many times faster than text does
    while b"\\\\" in joined:
        joined = joined.replace(b"\\\\", b"\\")
    if has_escaped:
        joined = joined.replace(b"\\n", b"").replace(b"\\r", b"")
    return joined.translate(None, b"\\ \t\r\n").decode("latin-1")


class _Folded:
    """A text without line breaks, with plain digits of base64, that knows where each character was."""

    def __init__(self, text: str) -> None:
        parts: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        last = 0
        for found in (*_FOLDS.finditer(text), None):
            first = len(text) if found is None else found.start()
            parts.append(text[last:first])
            self._starts += range(last, first)
            self._ends += range(last + 1, first + 1)
            if found is None:
                break
            if found.lastindex is not None:
                parts.append("//+="[found.lastindex - 1])
                self._starts.append(first)
                self._ends.append(found.end())
            last = found.end()
        self.text = "".join(parts)

    def find(self, whole: _Whole, text: str) -> Iterator[Span]:
        """Yield where *whole* stands in this text, which *text* is a spelling of, in places of the first one."""
        at = text.find(whole.text)
        while at >= 0:
            end = at + len(whole.text)
            first = at - 1 if whole.shares_start and at and _DIGIT.match(text, at - 1) else at
            last = end + 1 if whole.shares_end and _DIGIT.match(text, end) else end
            while whole.shares_end and text.startswith("=", last):
                last += 1
            yield self._starts[first], self._ends[last - 1]
            at = text.find(whole.text, end)


# -- a value -----------------------------------------------------------------------------------------------------------


def _clue(text: str) -> str:
    """Return the longest run of letters and digits in *text*, as far as it takes to know it by."""
    return max(_ALNUM.findall(text), key=len, default="")[:_CLUE]


class Spellings:
    """The spellings of one value."""

    __slots__ = ("_value", "_wholes", "clue", "shortest_whole", "whole_clues")

    def __init__(self, value: str) -> None:
        self._value = value.replace("\r\n", "\n").replace("\r", "\n")
        encoded = _bytes(value)
        self._wholes = {name: tuple(spell(encoded)) for name, spell in WHOLES.items()}
        self.clue = _clue(self._value)
        """What stands in every text with the value, unless letters or digits are encoded as well."""
        digits = encoded.hex()[:_CLUE]
        self.whole_clues = (digits, digits.upper(), *(_clue(one.text) for one in self._wholes["base64"]))
        """Of which one stands in every text with the value encoded as a whole, but for line breaks."""
        self.shortest_whole = min(len(one.text) for wholes in self._wholes.values() for one in wholes)

    def in_text(self, text: str, readings: Readings) -> Iterator[Span]:
        """Yield where the value stands as it is, or with some of its special characters encoded."""
        return _spans(re.findall(r"\\+|[A-Za-z0-9]+|[^A-Za-z0-9\\]", self._value), text, readings)

    def in_coded_text(self, text: str, readings: Readings) -> Iterator[Span]:
        """Yield where the value stands with any of its characters encoded."""
        return _spans(re.findall(r"\\+|[^\\]", self._value), text, readings)

    def in_folded_text(self, text: str) -> Iterator[Span]:
        """Yield where the value stands encoded as a whole, on one line or several."""
        folded = _Folded(text)
        for whole in self._wholes["hex"]:
            yield from folded.find(whole, folded.text.lower())
        for whole in self._wholes["base64"]:
            yield from folded.find(whole, folded.text.translate(_URL_SAFE))


# -- what comes in parts -----------------------------------------------------------------------------------------------

UNSPACED = "\u0e00-\u0eff\u3000-\u9fff\uac00-\ud7af\uff00-\uffef"
"""Letters of scripts that put no spaces between words; no encoding of a value has them."""
_PARTED = re.compile(rf"[\s{UNSPACED}]")


def forms_in_parts(value: str) -> Iterable[str]:
    """Return the spellings of a value that are no single word; nothing of a value that is one."""
    if _PARTED.search(value) is None:
        return ()
    lines = value.replace("\r\n", "\n")
    forms = {value, lines, lines.replace("\n", "\r\n"), html.escape(value), html.escape(value, quote=False)}
    forms |= {json.dumps(one, ensure_ascii=is_ascii)[1:-1] for one in (value, lines) for is_ascii in (True, False)}
    return [one for one in forms if _PARTED.search(one)]
