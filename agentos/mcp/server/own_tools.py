"""The server's own tools: finding tools where there are many, and deciding on calls that wait."""

import itertools
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
from mcp.server.context import ServerRequestContext

from agentos.access.proposals import Proposal, ProposalError
from agentos.interop.mcp import effect_hints
from agentos.mcp.server.approval_prompts import REASON_LIMIT, ApprovalPrompts
from agentos.mcp.server.list_changed import ListChangeNotifier
from agentos.mcp.server.served_host import ServedHost
from agentos.mcp.server.shown_tools import ShownTools, is_modern
from agentos.mcp.server.wire_format import Item, clipped
from agentos.model.field_checks import did_you_mean
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult
from agentos.schema.validation import BadArguments, Checker
from agentos.secrets.masking import Masker
from agentos.tools.search import QUERY_LIMIT, RESULT_LIMIT
from agentos.tools.tool import Effect

Context = ServerRequestContext[Any, Any]
Handler = Callable[[Context, Principal, Mapping[str, Any]], Awaitable["ToolResult | MeantCall"]]

NAMES_LIMIT = 100
"""How many tools one call may load, and how many proposals one call lists."""
_DESCRIPTION_LIMIT = 500
_HINTS = 3
_NAMES_SEARCHED = 2_000

SEARCH_TOOL_NAMES = ("search_tools", "load_tools", "call_tool")
PROPOSAL_TOOL_NAMES = ("proposals_list", "proposals_show", "proposals_apply", "proposals_reject")


@attrs.frozen
class MeantCall:
    """What a call of `call_tool` stands for: the call of another tool, which is made as if the client had."""

    name: str
    arguments: Mapping[str, Any] = attrs.field(repr=False)


@attrs.frozen(eq=False)
class OwnTool:
    """A tool that the server itself answers."""

    item: Item
    checker: Checker = attrs.field(repr=False)
    handler: Handler = attrs.field(repr=False)

    @classmethod
    def of(cls, name: str, description: str, schema: Mapping[str, Any], handler: Handler, effect: Effect) -> "OwnTool":
        """Make one; its *schema* names its parameters."""
        required = [key for key, part in schema.items() if "default" not in part]
        whole = {"type": "object", "properties": dict(schema), "required": required, "additionalProperties": False}
        item = {
            "name": name,
            "title": name.replace("_", " ").capitalize(),
            "description": description,
            "inputSchema": whole,
            "annotations": effect_hints(effect),
        }
        return cls(item, Checker(whole, f"the input schema of {name!r}"), handler)

    async def run(self, ctx: Context, who: Principal, given: Mapping[str, Any] | None) -> ToolResult | MeantCall:
        """Check the arguments and answer. The answer is masked and bounded by whoever sends it."""
        try:
            arguments = self.checker.arguments(given)
        except BadArguments as error:
            lines = "; ".join(str(problem) for problem in error.problems)
            return ToolResult.fail("InvalidArguments", f"{error}{': ' if lines else ''}{lines}")
        return await self.handler(ctx, who, arguments)


