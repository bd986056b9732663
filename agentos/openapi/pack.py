"""An OpenAPI document as a pack: one tool for each operation, sent by guarded HTTP, credentials by reference.

    {"package": "openapi", "identifier": "petstore", "options": {"openapi": "./petstore.yaml", "server": "https://..."}}

The document is foreign: its texts are cleaned and bounded, references out of it are not followed, and an operation that
can't be used is left out and reported while the others work. What a server is sent, and which server, is the
operator's to say.
"""

import asyncio
import base64
import functools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlencode, urljoin

import attrs

from agentos.access.pins import FOREIGN
from agentos.errors import AgentOSError, ManifestError, Problem, SecretError, ToolDefinitionError
from agentos.model.descriptor import Descriptor, SecretRequirement
from agentos.model.extension_pack import ExtensionPack
from agentos.model.field_checks import did_you_mean
from agentos.model.pack_context import PackContext
from agentos.openapi.document import OpenAPIDocument, OpenAPIOperation, Request, _address
from agentos.openapi.projection import ProjectedTool, project
from agentos.openapi.raw_document import SIZE_LIMIT, RawDocument, read_document
from agentos.schema.validation import BadArguments, Checker
from agentos.tools.lint.findings import hidden_characters
from agentos.tools.tool import EFFECTS, PUBLIC, Effect
from agentos.tools.tool_context import ToolContext
from agentos.web import WebClient, WebError, WebPolicy, WebResponse, parse_url

__all__ = ["create_extension_pack"]

Json = dict[str, Any]
Place = Literal["header", "query", "cookie"]

METHOD_EFFECTS: Mapping[str, Effect] = {
    **dict.fromkeys(("GET", "HEAD", "OPTIONS"), "read"),
    **dict.fromkeys(("POST", "PUT", "PATCH"), "mutate"),
    "DELETE": "destructive",
}
"""What a method does unless `effects` says otherwise."""
_METHODS = (*METHOD_EFFECTS, "TRACE")
TEXT_LIMITS = {"description": 4_000, "summary": 300, "title": 300}
"""How many characters of the document's texts are kept."""
SCHEMA_LIMIT = 250_000
"""How many characters of JSON the schema of an operation may have."""
PRIORITY = -1
"""The rank of its tools unless the entry says another: the names of a foreign document take no pack's place."""
_REPORTED = 20
_REASON = 300
_GRACE = 5.0
"""Seconds that a tool's own limit is beyond that of its request, which tells more."""

_STRINGS = {"type": "array", "items": {"type": "string", "minLength": 1}}
_AUTH = {
    "type": "object",
    "additionalProperties": False,
    "required": ["type", "secret"],
    "properties": {
        "type": {"enum": ["bearer", "header", "query", "basic", "cookie"]},
        "name": {"type": "string", "pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$"},
        "secret": {"type": "string", "minLength": 1},
        "username": {"type": "string", "pattern": "^[ -9;-~]+$"},
    },
}
_OPTIONS = {
    "type": "object",
    "additionalProperties": False,
    "required": ["openapi"],
    "properties": {
        "openapi": {"type": ["string", "object"], "minLength": 1, "maxLength": 2_000},
        "server": {"type": "string", "minLength": 1},
        "effects": {"type": "object", "additionalProperties": {"enum": list(EFFECTS)}},
        "include": {**_STRINGS, "minItems": 1},
        "exclude": _STRINGS,
        "requiredAccess": {"anyOf": [{"const": "PUBLIC"}, {**_STRINGS, "minItems": 1}]},
        "auth": {"anyOf": [_AUTH, {"type": "array", "items": _AUTH, "maxItems": 10}]},
        "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 3_600, "default": 30},
        "allowPrivate": {"anyOf": [{"type": "boolean"}, _STRINGS]},
        "redirects": {"type": "integer", "minimum": 0, "maximum": 10, "default": 0},
        "prefix": {"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,40}$"},
        "checkOutput": {"type": "boolean", "default": True},
    },
}


# -- options -----------------------------------------------------------------------------------------------------


@attrs.frozen
class Auth:
    """A credential: where it goes, and the secret that it is."""

    type: str
    secret: str
    name: str = "Authorization"
    username: str | None = None

    @property
    def place(self) -> Place:
        """Return which part of a request carries it."""
        return "query" if self.type == "query" else "cookie" if self.type == "cookie" else "header"

    def value(self, read: Callable[[str], str | None]) -> str:
        """Return what is sent, with the secret's value of now."""
        secret = (read(self.secret) or "").strip()
        if not secret:
            raise SecretError(f"the secret {self.secret!r} has no value any more; set it and call again")
        if self.type == "basic":
            pair = secret if self.username is None else f"{self.username}:{secret}"
            pair = pair if ":" in pair else f"{pair}:"
            return f"Basic {base64.b64encode(pair.encode()).decode()}"
        return f"Bearer {secret}" if self.type == "bearer" else secret


