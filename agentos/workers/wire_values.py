"""Values as JSON and back, so that nothing is pickled between processes.

JSON is itself. What JSON does not have is an object with a tag: `{"$": "bytes", "v": "aGk="}`. Classes of the contract
go by name with their fields; anything else goes as the JSON that a tool's result would have of it, and what has none as
the name of its class. A function goes as a number, for whoever keeps the functions of a message.
"""

import base64
import builtins
import enum
import functools
import importlib
import traceback
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from typing import Any

from agentos.base.foreign import Border, type_name

DEPTH = 100
"""How deep a value may be nested; each level takes at most four of a message's."""
_TRACEBACK_LIMIT = 20_000
_MESSAGE_LIMIT = 1_000_000
_NAME_LIMIT = 200
_TOLD_LIMIT = 1_000_000
"""How long a text of an error or a log may be to be told: it is told whole, for the host to mask and cut."""
_TAG = "$"
_PUBLIC = "agentos.tools.tool"
"""The module that says what is open to everybody."""
_PLAIN = frozenset({str, int, float, bool, type(None)})

Function = Callable[..., Any]


class Functions(list[Function]):
    """The functions of one message, by number; those that last are kept by *keep*, which returns their number."""

    def __init__(self, keep: Callable[[Function], int]) -> None:
        super().__init__()
        self.keep = keep


class TooDeepError(ValueError):
    """A value is nested too deep to cross, or has no end."""

    def __init__(self) -> None:
        super().__init__(f"a value is nested deeper than {DEPTH} levels")


# -- classes that cross by name ----------------------------------------------------------------------------------------

_homes: dict[str, str] = {}
"""The module of each class that crosses, by the class's name: imported when one comes."""


def crosses_by_name(module: str, *names: str) -> None:
    """Let instances of attrs classes cross with their fields: for the modules that have such values in a contract."""
    _homes.update(dict.fromkeys(names, module))


crosses_by_name("agentos.model.tool_call", "ToolCall", "ToolResult", "ToolError")
crosses_by_name("agentos.model.principal", "Principal")
crosses_by_name("agentos.model.guarding", "GuardVerdict")
crosses_by_name("agentos.model.response", "Response")
crosses_by_name("agentos.model.media", "Media")
crosses_by_name("agentos.model.channels", "ChannelMessage")
crosses_by_name("agentos.model.memory", "MemoryScope", "MemoryRecord", "MemoryHit", "MemoryStats")
crosses_by_name("agentos.model.planning", "Plan", "PlanStep")
crosses_by_name("agentos.model.tool_pattern", "ToolBounds", "ToolPattern")
crosses_by_name("agentos.tools.listing", "ToolInfo")
crosses_by_name("agentos.model.descriptor", "SecretRequirement")
crosses_by_name("agentos.model.display", "Display")
crosses_by_name("agentos.model.source", "Source")
crosses_by_name("agentos.access.proposals", "Proposal")
crosses_by_name("agentos.calls.answers", "Answer")
crosses_by_name("agentos.errors", "Problem")
crosses_by_name("agentos.model.trouble", "Trouble")


Writer = Callable[[Any], Mapping[str, Any]]
Readers = Mapping[str, Function]
"""Make what stands for an object that was told by name: each of the fields that its writer told."""
_writers: dict[tuple[str, str], Writer] = {}


def is_told_by(module: str, *names: str) -> Callable[[Writer], Writer]:
    """Let objects of classes cross as what a function says of them, for a side that has readers of their names."""

    def told(writer: Writer) -> Writer:
        _writers.update({(module, name): writer for name in names})
        return writer

    return told


class Lasting:
    """A function that stays callable as long as the conversation, not only as long as its request."""

    __slots__ = ("function",)

    def __init__(self, function: Function) -> None:
        self.function = function


@functools.lru_cache(maxsize=1_024)
def _arguments(kind: Any) -> tuple[tuple[str, str], ...] | None:
    """Return the fields of a class that crosses by name, each with its argument; None if it does not."""
    if _homes.get(kind.__name__) != kind.__module__:
        return None
    import attrs

    return tuple((field.name, field.alias or field.name) for field in attrs.fields(kind) if field.init)


def _made(name: str, fields: Mapping[str, Any]) -> Any:
    kind = getattr(importlib.import_module(_homes[name]), name)
    return kind(**fields)


# -- values out --------------------------------------------------------------------------------------------------------


def encode(value: Any, functions: Functions | None) -> Any:
    """Return *value* as JSON; its functions are put into *functions*, where they may be part of it.

    Raise TooDeepError for what has no end.
    """
    return value if type(value) in _PLAIN else _encoded(value, functions, 0)


def encode_answer(value: Any) -> Any:
    """Return *value* as JSON without functions; what has no end as something that is nested too deep for its reader."""
    try:
        return encode(value, None)
    except (TooDeepError, RecursionError):
        return {_TAG: "deep"}


