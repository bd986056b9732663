"""zip_create: files and folders into one archive, the same bytes for the same files."""

import hashlib
import io
import zipfile
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import attrs
from agentos_pack_common import Item, PathError, Root

from agentos import Schema, ToolContext
from agentos_pack_archive._limits import ArchiveError, Limits
from agentos_pack_archive._shared import PathArgument, check_wanted, first

_FIRST_TIME = (1980, 1, 1, 0, 0, 0)
_LAST_YEAR = 2107
_FILE = 0o100644 << 16
_FOLDER = (0o040755 << 16) | 0x10
_UNIX = 3
_DEPTH = 64


@attrs.frozen
class LeftOut:
    """Something that was not packed."""

    path: str
    reason: str


@attrs.frozen
class Created:
    """What was packed, or would be."""

    path: str
    files: int
    folders: Annotated[int, "Empty folders; others come with what is in them"]
    bytes: Annotated[int, "Of all files, unpacked"]
    size: Annotated[int | None, "Bytes of the archive; null in a preview"]
    sha256: Annotated[str | None, "Of the archive; null in a preview"]
    names: Annotated[list[str], "The first members, by name"]
    names_truncated: bool
    left_out: Annotated[list[LeftOut], "Links and special files; secrets are left out without a word"]
    replaced: Annotated[bool, "A file was there and is gone"]
    applied: Annotated[bool, "false in a preview"]


@attrs.frozen
class _Plan:
    members: Mapping[str, Item]
    left_out: list[LeftOut]
    told: Created


