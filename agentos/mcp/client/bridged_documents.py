"""Resources, templates and prompts of a bridged server, as the server has them: asked for when somebody wants them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mcp import Client, MCPError
from mcp_types import INVALID_PARAMS

from agentos.mcp.client.connection import ServerConnection
from agentos.mcp.client.limits import ServerLimits
from agentos.mcp.client.server_spec import ServerSpec
from agentos.mcp.client.server_text import ServerText
from agentos.mcp.client.session import ConnectionLostError

T = TypeVar("T")
Item = dict[str, Any]

_NOT_FOUND = (INVALID_PARAMS, -32002)
"""What servers of either era say of a resource that is not there."""
_MESSAGE = 2_000
_LINKS = 1_000
"""How many addresses that stood in answers are remembered, for whoever wants to read them."""


class DocumentError(Exception):
    """A server can't be asked, or answers with an error (of that code), or with what can't be used."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class BridgedDocuments:
    """What one server has to read. Nothing of it is kept but where its resources are."""

    def __init__(
        self,
        server: ServerSpec,
        limits: ServerLimits,
        text: ServerText,
        connected: Callable[[], Awaitable[ServerConnection | None]],
    ) -> None:
        self._server = server
        self._limits = limits
        self._text = text
        self._connected = connected
        self._listed: frozenset[str] = frozenset()
        self._templates: tuple[str, ...] = ()
        self._linked: dict[str, None] = {}

    # -- lists -------------------------------------------------------------------------------------------------

    async def resources(self) -> list[Item]:
        """Return the resources that the server lists and the operator lets in."""
        found = await self._list("resources", lambda client, cursor: client.list_resources(cursor=cursor))
        taken = [item for item in found if self._server.takes_resource(item["uri"])]
        self._listed = frozenset(item["uri"] for item in taken)
        return taken

    async def templates(self) -> list[Item]:
        """Return the templates of resources that the server lists and the operator lets in."""
        found = await self._list(
            "resourceTemplates", lambda client, cursor: client.list_resource_templates(cursor=cursor)
        )
        taken = [item for item in found if self._server.takes_resource(item["uriTemplate"])]
        self._templates = tuple(item["uriTemplate"] for item in taken)
        return taken

    async def prompts(self) -> list[Item]:
        """Return the prompts that the server lists and the operator lets in."""
        found = await self._list("prompts", lambda client, cursor: client.list_prompts(cursor=cursor))
        return [item for item in found if self._server.takes_prompt(item["name"])]

    async def _list(self, field: str, page_of: Callable[[Client, str | None], Awaitable[Any]]) -> list[Item]:
        capability = "prompts" if field == "prompts" else "resources"
        patience = min(self._server.timeout, self._limits.connect)

        async def gather(client: Client) -> list[Item]:
            items: list[Item] = []
            cursor: str | None = None
            for _ in range(self._limits.pages if getattr(client.server_capabilities, capability) is not None else 0):
                page = _plain(await page_of(client, cursor))
                items += page[field]
                cursor = page.get("nextCursor")
                if cursor is None or len(items) >= self._limits.tools:
                    break
            return items[: self._limits.tools]

        return [
            self._text.mask_data(item) for item in await self._ask(gather, f"the list of its {capability}", patience)
        ]

    # -- reading -----------------------------------------------------------------------------------------------

    def note_links(self, uris: list[str]) -> None:
        """Remember addresses that stood in an answer: they need not be in any list."""
        self._linked.update(dict.fromkeys(uris))
        for uri in list(self._linked)[: max(0, len(self._linked) - _LINKS)]:
            del self._linked[uri]

    async def has(self, uri: str) -> bool:
        """Tell whether a resource of that address is the server's, and let in by the operator."""
        if not self._server.takes_resource(uri):
            return False
        if uri in self._listed or uri in self._linked or any(_fits(uri, one) for one in self._templates):
            return True
        listed = [item["uri"] for item in await self.resources()]
        return uri in listed or any(_fits(uri, item["uriTemplate"]) for item in await self.templates())

    async def read(self, uri: str) -> Item | None:
        """Return what is at an address, as the server sends it; None if nothing is there."""
        try:
            found = await self._ask(lambda client: client.read_resource(uri, cache_mode="bypass"), "reading a resource")
        except DocumentError as error:
            if error.code in _NOT_FOUND:
                return None
            raise
        return {"contents": self._text.mask_data(_plain(found)["contents"]), "resultType": "complete"}

    async def prompt(self, name: str, arguments: dict[str, str] | None) -> Item:
        """Return the messages of a prompt, as the server sends them."""
        found = _plain(await self._ask(lambda client: client.get_prompt(name, arguments), "getting a prompt"))
        said = {key: found[key] for key in ("description", "messages") if key in found}
        return {**self._text.mask_data(said), "resultType": "complete"}

    async def _ask(self, question: Callable[[Client], Awaitable[T]], what: str, patience: float | None = None) -> T:
        seconds = self._server.timeout if patience is None else patience
        connection = await self._connected()
        if connection is None:
            raise DocumentError(f"{self._server.owner} is not connected")
        try:
            async with asyncio.timeout(seconds):
                return await connection.ask(question, what)
        except ConnectionLostError as error:
            raise DocumentError(str(error)) from None
        except TimeoutError:
            raise DocumentError(f"{self._server.owner} did not answer within {seconds:g} s") from None
        except MCPError as error:
            said = self._text.clip(error.message, _MESSAGE)
            raise DocumentError(f"{self._server.owner} answers with an error: {said}", error.code) from None
        except Exception as error:  # noqa: BLE001 - whatever an answer breaks in the SDK: it is the server's fault
            name, said = type(error).__name__, self._text.clip(str(error).partition("\n")[0])
            raise DocumentError(f"{self._server.owner} gave an answer that can't be used: {name}: {said}") from None


def _plain(answer: Any) -> Item:
    dumped: Item = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dumped


def _fits(uri: str, template: str) -> bool:
    """Tell whether a template may have led to *uri*: its fixed parts are there, in their order."""
    first, *parts = [part.rpartition("}")[2] for part in template.split("{")]
    if not parts:
        return uri == template
    if not uri.startswith(first) or not uri.endswith(parts[-1]) or len(uri) < len(first) + len(parts[-1]):
        return False
    rest = uri[len(first) : len(uri) - len(parts[-1])]
    for part in parts[:-1]:
        _, found, rest = rest.partition(part) if part else ("", "-", rest)
        if not found:
            return False
    return True
