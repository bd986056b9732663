"""Files and mappings into values: read, check everything at once, then structure.

The order matters: cattrs coerces (`"3"` becomes 3), so what a person wrote is checked against the JSON Schema
first, and structured only when nothing is wrong with it.
"""

import functools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs

from agentos.errors import ManifestError, Problem
from agentos.schema.explain import TO_OPERATORS, explain
from agentos.schema.validation import compile_schema

T = TypeVar("T")

SIZE_LIMIT = 8 * 1024 * 1024
NODE_LIMIT = 200_000
DEPTH_LIMIT = 64


def read_file(path: Path) -> Any:
    """Read a `.json`, `.toml` or `.yaml` file into plain dicts and lists."""
    if path.suffix.lower() not in _PARSERS:
        raise ManifestError(str(path), [Problem("", f"expected a file ending in {', '.join(_PARSERS)}")])
    try:
        with path.open("rb") as file:
            raw = file.read(SIZE_LIMIT + 1)
        if len(raw) > SIZE_LIMIT:
            raise ValueError(f"larger than {SIZE_LIMIT} bytes")
        data = parse_text(raw.decode("utf-8-sig"), path.suffix)
    except OSError as error:
        raise ManifestError(str(path), [Problem("", f"can't be read: {error.strerror or error}")]) from error
    except (ValueError, RecursionError) as error:
        raise ManifestError(str(path), [Problem("", f"can't be parsed: {_one_line(error)}")]) from None
    return data


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _parse_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return result


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _parse_toml(text: str) -> Any:
    import tomllib

    return tomllib.loads(text)


def _parse_yaml(text: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    yaml = YAML(typ="safe", pure=True)
    try:
        _check_events(yaml.parse(text))
        return yaml.load(text)
    except MarkedYAMLError as error:
        raise ValueError(_what_and_where(error)) from None
    except (YAMLError, KeyError, IndexError, AttributeError, TypeError, OverflowError) as error:
        raise ValueError(f"a value does not fit its tag ({type(error).__name__})") from None
    except _RefusedError:
        raise
    except ValueError:
        raise ValueError("a value does not fit its tag") from None


class _RefusedError(ValueError):
    """A YAML text that is not taken, in our own words."""


def _check_events(events: Iterable[Any]) -> None:
    """Look through a text before anything is made of it: the parser takes ever longer for each level of nesting."""
    depth = 0
    for event in events:
        if getattr(event, "value", None) == "<<" and not event.style:
            raise _RefusedError("merge keys (<<) are not taken: they can multiply without end; write the keys out")
        name = type(event).__name__
        depth += name in ("SequenceStartEvent", "MappingStartEvent")
        depth -= name in ("SequenceEndEvent", "MappingEndEvent")
        if depth > DEPTH_LIMIT + 1:
            raise _RefusedError(f"nested deeper than {DEPTH_LIMIT} levels")


def _what_and_where(error: Any) -> str:
    """Say what is wrong with a YAML text and where, without quoting it: what stands there may be a secret."""
    mark = error.problem_mark or error.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    if twice := re.match(r'found duplicate key "([^"]*)"', str(error.problem)):
        return f"{place}the key {twice[1]!r} stands twice in one mapping"
    return place + re.sub(r"'[^']*'|\"[^\"]*\"", "...", str(error.problem or "not YAML"))


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    ".json": _parse_json,
    ".toml": _parse_toml,
    ".yaml": _parse_yaml,
    ".yml": _parse_yaml,
}


def parse_text(text: str, suffix: str) -> Any:
    """Parse a text as a file that ends in *suffix*; raise ValueError if it can't be."""
    return _PARSERS[suffix.lower()](text)


