"""The body of an operation: which media type is sent, and which arguments fill it."""

from collections.abc import Mapping
from typing import Any

import attrs

from agentos.openapi.json_schemas import Converted
from agentos.openapi.parameters import STYLES
from agentos.openapi.plan import Arguments, Body, BodyKind, base_of, is_json, safe_name
from agentos.openapi.raw_document import RawDocument, mapping, refuse, shown, text
from agentos.schema.build import Json

_KINDS: Mapping[str, BodyKind] = {
    "application/*": "json",
    "*/*": "json",
    "application/x-www-form-urlencoded": "form",
    "multipart/form-data": "multipart",
    "text/plain": "text",
}
_RANKS = ("json", "form", "multipart", "text")
_FLAT = {"type", "properties", "required", "additionalProperties", "description", "deprecated", "examples"}
_DEPENDENCIES = 1_000


def read_body(given: Any, arguments: Arguments, source: RawDocument) -> Body | None:
    """Take up what fills the body: each member of a plain object by itself, anything else as one argument."""
    where = arguments.where
    raw = source.part(given, where, "requestBody")
    content = mapping(raw.get("content"), where, "content")
    if not content:
        return None
    kind, chosen = _chosen(content, where)
    details = mapping(content[chosen], where, "content")
    schema = source.follow(details.get("schema", {}), where)
    if kind in ("form", "multipart"):
        _check_form(schema, chosen, source, where)
    media = "application/json" if "*" in chosen else base_of(chosen)
    styles = _styles(details, where) if kind == "form" else {}
    body = Body(kind, media, raw.get("required") is True, styles=styles)
    if kind != "text" and (flat := _flattened(schema, body, arguments)) is not None:
        return flat
    argument = arguments.free("body", "request")
    arguments.add(argument, arguments.described({**details, **raw}), is_required=body.is_required)
    return attrs.evolve(body, argument=argument)


def _chosen(content: Json, where: str) -> tuple[BodyKind, str]:
    """Choose the media type that carries arguments best, plain JSON before all others."""
    kinds = {media: "json" if is_json(media) else _KINDS.get(base_of(media)) for media in content}
    found = [(kind, media) for media, kind in kinds.items() if kind is not None]
    if not found:
        refuse(
            where,
            f"takes {shown(', '.join(content))}; only application/json, application/x-www-form-urlencoded, "
            "multipart/form-data and text/plain can be written",
        )
    return min(found, key=lambda pair: (_RANKS.index(pair[0]), base_of(pair[1]) != "application/json"))


def _check_form(schema: Any, media: str, source: RawDocument, where: str) -> None:
    schema = mapping(schema, where, "the schema of a form")
    if schema.get("type", "object") != "object":
        refuse(where, f"takes {shown(media)} that is no object")
    for name, inner in mapping(schema.get("properties"), where, "properties").items():
        node = source.follow(inner, where)
        item = source.follow(node.get("items"), where) if isinstance(node, dict) else None
        if _is_binary(node) or _is_binary(item):
            refuse(where, "takes a file, which arguments can't carry", name)


def _is_binary(node: Any) -> bool:
    if not isinstance(node, dict):
        return False
    media = text(node.get("contentMediaType"))
    is_text = not media or media.startswith("text/") or is_json(media) or "contentEncoding" in node
    return node.get("format") == "binary" or not is_text


def _styles(details: Json, where: str) -> dict[str, tuple[str, bool]]:
    styles: dict[str, tuple[str, bool]] = {}
    for name, given in mapping(details.get("encoding"), where, "encoding").items():
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
