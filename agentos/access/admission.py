"""The keeper: what people decided about packs and definitions, remembered beyond one run."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any

from agentos.access.audit import Audit
from agentos.access.pins import Pins
from agentos.errors import PackLoadError
from agentos.model.manifest import PackEntry
from agentos.secrets.masking import MaskingLogger
from agentos.stacks.slot import Slot
from agentos.store import Store
from agentos.store.rows import fetch_all, fetch_one

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from agentos.access.lock import Difference, Lock

_FRESH = 0.2
"""For how many seconds what was read of other hosts' pins counts; what came in since is met when ours are written."""
_SHOWN = 5
"""How many differences one message tells."""


class StoreKeeper:
    """Answers the manager's questions from the store, the pins and the lock file."""

    def __init__(
        self,
        store: Store,
        audit: Audit,
        pins: Pins,
        *,
        lock: "Lock | None",
        is_strict: bool,
        logger: MaskingLogger,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._audit = audit
        self._pins = pins
        self._lock = lock
        self._is_strict = is_strict
        self._logger = logger
        self._clock = clock
        self._disabled: dict[str, float] = {}
        self._turn = asyncio.Lock()
        self._is_ready = False
        self._fresh_until = 0.0
        self.after_change: Callable[[], None] | None = None
        """What is done when packs came or went."""

    async def ready(self) -> None:
        """Open the store and read what was decided in earlier runs, and about definitions by other hosts since."""
        if not self._store.is_durable or monotonic() < self._fresh_until:
            return
        if not self._is_ready:
            await self._store.open()
            self._disabled = await self._read_disabled()
            self._is_ready = True
        await self._pins.load()
        self._fresh_until = monotonic() + _FRESH

    async def _read_disabled(self) -> dict[str, float]:
        from agentos.store import schema

        rows = await self._store.read(lambda connection: fetch_all(connection, schema.flags.select()))
        return {row["pack"]: row["at"] for row in rows if not row["enabled"]}

    async def reread(self) -> frozenset[str]:
        """Read again which packs are disabled; return the keys of those that were switched elsewhere meanwhile."""
        await self.ready()
        if not self._store.is_durable:
            return frozenset()
        await self._pins.refresh()
        async with self._turn:
            before, self._disabled = self._disabled, await self._read_disabled()
            return frozenset(before.keys() ^ self._disabled.keys())

    async def admit(self, entry: PackEntry) -> None:
        """Refuse a pack whose files are not those of the lock file, before any of its code runs."""
        if self._lock is None:
            return
        differences = await asyncio.to_thread(self._differences, self._lock, entry)
        if not differences:
            return
        more = f"; and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
        lines = "; ".join(str(one) for one in differences[:_SHOWN]) + more
        if self._is_strict:
            raise PackLoadError(entry.label, f"differs from the lock file: {lines}")
        self._logger.warning("pack %r differs from the lock file: %s", entry.label, lines)

    def _differences(self, lock: "Lock", entry: PackEntry) -> "list[Difference]":
        """Compare files with the lock's. A factory's key is known once it ran: its files alone say which it is."""
        from agentos.access.lock import check_files
        from agentos.loading.pack_files import files_of

        found = files_of(entry)
        if entry.key is not None:
            return check_files(lock.pack(entry.key), entry.key, found)
        made = [one for one in lock.packs if one.origin_kind == "factory"]
        compared = [check_files(one, one.key, found) for one in made]
        return min(compared, key=len, default=check_files(None, entry.label, found))

    def held_back(self, slot: Slot) -> str | None:
        """Say why *slot* has to wait for a person."""
        return self._pins.held_back(slot)

    def accepted(self, owner: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the definitions of an owner's tools that were accepted in earlier runs, by id."""
        return self._pins.accepted_of(owner)

    def disabled(self, key: str) -> str | None:
        """Say since when the pack of *key* is disabled."""
        at = self._disabled.get(key)
        if at is None:
            return None
        since = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
        return f"its pack was disabled at {since}; enable it to bring it back"

    async def switched(self, key: str, *, enabled: bool) -> None:
        """Remember that a person enabled or disabled a pack."""
        await self.ready()
        async with self._turn:
            at = self._clock()
            if self._store.is_durable:
                await self._write(key, enabled=enabled, at=at)
            elif enabled != (key not in self._disabled):
                self._audit.note("pack", pack=key, enabled=enabled)
            if enabled:
                self._disabled.pop(key, None)
            else:
                self._disabled.setdefault(key, at)

    async def _write(self, key: str, *, enabled: bool, at: float) -> None:
        from agentos.store import schema

        is_it, link = schema.flags.c.pack == key, self._audit.link("pack", pack=key, enabled=enabled)

        def replace(connection: "Connection") -> None:
            row = fetch_one(connection, schema.flags.select().where(is_it))
            if enabled == (row is None or row["enabled"]):
                return  # it is so, by the store's own word: what another host wrote meanwhile counts
            connection.execute(schema.flags.delete().where(is_it))
            connection.execute(schema.flags.insert(), {"pack": key, "enabled": enabled, "at": at})
            self._audit.extend(connection, link)

        await self._audit.write(replace)

    async def settled(self) -> None:
        """Write down what was accepted at first sight, and go on with what waited for a pack."""
        await self._pins.settled()
        if self.after_change is not None:
            self.after_change()
