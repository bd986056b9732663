"""An OpenAPI document as plain data: read, bounded, and its references followed inside of it alone."""

import datetime as dt
import functools
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import attrs

from agentos.errors import ToolDefinitionError
from agentos.model.parsing import _parse_json, _parse_yaml
from agentos.schema.build import Json
from agentos.schema.explain import clip, noun_of
from agentos.schema.references import pointed
from agentos.schema.validation import to_plain_json

SIZE_LIMIT = 16 * 1024 * 1024
"""How many bytes of text a document may have."""
NODE_LIMIT = 2_000_000
"""How many values; in YAML a few lines can stand for any number of them."""
DEPTH_LIMIT = 100
_VERSION = re.compile(r"3\.([01])(\.[0-9]+)?(-[\w.]+)?")
_FILE = re.compile(r"[^\n{]*\.(json|ya?ml)\s*", re.IGNORECASE)


def refuse(where: str, message: str, part: str = "") -> NoReturn:
    """Refuse a document, or an operation of it; *part* is the name of what is wrong in it."""
    raise ToolDefinitionError(where, clip(part) if part.isprintable() else shown(part), message)


def shown(value: Any) -> str:
    """Return foreign text for a message: on one line, and not too much of it."""
    return clip(repr(value))


def mapping(value: Any, where: str, what: str) -> Json:
    """Return *value* if it is a mapping; nothing is an empty one."""
    if value is not None and not isinstance(value, dict):
        refuse(where, f"{what}: expected a mapping, got {noun_of(value)}")
    return value or {}


def items(value: Any, where: str, what: str) -> list[Any]:
    """Return *value* if it is a list; nothing is an empty one."""
    if value is not None and not isinstance(value, list):
        refuse(where, f"{what}: expected a list, got {noun_of(value)}")
    return value or []


def text(value: Any) -> str:
    """Return *value* if it is text; anything else says nothing."""
    return value.strip() if isinstance(value, str) else ""


def place_of(place: str, name: str) -> tuple[str, str]:
    """Return where a value goes, so that the same place is equal: headers have no case."""
    return place, name.lower() if place == "header" else name


@attrs.frozen(eq=False)
class RawDocument:
    """A document that was read."""

    name: str
    root: Json = attrs.field(repr=False)
    is_30: bool
    """In 3.0 nothing counts that stands beside a reference."""

    def follow(self, node: Any, where: str) -> Any:
        """Return what *node* is, or what its references lead to."""
        seen: set[str] = set()
        while isinstance(node, dict) and isinstance(reference := node.get("$ref"), str):
            if reference in seen:
                refuse(where, f"the reference {shown(reference)} leads back to itself")
            seen.add(reference)
            node = self.target(reference, where)
        return node

    def target(self, reference: str, where: str) -> Any:
        """Return what a reference points to; one that leads out of the document is refused, and never fetched."""
        if not reference.startswith("#/"):
            refuse(
                where,
                f"refers to {shown(reference)}; only references inside of the document (#/...) are followed, so bundle "
                "it into one",
            )
        found = pointed(self.root, reference)
        if found is None:
            refuse(where, f"refers to {shown(reference)}, which is not in the document")
        return found

    @functools.cached_property
    def credentials(self) -> frozenset[tuple[str, str]]:
        """Return the places of API keys, such as ("header", "x-api-key"): whoever sends a request fills them in."""
        components = mapping(self.root.get("components"), self.name, "components")
        schemes = mapping(components.get("securitySchemes"), self.name, "securitySchemes")
        found = [self.part(each, self.name, "a security scheme") for each in schemes.values()]
        return frozenset(place_of(str(one.get("in")), str(one.get("name"))) for one in found if "name" in one)

    def part(self, node: Any, where: str, what: str) -> Json:
        """Return the mapping that *node* is or refers to."""
        return mapping(self.follow(node, where), where, what)


def read_document(given: Any) -> RawDocument:
    """Read a mapping, the text of a document as JSON or YAML, or a file of it."""
    name, data = _loaded(given)
    root = mapping(_Copy(name).of(data, 0), name, "the document")
    if not root:
        refuse(name, "it is empty")
    said = str(root.get("openapi", ""))
    version = _VERSION.fullmatch(said)
    if version is None:
        older = "; convert Swagger 2.0 to OpenAPI 3 first" if "swagger" in root else ""
        refuse(name, f"expected `openapi: 3.0.x` or `3.1.x`, got {shown(said)}{older}")
    return RawDocument(name, root, is_30=version[1] == "0")


def _loaded(given: Any) -> tuple[str, Any]:
    if isinstance(given, os.PathLike):
        name = f"OpenAPI document {os.fspath(given)}"
        return name, _parsed(_read_file(Path(given), name), name)
    name = "OpenAPI document"
    if isinstance(given, bytes):
        return name, _parsed(_decoded(given, name), name)
    if isinstance(given, str):
        if _FILE.fullmatch(given):  # never opened: the text may be foreign
            refuse(name, f"expected its text, got what looks like a file; write Path({shown(given)})")
        return name, _parsed(given, name)
    if not isinstance(given, Mapping):
        refuse(name, f"expected a mapping, its text as JSON or YAML, or a Path, got {type(given).__name__}")
    return name, given


def _read_file(path: Path, name: str) -> str:
    try:
        with path.open("rb") as file:
            return _decoded(file.read(SIZE_LIMIT + 1), name)
    except OSError as error:
        refuse(name, f"can't be read: {error.strerror or error}")


def _decoded(raw: bytes, name: str) -> str:
    if len(raw) > SIZE_LIMIT:
        refuse(name, f"larger than {SIZE_LIMIT} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        refuse(name, "expected text in UTF-8")


def _parsed(given: str, name: str) -> Any:
    if len(given) > SIZE_LIMIT:
        refuse(name, f"larger than {SIZE_LIMIT} characters")
    parse = _parse_json if given.lstrip().startswith("{") else _parse_yaml
    try:
        return parse(given)
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else " ".join(str(error).split())
        refuse(name, f"can't be parsed: {reason}")


class _Copy:
    """Copies what was read into plain JSON, within bounds; unquoted dates and numbers as keys are YAML's doing."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._left = NODE_LIMIT

    def of(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > DEPTH_LIMIT:
            refuse(self._name, f"too large: more than {NODE_LIMIT} values or {DEPTH_LIMIT} levels")
        if type(value) is str or value is None:
            return value
        if isinstance(value, Mapping):
            return {self._key(key): self.of(inner, depth + 1) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(inner, depth + 1) for inner in value]
        return self._scalar(value)

    def _key(self, key: Any) -> str:
        if isinstance(key, int) and not isinstance(key, bool):
            return str(key)
        if not isinstance(key, str):
            refuse(self._name, f"expected a string as key, got {type(key).__name__}; put {shown(key)} in quotes")
        return str.__str__(key)

    def _scalar(self, value: Any) -> Any:
        if isinstance(value, dt.date):
            return value.isoformat()
        try:
            return to_plain_json(value)
        except ValueError as error:
            refuse(self._name, str(error))
