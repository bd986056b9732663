"""An ExtensionPack as JSON, and back as a pack whose functions are asked for in another process.

The declaration is said once for a pack's files and options, so it may be kept: what stands in it is asked for by the
kind and id of a descriptor and the name of a function, not by anything that only one process knows.

    declare      in the pack's process: what is told of a pack
    RemotePack   in the host: the pack that was told of, and what to do again when its process is another one
"""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

import attrs

from agentos.errors import PackLoadError
from agentos.model.crossing import Function
from agentos.model.declared_options import ToldOptions
from agentos.model.descriptor import Descriptor
from agentos.model.extension_pack import ExtensionPack
from agentos.model.kind import kind_of
from agentos.model.pack_context import PackContext, Port
from agentos.model.trouble import Trouble
from agentos.workers import contexts  # noqa: F401 - says how contexts cross
from agentos.workers.contexts import entry_said
from agentos.workers.wire_values import Lasting, crosses_by_name, decode, decode_error, encode_answer, encode_error

_BUS = "bus"
"""The permission to publish and subscribe from a process of its own."""

crosses_by_name("agentos.model.declared_options", "ToldOptions")

_PACK_FIELDS = ("name", "version", "description", "requires_agentos")
_FIELDS = ("kind", "id", "priority", "required_secrets", "enabled_by_default", "wraps", "metadata")
_ENTRY_FIELDS = ("module", "package", "priority", "enabled", "identifier", "version", "required", "permissions")
_HOOKS = ("on_activate", "on_deactivate", "check")


class Ask(Protocol):
    """Asks the process that a pack runs in."""

    async def __call__(self, op: str, body: Any, *, idempotent: bool = False) -> Any:
        """Return the answer. What is idempotent may be asked again if the process dies meanwhile."""
        ...


# -- in the pack's process ---------------------------------------------------------------------------------------------


