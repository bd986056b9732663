"""An OpenAPI document as a pack: one tool for each operation, sent by guarded HTTP, credentials by reference.

    {"package": "openapi", "identifier": "petstore", "options": {"openapi": "./petstore.yaml", "server": "https://..."}}

The document is foreign: its texts are cleaned and bounded, references out of it are not followed, and an operation that
can't be used is left out and reported while the others work. What a server is sent, and which server, is the
operator's to say.
"""

import asyncio
import functools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from agentos.access.pins import FOREIGN
from agentos.errors import AgentOSError, ManifestError, Problem, ToolDefinitionError
from agentos.model.descriptor import Descriptor, SecretRequirement
from agentos.model.extension_pack import ExtensionPack
from agentos.model.pack_context import PackContext
from agentos.openapi.api_server import Api, base_of_api
from agentos.openapi.document import OpenAPIDocument, OpenAPIOperation
from agentos.openapi.foreign_document import read_foreign_document, visible
from agentos.openapi.left_out import left_out
from agentos.openapi.pack_options import METHOD_EFFECTS, Auth, Options, check_names, read_options
from agentos.openapi.projection import ProjectedTool, project
from agentos.schema.build import Json
from agentos.tools.lint.findings import hidden_characters
from agentos.tools.tool import PUBLIC
from agentos.tools.tool_context import ToolContext

__all__ = ["create_extension_pack"]

SCHEMA_LIMIT = 250_000
"""How many characters of JSON the schema of an operation may have."""
PRIORITY = -1
"""The rank of its tools unless the entry says another: the names of a foreign document take no pack's place."""
_REPORTED = 20
_REASON = 300
_GRACE = 5.0
"""Seconds that a tool's own limit is beyond that of its request, which tells more."""


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
                skipped.append(visible(why, _REASON))
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
        is_checkable = len(json.dumps(operation.output_schema)) <= SCHEMA_LIMIT
        return project(
            operation,
            owner=self.owner,
            effect=effect,
            required_access=self._access(operation),
            name=f"{self.options.prefix}{operation.id.replace(':', '_')}",
            send=functools.partial(self.api.send, base),
            dry_run=None if effect == "read" else functools.partial(_preview, operation, base),
            timeout=self.options.timeout + _GRACE,
            check_output=self.options.check_output if is_checkable else "off",
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
    if request.body_shown is not None:
        shown["body"] = visible(request.body_shown)
    return shown


async def create_extension_pack(context: PackContext) -> ExtensionPack:
    """Make a pack of the OpenAPI document that the entry's options name."""
    entry = context.manifest_entry
    label = entry.label if entry is not None else "openapi"
    origin = f"pack {label!r}"
    options = read_options(context.options, origin)
    read = await read_foreign_document(options, context, origin)
    document = read.document
    check_names(options, document, origin)
    name = (entry.identifier if entry is not None else None) or _name_of(document.title)
    api = Api(
        base_of_api(options, read.server, read.url, origin), None if options.server else read.server or "/", options
    )
    skipped = [visible(why, _REASON) for why in read.skipped]
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
        check=functools.partial(left_out, label, skipped),
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
