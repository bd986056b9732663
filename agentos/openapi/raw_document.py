"""An OpenAPI document as plain data: its version, and its references followed in it and in the files beside it."""

import functools
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from agentos.openapi.document_parts import items, mapping, place_of, refuse, shown
from agentos.openapi.document_text import Copy, ReadingLimits, parse, read_file
from agentos.openapi.neighbours import Neighbours, read_neighbours, reason_to_refuse
from agentos.openapi.swagger import add_parts_of_3
from agentos.schema.build import Json
from agentos.schema.explain import noun_of
from agentos.schema.references import pointed

_VERSION = re.compile(r"3\.([01])(\.[0-9]+)?(-[\w.]+)?")
_FILE = re.compile(r"[^\n{]*\.(json|ya?ml)\s*", re.IGNORECASE)


@attrs.frozen(eq=False)
class RawDocument:
    """A document that was read."""

    name: str
    root: Json = attrs.field(repr=False)
    is_30: bool
    """In 3.0 and before nothing counts that stands beside a reference."""
    is_swagger: bool = False
    """It is Swagger 2.0, whose operations are converted when they are read."""
    neighbours: Neighbours | None = attrs.field(default=None, repr=False)
    """The files beside it; None if it did not come from a file."""

    def follow(self, node: Any, where: str) -> Any:
        """Return what *node* is, or what its references lead to."""
        seen: set[str] = set()
        while isinstance(node, dict) and isinstance(reference := node.get("$ref"), str):
            if reference in seen:
                refuse(where, f"the reference {shown(reference)} leads back to itself")
            seen.add(reference)
            node = self.target(reference, where)
        if isinstance(node, dict) and "$ref" in node:
            refuse(where, f"expected a reference as text, got {noun_of(node['$ref'])}")
        return node

    def target(self, reference: str, where: str) -> Any:
        """Return what a reference points to; one that leads out of the document and its folder is refused."""
        file, _, pointer = reference.partition("#")
        roots = {} if self.neighbours is None else self.neighbours.roots
        if file in roots and not pointer:
            return roots[file]
        if (file and file not in roots) or not pointer.startswith("/"):
            refuse(where, reason_to_refuse(file, reference, self.neighbours))
        found = pointed(roots[file] if file else self.root, f"#{pointer}")
        if found is None:
            refuse(where, f"refers to {shown(reference)}, which is not in the document")
        return found

    def roots(self) -> Iterator[Any]:
        """Yield the document itself, and what each file beside it holds."""
        yield self.root
        yield from () if self.neighbours is None else self.neighbours.roots.values()

    @property
    def schema_home(self) -> str:
        """Return where the schemas with names of their own are."""
        return "#/definitions/" if self.is_swagger else "#/components/schemas/"

    @functools.cached_property
    def credentials(self) -> frozenset[tuple[str, str]]:
        """Return the places of API keys, such as ("header", "x-api-key"): whoever sends a request fills them in."""
        components = self.whole(self.root.get("components"), self.name, "components")
        schemes = self.whole(components.get("securitySchemes"), self.name, "securitySchemes")
        found = [self.part(each, self.name, "a security scheme") for each in schemes.values()]
        return frozenset(place_of(str(one.get("in")), str(one.get("name"))) for one in found if "name" in one)

    def part(self, node: Any, where: str, what: str) -> Json:
        """Return the mapping that *node* is or refers to."""
        return mapping(self.follow(node, where), where, what)

    def whole(self, node: Any, where: str, what: str) -> Json:
        """Return the mapping that *node* is; what stands beside a reference counts before what it leads to."""
        found = self.part(node, where, what)
        if found is node or not isinstance(node, dict):
            return found
        return {**found, **{word: value for word, value in node.items() if word != "$ref"}}

    def listed(self, node: Any, where: str, what: str) -> list[Any]:
        """Return the list that *node* is or refers to."""
        return items(self.follow(node, where), where, what)


def read_document(given: Any) -> RawDocument:
    """Read a mapping, the text of a document as JSON or YAML, or a file of it with those beside it."""
    name = f"OpenAPI document {os.fspath(given)}" if isinstance(given, os.PathLike) else "OpenAPI document"
    limits = ReadingLimits(name)
    root = mapping(_loaded(given, limits), name, "the document")
    if not root:
        refuse(name, "it is empty")
    is_swagger, is_30 = _version(root, name)
    beside = read_neighbours(Path(given), root, limits) if isinstance(given, os.PathLike) else None
    if is_swagger:
        add_parts_of_3(root, name)
    return RawDocument(name, root, is_30, is_swagger, beside)


def _version(root: Json, name: str) -> tuple[bool, bool]:
    """Tell whether a document is Swagger 2.0, and whether it is that or 3.0; refuse other versions."""
    if "openapi" not in root and str(root.get("swagger")) in ("2", "2.0"):
        return True, True
    said = str(root.get("openapi", root.get("swagger", "")))
    version = _VERSION.fullmatch(said)
    if version is None:
        refuse(name, f"expected `openapi: 3.0.x` or `3.1.x`, or `swagger: 2.0`, got {shown(said)}")
    return False, version[1] == "0"


def _loaded(given: Any, limits: ReadingLimits) -> Any:
    if isinstance(given, str) and _FILE.fullmatch(given):  # never opened: the text may be foreign
        refuse(limits.name, f"expected its text, got what looks like a file; write Path({shown(given)})")
    try:
        if isinstance(given, os.PathLike):
            return read_file(Path(given), limits)
        if isinstance(given, str | bytes):
            return parse(given, limits)
    except ValueError as error:
        refuse(limits.name, str(error))
    if not isinstance(given, Mapping):
        kind = type(given).__name__
        refuse(limits.name, f"expected a mapping, its text as JSON or YAML, or a Path, got {kind}")
    return Copy(limits).of(given, 0)
