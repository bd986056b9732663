"""What is loaded: every pack with its state, what failed with the cure, and switches."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
from starlette.responses import Response

from agentos.errors import AgentOSError, PackLoadError
from agentos.model.isolation import WorkerInfo
from agentos.model.report import PackOutcome, PackRecord
from agentos.stacks.entry import Entry
from agentos.studio.page import Page
from agentos.studio.view import PageView


@attrs.frozen(kw_only=True)
class PackCard:
    """A pack as it is shown."""

    key: str
    name: str
    version: str | None
    origin: str
    state: str
    record: PackRecord | None
    entries: Sequence[Entry] = ()
    worker: WorkerInfo | None = None
    reason: str = ""
    cure: str = ""
    can_reload: bool = False

    @property
    def seconds(self) -> float | None:
        """Return how long activation of all it offers took."""
        taken = [entry.activation_seconds for entry in self.entries if entry.activation_seconds is not None]
        return sum(taken) if taken else None

    def fits(self, text: str, state: str) -> bool:
        """Tell whether it is wanted."""
        names = (self.key, self.name, self.origin, self.reason, *(entry.id for entry in self.entries))
        return (not state or self.state == state) and any(text in name.lower() for name in names)


async def show(view: PageView) -> Response:
    """Show the packs that are wanted."""
    every = list(_cards(view))
    text, state = view.asked("text").strip(), view.asked("state")
    cards = [card for card in every if card.fits(text.lower(), state)]
    states = sorted({card.state for card in every})
    return view.whole("packs.html", cards=cards, text=text, state=state, states=states)


def _cards(view: PageView) -> Iterator[PackCard]:
    manager = view.host.extensions
    workers = {one.pack: one for one in view.host.workers.list()}
    loaded = manager.loaded()
    known = {record.key for record, _ in loaded}
    for outcome in manager.absent():
        if outcome.key not in known:
            yield _absent_card(outcome)
    for record, entry in loaded:
        entries = [one for kind, id in record.descriptors for one in manager.registry(kind).stack(id)]
        own = [one for one in entries if one.source.pack == record.name]
        worker = workers.get(record.name)
        yield PackCard(
            key=record.key,
            name=record.name,
            version=record.version,
            origin=record.source.origin,
            state=_state(record, own),
            record=record,
            entries=own,
            worker=worker,
            reason="; ".join(f"{one.id}: {one.reason}" for one in own if one.state.value == "failed"),
            can_reload=entry is not None,
        )


def _state(record: PackRecord, entries: Sequence[Entry]) -> str:
    if not record.enabled:
        return "disabled"
    return "failed" if any(one.state.value == "failed" for one in entries) else "enabled"


def _absent_card(outcome: PackOutcome) -> PackCard:
    error = outcome.error
    reason = str(getattr(error, "message", None) or outcome.reason or error or "")
    cure = str(getattr(error, "hint", None) or "")
    if outcome.status == "skipped":
        cure = "Enable it in the manifest: `agentos packs enable` with --in-manifest"
    return PackCard(
        key=outcome.key,
        name=outcome.pack or outcome.key,
        version=None,
        origin="",
        state=outcome.status,
        record=None,
        reason=reason,
        cure=cure or "Mend what it says, then load it again; `agentos doctor` says more",
    )


async def _changing(view: PageView, act: str, said: str) -> Response:
    key = (await view.form()).get("key", "")
    manager = view.host.extensions
    changes: Mapping[str, Any] = {"enable": manager.enable, "disable": manager.disable, "reload": manager.reload}
    outcome = await changes[act](key)
    if isinstance(outcome, PackOutcome) and outcome.status == "failed":
        raise outcome.error if isinstance(outcome.error, AgentOSError) else PackLoadError(key, str(outcome.reason))
    return await view.changed(f"{key} is {said}.")


async def enable(view: PageView) -> Response:
    """Bring a pack back."""
    return await _changing(view, "enable", "enabled")


async def disable(view: PageView) -> Response:
    """Take all of a pack out of force."""
    return await _changing(view, "disable", "disabled")


async def reload(view: PageView) -> Response:
    """Make a pack anew from its source."""
    return await _changing(view, "reload", "loaded anew")


PACKS = Page(
    id="packs",
    title="Packs",
    question="What is loaded?",
    group="What is there",
    show=show,
    changes={"enable": enable, "disable": disable, "reload": reload},
)
