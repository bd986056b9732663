"""What happened, in a chain that can't be changed unseen: the newest records, and a verification."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from starlette.responses import Response

from agentos.access.audit import Audit, AuditRecord
from agentos.studio.markup import first_line
from agentos.studio.page import Page
from agentos.studio.row_table import ROWS_SHOWN, Cell, TableChoice, TableRow, table
from agentos.studio.view import PageView

_PAGE: Final = 1_000
_MOST: Final = 20_000
"""Among how many of the newest records the filter looks."""
_CHOICES = (TableChoice(name="event", label="Event"), TableChoice(name="principal", label="For"))


async def newest_records(
    audit: Audit, fits: Callable[[AuditRecord], bool], *, limit: int, most: int
) -> list[AuditRecord]:
    """Return the newest records that are wanted, the newest first, of at most *most* that are looked at."""
    end = (await audit.head()).seq
    least, found = max(0, end - most), list[AuditRecord]()
    while end > least and len(found) < limit:
        begin = max(least, end - _PAGE)
        page = await audit.records(after=begin, limit=end - begin)
        found += [one for one in reversed(page) if fits(one)]
        if not page:
            break
        end = begin
    return found[:limit]


async def show(view: PageView) -> Response:
    """Show the newest records that are wanted."""
    text, event, who = view.asked("text").strip().lower(), view.asked("event"), view.asked("principal")

    def fits(record: AuditRecord) -> bool:
        if (event and record.event != event) or (who and record.data.get("principal") != who):
            return False
        return not text or text == str(record.seq) or any(text in one.lower() for one in _texts(record))

    is_filtered = bool(text or event or who)
    records = await newest_records(view.host.audit, fits, limit=ROWS_SHOWN, most=_MOST if is_filtered else _PAGE)
    rows = map(_row, records)
    return table(
        view,
        ("nr", "when", "event", "tool", "for", "how it went"),
        rows,
        empty="Nothing is recorded yet.",
        choices=_CHOICES,
        template="audit.html",
    )


def _texts(record: AuditRecord) -> Iterator[str]:
    yield record.event
    for name in ("tool", "principal", "answer", "reason", "error", "call_id", "proposal", "by", "pack"):
        if record.data.get(name) is not None:
            yield str(record.data[name])


def _row(record: AuditRecord) -> TableRow:
    data = record.data
    return TableRow(
        cells=(
            Cell(record.seq),
            Cell(record.at, "time"),
            Cell(record.event),
            Cell(data.get("tool") or data.get("pack")),
            Cell(data.get("principal")),
            Cell(how_it_went(data), "wide"),
        ),
        detail={"seq": record.seq, "at": record.at, **data, "prev": record.prev, "hash": record.hash},
        traits={"event": record.event, "principal": str(data.get("principal") or "")},
    )


def how_it_went(data: Mapping[str, object]) -> str:
    """Put into words how a decision or a call went."""
    outcome = data.get("outcome")
    error = data.get("error") or (outcome.get("error") if isinstance(outcome, Mapping) else None)
    said = [str(data[name]) for name in ("answer", "decision", "reason") if data.get(name)]
    by = [f"by {data['by']}"] if data.get("by") else []
    return first_line(" ".join([*([str(error)] if error else []), *said, *by]))


async def verify(view: PageView) -> Response:
    """Recompute the whole chain."""
    verdict = await view.host.audit.verify()
    if verdict.ok:
        head = await view.host.audit.head()
        return await view.changed(f"The chain is whole: {verdict.records:,} records. It ends at {head.seq}:{head.hash}")
    where = "can't be read" if verdict.broken_at is None else f"is broken at record {verdict.broken_at}"
    return view.problem("The chain is not whole", f"It {where}: {verdict.reason}")


AUDIT = Page(
    id="audit",
    title="Audit",
    question="What happened, and is the log whole?",
    group="What happens",
    show=show,
    changes={"verify": verify},
)
