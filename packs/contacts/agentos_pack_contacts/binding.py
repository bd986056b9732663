"""Binder: gives the declared tools their handlers when the database is there, and says why not."""

import asyncio
from typing import Any

from agentos_pack_common.sqlite import StorageError

from agentos import Descriptor, NotPermittedError, Tool, tool, with_displays
from agentos_pack_contacts._displays import DISPLAYS
from agentos_pack_contacts.book import ContactBook
from agentos_pack_contacts.declarations import declare
from agentos_pack_contacts.handlers import handlers, previews
from agentos_pack_contacts.values import Status

_READY = "the database is open, and all tools are bound"


class Binder:
    """Keeps the tools of one book bound as long as its database is open.

    The tool contacts_status carries it: its activation binds, its deactivation closes. The five others can't, because
    what has no handler is never activated.
    """

    def __init__(self, book: ContactBook) -> None:
        self._book = book
        self._handlers = handlers(book)
        status = tool(effect="read", required_access="contacts:read", timeout=30, category="contacts")
        carrier: Descriptor[Any] = Descriptor(
            "tool",
            "contacts_status",
            status(self.contacts_status),
            on_activate=self._activate,
            on_deactivate=self._deactivate,
        )
        offered = with_displays([*declare(previews(book)), carrier], DISPLAYS)
        self.declared: list[Tool] = offered[:-1]
        self.status: Descriptor[Any] = offered[-1]
        self._service: Any = None
        self._turn = asyncio.Lock()
        self.reason = "the pack is not active"
        """Why the tools are not bound; empty when they are."""

    async def _activate(self, context: Any) -> None:
        self._service = context.tools
        await self._bind()
        if self.reason:
            context.logger.warning("the contacts tools stay unbound: %s", self.reason)

    async def _deactivate(self) -> None:
        self.reason = "the pack is not active"
        await self._book.close()

    async def _bind(self) -> None:
        """Open the database and bind the handlers, all of them at once; or leave the tools as they were declared."""
        async with self._turn:
            try:
                await self._book.open()
                await self._offer([one.bind(self._handlers[one.name]) for one in self.declared])
                self.reason = ""
            except StorageError as error:
                self.reason = str(error)
            except NotPermittedError as error:
                self.reason = str(error)
                await self._book.close()
                return
            if self.reason:
                await self._unbind()

    async def _unbind(self) -> None:
        """Take the handlers back that an earlier activation bound, if there was one."""
        bound = [one for one in self._service.own_tools() if one.name in self._handlers and one.state != "unbound"]
        if bound:
            await self._offer(self.declared)

    async def _offer(self, tools: list[Tool]) -> None:
        await self._service.sync([*tools, self.status])

    async def contacts_status(self) -> Status:
        """Say whether the tools of the address book can be used, and if not, why and what to do.

        Call it when contacts_search and the others are missing. It also tries again to open the database. It says
        nothing about single contacts.
        """
        if self.reason:
            await self._bind()
        if self.reason:
            return Status(bound=False, reason=self.reason, contacts=None)
        return Status(bound=True, reason=_READY, contacts=await self._book.count())