@attrs.frozen(kw_only=True)
class Options:
    """What an operator says of a document, checked."""

    openapi: str | Json = attrs.field(repr=False)
    server: str | None = None
    effects: Mapping[str, Effect] = attrs.field(factory=dict)
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    required_access: tuple[str, ...] | None = None
    is_public: bool = False
    auth: tuple[Auth, ...] = ()
    timeout: float = 30.0
    allow_private: tuple[str, ...] | bool = False
    redirects: int = 0
    prefix: str = ""
    check_output: bool = True

    def takes(self, operation: OpenAPIOperation) -> bool:
        """Tell whether the operator wants an operation."""
        return _fits_any(operation, self.include) and not _fits_any(operation, self.exclude)

    def effect_of(self, operation: OpenAPIOperation) -> Effect | None:
        """Return what an operation does: as its own name says, else the first pattern that fits, else its method."""
        if operation.id in self.effects:
            return self.effects[operation.id]
        said = (effect for pattern, effect in self.effects.items() if _fits_any(operation, [pattern]))
        return next(said, METHOD_EFFECTS.get(operation.method))

    def private_with(self, host: str) -> tuple[str, ...]:
        """Return what may be reached although it is private, if *host* is what the operator named."""
        if isinstance(self.allow_private, bool):
            return (f"[{host}]" if ":" in host else host,) if self.allow_private else ()
        return self.allow_private


def _fits_any(operation: OpenAPIOperation, patterns: Iterable[str]) -> bool:
    """Tell whether an operation is meant, by its id or as `GET /pets/{id}`; patterns of either are known too."""
    names = (operation.id, str(operation))
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns for name in names)


@functools.cache
def _checker() -> Checker:
    return Checker(_OPTIONS, "the options of an OpenAPI pack")


def _read_options(given: Mapping[str, Any], origin: str) -> Options:
    try:
        said = _checker().arguments(given)
    except BadArguments as error:
        found = [Problem(one.path.replace("$", "options", 1), one.message) for one in error.problems]
        raise ManifestError(origin, found or [Problem("options", str(error))]) from None
    auths = said.get("auth", [])
    auths = auths if isinstance(auths, list) else [auths]
    if problems := [Problem("options.auth", fault) for auth in auths if (fault := _fault_of_auth(auth))]:
        raise ManifestError(origin, problems)
    fields = {
        re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", key): tuple(value) if isinstance(value, list) else value
        for key, value in said.items()
    }
    access = fields.get("required_access")
    fields |= {"auth": tuple(Auth(**auth) for auth in auths), "is_public": access == "PUBLIC"}
    return Options(**fields | {"required_access": access if isinstance(access, tuple) else None})


def _fault_of_auth(auth: Json) -> str | None:
    needs_name = auth["type"] in ("header", "query", "cookie")
    if needs_name != ("name" in auth):
        return f"the type {auth['type']} {'needs a' if needs_name else 'takes no'} `name`"
    if "username" in auth and auth["type"] != "basic":
        return "only the type basic takes a `username`"
    return None


# -- the document ------------------------------------------------------------------------------------------------


@attrs.frozen
class _Reading:
    """A document that was read: its operations, where it came from, and the server that it names."""

    document: OpenAPIDocument
    url: str | None
    server: str | None
    hides: bool
    """Whether hidden characters are left in it, where taking them out would change what it says."""
    skipped: list[str]
    """Why parts of it were taken out."""


async def _read_document(options: Options, context: PackContext, origin: str) -> _Reading:
    given: Any = options.openapi
    url = given if isinstance(given, str) and "://" in given else None
    if url is not None:
        given = await _fetched(url, options)
    elif isinstance(given, str):
        given = _file(given, context, origin)
    return await asyncio.to_thread(_parsed, given, url, options)  # large ones take seconds as YAML


async def _fetched(url: str, options: Options) -> bytes:
    target = parse_url(url)
    host, usual = target.host, WebPolicy()
    policy = attrs.evolve(
        usual,
        allow_private=options.private_with(host),
        ports=(*usual.ports, target.port),
        max_bytes=SIZE_LIMIT,
        timeout=options.timeout,
    )
    async with WebClient(policy) as client:
        response = await client.request("GET", url, headers={"Accept": "application/json, application/yaml, */*;q=0.5"})
    if response.status != 200:  # noqa: PLR2004
        raise WebError("bad_response", f"{host} answered {response.status} when it was asked for the document", host)
    return response.body