class SearchTools:
    """`search_tools`, `load_tools`, `call_tool`: what a client sees in place of more tools than it wants to be shown.

    A client that lists tools only once never sees what it loads; it calls them by `call_tool`.
    """

    def __init__(
        self, shown_tools: ShownTools, notifier: ListChangeNotifier, masker: Masker, own_names: Collection[str]
    ) -> None:
        self._shown = shown_tools
        self._own_names = own_names
        self._notifier = notifier
        self._masker = masker

    def tools(self) -> list[OwnTool]:
        """Return all three."""
        return [
            OwnTool.of(
                "search_tools",
                "Find tools by what they do. There are more than are listed: search in a few words for what you want "
                "to do, then load the tools that fit with load_tools. What does not appear among your tools after that "
                "is called with call_tool.",
                {
                    "query": {"type": "string", "minLength": 1, "maxLength": QUERY_LIMIT, "description": "A few words"},
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": RESULT_LIMIT,
                        "default": 10,
                        "description": "How many to return at most",
                    },
                },
                self._search,
                "read",
            ),
            OwnTool.of(
                "load_tools",
                "Offer tools that search_tools found from now on in this conversation; returns how each is called.",
                {
                    "names": {
                        "type": "array",
                        "items": {"type": "string"},
                        "minItems": 1,
                        "maxItems": NAMES_LIMIT,
                        "description": "Names as search_tools returned them",
                    }
                },
                self._load,
                "read",
            ),
            OwnTool.of(
                "call_tool",
                "Call a tool that search_tools found and that is not among your tools. It is the same as calling the "
                "tool itself; load_tools returns which arguments it takes.",
                {
                    "name": {"type": "string", "minLength": 1, "description": "A name as search_tools returned it"},
                    "arguments": {"type": "object", "default": {}, "description": "The arguments of that tool"},
                },
                self._call,
                "destructive",
            ),
        ]

    async def _search(self, ctx: Context, who: Principal, arguments: Mapping[str, Any]) -> ToolResult:  # noqa: ARG002 - a handler
        hits = await self._shown.search(arguments["query"], arguments["limit"], who)
        names = self._shown.in_force().names
        found = [
            {
                "name": names.wire(hit.info.name),
                "description": clipped(self._masker.mask(hit.info.description), _DESCRIPTION_LIMIT),
                "effect": hit.info.effect,
                "parameters": list(hit.info.input_schema.get("properties", {}))[:NAMES_LIMIT],
            }
            for hit in hits
        ]
        if not found:
            return ToolResult.ok({"tools": []}, "Nothing fits. Search in other words.")
        return ToolResult.ok({"tools": found})

    async def _load(self, ctx: Context, who: Principal, arguments: Mapping[str, Any]) -> ToolResult:
        visible = self._shown.callable_by(who)
        wanted = {name: self._shown.tool_name(name) for name in dict.fromkeys(arguments["names"])}
        known = [name for name in wanted.values() if name in visible]
        unknown = list(_unknown_tools([name for name, own in wanted.items() if own not in visible], visible))
        if self._shown.load(ctx, who, known):
            await self._notifier.notify_client(ctx, who)
        items = self._shown.items([visible[name] for name in known], modern=is_modern(ctx))
        shown = [{key: item[key] for key in ("name", "description", "inputSchema")} for item in items]
        if unknown and not known:
            return ToolResult.fail("UnknownTool", "; ".join(unknown))
        return ToolResult.ok({"loaded": shown, "unknown": unknown})

    async def _call(self, ctx: Context, who: Principal, arguments: Mapping[str, Any]) -> ToolResult | MeantCall:  # noqa: ARG002 - a handler
        name = arguments["name"]
        if name in self._own_names:
            return ToolResult.fail("InvalidArguments", f"{name!r} is among your tools: call it by its own name")
        return MeantCall(name, arguments["arguments"])


def _unknown_tools(names: Sequence[str], known: Iterable[str]) -> Iterator[str]:
    """Say of each name that it is unknown; of the first few also what was probably meant, which is slow to find."""
    searched = list(itertools.islice(known, _NAMES_SEARCHED))
    for number, name in enumerate(names):
        hint = did_you_mean(name[:100], searched) if number < _HINTS else ""
        yield f"there is no tool called {name[:100]!r}{hint}"