def _encoded(value: Any, functions: Functions | None, depth: int) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if depth > DEPTH:
        raise TooDeepError
    if kind is list:
        return [item if type(item) in _PLAIN else _encoded(item, functions, depth + 1) for item in value]
    if kind is dict:
        return _object(value, functions, depth)
    if kind in _SCALARS:
        name, write = _SCALARS[kind]
        return {_TAG: name, "v": write(value)}
    if kind is tuple or kind is set or kind is frozenset:
        return {_TAG: kind.__name__, "v": [_encoded(item, functions, depth + 1) for item in value]}
    if kind.__name__ == "_Public" and kind.__module__ == _PUBLIC:
        return {_TAG: "public"}
    writer = _writers.get((kind.__module__, kind.__name__))
    if writer is not None and functions is not None:
        return {_TAG: kind.__name__, "v": _object(writer(value), functions, depth + 1)}
    arguments = _arguments(kind)  # type: ignore[arg-type]  # classes are hashable
    if arguments is not None:
        fields = {name: _encoded(getattr(value, field), functions, depth + 1) for field, name in arguments}
        return {_TAG: kind.__name__, "v": fields}
    if functions is not None and kind is Lasting:
        return {_TAG: "function", "v": -functions.keep(value.function)}
    if functions is not None and callable(value) and not isinstance(value, type):
        functions.append(value)
        return {_TAG: "function", "v": len(functions) - 1}
    return _converted(value, functions, depth)


def _object(value: Mapping[Any, Any], functions: Functions | None, depth: int) -> Any:
    if all(type(key) is str for key in value) and _TAG not in value:
        return {
            key: item if type(item) in _PLAIN else _encoded(item, functions, depth + 1) for key, item in value.items()
        }
    pairs = [[_encoded(key, functions, depth + 1), _encoded(item, functions, depth + 1)] for key, item in value.items()]
    return {_TAG: "dict", "v": pairs}


def _converted(value: Any, functions: Functions | None, depth: int) -> Any:
    """Return what a tool's result is made of such a value, or the name of its class if it has no JSON form."""
    form = _form(value)
    if form is value:
        return {_TAG: "opaque", "v": type(value).__name__[:_NAME_LIMIT]}
    return _encoded(form, functions, depth + 1)


def _form(value: Any) -> Any:
    """Return *value* one step closer to JSON; itself if there is no such step. As in `agentos.calls.results`."""
    for kind, form in _BASES:
        if isinstance(value, kind):
            return form(value)
    fields = getattr(type(value), "__attrs_attrs__", None)
    if fields is not None:
        return {field.alias or field.name: getattr(value, field.name) for field in fields if field.init}
    if hasattr(value, "__dataclass_fields__"):
        members = [name for name, field in value.__dataclass_fields__.items() if field.init and hasattr(value, name)]
        return {name: getattr(value, name) for name in members}
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    if hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, AbstractSet):
        return set(value)
    if isinstance(value, Sequence):
        return list(value)
    return str(value) if _is_text_like(type(value)) else value


def _is_text_like(kind: type) -> bool:
    """Tell whether a result has the text of such a value. By name: their modules cost an import."""
    return any((one.__module__, one.__name__) in _TEXT_LIKE for one in kind.__mro__)


_TEXT_LIKE = {(module, name) for name in ("UUID", "PurePath", "Decimal") for module in ("uuid", "decimal", "pathlib")}
_TEXT_LIKE |= {("pathlib._local", "PurePath")}

_BASES: tuple[tuple[Any, Function], ...] = (
    (enum.Enum, lambda value: value.value),
    (str, str.__str__),
    (int, int),
    (float, float),
    (Mapping, dict),
    (bytearray | memoryview, bytes),
)