def _file(given: str, context: PackContext, origin: str) -> Path:
    entry = context.manifest_entry
    base = entry.base_path if entry is not None else None
    path = (base or Path.cwd()) / given
    if not os.path.isfile(path):  # noqa: PTH113 - unlike Path.is_file it takes any text
        raise ManifestError(origin, [Problem("options.openapi", f"expected a file or an address, got {str(path)!r}")])
    return path


def _parsed(given: Any, url: str | None, options: Options) -> _Reading:
    source = read_document(given)
    root = source.root
    _clean(root)
    _keep_apart(root, options.auth)
    skipped = list(_prune(source))
    servers = root.get("servers")
    first = servers[0] if isinstance(servers, list) and servers and isinstance(servers[0], dict) else None
    server = None if first is None else _address(first, "servers")
    return _Reading(OpenAPIDocument.read(root), url, server, bool(hidden_characters(root)), skipped)


def _prune(source: RawDocument) -> Iterator[str]:
    """Take out what can't be read at all, so that the rest can be, and say why."""
    paths = source.root.get("paths")
    if not isinstance(paths, dict):
        return
    for path, given in list(paths.items()):
        place = path if path.isprintable() else ascii(path)
        try:
            item = source.part(given, place, "the path")
            for method in [word for word in item if word.upper() in _METHODS]:
                if item[method] is not None and not isinstance(item[method], dict):
                    del item[method]
                    yield f"{method.upper()} {place}: expected a mapping"
        except ToolDefinitionError as error:
            del paths[path]
            yield str(error)


def _clean(root: Json) -> None:
    """Take hidden characters out of the document's texts, and cut them to length."""
    waiting: list[Any] = [root]
    while waiting:
        node = waiting.pop()
        for key, value in node.items() if isinstance(node, dict) else ():
            if key in TEXT_LIMITS and isinstance(value, str):
                node[key] = _visible(value, TEXT_LIMITS[key])
        waiting += [
            inner for inner in (node.values() if isinstance(node, dict) else node) if isinstance(inner, dict | list)
        ]


def _visible(text: str, limit: int | None = None) -> str:
    """Return *text* without what people do not see and models do, and not more than *limit* of it."""
    hidden = {int(name[2:].partition(" ")[0], 16): None for name in hidden_characters(text)}
    text = text.translate(hidden) if hidden else text
    return text if limit is None or len(text) <= limit else f"{text[: limit - 1]}…"


def _keep_apart(root: Json, auths: Iterable[Auth]) -> None:
    """Say in the document where credentials go, so that no argument of a caller can take their place."""
    components = root.setdefault("components", {})
    schemes = components.setdefault("securitySchemes", {}) if isinstance(components, dict) else None
    if isinstance(schemes, dict):
        for number, auth in enumerate(auths):
            schemes[f"agentos-{number}"] = {"type": "apiKey", "in": auth.place, "name": auth.name}


# -- the server --------------------------------------------------------------------------------------------------


def _base_of(options: Options, read: _Reading, origin: str) -> str:
    """Return the address that paths are put after: what the operator says, else what the document does."""
    said = options.server or read.server
    if options.server is None and read.url is not None:
        said = urljoin(read.url, said or "/")  # as the standard has it
    try:
        base = _address_of(said or "")
    except WebError as error:
        where = "the server that the document names" if options.server is None else "the address"
        message = f"{error}; say `server`, such as https://api.example.org/v1 ({where} can't be used)"
        raise ManifestError(origin, [Problem("options.server", message)]) from None
    if options.auth and options.server is None and read.url is not None and not _is_same_origin(base, read.url):
        message = (
            f"say `server`: the document was fetched from {parse_url(read.url).host} and names a server elsewhere, "
            "which would get the credentials"
        )
        raise ManifestError(origin, [Problem("options.server", message)])
    return base


def _address_of(server: str) -> str:
    target = parse_url(server)
    if "?" in target.path or "#" in server:
        raise WebError("refused", f"{target.host} is refused: expected an address without ? and #", target.host)
    return str(target).rstrip("/")


def _is_same_origin(one: str, other: str) -> bool:
    return parse_url(one).origin == parse_url(other).origin


