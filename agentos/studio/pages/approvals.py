"""What waits for a person: an inbox of calls, each with what would run, and the three answers."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
from markupsafe import Markup
from starlette.responses import PlainTextResponse, Response

from agentos.access.proposals import Proposal, ProposalError
from agentos.model.tool_call import ToolResult
from agentos.studio.forms.form_answers import submitted_form
from agentos.studio.forms.form_entries import ROOT, entered_of
from agentos.studio.forms.form_fields import FormField, form_of
from agentos.studio.markup import as_json, cut
from agentos.studio.page import Page
from agentos.studio.view import PageView
from agentos.tools.shown import Shown, shown

DESTRUCTIVE: Final = "destructive"
_SHOWN: Final = 100
_LATELY: Final = 20
_SIDES: Final = (("before", "after"), ("old", "new"))
"""By which names a dry run gives both sides of what it would change."""
_CONTEXT: Final = 3


@attrs.frozen(kw_only=True)
class WaitingCall:
    """A proposal as it is shown."""

    proposal: Proposal
    differences: Sequence[tuple[str, str]] | None
    """Lines of what a dry run says it changes, each with its sign; None if it does not give both sides."""
    card: Shown | None = None
    """What its tool declares that people are shown; None if it declares nothing, or is not there any more."""
    result: ToolResult | None = None

    @property
    def name(self) -> str:
        """Return the tool's own name, which is typed to let a destructive call run."""
        return self.proposal.tool.rpartition(":")[2]

    @property
    def must_be_typed(self) -> bool:
        """Tell whether the tool's name has to be typed."""
        return self.proposal.effect == DESTRUCTIVE

    @property
    def has_preview(self) -> bool:
        """Tell whether a dry run said more than the arguments."""
        return self.proposal.preview != self.proposal.arguments and self.proposal.preview is not None


async def show(view: PageView) -> Response:
    """Show what waits, and what was decided lately."""
    waiting = await _pending(view)
    calls = [
        WaitingCall(proposal=one, differences=differences(one.preview), card=_card(view, one))
        for one in waiting[:_SHOWN]
    ]
    lately = [one async for one in _decided(view, {one.id for one in waiting})]
    return view.whole("approvals.html", waiting=calls, count=len(waiting), lately=lately)


def _card(view: PageView, proposal: Proposal) -> Shown | None:
    ready = view.host.tools.catalog.find(proposal.tool)
    if ready is None or ready.info.display is None:
        return None
    preview = None if proposal.preview == proposal.arguments else proposal.preview
    return shown(ready.info, dict(proposal.arguments or {}), preview=preview)


async def count(view: PageView) -> Response:
    """Say how many calls wait, for the navigation."""
    number = len(await _pending(view))
    return PlainTextResponse(Markup.escape(str(number)) if number else "", media_type="text/html")


async def _pending(view: PageView) -> list[Proposal]:
    """Return what waits: for an operator all of it, for others their own."""
    waiting = await view.host.approvals.pending(None if view.is_operator else view.principal.key)
    view.live.note_waiting(waiting)
    return waiting


async def _decided(view: PageView, waiting: set[str]) -> Any:
    """Yield what waited while the studio was open and does not any more, the latest first."""
    count = 0
    for id in reversed(view.live.waited):
        if id in waiting or count >= _LATELY:
            continue
        try:
            proposal = await view.host.approvals.describe(id)
        except ProposalError:  # forgotten meanwhile
            continue
        if _is_for(view, proposal):
            count += 1
            yield WaitingCall(proposal=proposal, differences=None, result=await view.host.approvals.result(id))


def _is_for(view: PageView, proposal: Proposal) -> bool:
    return view.is_operator or proposal.principal.key == view.principal.key


def differences(preview: Any) -> list[tuple[str, str]] | None:
    """Return the lines in which both sides of a preview differ, with what is around them; None if it has no sides."""
    if not isinstance(preview, Mapping):
        return None
    for before, after in _SIDES:
        if before in preview and after in preview:
            return list(_lines(_as_text(preview[before]), _as_text(preview[after])))
    return None


