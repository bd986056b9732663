"""Values that fit a JSON Schema: a small one, a large one, and those at its edges."""

from collections.abc import Iterator, Mapping
from typing import Any

from agentos.schema.references import resolved
from agentos.testing._regex_texts import text_matching
from agentos.tools.lint.subject import each

Json = dict[str, Any]

LARGEST_TEXT = 20_000
LARGEST_ARRAY = 200
_INNER_TEXT = 100
_DEPTH = 8
_FORMATS = {
    "date": "2024-02-29",
    "date-time": "2024-02-29T23:59:59Z",
    "time": "23:59:59Z",
    "duration": "P1D",
    "email": "a@example.org",
    "idn-email": "a@example.org",
    "hostname": "example.org",
    "idn-hostname": "example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.org/",
    "iri": "https://example.org/",
    "uri-reference": "/a",
    "iri-reference": "/a",
    "uri-template": "/{a}",
    "json-pointer": "/a",
    "relative-json-pointer": "0",
    "regex": "a+",
    "uuid": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
}


class ValueMaker:
    """Makes values for the parts of one schema. What it makes is a guess: who needs a valid one has it checked."""

    def __init__(self, root: Json, *, fullest: bool = False) -> None:
        self._root = root
        self._fullest = fullest

    def make(self, schema: Any, depth: int = 0) -> Any:
        """Return a value for *schema*: as little as it takes, or as much as it takes."""
        if not isinstance(schema, Mapping):
            return "a"
        schema = self.merged(schema)
        for word in ("const", "enum", "examples"):
            if word in schema:
                value = schema[word]
                return value if word == "const" or not isinstance(value, list) or not value else value[0]
        if not self._fullest and "default" in schema:
            return schema["default"]
        kind = kind_of(schema)
        maker = getattr(self, f"_{kind}", None)
        return None if maker is None else maker(schema, depth)

    def merged(self, schema: Mapping[str, Any]) -> Json:
        """Return a schema with what it refers to, and with the first of its choices."""
        made = {**resolved(dict(schema), self._root), **{key: one for key, one in schema.items() if key != "$ref"}}
        for part in each(made.pop("allOf", None)):
            made = _joined(made, self.merged(part))
        for word in ("anyOf", "oneOf"):
            options = each(made.pop(word, None))
            real = [one for one in options if one.get("type") != "null"] or options
            if real:
                made = _joined(made, self.merged(real[-1 if self._fullest else 0]))
        return made

    def _object(self, schema: Json, depth: int) -> Json:
        properties = schema.get("properties") or {}
        wanted = list(properties) if self._fullest and depth < _DEPTH else schema.get("required", [])
        made = {name: self.make(properties.get(name, {}), depth + 1) for name in wanted if depth < 2 * _DEPTH}
        more = schema.get("additionalProperties")
        for number in range(len(made), schema.get("minProperties", 0)):
            made[f"key{number}"] = self.make(more if isinstance(more, Mapping) else {}, depth + 1)
        return made

    def _array(self, schema: Json, depth: int) -> list[Any]:
        first = [self.make(one, depth + 1) for one in each(schema.get("prefixItems"))]
        count = schema.get("minItems", 0)
        if self._fullest and depth < 2:  # noqa: PLR2004 - the outer ones: inner ones would multiply
            count = max(count, min(schema.get("maxItems", 2), LARGEST_ARRAY))
        items = schema.get("items", {})
        made = [*first, *(self.make(items, depth + 1) for _ in range(count - len(first)))]
        return _distinct(made, schema) if schema.get("uniqueItems") else made

    def _string(self, schema: Json, depth: int) -> str:
        known: str | None = _FORMATS.get(schema.get("format", ""))
        if known is not None:
            return known
        found = text_matching(schema["pattern"]) if "pattern" in schema else None
        if found is not None:
            return found.ljust(int(schema.get("minLength", 0)), "a")
        least = max(int(schema.get("minLength", 0)), 1 if schema.get("maxLength", 1) else 0)
        most = min(int(schema.get("maxLength", LARGEST_TEXT)), LARGEST_TEXT if depth <= 1 else _INNER_TEXT)
        return "a" * (max(least, most) if self._fullest else least)

    def _integer(self, schema: Json, depth: int) -> int:  # noqa: ARG002 - one of several makers
        low, high = bounds_of(schema, 1)
        step = schema.get("multipleOf", 1)
        value = (high if high is not None else 1_000_000) if self._fullest else 1
        value = max(value, low) if low is not None else value
        value = min(value, high) if high is not None else value
        return int(value // step * step) if value // step * step >= (low if low is not None else value) else int(step)

    def _number(self, schema: Json, depth: int) -> float:  # noqa: ARG002 - one of several makers
        low, high = bounds_of(schema, 1e-6)
        value = (high if high is not None else 1e6) if self._fullest else 1.0
        value = max(value, low) if low is not None else value
        return min(value, high) if high is not None else value

    def _boolean(self, schema: Json, depth: int) -> bool:  # noqa: ARG002 - one of several makers
        return self._fullest

    def _null(self, schema: Json, depth: int) -> None:
        """Make nothing."""


def kind_of(schema: Mapping[str, Any]) -> str:
    """Return the type of the values that a schema takes, the first that is not null."""
    kind = schema.get("type")
    kinds = [kind] if isinstance(kind, str) else [one for one in kind or () if one != "null"] or kind or []
    if kinds:
        return str(kinds[0])
    if "properties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else "string"


def bounds_of(schema: Mapping[str, Any], step: float) -> tuple[Any, Any]:
    """Return the least and the greatest number that a schema takes; None where there is no bound."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if (above := schema.get("exclusiveMinimum")) is not None:
        low = above + step if low is None else max(low, above + step)
    if (beneath := schema.get("exclusiveMaximum")) is not None:
        high = beneath - step if high is None else min(high, beneath - step)
    return low, high


def _joined(one: Json, other: Json) -> Json:
    joined = {**one, **other}
    if "properties" in one and "properties" in other:
        joined["properties"] = {**one["properties"], **other["properties"]}
    if "required" in one and "required" in other:
        joined["required"] = list(dict.fromkeys([*one["required"], *other["required"]]))
    return joined


def _distinct(items: list[Any], schema: Json) -> list[Any]:
    """Make items differ, as far as their kind allows; what can't be told apart is left out."""
    made: list[Any] = []
    choices = iter(schema.get("items", {}).get("enum", ())) if isinstance(schema.get("items"), Mapping) else iter(())
    for number, item in enumerate(items):
        one = next(choices, _numbered(item, number))
        if one not in made:
            made.append(one)
    return made


def _numbered(item: Any, number: int) -> Any:
    if isinstance(item, bool) or item is None:
        return item
    if isinstance(item, int | float):
        return item - number
    return f"{number}{item}"[: max(len(item), len(str(number)))] if isinstance(item, str) else item


Path = tuple[str | int, ...]


def places_in(schema: Json, root: Json, path: Path = (), depth: int = 0) -> Iterator[tuple[Path, Json]]:
    """Yield every place of an object schema that a value can be put at: its path, and the schema there."""
    here = ValueMaker(root).merged(schema)
    for name, inner in (here.get("properties") or {}).items():
        there = ValueMaker(root).merged(inner) if isinstance(inner, Mapping) else {}
        yield (*path, name), there
        if depth < 3 and kind_of(there) == "object":  # noqa: PLR2004 - deeper ones are the same again
            yield from places_in(there, root, (*path, name), depth + 1)
        items = there.get("items")
        if isinstance(items, Mapping) and depth < 3 and kind_of(there) == "array":  # noqa: PLR2004 - as above
            item = ValueMaker(root).merged(items)
            yield (*path, name, 0), item
            if kind_of(item) == "object":
                yield from places_in(item, root, (*path, name, 0), depth + 1)
