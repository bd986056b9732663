"""Members of an archive, one after another, whatever its format: what each is, what is wrong with it, its bytes.

Nothing here writes. A member's bytes are counted against what it said, and can be read only until the next one is
asked for: some formats can't go back.
"""

import contextlib
import copy
import datetime as dt
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Literal

import attrs

from agentos_pack_archive._limits import TOO_DENSE, ArchiveError, Limits
from agentos_pack_archive._names import fault_of, is_itself, key_of, normal, shown
from agentos_pack_archive._streams import CHUNK, DECOMPRESSORS, DirectoryFile, ForwardFile, chunks_of, unpacked

Kind = Literal["file", "folder", "link", "hard link", "special", "sparse"]
Format = Literal["zip", "tar", "tar.gz", "tar.bz2", "tar.xz"]

_MAGIC: tuple[tuple[bytes, Format], ...] = (
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"\x1f\x8b", "tar.gz"),
    (b"BZh", "tar.bz2"),
    (b"\xfd7zXZ\x00", "tar.xz"),
)
_UNSUPPORTED = {b"7z\xbc\xaf": "7-Zip", b"Rar!": "RAR", b"\x28\xb5\x2f\xfd": "Zstandard"}
_BROKEN = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error, EOFError),
    *(NotImplementedError, RuntimeError, UnicodeError, OverflowError, MemoryError, OSError, ValueError),
)
"""What the standard library raises for archives that are broken, or not what they say."""
_LOCAL_HEADER = 30
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)


@attrs.frozen
class Member:
    """One member. `problem` says why it is not unpacked as it is; None if it can be."""

    name: str
    path: str
    """Its name as a path with slashes; to be used only if there is no problem."""
    kind: Kind
    size: int
    packed: int | None = None
    modified: str | None = None
    problem: str | None = None
    read: Callable[[], Iterator[bytes]] = attrs.field(repr=False, eq=False, default=lambda: iter(()))


@attrs.frozen
class Archive:
    """An archive while it is open."""

    format: Format
    members: Iterator[Member] = attrs.field(repr=False)


def open_archive(file: BinaryIO, size: int, limits: Limits) -> Archive:
    """Open an archive by what it contains, not by its name."""
    with telling():
        format = _format_of(file, size)
        members = _zip_members(file, size, limits) if format == "zip" else _tar_members(file, format, limits)
    return Archive(format, _judged(_archive_errors(members), limits))


@contextlib.contextmanager
def telling() -> Iterator[None]:
    """Turn what the standard library raises for a broken archive into words."""
    try:
        yield
    except ArchiveError:
        raise
    except _BROKEN as error:
        words = shown(str(error)) if str(error) else type(error).__name__
        raise ArchiveError(f"it is broken, or of a kind that can't be read: {words}") from None


def _archive_errors(members: Iterator[Member]) -> Iterator[Member]:
    with telling():
        yield from members


def _format_of(file: BinaryIO, size: int) -> Format:
    head = file.read(512)
    file.seek(0)
    for magic, format in _MAGIC:
        if head.startswith(magic):
            return format
    for magic, name in _UNSUPPORTED.items():
        if head.startswith(magic):
            raise ArchiveError(f"it is a {name} archive; zip and tar (plain, .gz, .bz2, .xz) can be read")
    if _is_tar(head):
        return "tar"
    if zipfile.is_zipfile(DirectoryFile(file, size)):
        file.seek(0)
        return "zip"
    raise ArchiveError("it is no archive; zip and tar (plain, .gz, .bz2, .xz) can be read")


def _is_tar(head: bytes) -> bool:
    with contextlib.suppress(tarfile.HeaderError):
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
        return True
    return False


# -- judging -----------------------------------------------------------------------------------------------------

_PROBLEMS: dict[Kind, str] = {
    "link": "it is a symbolic link",
    "hard link": "it is a hard link",
    "special": "it is a device, a pipe or another special file",
    "sparse": "it is a sparse file",
}


def _judged(members: Iterator[Member], limits: Limits) -> Iterator[Member]:
    """Say of each member what is wrong with it, alone or beside those before it."""
    taken: dict[str, Kind] = {}
    for count, member in enumerate(members, 1):
        limits.check_members(count)
        if member.kind == "folder" and is_itself(member.name):
            continue
        problem = member.problem or _PROBLEMS.get(member.kind) or fault_of(member.name) or _clash(member, taken)
        if problem is None:
            _take(member, taken)
            limits.check_places(len(taken))
        yield attrs.evolve(member, problem=problem)


def _clash(member: Member, taken: dict[str, Kind]) -> str | None:
    """Say that a member can't be beside what is there already: the same name, but for case, or a file as a folder."""
    key = key_of(member.path)
    kind = taken.get(key)
    if kind is not None and not kind == member.kind == "folder":
        return "another member has the same name, or one that differs in case only"
    parts = key.split("/")
    if any(taken.get("/".join(parts[:count])) == "file" for count in range(1, len(parts))):
        return "it lies beneath a member that is a file"
    return None


def _take(member: Member, taken: dict[str, Kind]) -> None:
    parts = key_of(member.path).split("/")
    for count in range(1, len(parts)):
        taken["/".join(parts[:count])] = "folder"
    taken["/".join(parts)] = member.kind


# -- zip ---------------------------------------------------------------------------------------------------------