class Api:
    """The server of a pack: sends what operations write, with the credentials of now."""

    def __init__(self, base: str, named: str | None, options: Options) -> None:
        target = parse_url(base)
        self.base = base
        self._named = named
        """What the document calls its server; None if the operator says which it is."""
        self._auth = options.auth
        self._client = WebClient(
            WebPolicy(
                allow=(f"{target.scheme}://{target.authority}",),
                allow_private=options.private_with(target.host),
                timeout=options.timeout,
                max_redirects=options.redirects,
            )
        )

    def base_for(self, operation: OpenAPIOperation) -> str:
        """Return the address for one operation, which may have a server of its own at the same host."""
        own = operation.servers[0] if self._named is not None and operation.servers else self._named
        if own is None or own == self._named:
            return self.base
        base = _address_of(own)
        if not _is_same_origin(base, self.base):
            raise ToolDefinitionError(
                str(operation), "", f"it has a server of its own, {parse_url(base).host}; say `server` for all"
            )
        return base

    async def send(self, base: str, request: Request, context: ToolContext) -> WebResponse:
        """Send a request with its credentials; what a server repeats of them is taken out of its answer."""
        values = [(auth, auth.value(context.secret)) for auth in self._auth]
        response = await self._client.request(
            request.method,
            _with_query(f"{base}{request.target}", values),
            headers=_with_headers(request.header_lines, values),
            content=request.body,
            max_redirects=None if request.method in ("GET", "HEAD") else 0,
        )
        packed = [value.partition(" ")[2] for auth, value in values if auth.type == "basic"]
        return _scrubbed(response, packed)

    async def close(self) -> None:
        """Close the connections; a request after that opens new ones."""
        await self._client.aclose()


def _with_query(url: str, values: Iterable[tuple[Auth, str]]) -> str:
    pairs = [(auth.name, value) for auth, value in values if auth.place == "query"]
    return f"{url}{'&' if '?' in url else '?'}{urlencode(pairs, quote_via=quote)}" if pairs else url


def _with_headers(lines: Iterable[tuple[str, str]], values: Iterable[tuple[Auth, str]]) -> list[tuple[str, str]]:
    values = list(values)
    cookies = [f"{auth.name}={value}" for auth, value in values if auth.place == "cookie"]
    cookies += [value for name, value in lines if name == "Cookie"]
    made = [(name, value) for name, value in lines if name != "Cookie"]
    made += [(auth.name, value) for auth, value in values if auth.place == "header"]
    return [*made, ("Cookie", "; ".join(cookies))] if cookies else made


def _scrubbed(response: WebResponse, packed: Iterable[str]) -> WebResponse:
    """Take user and password, packed together, out of an answer: as a whole they are no secret that others know of."""
    body = response.body
    for text in packed:
        core = text.rstrip("=")
        for form in (core, core.replace("/", "\\/"), quote(core, safe="")):
            body = body.replace(form.encode(), b"***")
    return response if body is response.body else attrs.evolve(response, body=body)


# -- the tools ---------------------------------------------------------------------------------------------------


@attrs.frozen
class _Projection:
    """What every operation is projected with."""

    owner: str
    options: Options
    api: Api
    hides: bool

    def tools(self, document: OpenAPIDocument, skipped: list[str]) -> Iterator[ProjectedTool]:
        """Yield the tools of all operations that are wanted and can be used; note why others are not."""
        names: set[str] = set()
        for operation in document.operations().values():
            if not self.options.takes(operation):
                continue
            try:
                made = self.tool(operation)
                if made.name in names:
                    raise ToolDefinitionError(str(operation), "", f"another operation is called {made.name!r} too")
            except (AgentOSError, RecursionError) as error:
                why = " ".join(str(error).split())
                why = why if why.startswith(str(operation)) else f"{operation}: {why}"
                skipped.append(_visible(why, _REASON))
            else:
                names.add(made.name)
                yield made

    def tool(self, operation: OpenAPIOperation) -> ProjectedTool:
        """Return the tool of one operation; raise if it can't be used."""
        effect = self.options.effect_of(operation)
        if operation.method not in METHOD_EFFECTS or effect is None:
            raise ToolDefinitionError(str(operation), "", f"{operation.method} is not sent")
        self._check_schema(operation)
        base = self.api.base_for(operation)
        checks_output = self.options.check_output and len(json.dumps(operation.output_schema)) <= SCHEMA_LIMIT
        return project(
            operation,
            owner=self.owner,
            effect=effect,
            required_access=self._access(operation),
            name=f"{self.options.prefix}{operation.id.replace(':', '_')}",
            send=functools.partial(self.api.send, base),
            dry_run=None if effect == "read" else functools.partial(_preview, operation, base),
            timeout=self.options.timeout + _GRACE,
            **({} if checks_output else {"output_schema": None}),
        )

    def _check_schema(self, operation: OpenAPIOperation) -> None:
        schema = operation.input_schema
        if (size := len(json.dumps(schema))) > SCHEMA_LIMIT:
            raise ToolDefinitionError(str(operation), "", f"its arguments take {size} characters to describe")
        shown = (schema, operation.output_schema) if self.hides else ()
        if hidden := hidden_characters(list(shown)):
            raise ToolDefinitionError(str(operation), "", f"it has hidden characters: {', '.join(hidden[:5])}")

    def _access(self, operation: OpenAPIOperation) -> Any:
        """Return who may call it beside whom the document says: as the operator says, else who may use this pack."""
        if self.options.required_access is not None:
            return self.options.required_access
        if operation.access is not None:
            return None
        return PUBLIC if self.options.is_public else (f"openapi:{self.owner}",)


