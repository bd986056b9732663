"""What archives are read from: files that give no more at a time than was agreed, and streams that are unpacked."""

import bz2
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Protocol

from agentos_pack_archive._limits import TOO_DENSE, ArchiveError, Limits

CHUNK = 65_536
_XZ_MEMORY = 128 * 1024 * 1024
"""What an .xz file may ask for; `xz -9` asks for 65 MB, a hostile header for 4 GB."""
_HEADER = 16_384
"""What is read of a tar's extended header: tarfile reads one whole, and some releases search it in quadratic time."""
_PER_MEMBER = 2_048
_STREAMS = 20_000
"""How many streams in a row are read: each costs something even if nothing is in it, and an empty one has 14 bytes."""
_DIRECTORY = 8_000_000
"""What is read of a zip's directory: each of its entries takes many times its size in memory."""


class Decompressor(Protocol):
    """What bz2 and lzma have in common."""

    eof: bool
    unused_data: bytes
    needs_input: bool

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return at most *max_length* bytes."""
        ...


class _Gzip:
    """The decompressor of gzip in the manner of the other two."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail


DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    "gz": _Gzip,
    "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY),
}


def chunks_of(file: BinaryIO) -> Iterator[bytes]:
    """List the bytes of a file, piece by piece."""
    while data := file.read(CHUNK):
        yield data


def unpacked(file: BinaryIO, make: Callable[[], Decompressor]) -> Iterator[bytes]:
    """List the unpacked bytes of a file, piece by piece; several streams in a row are one."""
    inner = make()
    count = 1
    while True:
        data = b""
        if inner.eof:
            data = (inner.unused_data or file.read(CHUNK)).lstrip(b"\0")
            if not data:
                return
            inner = make()
            count += 1
            if count > _STREAMS:
                raise ArchiveError(f"it is made of more than {_STREAMS:,} packed streams")
        elif inner.needs_input and not (data := file.read(CHUNK)):
            raise ArchiveError("it is cut off")
        if chunk := inner.decompress(data, CHUNK):
            yield chunk


class ForwardFile:
    """A file for tarfile over a stream: it goes forward only, and counts."""

    def __init__(self, chunks: Iterator[bytes], packed: Callable[[], int], limits: Limits) -> None:
        self._chunks = chunks
        self._packed = packed
        self._limits = limits
        self._overhead = _PER_MEMBER * limits.members
        self._ready = b""
        self._position = 0
        self._total = 0
        self.last = b""
        """What was read last for a header."""

    def tell(self) -> int:
        """Return how many bytes were read."""
        return self._position

    def seek(self, position: int, whence: int = os.SEEK_SET) -> int:
        """Go forward, by reading."""
        if whence != os.SEEK_SET or position < self._position:
            raise ArchiveError("its headers point backwards")
        while self._position < position and self.take(min(CHUNK, position - self._position)):
            pass
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Return what a header is made of."""
        if not 0 <= size <= _HEADER:
            raise ArchiveError(f"it has a header of more than {_HEADER:,} bytes")
        self.last = self.take(size)
        return self.last

    def take(self, size: int) -> bytes:
        """Return the next *size* bytes, or fewer at the end."""
        parts: list[bytes] = []
        while size > 0 and self._filled():
            part, self._ready = self._ready[:size], self._ready[size:]
            parts.append(part)
            size -= len(part)
            self._position += len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Do nothing: whoever opened what is beneath closes it."""

    def _filled(self) -> bool:
        if not self._ready:
            self._ready = next(self._chunks, b"")
            self._total += len(self._ready)
            self._limits.check_bytes(self._total - self._overhead)
            if self._limits.is_bomb(self._total, self._packed()):
                raise ArchiveError(TOO_DENSE)
        return bool(self._ready)


class DirectoryFile:
    """A file for zipfile: it can be searched, but no directory larger than agreed is read from it."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size

    def seekable(self) -> bool:
        """Say that it can be searched."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._file.tell()

    def seek(self, position: int, whence: int = os.SEEK_SET) -> int:
        """Go to a position."""
        return self._file.seek(position, whence)

    def read(self, size: int = -1) -> bytes:
        """Return the next *size* bytes, or all that is left."""
        left = max(0, self._size - self._file.tell())
        wanted = left if size < 0 else min(size, left)
        if wanted > _DIRECTORY:
            raise ArchiveError(f"its directory is larger than {_DIRECTORY:,} bytes")
        return self._file.read(wanted)

    def close(self) -> None:
        """Do nothing: whoever opened what is beneath closes it."""