def plain(data: Any, origin: str) -> Any:
    """Copy *data* into dicts and lists, bounded, so that the schema can be applied to any mapping."""
    budget = [NODE_LIMIT]
    problems: list[Problem] = []

    def copy(value: Any, path: tuple[str | int, ...]) -> Any:
        budget[0] -= 1
        if budget[0] < 0 or len(path) > DEPTH_LIMIT:
            limits = f"more than {NODE_LIMIT} values or {DEPTH_LIMIT} levels"
            raise ManifestError(origin, [Problem(show_path(path[:4]), f"too large: {limits}")])
        if isinstance(value, Mapping):
            problems.extend(_bad_keys(value, path))
            return {key: copy(item, (*path, str(key))) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [copy(item, (*path, index)) for index, item in enumerate(value)]
        return value

    copied = copy(data, ())
    if problems:
        raise ManifestError(origin, problems)
    return copied


def _bad_keys(value: Mapping[Any, Any], path: tuple[str | int, ...]) -> Iterator[Problem]:
    for key in value:
        if not isinstance(key, str):
            message = f"expected a string as key, got {type(key).__name__}; put {key!r} in quotes"
            yield Problem(show_path(path), message)


def show_path(path: Iterable[str | int]) -> str:
    """Write a path the way people do: `packs[2].options`."""
    return TO_OPERATORS.path(path)


def check(data: Any, schema: str) -> list[Problem]:
    """List every mistake in *data* against one of the package's schemas, in the order of their paths."""
    return mistakes(data, _validator(schema), load_schema(schema))


def mistakes(data: Any, validator: Any, schema: Any) -> list[Problem]:
    """List every mistake that the *validator* of *schema* finds in *data*, in the order of their paths."""
    errors = sorted(_errors(data, validator), key=lambda error: _sortable(error.instance_path))
    found = [problem for error in errors for problem in explain(error, schema, voice=TO_OPERATORS)]
    return list(dict.fromkeys(found))


def _sortable(path: Iterable[str | int]) -> list[str]:
    return [f"{part:09d}" if isinstance(part, int) else part for part in path]


@functools.cache
def load_schema(name: str) -> Any:
    """Return the schema that the package ships as `<name>.schema.json`."""
    from importlib import resources

    text = resources.files("agentos").joinpath("schemas", f"{name}.schema.json").read_text("utf-8")
    return json.loads(text)


@functools.cache
def _validator(schema: str) -> Any:
    return compile_schema(_without_editors_part(load_schema(schema)), f"the schema of {schema}")


def _without_editors_part(schema: Any) -> Any:
    """Return a schema without what others check as well, and tell better.

    What it says of curated packs' options, each pack says itself, and fails alone. That a task of a workflow has one
    action is told with all that is wrong with the workflow.
    """
    definitions = schema["$defs"]
    for name, key in (("pack", "allOf"), ("workflowTask", "oneOf")):
        kept = {part: value for part, value in definitions.get(name, {}).items() if part != key}
        definitions = {**definitions, name: kept} if name in definitions else definitions
    return {**schema, "$defs": definitions}


@attrs.frozen
class _Mistake:
    """What a validator found, with the value that stands in the data itself."""

    kind: Any
    instance_path: Sequence[str | int]
    schema_path: Sequence[str | int]
    instance: Any


def _errors(data: Any, validator: Any) -> Iterator[_Mistake]:
    """Find mistakes in data that may hold what is not JSON: a callable, a date, nan.

    The validator sees a stand-in for that: a number, and a second time a text. Whatever refuses one of them by its type
    refuses the value. The same tells 1.0, which is a whole number in JSON, from an int.
    """
    odd: dict[tuple[str | int, ...], Any] = {}
    found = list(validator.iter_errors(_stand_in(data, (), odd, False)))
    if odd:
        again = validator.iter_errors(_stand_in(data, (), odd, True))
        found += [error for error in again if tuple(error.instance_path) in odd and error.kind.name == "type"]
    for error in found:
        path = tuple(error.instance_path)
        yield _Mistake(error.kind, path, error.schema_path, odd.get(path, error.instance))


def _stand_in(value: Any, path: tuple[str | int, ...], odd: dict[tuple[str | int, ...], Any], is_second: bool) -> Any:
    if isinstance(value, dict):
        return {_text(key): _stand_in(item, (*path, key), odd, is_second) for key, item in value.items()}
    if isinstance(value, list):
        return [_stand_in(item, (*path, index), odd, is_second) for index, item in enumerate(value)]
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool | None) or (isinstance(value, int) and value.bit_length() < _LARGEST):
        return value
    is_number = isinstance(value, float) and math.isfinite(value)
    if is_number and not value.is_integer():
        return value
    odd[path] = value
    return ("" if not is_number else 0.5) if is_second else (value if is_number else 0.5)


_LARGEST = 14_000


def _text(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def structure(data: Mapping[str, Any], cls: type[T], origin: str, path: Sequence[str | int] = ()) -> T:
    """Make a *cls* of checked *data*; what the class itself refuses is reported with its path."""
    import cattrs

    try:
        made: T = _converter().structure(data, cls)
    except cattrs.BaseValidationError as group:
        raise ManifestError(origin, list(_leaves(group, path))) from None
    return made


def _leaves(error: BaseException, path: Sequence[str | int]) -> Iterator[Problem]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner, path)
    elif isinstance(error, ManifestError):
        for problem in error.problems:
            at = show_path(path)
            yield Problem(".".join(part for part in (at, problem.path) if part), problem.message)
    else:
        yield Problem(show_path(path), _one_line(error))


@functools.cache
def _converter() -> Any:
    """Return a converter to values whose keys are camelCase in files."""
    import cattrs
    from cattrs.gen import make_dict_structure_fn, override

    converter = cattrs.Converter(detailed_validation=True, forbid_extra_keys=True)

    def hook_for(type_: Any) -> Any:
        renames: dict[str, Any] = {field.name: override(rename=camel(field.name)) for field in attrs.fields(type_)}
        return make_dict_structure_fn(type_, converter, _cattrs_forbid_extra_keys=True, **renames)

    converter.register_structure_hook_factory(attrs.has, hook_for)
    return converter


def camel(name: str) -> str:
    """Spell a field's name the way files do: `env_var` is `envVar`."""
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)
