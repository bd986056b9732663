"""Schemas of OpenAPI 3.0 and 3.1 as JSON Schema 2020-12.

What a reference leads to becomes a definition, converted once for each direction: sharing costs nothing, and a schema
may contain itself.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from agentos.openapi.document_parts import items, mapping, refuse, text
from agentos.openapi.raw_document import RawDocument
from agentos.schema.build import Json

DEFINITION_LIMIT = 2_000
"""How many definitions the schema of one operation may have."""
WEIGHT_LIMIT = 10_000
"""How many times definitions may be looked at for one value: references of references multiply."""
_DEFAULT_SHOWN = 100

_PLAIN = {
    *("type", "enum", "const", "multipleOf", "maximum", "minimum", "maxLength", "minLength", "pattern", "format"),
    *("maxItems", "minItems", "uniqueItems", "maxContains", "minContains", "maxProperties", "minProperties"),
    *("dependentRequired", "description", "deprecated", "contentEncoding", "contentMediaType"),
}
_ONE = {
    *("not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames"),
    *("unevaluatedItems", "unevaluatedProperties"),
}
_MANY = {"allOf", "anyOf", "oneOf", "prefixItems"}
_NAMED = {"properties", "patternProperties", "dependentSchemas"}
_IN_PLACE = {"not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas"}
_NULLABLE = ("nullable", "x-nullable")
_OWN_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


class Use(NamedTuple):
    """A reference to a definition; in place if it is looked at for the same value, not for a part of it."""

    pointer: str
    in_place: bool


class Converted(NamedTuple):
    """A schema, and the definitions that it needs."""

    schema: Any
    uses: tuple[Use, ...] = ()


class Schemas:
    """The schemas of one document."""

    def __init__(self, source: RawDocument) -> None:
        self._source = source
        self._known: dict[tuple[str, bool], Converted] = {}

    def convert(self, node: Any, where: str, *, is_input: bool) -> Converted:
        """Convert one schema, for what is sent or for what comes back."""
        conversion = _Conversion(self._source, where, is_input=is_input)
        return Converted(conversion.of(node), tuple(conversion.uses))

    def complete(self, schema: Json, uses: Iterable[Use], where: str, *, is_input: bool) -> Json:
        """Return *schema* with the definitions of *uses*, and of theirs."""
        uses = list(uses)
        found = self._gathered(uses, where, is_input=is_input)
        _check_weight(uses, found, where)
        if not found:
            return schema
        home = self._source.schema_home
        return {**schema, "$defs": {name_of(pointer, home): found[pointer].schema for pointer in sorted(found)}}

    def _gathered(self, uses: Iterable[Use], where: str, *, is_input: bool) -> dict[str, Converted]:
        found: dict[str, Converted] = {}
        waiting = list(uses)
        while waiting:
            pointer = waiting.pop().pointer
            if pointer not in found:
                if len(found) == DEFINITION_LIMIT:
                    refuse(where, f"its schemas lead to more than {DEFINITION_LIMIT} others")
                found[pointer] = self._definition(pointer, where, is_input=is_input)
                waiting.extend(found[pointer].uses)
        return found

    def _definition(self, pointer: str, where: str, *, is_input: bool) -> Converted:
        key = (pointer, is_input)
        if key not in self._known:
            self._known[key] = self.convert(self._source.target(pointer, where), where, is_input=is_input)
        return self._known[key]


def name_of(pointer: str, home: str) -> str:
    """Name the definition of what *pointer* leads to: always the same, whichever operation is read first.

    At *home* are the schemas that have names of their own.
    """
    if pointer.startswith(home) and _OWN_NAME.fullmatch(pointer, len(home)):
        return pointer.removeprefix(home)
    digest = hashlib.sha256(pointer.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    words = re.sub(r"[^A-Za-z0-9]+", "_", pointer.rpartition("/")[2])[:40].strip("_")
    return f"{words or 'schema'}_{digest}"


def _check_weight(uses: Iterable[Use], found: Mapping[str, Converted], where: str) -> None:
    """Refuse schemas that take for ever to apply: forty definitions that each refer twice to the next."""
    weights: dict[str, int] = {}

    def weight(uses: Iterable[Use]) -> int:
        return 1 + sum(weight_of(use.pointer) for use in uses if use.in_place)

    def weight_of(pointer: str) -> int:
        if pointer not in weights:
            weights[pointer] = 1  # one that leads back to itself is looked at once
            weights[pointer] = weight(found[pointer].uses)
        return weights[pointer]

    try:
        heaviest = max([weight(uses), *map(weight_of, found)])
    except RecursionError:
        heaviest = WEIGHT_LIMIT + 1
    if heaviest > WEIGHT_LIMIT:
        refuse(where, f"its schemas refer to one another more than {WEIGHT_LIMIT} times for one value")


class _Conversion:
    """One schema under conversion; `uses` gathers what it refers to."""

    def __init__(self, source: RawDocument, where: str, *, is_input: bool) -> None:
        self._source = source
        self._where = where
        self._is_input = is_input
        self.uses: list[Use] = []

    def of(self, node: Any, *, in_place: bool = True) -> Any:
        if isinstance(node, bool):
            return node
        node = mapping(node, self._where, "a schema")
        for word in ("$dynamicRef", "$recursiveRef"):
            if word in node:
                refuse(self._where, f"{word} is not followed; write $ref")
        if not isinstance(reference := node.get("$ref"), str):
            return self._converted(node, in_place=in_place)
        self.uses.append(Use(reference, in_place))
        made = {"$ref": f"#/$defs/{name_of(reference, self._source.schema_home)}"}
        beside = {word: value for word, value in node.items() if word != "$ref"}
        if self._source.is_30:
            return {**made, "description": said} if (said := text(beside.get("description"))) else made
        return {**made, **self._converted(beside, in_place=in_place)}

    def _converted(self, node: Json, *, in_place: bool) -> Json:
        hidden = self._hidden(node)
        made: Json = {word: node[word] for word in node if word in _PLAIN}
        if not isinstance(made.get("description", ""), str):  # a reference to a text, where there may be none
            del made["description"]
        for word, value in node.items():
            inside = in_place and word in _IN_PLACE
            if word in _ONE:
                made[word] = self.of(value, in_place=inside)
            elif word in _MANY:
                made[word] = [self.of(each, in_place=inside) for each in items(value, self._where, word)]
            elif word in _NAMED:
                inner = mapping(value, self._where, word).items()
                made[word] = {name: self.of(each, in_place=inside) for name, each in inner if name not in hidden}
        _set_required(node, made, hidden)
        _set_bounds(node, made)
        _set_examples(node, made)
        self._set_default(node, made)
        if not self._is_input:
            _open(made)
        return _nullable(made) if any(node.get(word) is True for word in _NULLABLE) else made

    def _hidden(self, node: Json) -> frozenset[str]:
        """Return the properties that are not for this direction."""
        word = "readOnly" if self._is_input else "writeOnly"
        properties = mapping(node.get("properties"), self._where, "properties")
        return frozenset(name for name, inner in properties.items() if self._says(inner, word))

    def _says(self, node: Any, word: str) -> bool:
        if isinstance(node, dict) and "$ref" in node and node.get(word) is not True:
            node = self._source.follow(node, self._where)
        return isinstance(node, dict) and node.get(word) is True

    def _set_default(self, node: Json, made: Json) -> None:
        """Tell a default of what is sent in words: it is the server's, and must not be written over what is there."""
        if "default" not in node:
            return
        if not self._is_input:
            made["default"] = node["default"]
        elif len(shown := json.dumps(node["default"], ensure_ascii=False)) <= _DEFAULT_SHOWN:
            made["description"] = f"{text(node.get('description'))} Default: {shown}.".strip()


