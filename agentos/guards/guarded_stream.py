"""A text that is let out as it comes, behind its guardrails.

The last characters are held back, so that a guardrail sees together what belongs together. What a guardrail rewrote is
never taken for the text itself: a secret whose end has not come yet would be taken apart, and its end let out. So the
original is kept until it can leave, and is asked about again with what has come meanwhile.
"""

from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from contextlib import aclosing
from typing import Any, Protocol

from agentos.errors import GuardrailBlockedError
from agentos.guards.active_guards import GuardSet
from agentos.guards.guard_context import GuardSubject
from agentos.model.guarding import HOLDS_BACK_LIMIT, GuardRow, Stage

_LEAST_STEP = 32
"""How many characters come at least before guardrails are asked again."""
_ANCHORS = (16, 4)
"""How many characters before and after a place must be as they were."""
_PLACES = 64
_VERIFIED = 3
_WAITING_LIMIT = 4_000_000
"""How many characters wait at most."""


class Judge(Protocol):
    """Asks guardrails."""

    def for_text(self, stage: Stage) -> GuardSet:
        """Return who is asked."""
        ...

    async def judge(self, guards: GuardSet, subject: GuardSubject) -> Any:
        """Ask them; return a GuardFindings."""
        ...

    async def tell(self, rows: Iterable[GuardRow], subject: GuardSubject) -> None:
        """Tell what they found."""
        ...


class GuardedStream:
    """One text on its way out."""

    def __init__(self, judge: Judge, subject: GuardSubject) -> None:
        self._judge = judge
        self._subject = subject
        self._waiting = ""
        self._new: list[str] = []
        self._new_length = 0
        self._enough = 0
        """How many new characters there must be before guardrails are asked again."""
        self._told: set[tuple[Any, ...]] = set()

    async def parts(self, chunks: AsyncIterable[str] | Iterable[str]) -> AsyncGenerator[str, None]:
        """Yield what can leave, as soon as it can."""
        async with aclosing(_each(chunks)) as each:
            async for chunk in each:
                if not isinstance(chunk, str):
                    raise TypeError(f"chunks: expected strings, got a {type(chunk).__name__}")
                self._new.append(chunk)
                self._new_length += len(chunk)
                if self._new_length >= self._enough and (part := await self._let_out(is_final=False)):
                    yield part
        if part := await self._let_out(is_final=True):
            yield part

    async def _let_out(self, *, is_final: bool) -> str:
        """Ask about what waits, and return what of it can leave."""
        raw = self._waiting = "".join([self._waiting, *self._new])
        self._new.clear()
        self._new_length = 0
        if not raw:
            return ""
        guards, subject = self._judge.for_text(self._subject.stage), self._subject
        made = await self._judged(raw, guards, subject.preceding, is_final=is_final)
        held = max((guard.holds_back for guard in guards.guards), default=0)
        taken, part = (len(raw), made) if is_final else await self._cut(raw, made, held, guards)
        self._waiting = raw[taken:]
        grown = len(self._waiting) if taken == 0 and made != raw else 0
        self._enough = max(_LEAST_STEP, held // 2, grown) if guards else 0
        if len(self._waiting) > _WAITING_LIMIT:
            raise GuardrailBlockedError(
                "", "GuardFailed", "what guardrails made of the text can't be let out in parts", subject.stage
            )
        subject.preceding = _tail(subject.preceding, part)
        return part

    async def _judged(self, raw: str, guards: GuardSet, preceding: str, *, is_final: bool) -> str:
        """Return what guardrails make of *raw*; raise if one of them blocks."""
        subject, before = self._subject, self._subject.preceding
        subject.value, subject.preceding, subject.is_final = raw, preceding, is_final
        try:
            found = await self._judge.judge(guards, subject)
        finally:
            subject.preceding = before
        await self._judge.tell([row for row in found.rows if self._is_news(row)], subject)
        if (row := found.blocking) is not None:
            raise GuardrailBlockedError(row.id, row.verdict.code, row.verdict.reason, subject.stage)
        made: str = found.value
        return made

    def _is_news(self, row: GuardRow) -> bool:
        said = (row.id, row.verdict.action, row.verdict.code, row.verdict.reason)
        is_news = said not in self._told
        self._told.add(said)
        return is_news

    async def _cut(self, raw: str, made: str, held: int, guards: GuardSet) -> tuple[int, str]:
        """Return how much of *raw* leaves, and what leaves in its place: nothing of what is held back."""
        limit = len(raw) - held
        if limit <= 0:
            return 0, ""
        if made == raw:
            return limit, raw[:limit]
        if raw[limit:] == made[len(made) - held :] and len(made) >= held:
            return limit, made[: len(made) - held]
        for taken, let_out in _places(raw, made, limit):
            preceding = _tail(self._subject.preceding, made[:let_out])
            if await self._judged(raw[taken:], guards, preceding, is_final=False) == made[let_out:]:
                return taken, made[:let_out]
        taken = min(limit, _common_length(raw, made) - held)
        return (taken, raw[:taken]) if taken > 0 else (0, "")


def _places(raw: str, made: str, limit: int) -> Iterable[tuple[int, int]]:
    """Yield places where both can probably be cut: what stands around is the same in both, and stands there once."""
    for size in _ANCHORS:
        found = 0
        for place in range(limit, max(size, limit - _PLACES * size), -size):
            around = raw[place - size : place + size]
            if found < _VERIFIED and made.count(around) == 1 and raw.count(around) == 1:
                found += 1
                yield place, made.index(around) + size


def _common_length(one: str, other: str) -> int:
    """Return how many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))


def _tail(preceding: str, part: str) -> str:
    return (preceding[-HOLDS_BACK_LIMIT:] + part[-HOLDS_BACK_LIMIT:])[-HOLDS_BACK_LIMIT:]


async def _each(chunks: AsyncIterable[str] | Iterable[str]) -> AsyncGenerator[str, None]:
    if not isinstance(chunks, AsyncIterable):
        for chunk in chunks:
            yield chunk
        return
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        if (close := getattr(chunks, "aclose", None)) is not None:
            await close()  # nobody reads on: who sends may end