def declare(pack: ExtensionPack, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is told of a pack that was made with *options*, as plain JSON.

    Raise OptionsError if something is wrong with these.
    """
    declared = pack.options
    said = {
        **{name: getattr(pack, name) for name in _PACK_FIELDS},
        "options": declared if declared is None or isinstance(declared, Mapping) else ToldOptions.of(declared, options),
        "hooks": _hooks_of(pack),
        "troubles": None if pack.check is None or pack.on_activate is not None else troubles_of(pack),
        "descriptors": [declare_descriptor(one) for one in pack.descriptors],
    }
    plain: dict[str, Any] = encode_answer(said)
    return plain


def declare_descriptor(descriptor: Descriptor[Any]) -> dict[str, Any]:
    """Return what is told of a descriptor."""
    crossing = kind_of(descriptor.kind).crossing
    return {
        **{name: getattr(descriptor, name) for name in _FIELDS},
        "hooks": _hooks_of(descriptor),
        "troubles": None if descriptor.check is None or descriptor.on_activate is not None else troubles_of(descriptor),
        "has_gate": descriptor.gate is not None,
        "gate": None if descriptor.gate is None else descriptor.gate(),
        "payload": dict(crossing.describe(descriptor.payload)),
        "functions": list(crossing.functions(descriptor.payload)),
    }


def troubles_of(owner: ExtensionPack | Descriptor[Any]) -> list[Any]:
    """Return what is wrong with a pack or a descriptor, as it says itself; [what it raised] if it can't say."""
    try:
        return [[one.level, one.about, one.message, one.cure] for one in (owner.check or _nothing_wrong)()]
    except Exception as error:  # noqa: BLE001 - a check is foreign code, and the host makes a trouble of it
        return [encode_error(error)]


def _nothing_wrong() -> list[Trouble]:
    return []


def _hooks_of(owner: ExtensionPack | Descriptor[Any]) -> list[str]:
    return [name for name in _HOOKS if getattr(owner, name) is not None]


# -- in the host -------------------------------------------------------------------------------------------------------


def pack_from(declaration: Mapping[str, Any], ask: Ask) -> ExtensionPack:
    """Return the pack that a process declared; its functions ask that process."""
    return RemotePack(declaration, ask).pack


class RemotePack:
    """The pack that a process declared, with what was done with it: a new process has to do it again."""

    def __init__(self, declaration: Mapping[str, Any], ask: Ask) -> None:
        self._ask = ask
        self._gates: dict[tuple[str, str], str | None] = {}
        self._troubles: dict[str, list[Any]] = {}
        self._activated: dict[str, dict[str, Any]] = {}
        """By whose they are, the hooks that have run and were not taken back."""
        self._checked: list[str] = []
        """Those that say what is wrong with them: asked when they were activated, and in every new process."""
        said = decode(declaration, None)
        made = {name: said[name] for name in _PACK_FIELDS}
        descriptors = [self.descriptor(one) for one in said["descriptors"]]
        self.pack = ExtensionPack(
            **made, options=said["options"], descriptors=descriptors, **self._hooks("", said["hooks"], said["troubles"])
        )

    async def replay(self, request: Callable[[str, Any], Awaitable[Any]]) -> None:
        """Run in a new process the hooks that ran in the last one, in their order; *request* asks it directly."""
        for body in list(self._activated.values()):
            await request("hook", body)
        await self._check_again(request, self._checked)

    async def _check_again(self, request: Callable[[str, Any], Awaitable[Any]], owners: Iterable[str]) -> None:
        """Ask *owners* what is wrong with them, and the pack, which has to do with everything in it."""
        for owner in {*owners, ""} & {*self._checked}:
            self._troubles[owner] = await request("check", owner)

    def descriptor(self, said: Mapping[str, Any]) -> Descriptor[Any]:
        """Return the descriptor that was told of."""
        key = said["kind"], said["id"]
        functions = {name: self._function(key, name, said) for name in said["functions"]}
        self._gates[key] = said["gate"]
        return Descriptor(
            **{name: said[name] for name in _FIELDS},
            payload=kind_of(said["kind"]).crossing.proxy(said["payload"], functions),
            gate=(lambda: self._gates.get(key)) if said["has_gate"] else None,
            **self._hooks(f"{key[0]}:{key[1]}", said["hooks"], said["troubles"]),
        )

    def _function(self, key: tuple[str, str], name: str, said: Mapping[str, Any]) -> Function:
        is_idempotent = bool(said["payload"].get("idempotent")) or name == "dry_run"

        async def asked(*args: Any, **kwargs: Any) -> Any:
            body = {"key": [*key], "function": name, "args": [*args]}
            return await self._ask("call", body | {"kwargs": kwargs} if kwargs else body, idempotent=is_idempotent)

        asked.__name__ = asked.__qualname__ = name if name.isidentifier() else key[1]
        return asked

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def _hooks(self, owner: str, names: Iterable[str], troubles: list[Any] | None) -> dict[str, Any]:
        self._troubles[owner] = troubles or []
        return {name: getattr(self, f"_{name}")(owner, "check" in names) for name in names}

    def _on_activate(self, owner: str, has_check: bool) -> Function:
        async def on_activate(context: Any) -> None:
            body = {"of": owner, "name": "on_activate", "context": self._context_said(context)}
            await self._ask("hook", body)
            self._activated[owner] = body
            await self._check_again(self._ask, [owner] if has_check else [])

        return on_activate

    def _on_deactivate(self, owner: str, _: bool) -> Function:
        async def on_deactivate(context: Any) -> None:
            self._activated.pop(owner, None)
            await self._ask("hook", {"of": owner, "name": "on_deactivate", "context": self._context_said(context)})

        return on_deactivate

    def _check(self, owner: str, _: bool) -> Function:
        self._checked.append(owner)
        return lambda: [_trouble(one) for one in self._troubles[owner]]

    def _context_said(self, context: PackContext) -> dict[str, Any]:
        """Say what a hook is given; what it registers is registered while it runs, or as long as the process lives."""
        said: dict[str, Any] = {"options": dict(context.options), "source": context.source}
        port = context._port  # noqa: SLF001 - a context of our own
        if port is not None:
            said |= {"port": _PortAnswers(port, self).answer, "lasting_port": Lasting(_PortAnswers(port, self).answer)}
        entry = getattr(context, "entry", None)
        if entry is not None:
            said |= {"entry": entry_said(entry), "below": lambda: _said_or_none(context.below)}  # type: ignore[attr-defined]
        return said

    def note_gates(self, gates: Iterable[tuple[str, str, str | None]]) -> None:
        """Take in what the gates of descriptors say now."""
        self._gates.update({(kind, id): reason for kind, id, reason in gates})


def _trouble(said: Any) -> Trouble:
    if isinstance(said, Mapping):
        raise decode_error(said)
    return Trouble(*said)


def pack_request(context: PackContext) -> dict[str, Any]:
    """Return what the process of a pack is asked to make, as the body of `make`; raise PackLoadError if it can't be."""
    entry = context.manifest_entry
    if entry is None:
        raise PackLoadError(context.source.pack, "a pack in a process of its own needs a manifest entry")
    said = {name: getattr(entry, name) for name in _ENTRY_FIELDS}
    return {
        "entry": {
            **said,
            "options": dict(entry.options),
            "base_path": None if entry.base_path is None else str(entry.base_path),
            "factory": None if entry.factory is None else _importable(entry.factory, entry.label),
        },
        "source": context.source,
        "log_level": logging.getLogger(f"agentos.packs.{context.source.pack}").getEffectiveLevel(),
    }


def _importable(factory: Any, label: str) -> str:
    """Return the name by which another process finds a factory; raise PackLoadError if there is none."""
    module, name = getattr(factory, "__module__", None), getattr(factory, "__qualname__", "")
    found: Any = sys.modules.get(module or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not factory or module == "__main__":
        message = "a process of its own can't import its factory by name; put it at the top of a module that it can"
        raise PackLoadError(label, message)
    return f"{module}:{name}"


def _said_or_none(entry: Any) -> dict[str, Any] | None:
    return None if entry is None else entry_said(entry)


@attrs.frozen
class _PortAnswers:
    """Does for a pack in another process what it registers while it runs."""

    _port: Port
    _pack: RemotePack

    async def answer(self, method: str, *args: Any) -> Any:
        """Do one thing that a port does, by its name."""
        return await _PORT[method](self, *args)

    async def _entries(self, kind: str) -> list[dict[str, Any]]:
        return [entry_said(one) for one in self._port.entries(kind)]

    async def _all_entries(self, kind: str) -> list[dict[str, Any]]:
        return [entry_said(one) for one in self._port.all_entries(kind)]

    async def _accepted(self) -> Mapping[str, Mapping[str, Any]]:
        return self._port.accepted()

    async def _require(self, permission: str) -> None:
        self._port.require(permission)

    async def _exchange(self, kind: str, add: list[Any], drop: list[str]) -> list[dict[str, Any]]:
        made = [self._pack.descriptor(one) for one in add]
        standing = {one.descriptor for one in self._port.entries(kind)}
        new = [one for one in made if one not in standing]  # a new process registers again what the last one did
        if new or drop:
            await self._port.exchange(kind, new, drop)
        entries = {one.id: one for one in self._port.entries(kind)}
        return [entry_said(entries[one.id]) for one in made if one.id in entries]

    async def _refresh(self, kind: str, ids: list[str] | None, gates: list[Any]) -> None:
        self._pack.note_gates((kind, id, reason) for id, reason in gates)
        await self._port.refresh(kind, ids)

    async def _publish(self, topic: str, message: Any) -> None:
        self._port.require(_BUS)
        await self._port.bus.publish(topic, message)

    async def _subscribe(self, topic: str, listener: Any, began: Function) -> None:
        """Let the other process hear a topic, until it takes this call back or ends."""
        self._port.require(_BUS)
        unsubscribe = await self._port.bus.subscribe(topic, listener)
        try:
            await began()
            await asyncio.Event().wait()
        finally:
            unsubscribe()


_PORT: dict[str, Function] = {
    name: getattr(_PortAnswers, f"_{name}")
    for name in ("entries", "all_entries", "accepted", "require", "exchange", "refresh", "publish", "subscribe")
}
