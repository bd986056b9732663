"""Swagger 2.0 as OpenAPI 3.0: what stands in another place there, or is said in other words.

Schemas are the same but for the place they stand in. An operation is converted when it is read, with the parameters of
its path, since what it takes up as a body depends on all of them.
"""

from collections.abc import Iterable
from typing import Any, Protocol

from agentos.openapi.document_parts import items, mapping, refuse, shown, text
from agentos.schema.build import Json

_SCHEMA_WORDS = (
    *("type", "format", "items", "default", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength"),
    *("minLength", "pattern", "maxItems", "minItems", "uniqueItems", "enum", "multipleOf", "x-nullable"),
)
_STYLES = {
    "csv": ("form", False),
    "ssv": ("spaceDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
_URLENCODED, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_JSON = "application/json"
_CONVERTED = ("parameters", "consumes", "produces", "responses", "schemes")
_FILE = {"type": "string", "format": "binary"}


class Referring(Protocol):
    """The part of a document that references are followed in."""

    @property
    def root(self) -> Json:
        """Return the document itself."""
        ...

    def part(self, node: Any, where: str, what: str) -> Json:
        """Return the mapping that *node* is or refers to."""
        ...


def add_parts_of_3(root: Json, name: str) -> None:
    """Write servers and security schemes of a document where OpenAPI 3 has them."""
    components = root.get("components")
    kept = components if isinstance(components, dict) else {}
    root["components"] = {
        **kept,
        "securitySchemes": mapping(root.get("securityDefinitions"), name, "securityDefinitions"),
    }
    host, base = text(root.get("host")), text(root.get("basePath")).rstrip("/")
    schemes = [each for each in items(root.get("schemes"), name, "schemes") if each in ("http", "https")]
    root["servers"] = [{"url": f"{scheme}://{host}{base}"} for scheme in sorted(schemes or ["https"], reverse=True)]
    if not host:
        root["servers"] = [{"url": base or "/"}]


def operation_of_3(raw: Json, shared: Iterable[Any], source: Referring, where: str) -> Json:
    """Convert an operation; *shared* are the parameters of its path."""
    made = {word: value for word, value in raw.items() if word not in _CONVERTED}
    found = _merged([*shared, *items(raw.get("parameters"), where, "parameters")], source, where)
    bodies = [one for one in found if one["in"] == "body"]
    fields = [one for one in found if one["in"] == "formData"]
    made["parameters"] = [_parameter(one, where) for one in found if one["in"] not in ("body", "formData")]
    consumes = _media(raw, "consumes", source, where)
    if bodies:
        made["requestBody"] = _body(bodies[0], consumes)
    elif fields:
        made["requestBody"] = _form(fields, consumes, where)
    produces = _media(raw, "produces", source, where)
    answers = mapping(raw.get("responses"), where, "responses").items()
    made["responses"] = {status: _response(source.part(one, where, "a response"), produces) for status, one in answers}
    return made


def _merged(given: Iterable[Any], source: Referring, where: str) -> list[Json]:
    """Return the parameters; one of the operation replaces that of the path, and there is one body."""
    found: dict[tuple[str, str], Json] = {}
    for each in given:
        raw = source.part(each, where, "a parameter")
        place, name = str(raw.get("in")), raw.get("name")
        if not isinstance(name, str) or not name:
            refuse(where, "a parameter needs a name")
        found[(place, "" if place == "body" else name)] = {**raw, "in": place}
    return list(found.values())


def _parameter(raw: Json, where: str) -> Json:
    made = {word: value for word, value in raw.items() if word not in (*_SCHEMA_WORDS, "collectionFormat")}
    made["schema"] = _schema(raw)
    if raw.get("type") == "array":
        style, explode = _style(raw, where)
        made |= {"style": "simple" if style == "form" and raw["in"] != "query" else style, "explode": explode}
    return made


def _schema(raw: Json) -> Json:
    schema = {word: raw[word] for word in _SCHEMA_WORDS if word in raw}
    return {**schema, **_FILE} if raw.get("type") == "file" else schema


def _style(raw: Json, where: str) -> tuple[str, bool]:
    said = raw.get("collectionFormat", "csv")
    if not isinstance(said, str) or said not in _STYLES:
        refuse(where, f"the collection format {shown(said)} can't be written", raw["name"])
    return _STYLES[said]


def _media(raw: Json, word: str, source: Referring, where: str) -> list[str]:
    given = items(raw.get(word, source.root.get(word)), where, word)
    return [each for each in given if isinstance(each, str)] or [_JSON]


def _body(raw: Json, consumes: list[str]) -> Json:
    media = [each for each in consumes if each not in (_URLENCODED, _MULTIPART)] or [_JSON]
    said: Json = {word: raw[word] for word in ("description", "required") if word in raw}
    return {**said, "content": {each: {"schema": raw.get("schema", {})} for each in media}}


def _form(fields: list[Json], consumes: list[str], where: str) -> Json:
    has_file = any(one.get("type") == "file" for one in fields)
    is_multipart = has_file or (_MULTIPART in consumes and _URLENCODED not in consumes)
    required = [one["name"] for one in fields if one.get("required") is True]
    details: Json = {
        "schema": {
            "type": "object",
            "properties": {one["name"]: {**_schema(one), "description": one.get("description", "")} for one in fields},
            "required": required,
        },
        "encoding": {
            one["name"]: dict(zip(("style", "explode"), _style(one, where), strict=True))
            for one in fields
            if one.get("type") == "array"
        },
    }
    return {"required": bool(required), "content": {_MULTIPART if is_multipart else _URLENCODED: details}}


def _response(raw: Json, produces: list[str]) -> Json:
    if not isinstance(schema := raw.get("schema"), dict):
        return raw
    if schema.get("type") == "file":
        return {**raw, "content": {"application/octet-stream": {"schema": _FILE}}}
    return {**raw, "content": {media: {"schema": schema} for media in produces}}
