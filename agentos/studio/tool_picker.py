"""Which tools an agent has: ticked on the page Tools, and saved as a persona that turns and chats use."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from agentos.errors import AgentOSError
from agentos.model.descriptor import Descriptor
from agentos.model.field_checks import fault_of_name
from agentos.model.persona import Persona
from agentos.model.source import Source
from agentos.studio.view import PageView
from agentos.tools.listing import ToolInfo

PICKS: Final = 2_000
_TEXT: Final = 20_000
_SOURCE = Source("studio", origin="saved in the studio")

SavePersona = Callable[[str, Mapping[str, Any]], str]
"""Writes what a persona says to where the next host reads it; returns what to say of that place."""


class PickerError(AgentOSError, ValueError):
    """A selection of tools that can't be saved."""


@attrs.frozen(kw_only=True)
class ToolPicker:
    """What the checkboxes of the page show."""

    persona: str
    personas: Sequence[str]
    description: str
    ticked: frozenset[str]
    """The qualified ids of the tools that the persona leaves."""
    kept: Sequence[str]
    """Those of them that are not shown, and stay picked."""
    where: str = ""


def picker_of(view: PageView, infos: Iterable[ToolInfo], shown: Iterable[ToolInfo]) -> ToolPicker:
    """Return what is ticked: the tools that the persona of the address leaves, or none of them."""
    known = {one.id: one for one in view.host.personas.active()}
    chosen = known.get(view.asked("persona"))
    visible = {info.fully_qualified_id for info in shown}
    picked = [] if chosen is None else [info.fully_qualified_id for info in infos if _leaves(chosen, info)]
    return ToolPicker(
        persona="" if chosen is None else chosen.id,
        personas=list(known),
        description="" if chosen is None else chosen.description,
        ticked=frozenset(picked),
        kept=[id for id in picked if id not in visible],
    )


def _leaves(persona: Persona, info: ToolInfo) -> bool:
    return persona.bounds.admits(info, info.fully_qualified_id)


async def save_picked(view: PageView, fields: Sequence[tuple[str, str]]) -> str:
    """Save what is ticked as a persona, in force from now on; return what to say of it."""
    given = dict(fields)
    id = given.get("persona", "").strip()
    if fault := fault_of_name(id):
        raise PickerError(f"the persona's name: {fault}")
    known = {info.fully_qualified_id for info in view.host.tools.list_available_tools(view.principal)}
    picked = list(dict.fromkeys(value for name, value in fields if name == "pick"))[:PICKS]
    if unknown := [one for one in picked if one not in known]:
        raise PickerError(f"there is no tool {unknown[0][:128]!r}; load the page anew")
    if not picked:
        raise PickerError("tick a tool at least: a persona without tools can call none")
    persona = _persona(view, id, given.get("description", "")[:_TEXT], picked)
    place = _write(view, persona)
    await _put_in_force(view, persona)
    return f"{id} is saved with {len(picked)} tools{place}. Chats and turns with this persona have these tools."


def _persona(view: PageView, id: str, description: str, picked: Sequence[str]) -> Persona:
    """Return a persona with the tools that were picked; one that is there already keeps the rest that it says."""
    before = next((one for one in view.host.personas.active() if one.id == id), None)
    if before is None:
        return Persona(id, description, tools=tuple(picked))
    if not isinstance(before.system_prompt, str):
        raise PickerError(f"the persona {id!r} is a pack's, which makes its prompt itself; choose another name")
    return attrs.evolve(before, description=description or before.description, tools=tuple(picked), deny=())


def _write(view: PageView, persona: Persona) -> str:
    save = view.settings.get("save_persona")
    if not callable(save):
        return " until this host ends"
    said: dict[str, Any] = {"description": persona.description, "tools": list(persona.tools)}
    if persona.system_prompt:
        said["systemPrompt"] = persona.system_prompt
    return f" in {save(persona.id, said)}"


async def _put_in_force(view: PageView, persona: Persona) -> None:
    """Let the persona count in this host at once; what was saved here before goes."""
    registry = view.host.extensions.registry("persona")
    before = [entry for entry in registry.stack(persona.id) if entry.source.pack == _SOURCE.pack]
    await registry.register(Descriptor("persona", persona.id, persona), source=_SOURCE)
    for entry in before:
        await registry.remove(entry)
