"""The kind `persona`: in whose voice a turn speaks, and what it leaves of a principal's tools.

A payload is a Persona, which may stand among a pack's descriptors as it is, and in a manifest as `[personas.<id>]`: one
of the manifest counts before one of a pack.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from agentos.base.foreign import is_a, type_name
from agentos.errors import DescriptorError, PersonaError
from agentos.model.crossing import Crossing
from agentos.model.descriptor import Descriptor
from agentos.model.extension_pack import ExtensionPack
from agentos.model.field_checks import did_you_mean
from agentos.model.kind import Kind, declare_own_kind
from agentos.model.manifest import PackEntry
from agentos.model.persona import Persona
from agentos.model.principal import SYSTEM, Principal
from agentos.payloads.asked_payload import ask_payload
from agentos.payloads.foreign_job import Threads
from agentos.payloads.payload_context import PayloadContext
from agentos.stacks.entry import Entry

if TYPE_CHECKING:
    from agentos.extensions.manager import ExtensionManager

_OWNER = "manifest/personas"
"""The pack of the personas that a manifest says."""
_TIMEOUT = 10.0


def _check(descriptor: Descriptor[Any]) -> None:
    payload = descriptor.payload
    if not isinstance(payload, Persona):
        raise DescriptorError(f"persona {descriptor.id!r}: expected a Persona, got {type(payload).__name__}")
    if payload.id != descriptor.id:
        raise DescriptorError(f"persona {descriptor.id!r}: the Persona in it is called {payload.id!r}")


def _adapt(offered: object) -> Sequence[Descriptor[Any]]:
    return [Descriptor("persona", offered.id, offered)] if isinstance(offered, Persona) else ()


def persona_entries(personas: Mapping[str, Persona]) -> list[PackEntry]:
    """Return the personas of a manifest as the entry of one pack, which is loaded last."""
    if not personas:
        return []
    pack = ExtensionPack(_OWNER, "1", list(personas.values()), description="The personas that the manifest says.")
    return [PackEntry(factory=pack, identifier=_OWNER)]


class Personas:
    """The personas in force, and what each makes of a principal and a prompt."""

    def __init__(self, manager: "ExtensionManager", threads: Threads) -> None:
        self._registry = manager.registry(PERSONA.name)
        self._masker = manager.masker
        self._threads = threads

    def active(self) -> list[Persona]:
        """Return the personas in force."""
        return [entry.payload for entry in self._registry.list_active()]

    def get(self, id: str) -> Persona:
        """Return the persona of an id; raise PersonaError if none is in force."""
        persona: Persona = self._entry(id).payload
        return persona

    def narrow(self, id: str, principal: Principal | None = None) -> Principal:
        """Return *principal*, by default the host itself, with no more tools than the persona leaves.

        Lists and calls for what is returned are narrowed, those that tools make in turn as well.
        """
        return (principal or SYSTEM).within(self.get(id).bounds)

    async def prompt(
        self, id: str, *, principal: Principal | None = None, session: Mapping[str, Any] | None = None
    ) -> str:
        """Return what the persona tells the model, masked; raise PersonaError if its function fails."""
        entry = self._entry(id)
        said = entry.payload.system_prompt
        if isinstance(said, str):
            return self._masker.mask(said)
        context = PayloadContext(entry, principal or SYSTEM, {} if session is None else session)
        answer, error = await ask_payload(entry, lambda _: said, context, threads=self._threads, seconds=_TIMEOUT)
        if error is None and is_a(answer, str):
            return self._masker.mask(str.__str__(answer))
        why = f"gave a {type_name(answer)}, no text" if error is None else f"failed with {type_name(error)}"
        raise PersonaError(id, f"the system prompt of the persona {id!r} {why}") from error

    def _entry(self, id: str) -> Entry:
        entry = self._registry.get_active(id)
        if entry is None:
            raise PersonaError(id, f"no persona {id!r} is in force{did_you_mean(id, self._registry.ids())}")
        return entry


_PLAIN = [field.name for field in attrs.fields(Persona) if field.init and field.name != "system_prompt"]


def _describe(persona: Persona) -> dict[str, Any]:
    prompt = persona.system_prompt
    said = {name: getattr(persona, name) for name in _PLAIN}
    return {**said, "system_prompt": prompt} if isinstance(prompt, str) else said


_CROSSING = Crossing(
    describe=_describe,
    functions=lambda one: {} if isinstance(one.system_prompt, str) else {"system_prompt": one.system_prompt},
    proxy=lambda said, functions: Persona(**{**said, **functions}),
)

PERSONA = declare_own_kind(
    Kind(
        "persona",
        check=_check,
        adapt=_adapt,
        reader="`host.personas`, and turns with a persona",
        crossing=_CROSSING,
    )
)
