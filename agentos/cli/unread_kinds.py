"""What packs offer that is active and that nothing reads, as far as agentos knows."""

from collections.abc import Iterable

from agentos.checks.probed import ProbedStack
from agentos.model.kind import UNREAD, reader_of


def reader(kind: str) -> str | None:
    """Say who reads a kind, also where nothing has made the kinds of agentos known yet; None if nothing does."""
    import agentos.kinds  # noqa: F401 - importing it declares them

    return reader_of(kind)


def unread_kinds(stacks: Iterable[ProbedStack]) -> list[str]:
    """Return a line for each kind that nothing reads, with what is active of it."""
    active = [one for one in stacks if one.active is not None and reader(one.kind) is None]
    named = {kind: [one.id for one in active if one.kind == kind] for kind in dict.fromkeys(one.kind for one in active)}
    return [f"{kind} ({', '.join(ids)}): {UNREAD}" for kind, ids in named.items()]
