"""What the store holds, read and changed without loading any pack."""

import contextlib
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from agentos.access.admission import StoreKeeper
from agentos.access.audit import Audit
from agentos.access.grants import Grants
from agentos.access.pins import Pins
from agentos.access.proposals import Proposals
from agentos.base.foreign import to_the_end
from agentos.cli.app import Fail
from agentos.cli.host_session import UNUSABLE
from agentos.cli.read_only_stores import readable
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.store import Store
from agentos.store.locations import place_of
from agentos.store.marks import mark_file
from agentos.store.rows import fetch_all

if TYPE_CHECKING:
    from agentos.access.lock import Lock
    from agentos.cli.layered_config import Config


class Onlooker(StoreKeeper):
    """A keeper that answers from the store and writes nothing to it: whoever looks decides nothing."""

    async def settled(self) -> None:
        """Accept nothing at first sight."""

    async def switched(self, key: str, *, enabled: bool) -> None:
        """Remember nothing."""


class Records:
    """The store of a configuration: the audit log, proposals, grants, pins, and which packs a person disabled."""

    def __init__(self, location: str | None, *, mode: str = "first-use", lock: "Lock | None" = None) -> None:
        masker, store = Masker(), Store(location)
        self._store = store
        self.masker = masker
        self.audit = Audit(store, masker, clock=time.time)
        self.proposals = Proposals(store, self.audit, time.time)
        self.grants = Grants(store, self.audit, find=lambda _: None, masker=masker, clock=time.time)
        self.pins = Pins(store, self.audit, mode=mode, lock=lock, masker=masker, clock=time.time)
        given: dict[str, Any] = {
            "lock": lock,
            "is_strict": mode == "strict",
            "logger": MaskingLogger("agentos", masker),
        }
        self.keeper = StoreKeeper(store, self.audit, self.pins, clock=time.time, **given)
        self.onlooker = Onlooker(store, self.audit, self.pins, clock=time.time, **given)

    async def proposals_like(self, beginning: str) -> list[str]:
        """Return the ids of the proposals that begin so, whatever became of them."""
        from agentos.store.schema import proposals

        query = proposals.select().where(proposals.c.id.startswith(beginning, autoescape=True)).order_by(proposals.c.id)
        rows = await self._store.read(lambda connection: fetch_all(connection, query))
        return [row["id"] for row in rows if row["id"].startswith(beginning)]

    async def disabled(self) -> dict[str, float]:
        """Return which packs a person disabled, and when."""
        from agentos.store.schema import flags

        rows = await self._store.read(lambda connection: fetch_all(connection, flags.select()))
        return {row["pack"]: row["at"] for row in rows if not row["enabled"]}

    async def close(self) -> None:
        """Write what is left to write, and close the store."""
        await self.audit.close()
        await self._store.close()


@contextlib.asynccontextmanager
async def opened(location: str | None) -> AsyncIterator[Records]:
    """Give what the store there holds, and close it."""
    found = Records(location)
    try:
        yield found
    finally:
        await to_the_end(found.close())


@contextlib.asynccontextmanager
async def records(config: "Config", *, writes: bool = False) -> AsyncIterator[Records | None]:
    """Give what the store holds; None if nothing was ever stored. Exit 3 if the manifest names no store that lasts.

    A file that is gone after a log was begun in it is made anew, empty: then the log tells what is missing. Where its
    folder can't be written, a copy is read: without *writes*, that is as good.
    """
    require_store(config)
    place = config.manifest.store
    if not (is_there(place) or _was_begun(place)):
        yield None
        return
    with contextlib.nullcontext(place) if writes else readable(place) as location:
        async with opened(location) as found:
            yield found


def is_there(location: str | None) -> bool:
    """Tell whether there is a store that lasts: a file that was made, or a server."""
    place = place_of(location)
    return place.is_durable and (place.path is None or place.path.is_file())


def lasts(location: str | None) -> bool:
    """Tell whether what is stored there outlives the process, even if nothing was stored yet."""
    return place_of(location).is_durable


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


async def disabled_packs(config: "Config") -> dict[str, float]:
    """Return which packs a person disabled in the store, and when; nothing is made if there is no store yet."""
    if not is_there(config.manifest.store):
        return {}
    async with records(config) as found:
        return {} if found is None else await found.disabled()
