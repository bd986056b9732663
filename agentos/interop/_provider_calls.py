"""What every provider's shape has in common: a kept list with its wire names, and calls on their way back."""

import json
import logging
import uuid
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import attrs

from agentos.access.principals import narrower
from agentos.calls.orchestrator import ToolOrchestrator
from agentos.errors import WrongPrincipalError
from agentos.interop._provider_schemas import flat_schema
from agentos.interop._strict_schemas import Restorer
from agentos.model.principal import SYSTEM, Principal
from agentos.model.tool_call import ToolCall, ToolResult
from agentos.schema.validation import ARGUMENTS_LIMIT
from agentos.tools.listing import ToolInfo
from agentos.tools.tool import Tool
from agentos.tools.wire_names import WireNames, wire_name

LISTS_CACHED = 64
NOBODY = Principal("nobody", "service")
"""Whom calls are made for where neither the caller nor the list says: it may call what is public."""
_EDIT_LIMIT = 1_000
"""How many characters of the arguments that a person gave a model is told."""
PENDING = "agentos/pending"
"""What `_meta` has of a call that waits for a person, where an answer has a place for it."""
Message = dict[str, Any]

_logger = logging.getLogger("agentos.interop")


class ToolHost(Protocol):
    """The part of a host that interop needs."""

    @property
    def tools(self) -> ToolOrchestrator:
        """Return what runs calls."""
        ...


# -- lists -------------------------------------------------------------------------------------------------------


class ListedTool(dict[str, Any]):
    """A tool in a provider's shape, which knows whose list it comes from: so does what is taken from a list."""

    __slots__ = ("principal",)

    def __init__(self, item: Mapping[str, Any], principal: Principal | None) -> None:
        super().__init__(item)
        self.principal = principal


class ToolList(list[dict[str, Any]]):
    """Tools in a provider's shape, with whom they are for and the way back from the names they have there.

    `principal` is None if nobody was named: it is the host's then, unless whoever runs its calls names somebody. The
    list is the caller's own. Its items are kept for the next request: copy one before writing to it.
    """

    __slots__ = ("names", "principal", "restorers")

    def __init__(
        self,
        items: Iterable[dict[str, Any]],
        names: WireNames,
        restorers: Mapping[str, Restorer] | None = None,
        principal: Principal | None = None,
    ) -> None:
        super().__init__(items)
        self.names = names
        self.restorers: Mapping[str, Restorer] = restorers or {}
        self.principal = principal

    def copy(self) -> "ToolList":
        """Return a list of the same items that can be changed without changing this one."""
        return ToolList(self, self.names, self.restorers, self.principal)

    def made_for(self, principal: Principal | None) -> "ToolList":
        """Return a list of the same tools that belongs to *principal*."""
        return ToolList((ListedTool(item, principal) for item in self), self.names, self.restorers, principal)


Build = Callable[[Sequence[ToolInfo], WireNames], ToolList]


@attrs.frozen
class _Shaped:
    """A list of tools in one shape, and those made of it for each principal."""

    infos: Sequence[ToolInfo]
    unowned: ToolList
    by_principal: dict[Principal | None, ToolList] = attrs.field(factory=dict)

    def made_for(self, principal: Principal | None) -> ToolList:
        """Return the kept list of *principal*; of None, one for which nobody was named."""
        made = self.by_principal.get(principal)
        if made is None:
            _make_room(self.by_principal)
            made = self.by_principal[principal] = self.unowned.made_for(principal)
        return made


@attrs.define
class _ListCache:
    """The lists of one orchestrator, by shape and by the list of tools that each was made from."""

    version: int = -1
    lists: dict[tuple[Hashable, int], _Shaped] = attrs.field(factory=dict)
    warned: set[str] = attrs.field(factory=set)


_caches: "WeakKeyDictionary[ToolOrchestrator, _ListCache]" = WeakKeyDictionary()


def named_principal(host: ToolHost, principal: Principal | None, place: str = "tools are listed") -> Principal:
    """Return for whom calls are made: if nobody is named, the host itself, which is logged once for each host.

    *place* says what was done, for the log.
    """
    if principal is not None:
        return principal
    kept = _cache_of(host.tools)
    if place not in kept.warned:
        kept.warned.add(place)
        _logger.warning(
            "%s without a principal, so calls are made for the host itself, which may call everything; "
            "name the user's Principal, or Principal.system() if that is meant",
            place,
        )
    return SYSTEM


