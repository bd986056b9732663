"""Does the agent find it? A conversation with a model, with the tools of whoever is signed in."""

from typing import Any

import attrs
from starlette.responses import Response

from agentos.access.proposals import Proposal
from agentos.studio.page import Page
from agentos.studio.pages import approvals
from agentos.studio.studio_chats import ChatEntry, ChatError, ChatModel, StudioChat, arguments_in
from agentos.studio.view import PageView
from agentos.tools.shown import Shown, shown


@attrs.frozen(kw_only=True)
class DrawnEntry:
    """An entry of a conversation, and of a call what its card shows."""

    entry: ChatEntry
    name: str = ""
    card: Shown | None = None


@attrs.frozen(kw_only=True)
class AskedApproval:
    """A call of the conversation that waits, and what its card shows."""

    proposal: Proposal
    card: Shown | None

    @property
    def name(self) -> str:
        """Return the tool's own name, which is typed to let a destructive call run."""
        return self.proposal.tool.rpartition(":")[2]

    @property
    def must_be_typed(self) -> bool:
        """Tell whether the tool's name has to be typed."""
        return self.proposal.effect == approvals.DESTRUCTIVE


def _model(view: PageView) -> ChatModel | None:
    found = view.settings.get("chat")
    return found if isinstance(found, ChatModel) else None


def _need_model(view: PageView) -> ChatModel:
    if (model := _model(view)) is None:
        raise ChatError("the studio was started without a model")
    return model


async def show(view: PageView) -> Response:
    """Show the conversations of whoever is signed in, and the one that the address names."""
    model = _model(view)
    if model is None:
        return view.whole("chat_without_model.html")
    chats = model.chats_of(view.principal)
    id = view.asked("id")
    chat = next((one for one in chats if one.id == id), None)
    return view.whole(
        "chat.html",
        model=model,
        chats=chats,
        chat=chat,
        personas=[one.id for one in view.host.personas.active()],
        persona=view.asked("persona"),
        tools=len(view.host.tools.list_available_tools(view.principal)),
        **(await _log(view, chat)),
    )


async def log(view: PageView) -> Response:
    """Show what a conversation has come to."""
    chat = _need_model(view).chat(view.principal, view.asked("id"))
    return view.part("chat_log.html", chat=chat, **(await _log(view, chat)))


async def _log(view: PageView, chat: StudioChat | None) -> dict[str, Any]:
    if chat is None:
        return {"drawn": [], "asked": [], "greeting": ""}
    waiting = [] if chat.waiting is None else await view.host.approvals.pending(view.principal.key)
    greeting = ""
    if chat.persona and not chat.entries:
        greeting = next((one.greeting for one in view.host.personas.active() if one.id == chat.persona), "")
    return {
        "drawn": [_drawn(view, one) for one in chat.entries],
        "asked": [_asked(view, one) for one in waiting if one.session == chat.id],
        "greeting": greeting,
    }


def _drawn(view: PageView, entry: ChatEntry) -> DrawnEntry:
    if entry.kind != "call":
        return DrawnEntry(entry=entry)
    said = entry.result.meta.get("tool") if entry.result is not None else None
    name = str(said or (entry.call.name if entry.call is not None else "tool"))
    ready = view.host.tools.catalog.find(name)
    card = None if ready is None else shown(ready.info, arguments_in(entry.call), entry.result)
    return DrawnEntry(entry=entry, name=name, card=card)


def _asked(view: PageView, proposal: Proposal) -> AskedApproval:
    ready = view.host.tools.catalog.find(proposal.tool)
    arguments = dict(proposal.arguments or {})
    preview = None if proposal.preview == proposal.arguments else proposal.preview
    card = None if ready is None else shown(ready.info, arguments, preview=preview)
    return AskedApproval(proposal=proposal, card=card)


# -- changes -----------------------------------------------------------------------------------------------------------


async def say(view: PageView) -> Response:
    """Say something, in a conversation or in a new one."""
    model, form = _need_model(view), await view.form()
    persona = form.get("persona", "") or None
    if persona is not None:
        view.host.personas.get(persona)
    id = form.get("id", "")
    chat = model.chat(view.principal, id) if id else model.begin(view.principal, persona)
    model.say(view.host, view.principal, chat, form.get("text", ""), view.live.mark)
    return view.go("/chat", id=chat.id)


async def stop(view: PageView) -> Response:
    """End the answer under way."""
    model, form = _need_model(view), await view.form()
    chat = model.chat(view.principal, form.get("id", ""))
    model.stop(chat)
    return view.go("/chat", id=chat.id)


async def forget(view: PageView) -> Response:
    """Forget a conversation."""
    model, form = _need_model(view), await view.form()
    chat = model.chat(view.principal, form.get("id", ""))
    model.drop(chat)
    view.live.marks.pop(chat.topic, None)
    return view.go("/chat")


CHAT = Page(
    id="chat",
    title="Chat",
    question="Does the agent find it?",
    group="What happens",
    show=show,
    parts={"log": log},
    changes={
        "say": say,
        "stop": stop,
        "forget": forget,
        "approve": approvals.approve,
        "reject": approvals.reject,
        "edit": approvals.edit,
        "form": approvals.change,
    },
    is_for_operators=False,
)
