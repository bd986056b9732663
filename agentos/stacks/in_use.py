"""Who is using an entry right now, so that nothing is deactivated under a call."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, Token

from agentos.stacks.entry import Entry

_mine: ContextVar[tuple["Users", ...]] = ContextVar("agentos_uses", default=())


class Users:
    """Counts the uses of one entry that are under way."""

    __slots__ = ("_waiters", "count")

    def __init__(self) -> None:
        self.count = 0
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []

    def enter(self) -> "Token[tuple[Users, ...]]":
        """Begin a use; `leave` takes the token back."""
        self.count += 1
        return _mine.set((*_mine.get(), self))

    def leave(self, token: "Token[tuple[Users, ...]] | None" = None) -> None:
        """End one use and wake whoever waits for this."""
        self.count -= 1
        if token is not None:
            _mine.reset(token)
        for floor, waiter in self._waiters:
            if self.count <= floor and not waiter.done():
                waiter.set_result(None)

    @contextmanager
    def use(self) -> Iterator[None]:
        """Count a use for the length of the block."""
        token = self.enter()
        try:
            yield
        finally:
            self.leave(token)

    async def drained(self) -> None:
        """Wait until nobody uses the entry, except the caller: a call may unload its own pack."""
        own = _mine.get().count(self)
        if self.count <= own:
            return
        waiter = (own, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            await waiter[1]
        finally:
            self._waiters.remove(waiter)


@contextmanager
def in_use(entry: Entry) -> Iterator[None]:
    """Count a use of *entry* for the length of the block."""
    users: Users | None = getattr(entry._slot, "users", None)  # noqa: SLF001 - the slot is this package's own
    with nullcontext() if users is None else users.use():
        yield
