"""Which stacks there are: the registries that readers see, and which slots wait for which secret."""

from collections.abc import Callable, Collection, Iterable

from agentos.errors import HookError
from agentos.secrets.sources import SecretSources
from agentos.stacks.decide import Facts, choose, judge
from agentos.stacks.entry import Entry
from agentos.stacks.registry import Registry, StackWriter
from agentos.stacks.slot import Key, Slot
from agentos.stacks.stack import Stack

Watcher = Callable[[Collection[Key]], None]


class Registries:
    """Every stack, by kind and id. The one writer of registries."""

    def __init__(self, writer: StackWriter, secrets: SecretSources, facts: Callable[[], Facts]) -> None:
        self._writer = writer
        self._secrets = secrets
        self._facts = facts
        self._registries: dict[str, Registry] = {}
        self._unseen: dict[Key, Stack] = {}
        """New stacks, until they are shown for the first time."""
        self._gated_by: dict[str, dict[Slot, None]] = {}
        self._watchers: list[Watcher] = []
        self.changes = 0
        """Goes up with every slot that is placed or taken."""

    def registry(self, kind: str) -> Registry:
        """Return the registry of *kind*."""
        if kind not in self._registries:
            self._registries[kind] = Registry(kind, self._writer)
        return self._registries[kind]

    def kinds(self) -> list[str]:
        """Return the kinds that have a stack, in the order in which they first had one."""
        return [kind for kind, registry in self._registries.items() if len(registry)]

    # -- stacks ------------------------------------------------------------------------------------------------

    def find(self, key: Key) -> Stack | None:
        """Return the stack of that kind and id."""
        registry = self._registries.get(key[0])
        stack = None if registry is None else registry._stacks.get(key[1])  # noqa: SLF001 - they are written here
        return self._unseen.get(key) if stack is None else stack

    def all(self) -> dict[Key, Stack]:
        """Return every stack."""
        shown = {(kind, id): one for kind, each in self._registries.items() for id, one in each._stacks.items()}  # noqa: SLF001 - as above
        return {**shown, **self._unseen}

    def slots(self, key: Key) -> list[Slot]:
        """Return the slots on one stack."""
        stack = self.find(key)
        return [] if stack is None else stack.slots()

    def view(self, slot: Slot) -> Entry:
        """Return the entry of *slot* as readers see it now."""
        stack = self.find(slot.key) if slot.is_stacked else None
        return slot.view() if stack is None else stack.view(slot)

    def publish(self, key: Key, stack: Stack) -> None:
        """Let readers find *stack*, unless nothing is on it any more."""
        registry = self.registry(key[0])
        registry.version += 1
        self._unseen.pop(key, None)
        if stack.is_shown:
            registry._stacks[key[1]] = stack  # noqa: SLF001 - as above
        else:
            registry._stacks.pop(key[1], None)  # noqa: SLF001 - as above

    def watch(self, watcher: Watcher) -> None:
        """Call *watcher* with the stacks of every switch, at the moment of the switch."""
        self._watchers.append(watcher)

    def note_switch(self, keys: Collection[Key]) -> None:
        """Tell the watchers that stacks were switched over."""
        for watcher in self._watchers:
            watcher(keys)

    # -- slots -------------------------------------------------------------------------------------------------

    def push(self, slot: Slot) -> None:
        """Put *slot* on its stack."""
        self._place(slot)
        for need in slot.descriptor.required_secrets:
            self._gated_by.setdefault(need.id, {})[slot] = None
            self._secrets.has_changed(need.id)

    def pull(self, slot: Slot) -> None:
        """Take *slot* off its stack, if it is there."""
        stack = self.find(slot.key)
        if stack is None or not slot.is_stacked:
            return
        stack.take(slot)
        self.changes += 1
        for need in slot.descriptor.required_secrets:
            waiting = self._gated_by.get(need.id, {})
            waiting.pop(slot, None)
            if not waiting:
                self._gated_by.pop(need.id, None)

    def judge_again(self, slots: Iterable[Slot]) -> None:
        """Note that a fact about *slots* changed: those on a stack are judged again, and may be tried again."""
        for slot in slots:
            if slot.is_stacked:
                slot.failure = None
                self._place(slot)

    def fail(self, slot: Slot, error: HookError) -> None:
        """Note that the activation of *slot* failed."""
        slot.failure = error
        if slot.is_stacked:
            self._place(slot)

    def _place(self, slot: Slot) -> None:
        key = (slot.descriptor.kind, slot.descriptor.id)
        stack = self.find(key)
        if stack is None:
            stack = self._unseen[key] = Stack()
        stack.place(slot, judge(slot, self._facts()))
        self.changes += 1

    def plan(self, stack: Stack) -> None:
        """Choose who is to be in force on *stack*, by a judgement of now: the last one may not be true any more."""
        while stack.plan is None:
            stack.plan = choose(stack.eligible)
            for slot in [one for one in stack.plan if not stack.is_new(one)]:
                self._place(slot)

    def secrets(self) -> list[str]:
        """Return every secret that something on a stack declares."""
        return list(self._gated_by)

    def gated_by(self, ids: Iterable[str]) -> list[Slot]:
        """Return the slots that declare one of *ids*."""
        return list(dict.fromkeys(slot for id in ids for slot in self._gated_by.get(id, ())))