async def _preview(operation: OpenAPIOperation, base: str, arguments: Any, context: ToolContext) -> Json:  # noqa: ARG001
    """Say what would be sent; credentials are not part of it."""
    request = operation.request(arguments)
    shown: Json = {"request": f"{request.method} {base}{request.target}"}
    if request.body is not None:
        shown["body"] = _visible(request.body.decode("utf-8", "replace"))
    return shown


def _check_names(options: Options, document: OpenAPIDocument, origin: str) -> None:
    """Refuse unknown names of operations: a slip there would leave in what was meant to be left out."""
    known = dict.fromkeys(name for one in document.operations().values() for name in (one.id, str(one)))
    said = {"effects": options.effects, "include": options.include, "exclude": options.exclude}
    problems = [
        Problem(f"options.{option}", f"there is no operation {name!r}{did_you_mean(name, known)}")
        for option, names in said.items()
        for name in names
        if not set(name) & set("*?[") and name not in known
    ]
    if problems:
        raise ManifestError(origin, problems)


async def create_extension_pack(context: PackContext) -> ExtensionPack:
    """Make a pack of the OpenAPI document that the entry's options name."""
    entry = context.manifest_entry
    label = entry.label if entry is not None else "openapi"
    origin = f"pack {label!r}"
    options = _read_options(context.options, origin)
    read = await _read_document(options, context, origin)
    document = read.document
    _check_names(options, document, origin)
    name = (entry.identifier if entry is not None else None) or _name_of(document.title)
    api = Api(_base_of(options, read, origin), None if options.server else read.server or "/", options)
    skipped = [_visible(why, _REASON) for why in read.skipped]
    projection = _Projection(name, options, api, read.hides)
    tools = await asyncio.to_thread(lambda: list(projection.tools(document, skipped)))  # hundreds take most of a second
    if not tools:
        first = f": {skipped[0]}" if skipped else "; none is there, or none is included"
        raise ManifestError(origin, [Problem("options.openapi", f"no operation of it can be used{first}")])
    for why in skipped[:_REPORTED]:
        context.logger.warning("an operation is left out: %s", why)
    priority = PRIORITY if entry is None or entry.priority is None else entry.priority
    return ExtensionPack(
        name,
        _version_of(document.version),
        [_descriptor(tool, options.auth, priority, is_foreign=read.url is not None) for tool in tools],
        description=_description(document, api.base, len(tools), skipped),
        on_deactivate=api.close,
    )


def _descriptor(tool: ProjectedTool, auths: Iterable[Auth], priority: int, *, is_foreign: bool) -> Descriptor[Any]:
    """Return the descriptor of a tool; of a document that was fetched, it is pinned whatever is said of packs."""
    secrets = [SecretRequirement(id) for id in dict.fromkeys(auth.secret for auth in auths)]
    metadata = {FOREIGN: is_foreign}
    return Descriptor("tool", tool.name, tool, priority=priority, required_secrets=secrets, metadata=metadata)


def _name_of(title: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", title.lower())[:60].strip("-")
    return name if name and name != "builtin" else "openapi"


def _version_of(text: str) -> str | None:
    """Return the document's version if it is one that others can compare."""
    from packaging.version import InvalidVersion, Version

    try:
        return str(Version(text)) if len(text) < _LONG else None
    except InvalidVersion:
        return None


_LONG = 100


def _description(document: OpenAPIDocument, base: str, count: int, skipped: list[str]) -> str:
    title = " ".join(document.title.split()) or "An HTTP API"
    text = f"{title}: {count} operation{'' if count == 1 else 's'} of {base}."
    if skipped:
        more = f"; and {len(skipped) - _REPORTED} more" if len(skipped) > _REPORTED else ""
        text += f" Left out: {'; '.join(skipped[:_REPORTED])}{more}."
    return text
