"""A descriptor's place on a stack."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import attrs

from agentos.errors import HookError
from agentos.model.declared_options import PackOptions
from agentos.model.descriptor import Descriptor
from agentos.model.pack_context import PackContext, SecretReader
from agentos.model.source import Source
from agentos.stacks.entry import Entry, EntryState
from agentos.stacks.in_use import Users

Key = tuple[str, str]
"""Names a stack: its kind and id."""


@attrs.define(eq=False)
class Owner:
    """Who brought descriptors: a loaded pack, or the host with descriptors of its own."""

    source: Source
    scope: SecretReader
    context: PackContext
    sequence: int = 0
    slots: "dict[Slot, None]" = attrs.field(factory=dict)
    order: int = 0
    """When its own on_activate ran, in the order of activations."""
    options: PackOptions | None = None
    """What it declares of its options."""
    disabled: str | None = None
    bringing: int = 0
    """How many exchanges of what it has are under way."""
    closed: bool = False
    """It can bring nothing more."""


class Obstacle(NamedTuple):
    """What keeps a slot out of force, whatever its rank."""

    state: EntryState
    reason: str


class Slot:
    """A descriptor's place on a stack: whose it is, how it ranks, and what has become of it."""

    __slots__ = (
        "_users",
        "activated_at",
        "activation_seconds",
        "base_priority",
        "descriptor",
        "entry",
        "failure",
        "is_shown",
        "is_stacked",
        "obstacle",
        "options",
        "order",
        "owner",
        "priority",
        "sequence",
    )

    def __init__(
        self, descriptor: Descriptor[Any], owner: Owner, sequence: int, base_priority: int | None = None
    ) -> None:
        self.descriptor = descriptor
        self.owner = owner
        self.sequence = sequence
        self.base_priority = base_priority
        """What the manifest entry of its pack says."""
        self.priority = 0
        self.obstacle: Obstacle | None = None
        self.options: Mapping[str, Any] | None = None
        """What overrides say; None if nothing."""
        self.is_stacked = False
        self.entry: Entry | None = None
        """The entry made at the last switch of its stack that changed it."""
        self.order = 0
        """When its activation ended, in the order of activations; 0 if it is not activated."""
        self.is_shown = False
        """Readers have seen it in force."""
        self.failure: HookError | None = None
        self.activated_at: datetime | None = None
        self.activation_seconds: float | None = None
        self._users: Users | None = None

    @property
    def key(self) -> Key:
        """Name the stack this is for."""
        return self.descriptor.key

    @property
    def source(self) -> Source:
        """Return who brought it."""
        return self.owner.source

    @property
    def users(self) -> Users:
        """Return the count of uses under way."""
        if self._users is None:
            self._users = Users()
        return self._users

    @property
    def is_used(self) -> bool:
        """Tell whether a use is under way."""
        return self._users is not None and self._users.count > 0

    def view(self) -> Entry:
        """Return the entry as last shown to readers, or one that waits for the change under way."""
        if self.entry is not None:
            return self.entry
        return self.view_as(EntryState.SHADOWED, "waits for the change under way on its stack")

    def merged_options(self) -> Mapping[str, Any]:
        """Return its pack's options with those of overrides merged in."""
        given, declared = self.owner.context.options, self.owner.options
        if not self.options:
            return given
        return {**given, **(self.options if declared is None else declared.spelled(self.options))}

    def view_as(self, state: EntryState, reason: object) -> Entry:
        """Return an entry that says *state* and *reason*."""
        return Entry(
            self.descriptor,
            self.sequence,
            self.owner.source,
            self.priority,
            state,
            reason,
            self.activated_at,
            self.activation_seconds,
            self.merged_options(),
            self,
        )
