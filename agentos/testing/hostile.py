"""Arguments made from a tool's own schema: good ones at its edges, and all kinds of bad ones.

Nothing here does harm where it gets through: what looks like a command makes an empty file called `pwned` where it is
run, what looks like an address leads to this machine or to one that nobody answers at.
"""

import copy
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from agentos.schema.validation import compile_schema, to_plain_json
from agentos.testing._schema_values import (
    LARGEST_ARRAY,
    LARGEST_TEXT,
    Json,
    Path,
    ValueMaker,
    bounds_of,
    kind_of,
    places_in,
)

MARKER = "pwned"
_SHOWN = 120


@attrs.frozen
class Baits:
    """What hostile texts point at, so that it is seen when one of them gets through."""

    file: str = "/etc/passwd"
    address: str = "127.0.0.1:9"


@attrs.frozen
class Case:
    """Arguments for one call, what is special about them, and whether they fit the schema."""

    label: str
    arguments: Any = attrs.field(repr=False)
    fits: bool = False

    def __str__(self) -> str:
        return f"{self.label}: {shorten(self.arguments)}"


def shorten(arguments: Any) -> str:
    """Show arguments in one short line of ASCII."""
    try:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    except (TypeError, ValueError, RecursionError):
        text = type(arguments).__name__
    text = ascii(text)[1:-1]
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def valid_arguments(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return arguments that fit *schema*: as few as it takes, and as many. None if none could be made."""
    root, validator = _read(schema)
    made = [_made(root, fullest=False), _made(root, fullest=True)]
    return [one for index, one in enumerate(made) if validator.is_valid(one) and one not in made[:index]]


def hostile_arguments(
    schema: Mapping[str, Any],
    *,
    samples: Sequence[Mapping[str, Any]] = (),
    baits: Baits | None = None,
    limit: int = 200,
) -> list[Case]:
    """Return cases for a tool with the input schema *schema*: at most *limit* that fit it, and as many that do not.

    They are the same every time. *samples* are good arguments to start from; without them they are made.
    """
    root, validator = _read(schema)
    seeds = [to_plain_json(one) for one in samples] or valid_arguments(root) or [{}]
    pairs = [*_whole(seeds), *_missing_and_extra(seeds[0], root), *_by_spot(seeds, root, baits or Baits())]
    cases = [Case(label, arguments, _fits(validator, arguments)) for label, arguments in pairs]
    good = [case for case in cases if case.fits][:limit]
    return [*good, *[case for case in cases if not case.fits][:limit]]


def _read(schema: Mapping[str, Any]) -> tuple[Json, Any]:
    return to_plain_json(schema), compile_schema(schema, "the input schema")


def _made(root: Json, *, fullest: bool) -> Any:
    return ValueMaker(root, fullest=fullest).make({"type": "object", **root})


def _fits(validator: Any, arguments: Any) -> bool:
    try:
        return type(arguments) is dict and bool(validator.is_valid(to_plain_json(arguments)))
    except (ValueError, RecursionError):  # no JSON, or half of a surrogate pair
        return False


# -- the call as a whole -----------------------------------------------------------------------------------------------


def _whole(seeds: Sequence[Json]) -> Iterator[tuple[str, Any]]:
    for number, seed in enumerate(seeds):
        yield f"good arguments {number + 1}", seed
    yield "no arguments", None
    yield "an empty object", {}
    yield "an empty text", ""
    yield "JSON that is cut off", json.dumps(seeds[0])[:-1]
    yield "JSON that is not an object", "[1, 2]"
    yield "null", "null"
    yield "a number that is not JSON", '{"a": NaN}'
    yield "JSON nested deep", '{"a": ' + "[" * 5_000 + "]" * 5_000 + "}"
    yield "JSON that is too long", json.dumps({"a": "a" * 1_000_001})
    yield "the same key twice", '{"a": 1, "a": 2}'
    yield "bytes that are no text", b'{"a": "\xff"}'
    yield "a list", [1]
    yield "keys that are no text", {1: 2}
    yield "a value that is no JSON", {"a": {1, 2}}
    yield "half of a surrogate pair as a key", {"\ud800": 1}


def _missing_and_extra(seed: Json, root: Json) -> Iterator[tuple[str, Any]]:
    for name in seed:
        yield f"{name} is missing", {key: value for key, value in seed.items() if key != name}
    for name in ("unknown", "", "__proto__", "__class__", "self", "context", "a" * 5_000):
        if name not in (root.get("properties") or {}):
            yield f"the key {name[:20]!r} too much", {**seed, name: "a"}


# -- one value after another -------------------------------------------------------------------------------------------


def _by_spot(seeds: Sequence[Json], root: Json, baits: Baits) -> Iterator[tuple[str, Any]]:
    """Put hostile values at every place, in turns: a limit leaves some for each."""
    bases = [*seeds, _made(root, fullest=True)]
    streams = [_at(path, schema, bases, baits) for path, schema in places_in({"type": "object", **root}, root)]
    for turn in itertools.zip_longest(*streams):
        yield from (pair for pair in turn if pair is not None)


def _at(path: Path, schema: Json, bases: Sequence[Json], baits: Baits) -> Iterator[tuple[str, Any]]:
    where = ".".join(str(part) for part in path)
    for label, value in _values(schema, baits):
        for base in bases:
            if (made := _with(base, path, value)) is not None:
                yield f"{where}: {label}", made
                break


def _with(base: Json, path: Path, value: Any) -> Json | None:
    """Return a copy of *base* with *value* at *path*; None if there is no such place in it."""
    made: Any = copy.deepcopy(base)
    holder = made
    for part in path[:-1]:
        inside = isinstance(holder, dict) and part in holder
        if not inside and not (isinstance(holder, list) and isinstance(part, int) and part < len(holder)):
            return None
        holder = holder[part]
    if isinstance(holder, list):
        holder[:1] = [value]
    elif isinstance(holder, dict):
        holder[path[-1]] = value
    else:
        return None
    return made if isinstance(made, dict) else None


def _values(schema: Json, baits: Baits) -> Iterator[tuple[str, Any]]:
    kind = kind_of(schema)
    if "enum" in schema or "const" in schema:
        yield from ((f"choice {one!r:.40}", one) for one in schema.get("enum", ()))
    elif kind == "string":
        yield from _texts(schema, baits)
    elif kind in ("integer", "number"):
        yield from _numbers(schema)
    elif kind == "array":
        yield from _arrays(schema)
    elif kind == "object":
        yield from _objects()
    yield from _wrong_types()


def _wrong_types() -> Iterator[tuple[str, Any]]:
    yield from (
        ("null", None),
        ("true", True),
        ("zero", 0),
        ("a fraction", 1.5),
        ("a text", "not a value"),
        ("an empty list", []),
        ("an empty object", {}),
        ("nested lists", _nested(60)),
        ("NaN", float("nan")),
        ("infinity", float("inf")),
        ("half of a surrogate pair", "\ud800"),
    )


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def _numbers(schema: Json) -> Iterator[tuple[str, Any]]:
    is_whole = kind_of(schema) == "integer"
    step = 1 if is_whole else 1e-6
    low, high = bounds_of(schema, step)
    for label, value in (("the least", low), ("the greatest", high)):
        if value is not None:
            yield label, value
            yield f"beyond {label}", value - step if value is low else value + step
    whole = [0, 1, -1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**30, 10**400]
    yield from ((f"{one:.3g}" if abs(one) < 10**300 else "a number of 400 digits", one) for one in whole)
    if not is_whole:
        yield from ((repr(one), one) for one in (-0.0, 0.1, 5e-324, 1e308, -1e308))


def _arrays(schema: Json) -> Iterator[tuple[str, Any]]:
    items = schema.get("items")
    item = ValueMaker({}).make(items) if isinstance(items, Mapping) and "$ref" not in items else "a"
    least, most = schema.get("minItems", 0), schema.get("maxItems", LARGEST_ARRAY)
    for count in dict.fromkeys((0, 1, least, min(most, LARGEST_ARRAY), min(most, LARGEST_ARRAY) + 1)):
        yield f"{count} items", [copy.deepcopy(item) for _ in range(count)]
    yield "10,000 items", [0] * 10_000
    yield "items of all kinds", [None, True, 1, "a", [], {}]


def _objects() -> Iterator[tuple[str, Any]]:
    yield "strange keys", {"": "a", "__class__": "a", "a\x00b": "a", "../a": "a", "$ref": "#"}
    yield "1,000 keys", {f"key{number}": "a" for number in range(1_000)}


# -- texts -------------------------------------------------------------------------------------------------------------


def _texts(schema: Json, baits: Baits) -> Iterator[tuple[str, Any]]:
    good = ValueMaker({}).make(schema)
    most = min(schema.get("maxLength", LARGEST_TEXT), LARGEST_TEXT)
    yield "the shortest text", "a" * schema.get("minLength", 0)
    yield "the longest text", "a" * most
    yield "beyond the longest text", "a" * (schema.get("maxLength", LARGEST_TEXT) + 1)
    is_shaped = "pattern" in schema or "format" in schema
    for label, text in hostile_texts(baits):
        yield label, text
        if is_shaped and isinstance(good, str):  # what a shape refuses alone may get through behind something good
            yield f"{label}, behind something good", f"{good}{text}"


def hostile_texts(baits: Baits) -> Iterator[tuple[str, str]]:
    """Yield texts that get through where somebody trusts them, each with what it is."""
    for label, texts in _texts_by_kind(baits).items():
        numbered = len(texts) > 1
        yield from ((f"{label} {number}" if numbered else label, text) for number, text in enumerate(texts, 1))


def _texts_by_kind(baits: Baits) -> dict[str, Sequence[str]]:
    file, address, touch = baits.file, baits.address, f"touch {MARKER}"
    return {
        "a path": [file, f"../../../../../../../..{file}", f"file://{file}", f"{file}\x00.txt", "..\\..\\..\\win.ini"],
        "an address": [
            f"http://{address}/latest/meta-data/",
            "http://169.254.169.254/latest/meta-data/",
            "http://[::ffff:169.254.169.254]/",
            "http://metadata.google.internal/computeMetadata/v1/",
            f"http://example.org@{address}/",
            f"gopher://{address}/_",
        ],
        "a command": [
            f"$({touch})",
            f"`{touch}`",
            f"; {touch} #",
            f"| {touch}",
            f"&& {touch}",
            f"\n{touch}\n",
            f"' ; {touch} ; '",
            f"--output={MARKER}",
        ],
        "code": [f"__import__('os').mkdir('{MARKER}')", f"open('{MARKER}', 'w')", f"${{jndi:ldap://{address}/a}}"],
        "a template": ["{0.__class__.__mro__}", "%s%s%s%n", "%(a)s", "{{7*7}}", "${7*7}", "{", "%"],
        "SQL": ["' OR '1'='1' --", '" OR ""="', "1; SELECT 1 --", "%' OR 1=1 --", "\\'"],
        "markup": [
            f'<!DOCTYPE a [<!ENTITY b SYSTEM "file://{file}">]><a>&b;</a>',
            "<script>1</script>",
            "]]>",
            "!!python/name:os.system",
        ],
        "control characters": ["a\x00b", "\x1b[31mred\x07", "a\r\nX-Injected: 1\r\n\r\n", "\x08\x7f\x85"],
        "hidden characters": ["\u202eabc\u202c", "a\u200bb\ufeff", "\U000e0041\U000e0042", "e" + "\u0301" * 50],
        "no text": ["", " ", "\t\n", "\u00a0\u3000"],
        "other scripts": [
            "\u00e9\u00df\u0130\u0131",
            "\u0627\u0644\u0639",
            "\U0001f469\u200d\U0001f4bb",
            "\uff11\u0663",
        ],
        "numbers as text": ["NaN", "-Infinity", "1e999", "9" * 500, "0x1F", "-0", "1_0"],
        "brackets": ["(" * 500, "[" * 500, '{"a":' * 200, "(a+)+$", "*" * 50, "[z-a]", "(?P<a>"],
        "dates": ["0000-00-00", "9999-12-31T23:59:60Z", "2024-02-30", "+999999-01-01"],
        "options": ["-rf", "--help", "--", "-"],
        "names": ["CON", ".", "..", "~", "~root", "a/b", "a\\b", "a:b", "constructor"],
    }
