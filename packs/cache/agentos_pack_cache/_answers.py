"""What is kept, and for how long."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

import attrs

T = TypeVar("T")


@attrs.frozen
class _Kept(Generic[T]):
    value: T
    size: int
    until: float


class Answers(Generic[T]):
    """Values that expire; when there are too many, or too large ones, what was used least recently goes first."""

    def __init__(self, most: int, most_bytes: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._clock = clock
        self._kept: OrderedDict[str, _Kept[T]] = OrderedDict()
        self._size = 0

    def get(self, key: str) -> T | None:
        """Return what is kept under *key* and has not expired."""
        found = self._kept.get(key)
        if found is None:
            return None
        if found.until <= self._clock():
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return found.value

    def keep(self, key: str, value: T, size: int, seconds: float) -> None:
        """Keep *value* for so many seconds, unless it alone is larger than all may be."""
        self._drop(key)
        if size > self._most_bytes:
            return
        self._kept[key] = _Kept(value, size, self._clock() + seconds)
        self._size += size
        while len(self._kept) > self._most or self._size > self._most_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: str) -> None:
        if (found := self._kept.pop(key, None)) is not None:
            self._size -= found.size
