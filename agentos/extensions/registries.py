"""What stands where: the registries that readers see, and which seats wait for which secret."""

from collections.abc import Callable, Collection, Iterable

from agentos.extensions.activation import Key, Seat, Settler
from agentos.secrets.sources import SecretSources
from agentos.stacks.registry import Registry, Stack, Writer

Watcher = Callable[[Collection[Key]], None]


class Board:
    """Shows readers what the settler decided, and keeps what a secret gates within reach."""

    def __init__(self, writer: Writer, secrets: SecretSources) -> None:
        self._writer = writer
        self._secrets = secrets
        self._registries: dict[str, Registry] = {}
        self._gated_by: dict[str, dict[Seat, None]] = {}
        self._watchers: list[Watcher] = []

    def registry(self, kind: str) -> Registry:
        """Return the registry of *kind*."""
        if kind not in self._registries:
            self._registries[kind] = Registry(kind, self._writer)
        return self._registries[kind]

    def kinds(self) -> list[str]:
        """Return the kinds that have a stack, in the order in which they first had one."""
        return [kind for kind, registry in self._registries.items() if len(registry)]

    def publish(self, key: Key, stack: Stack | None) -> None:
        """Show a stack as it is now, in one assignment."""
        registry = self.registry(key[0])
        registry.version += 1
        if stack is None:
            registry._stacks.pop(key[1], None)  # noqa: SLF001 - this is the one writer of registries
        else:
            registry._stacks[key[1]] = stack  # noqa: SLF001 - as above

    def watch(self, watcher: Watcher) -> None:
        """Call *watcher* with the stacks of every switch, at the moment of the switch."""
        self._watchers.append(watcher)

    def note_switch(self, keys: Collection[Key]) -> None:
        """Tell the watchers that stacks were switched over."""
        for watcher in self._watchers:
            watcher(keys)

    # -- seats -------------------------------------------------------------------------------------------------

    def push(self, settler: Settler, seat: Seat) -> None:
        """Put *seat* on its stack."""
        settler.push(seat)
        for need in seat.offer.descriptor.required_secrets:
            self._gated_by.setdefault(need.id, {})[seat] = None
            self._secrets.has_changed(need.id)

    def pull(self, settler: Settler, seat: Seat) -> None:
        """Take *seat* off its stack, if it is there."""
        if seat not in settler.seats(seat.key):
            return
        settler.pull(seat)
        for need in seat.offer.descriptor.required_secrets:
            waiting = self._gated_by.get(need.id, {})
            waiting.pop(seat, None)
            if not waiting:
                self._gated_by.pop(need.id, None)

    def secrets(self) -> list[str]:
        """Return every secret that something on a stack declares."""
        return list(self._gated_by)

    def gated_by(self, ids: Iterable[str]) -> list[Seat]:
        """Return the seats that declare one of *ids*."""
        return list(dict.fromkeys(seat for id in ids for seat in self._gated_by.get(id, ())))
