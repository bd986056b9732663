"""OpenAPI documents: their operations, each with its schemas and the request that arguments make of it.

Nothing is fetched and nothing is sent. What one operation needs is read when it is first asked for, and once.

    document_text.py  its text as plain data, within bounds; yaml_text.py where it is YAML
    neighbours.py     the files beside it that it refers to
    raw_document.py   its version, and its references followed; document_parts.py takes parts of it
    swagger.py        operations of Swagger 2.0 as those of 3.0
    json_schemas.py   its schemas as JSON Schema 2020-12
    plan.py           which argument goes where
    parameters.py     parameters, and the path that some are in
    bodies.py         the body; uploads.py the files in it
    values.py         values as text
    requests.py       arguments into a request
    responses.py      an answer into a result
"""

import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from os import PathLike
from types import MappingProxyType
from typing import Any

import attrs

from agentos.errors import ToolDefinitionError
from agentos.model.field_checks import did_you_mean, fault_of_name
from agentos.openapi.bodies import read_body
from agentos.openapi.document_parts import items, mapping, refuse, shown, text
from agentos.openapi.json_schemas import Converted, Schemas
from agentos.openapi.parameters import merged, read_parameters, read_path
from agentos.openapi.plan import Arguments, RequestPlan, as_mapping, base_of, is_json
from agentos.openapi.raw_document import RawDocument, read_document
from agentos.openapi.requests import Request, request_of
from agentos.openapi.swagger import operation_of_3
from agentos.schema.build import Json

__all__ = ["OpenAPIDocument", "OpenAPIOperation", "Request"]

OPERATION_LIMIT = 5_000
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_SUCCESS = re.compile(r"2([0-9]{2}|XX)", re.IGNORECASE)
_EMPTY = ("204", "205")
_ANY_MEDIA = ("*/*", "application/*")
_TEXT, _NULL = {"type": "string"}, {"type": "null"}
_SLUG = 56


@attrs.frozen(eq=False, slots=False)
class OpenAPIOperation:
    """One operation of a document. It knows what is to be sent, not where to nor with which credentials."""

    id: str
    method: str
    path: str
    summary: str = attrs.field(repr=False)
    description: str = attrs.field(repr=False)
    deprecated: bool = attrs.field(repr=False)
    _given: Any = attrs.field(repr=False)
    _item: Json = attrs.field(repr=False)
    _source: RawDocument = attrs.field(repr=False)
    _schemas: Schemas = attrs.field(repr=False)

    def __str__(self) -> str:
        return f"{self.method} {self.path if self.path.isprintable() else shown(self.path)}"

    @functools.cached_property
    def _raw(self) -> Json:
        """Return all that the document says of it, its references followed; of Swagger 2.0, as 3.0 says it."""
        raw = self._source.whole(self._given, str(self), "the operation")
        return operation_of_3(raw, self._shared, self._source, str(self)) if self._source.is_swagger else raw

    @property
    def _shared(self) -> list[Any]:
        """Return the parameters of its path."""
        return self._source.listed(self._item.get("parameters"), str(self), "parameters")

    @functools.cached_property
    def _plan(self) -> RequestPlan:
        where = str(self)
        arguments = Arguments(self._schemas, where)
        shared = [] if self._source.is_swagger else self._shared
        own = self._source.listed(self._raw.get("parameters"), where, "parameters")
        found = merged([*shared, *own], self._source, where)
        parameters = read_parameters(found, self.path, arguments, self._source)
        segments = read_path(self.path, parameters, where)
        body = read_body(self._raw.get("requestBody"), arguments, self._source)
        keys = {name for place, name in self._source.credentials if place == "query"}
        taken = frozenset(keys | {raw["name"] for raw in found if raw["in"] == "query"})
        return RequestPlan(arguments.schema(), segments, parameters, body, taken)

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """Return the schema of its arguments: parameters, and the body or its members."""
        return self._plan.input_schema

    @functools.cached_property
    def output_schema(self) -> Mapping[str, Any] | None:
        """Return the schema of what a success answers as JSON; None if the document does not say.

        Objects are open, since servers add fields.
        """
        return _output_schema(self._raw, self._source, self._schemas, str(self))

    @functools.cached_property
    def access(self) -> tuple[str, ...] | None:
        """Return the scopes that `security` asks for, all of one alternative; None if it names none.

        Of several alternatives it is the first that has scopes.
        """
        where = str(self)
        security = self._raw.get("security", self._source.root.get("security"))
        for alternative in items(security, where, "security"):
            schemes = mapping(alternative, where, "security").values()
            scopes = [scope for given in schemes for scope in items(given, where, "security")]
            if not all(isinstance(scope, str) for scope in scopes):
                refuse(where, "security: expected names of scopes")
            if scopes:
                return tuple(dict.fromkeys(scopes))
        return None

    @functools.cached_property
    def servers(self) -> tuple[str, ...]:
        """Return the addresses that the document names, variables filled in with their defaults."""
        holders = (self._raw, self._item, self._source.root)
        given = next((holder["servers"] for holder in holders if holder.get("servers")), None)
        where = str(self)
        return tuple(server_address(mapping(each, where, "servers"), where) for each in items(given, where, "servers"))

    def request(self, arguments: Mapping[str, Any]) -> Request:
        """Write *arguments*, which fit the input schema, into a request.

        No argument can leave its place: one that would is refused with a ValueError that says which and why.
        """
        return request_of(self.method, self._plan, arguments)


