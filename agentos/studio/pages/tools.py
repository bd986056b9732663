"""What can be called: the tools of whoever is signed in by pack, and each tried out."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from starlette.responses import Response

from agentos.access.audit import AuditRecord
from agentos.errors import AgentOSError
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolCall, ToolResult
from agentos.studio.forms.form_answers import submitted_form
from agentos.studio.forms.form_entries import entered_of
from agentos.studio.forms.form_fields import FormField, form_of
from agentos.studio.page import Page
from agentos.studio.pages.audit import newest_records
from agentos.studio.tool_picker import PickerError, picker_of, save_picked
from agentos.studio.view import PageView
from agentos.tools.listing import ToolInfo
from agentos.tools.ready import ReadyTool
from agentos.tools.shown import Shown, shown

_EFFECTS = ("read", "mutate", "destructive")
_RECORDS = 2_000
"""Among how many of the newest records those of one call are looked for."""


class UnknownToolError(AgentOSError, LookupError):
    """A tool that whoever is signed in can't call, or that is not there."""


@attrs.frozen(kw_only=True)
class ToolFilter:
    """Which tools are wanted."""

    text: str = ""
    pack: str = ""
    effect: str = ""

    @classmethod
    def of(cls, view: PageView) -> "ToolFilter":
        """Read what the address asks for."""
        return cls(text=view.asked("text").strip(), pack=view.asked("pack"), effect=view.asked("effect"))

    def fits(self, info: ToolInfo) -> bool:
        """Tell whether a tool is wanted."""
        if (self.pack and _owner(info) != self.pack) or (self.effect and info.effect != self.effect):
            return False
        text = self.text.lower()
        return any(text in one.lower() for one in (info.fully_qualified_id, info.description, *info.aliases))


def _owner(info: ToolInfo) -> str:
    return info.fully_qualified_id.rpartition(":")[0]


async def show(view: PageView) -> Response:
    """Show the tools that are wanted by pack, and the one that the address names."""
    wanted = ToolFilter.of(view)
    infos = view.host.tools.list_available_tools(view.principal)
    groups: dict[str, list[ToolInfo]] = {}
    for info in infos:
        if wanted.fits(info):
            groups.setdefault(_owner(info), []).append(info)
    name = view.asked("of")
    seen = [info for group in groups.values() for info in group]
    return view.whole(
        "tools.html",
        picker=picker_of(view, infos, seen) if view.is_operator else None,
        wanted=wanted,
        groups=groups,
        count=sum(map(len, groups.values())),
        packs=sorted({_owner(info) for info in infos}),
        effects=_EFFECTS,
        tool=await tool_facts(view, name) if name else None,
    )


async def one(view: PageView) -> Response:
    """Show all that is known of one tool."""
    return view.part("tool.html", tool=await tool_facts(view, view.asked("of")))


@attrs.frozen(kw_only=True)
class ToolFacts:
    """All that is known of one tool."""

    id: str
    ready: ReadyTool
    access: Sequence[str]
    has_dry_run: bool
    records: Sequence[AuditRecord]
    form: FormField = attrs.field(repr=False)
    """What it is called with."""
    tried: "TriedCall | None" = None
    """What came of trying it."""


def require_tool(view: PageView, name: str) -> ReadyTool:
    """Return the tool of a name, as far as whoever is signed in may call it."""
    ready = view.host.tools.catalog.find(name)
    if ready is None or view.host.tools.get_tool(name, view.principal) is None:
        raise UnknownToolError(f"there is no tool {name[:128]!r} that {view.principal.id} can call")
    return ready


async def tool_facts(view: PageView, name: str) -> ToolFacts:
    """Return what is known of a tool."""
    ready = require_tool(view, name)
    tool = ready.tool
    records: list[AuditRecord] = []
    if view.is_operator:
        fits = lambda record: record.data.get("tool") == ready.qualified_id  # noqa: E731 - a filter
        records = await newest_records(view.host.audit, fits, limit=5, most=_RECORDS)
    return ToolFacts(
        id=ready.qualified_id,
        ready=ready,
        access=tuple(sorted(tool.required_access)) if isinstance(tool.required_access, tuple) else ("public",),
        has_dry_run=tool.dry_run is not None,
        records=records,
        form=form_of(tool.input_schema),
    )


