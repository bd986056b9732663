"""What a place of a schema may hold, as shapes a form can draw: text, number, choice, object, list.

Shapes guide a person and decide nothing: what was entered is checked by the schema itself. So what a schema says that
no control could show is left to that check, and to raw JSON.
"""

import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import attrs

from agentos.schema.references import pointed
from agentos.schema.work import Work

ShapeKind = Literal["text", "number", "integer", "boolean", "null", "choice", "object", "array", "json"]
Json = dict[str, Any]
SHAPE_LIMIT = 32
"""How many shapes a place has; whatever else it may hold is raw JSON."""
ITEM_LIMIT = 500
CHOICE_LIMIT = 1_000
_HOPS = 16
_LOOKS = 2_000
"""How many parts of a schema are looked at for one place: a small one may refer to itself without end."""
_UNPLAIN = re.compile(r"[\x00-\x08\x0b-\x1f\ud800-\udfff]")
"""What no control of a page keeps as it is; of line breaks pages have one form only."""
_KINDS: Mapping[str, ShapeKind] = {
    "string": "text",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "null": "null",
    "object": "object",
    "array": "array",
}
_NOUNS: Mapping[str, str] = {
    "text": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "yes or no",
    "null": "nothing (null)",
    "choice": "one of a list",
    "object": "object",
    "array": "list",
    "json": "JSON",
}
_IMPLIED: tuple[tuple[ShapeKind, tuple[str, ...]], ...] = (
    ("object", ("properties", "required", "additionalProperties", "patternProperties", "propertyNames")),
    ("array", ("items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems")),
    ("text", ("pattern", "format", "minLength", "maxLength")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)


@attrs.frozen(kw_only=True)
class Shape:
    """One thing that a place may hold."""

    key: str
    """What a form calls it among the shapes of its place."""
    kind: ShapeKind
    label: str
    schema: Json = attrs.field(repr=False)

    @property
    def choices(self) -> list[Any]:
        """Return the values to choose from."""
        found = [self.schema["const"]] if "const" in self.schema else self.schema.get("enum", [])
        return list({exactly(one): one for one in found[:CHOICE_LIMIT]}.values())

    @property
    def required(self) -> frozenset[str]:
        """Return the members that an object must have."""
        return frozenset(one for one in _list(self.schema.get("required")) if isinstance(one, str))

    @property
    def members(self) -> dict[str, Any]:
        """Return the schema of each member that is named."""
        named = _dict(self.schema.get("properties"))
        return {**named, **{name: {} for name in sorted(self.required - named.keys())}}

    @property
    def rest(self) -> Any:
        """Return the schema of members that are not named; False if there are none."""
        more = self.schema.get("additionalProperties", self.schema.get("unevaluatedProperties", {}))
        patterns = list(_dict(self.schema.get("patternProperties")).values())
        if patterns and (more is False or more == {}):
            return patterns[0] if len(patterns) == 1 else {}
        return {} if more is True else more

    def item(self, index: int) -> Any:
        """Return the schema of an item of a list."""
        first = _list(self.schema.get("prefixItems"))
        return first[index] if index < len(first) else self.schema.get("items", {})


JSON_SHAPE = Shape(key="json", kind="json", label=_NOUNS["json"], schema={})


def exactly(value: Any) -> str:
    """Return a JSON value as text that tells 1 from 1.0 and from true."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# -- one schema out of several -----------------------------------------------------------------------------------------


def flattened(schema: Any, root: Any, work: Work | None = None, hops: int = 0) -> Json:
    """Return what *schema* says with its references and its `allOf`, as one schema of keywords; within *work*."""
    if not isinstance(schema, dict):
        return {"enum": []} if schema is False else {}
    flat = {word: value for word, value in schema.items() if word not in ("$ref", "allOf")}
    work = Work(_LOOKS) if work is None else work
    work.left -= 1
    if hops >= _HOPS or work.left <= 0:
        return flat
    parts = [pointed(root, schema["$ref"])] if isinstance(schema.get("$ref"), str) else []
    for part in [*parts, *_list(schema.get("allOf"))]:
        flat = _both(flat, flattened(part, root, work, hops + 1))
    return flat


def _both(one: Json, other: Json) -> Json:
    """Return what two schemas say together; of what only one place can have, the first counts."""
    joined = {**other, **one}
    for word in ("properties", "patternProperties", "$defs", "definitions"):
        if word in one and word in other:
            joined[word] = _members_of_both(_dict(one[word]), _dict(other[word]))
    if "required" in one and "required" in other:
        joined["required"] = list(dict.fromkeys([*_list(one["required"]), *_list(other["required"])]))
    if "type" in one and "type" in other:
        joined["type"] = [name for name in _types(one) if name in _types(other)] or _types(one)
    if "enum" in one and "enum" in other:
        others = {exactly(value) for value in _list(other["enum"])}
        joined["enum"] = [value for value in _list(one["enum"]) if exactly(value) in others]
    if False in (one.get("additionalProperties"), other.get("additionalProperties")):
        joined["additionalProperties"] = False
    choices = [(word, side[word]) for side in (one, other) for word in ("anyOf", "oneOf") if word in side]
    if len(choices) > 1:  # a person chooses of the first; the check knows the others
        joined = {word: value for word, value in joined.items() if word not in ("anyOf", "oneOf")}
        joined[choices[0][0]] = choices[0][1]
    return joined


def _members_of_both(one: Json, other: Json) -> Json:
    shared = {name: {"allOf": [one[name], other[name]]} for name in one if name in other}
    return {**one, **other, **shared}


def _types(schema: Json) -> list[str]:
    said = schema.get("type")
    names = [said] if isinstance(said, str) else _list(said)
    return [name for name in names if name in _KINDS]


# -- the shapes of a place ---------------------------------------------------------------------------------------------


def shapes_of(schema: Any, root: Any) -> list[Shape]:
    """Return what a place may hold, the first few of it; empty if only raw JSON is left."""
    found: dict[tuple[str, str], Shape] = {}
    for shape in _shapes(schema, root, "", 0, Work(_LOOKS)):
        found.setdefault((shape.kind, exactly(_meaning(shape.schema))), shape)
        if len(found) >= SHAPE_LIMIT:
            break
    return list(found.values())


def _meaning(schema: Json) -> Json:
    return {word: value for word, value in schema.items() if word not in ("title", "description", "default")}


def _shapes(schema: Any, root: Any, key: str, hops: int, work: Work) -> Iterator[Shape]:
    if work.left <= 0:
        return
    flat = flattened(schema, root, work)
    word = next((one for one in ("anyOf", "oneOf") if _list(flat.get(one))), None)
    if word is not None and hops < _HOPS and "const" not in flat and "enum" not in flat:
        base = {name: value for name, value in flat.items() if name != word}
        for number, branch in enumerate(flat[word]):
            if branch is not False:
                yield from _branch(base, branch, number, root, key, hops, work)
        return
    for kind in _kinds(flat):
        yield Shape(key=f"{key}{kind}", kind=kind, label=_NOUNS[kind], schema=flat)


def _branch(base: Json, branch: Any, number: int, root: Any, key: str, hops: int, work: Work) -> Iterator[Shape]:
    own = flattened(branch, root, work)
    named = own.get("title") or str(_dict(branch).get("$ref", "")).rpartition("/")[2]
    plain = {name: value for name, value in base.items() if name not in ("title", "description", "default")}
    inner = list(_shapes(_both(own, plain), root, f"{key}{number}.", hops + 1, work))
    for shape in inner:
        label = str(named)[:80] if named else _label(shape, own, number)
        noun = f" ({shape.label})" if named and len(inner) > 1 else ""
        yield attrs.evolve(shape, label=f"{label}{noun}")


def _label(shape: Shape, own: Json, number: int) -> str:
    if shape.kind == "choice" and len(shape.choices) == 1:
        return exactly(shape.choices[0])[:80]
    if shape.kind != "object":
        return shape.label
    names = [one for one in _list(own.get("required")) if isinstance(one, str)] or list(_dict(own.get("properties")))
    return f"with {', '.join(names[:4])}"[:80] if names else f"{shape.label} {number + 1}"


def _kinds(flat: Json) -> list[ShapeKind]:
    if "const" in flat or "enum" in flat:
        return ["choice"]
    if "type" in flat:
        return list(dict.fromkeys(_KINDS[name] for name in _types(flat)))
    implied = [kind for kind, words in _IMPLIED if any(word in flat for word in words)]
    return implied or ["text", "number", "boolean", "null", "object", "array"]


# -- which of them a value has -----------------------------------------------------------------------------------------


def is_plain(text: str) -> bool:
    """Tell whether a control of a page gives a text back as it is."""
    return not _UNPLAIN.search(text)


def is_key(text: str) -> bool:
    """Tell whether a control of one line gives a name back as it is."""
    return bool(text) and is_plain(text) and "\n" not in text


def holds(shape: Shape, value: Any) -> bool:
    """Tell whether a control for *shape* can show this very value and give it back."""
    match shape.kind:
        case "text":
            return isinstance(value, str) and is_plain(value)
        case "number" | "integer":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "choice":
            return exactly(value) in {exactly(one) for one in shape.choices}
        case "object":
            return isinstance(value, dict) and all(is_key(name) for name in value if name not in shape.members)
        case "array":
            return isinstance(value, list) and len(value) <= ITEM_LIMIT
        case _:
            return True


def is_date(text: str) -> bool:
    """Tell whether a date control keeps a text."""
    try:
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text)) and dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def shape_for(shapes: list[Shape], value: Any, root: Any) -> Shape:
    """Return the shape that fits a value best, of those that hold it; raw JSON if none does."""
    fitting = [shape for shape in shapes if holds(shape, value)]
    if len(fitting) < 2:  # noqa: PLR2004 - nothing to choose from
        return fitting[0] if fitting else JSON_SHAPE
    look = _Look(root)
    return min(fitting, key=lambda shape: look.misfit(value, shape.schema, 0))


class _Look:
    """Compares values with schemas roughly, and only so often."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._left = _LOOKS
        self._work = Work(_LOOKS)

    def misfit(self, value: Any, schema: Any, depth: int) -> int:
        """Return how badly a value fits: 0 if nothing speaks against it."""
        self._left -= 1
        if self._left < 0 or depth > _HOPS:
            return 0
        flat = flattened(schema, self._root, self._work)
        options = _list(flat.get("anyOf")) or _list(flat.get("oneOf"))
        least = min((self.misfit(value, one, depth + 1) for one in options), default=0)
        return least + self._of_kind(value, flat) + self._of_parts(value, flat, depth)

    def _of_kind(self, value: Any, flat: Json) -> int:
        if "const" in flat or "enum" in flat:
            known = [flat["const"]] if "const" in flat else _list(flat["enum"])
            return 0 if exactly(value) in map(exactly, known) else 20
        types = _types(flat)
        return 0 if not types or any(_is_of(value, name) for name in types) else 10

    def _of_parts(self, value: Any, flat: Json, depth: int) -> int:
        if isinstance(value, list):
            shape = Shape(key="", kind="array", label="", schema=flat)
            return sum(self.misfit(one, shape.item(place), depth + 1) for place, one in enumerate(value[:8]))
        if not isinstance(value, dict):
            return 0
        shape = Shape(key="", kind="object", label="", schema=flat)
        members = shape.members
        known = sum(self.misfit(value[name], members[name], depth + 1) for name in value if name in members)
        unknown = sum(name not in members for name in value) * (4 if shape.rest is False else 1)
        return known + unknown + 3 * len(shape.required - value.keys())


def _is_of(value: Any, name: str) -> bool:
    if name == "integer":
        return not isinstance(value, bool) and isinstance(value, int | float) and value == int(value)
    if name == "number":
        return not isinstance(value, bool) and isinstance(value, int | float)
    kinds = {"string": str, "boolean": bool, "null": type(None), "object": dict, "array": list}
    return isinstance(value, kinds[name])
