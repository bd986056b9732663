"""What the store holds, read without loading any pack."""

import contextlib
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from agentos.access.audit import Audit
from agentos.access.grants import Grants
from agentos.access.proposals import Proposals
from agentos.base.foreign import to_the_end
from agentos.cli.app import Fail
from agentos.cli.host_session import UNUSABLE
from agentos.cli.pack_flags import is_there, lasts
from agentos.cli.read_only_stores import readable
from agentos.secrets.masking import Masker
from agentos.store import Store
from agentos.store.locations import place_of
from agentos.store.marks import mark_file
from agentos.store.rows import fetch_all

if TYPE_CHECKING:
    from agentos.cli.layered_config import Config


class Records:
    """The audit log, the proposals and the grants in the store of a configuration."""

    def __init__(self, location: str | None) -> None:
        self._store = Store(location)
        self.audit = Audit(self._store, Masker(), clock=time.time)
        self.proposals = Proposals(self._store, self.audit, time.time)
        self.grants = Grants(self._store, self.audit, find=lambda _: None, masker=Masker(), clock=time.time)

    async def proposals_like(self, beginning: str) -> list[str]:
        """Return the ids of the proposals that begin so, whatever became of them."""
        from agentos.store import schema

        column = schema.proposals.c.id
        query = schema.proposals.select().where(column.startswith(beginning, autoescape=True)).order_by(column)
        rows = await self._store.read(lambda connection: fetch_all(connection, query))
        return [row["id"] for row in rows if row["id"].startswith(beginning)]

    async def close(self) -> None:
        """Write what is left to write, and close the store."""
        await self.audit.close()
        await self._store.close()


@contextlib.asynccontextmanager
async def records(config: "Config", *, writes: bool = False) -> AsyncIterator[Records | None]:
    """Give what the store holds; None if nothing was ever stored. Exit 3 if the manifest names no store that lasts.

    A file that is gone after a log was begun in it is made anew, empty: then the log tells what is missing. Where its
    folder can't be written, a copy is read: without *writes*, that is as good.
    """
    require_store(config)
    if not (is_there(config.manifest.store) or _was_begun(config.manifest.store)):
        yield None
        return
    with contextlib.nullcontext(config.manifest.store) if writes else readable(config.manifest.store) as location:
        found = Records(location)
        try:
            yield found
        finally:
            await to_the_end(found.close())


def _was_begun(location: str | None) -> bool:
    file = mark_file(place_of(location))
    return file is not None and file.is_file()


def require_store(config: "Config") -> None:
    """End the command if nothing outlives a process here."""
    if not lasts(config.manifest.store):
        raise Fail(
            "the manifest names no store, so nothing is kept from one command to the next",
            code=UNUSABLE,
            hint='add `store = "default"` to the manifest, or set AGENTOS_STORE',
        )
