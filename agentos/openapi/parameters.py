"""The parameters of an operation, and the path that some of them are in."""

import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from agentos.openapi.document_parts import mapping, place_of, refuse, shown
from agentos.openapi.plan import Arguments, OperationParameter, Segment, is_json
from agentos.openapi.raw_document import RawDocument
from agentos.schema.build import Json

STYLES: Mapping[str, tuple[str, ...]] = {
    "path": ("simple",),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""How parameters may be written in each place, the usual style first."""
_PLACES = tuple(STYLES)
_TEMPLATE = re.compile(r"\{([^{}]+)\}")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_NOT_IN_A_PATH = re.compile(r"[\x00-\x20\x7f-\xa0?#\\]")

# Headers that belong to whoever sends a request: they say whom it reaches, where it ends, and who is asking.
_TRANSPORT = {
    *("accept", "authorization", "content-type", "content-length", "content-encoding", "transfer-encoding", "host"),
    *("connection", "keep-alive", "te", "trailer", "upgrade", "expect", "cookie"),
}


def merged(given: Iterable[Any], source: RawDocument, where: str) -> list[Json]:
    """Return the parameters, those of the path first in *given*; one of the operation replaces one of the path."""
    found: dict[tuple[str, str], Json] = {}
    for each in given:
        raw = source.part(each, where, "a parameter")
        name, place = raw.get("name"), raw.get("in")
        if not isinstance(name, str) or not isinstance(place, str) or not name or place not in STYLES:
            refuse(
                where,
                f"a parameter needs a name and one of {', '.join(_PLACES)} as `in`",
                name if isinstance(name, str) else "",
            )
        found[place_of(place, name)] = raw
    return list(found.values())


def read_parameters(
    found: Iterable[Json], path: str, arguments: Arguments, source: RawDocument
) -> tuple[OperationParameter, ...]:
    """Take up the parameters that a caller fills, those of the path first."""
    names = set(_TEMPLATE.findall(path))
    wanted = [raw for raw in found if not _is_left_out(raw, source) and (raw["in"] != "path" or raw["name"] in names)]
    wanted.sort(key=lambda raw: _PLACES.index(raw["in"]))
    return tuple(_parameter(raw, arguments) for raw in wanted)


def _is_left_out(raw: Json, source: RawDocument) -> bool:
    """Tell whether a parameter is filled by whoever sends the request: a credential, or a header of the transport."""
    place, name = place_of(raw["in"], raw["name"])
    is_transport = place == "header" and (name in _TRANSPORT or name.startswith("proxy-"))
    return is_transport or (place, name) in source.credentials


def _parameter(raw: Json, arguments: Arguments) -> OperationParameter:
    name, place, where = raw["name"], raw["in"], arguments.where
    if place in ("header", "cookie") and not _TOKEN.fullmatch(name):
        refuse(where, f"{shown(name)} can't be the name of a {place}")
    style = raw.get("style", STYLES[place][0])
    if style not in STYLES[place]:
        refuse(where, f"the style {shown(style)} can't be written in a {place}", name)
    content = mapping(raw.get("content"), where, "content")
    for media, details in content.items():
        if not is_json(media):
            refuse(where, f"a parameter as {shown(media)} can't be written", name)
        raw = {**mapping(details, where, "content"), **raw}
    argument = arguments.free(name, place)
    arguments.add(argument, arguments.described(raw), is_required=place == "path" or raw.get("required") is True)
    return OperationParameter(argument, name, place, style, raw.get("explode", style == "form") is True, bool(content))


def read_path(path: str, parameters: Iterable[OperationParameter], where: str) -> tuple[Segment, ...]:
    """Divide a path into its segments, each text and parameters."""
    if not path.startswith("/") or path.startswith("//") or _NOT_IN_A_PATH.search(path):
        refuse(where, f"{shown(path)} is no path: it begins with one / and has neither blanks nor ? # \\")
    known = {one.name: one for one in parameters if one.place == "path"}
    return tuple(_segment(each, known, where) for each in path.split("/")[1:])


def _segment(given: str, known: Mapping[str, OperationParameter], where: str) -> Segment:
    if unquote(given) in (".", ".."):
        refuse(where, f"the path has the segment {shown(given)}, which leads elsewhere")
    *pairs, last = _TEMPLATE.split(given)
    texts, names = pairs[::2], pairs[1::2]
    if "" in texts[1:] or set("".join([*texts, last])) & set("{}"):
        refuse(where, f"the segment {shown(given)} of the path can't be divided into its parameters")
    for name in names:
        if name not in known:
            refuse(where, f"the path has a place for {shown(name)}, but no parameter of that name is declared in it")
    parts = [*itertools.chain(*zip(texts, (known[name] for name in names), strict=True)), last]
    return tuple(part for part in parts if part != "")
