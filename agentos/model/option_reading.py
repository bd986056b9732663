"""A pack's options, read strictly into an attrs class: every mistake is told at once, with its place."""

import difflib
import enum
import functools
import math
import os
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import attrs

from agentos.errors import OptionsError, Problem
from agentos.model.parsing import camel

T = TypeVar("T")

_SHOWN = 60
_NONE = type(None)
_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    _NONE: "null",
    Path: "a path",
}
_LISTS = (list, tuple, set, frozenset, Sequence, Iterable, AbstractSet)


def read_options(cls: type[T], options: Mapping[str, Any] | None, *, place: str = "options") -> T:
    """Return *options* as an instance of the attrs class *cls*; raise OptionsError if there is a mistake.

    Keys may be camelCase or snake_case. Types are checked, not converted, but for what a file can't say otherwise: a
    list becomes the tuple or set that is asked for, text a path or an enum's member, a mapping a nested attrs class.
    The key `secrets` is left to agentos unless *cls* has such a field. *place* is where the options stand, for errors.
    """
    problems: list[Problem] = []
    given = {} if options is None else options
    if isinstance(given, Mapping) and "secrets" not in {field.alias for field in attrs.fields(_attrs_class(cls))}:
        given = {key: value for key, value in given.items() if key != "secrets"}
    made = _read_class(cls, given, place, problems)
    if problems:
        raise OptionsError(problems)
    return typing.cast("T", made)


def _attrs_class(cls: type[Any]) -> type[Any]:
    """Return *cls* if it is an attrs class."""
    if not attrs.has(cls):
        raise TypeError(f"{cls!r} is no attrs class")
    return cls


# -- classes -----------------------------------------------------------------------------------------------------


def _read_class(cls: type[Any], value: Any, place: str, problems: list[Problem]) -> Any:
    if isinstance(value, cls):
        return value
    if not isinstance(value, Mapping):
        return _fault(problems, place, f"expected a mapping, got {_kind(value)}")
    before = len(problems)
    fields = {field.alias: field for field in attrs.fields(cls) if field.init}
    hints = typing.get_type_hints(cls)
    given: dict[str, Any] = {}
    for key, name in _matched(value, fields, place, problems):
        own: list[Problem] = []
        made = _read(hints.get(fields[name].name, Any), value[key], f"{place}.{_label(key)}", own)
        problems += own
        if not own:
            given[name] = made
    for name, field in fields.items():
        if field.default is attrs.NOTHING and name not in value and camel(name) not in value:
            _fault(problems, f"{place}.{camel(name)}", "is needed; say it")
    _validate(cls, fields, given, place, problems)
    return None if len(problems) > before else _try(lambda: cls(**given), place, problems)


def _matched(
    value: Mapping[Any, Any], fields: Iterable[str], place: str, problems: list[Problem]
) -> Iterator[tuple[str, str]]:
    """Yield each key that is known, and the name of its field."""
    names = spellings_of(fields)
    seen: set[str] = set()
    for key in value:
        name = names.get(key) if isinstance(key, str) else None
        spot = f"{place}.{_label(key)}"
        if name is None:
            _fault(problems, spot, f"is not known; {_suggestion(key, sorted(map(camel, fields)))}")
        elif name in seen:
            _fault(problems, spot, f"is said twice; keep `{camel(name)}` only")
        else:
            seen.add(name)
            yield key, name


def spellings_of(names: Iterable[str]) -> dict[str, str]:
    """Return what each of *names* may be called, as in Python and as in files, with the name itself."""
    return {spelling: name for name in names for spelling in (name, camel(name))}


def _suggestion(key: object, known: Sequence[str]) -> str:
    lowered = {name.lower(): name for name in known}
    word = str(key)[:_SHOWN].lower().replace("_", "")
    near = difflib.get_close_matches(word, lowered, n=1, cutoff=0.6)
    if near:
        return f"did you mean `{lowered[near[0]]}`?"
    return f"known are {', '.join(known)}" if known else "there are no options"


def _validate(
    cls: type[Any], fields: Mapping[str, Any], given: Mapping[str, Any], place: str, problems: list[Problem]
) -> None:
    """Let every field's own validator judge, on an instance that is not made yet: so that all are heard."""
    draft: Any = object.__new__(cls)
    for name, field in fields.items():
        if name in given or field.default is not attrs.NOTHING:
            object.__setattr__(draft, field.name, given[name] if name in given else _default(field.default, draft))
    for name, value in given.items():
        check = fields[name].validator
        if check is not None:
            _try(functools.partial(check, draft, fields[name], value), f"{place}.{camel(name)}", problems)


def _default(default: Any, draft: Any) -> Any:
    if not hasattr(default, "takes_self"):
        return default
    return default.factory(draft) if default.takes_self else default.factory()


def _try(act: Callable[[], Any], place: str, problems: list[Problem]) -> Any:
    try:
        return act()
    except AttributeError:  # of a field that has a problem of its own
        if not problems:
            raise
        return None
    except (ValueError, TypeError) as error:
        words = str(error.args[0]) if error.args else "is not allowed"
    return _fault(problems, place, re.sub(r"^'\w+' ", "", words))


# -- values ------------------------------------------------------------------------------------------------------