def _zip_members(file: BinaryIO, size: int, limits: Limits) -> Iterator[Member]:
    opened = zipfile.ZipFile(DirectoryFile(file, size))
    infos = opened.infolist()
    limits.check_members(len(infos))
    overlapping = _overlapping(infos, opened.start_dir)
    return (_zip_member(opened, info, limits, is_shared=index in overlapping) for index, info in enumerate(infos))


def _overlapping(infos: list[zipfile.ZipInfo], end: int) -> set[int]:
    """Find the members whose bytes are those of another: that is how a small file unpacks to petabytes."""
    order = sorted(range(len(infos)), key=lambda index: infos[index].header_offset)
    starts = [infos[index].header_offset for index in order]
    found = set()
    for index, following in zip(order, [*starts[1:], end], strict=False):
        info = infos[index]
        if info.header_offset < 0 or info.header_offset + _LOCAL_HEADER + info.compress_size > following:
            found.add(index)
    return found


def _zip_member(opened: zipfile.ZipFile, info: zipfile.ZipInfo, limits: Limits, *, is_shared: bool) -> Member:
    return Member(
        name=info.orig_filename,
        path=normal(info.filename),
        kind=_zip_kind(info),
        size=info.file_size,
        packed=info.compress_size,
        modified=_zip_time(info),
        problem=_zip_problem(info, limits, is_shared=is_shared),
        read=lambda: _zip_bytes(opened, info),
    )


def _zip_kind(info: zipfile.ZipInfo) -> Kind:
    mode = info.external_attr >> 16
    if stat.S_ISLNK(mode):
        return "link"
    if info.is_dir() or info.filename.endswith("\\") or stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_IFMT(mode) in (0, stat.S_IFREG) else "special"


def _zip_problem(info: zipfile.ZipInfo, limits: Limits, *, is_shared: bool) -> str | None:
    if is_shared:
        return "its bytes are those of another member too: that is taken for a bomb"
    if info.flag_bits & _ENCRYPTED:
        return "it is encrypted"
    if info.compress_type not in _METHODS:
        return "it is packed by a method that is not supported"
    return TOO_DENSE if limits.is_bomb(info.file_size, info.compress_size) else None


def _zip_time(info: zipfile.ZipInfo) -> str | None:
    with contextlib.suppress(ValueError):
        return dt.datetime(*info.date_time).isoformat()  # noqa: DTZ001 - a zip says no zone
    return None


def _zip_bytes(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    if info.compress_type == zipfile.ZIP_BZIP2:
        yield from _bzip2_bytes(opened, info)
        return
    with telling(), opened.open(info) as member:
        yield from _exactly(lambda: member.read(CHUNK), info.file_size)


def _bzip2_bytes(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    """Unpack piece by piece: zipfile unpacks bzip2 without a bound, and a kilobyte of it holds gigabytes."""
    packed = copy.copy(info)
    packed.compress_type, packed.file_size = zipfile.ZIP_STORED, info.compress_size
    del packed.CRC  # it is that of the unpacked bytes
    check = 0
    with telling(), opened.open(packed) as member:
        pieces = unpacked(member, DECOMPRESSORS["bz2"])  # type: ignore[arg-type]  # it can be read
        for data in _exactly(lambda: next(pieces, b""), info.file_size):
            check = zlib.crc32(data, check)
            yield data
    if check != info.CRC:
        raise ArchiveError("a member's bytes do not fit its checksum")


def _exactly(read: Callable[[], bytes], size: int) -> Iterator[bytes]:
    """List what is read, and refuse more or less than *size*."""
    left = size
    while data := read():
        left -= len(data)
        if left < 0:
            raise ArchiveError("a member is larger than it says")
        yield data
    if left:
        raise ArchiveError("a member is shorter than it says")


# -- tar ---------------------------------------------------------------------------------------------------------


def _tar_members(file: BinaryIO, format: Format, limits: Limits) -> Iterator[Member]:
    make = DECOMPRESSORS.get(format.removeprefix("tar."))
    stream = ForwardFile(unpacked(file, make) if make else chunks_of(file), file.tell, limits)
    opened: Any = tarfile.TarFile(fileobj=stream, mode="r", encoding="utf-8")  # type: ignore[arg-type]  # as above
    while (info := opened.next()) is not None:
        yield _tar_member(stream, info)
        opened.members.clear()  # it keeps them all
    if stream.last.strip(b"\0"):
        raise ArchiveError("it is cut off, or has a header that can't be read")  # tarfile takes that for the end


def _tar_member(stream: ForwardFile, info: tarfile.TarInfo) -> Member:
    if info.size < 0:
        raise ArchiveError("a member has a negative size")
    return Member(
        name=info.name,
        path=normal(info.name),
        kind=_tar_kind(info),
        size=info.size if info.isfile() else 0,
        modified=_tar_time(info.mtime),
        read=lambda: _tar_bytes(stream, info.size),
    )


def _tar_kind(info: tarfile.TarInfo) -> Kind:
    if info.issparse():
        return "sparse"
    if info.issym():
        return "link"
    if info.islnk():
        return "hard link"
    if info.isdir():
        return "folder"
    return "file" if info.isreg() else "special"


def _tar_time(seconds: float) -> str | None:
    with contextlib.suppress(ValueError, OverflowError, OSError):
        return dt.datetime.fromtimestamp(int(seconds), dt.UTC).isoformat()
    return None


def _tar_bytes(stream: ForwardFile, size: int) -> Iterator[bytes]:
    left = size
    with telling():
        while left:
            data = stream.take(min(CHUNK, left))
            if not data:
                raise ArchiveError("it is cut off")
            left -= len(data)
            yield data
