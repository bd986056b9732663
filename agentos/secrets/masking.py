"""Known values never leave: every text that goes out passes here."""

import functools
import logging
import math
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, NoReturn, TypeVar

import attrs

from agentos.base.foreign import Border, type_name
from agentos.secrets.spellings import (
    Readings,
    Span,
    Spellings,
    UnreadableTextError,
    forms_in_parts,
    with_plain_letters,
    without_breaks,
)

logging.getLogger("agentos").addHandler(logging.NullHandler())

T = TypeVar("T", bound=attrs.AttrsInstance)

MASK = "***"
_SHORTEST = 4
_INNOCENT = frozenset({"true", "false", "none", "null", "auto", "http", "https", "localhost"})
_CHAIN_LIMIT = 100
_DIGITS = 1_000
"""How many digits of a value are read as a number."""
SPELLED = 1_000
"""Of how many values all spellings are looked for; those that are learned later are hidden as they are."""


class Masker:
    """Knows the values that must not leave and hides them in text, data and exceptions.

    A value that was known once stays hidden: one that was replaced may still be valid elsewhere. Values shorter
    than four characters and words such as `true` are not hidden; they would blot out ordinary text.
    """

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._numbers: set[float] = set()
        self._spelled: list[Spellings] = []
        self._unspelled: list[str] = []
        self.forms_in_parts: tuple[str, ...] = ()
        """Values that are no single word, as they may come in a text of many parts."""
        self._clues: tuple[str, ...] = ()
        self._whole_clues: tuple[str, ...] = ()
        self._shortest = self._shortest_whole = sys.maxsize

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: every logger has a masker, and a masker has every secret."""
        raise TypeError("a masker can't be pickled or copied, since it knows secret values; nor can what has one")

    @property
    def knows_any(self) -> bool:
        """Tell whether there is anything to hide."""
        return bool(self._values)

    def learn(self, value: str) -> None:
        """Hide *value* from now on, also where it is encoded as `agentos.secrets.spellings` knows."""
        for one in {value, value.strip()}:
            if one not in self._values and len(one) >= _SHORTEST and one.lower() not in _INNOCENT:
                self._values.add(one)
                self._learn(one)

    def _learn(self, value: str) -> None:
        self._numbers.update(_numbers_of(value))
        if len(self._spelled) < SPELLED:
            spellings = Spellings(value)
            self.forms_in_parts += tuple(forms_in_parts(value))
            self._spelled.append(spellings)
            self._clues += (spellings.clue,)
            self._whole_clues += spellings.whole_clues
            self._shortest_whole = min(self._shortest_whole, spellings.shortest_whole)
        else:
            self._unspelled.append(value)
            self._clues += (value,)
        self._shortest = min(self._shortest, len(value.replace("\r\n", "\n")))

    def mask(self, text: str) -> str:
        """Return *text* without any known value; nothing of one that was made to be read in endless ways."""
        try:
            found = self.places(text)
        except UnreadableTextError:
            return MASK
        parts, last = [], 0
        for start, end in found:
            parts += [text[last:start], MASK]
            last = end
        return "".join([*parts, text[last:]]) if parts else text

    def places(self, text: str) -> list[Span]:
        """Return where known values stand in *text*, in order; raise UnreadableTextError as `mask` hides all of it."""
        if len(text) < self._shortest or not self._may_hold_any(text):
            return []
        return list(_merged(sorted(self._found(text))))

    def _may_hold_any(self, text: str) -> bool:
        """Tell in little time that a text holds no known value, as nearly all do not."""
        if any(map(text.__contains__, self._clues)):
            return True
        if len(text) >= self._shortest_whole and any(map(without_breaks(text).__contains__, self._whole_clues)):
            return True
        plain = with_plain_letters(text)
        return plain is not text and any(map(plain.__contains__, self._clues))

    def _found(self, text: str) -> Iterator[Span]:
        """Yield where known values stand in *text*."""
        plain, joined, readings = with_plain_letters(text), without_breaks(text), Readings()
        for one in self._spelled:
            if plain != text and one.clue in plain:
                yield from one.in_coded_text(text, readings)
            elif one.clue in text:
                yield from one.in_text(text, readings)
            if any(clue in joined for clue in one.whole_clues):
                yield from one.in_folded_text(text)
        for value in self._unspelled:
            yield from _places(value, text)

    def mask_data(self, data: Any) -> Any:
        """Return *data* with every known value hidden in its strings, keys included, and where it is a number."""
        if not self._values:
            return data
        kind = type(data)
        if kind is str:
            return data if len(data) < self._shortest else self.mask(data)
        if kind is int or kind is float:
            return MASK if self._numbers and abs(data) in self._numbers else data
        if data is None or kind is bool:
            return data
        if kind is dict or isinstance(data, Mapping):
            return {self.mask_data(key): self.mask_data(item) for key, item in data.items()}
        if isinstance(data, list | tuple):
            return [self.mask_data(item) for item in data]
        return self.mask(data) if isinstance(data, str) else self.mask_object(data)

    def mask_object(self, value: Any) -> Any:
        """Return *value*, whatever it is, or what it says of itself masked if that has a known value in it."""
        if isinstance(value, BaseException):
            return self.cleanse(value)
        if isinstance(value, str | Mapping | list | tuple):
            masked = self.mask_data(value)
            return value if masked == value and self.mask(safe_repr(value)) == safe_repr(value) else masked
        said = safe_repr(value) + safe_str(value)
        return value if self.mask(said) == said else self.mask(safe_repr(value))

    def describe(self, error: BaseException) -> str:
        """Name an exception and its message in one line, masked."""
        text = " ".join(self.mask(safe_str(error)).split())  # masked first: folding would change a value
        name = type_name(error)
        return self.mask(f"{name}: {text}" if text else name)

    def cleanse(self, error: BaseException | None) -> BaseException | None:
        """Return *error* if its whole chain is free of known values, else a stand-in that says the same masked."""
        if error is None:
            return None
        with Border():  # one that can't even be looked at has a stand-in as well
            if not self._leaks(error, set()):
                return error
        return _Masked(self.describe(error)).with_traceback(error.__traceback__)

    def _leaks(self, error: BaseException, seen: set[int]) -> bool:
        if id(error) in seen or len(seen) > _CHAIN_LIMIT:
            return False
        seen.add(id(error))
        notes = getattr(error, "__notes__", ())
        said = [safe_str(error), safe_repr(error), safe_repr(error.args), safe_repr(notes)]
        said += [note for note in notes if isinstance(note, str)] if isinstance(notes, list | tuple) else []
        if any(self.mask(text) != text for text in said):
            return True
        linked = [error.__cause__, error.__context__]
        linked += error.exceptions if isinstance(error, BaseExceptionGroup) else []
        return any(self._leaks(inner, seen) for inner in linked if inner is not None)


def masked_fields(value: T, masker: Masker) -> T:
    """Return *value*, of an attrs class, with known values hidden in all fields that it is made of."""
    if not masker.knows_any:
        return value
    said = {field.name: getattr(value, field.name) for field in attrs.fields(type(value)) if field.init}
    told = {name: one for name, one in said.items() if isinstance(one, str | tuple | Mapping)}
    return attrs.evolve(value, **{name: masker.mask_data(one) for name, one in told.items()})  # type: ignore[misc]  # T is one


def safe_str(value: object) -> str:
    """Return *value* as text, or nothing if it can't be."""
    with Border():  # foreign objects can't even be relied on to be shown
        return str.__str__(str(value))
    return ""


