"""Files and mappings into values: read, check everything at once, then structure.

The order matters: cattrs coerces (`"3"` becomes 3), so what a person wrote is checked against the JSON Schema
first, and structured only when nothing is wrong with it.
"""

import functools
import json
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import attrs

from agentos.errors import ManifestError, Problem
from agentos.model.field_checks import did_you_mean

T = TypeVar("T")

SIZE_LIMIT = 8 * 1024 * 1024
NODE_LIMIT = 200_000
DEPTH_LIMIT = 64

_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")
_TYPE_NAMES = {
    "object": "a mapping",
    "array": "a list",
    "string": "a string",
    "integer": "an int",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


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
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part!r}]"
    return text


def check(data: Any, schema: str) -> list[Problem]:
    """List every mistake in *data* against one of the package's schemas, in the order of their paths."""
    errors = sorted(_validator(schema).iter_errors(data), key=lambda error: _sortable(error.absolute_path))
    return [problem for error in errors for problem in _problems(error)]


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
    import jsonschema
    import referencing

    def is_int(checker: Any, value: Any) -> bool:  # noqa: ARG001 - jsonschema's signature
        return isinstance(value, int) and not isinstance(value, bool)

    def is_number(checker: Any, value: Any) -> bool:
        return is_int(checker, value) or (isinstance(value, float) and math.isfinite(value))

    checker = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many({"integer": is_int, "number": is_number})
    strict: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
        jsonschema.Draft202012Validator, type_checker=checker
    )
    # An empty registry: the library's default would fetch foreign references over the network.
    return strict(load_schema(schema), registry=referencing.Registry())


def _problems(error: Any) -> Iterator[Problem]:
    """Say in our words what jsonschema found. Values are not quoted: one may be a secret."""
    path = tuple(error.absolute_path)
    rule, wanted, got = error.validator, error.validator_value, error.instance
    place = show_path(path)
    if rule == "additionalProperties" and wanted is False:
        known = list(error.schema.get("properties", {}))
        for key in got:
            if key not in known:
                hint = did_you_mean(key, known)
                yield Problem(show_path((*path, key)), f"unknown key{hint or '.'} Known keys: {', '.join(known)}")
    elif rule == "required":
        missing = [name for name in wanted if name not in got]
        yield Problem(place, f"expected the key {missing[0]!r}")
    elif rule == "oneOf" and not isinstance(got, dict):
        return  # what it is not is told by its type
    elif rule == "oneOf" and all("required" in branch for branch in wanted):
        names = [name for branch in wanted for name in branch["required"]]
        has = [name for name in names if name in got]
        yield Problem(place, f"expected exactly one of {', '.join(names)}; got {' and '.join(has) or 'none'}")
    else:
        yield Problem(place, _expectation(rule, wanted, got))


def _expectation(rule: str, wanted: Any, got: Any) -> str:
    if rule == "type":
        kinds = [wanted] if isinstance(wanted, str) else wanted
        return f"expected {' or '.join(_TYPE_NAMES[kind] for kind in kinds)}, got {_type_of(got)}"
    if rule == "enum":
        choices = ", ".join(json.dumps(choice) for choice in wanted)
        hint = (
            did_you_mean(got, [choice for choice in wanted if isinstance(choice, str)]) if isinstance(got, str) else ""
        )
        return f"expected one of {choices}{hint}"
    if rule == "minLength":
        return "expected a string that is not empty"
    if rule == "exclusiveMinimum":
        return f"expected more than {wanted}"
    if rule == "maximum":
        return f"expected at most {wanted}"
    if rule == "pattern":
        return f"expected text that fits {wanted}"
    if rule == "not":
        return "expected text on one line"
    if rule == "uniqueItems":
        return "expected no item twice"
    return f"expected {rule} {wanted!r}"


def _type_of(value: Any) -> str:
    names = {
        dict: "a mapping",
        list: "a list",
        str: "a string",
        bool: "a boolean",
        type(None): "null",
        int: "an int",
    }
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return names.get(type(value), f"a {type(value).__name__}")


def structure(data: Mapping[str, Any], cls: type[T], origin: str, path: Sequence[str | int] = ()) -> T:
    """Make a *cls* of checked *data*; what the class itself refuses is reported with its path."""
    import cattrs

    try:
        made: T = _converter(cast("Hashable", cls)).structure(data, cls)
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
def _converter(cls: Hashable) -> Any:
    """Return a converter for *cls*, whose keys are camelCase in files."""
    import cattrs
    from cattrs.gen import make_dict_structure_fn, override

    converter = cattrs.Converter(detailed_validation=True, forbid_extra_keys=True)
    renames: dict[str, Any] = {
        field.name: override(rename=camel(field.name)) for field in attrs.fields(cast("type[Any]", cls))
    }
    hook = make_dict_structure_fn(cast("type[Any]", cls), converter, _cattrs_forbid_extra_keys=True, **renames)
    converter.register_structure_hook(cast("type[Any]", cls), hook)
    return converter


def camel(name: str) -> str:
    """Spell a field's name the way files do: `env_var` is `envVar`."""
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)
