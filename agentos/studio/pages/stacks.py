"""Who is active, and why: every stack as a small pile of cards."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
from starlette.responses import Response

from agentos.model.kind import UNREAD
from agentos.secrets.sources import DeclaredSecret
from agentos.stacks.entry import Entry, EntryState, Explanation
from agentos.studio.page import Page
from agentos.studio.view import PageView

AT_ONCE: Final = 24
"""How many stacks are fetched at once; more come as they are looked at."""


@attrs.frozen(kw_only=True)
class StackFilter:
    """Which stacks are wanted: of a kind, with an entry of a pack or in a state, or with a text in their names."""

    kind: str = ""
    pack: str = ""
    state: str = ""
    text: str = ""

    @classmethod
    def of(cls, view: PageView) -> "StackFilter":
        """Read what the address asks for."""
        return cls(**{field.name: view.asked(field.name).strip() for field in attrs.fields(cls)})

    def fits(self, id: str, entries: Sequence[Entry]) -> bool:
        """Tell whether a stack is wanted."""
        return any(
            (not self.pack or entry.pack == self.pack) and (not self.state or entry.state.value == self.state)
            for entry in entries
        ) and self._names(id, entries)

    def _names(self, id: str, entries: Sequence[Entry]) -> bool:
        text = self.text.lower()
        if not text or text in id.lower():
            return True
        return any(text in entry.pack.lower() or text in _description(entry).lower() for entry in entries)


@attrs.frozen
class StackCard:
    """A stack as it is drawn."""

    kind: str
    id: str
    entries: Sequence[Entry]

    @property
    def name(self) -> str:
        """Return the name that `why` takes."""
        return f"{self.kind}:{self.id}"

    @property
    def description(self) -> str:
        """Return what the strongest entry says of itself."""
        return _description(self.entries[0])


def _description(entry: Entry) -> str:
    said = getattr(entry.payload, "description", None) or entry.descriptor.metadata.get("description")
    return said if isinstance(said, str) else ""


async def show(view: PageView) -> Response:
    """Show the first stacks that are wanted, and the panel of one if the address names it."""
    wanted = StackFilter.of(view)
    manager = view.host.extensions
    return view.whole(
        "stacks.html",
        wanted=wanted,
        cards=_cards(view, wanted),
        kinds=sorted(manager.kinds()),
        packs=sorted({record.name for record in manager.packs()}),
        states=[state.value for state in EntryState],
        panel=_panel(view, view.asked("why")) if view.asked("why") else None,
    )


async def rows(view: PageView) -> Response:
    """Show further stacks."""
    wanted = StackFilter.of(view)
    return view.part("stack_rows.html", wanted=wanted, cards=_cards(view, wanted))


async def why(view: PageView) -> Response:
    """Show all that is known of one stack."""
    return view.part("why.html", panel=_panel(view, view.asked("name")))


def _cards(view: PageView, wanted: StackFilter) -> dict[str, Any]:
    """Return some of the stacks that are wanted, how many there are, and where the next begin."""
    begin = int(view.asked("from")) if view.asked("from").isdecimal() else 0
    found = list(_matching(view, wanted))
    shown = found[begin : begin + AT_ONCE]
    end = begin + len(shown)
    return {"shown": shown, "count": len(found), "begin": begin, "next": end if end < len(found) else None}


def _matching(view: PageView, wanted: StackFilter) -> Iterator[StackCard]:
    manager = view.host.extensions
    for kind in [wanted.kind] if wanted.kind else manager.kinds():
        registry = manager.registry(kind)
        for id in registry.ids():
            entries = registry.stack(id)
            if entries and wanted.fits(id, entries):
                yield StackCard(kind, id, entries)


@attrs.frozen
class EntryFacts:
    """All that is known of one entry."""

    entry: Entry
    secrets: Sequence[DeclaredSecret]
    cures: Sequence[tuple[str, str | None]]
    """What would change its state, and the page to do it on."""


def _panel(view: PageView, name: str) -> dict[str, Any]:
    kind, _, id = name.partition(":")
    manager = view.host.extensions
    explained = manager.explain(kind, id)
    facts = [_facts(view, explained, entry) for entry in explained.entries]
    return {"name": name, "explained": explained, "facts": facts, "reader": explained.reader or UNREAD}


def _facts(view: PageView, explained: Explanation, entry: Entry) -> EntryFacts:
    secrets = view.host.extensions.secrets_of(entry)
    return EntryFacts(entry, secrets, list(_cures(view, explained, entry, secrets)))


def _cures(
    view: PageView, explained: Explanation, entry: Entry, secrets: Sequence[DeclaredSecret]
) -> Iterator[tuple[str, str | None]]:
    """Yield what would change the state of an entry."""
    manager = view.host.extensions
    if entry.state is EntryState.GATED:
        for one in secrets:
            if one.origin is None and not one.requirement.optional:
                yield f"Set the secret {one.requirement.id}: `agentos secrets add {one.requirement.id}`", "/secrets"
        if manager.held_back(entry) is not None:
            yield "Accept its definition", "/pins"
    elif entry.state is EntryState.DISABLED:
        yield f"Enable the pack {entry.pack}, or change the override that disables it", "/packs"
    elif entry.state is EntryState.FAILED:
        yield f"Mend what its activation raised, then reload the pack {entry.pack}", "/packs"
    elif entry.state is EntryState.SHADOWED:
        above = explained.active.pack if explained.active is not None else "what stands above"
        yield f"Give it a priority above that of {above}, or disable {above}", "/packs"
    elif entry.state is EntryState.UNBOUND:
        yield "Register a handler for it", None
    elif len(explained.entries) > 1:
        yield f"Disable the pack {entry.pack}, and the next one that can is active", "/packs"


STACKS = Page(
    id="stacks",
    title="Stacks",
    question="Who is active, and why?",
    group="What is there",
    show=show,
    parts={"rows": rows, "why": why},
)