def _read(hint: Any, value: Any, place: str, problems: list[Problem]) -> Any:
    """Return *value* as *hint* wants it; what does not fit is added to *problems*."""
    hint = getattr(hint, "__supertype__", hint)  # of a NewType
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or hint is object or isinstance(hint, TypeVar):
        return value
    if origin is typing.Union or origin is types.UnionType:
        return _read_union(arguments, value, place, problems)
    if origin is Literal:
        return _read_choice(arguments, value, place, problems)
    if hint in (list, tuple, set, frozenset, dict, Mapping, Sequence):
        origin = hint
    if origin in _LISTS:
        return _read_list(origin, arguments, value, place, problems)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return _read_mapping(arguments, value, place, problems)
    if origin is Callable or hint is Callable:
        return value if callable(value) else _fault(problems, place, f"expected a function, got {_kind(value)}")
    return _read_plain(hint, value, place, problems)


def _read_plain(hint: Any, value: Any, place: str, problems: list[Problem]) -> Any:
    if attrs.has(hint):
        return _read_class(hint, value, place, problems)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _read_member(hint, value, place, problems)
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value):
        return float(value)
    if hint is Path and isinstance(value, str | os.PathLike) and value and "\0" not in str(value):
        return Path(value)
    is_kind = isinstance(hint, type) and hint is not float and isinstance(value, hint)
    if is_kind and (hint is bool or not isinstance(value, bool)):
        return value
    return _fault(problems, place, f"expected {_name(hint)}, got {_kind(value)}")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _read_union(arms: Sequence[Any], value: Any, place: str, problems: list[Problem]) -> Any:
    others = [arm for arm in arms if arm is not _NONE]
    if value is None and len(others) < len(arms):
        return None
    if len(others) == 1:
        return _read(others[0], value, place, problems)
    for arm in sorted(others, key=lambda arm: arm is float):  # a whole number stays one where that is allowed
        own: list[Problem] = []
        made = _read(arm, value, place, own)
        if not own:
            return made
    return _fault(problems, place, f"expected {' or '.join(map(_name, arms))}, got {_kind(value)}")


def _read_choice(choices: Sequence[Any], value: Any, place: str, problems: list[Problem]) -> Any:
    if any(type(value) is type(choice) and value == choice for choice in choices):
        return value
    listed = ", ".join(repr(choice) for choice in choices)
    return _fault(problems, place, f"expected one of {listed}{_near(value, choices)}")


def _read_member(kind: type[enum.Enum], value: Any, place: str, problems: list[Problem]) -> Any:
    if isinstance(value, kind):
        return value
    for member in kind:
        if type(member.value) is type(value) and member.value == value:
            return member
    choices = [member.value for member in kind]
    return _fault(problems, place, f"expected one of {', '.join(map(repr, choices))}{_near(value, choices)}")


def _near(value: Any, choices: Iterable[Any]) -> str:
    known = [choice for choice in choices if isinstance(choice, str)]
    near = difflib.get_close_matches(value[:_SHOWN].lower(), known, n=1) if isinstance(value, str) else []
    return f"; did you mean {near[0]!r}?" if near else f", got {_kind(value)}"


def _read_list(origin: Any, arguments: Sequence[Any], value: Any, place: str, problems: list[Problem]) -> Any:
    if not isinstance(value, list | tuple | set | frozenset):
        return _fault(problems, place, f"expected a list, got {_kind(value)}")
    values = list(value)
    is_open = origin is not tuple or not arguments or arguments[-1] is Ellipsis
    hints = [arguments[0] if arguments else Any] * len(values) if is_open else list(arguments)
    if len(hints) != len(values):
        return _fault(problems, place, f"expected {len(hints)} items, got {len(values)}")
    items = [
        _read(hint, each, f"{place}[{index}]", problems)
        for index, (hint, each) in enumerate(zip(hints, values, strict=True))
    ]
    if origin in (set, frozenset, AbstractSet):
        return _try(lambda: (set if origin is set else frozenset)(items), place, problems)
    return items if origin is list else tuple(items)


def _read_mapping(arguments: Sequence[Any], value: Any, place: str, problems: list[Problem]) -> Any:
    if not isinstance(value, Mapping):
        return _fault(problems, place, f"expected a mapping, got {_kind(value)}")
    key_hint, hint = arguments or (Any, Any)
    return {
        _read(key_hint, key, f"{place}.{_label(key)}", problems): _read(hint, each, f"{place}.{_label(key)}", problems)
        for key, each in value.items()
    }


# -- words -------------------------------------------------------------------------------------------------------


def _fault(problems: list[Problem], place: str, message: str) -> None:
    problems.append(Problem(place, message))


def _name(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(repr(choice) for choice in get_args(hint))
    base = get_origin(hint) or hint
    if base in _WORDS:
        return _WORDS[base]
    if base in _LISTS:
        return "a list"
    if attrs.has(base) or (isinstance(base, type) and issubclass(base, Mapping)):
        return "a mapping"
    return str(getattr(base, "__name__", base))


def _kind(value: Any) -> str:
    """Name the type of a value, in the words of a file."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple | set | frozenset):
        return "a list"
    if isinstance(value, float) and not math.isfinite(value):
        return "a number that is not finite"
    return _WORDS.get(type(value), type(value).__name__)


def _label(key: object) -> str:
    word = key if isinstance(key, str) else repr(key)
    word = word if word.isprintable() else ascii(word)[1:-1]
    return word if len(word) <= _SHOWN else f"{word[:_SHOWN]}..."