_SCALARS: dict[type, tuple[str, Function]] = {
    bytes: ("bytes", lambda value: base64.b64encode(value).decode("ascii")),
    datetime: ("datetime", datetime.isoformat),
    date: ("date", date.isoformat),
    time: ("time", time.isoformat),
    timedelta: ("timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
}


# -- values in ---------------------------------------------------------------------------------------------------------


class Opaque:
    """Stands for a value that has no JSON form; its class has the name of the value's."""


@functools.lru_cache(maxsize=256)
def _opaque(name: str) -> type[Opaque]:
    return type(name, (Opaque,), {})


def _deep(_: Any) -> Any:
    value: Any = None
    for _ in range(DEPTH):
        value = [value]
    return value


def _public(_: Any) -> Any:
    return importlib.import_module(_PUBLIC).PUBLIC


_READERS: dict[str, Function] = {
    "public": _public,
    "bytes": lambda text: base64.b64decode(text, validate=True),
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda parts: timedelta(*parts),
    "opaque": lambda name: _opaque(str(name)[:_NAME_LIMIT])(),
    "deep": _deep,
}
_NONE: Readers = {}
_COLLECTIONS: dict[str, Function] = {"tuple": tuple, "set": set, "frozenset": frozenset, "dict": dict}


def decode(data: Any, function: Callable[[int], Function] | None, readers: Readers = _NONE) -> Any:
    """Return the value that *data* says; *function* gives the function of a number, *readers* objects by their names.

    Raise ValueError if it is not understood.
    """
    if type(data) in _PLAIN:
        return data
    try:
        return _decoded(data, function, readers)
    except Exception as error:  # what came is foreign: whatever is wrong with it, it is wrong in this one way
        raise ValueError(f"a value that is not understood: {type(error).__name__}: {error}") from error


def _decoded(data: Any, function: Callable[[int], Function] | None, readers: Readers) -> Any:
    kind = type(data)
    if kind in _PLAIN:
        return data
    if kind is list:
        return [item if type(item) in _PLAIN else _decoded(item, function, readers) for item in data]
    if _TAG not in data:
        return {key: item if type(item) in _PLAIN else _decoded(item, function, readers) for key, item in data.items()}
    tag, said = data[_TAG], data.get("v")
    if tag in _READERS:
        return _READERS[tag](said)
    if tag == "function" and function is not None:
        return function(int(said))
    inner = _decoded(said, function, readers)
    if tag in _COLLECTIONS:
        return _COLLECTIONS[tag](inner)
    return readers[tag](**inner) if tag in readers else _made(tag, inner)


# -- errors ------------------------------------------------------------------------------------------------------------


class RemoteError(Exception):
    """What the other side raised: an error whose class has the same name, and is the same where both sides have it."""

    def __init__(self, type: str, message: str, traceback_text: str = "") -> None:
        self.args = (message,)
        self.type = type
        self.traceback_text = traceback_text
        if traceback_text:
            self.add_note(f"In the other process:\n{traceback_text}")

    def __str__(self) -> str:
        return str(self.args[0])


_ERRORS = {"BuildError": "agentos.schema.build", "TooManyAbandonedError": "agentos.calls.threads"}
"""Errors that agentos tells apart, beside those of its tree."""
_TREE = "agentos.errors"


def encode_error(error: BaseException) -> dict[str, Any]:
    """Return what is told of an error: the names of its class and its bases, its message, where it came from."""
    kind = type(error)
    said: dict[str, Any] = {
        "type": whole_or_nothing(type_name(error)),
        "bases": [base.__name__ for base in kind.__mro__ if base.__module__ in ("builtins", _TREE, *_ERRORS.values())],
        "message": whole_or_nothing(_safely(lambda: str(error))),
        "traceback": whole_or_nothing(_safely(lambda: "".join(traceback.format_exception(error)))),
    }
    if kind.__module__.startswith("agentos."):
        said["data"] = encode_answer(vars(error))
    elif isinstance(error, ImportError):
        said["data"] = {"name": encode_answer(error.name)}
    return said


def _safely(say: Callable[[], str]) -> str:
    with Border():  # an error may have methods of its own
        return str.__str__(say())
    return "(it can't be shown)"


def whole_or_nothing(text: str) -> str:
    """Return *text*, or how long it is if that is too long: one that is cut here may keep half of a secret value."""
    return text if len(text) <= _TOLD_LIMIT else f"(a text of {len(text)} characters, which is too long to be told)"


def decode_error(said: Any, mask: Callable[[str], str] | None = None) -> Exception:
    """Return an error like the one that was raised; one that says so if it is not understood.

    What it says is cut only after *mask* has seen all of it: without one it is as long as the message that told it.
    """
    try:
        name, message, origin = (str(said[part]) for part in ("type", "message", "traceback"))
        if mask is not None:
            name, message = mask(name)[:_NAME_LIMIT], mask(message)[:_MESSAGE_LIMIT]
            origin = mask(origin)[-_TRACEBACK_LIMIT:]
        kind = lookalike(name, tuple(map(str, said["bases"]))[:16])
        error = kind(name, message, origin)
        for name, value in decode(said.get("data", {}), None).items():
            if not name.startswith("_"):
                setattr(error, name, value)
    except Exception:  # noqa: BLE001 - as above
        return RemoteError("RemoteError", "an error that is not understood")
    return error


@functools.lru_cache(maxsize=256)
def lookalike(name: str, bases: tuple[str, ...] = ()) -> type[RemoteError]:
    """Return a RemoteError with another's name that is caught as it would be: by the first of its bases known here."""
    for base in bases:
        kind = _known_error(base)
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, _UNLIKE):
            return type(name, (RemoteError, kind) if kind is not Exception else (RemoteError,), {})
    return type(name, (RemoteError,), {})


def _known_error(name: str) -> Any:
    found = getattr(builtins, name, None)
    if found is not None or not name.isidentifier():
        return found
    return getattr(importlib.import_module(_ERRORS.get(name, _TREE)), name, None)


_UNLIKE = (StopIteration, StopAsyncIteration, ExceptionGroup, UnicodeError)
"""What means something else to whoever awaits, or can't be made of a message."""
