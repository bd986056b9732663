"""An entry: a descriptor on its stack, as it stood at one moment."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import attrs

from agentos.model.descriptor import Descriptor
from agentos.model.kind import UNREAD, reader_of
from agentos.model.pack_context import PackContext
from agentos.model.report import PackOutcome
from agentos.model.source import Source
from agentos.model.trouble import Trouble


class EntryState(StrEnum):
    """What an entry is on its stack."""

    ACTIVE = "active"
    WRAPPED = "wrapped"
    SHADOWED = "shadowed"
    GATED = "gated"
    DISABLED = "disabled"
    FAILED = "failed"
    UNBOUND = "unbound"

    @property
    def in_force(self) -> bool:
        """Tell whether an entry in this state is used: its hooks have run."""
        return self is EntryState.ACTIVE or self is EntryState.WRAPPED


@attrs.define(on_setattr=attrs.setters.frozen, unsafe_hash=True)  # as frozen, and made in a third of the time
class Entry:
    """A descriptor on its stack, with its state and the reason for it.

    Two entries are equal when they are the same place on the same stack, whatever state they were seen in.
    """

    descriptor: Descriptor[Any]
    sequence: int
    source: Source
    priority: int = attrs.field(eq=False)
    state: EntryState = attrs.field(eq=False)
    _reason: object = attrs.field(eq=False, repr=lambda reason: repr(str(reason)))
    activated_at: datetime | None = attrs.field(default=None, eq=False)
    activation_seconds: float | None = attrs.field(default=None, eq=False)
    options: Mapping[str, Any] = attrs.field(factory=dict, eq=False, repr=False)
    """The pack's options with those of overrides merged in."""
    _slot: Any = attrs.field(default=None, eq=False, repr=False)

    @property
    def reason(self) -> str:
        """Say why it is in that state: worked out now from what was known when this entry was made."""
        return str(self._reason)

    @property
    def kind(self) -> str:
        """Return the kind of the stack this is on."""
        return self.descriptor.kind

    @property
    def id(self) -> str:
        """Return the id of the stack this is on."""
        return self.descriptor.id

    @property
    def payload(self) -> Any:
        """Return what the descriptor offers."""
        return self.descriptor.payload

    @property
    def pack(self) -> str:
        """Return the name of the pack that brought it."""
        return self.source.pack

    @property
    def version(self) -> str | None:
        """Return the version of the pack that brought it."""
        return self.source.version

    @property
    def origin(self) -> str:
        """Return where the pack came from."""
        return self.source.origin

    def __str__(self) -> str:
        return f"{self.source} [{self.state}] priority {self.priority}: {self.reason}"


@attrs.frozen
class Explanation:
    """Every entry of one stack, strongest first, each with its state and reason.

    `troubles` is what those in force find wrong with themselves. Of what nobody offers, `near` is the name that was
    probably meant, `absent` are the packs that were not loaded, and `troubles` tells of those that are not whole.
    """

    kind: str
    id: str
    active: Entry | None
    entries: Sequence[Entry]
    near: str | None = None
    absent: Sequence[PackOutcome] = ()
    troubles: Sequence[Trouble] = ()

    def __str__(self) -> str:
        if not self.entries:
            return unknown(f"{self.kind}:{self.id}", self.near, [*map(_absence, self.absent), *map(str, self.troubles)])
        who = f"active from {self.active.source}" if self.active else "nobody is active"
        who += ", but something is wrong with it" if any(one.level == "error" for one in self.troubles) else ""
        lines = [*(_line(entry) for entry in self.entries), *self.reading, *map(str, self.troubles)]
        return "\n".join([f"{self.kind}:{self.id}: {who}", *(f"  {line}" for line in lines)])

    @property
    def reader(self) -> str | None:
        """Say who reads what is active of this kind; None if nothing does here."""
        return reader_of(self.kind)

    @property
    def reading(self) -> list[str]:
        """Return the line that says who reads the active entry."""
        if self.active is None:
            return []
        return [UNREAD if self.reader is None else f"read by {self.reader}"]


def unknown(name: str, near: str | None, lacking: Sequence[str]) -> str:
    """Say that nobody offers *name*: which one is near, and what is lacking that may offer it."""
    meant = f"; did you mean {near!r}?" if near else ""
    perhaps = "; it may be offered by what was not loaded:" if lacking else ""
    return "\n  ".join([f"{name} is unknown: no loaded pack offers it{meant}{perhaps}", *lacking])


def _absence(outcome: PackOutcome) -> str:
    return f"{outcome.key} was not loaded ({outcome.status}): {outcome.reason}"


def _line(entry: Entry) -> str:
    taken = "" if entry.activation_seconds is None else f", activated in {entry.activation_seconds * 1000:.1f} ms"
    return f"{entry} (from {entry.source.origin}{taken})"


@attrs.frozen(kw_only=True)
class LifecycleContext(PackContext):
    """What a descriptor's hooks get: the pack's context, the entry, and the one beneath it."""

    entry: Entry
    _find_below: Callable[[], Entry | None] = attrs.field(repr=False)

    @property
    def below(self) -> Entry | None:
        """Return the entry in force beneath this one: looked up now, not remembered."""
        return self._find_below()
