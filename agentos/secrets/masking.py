"""Known values never leave: every text that goes out passes here."""

import base64
import functools
import html
import json
import logging
import re
import traceback
from collections.abc import Mapping, MutableMapping
from typing import Any, NoReturn
from urllib.parse import quote, quote_plus

logging.getLogger("agentos").addHandler(logging.NullHandler())

MASK = "***"
_SHORTEST = 4
_INNOCENT = frozenset({"true", "false", "none", "null", "auto", "http", "https", "localhost"})
_CHAIN_LIMIT = 100


class Masker:
    """Knows the values that must not leave and hides them in text, data and exceptions.

    A value that was known once stays hidden: one that was replaced may still be valid elsewhere. Values shorter
    than four characters and words such as `true` are not hidden; they would blot out ordinary text.
    """

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: every logger has a masker, and a masker has every secret."""
        raise TypeError("a masker can't be pickled or copied, since it knows secret values; nor can what has one")

    @property
    def knows_any(self) -> bool:
        """Tell whether there is anything to hide."""
        return bool(self._values)

    def learn(self, value: str) -> None:
        """Hide *value* from now on, also where it is quoted for a URL, JSON or an HTTP header."""
        for one in {value, value.strip()}:
            if one not in self._values and len(one) >= _SHORTEST and one.lower() not in _INNOCENT:
                self._values.add(one)
                self._pattern = None

    def mask(self, text: str) -> str:
        """Return *text* without any known value."""
        if not self._values:
            return text
        if self._pattern is None:
            forms = {form for value in self._values for form in _forms(value)}
            self._pattern = re.compile("|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)))
        return self._pattern.sub(MASK, text)

    def mask_data(self, data: Any) -> Any:
        """Return *data* with every known value hidden in its strings, keys included."""
        if not self._values:
            return data
        if isinstance(data, str):
            return self.mask(data)
        if isinstance(data, Mapping):
            return {self.mask_data(key): self.mask_data(item) for key, item in data.items()}
        if isinstance(data, list | tuple):
            return [self.mask_data(item) for item in data]
        return data

    def mask_object(self, value: Any) -> Any:
        """Return *value*, whatever it is, or what it says of itself masked if that has a known value in it."""
        if isinstance(value, BaseException):
            return self.cleanse(value)
        if isinstance(value, str | Mapping | list | tuple):
            masked = self.mask_data(value)
            return value if masked == value and self.mask(_safe_repr(value)) == _safe_repr(value) else masked
        said = _safe_repr(value) + _safe_str(value)
        return value if self.mask(said) == said else self.mask(_safe_repr(value))

    def describe(self, error: BaseException) -> str:
        """Name an exception and its message in one line, masked."""
        text = " ".join(self.mask(_safe_str(error)).split())  # masked first: folding would change a value
        name = type(error).__name__
        return self.mask(f"{name}: {text}" if text else name)

    def cleanse(self, error: BaseException | None) -> BaseException | None:
        """Return *error* if its whole chain is free of known values, else a stand-in that says the same masked."""
        if error is None or not self._leaks(error, set()):
            return error
        return _Masked(self.describe(error)).with_traceback(error.__traceback__)

    def _leaks(self, error: BaseException, seen: set[int]) -> bool:
        if id(error) in seen or len(seen) > _CHAIN_LIMIT:
            return False
        seen.add(id(error))
        notes = getattr(error, "__notes__", ())
        said = [_safe_str(error), _safe_repr(error), _safe_repr(error.args), _safe_repr(notes)]
        said += [note for note in notes if isinstance(note, str)] if isinstance(notes, list | tuple) else []
        if any(self.mask(text) != text for text in said):
            return True
        linked = [error.__cause__, error.__context__]
        linked += error.exceptions if isinstance(error, BaseExceptionGroup) else []
        return any(self._leaks(inner, seen) for inner in linked if inner is not None)


def _safe_str(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - foreign objects can't even be relied on to be shown
        return ""


def _safe_repr(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - as above
        return f"<{type(value).__name__}>"


def _forms(value: str) -> set[str]:
    """Return the spellings in which a value turns up: quoted for a URL, JSON, Python or an HTTP header."""
    encoded = value.encode("utf-8", "surrogatepass")
    quoted = {quote(encoded, safe=""), quote(encoded), quote_plus(encoded), quote_plus(encoded, safe="/")}
    lowered = {re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), form) for form in quoted}
    shown = repr(value + "'\"")[1:-1]  # with both quotes in it, Python escapes the apostrophe
    return {
        value,
        *quoted,
        *lowered,
        json.dumps(value)[1:-1],
        json.dumps(value)[1:-1].replace("/", "\\/"),
        json.dumps(value, ensure_ascii=False)[1:-1],
        *(_escaped(value, special, form) for special, form in _ESCAPES),
        repr(value)[1:-1],
        shown[: -len("\\'\"")],
        html.escape(value),
        base64.b64encode(encoded).decode(),
        base64.urlsafe_b64encode(encoded).decode(),
        base64.b64encode(encoded).decode().rstrip("="),
        base64.urlsafe_b64encode(encoded).decode().rstrip("="),
    }


_ESCAPES = (("<>&", "\\u{:04x}"), ("<>&", "\\u{:04X}"), ("\"&'+<>`", "\\u{:04X}"))
"""What writers of JSON for web pages escape that others leave, and how: those of Go and of .NET among them."""


def _escaped(value: str, special: str, form: str) -> str:
    return "".join(form.format(ord(one)) if one in special else json.dumps(one)[1:-1] for one in value)


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

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Format, mask, and pass on."""
        if not self.isEnabledFor(level):
            return
        text = _formatted(msg, args)
        exc_info = kwargs.pop("exc_info", None)
        if exc_info:
            text += "\n" + _render(exc_info)
        extra = {key: self._masker.mask_object(item) for key, item in (kwargs.pop("extra", None) or {}).items()}
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        self.logger.log(level, "%s", self._masker.mask(text), extra=extra, **kwargs)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Leave everything to `log`."""
        return msg, kwargs


def _formatted(msg: object, args: tuple[object, ...]) -> str:
    """Fill in the arguments as logging does; ones that do not fit are no failure of whoever logs."""
    text = _safe_str(msg)
    if not args:
        return text
    try:
        return text % (args[0] if len(args) == 1 and isinstance(args[0], Mapping) and args[0] else args)
    except Exception:  # noqa: BLE001 - foreign objects and formats
        return f"{text} {_safe_repr(args)}"


def _render(exc_info: Any) -> str:
    if isinstance(exc_info, BaseException):
        return "".join(traceback.format_exception(exc_info)).rstrip()
    if isinstance(exc_info, tuple):
        return "".join(traceback.format_exception(*exc_info)).rstrip()
    return traceback.format_exc().rstrip()
