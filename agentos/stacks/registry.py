"""The registry of one kind: plain reads of what stands, and the way to ask for a change."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from agentos.errors import DescriptorError
from agentos.model.descriptor import Descriptor
from agentos.model.source import Source
from agentos.stacks.entry import Entry
from agentos.stacks.in_use import in_use
from agentos.stacks.stack import Stack


class StackWriter(Protocol):
    """Whoever may change stacks; a registry only asks it to."""

    async def register(self, descriptor: Descriptor[Any], *, source: Source | None = None) -> Entry:
        """Push *descriptor* on its stack."""
        ...

    async def unregister(self, kind: str, id: str) -> bool:
        """Take the active entry of a stack off."""
        ...

    async def remove(self, entry: Entry) -> bool:
        """Take *entry* off its stack."""
        ...

    async def clear(self, kind: str) -> None:
        """Take everything of *kind* off."""
        ...


class Registry:
    """The stacks of one kind.

    Reads are synchronous and see each stack whole. Changes go through the manager and its rules.
    """

    __slots__ = ("_stacks", "_writer", "kind", "version")

    def __init__(self, kind: str, writer: StackWriter) -> None:
        self.kind = kind
        self._writer = writer
        self._stacks: dict[str, Stack] = {}
        self.version = 0
        """Goes up with every change of a stack: what was computed from one version holds for all of it."""

    @property
    def writer(self) -> StackWriter:
        """Return the manager that keeps these stacks."""
        return self._writer

    def get_active(self, id: str) -> Entry | None:
        """Return the entry in force for *id*, or None."""
        stack = self._stacks.get(id)
        return None if stack is None else stack.active

    def list_active(self) -> list[Entry]:
        """Return the active entry of every stack, in the order in which the ids were first registered."""
        return [stack.active for stack in list(self._stacks.values()) if stack.active is not None]

    def list_history(self, id: str) -> list[Entry]:
        """Return the entries now on the stack, oldest first."""
        return sorted(self.stack(id), key=lambda entry: entry.sequence)

    def stack(self, id: str) -> list[Entry]:
        """Return the entries now on the stack, strongest first."""
        stack = self._stacks.get(id)
        return [] if stack is None else stack.entries()

    def ids(self) -> list[str]:
        """Return every id that has a stack, in the order of first registration."""
        return list(self._stacks)

    @contextmanager
    def using(self, id: str) -> Iterator[Entry | None]:
        """Hold the active entry while it is used: it is not deactivated before the block ends.

        The wait is bounded by the manager's `drain_timeout`.
        """
        entry = self.get_active(id)
        if entry is None:
            yield None
            return
        with in_use(entry):
            yield entry

    async def register(self, descriptor: Descriptor[Any], *, source: Source | None = None) -> Entry:
        """Push *descriptor* on its stack; raise HookError and leave nothing if its activation fails."""
        if isinstance(descriptor, Descriptor) and descriptor.kind != self.kind:
            raise DescriptorError(f"this registry is of kind {self.kind!r}, the descriptor of kind {descriptor.kind!r}")
        return await self._writer.register(descriptor, source=source)

    async def unregister(self, id: str) -> bool:
        """Take the active entry of *id* off its stack; False if there is none."""
        return await self._writer.unregister(self.kind, id)

    async def remove(self, entry: Entry) -> bool:
        """Take *entry* off its stack, whatever its state; False if it is not there any more."""
        return await self._writer.remove(entry)

    async def clear(self) -> None:
        """Take every entry of this kind off, without activating what lies beneath."""
        await self._writer.clear(self.kind)

    def __len__(self) -> int:
        return len(self._stacks)

    def __repr__(self) -> str:
        return f"<Registry {self.kind!r}: {len(self)} stacks>"