def _as_text(value: Any) -> str:
    return cut(value) if isinstance(value, str) else as_json(value)


def _lines(before: str, after: str) -> Iterator[tuple[str, str]]:
    for line in difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=_CONTEXT):
        if not line.startswith(("---", "+++")):
            yield line[:1], line[1:] if line[:1] in "+- " else line


# -- answers -----------------------------------------------------------------------------------------------------------


async def _own(view: PageView) -> tuple[Proposal, Mapping[str, str]]:
    """Return the proposal that a form is about; one of others is unknown to whoever may not see it."""
    form = await view.form()
    proposal = await view.host.approvals.describe(form.get("id", ""))
    if not _is_for(view, proposal):
        raise ProposalError(f"there is no proposal {form.get('id', '')[:64]!r}")
    return proposal, form


async def approve(view: PageView) -> Response:
    """Run what was proposed, once; a destructive call only if its tool's name was typed."""
    proposal, form = await _own(view)
    name = proposal.tool.rpartition(":")[2]
    if proposal.effect == DESTRUCTIVE and form.get("typed", "").strip() != name:
        raise ProposalError(f"{proposal.tool} may destroy something: type {name} to let it run")
    result = await view.host.approvals.approve(proposal.id, by=view.by)
    view.live.mark("approvals")
    if result.error is not None and result.error.type == "ProposalInvalid":
        raise ProposalError(result.error.message)
    said = "ran" if result.success else f"ran and failed: {result.content[:300]}"
    return await view.changed(f"{proposal.tool} {said}.")


async def reject(view: PageView) -> Response:
    """Close a proposal without running it."""
    proposal, form = await _own(view)
    await view.host.approvals.reject(proposal.id, form.get("reason", ""), by=view.by)
    view.live.mark("approvals")
    return await view.changed(f"{proposal.tool} was rejected.")


async def edit(view: PageView) -> Response:
    """Put a proposal with other arguments in the place of one."""
    proposal, _ = await _own(view)
    submitted = submitted_form(_schema_of(view, proposal), await view.fields())
    if not submitted.is_ready:
        return _draw_again(view, proposal, submitted.form)
    if not isinstance(submitted.arguments, dict):
        raise ProposalError("the arguments are not valid JSON: expected an object")
    await view.host.approvals.edit(proposal.id, submitted.arguments, by=view.by)
    view.live.mark("approvals")
    return await view.changed(f"The call of {proposal.tool} waits with other arguments.")


def _schema_of(view: PageView, proposal: Proposal) -> Mapping[str, Any]:
    """Return the schema of what a proposal calls; of a tool that is gone, one that takes any object."""
    ready = view.host.tools.catalog.find(proposal.tool)
    return {"type": "object"} if ready is None else ready.tool.input_schema


async def change(view: PageView) -> Response:
    """Show the form of a proposal's arguments, or draw it again after a change of its rows or shapes."""
    proposal, _ = await _own(view)
    fields = await view.fields()
    schema = _schema_of(view, proposal)
    is_new = not any(name == ROOT or name.startswith((f"{ROOT}/", f"{ROOT}:")) for name, _ in fields)
    form = form_of(schema, dict(proposal.arguments or {}) if is_new else entered_of(schema, fields))
    if view.wants_part and not is_new:
        return view.part("schema_form.html", form=form, refresh=view.address(f"/{view.page.id}/form"))
    return _draw_again(view, proposal, form)


def _draw_again(view: PageView, proposal: Proposal, form: FormField) -> Response:
    if view.wants_part:
        drawn = view.part("proposal_form.html", proposal=proposal, form=form)
        place = {
            "HX-Retarget": f"#p-{proposal.id} details.edit",
            "HX-Reswap": "outerHTML",
            "HX-Reselect": "details.edit",
        }
        drawn.headers.update(place)
        return drawn
    return view.whole("proposal_form.html", proposal=proposal, form=form)


APPROVALS = Page(
    id="approvals",
    title="Approvals",
    question="What waits for me?",
    group="What happens",
    show=show,
    parts={"count": count},
    changes={"approve": approve, "reject": reject, "edit": edit, "form": change},
    is_for_operators=False,
)
