"""Lines of a stream of bytes, bounded while they arrive."""

EXCERPT_SIZE = 400
"""How much of a line is kept or shown where not all of it can be."""
_ENDLESS = 128
"""How many times as long as the longest that is kept a line may be before it is taken to have no end."""


class LineSplitter:
    """Cuts a stream of bytes into lines. One that is too long is thrown away while it arrives."""

    def __init__(self, limit: int, ends: int = EXCERPT_SIZE) -> None:
        self._limit = limit
        self._ends = ends
        self._kept = bytearray()
        self._size = 0
        self._head = b""

    @property
    def is_endless(self) -> bool:
        """Tell whether the line that arrives now seems to have no end."""
        return self._size > self._limit * _ENDLESS

    def feed(self, data: bytes) -> list[tuple[bytes, bool]]:
        """Return the lines that *data* completes, each with whether it is whole."""
        *whole, rest = data.split(b"\n")
        found = [self._complete(line) for line in whole]
        self._keep(rest)
        return found

    def rest(self) -> list[tuple[bytes, bool]]:
        """Return what came behind the last line, at the end of the stream."""
        return [self._complete(b"")] if self._size else []

    def _keep(self, data: bytes) -> None:
        self._size += len(data)
        self._kept += data
        if self._size > self._limit:  # of what is thrown away, the beginning and the end are kept
            self._head = self._head or bytes(self._kept[: self._ends])
            self._kept = self._kept[-self._ends :]

    def _complete(self, data: bytes) -> tuple[bytes, bool]:
        self._keep(data)
        is_whole = self._size <= self._limit
        line = bytes(self._kept) if is_whole else self._head + b" ... " + self._kept
        self._kept, self._size, self._head = bytearray(), 0, b""
        return line, is_whole