class ProposalTools:
    """`proposals_*`: how a client that can't ask a person lists, applies and rejects what waits."""

    def __init__(self, host: ServedHost, prompts: ApprovalPrompts) -> None:
        self._host = host
        self._prompts = prompts

    def tools(self) -> list[OwnTool]:
        """Return all four."""
        id = {"id": {"type": "string", "minLength": 1, "maxLength": 200, "description": "The proposal's id"}}
        reason = {"type": "string", "maxLength": REASON_LIMIT, "default": "", "description": "Why"}
        return [
            OwnTool.of("proposals_list", "List the calls that wait for approval.", {}, self._list, "read"),
            OwnTool.of(
                "proposals_show",
                "Show what exactly a proposal would run, or what became of it.",
                id,
                self._show,
                "read",
            ),
            OwnTool.of(
                "proposals_apply",
                "Run exactly what was proposed, once. Only after the user has seen it and agreed.",
                id,
                self._apply,
                "destructive",
            ),
            OwnTool.of(
                "proposals_reject",
                "Close a proposal without running it.",
                {**id, "reason": reason},
                self._reject,
                "mutate",
            ),
        ]

    async def _list(self, ctx: Context, who: Principal, arguments: Mapping[str, Any]) -> ToolResult:  # noqa: ARG002 - a handler
        pending = await self._host.approvals.pending(None if _is_host(who) else who)
        mine = [proposal for proposal in pending if self._may_see(proposal, who)]
        shown = [_summary(proposal) for proposal in mine[:NAMES_LIMIT]]
        content = None if mine else "Nothing waits for approval."
        return ToolResult.ok({"proposals": shown, "waiting": len(mine)}, content)

    async def _show(self, ctx: Context, who: Principal, arguments: Mapping[str, Any]) -> ToolResult:  # noqa: ARG002 - a handler
        proposal = await self._find(arguments["id"], who)
        return _unknown_proposal(arguments["id"]) if proposal is None else ToolResult.ok(_summary(proposal, whole=True))

    async def _apply(self, ctx: Context, who: Principal, arguments: Mapping[str, Any]) -> ToolResult:
        proposal = await self._find(arguments["id"], who)
        return (
            _unknown_proposal(arguments["id"]) if proposal is None else await self._prompts.apply(ctx, proposal.id, who)
        )

    async def _reject(self, ctx: Context, who: Principal, arguments: Mapping[str, Any]) -> ToolResult:  # noqa: ARG002 - a handler
        proposal = await self._find(arguments["id"], who)
        if proposal is None:
            return _unknown_proposal(arguments["id"])
        fault = await self._prompts.reject(proposal.id, arguments["reason"], who)
        return fault or ToolResult.ok({"id": proposal.id, "state": "rejected"})

    async def _find(self, id: str, who: Principal) -> Proposal | None:
        try:
            proposal = await self._host.approvals.describe(id)
        except ProposalError:
            return None
        return proposal if proposal.id == id and self._may_see(proposal, who) else None

    def _may_see(self, proposal: Proposal, who: Principal) -> bool:
        """Tell whether a proposal is one's own, and of a tool that one may call: the host itself sees all."""
        if _is_host(who):
            return True
        return proposal.principal.key == who.key and self._host.tools.get_tool(proposal.tool, who) is not None


def _summary(proposal: Proposal, *, whole: bool = False) -> dict[str, Any]:
    """Return what a client may see of a proposal; a token is never in it."""
    summary: dict[str, Any] = {
        "id": proposal.id,
        "tool": proposal.tool,
        "effect": proposal.effect,
        "state": proposal.state,
        "reason": proposal.reason,
        "flagged": list(proposal.flagged),
        "expires_at": proposal.expires_at.isoformat(timespec="seconds"),
        "principal": proposal.principal.key,
    }
    if whole:
        summary |= {
            "arguments": dict(proposal.arguments or {}),
            "preview": proposal.preview,
            "pack": proposal.pack,
            "version": proposal.version,
            "origin": proposal.origin,
            "shadows": list(proposal.shadows),
            "note": proposal.note,
        }
    return summary


def _is_host(who: Principal) -> bool:
    return who.kind == "system" and "*" in who.held


def _unknown_proposal(id: str) -> ToolResult:
    return ToolResult.fail(
        "ProposalInvalid", f"there is no proposal {id[:64]!r}; `proposals_list` lists those that wait"
    )
