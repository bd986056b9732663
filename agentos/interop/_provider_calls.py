"""What every provider's shape has in common: a kept list with its wire names, and calls on their way back."""

import json
import uuid
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import attrs

from agentos.calls.orchestrator import ToolOrchestrator
from agentos.interop._provider_schemas import flat_schema
from agentos.interop._strict_schemas import Restorer
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolCall, ToolResult
from agentos.schema.validation import ARGUMENTS_LIMIT
from agentos.tools.listing import ToolInfo
from agentos.tools.tool import Tool
from agentos.tools.wire_names import WireNames, wire_name

LISTS_CACHED = 64
Message = dict[str, Any]


class ToolHost(Protocol):
    """The part of a host that interop needs."""

    @property
    def tools(self) -> ToolOrchestrator:
        """Return what runs calls."""
        ...


# -- lists -------------------------------------------------------------------------------------------------------


class ToolList(list[dict[str, Any]]):
    """Tools in a provider's shape, with the way back from the names they have there.

    The list is the caller's own. Its items are kept for the next request: copy one before writing to it.
    """

    __slots__ = ("names", "restorers")

    def __init__(
        self, items: Iterable[dict[str, Any]], names: WireNames, restorers: Mapping[str, Restorer] | None = None
    ) -> None:
        super().__init__(items)
        self.names = names
        self.restorers: Mapping[str, Restorer] = restorers or {}

    def copy(self) -> "ToolList":
        """Return a list of the same items that can be changed without changing this one."""
        return ToolList(self, self.names, self.restorers)


Build = Callable[[Sequence[ToolInfo], WireNames], ToolList]


@attrs.define
class _ListCache:
    """The lists of one orchestrator, by shape and by the list of tools that each was made from."""

    version: int = -1
    lists: dict[tuple[Hashable, int], tuple[Sequence[ToolInfo], ToolList]] = attrs.field(factory=dict)


_caches: "WeakKeyDictionary[ToolOrchestrator, _ListCache]" = WeakKeyDictionary()


def provider_list(host: ToolHost, principal: Principal | None, shape: Hashable, build: Build) -> ToolList:
    """Return what *principal* is offered in one *shape*; built anew only when what is offered has changed."""
    orchestrator = host.tools
    infos = orchestrator.listed(principal)
    kept = _cached_lists(orchestrator)
    found = kept.get((shape, id(infos)))
    if found is None or found[0] is not infos:
        if len(kept) >= LISTS_CACHED:
            kept.clear()
        found = (infos, build(infos, WireNames.of(info.name for info in infos)))
        kept[shape, id(infos)] = found
    return found[1].copy()


def _cached_lists(orchestrator: ToolOrchestrator) -> dict[tuple[Hashable, int], tuple[Sequence[ToolInfo], ToolList]]:
    kept = _caches.get(orchestrator)
    if kept is None:
        kept = _caches[orchestrator] = _ListCache()
    version = orchestrator.catalog.registry.version
    if kept.version != version:
        kept.version, kept.lists = version, {}
    return kept.lists


def built_one_by_one(make: Callable[[ToolInfo, str], dict[str, Any]]) -> Build:
    """Return what builds a list tool by tool, from its description and wire name."""

    def build(infos: Sequence[ToolInfo], names: WireNames) -> ToolList:
        return ToolList((make(info, names.to_wire[info.name]) for info in infos), names)

    return build


def described_tools(host: ToolHost, principal: Principal | None) -> ToolList:
    """Return name, description and input schema of each tool, in the order of the host's list."""
    return provider_list(host, principal, "described", built_one_by_one(_described_tool))


def _described_tool(info: ToolInfo, wire: str) -> dict[str, Any]:
    return {"name": wire, "description": info.description, "input_schema": flat_schema(info.input_schema)}


def active_tools(host: ToolHost) -> dict[str, Tool]:
    """Return the tools in force by name, with what a list leaves out."""
    return {tool.name: tool for _, tool in host.tools.catalog.offered()}


# -- what a provider answered --------------------------------------------------------------------------------------