@attrs.frozen(eq=False)
class OpenAPIDocument:
    """An OpenAPI document, or one of Swagger 2.0."""

    title: str
    version: str
    _operations: Mapping[str, OpenAPIOperation] = attrs.field(repr=False)

    @classmethod
    def read(cls, source: "Mapping[str, Any] | str | bytes | PathLike[str]") -> "OpenAPIDocument":
        """Read a document: a mapping, its text as JSON or YAML, or a `Path`. A string is never taken for a file."""
        return document_of(read_document(source))

    def operations(self) -> Mapping[str, OpenAPIOperation]:
        """Return all operations by their ids: the `operationId`, or method and path where it is missing or doubled."""
        return self._operations

    def operation(self, id: str) -> OpenAPIOperation:
        """Return the operation called *id*."""
        if id not in self._operations:
            hint = did_you_mean(str(id), self._operations)
            refuse(f"OpenAPI document {shown(self.title)}", f"there is no operation {shown(id)}{hint}")
        return self._operations[id]


def document_of(read: RawDocument) -> OpenAPIDocument:
    """Return the operations of a document that was read."""
    info = read.part(read.root.get("info"), read.name, "info")
    operations = {one.id: one for one in _operations(read)}
    return OpenAPIDocument(text(info.get("title")), str(info.get("version", "")), MappingProxyType(operations))


def _operations(source: RawDocument) -> Iterator[OpenAPIOperation]:
    found = list(_found(source))
    schemas = Schemas(source)
    for id, (method, path, given, item) in zip(_ids(found, source), found, strict=True):
        raw = _readable(given, source)
        yield OpenAPIOperation(
            id,
            method.upper(),
            path,
            text(raw.get("summary")) or text(item.get("summary")),
            text(raw.get("description")) or text(item.get("description")),
            raw.get("deprecated") is True,
            given,
            item,
            source,
            schemas,
        )


def _found(source: RawDocument) -> Iterator[tuple[str, str, Json, Json]]:
    count = 0
    for path, given in source.part(source.root.get("paths"), source.name, "paths").items():
        if path.startswith("x-"):
            continue
        item = source.whole(given, source.name, f"paths[{shown(path)}]")
        for method in [word for word in item if word in _METHODS]:
            count += 1
            if count > OPERATION_LIMIT:
                refuse(source.name, f"it has more than {OPERATION_LIMIT} operations")
            yield method, path, mapping(item[method], source.name, f"{method.upper()} {shown(path)}"), item


def _readable(given: Json, source: RawDocument) -> Json:
    """Return an operation as far as it can be read: whatever is wrong with it is told when it is used."""
    try:
        return source.whole(given, source.name, "the operation")
    except ToolDefinitionError:
        return {}


def _ids(found: list[tuple[str, str, Json, Json]], source: RawDocument) -> list[str]:
    """Give every operation an id of its own, the same for the same document."""
    given = [_readable(raw, source).get("operationId") for _, _, raw, _ in found]
    said = ["" if fault_of_name(id) else str(id) for id in given]
    taken = {id for id, count in Counter(said).items() if id and count == 1}
    unique, numbers = frozenset(taken), Counter[str]()
    return [
        id if id in unique else _slug(f"{method}{path}", taken, numbers)
        for id, (method, path, _, _) in zip(said, found, strict=True)
    ]


def _slug(words: str, taken: set[str], numbers: Counter[str]) -> str:
    slug = name = re.sub(r"[^A-Za-z0-9]+", "_", words)[:_SLUG].strip("_")
    while name in taken:
        numbers[slug] += 1
        name = f"{slug}_{numbers[slug] + 1}"
    taken.add(name)
    return name


def _output_schema(raw: Json, source: RawDocument, schemas: Schemas, where: str) -> Json | None:
    responses = source.part(raw.get("responses"), where, "responses")
    shapes = [
        _shape(status, source.part(given, where, "a response"), source, schemas, where)
        for status, given in responses.items()
        if _SUCCESS.fullmatch(status)
    ]
    options = [shape.schema for shape in shapes]
    if all(option is _TEXT or option is _NULL for option in options) or any(option in (True, {}) for option in options):
        return None
    distinct = [option for index, option in enumerate(options) if option not in options[:index]]
    schema = as_mapping(distinct[0]) if len(distinct) == 1 else {"anyOf": distinct}
    return schemas.complete(schema, [use for shape in shapes for use in shape.uses], where, is_input=False)


def _shape(status: str, response: Json, source: RawDocument, schemas: Schemas, where: str) -> Converted:
    """Return the schema of one answer; of what is not JSON, what its text will be."""
    content = source.part(response.get("content"), where, "content")
    for media, given in content.items():
        if is_json(media) or base_of(media) in _ANY_MEDIA:
            details = source.part(given, where, "content")
            return schemas.convert(details.get("schema", {}), where, is_input=False)
    if content:
        return Converted(_TEXT)
    return Converted(_NULL if status in _EMPTY else {})


def server_address(server: Json, where: str) -> str:
    """Return the address of a server, variables filled in with their defaults."""
    variables = mapping(server.get("variables"), where, "variables")
    defaults = {name: text(mapping(each, where, "a variable").get("default")) for name, each in variables.items()}
    return re.sub(r"\{([^{}]*)\}", lambda found: defaults.get(found[1], found[0]), text(server.get("url")))