# -- trying a tool -----------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class TriedCall:
    """A call that was made here, and what came of it."""

    tool: str
    is_dry: bool
    result: ToolResult
    records: Sequence[AuditRecord] = ()

    card: Shown
    """What is shown of the call and of its result."""

    @property
    def proposal(self) -> str | None:
        """Return the id of the proposal that the call waits as, if it does."""
        pending = self.result.pending
        return None if pending is None else str(pending.get("proposal_id") or "")

    @property
    def raw(self) -> Mapping[str, Any]:
        """Return the whole result; the token of a proposal stays out: who has it can approve."""
        told = attrs.asdict(self.result, recurse=False)
        told["media"] = [one.reference() for one in self.result.media]
        if self.result.error is not None:
            details = {key: value for key, value in self.result.error.details.items() if key != "token"}
            error = self.result.error
            told["error"] = {"type": error.type, "message": error.message, "details": details}
        return told


async def tried(view: PageView, name: str, arguments: Any, *, is_dry: bool, as_whom: Principal) -> TriedCall:
    """Call a tool for *as_whom*, or ask its dry run, and find what was recorded of it."""
    ready = require_tool(view, name)
    id = f"studio-{uuid.uuid4().hex}"
    call = ToolCall(ready.qualified_id, arguments, id=id)
    tools = view.host.tools
    if is_dry:
        preview = await tools.preview(call, as_whom)
        card = shown(ready.info, _named(arguments), preview)
        return TriedCall(tool=name, is_dry=True, result=preview, card=card)
    result = await tools.process_tool_call(call, as_whom, session={"id": "studio"})
    await view.host.audit.catch_up()
    fits = lambda record: record.data.get("call_id") == id  # noqa: E731 - a filter
    records = await newest_records(view.host.audit, fits, limit=3, most=_RECORDS)
    card = shown(ready.info, _named(arguments), result)
    return TriedCall(tool=name, is_dry=False, result=result, records=records, card=card)


def _named(arguments: Any) -> Mapping[str, Any]:
    return arguments if isinstance(arguments, Mapping) else {}


async def run(view: PageView) -> Response:
    """Try a tool: by its dry run, or in earnest. Arguments that do not fit come back in their form, each with why."""
    fields = await view.fields()
    given = dict(fields)
    ready = require_tool(view, given.get("of", ""))
    submitted = submitted_form(ready.tool.input_schema, fields)
    done = None
    if submitted.is_ready:
        is_dry = given.get("act") == "dry"
        done = await tried(view, given["of"], submitted.arguments, is_dry=is_dry, as_whom=view.principal)
    facts = attrs.evolve(await tool_facts(view, given["of"]), form=submitted.form, tried=done)
    if view.wants_part:
        return view.part("try_form.html", tool=facts)
    return view.whole("tried.html", tool=facts)


async def save(view: PageView) -> Response:
    """Save the tools that are ticked as a persona."""
    if not view.is_operator:
        raise PickerError(f"{view.principal.id} may not change personas")
    fields = await view.fields()
    notice = await save_picked(view, fields)
    view.live.mark("stacks")
    view.session.notice = notice
    return view.go("/tools", persona=dict(fields).get("persona", "").strip())


async def form(view: PageView) -> Response:
    """Draw a form again after a change of its rows or shapes; what is in it stays."""
    fields = await view.fields()
    schema = require_tool(view, dict(fields).get("of", "")).tool.input_schema
    drawn = form_of(schema, entered_of(schema, fields))
    return view.part("schema_form.html", form=drawn, refresh=view.address("/tools/form"))


TOOLS = Page(
    id="tools",
    title="Tools",
    question="What can be called?",
    group="What is there",
    show=show,
    parts={"one": one},
    changes={"run": run, "form": form, "save": save},
    is_for_operators=False,
)
