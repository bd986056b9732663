"""What a manager asks of whoever remembers things beyond one run."""

from collections.abc import Mapping
from typing import Any, Protocol

from agentos.model.manifest import PackEntry
from agentos.stacks.slot import Slot


class Persistence(Protocol):
    """Remembers what people decided about packs and definitions. Without one, a manager remembers nothing."""

    async def ready(self) -> None:
        """Return when what is remembered can be asked for."""
        ...

    async def admit(self, entry: PackEntry) -> None:
        """Raise PackLoadError if the pack of *entry* must not even be imported."""
        ...

    def held_back(self, slot: Slot) -> str | None:
        """Say why *slot* has to wait for a person; None if it does not."""
        ...

    def accepted(self, owner: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the definitions of an owner's tools that were accepted in earlier runs, by id."""
        ...

    def disabled(self, key: str) -> str | None:
        """Say why the pack of *key* starts disabled; None if it does not."""
        ...

    async def switched(self, key: str, *, enabled: bool) -> None:
        """Remember that a person enabled or disabled a pack."""
        ...

    async def reread(self) -> frozenset[str]:
        """Read again which packs are disabled; return the keys of those that were switched elsewhere meanwhile."""
        ...

    async def settled(self) -> None:
        """Write down what was noticed while stacks changed."""
        ...


class NoPersistence:
    """Remembers nothing and has no objections."""

    async def ready(self) -> None:
        """Be ready."""

    async def admit(self, entry: PackEntry) -> None:
        """Admit everything."""

    def held_back(self, slot: Slot) -> str | None:  # noqa: ARG002 - the signature is the contract
        """Hold nothing back."""
        return None

    def accepted(self, owner: str) -> Mapping[str, Mapping[str, Any]]:  # noqa: ARG002 - the signature is the contract
        """Know of none."""
        return {}

    def disabled(self, key: str) -> str | None:  # noqa: ARG002 - the signature is the contract
        """Start everything enabled."""
        return None

    async def switched(self, key: str, *, enabled: bool) -> None:
        """Forget it."""

    async def reread(self) -> frozenset[str]:
        """Find nothing."""
        return frozenset()

    async def settled(self) -> None:
        """Write nothing."""