def _set_required(node: Json, made: Json, hidden: frozenset[str]) -> None:
    """Keep a list of required properties; `required: true` beside a type is a common slip that says nothing."""
    given = node.get("required")
    names = [name for name in given if isinstance(name, str) and name not in hidden] if isinstance(given, list) else []
    if names:
        made["required"] = names


def _set_bounds(node: Json, made: Json) -> None:
    """Write `exclusiveMinimum: true` beside a minimum as 2020-12 does: the limit itself."""
    for word, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        given = node.get(word)
        if given is True and limit in made:
            made[word] = made.pop(limit)
        elif given is not None and not isinstance(given, bool):
            made[word] = given


def _set_examples(node: Json, made: Json) -> None:
    if isinstance(node.get("examples"), list):
        made["examples"] = node["examples"]
    elif "example" in node:
        made["examples"] = [node["example"]]


def _open(made: Json) -> None:
    """Let a server add fields. Options that only their fields told apart then overlap, so one or more may fit."""
    for word in ("additionalProperties", "unevaluatedProperties"):
        if made.get(word) is False:
            del made[word]
    if "oneOf" in made:
        options = made.pop("oneOf")
        if "anyOf" in made:
            made["allOf"] = [*made.get("allOf", ()), {"anyOf": options}]
        else:
            made["anyOf"] = options


def _nullable(made: Json) -> Json:
    """Return the schema of the same, or null."""
    kind = made.get("type")
    if kind == "null":
        return made
    if isinstance(kind, str) and not made.keys() & {"const", "allOf", "anyOf", "oneOf"}:
        made["type"] = [kind, "null"]
        if isinstance(made.get("enum"), list) and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]
        return made
    outside: Json = {word: made.pop(word) for word in ("description", "deprecated") if word in made}
    return {**outside, "anyOf": [made, {"type": "null"}]} if made else outside
