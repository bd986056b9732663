"""What the store remembers of packs: read and changed without loading any."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from agentos.access.admission import StoreKeeper
from agentos.access.audit import Audit
from agentos.access.pins import Pins
from agentos.base.foreign import to_the_end
from agentos.cli.read_only_stores import readable
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.store import Store
from agentos.store.locations import place_of
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


class Memory:
    """The store of a configuration, as far as packs are concerned."""

    def __init__(self, store: Store, *, mode: str = "first-use", lock: "Lock | None" = None) -> None:
        masker = Masker()
        audit = Audit(store, masker, clock=time.time)
        self._store = store
        self._audit = audit
        self.pins = Pins(store, audit, mode=mode, lock=lock, masker=masker, clock=time.time)
        given = {"lock": lock, "is_strict": mode == "strict", "logger": MaskingLogger("agentos", masker)}
        self.keeper = StoreKeeper(store, audit, self.pins, clock=time.time, **given)  # type: ignore[arg-type]
        self.onlooker = Onlooker(store, audit, self.pins, clock=time.time, **given)  # type: ignore[arg-type]
        self.masker = masker

    async def disabled(self) -> dict[str, float]:
        """Return which packs a person disabled, and when."""
        from agentos.store import schema

        rows = await self._store.read(lambda connection: fetch_all(connection, schema.flags.select()))
        return {row["pack"]: row["at"] for row in rows if not row["enabled"]}

    async def switch(self, key: str, *, enabled: bool) -> None:
        """Remember that a pack is enabled or disabled; hosts hear of it when they start."""
        await self.keeper.switched(key, enabled=enabled)

    async def close(self) -> None:
        """Write what is left to write, and close the store."""
        await self._audit.close()
        await self._store.close()


def is_there(location: str | None) -> bool:
    """Tell whether there is a store that lasts: a file that was made, or a server."""
    place = place_of(location)
    return place.is_durable and (place.path is None or place.path.is_file())


def lasts(location: str | None) -> bool:
    """Tell whether what is stored there outlives the process, even if nothing was stored yet."""
    return place_of(location).is_durable


@asynccontextmanager
async def remembered(location: str | None) -> AsyncIterator[Memory]:
    """Give what the store there remembers, and close it."""
    memory = Memory(Store(location))
    try:
        yield memory
    finally:
        await to_the_end(memory.close())


async def disabled_packs(config: "Config") -> dict[str, float]:
    """Return which packs a person disabled in the store, and when; nothing is made if there is no store yet."""
    if not is_there(config.manifest.store):
        return {}
    with readable(config.manifest.store) as location:
        async with remembered(location) as memory:
            return await memory.disabled()
