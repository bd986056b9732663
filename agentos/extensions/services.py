"""Shared services: made once, counted by owner, released with the last one."""

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from agentos.base.containment import contained
from agentos.base.foreign import Border, is_a, to_the_end
from agentos.base.locks import ChangeLocks
from agentos.errors import ServiceError
from agentos.secrets.masking import Masker, MaskingLogger


@attrs.define
class _Service:
    id: str
    instance: Any
    dispose: Callable[[Any], Any] | None
    tags: frozenset[str]
    owners: list[object]


class ServiceHub:
    """Holds the instances. Packs and hosts reach it through a handle of their own: see `handle`."""

    def __init__(self, locks: ChangeLocks, masker: Masker, logger: MaskingLogger) -> None:
        self._locks = locks
        self._masker = masker
        self._logger = logger
        self._services: dict[str, _Service] = {}
        self._leaving: list[object] = []
        self._closed = False

    def close(self) -> None:
        """Make nothing any more; what there is can still be released."""
        self._closed = True

    def handle(self, owner: object, name: str) -> "Services":
        """Return the view of one owner; *owner* is what is counted, *name* what is told."""
        return Services(self, owner, name)

    def find(self, id: str) -> _Service | None:
        """Return the service called *id*, unless it is not made yet or being disposed."""
        return self._services.get(id)

    def of_tag(self, tag: str) -> list[str]:
        """Return the ids of the services that carry *tag*."""
        return [service.id for service in self._services.values() if tag in service.tags]

    async def get_or_create(
        self,
        owner: object,
        id: str,
        factory: Callable[[], Any],
        dispose: Callable[[Any], Any] | None,
        tags: Iterable[str],
    ) -> Any:
        """Return the instance for *owner*; whoever comes while it is made or disposed waits."""
        self._require_open(owner, id)
        if (service := self._services.get(id)) is None:
            with self._locks.change() as change:
                if await self._locks.acquire(change, [f"service {id}"]):
                    raise ServiceError(id, "needs itself to be made or disposed; break the cycle")
                self._require_open(owner, id)
                if (service := self._services.get(id)) is None:
                    instance = await self._made(id, factory)
                    service = _Service(id, instance, dispose, frozenset(tags), [])
                    if self._is_gone(owner):  # it went away while this was made
                        await to_the_end(self._dispose(service))
                        self._require_open(owner, id)
                    self._services[id] = service
        if owner not in service.owners:
            service.owners.append(owner)
        return service.instance

    async def _made(self, id: str, factory: Callable[[], Any]) -> Any:
        """Run a factory. What it raises is for who asked; an exit or a panic, which nobody expects, as ServiceError."""
        with Border() as border:
            return await contained(factory)
        if is_a(border.raised, Exception):
            raise border.raised
        raise self._failure(id, "could not be made", border.raised)

    def _failure(self, id: str, what: str, error: BaseException) -> ServiceError:
        failure = ServiceError(id, f"{what}: {self._masker.describe(error)}")
        failure.__cause__ = self._masker.cleanse(error)
        return failure

    async def release(self, owner: object, id: str) -> list[Exception]:
        """Give up *owner*'s share; the last one disposes. Returns what disposing raised."""
        with self._locks.change() as change:
            await self._locks.acquire(change, [f"service {id}"])
            service = self._services.get(id)
            if service is None or owner not in service.owners:
                return []
            service.owners.remove(owner)
            if service.owners:
                return []
            del self._services[id]
            return await to_the_end(self._dispose(service))

    async def release_all(self, owner: object) -> list[Exception]:
        """Give up all of *owner*'s shares, the newest service first; it gets no other meanwhile."""
        raised: list[Exception] = []
        self._leaving.append(owner)
        try:
            for service in [one for one in reversed(self._services.values()) if owner in one.owners]:
                raised += await self.release(owner, service.id)
        finally:
            self._leaving.remove(owner)
        return raised

    def _is_gone(self, owner: object) -> bool:
        return owner in self._leaving or getattr(owner, "closed", False)

    def _require_open(self, owner: object, id: str) -> None:
        if self._closed:
            raise ServiceError(id, "can't be made: the manager was shut down")
        if self._is_gone(owner):
            raise ServiceError(id, "can't be had: the pack that asks is not loaded any more")

    async def _dispose(self, service: _Service) -> list[Exception]:
        if (dispose := service.dispose) is None:
            return []
        with Border() as border:  # foreign code: the service is gone whatever its dispose does
            await contained(lambda: dispose(service.instance))
        if border.error is None:
            return []
        self._logger.error("dispose of the service %r raised", service.id, exc_info=border.error)
        return [self._failure(service.id, "raised while it was disposed", border.error)]


class Services:
    """Shared services as one owner sees them."""

    def __init__(self, hub: ServiceHub, owner: object, name: str) -> None:
        self._hub = hub
        self._owner = owner
        self._name = name

    async def get_or_create(
        self,
        id: str,
        factory: Callable[[], Any],
        *,
        dispose: Callable[[Any], Any] | None = None,
        tags: Iterable[str] = (),
    ) -> Any:
        """Return the instance called *id*, made by *factory* if there is none.

        However often an owner asks, it counts once. *factory* and *dispose* may be sync or async.
        """
        return await self._hub.get_or_create(self._owner, id, factory, dispose, tags)

    async def release(self, id: str) -> bool:
        """Give up this owner's share; True if it had one. The last owner's release disposes the instance."""
        service = self._hub.find(id)
        held = service is not None and self._owner in service.owners
        await self._hub.release(self._owner, id)
        return held

    def has(self, id: str) -> bool:
        """Tell whether there is an instance called *id*."""
        return self._hub.find(id) is not None

    def tagged(self, tag: str) -> list[str]:
        """Return the ids of the services that carry *tag*."""
        return self._hub.of_tag(tag)

    def __repr__(self) -> str:
        return f"<Services of {self._name!r}>"
