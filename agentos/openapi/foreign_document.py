"""The document of an OpenAPI pack: found, read, and made harmless, since others have written it."""

import asyncio
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs

from agentos.errors import ManifestError, Problem, ToolDefinitionError
from agentos.model.pack_context import PackContext
from agentos.openapi.document import OpenAPIDocument, document_of, server_address
from agentos.openapi.document_text import SIZE_LIMIT
from agentos.openapi.pack_options import METHOD_EFFECTS, Auth, Options
from agentos.openapi.raw_document import RawDocument, read_document
from agentos.schema.build import Json
from agentos.tools.lint.findings import hidden_characters
from agentos.web import WebClient, WebError, WebPolicy, parse_url

_METHODS = (*METHOD_EFFECTS, "TRACE")
TEXT_LIMITS = {"description": 4_000, "summary": 300, "title": 300}
"""How many characters of the document's texts are kept."""


@attrs.frozen
class ForeignDocument:
    """A document that was read: its operations, where it came from, and the server that it names."""

    document: OpenAPIDocument
    url: str | None
    server: str | None
    hides: bool
    """Whether hidden characters are left in it, where taking them out would change what it says."""
    skipped: list[str]
    """Why parts of it were taken out."""


async def read_foreign_document(options: Options, context: PackContext, origin: str) -> ForeignDocument:
    """Read the document that the options name: an address, a file, or the document itself."""
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


def _parsed(given: Any, url: str | None, options: Options) -> ForeignDocument:
    source = read_document(given)
    for root in source.roots():
        _clean(root)
    _keep_apart(source.root, options.auth)
    skipped = list(_prune(source))
    servers = source.root.get("servers")
    first = servers[0] if isinstance(servers, list) and servers and isinstance(servers[0], dict) else None
    server = None if first is None else server_address(first, "servers")
    hides = any(hidden_characters(root) for root in source.roots())
    return ForeignDocument(document_of(source), url, server, hides, skipped)


def _prune(source: RawDocument) -> Iterator[str]:
    """Take out what can't be read at all, so that the rest can be, and say why."""
    paths = source.follow(source.root.get("paths"), source.name)
    if not isinstance(paths, dict):
        return
    for path, given in list(paths.items()):
        place = path if path.isprintable() else ascii(path)
        try:
            item = source.whole(given, place, "the path")
        except ToolDefinitionError as error:
            del paths[path]
            yield str(error)
            continue
        odd = [word for word in item if word.upper() in _METHODS and not isinstance(item[word], dict | None)]
        yield from (f"{method.upper()} {place}: expected a mapping" for method in odd)
        paths[path] = {word: value for word, value in item.items() if word not in odd}


def _clean(root: Any) -> None:
    """Take hidden characters out of the document's texts, and cut them to length."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            for key in node.keys() & TEXT_LIMITS.keys():
                if isinstance(value := node[key], str):
                    node[key] = visible(value, TEXT_LIMITS[key])
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def visible(text: str, limit: int | None = None) -> str:
    """Return *text* without what people do not see and models do, and not more than *limit* of it."""
    hidden = {int(name[2:].partition(" ")[0], 16): None for name in hidden_characters(text)}
    text = text.translate(hidden) if hidden else text
    return text if limit is None or len(text) <= limit else f"{text[: limit - 1]}…"


def _keep_apart(root: Json, auths: Iterable[Auth]) -> None:
    """Say in the document where credentials go, so that no argument of a caller can take their place."""
    components = root["components"] = _or_empty(root.get("components"))
    schemes = _or_empty(components.get("securitySchemes")) if isinstance(components, dict) else None
    if isinstance(schemes, dict):
        components["securitySchemes"] = schemes
        for number, auth in enumerate(auths):
            schemes[f"agentos-{number}"] = {"type": "apiKey", "in": auth.place, "name": auth.name}


def _or_empty(value: Any) -> Any:
    return {} if value is None else value