class CreatingTools:
    """The tool that packs."""

    def __init__(self, root: Root, limits: Limits) -> None:
        self._root = root
        self._limits = limits

    def zip_create(
        self,
        name: Annotated[PathArgument, "Path of the new archive, such as out/notes.zip, relative to the root folder"],
        paths: Annotated[
            list[Annotated[str, Schema(minLength=1, maxLength=4096)]],
            "Files and folders to pack, relative to the root folder; folders with all that is in them",
            Schema(minItems=1, maxItems=200),
        ],
        base: Annotated[
            str,
            "The folder that names in the archive are relative to; everything packed must be in it",
            Schema(minLength=1, maxLength=4096),
        ] = ".",
        overwrite: Annotated[bool, "Replace a file that has this name"] = False,
        fixed_times: Annotated[
            bool, "Give every member the same time, so that equal files make equal archives"
        ] = False,
        *,
        context: ToolContext | None = None,
    ) -> Created:
        """Pack files and folders into a new zip archive, sorted by name; folders on the way to it are made.

        Names keep their folders, so files of the same name do not collide. Links and special files are left out and
        told; files that usually hold secrets (.env, keys, .ssh) are never packed. Only zip can be made, not tar.
        """
        plan = self._plan(name, paths, base, overwrite=overwrite, context=context)
        data = self._packed(plan.members, fixed_times=fixed_times, context=context)
        check_wanted(context)
        self._root.write_bytes(name, data, overwrite=overwrite, parents=True)
        return attrs.evolve(plan.told, size=len(data), sha256=hashlib.sha256(data).hexdigest(), applied=True)

    def preview_create(self, arguments: Mapping[str, Any], context: ToolContext | None) -> Created:
        """Say what zip_create would do."""
        given = {"base": ".", "overwrite": False, **arguments}
        name, paths, base = given["name"], given["paths"], given["base"]
        return self._plan(name, paths, base, overwrite=given["overwrite"], context=context).told

    # -- what is packed ------------------------------------------------------------------------------------------

    def _plan(self, name: str, paths: list[str], base: str, *, overwrite: bool, context: ToolContext | None) -> _Plan:
        target, is_there = self._target(name, overwrite=overwrite)
        prefix = self._base(base)
        left_out: list[LeftOut] = []
        members: dict[str, Item] = {}
        for given in paths:
            for item in self._inside(self._root.stat(given), left_out):
                check_wanted(context)
                if item.path != target:
                    members[_name(item, prefix)] = item
                    self._check(members)
        ordered = dict(sorted(members.items()))
        if not ordered:
            raise ValueError("paths: there is nothing to pack; name files, or folders with files in them")
        return _Plan(ordered, left_out, self._result(target, ordered, left_out, is_there=is_there))

    def _target(self, path: str, *, overwrite: bool) -> tuple[str, bool]:
        target = self._root.relative(self._root.resolve(path))
        try:
            there = self._root.stat(path)
        except PathError as error:
            if error.kind != "missing":
                raise
            self._root.check_new(path)
            return target, False
        if there.kind != "file":
            raise PathError("not_a_file", path, "is not a file; give the path of the archive itself")
        if not overwrite:
            raise PathError("exists", path, "exists already; choose another name, or say overwrite")
        return target, True

    def _base(self, base: str) -> str:
        item = self._root.stat(base)
        if item.kind != "folder":
            raise PathError("not_a_folder", base, "is not a folder")
        return "" if item.path == "." else f"{item.path}/"

    def _inside(self, item: Item, left_out: list[LeftOut], depth: int = 0) -> Iterator[Item]:
        """List a file; or the files and empty folders of a folder."""
        if item.kind == "file":
            yield item
        elif item.kind != "folder":
            left_out.append(LeftOut(item.path, "it is a link" if item.kind == "link" else "it is a special file"))
            self._limits.check_members(len(left_out))
        elif depth > _DEPTH:
            raise ValueError(f"paths: folders are nested deeper than {_DEPTH} levels; pack a folder further down")
        else:
            inner = list(self._root.scan(item.path))
            for each in inner:
                yield from self._inside(each, left_out, depth + 1)
            if not inner and item.path != ".":
                yield item

    def _check(self, members: Mapping[str, Item]) -> None:
        if len(members) > self._limits.members:
            raise ValueError(f"paths: more than {self._limits.members:,} files, which is the limit; pack fewer")

    def _result(self, target: str, members: Mapping[str, Item], left_out: list[LeftOut], *, is_there: bool) -> Created:
        total = sum(item.size for item in members.values())
        if total > self._limits.bytes:
            raise ValueError(f"paths: {total:,} bytes; at most {self._limits.bytes:,} can be packed; pack fewer")
        names = first(list(members))
        folders = sum(item.kind == "folder" for item in members.values())
        return Created(
            path=target,
            files=len(members) - folders,
            folders=folders,
            bytes=total,
            size=None,
            sha256=None,
            names=names,
            names_truncated=len(names) < len(members),
            left_out=left_out[: len(first([one.path for one in left_out]))],
            replaced=is_there,
            applied=False,
        )

    # -- packing -------------------------------------------------------------------------------------------------

    def _packed(self, members: Mapping[str, Item], *, fixed_times: bool, context: ToolContext | None) -> bytes:
        made = io.BytesIO()
        room = self._limits.bytes
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, item in members.items():
                check_wanted(context)
                data = b"" if item.kind == "folder" else self._root.read_bytes(item.path, max_bytes=room)
                room -= len(data)
                archive.writestr(_info(name, item, fixed_times=fixed_times), data)
                self._check_made(made)
        self._check_made(made)
        return made.getvalue()

    def _check_made(self, made: io.BytesIO) -> None:
        if made.tell() > self._limits.archive_bytes:
            raise ArchiveError(f"paths: the archive has more than {self._limits.archive_bytes:,} bytes; pack fewer")


def _name(item: Item, prefix: str) -> str:
    if not item.path.startswith(prefix) or item.path == prefix.rstrip("/"):
        raise ValueError(f"base: {item.path!r} is not in {prefix.rstrip('/')!r}; name a folder that has all of it")
    return item.path[len(prefix) :] + ("/" if item.kind == "folder" else "")


def _info(name: str, item: Item, *, fixed_times: bool) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _FIRST_TIME if fixed_times else _time_of(item))
    info.create_system = _UNIX
    info.external_attr = _FOLDER if item.kind == "folder" else _FILE
    info.compress_type = zipfile.ZIP_STORED if item.kind == "folder" else zipfile.ZIP_DEFLATED
    return info


def _time_of(item: Item) -> tuple[int, int, int, int, int, int]:
    """Return a time that a zip can say: between 1980 and 2107, in UTC."""
    time = item.modified
    if not _FIRST_TIME[0] <= time.year <= _LAST_YEAR:
        return _FIRST_TIME
    return time.year, time.month, time.day, time.hour, time.minute, time.second
