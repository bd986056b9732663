"""What a pack is given: its options, its secrets, shared services, a logger."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from agentos.errors import AgentOSError
from agentos.model.descriptor import SecretRequirement
from agentos.model.kind import kind_of
from agentos.model.manifest import PackEntry
from agentos.model.source import Source


class SecretReader(Protocol):
    """Reads the secrets that one pack may read."""

    def read(self, id: str) -> str | None:
        """Return the value of now, or None."""
        ...

    def has(self, id: str) -> bool:
        """Tell whether there is a value, without handing it out."""
        ...

    def hint(self, id: str) -> str:
        """Name a secret with the way to set it."""
        ...

    def look_up(self, need: SecretRequirement) -> Any:
        """Say what is known of a secret and where its value was found; never the value."""
        ...

    def mask(self, text: str) -> str:
        """Return *text* without any value that the host knows."""
        ...

    def declare_more(self, needs: Iterable[SecretRequirement]) -> None:
        """Let the pack read what a descriptor declares that it registered later."""
        ...

    def close(self) -> None:
        """Let nothing be read any more."""
        ...


class SharedServices(Protocol):
    """Services that packs share: made once, released with their last owner."""

    def get_or_create(
        self,
        id: str,
        factory: Callable[[], Any],
        *,
        dispose: Callable[[Any], Any] | None = None,
        tags: Iterable[str] = (),
    ) -> Awaitable[Any]:
        """Return the instance called *id*, made by *factory* if there is none."""
        ...

    def release(self, id: str) -> Awaitable[bool]:
        """Give up this owner's share."""
        ...

    def has(self, id: str) -> bool:
        """Tell whether there is an instance."""
        ...


class Bus(Protocol):
    """What packs tell one another something with, by topic; at most once, in the order of each sender."""

    async def publish(self, topic: str, message: Any) -> None:
        """Tell *message*, a JSON value, to all who have subscribed to *topic*."""
        ...

    async def subscribe(self, topic: str, listener: Callable[[Any], Any]) -> Callable[[], Awaitable[None]]:
        """Call *listener*, sync or async, with every message of *topic* from now on; return what ends it."""
        ...


class Port(Protocol):
    """What one owner registers descriptors with while it runs."""

    @property
    def source(self) -> Source:
        """Return who the owner is."""
        ...

    def entries(self, kind: str) -> list[Any]:
        """Return what this owner has on the stacks of *kind*."""
        ...

    def all_entries(self, kind: str) -> list[Any]:
        """Return what stands on the stacks of *kind*, whoever the owner is."""
        ...

    def accepted(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the definitions of this owner's tools that were accepted in earlier runs, by id."""
        ...

    def exchange(self, kind: str, add: Sequence[Any], drop: Iterable[str] = ()) -> Awaitable[list[Any]]:
        """Put descriptors on their stacks and take others off, all at once; same owner and id replaces."""
        ...

    def refresh(self, kind: str, ids: Collection[str] | None = None) -> Awaitable[None]:
        """Ask the gates of what this owner has on the stacks of *kind* again: of *ids*, or all of it."""
        ...

    def require(self, permission: str) -> None:
        """Raise if the owner lacks *permission*."""
        ...

    @property
    def bus(self) -> Bus:
        """Return the bus as this owner uses it."""
        ...


class PackLogger(Protocol):
    """The part of a logger that packs use; known secret values are masked in what it writes."""

    def debug(self, msg: object, *args: object, **kwargs: Any) -> None: ...  # noqa: D102 - as in logging
    def info(self, msg: object, *args: object, **kwargs: Any) -> None: ...  # noqa: D102
    def warning(self, msg: object, *args: object, **kwargs: Any) -> None: ...  # noqa: D102
    def error(self, msg: object, *args: object, **kwargs: Any) -> None: ...  # noqa: D102
    def exception(self, msg: object, *args: object, **kwargs: Any) -> None: ...  # noqa: D102


@attrs.frozen(kw_only=True)
class PackContext:
    """What `create_extension_pack` and a pack's own hooks get."""

    options: Mapping[str, Any] = attrs.field(repr=False)
    services: SharedServices = attrs.field(repr=False)
    logger: PackLogger = attrs.field(repr=False)
    manifest_entry: PackEntry | None
    source: Source
    _secrets: SecretReader = attrs.field(repr=False)
    _port: Port | None = attrs.field(default=None, repr=False)

    @property
    def tools(self) -> Any:
        """Return the pack's ToolsService: tools registered while it runs go with the pack."""
        if self._port is None:
            raise AgentOSError("context.tools can be used from the pack's hooks on, not while the pack is made")
        service = kind_of("tool").service
        if service is None:
            raise AgentOSError("context.tools needs the kind `tool`, which nobody declared: import agentos.kinds")
        return service(self._port)

    @property
    def bus(self) -> Bus:
        """Return the bus: what the pack subscribes to goes with the pack."""
        if self._port is None:
            raise AgentOSError("context.bus can be used from the pack's hooks on, not while the pack is made")
        return self._port.bus

    def secret(self, id: str) -> str | None:
        """Return the secret's value of now, or None if it is missing.

        Only what the pack's descriptors declare can be read.
        """
        return self._secrets.read(id)
