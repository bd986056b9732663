"""JSON into the values that a function declared, and back.

A builder takes JSON that its schema has accepted and returns the value; None stands for "JSON is the value". Builders
are made once, when a schema is derived; a call only runs them. `to_plain` is their inverse.
"""

import base64
import dataclasses
import datetime as dt
import enum
import json
import math
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextvars import ContextVar
from decimal import Decimal
from pathlib import PurePath
from typing import Any, NoReturn

import attrs

from agentos.schema.work import TooMuchWorkError

Builder = Callable[[Any], Any]
Json = dict[str, Any]
Check = Callable[[Any], bool]

_QUOTED = 60
_chosen: ContextVar[dict[tuple[int, int], Any] | None] = ContextVar("_chosen", default=None)
"""What the unions of one call came to, by union and value: one that is tried in several ways is built once."""


class BuildError(ValueError):
    """An argument that fits its schema, but of which the declared type can't be made; `path`, `message`."""

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def under(self, part: str | int) -> "BuildError":
        """Return the same error, seen from the value that has this one at *part*."""
        outer = BuildError(self.message, (part, *self.path))
        outer.__cause__ = self.__cause__
        return outer


def _built(part: str | int, convert: Builder, value: Any) -> Any:
    try:
        return convert(value)
    except BuildError as error:
        raise error.under(part) from error.__cause__


def build_object(make: Callable[..., Any] | None, builders: Mapping[str, Builder]) -> Builder | None:
    """Return what makes an object: *make* with the members as keywords, or the dict itself if there is no *make*."""
    if make is None:
        return build_members(builders) if builders else None
    name = getattr(make, "__name__", repr(make))
    members = build_members(builders)

    def build(value: Mapping[str, Any]) -> Any:
        built = members(value)
        try:
            return make(**built)
        except Exception as error:  # the author's class: its own checks may refuse with anything
            raise BuildError(f"{name} refuses it: {_reason(error)}") from error

    return build


def build_members(builders: Mapping[str, Builder]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return what copies an object and builds those of its members that need it."""
    pairs = tuple(builders.items())

    def build(value: Mapping[str, Any]) -> dict[str, Any]:
        built = dict(value)
        for key, convert in pairs:
            if key in built:
                built[key] = _built(key, convert, built[key])
        return built

    return build


def build_arguments(members: Builder | None) -> Callable[[Mapping[str, Any]], dict[str, Any]] | None:
    """Return what turns a call's arguments into keywords; None if every one of them is used as it came."""
    if members is None:
        return None

    def build(value: Mapping[str, Any]) -> dict[str, Any]:
        token = _chosen.set({})
        try:
            built: dict[str, Any] = members(value)
        except RecursionError:
            raise BuildError("the arguments are nested too deeply") from None
        finally:
            _chosen.reset(token)
        return built

    return build


def build_items(make: Callable[[list[Any]], Any] | None, item: Builder | None) -> Builder | None:
    """Return what makes a collection of items that are all of one type."""
    if item is None:
        return make and _build_collection(make)
    collect = _build_collection(make or list)

    def build(value: Sequence[Any]) -> Any:
        built = [_built(index, item, each) for index, each in enumerate(value)]
        return built if make is None else collect(built)

    return build


def _build_collection(make: Callable[[list[Any]], Any]) -> Builder:
    def build(value: list[Any]) -> Any:
        try:
            return make(value)
        except TypeError as error:
            raise BuildError(f"can't be a set: {error}") from error

    return tuple if make is tuple else build


def build_row(items: Sequence[Builder | None]) -> Builder:
    """Return what makes a tuple whose places have types of their own."""

    def build(value: Sequence[Any]) -> tuple[Any, ...]:
        pairs = enumerate(zip(items, value, strict=True))
        return tuple(each if convert is None else _built(index, convert, each) for index, (convert, each) in pairs)

    return build


def build_values(item: Builder | None) -> Builder | None:
    """Return what makes a dict whose values are all of one type."""
    if item is None:
        return None

    def build(value: Mapping[str, Any]) -> dict[str, Any]:
        return {key: _built(key, item, each) for key, each in value.items()}

    return build


def build_choice(choices: Iterable[tuple[Any, Any]]) -> Builder:
    """Return what finds the member of an enum (or Literal) by its JSON value."""
    members = {(isinstance(plain, bool), plain): member for plain, member in choices}

    def build(value: Any) -> Any:
        try:
            return members[isinstance(value, bool), value]
        except (KeyError, TypeError):
            raise BuildError(f"expected one of {', '.join(repr(plain) for _, plain in members)}") from None

    return build


def build_union(options: Sequence[tuple[Json, Builder | None]], check: Callable[[Json], Check]) -> Builder | None:
    """Return what makes the first option whose schema fits and of which a value can be made.

    *check* makes the check of an option; it is asked at the first call, when all types are known.
    """
    if not any(build for _, build in options):
        return None
    others = [build for schema, build in options if schema != {"type": "null"}]
    if len(others) == 1 and others[0] is not None:
        return _build_optional(others[0]) if len(options) > 1 else others[0]

    checks: list[Check] = []

    def build(value: Any) -> Any:
        if not checks:
            checks.extend([check(schema) for schema, _ in options])
        known, here = _chosen.get(), (id(checks), id(value))
        if known is None or type(value) not in (dict, list):
            return _first_built(value, checks, options)
        if here not in known:
            try:
                known[here] = _first_built(value, checks, options)
            except BuildError as error:
                known[here] = error
        if isinstance(known[here], BuildError):
            raise known[here]
        return known[here]

    return build


def _first_built(value: Any, checks: Sequence[Check], options: Sequence[tuple[Json, Builder | None]]) -> Any:
    refusal: BuildError | None = None
    for fits, (_, convert) in zip(checks, options, strict=True):
        try:
            if fits(value):
                return value if convert is None else convert(value)
        except BuildError as error:
            refusal = refusal or error
        except TooMuchWorkError:
            raise BuildError("telling its type takes too much work; send less at once") from None
    raise refusal or BuildError("fits none of the types that are possible here")


def _build_optional(build_one: Builder) -> Builder:
    def build(value: Any) -> Any:
        return None if value is None else build_one(value)

    return build


def build_model(cls: Any) -> Builder:
    """Return what makes a pydantic model, which checks for itself."""

    def build(value: Any) -> Any:
        try:
            return cls.model_validate(value)
        except ValueError as error:
            raise BuildError(f"{cls.__name__} refuses it: {_reason(error)}") from error

    return build


def build_scalar(parse: Callable[[str], Any], expected: str) -> Builder:
    """Return what parses a string into a value of the standard library."""

    def build(value: str) -> Any:
        try:
            return parse(value)
        except (ValueError, ArithmeticError) as error:
            raise BuildError(f"expected {expected}, got {_quoted(value)}") from error

    return build


def _quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}..."


