"""What bridged servers have beside tools, for clients of ours: resources, templates and prompts, as they came.

A server's are there for those who may call its tools by its `requiredAccess`. One that can't be asked is left out of
the lists, with a line in the log.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import attrs
import mcp_types as types
from mcp.shared.exceptions import MCPError

from agentos.mcp.client.bridged_documents import DocumentError
from agentos.mcp.server.served_host import BRIDGES, ServedHost
from agentos.mcp.server.wire_format import Item, encodable_data
from agentos.model.principal import Principal
from agentos.secrets.masking import MaskingLogger


@attrs.frozen
class _OfferedPrompt:
    """A prompt of a server under the name that clients know it by."""

    bridge: Any = attrs.field(repr=False)
    name: str
    item: Item = attrs.field(repr=False)

    @property
    def qualified_name(self) -> str:
        """Return the name that no prompt of another server has."""
        return f"{self.bridge.server.owner}:{self.bridge.server.shown_name(self.name)}"


class BridgedOffers:
    """Asks the servers that a principal may use."""

    def __init__(self, host: ServedHost, logger: MaskingLogger) -> None:
        self._host = host
        self._logger = logger

    def _bridges(self, who: Principal) -> list[Any]:
        entries = self._host.extensions.registry(BRIDGES).list_active()
        return [entry.payload for entry in entries if who.may_call(entry.payload.server)]

    # -- lists -------------------------------------------------------------------------------------------------

    async def resources(self, who: Principal) -> list[Item]:
        """Return the resources of all servers; of several at one address, that of the first."""
        found = await self._gather(who, lambda bridge: bridge.documents.resources())
        by_address = {item["uri"]: item for _, items in reversed(found) for item in reversed(items)}
        return [encodable_data(item) for _, items in found for item in items if by_address[item["uri"]] is item]

    async def templates(self, who: Principal) -> list[Item]:
        """Return the templates of all servers."""
        found = await self._gather(who, lambda bridge: bridge.documents.templates())
        return [encodable_data(item) for _, items in found for item in items]

    async def prompts(self, who: Principal, taken: Collection[str]) -> list[Item]:
        """Return the prompts of all servers: under their own names, or fully qualified where those are taken."""
        return [encodable_data({**one.item, "name": name}) for name, one in (await self._prompts(who, taken)).items()]

    async def _prompts(self, who: Principal, taken: Collection[str]) -> dict[str, _OfferedPrompt]:
        offered: dict[str, _OfferedPrompt] = {}
        for bridge, items in await self._gather(who, lambda bridge: bridge.documents.prompts()):
            for item in items:
                name = bridge.server.shown_name(item["name"])
                if name in taken or name in offered:
                    name = f"{bridge.server.owner}:{name}"
                offered.setdefault(name, _OfferedPrompt(bridge, item["name"], item))
        return offered

    async def _gather(
        self, who: Principal, ask: Callable[[Any], Awaitable[list[Item]]]
    ) -> list[tuple[Any, list[Item]]]:
        bridges = [bridge for bridge in self._bridges(who) if bridge.why_not() is None]
        answers = await asyncio.gather(*(ask(bridge) for bridge in bridges), return_exceptions=True)
        found: list[tuple[Any, list[Item]]] = []
        for bridge, answer in zip(bridges, answers, strict=True):
            if isinstance(answer, DocumentError):
                self._note_fault(bridge, answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found.append((bridge, answer))
        return found

    def _note_fault(self, bridge: Any, error: DocumentError) -> None:
        self._logger.warning("what %s offers beside tools is left out: %s", bridge.server.owner, error)

    # -- reading -----------------------------------------------------------------------------------------------

    async def read(self, uri: str, who: Principal) -> Item | None:
        """Return what is at an address of the first server that has it; None if none has."""
        for bridge in self._bridges(who):
            if bridge.why_not() is None and await self._has(bridge, uri):
                found = await _answered(bridge.documents.read(uri))
                if found is not None:
                    return dict(encodable_data(found))
        return None

    async def _has(self, bridge: Any, uri: str) -> bool:
        try:
            return bool(await bridge.documents.has(uri))
        except DocumentError as error:
            self._note_fault(bridge, error)
            return False

    async def prompt(
        self, name: str, arguments: dict[str, str] | None, who: Principal, taken: Collection[str]
    ) -> Item | None:
        """Return the messages of a prompt, by the name it is listed under or fully qualified; None if it is unknown."""
        offered = await self._prompts(who, taken)
        one = offered.get(name) or next((one for one in offered.values() if one.qualified_name == name), None)
        if one is None:
            return None
        return dict(encodable_data(await _answered(one.bridge.documents.prompt(one.name, arguments))))


async def _answered(asked: Awaitable[Item | None]) -> Item | None:
    """Return what a server answers; an error of its own is told to the client."""
    try:
        return await asked
    except DocumentError as error:
        raise MCPError(types.INTERNAL_ERROR, str(error)) from None