def first_field(value: Any, *names: str) -> Any:
    """Return the first field of that name that an SDK's object or a mapping has, or None."""
    for name in names:
        found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if found is not None:
            return found
    return None


def plain_data(value: Any, *, by_alias: bool = True) -> Any:
    """Return a copy of an SDK's object, as it came over the wire, in dicts and lists."""
    if isinstance(value, Mapping):
        return {key: plain_data(item, by_alias=by_alias) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(item, by_alias=by_alias) for item in value]
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json", by_alias=by_alias, exclude_unset=True, warnings=False)
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return plain_data(vars(value), by_alias=by_alias)
    return value


def without_nulls(value: Mapping[str, Any], *dropped: str) -> dict[str, Any]:
    """Return *value* without fields that are null or *dropped*: what a provider answers it need not take back."""
    return {key: item for key, item in value.items() if item is not None and key not in dropped}


@attrs.frozen
class ModelCall:
    """A call as a model made it: to be answered once, whatever is wrong with it."""

    id: str
    name: str
    arguments: Any = attrs.field(repr=False)
    kind: str = "function"

    @property
    def wire(self) -> str:
        """Return the name as a provider accepts it in a history: a model may have made up one that does not fit."""
        return wire_name(self.name)

    @property
    def arguments_json(self) -> str:
        """Return the arguments as JSON text that every endpoint accepts in a history."""
        if not isinstance(self.arguments, str):
            return json.dumps(self.arguments or {})
        if not self.arguments.strip():
            return "{}"
        try:
            json.loads(self.arguments)
        except (ValueError, RecursionError):
            return json.dumps({"INVALID_JSON": self.arguments})
        return self.arguments


@attrs.frozen
class Reply:
    """What a model said, as it must be sent again, and the calls in it."""

    messages: list[Message]
    calls: list[ModelCall]


def unique_ids(ids: Sequence[Any]) -> list[str]:
    """Return an id for each call: its own, or a new one where it has none or another call has the same."""
    taken: set[str] = set()
    made: list[str] = []
    for given in ids:
        id = given if isinstance(given, str) and given and given not in taken else f"call_{uuid.uuid4().hex[:24]}"
        taken.add(id)
        made.append(id)
    return made


def name_of(value: Any) -> str:
    """Return a name as text; a model that gave none asked for something unknown."""
    return value if isinstance(value, str) and value else "unknown"


# -- the way back --------------------------------------------------------------------------------------------------


def names_of_list(host: ToolHost, given: Any, principal: Principal | None) -> ToolList:
    """Return the list that was sent, with its names; of a plain list they are found again."""
    if isinstance(given, ToolList):
        return given
    return provider_list(host, principal, "names", lambda _, names: ToolList((), names))


def host_calls(asked: Iterable[ModelCall], tools: ToolList) -> list[ToolCall]:
    """Return the calls for the host: with the tools' own names, and without the nulls of strict schemas."""
    return [
        ToolCall(name, _arguments(one.arguments, tools.restorers.get(name)), one.id or None)
        for one in asked
        for name in [tools.names.decode(one.name)]
    ]


def _arguments(given: Any, restorer: Restorer | None) -> Any:
    if isinstance(given, str) and not given.strip():
        return None
    if restorer is None or (isinstance(given, str) and ("null" not in given or len(given) > ARGUMENTS_LIMIT)):
        return given
    try:
        restored = restorer(json.loads(given) if isinstance(given, str) else given)
    except (ValueError, RecursionError):
        return given  # the host says what is wrong with it
    return restored if isinstance(restored, Mapping) else given


async def results_of(
    host: ToolHost,
    asked: Sequence[ModelCall],
    tools: Sequence[Any],
    principal: Principal | None,
    session: Mapping[str, Any] | None,
) -> list[ToolResult]:
    """Run calls side by side; results are in the order of the calls, one for each."""
    if not asked:
        return []
    calls = host_calls(asked, names_of_list(host, tools, principal))
    return await host.tools.process_tool_calls(calls, principal, session=session)