def _reason(error: Exception) -> str:
    """Return an exception's own words; validators of attrs put objects behind the message."""
    words = str(error.args[0] if len(error.args) > 1 else error)
    return " ".join(words.split()) or type(error).__name__


def parse_bytes(text: str) -> bytes:
    """Decode base64 that has nothing else in it."""
    return base64.b64decode(text, validate=True)


def parse_datetime(text: str) -> dt.datetime:
    """Read RFC 3339, small letters too."""
    return dt.datetime.fromisoformat(text.upper())


def parse_time(text: str) -> dt.time:
    """Read RFC 3339, small letters too."""
    return dt.time.fromisoformat(text.upper())


_DURATION = re.compile(
    r"P(?!$)(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)


def parse_duration(text: str) -> dt.timedelta:
    """Read an ISO 8601 duration without years and months: how long those are depends on the day."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(text)
    whole = {unit: int(value) for unit, value in match.groupdict("0").items() if unit != "seconds"}
    seconds = Decimal(match["seconds"] or 0)
    return dt.timedelta(**whole, microseconds=int(seconds * 1_000_000))


def show_duration(value: dt.timedelta) -> str:
    """Write a duration the way `parse_duration` reads it."""
    if value < dt.timedelta():
        raise ValueError(f"a negative duration has no JSON form: {value}")
    days = f"{value.days}D" if value.days else ""
    fraction = f"{value.microseconds / 1_000_000:.6f}"[1:].rstrip("0").rstrip(".")
    rest = f"T{value.seconds}{fraction}S" if value.seconds or fraction or not days else ""
    return f"P{days}{rest}"


def to_plain(value: Any) -> Any:
    """Return *value* as JSON, in the form that the derived schema describes; TypeError or ValueError if it has none."""
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, enum.Enum):
        return to_plain(value.value)
    if isinstance(value, float):
        return _finite(value)
    for kinds, dump in _DUMPS:
        if isinstance(value, kinds):
            return dump(value)
    return _plain_object(value)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value} has no JSON form")
    return float(value)


def _plain_mapping(value: Mapping[Any, Any]) -> Json:
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"a key of JSON is a string, got {type(key).__name__}")
    return {str(key): to_plain(item) for key, item in value.items()}


def _plain_sequence(value: Sequence[Any]) -> Any:
    names = getattr(value, "_fields", None)
    if names is not None:
        return {name: to_plain(item) for name, item in zip(names, value, strict=True)}
    return [to_plain(item) for item in value]


def _plain_set(value: AbstractSet[Any]) -> list[Any]:
    return sorted((to_plain(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))


def _plain_object(value: Any) -> Json:
    if not isinstance(value, type):
        if hasattr(value, "model_dump"):
            return dict(value.model_dump(mode="json"))
        if attrs.has(type(value)):
            names = [(field.alias or field.name, field.name) for field in attrs.fields(type(value)) if field.init]
            return {alias: to_plain(getattr(value, name)) for alias, name in names}
        if dataclasses.is_dataclass(value):
            return {
                field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init
            }
    return _no_form(value)


def _no_form(value: object) -> NoReturn:
    raise TypeError(f"a {type(value).__name__} has no JSON form")


_DUMPS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int),
    (Mapping, _plain_mapping),
    ((list, tuple), _plain_sequence),
    (AbstractSet, _plain_set),
    ((dt.datetime, dt.date, dt.time), lambda value: value.isoformat()),
    (dt.timedelta, show_duration),
    ((uuid.UUID, PurePath, Decimal), str),
    ((bytes, bytearray), lambda value: base64.b64encode(value).decode("ascii")),
)
