"""Tables of pages that have no more to show than rows: the same filter, the same look, and forms that change a row."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal

import attrs
from starlette.responses import Response

from agentos.studio.markup import as_json, cut
from agentos.studio.view import PageView

ROWS_SHOWN: Final = 200
"""How many rows are on a page at most; the filter finds the others."""

CellKind = Literal["text", "state", "effect", "time", "code", "wide"]


@attrs.frozen
class Cell:
    """What stands in one column of a row."""

    value: Any
    kind: CellKind = "text"
    link: str | None = None

    @property
    def text(self) -> str:
        """Return what a filter looks at."""
        return self.value.isoformat() if isinstance(self.value, datetime) else str(self.value or "")


@attrs.frozen(kw_only=True)
class RowForm:
    """A button that changes something about a row."""

    path: str
    label: str
    kind: str = ""
    fields: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class TableRow:
    """One row: its cells, what it has beneath, and what can be done."""

    cells: Sequence[Cell]
    forms: Sequence[RowForm] = ()
    detail: Any = None
    """What is shown as JSON when the row is opened."""
    traits: Mapping[str, str] = attrs.field(factory=dict)
    """What filters that offer a choice look at."""

    def fits(self, text: str, choices: Mapping[str, str]) -> bool:
        """Tell whether a row is wanted."""
        if any(self.traits.get(name) != wanted for name, wanted in choices.items() if wanted):
            return False
        return not text or any(text in cell.text.lower() for cell in self.cells)

    @property
    def written(self) -> str:
        """Return what is beneath, as text."""
        return self.detail if isinstance(self.detail, str) else as_json(self.detail)


@attrs.frozen(kw_only=True)
class TableChoice:
    """A filter that offers the values there are."""

    name: str
    label: str


def table(
    view: PageView,
    columns: Sequence[str],
    rows: Iterable[TableRow],
    *,
    empty: str,
    choices: Sequence[TableChoice] = (),
    template: str = "table.html",
    topic: str = "",
    **values: Any,
) -> Response:
    """Answer with a page that has a filter and a table of the rows that fit it."""
    every = list(rows)
    text = view.asked("text").strip().lower()
    wanted = {one.name: view.asked(one.name) for one in choices}
    fitting = [row for row in every if row.fits(text, wanted)]
    offered = {one.name: sorted({row.traits.get(one.name, "") for row in every} - {""}) for one in choices}
    return view.whole(
        template,
        columns=columns,
        rows=fitting[:ROWS_SHOWN],
        count=len(fitting),
        total=len(every),
        empty=empty if not every else "Nothing fits. Loosen the filter.",
        text=cut(view.asked("text"), 200),
        choices=[(one, offered[one.name], wanted[one.name]) for one in choices],
        topic=topic,
        **values,
    )
