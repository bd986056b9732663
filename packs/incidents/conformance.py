"""What the conformance checks need around them: one incident that is open, and one that is resolved."""  # noqa: INP001

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from agentos_pack_incidents import records
from agentos_pack_incidents.values import Actor, Draft

_LIFT = Draft(title="The lift stands still", severity="low")
_TEA = Draft(title="There is no tea", severity="high")


@contextlib.asynccontextmanager
async def prepare(tmp: Path) -> AsyncIterator[dict[str, int]]:
    """Open two incidents, resolve one, and tell their numbers."""
    book = records.open_book(tmp / "incidents.db")
    await book.open()
    ann = Actor(by="ann")
    lift = await book.write(lambda db: records.add(db, _LIFT, ann))
    tea = await book.write(lambda db: records.add(db, _TEA, ann))
    await book.write(lambda db: records.resolve(db, tea.id, tea.version, "Bought some", ann))
    await book.close()
    yield {"open": lift.id, "resolved": tea.id}
