"""The body of an operation: which media type is sent, and which arguments fill it."""

import re
from collections.abc import Mapping
from typing import Any

import attrs

from agentos.openapi.document_parts import items, mapping, refuse, shown, text
from agentos.openapi.json_schemas import Converted
from agentos.openapi.parameters import STYLES
from agentos.openapi.plan import Arguments, Body, BodyKind, base_of, is_json, safe_name
from agentos.openapi.raw_document import RawDocument
from agentos.openapi.uploads import file_schema, is_file, media_of_files
from agentos.schema.build import Json

_KINDS: Mapping[str, BodyKind] = {
    "application/*": "json",
    "*/*": "json",
    "application/x-www-form-urlencoded": "form",
    "multipart/form-data": "multipart",
    "text/plain": "text",
}
_RANKS = ("json", "form", "multipart", "text", "file")
_MEDIA = re.compile(r"[a-z0-9!#$&^_.+-]+/([a-z0-9!#$&^_.+-]+|\*)")
_FLAT = {"type", "properties", "required", "additionalProperties", "description", "deprecated", "examples"}
_DEPENDENCIES = 1_000


def read_body(given: Any, arguments: Arguments, source: RawDocument) -> Body | None:
    """Take up what fills the body: each member of a plain object by itself, anything else as one argument."""
    where = arguments.where
    raw = source.part(given, where, "requestBody")
    content = source.part(raw.get("content"), where, "content")
    if not content:
        return None
    kind, chosen = _chosen(content, where)
    details = source.part(content[chosen], where, "content")
    body = Body(kind, _media_sent(kind, chosen), raw.get("required") is True)
    if kind in ("form", "multipart"):
        details, body = _read_form(details, body, source, where)
    schema = source.follow(details.get("schema", {}), where)
    if kind not in ("text", "file") and (flat := _flattened(schema, body, arguments)) is not None:
        return flat
    argument = arguments.free("body", "request")
    if kind == "file":
        details = {"schema": file_schema(text(raw.get("description")), body.media)}
    arguments.add(argument, arguments.described({**details, **raw}), is_required=body.is_required)
    return attrs.evolve(body, argument=argument)


def _chosen(content: Json, where: str) -> tuple[BodyKind, str]:
    """Choose the media type that carries arguments best: plain JSON before all others, a file if nothing else."""
    found = [(kind, media) for media in content if (kind := _kind_of(media)) is not None]
    if not found:
        refuse(where, f"takes {shown(', '.join(content))}; only JSON, forms, text and files can be written")
    return min(found, key=lambda pair: (_RANKS.index(pair[0]), base_of(pair[1]) != "application/json"))


def _kind_of(media: str) -> BodyKind | None:
    if is_json(media):
        return "json"
    base = base_of(media)
    return _KINDS.get(base) or ("file" if _MEDIA.fullmatch(base) and not base.startswith("multipart/") else None)


def _media_sent(kind: BodyKind, chosen: str) -> str:
    return "application/json" if kind == "json" and "*" in chosen else base_of(chosen)


def _read_form(details: Json, body: Body, source: RawDocument, where: str) -> tuple[Json, Body]:
    """Return a form with the schema that its arguments have, and the body with how its members are written."""
    schema = mapping(source.follow(details.get("schema", {}), where), where, "the schema of a form")
    if schema.get("type", "object") != "object":
        refuse(where, f"takes {shown(body.media)} that is no object")
    encoding = source.part(details.get("encoding"), where, "encoding")
    _refuse_hidden_files(schema, source, where)
    files = media_of_files(schema, encoding, lambda node: source.follow(node, where), where)
    if files and body.kind == "form":
        refuse(where, f"takes a file, which {body.media} can't carry", next(iter(files)))
    if files:
        members = {name: _file_member(schema["properties"][name], files[name], source, where) for name in files}
        schema = {**schema, "properties": {**schema["properties"], **members}}
    styles = _styles({name: given for name, given in encoding.items() if name not in files}, where)
    return {**details, "schema": schema}, attrs.evolve(body, styles=styles, files=files)


def _file_member(given: Any, media: str, source: RawDocument, where: str) -> Json:
    node = source.part(given, where, "a schema")
    description = text(given.get("description")) or text(node.get("description"))
    if node.get("type") != "array":
        return file_schema(description, media)
    limits: Json = {word: node[word] for word in ("minItems", "maxItems") if word in node}
    return {"type": "array", "description": description, "items": file_schema(media=media), **limits}


def _refuse_hidden_files(schema: Json, source: RawDocument, where: str) -> None:
    """Refuse a file in a part of the schema that is not taken apart: it would be sent as text."""
    for word in ("allOf", "anyOf", "oneOf"):
        for given in items(schema.get(word), where, word):
            part = source.part(given, where, word)
            for name, node in mapping(part.get("properties"), where, "properties").items():
                if is_file(source.follow(node, where)):
                    refuse(where, f"takes a file that is described inside of {word}; describe it in one schema", name)


def _styles(encodings: Json, where: str) -> dict[str, tuple[str, bool]]:
    styles: dict[str, tuple[str, bool]] = {}
    for name, given in encodings.items():
        encoding = mapping(given, where, "encoding")
        style = encoding.get("style")
        if style is None:
            continue
        if style not in STYLES["query"]:
            refuse(where, f"the style {shown(style)} can't be written in a form", name)
        styles[name] = (style, encoding.get("explode", style == "form") is True)
    return styles


def _flattened(schema: Any, body: Body, arguments: Arguments) -> Body | None:
    """Make an argument of each member of a plain object, unless one of their names is taken."""
    made, uses = arguments.convert(schema)
    if not isinstance(made, dict) or not _is_plain_object(made):
        return None
    members = {safe_name(name, "body"): name for name in made["properties"]}
    required = set(made.get("required", ()))
    is_clear = len(members) == len(made["properties"]) and not any(each in arguments for each in members)
    if not is_clear or len(members) * len(required) > _DEPENDENCIES:
        return None
    for argument, name in members.items():
        is_required = body.is_required and name in required
        arguments.add(argument, Converted(made["properties"][name]), is_required=is_required)
    arguments.use(uses)
    if required and not body.is_required:
        arguments.need_together(members, [argument for argument, name in members.items() if name in required])
    return attrs.evolve(body, members=members)


def _is_plain_object(made: Json) -> bool:
    """Tell whether a schema is an object of known members, and nothing else."""
    members = made.get("properties")
    return (
        bool(members)
        and not made.keys() - _FLAT
        and made.get("type", "object") == "object"
        and made.get("additionalProperties", False) is False
        and set(made.get("required", ())) <= set(members or ())
    )
