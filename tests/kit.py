"""What the tests share: packs that write down what happens to them."""

import asyncio
from collections.abc import Callable
from typing import Any

from agentos import Descriptor, ExtensionPack, guardrail, workflow

Log = list[tuple[str, str]]


class Boom(Exception):
    """What a hook of a test raises."""


def noting(log: Log, what: str, who: str, *, fails: bool = False, is_async: bool = False) -> Callable[..., Any]:
    """Return a hook that writes to *log*, and then raises if told to."""

    def hook(context: Any) -> None:
        log.append((what, who))
        if fails:
            raise Boom(f"{what}{who}")

    async def async_hook(context: Any) -> None:
        await asyncio.sleep(0)
        hook(context)

    return async_hook if is_async else hook


def _nothing(subject: Any, context: Any) -> None:
    """Have nothing to say."""


async def _no_steps(flow: Any) -> None:
    """Do nothing."""


PAYLOADS = {
    "guardrail": guardrail(stage="input")(_nothing),
    "response-processor": _nothing,
    "workflow": workflow()(_no_steps),
}
"""What kinds take that do not take anything."""


def descriptor(
    id: str,
    who: str = "",
    *,
    kind: str = "tool",
    log: Log | None = None,
    bad_on: str = "",
    bad_off: str = "",
    **fields: Any,
) -> Descriptor[Any]:
    """Return a descriptor whose payload is *who*, or what its kind takes, and whose hooks are written to *log*."""
    who = who or id
    if log is not None:
        fields.setdefault("on_activate", noting(log, "+", who, fails=bool(bad_on)))
        fields.setdefault("on_deactivate", noting(log, "-", who, fails=bool(bad_off)))
    return Descriptor(kind, id, PAYLOADS.get(kind, who), **fields)


def pack(name: str, *descriptors: Descriptor[Any], log: Log | None = None, **fields: Any) -> ExtensionPack:
    """Return a pack whose own hooks are written to *log* too."""
    if log is not None:
        fields.setdefault("on_activate", noting(log, "+", f"pack {name}"))
        fields.setdefault("on_deactivate", noting(log, "-", f"pack {name}"))
    return ExtensionPack(name, fields.pop("version", "1.0"), descriptors, **fields)


def states(manager: Any, id: str, kind: str = "tool") -> dict[str, str]:
    """Return the state of each pack's entry on a stack."""
    return {entry.source.pack: str(entry.state) for entry in manager.explain(kind, id).entries}


class Recorder:
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def __call__(self, event: Any) -> None:
        self.events.append(event)

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    def of(self, type: str) -> list[Any]:
        return [event for event in self.events if event.type == type]