def safe_repr(value: object) -> str:
    """Return what *value* says of itself, or its type if it can't."""
    with Border():  # as above
        return str.__str__(repr(value))
    return f"<{type_name(value)}>"


def _numbers_of(value: str) -> Iterator[float]:
    """Yield the numbers that *value* is when it stands as one; few digits are no secret."""
    if not value.isascii() or not set(value) <= set("0123456789.eE+-") or len(value) > _DIGITS:
        return
    for read in (int, float):
        try:
            number = abs(read(value))
        except ValueError:
            continue
        if math.isfinite(number) and sum(digit.isdigit() for digit in repr(number)) >= _SHORTEST:
            yield number


def _places(value: str, text: str) -> Iterator[Span]:
    at = text.find(value)
    while at >= 0:
        yield at, at + len(value)
        at = text.find(value, at + len(value))


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield *spans*, which are in order, with those that overlap made one."""
    last: Span | None = None
    for start, end in spans:
        if last is not None and start < last[1]:
            last = last[0], max(last[1], end)
            continue
        if last is not None:
            yield last
        last = start, end
    if last is not None:
        yield last


class _Masked(Exception):  # noqa: N818 - stands in for an exception of any name
    """Stands in for a foreign exception that carried a secret."""


class MaskingLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger whose lines, tracebacks and extras are masked before any handler sees them."""

    def __init__(self, name: str, masker: Masker) -> None:
        self.extra = {}
        self._called = name
        self._masker = masker

    @functools.cached_property
    def logger(self) -> logging.Logger:  # type: ignore[override]
        """Return the logger beneath; most packs never log, so it is made when it is first needed."""
        return logging.getLogger(self._called)

    def called(self, name: str) -> "MaskingLogger":
        """Return a logger of another name that masks the same."""
        return MaskingLogger(name, self._masker)

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Format, mask, and pass on."""
        if not self.isEnabledFor(level):
            return
        text = _formatted(msg, args)
        exc_info = kwargs.pop("exc_info", None)
        if exc_info is not None and exc_info is not False:
            text += "\n" + _render(exc_info)
        extra = {key: self._masker.mask_object(item) for key, item in (kwargs.pop("extra", None) or {}).items()}
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        self.logger.log(level, "%s", self._masker.mask(text), extra=extra, **kwargs)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Leave everything to `log`."""
        return msg, kwargs


def _formatted(msg: object, args: tuple[object, ...]) -> str:
    """Fill in the arguments as logging does; ones that do not fit are no failure of whoever logs."""
    text = safe_str(msg)
    if not args:
        return text
    with Border():  # foreign objects and formats
        return text % (args[0] if len(args) == 1 and isinstance(args[0], Mapping) and args[0] else args)
    return f"{text} {safe_repr(args)}"


def _render(exc_info: Any) -> str:
    with Border():  # an exception may have methods of its own
        given = (exc_info,) if issubclass(type(exc_info), BaseException) else exc_info
        return "".join(traceback.format_exception(*(given if type(given) is tuple else sys.exc_info()))).rstrip()
    return safe_repr(exc_info)