def provider_list(host: ToolHost, principal: Principal | None, shape: Hashable, build: Build) -> ToolList:
    """Return what *principal* is offered in one *shape*; built anew only when what is offered has changed."""
    who = named_principal(host, principal)
    infos, kept = host.tools.listed(who), _cache_of(host.tools).lists
    found = kept.get((shape, id(infos)))
    if found is None or found.infos is not infos:
        _make_room(kept)
        found = _Shaped(infos, build(infos, WireNames.of(info.name for info in infos)))
        kept[shape, id(infos)] = found
    return found.made_for(principal).copy()


def _make_room(kept: dict[Any, Any]) -> None:
    if len(kept) >= LISTS_CACHED:
        kept.clear()


def _cache_of(orchestrator: ToolOrchestrator) -> _ListCache:
    kept = _caches.get(orchestrator)
    if kept is None:
        kept = _caches[orchestrator] = _ListCache()
    version = orchestrator.catalog.registry.version
    if kept.version != version:
        kept.version, kept.lists = version, {}
    return kept


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


class RunMessages(list[Message]):
    """What to append for the next request; `results` are what the calls came to, in their order."""

    def __init__(self, messages: Iterable[Message], results: Sequence[ToolResult] = ()) -> None:
        super().__init__(messages)
        self.results = list(results)

    @property
    def pending(self) -> list[str]:
        """Return the ids of the proposals that wait for a person, each once."""
        return pending_ids(self.results)


def pending_ids(results: Iterable[ToolResult]) -> list[str]:
    """Return the ids of the proposals that results wait for, each once."""
    waiting = (result.pending for result in results)
    return list(dict.fromkeys(str(one["proposal_id"]) for one in waiting if one is not None))


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


def caller_of(given: Any, principal: Principal | None) -> Principal:
    """Return for whom the calls of a list are made: whom it was made for, with no more than *principal* holds.

    Another principal is refused. Where neither says, as with a list that came out of a database, it is nobody.
    """
    owners = _owners(given)
    if principal is None:
        who, *others = [owner or SYSTEM for owner in owners] or [NOBODY]
    else:
        who, *others = [*filter(None, owners), principal]
    for other in others:
        if other.key != who.key:
            raise WrongPrincipalError("this list of tools", who.key, other.key)
        who = narrower(who, other)
    return who


def _owners(given: Any) -> list[Principal | None]:
    """Return whom the tools of a list were made for, each once; None stands for a list where nobody was named."""
    if isinstance(given, ToolList):
        return [given.principal]
    return list(dict.fromkeys(one.principal for one in given or () if isinstance(one, ListedTool)))


def names_of_list(host: ToolHost, given: Any, principal: Principal) -> ToolList:
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
    named: Callable[[ToolHost, Any, Principal], ToolList] = names_of_list,
) -> list[ToolResult]:
    """Run calls side by side, for whom the list was made; results are in the order of the calls, one for each."""
    who = caller_of(tools, principal)
    if not asked:
        return []
    if who is NOBODY:
        _logger.warning(
            "calls came with tools that do not say for whom they were made, and without a principal: they are made for "
            "nobody, who may call what is public; give run() the list that tools() returned, or a principal"
        )
    calls = host_calls(asked, named(host, tools, who))
    return await host.tools.process_tool_calls(calls, who, session=session, rejoin=True)


def answer_text(result: ToolResult) -> str:
    """Return what a model reads: of a call that waits for a person, that it waits. That is no failure to mend.

    Of a call whose arguments a person changed, it is told so, and with which it ran.
    """
    if result.pending is None or result.error is None:
        return f"{result.content}{_edit_note(result)}"
    return f"Pending: {result.error.message}"


def _edit_note(result: ToolResult) -> str:
    if "edited" not in result.meta:
        return ""
    arguments = result.meta["edited"]
    ran = "" if arguments is None else f" It ran with {json.dumps(arguments, ensure_ascii=False)[:_EDIT_LIMIT]}"
    return f"\n\n[A person changed the arguments of this call before it ran.{ran}]"


def is_failure(result: ToolResult) -> bool:
    """Tell whether a model shall take a result for a failure; a call that waits for a person did not fail."""
    return not result.success and result.pending is None
