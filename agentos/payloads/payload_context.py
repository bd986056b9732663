"""What the payload of any kind is given: for whom it is asked, and what its pack may use."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentos.model.pack_context import Bus, PackLogger, SharedServices
from agentos.model.principal import Principal
from agentos.stacks.entry import Entry

if TYPE_CHECKING:
    from agentos.stacks.registry import Registry
    from agentos.stacks.slot import Owner


class PayloadContext:
    """What a payload is given with what it is asked about."""

    __slots__ = ("_entry", "_principal", "_session")

    def __init__(self, entry: Entry, principal: Principal, session: Mapping[str, Any]) -> None:
        self._entry = entry
        self._principal = principal
        self._session = session

    @property
    def principal(self) -> Principal:
        """Return for whom it is asked."""
        return self._principal

    @property
    def session(self) -> Mapping[str, Any]:
        """Return the session of the caller."""
        return self._session

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the pack's options, with those of overrides merged in."""
        return self._entry.options

    @property
    def services(self) -> SharedServices:
        """Return the pack's shared services."""
        return owner_of(self._entry).context.services

    @property
    def bus(self) -> Bus:
        """Return the bus, as the pack uses it: for async functions."""
        return owner_of(self._entry).context.bus

    @property
    def logger(self) -> PackLogger:
        """Return the pack's logger; known secret values are masked in what it writes."""
        return owner_of(self._entry).context.logger

    def secret(self, id: str) -> str | None:
        """Return a secret that the pack's descriptors declare, or None if it is missing."""
        return owner_of(self._entry).scope.read(id)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._entry.source.pack}:{self._entry.id} for {self.principal.id}>"


def owner_of(entry: Entry) -> "Owner":
    """Return who brought an entry that stands on a stack."""
    owner: Owner = entry._slot.owner  # noqa: SLF001 - the slot is our own
    return owner


def active_in_order(registry: "Registry") -> list[Entry]:
    """Return what is active in the order in which it is asked: by priority, and then the first registered first."""
    return sorted(registry.list_active(), key=lambda entry: -entry.priority)
