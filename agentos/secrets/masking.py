"""Known values never leave: every text that goes out passes here."""

import base64
import json
import logging
import re
import traceback
from collections.abc import Mapping, MutableMapping
from typing import Any
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

    @property
    def knows_any(self) -> bool:
        """Tell whether there is anything to hide."""
        return bool(self._values)

    def learn(self, value: str) -> None:
        """Hide *value* from now on, also where it is quoted for a URL, JSON or an HTTP header."""
        if value in self._values or len(value) < _SHORTEST or value.lower() in _INNOCENT:
            return
        self._values.add(value)
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

    def describe(self, error: BaseException) -> str:
        """Name an exception and its message in one line, masked."""
        text = " ".join(str(error).split())
        return self.mask(f"{type(error).__name__}: {text}" if text else type(error).__name__)

    def cleanse(self, error: BaseException | None) -> BaseException | None:
        """Return *error* if its whole chain is free of known values, else a stand-in that says the same masked."""
        if error is None or not self._leaks(error, set()):
            return error
        return _Masked(self.describe(error)).with_traceback(error.__traceback__)

    def _leaks(self, error: BaseException, seen: set[int]) -> bool:
        if id(error) in seen or len(seen) > _CHAIN_LIMIT:
            return False
        seen.add(id(error))
        text = "\n".join([str(error), repr(error), repr(error.args), *getattr(error, "__notes__", ())])
        if self.mask(text) != text:
            return True
        linked = [error.__cause__, error.__context__, *getattr(error, "exceptions", ())]
        return any(self._leaks(inner, seen) for inner in linked if inner is not None)


def _forms(value: str) -> set[str]:
    encoded = value.encode("utf-8", "surrogatepass")
    return {
        value,
        quote(value, safe="", errors="replace"),
        quote_plus(value, errors="replace"),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
        base64.b64encode(encoded).decode(),
        base64.urlsafe_b64encode(encoded).decode(),
    }


class _Masked(Exception):  # noqa: N818 - stands in for an exception of any name
    """Stands in for a foreign exception that carried a secret."""


class MaskingLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger whose lines, tracebacks and extras are masked before any handler sees them."""

    def __init__(self, name: str, masker: Masker) -> None:
        super().__init__(logging.getLogger(name), {})
        self._masker = masker

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Format, mask, and pass on."""
        if not self.isEnabledFor(level):
            return
        text = str(msg) % args if args else str(msg)
        exc_info = kwargs.pop("exc_info", None)
        if exc_info:
            text += "\n" + _render(exc_info)
        extra = self._masker.mask_data(dict(kwargs.pop("extra", None) or {}))
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        self.logger.log(level, "%s", self._masker.mask(text), extra=extra, **kwargs)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Leave everything to `log`."""
        return msg, kwargs


def _render(exc_info: Any) -> str:
    if isinstance(exc_info, BaseException):
        return "".join(traceback.format_exception(exc_info)).rstrip()
    if isinstance(exc_info, tuple):
        return "".join(traceback.format_exception(*exc_info)).rstrip()
    return traceback.format_exc().rstrip()
