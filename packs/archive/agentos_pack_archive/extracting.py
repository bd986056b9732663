"""zip_extract: all of an archive, or some members of it, into a folder; whole or not at all."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import attrs
from agentos_pack_common import PathError, Root

from agentos import Schema, ToolContext
from agentos_pack_archive._limits import ArchiveError, Limits
from agentos_pack_archive._members import Archive, Format, Member
from agentos_pack_archive._names import normal, shown
from agentos_pack_archive._shared import REFUSED, PathArgument, check_wanted, first, opened
from agentos_pack_archive._staging import Staging

_SHOWN = 5


@attrs.frozen
class Skipped:
    """A member that was not unpacked."""

    name: str
    reason: str


@attrs.frozen
class Extracted:
    """What was unpacked, or would be."""

    path: str
    format: Format
    destination: str
    files: int
    folders: Annotated[int, "Folders that are members themselves"]
    bytes: Annotated[int, "Of all files, unpacked"]
    names: Annotated[list[str], "The first files, relative to the destination"]
    names_truncated: bool
    overwritten: Annotated[list[str], "The first files that were there and are gone"]
    overwritten_count: int
    skipped: Annotated[list[Skipped], "The first members that were left out, and why"]
    skipped_count: int
    applied: Annotated[bool, "false in a preview"]


@attrs.frozen
class _Wish:
    """What a caller wants."""

    path: str
    destination: str
    members: tuple[str, ...]
    overwrite: bool
    skips: bool

    def is_for(self, path: str) -> bool:
        return not self.members or any(path == one or path.startswith(f"{one}/") for one in self.members)


@attrs.define
class _Tally:
    """What came so far."""

    files: list[str] = attrs.field(factory=list)
    folders: int = 0
    bytes: int = 0
    overwritten: list[str] = attrs.field(factory=list)
    skipped: list[Skipped] = attrs.field(factory=list)


class ExtractingTools:
    """The tool that unpacks."""

    def __init__(self, root: Root, limits: Limits) -> None:
        self._root = root
        self._limits = limits

    def zip_extract(
        self,
        path: PathArgument,
        dest: Annotated[
            str,
            "The folder to unpack into, relative to the root folder; it is made if it is not there",
            Schema(minLength=1, maxLength=4096),
        ],
        members: Annotated[
            list[Annotated[str, Schema(minLength=1, maxLength=1_000)]] | None,
            "Only these members, or all that is beneath them, by their names as zip_list tells them; null for all",
            Schema(maxItems=500),
        ] = None,
        overwrite: Annotated[
            bool, "Replace files that are there; without it, one that is there stops everything"
        ] = False,
        on_unsafe: Annotated[
            Literal["refuse", "skip"],
            "If a member is unsafe (see problem in zip_list): refuse the whole archive, or leave the member out",
        ] = "refuse",
        *,
        context: ToolContext | None = None,
    ) -> Extracted:
        """Unpack a zip or tar archive (also .tar.gz, .tar.bz2, .tar.xz) into a folder, whole or not at all.

        Nothing is written outside of that folder. Links, devices, encrypted members, duplicate names, secrets
        and bombs are never unpacked. Archives within the archive are not unpacked. Files get plain permissions. Look
        with zip_list first.
        """
        wish = _wish(path, dest, members, overwrite=overwrite, skips=on_unsafe == "skip")
        with opened(self._root, path, self._limits) as archive:
            staging = Staging(self._root, dest, overwrite=overwrite)
            with staging:
                tally = self._run(archive, staging, wish, context, writes=True)
                staging.commit(lambda: check_wanted(context))
        return attrs.evolve(self._result(archive, staging, wish, tally), applied=True)

    def preview_extract(self, arguments: Mapping[str, Any], context: ToolContext | None) -> Extracted:
        """Say what zip_extract would do."""
        given = {"members": None, "overwrite": False, "on_unsafe": "refuse", **arguments}
        skips = given["on_unsafe"] == "skip"
        path, dest = given["path"], given["dest"]
        wish = _wish(path, dest, given["members"], overwrite=given["overwrite"], skips=skips)
        with opened(self._root, path, self._limits) as archive:
            staging = Staging(self._root, dest, overwrite=wish.overwrite)
            tally = self._run(archive, staging, wish, context, writes=False)
        return self._result(archive, staging, wish, tally)

    # -- member by member ----------------------------------------------------------------------------------------

    def _run(
        self, archive: Archive, staging: Staging, wish: _Wish, context: ToolContext | None, *, writes: bool
    ) -> _Tally:
        tally = _Tally()
        for member in self._wanted(archive, staging, wish, tally):
            check_wanted(context)
            is_folder = member.kind == "folder"
            if staging.check_new(member.path, is_folder=is_folder):
                tally.overwritten.append(member.path)
            tally.bytes += member.size
            self._limits.check_bytes(tally.bytes)
            if is_folder:
                tally.folders += 1
            else:
                tally.files.append(member.path)
            if writes and is_folder:
                staging.add_folder(member.path)
            elif writes:
                staging.add_file(member.path, member.read())
        return tally

    def _wanted(self, archive: Archive, staging: Staging, wish: _Wish, tally: _Tally) -> Iterator[Member]:
        """List the members that are wanted and safe; the others are told, or refused."""
        found: set[str] = set()
        for member in archive.members:
            if not wish.is_for(member.path):
                continue
            found.update(one for one in wish.members if member.path == one or member.path.startswith(f"{one}/"))
            problem = member.problem or self._hidden(staging.target_of(member.path))
            if problem is None:
                yield member
            elif wish.skips:
                tally.skipped.append(Skipped(shown(member.name), problem))
            else:
                raise ArchiveError(f"{shown(member.name)!r}: {problem}; look with zip_list, or say on_unsafe skip")
        missing = [one for one in wish.members if one not in found]
        if missing:
            names = ", ".join(repr(shown(one)) for one in missing[:_SHOWN])
            raise ValueError(f"members: {names} not in the archive; zip_list tells what is")

    def _hidden(self, target: str) -> str | None:
        try:
            self._root.resolve(target)
        except PathError as error:
            return REFUSED.get(error.kind)  # what is in its way is told where it is met
        return None

    def _result(self, archive: Archive, staging: Staging, wish: _Wish, tally: _Tally) -> Extracted:
        names, skipped = first(tally.files), first([attrs.asdict(one) for one in tally.skipped])
        return Extracted(
            path=self._root.stat(wish.path).path,
            format=archive.format,
            destination=staging.destination,
            files=len(tally.files),
            folders=tally.folders,
            bytes=tally.bytes,
            names=names,
            names_truncated=len(names) < len(tally.files),
            overwritten=first(tally.overwritten),
            overwritten_count=len(tally.overwritten),
            skipped=[Skipped(**one) for one in skipped],
            skipped_count=len(tally.skipped),
            applied=False,
        )


def _wish(path: str, destination: str, members: list[str] | None, *, overwrite: bool, skips: bool) -> _Wish:
    names = tuple(normal(one) for one in members or ())
    if not all(names) or members == []:
        raise ValueError("members: expected names of members, as zip_list tells them, or null for all")
    return _Wish(path, destination, names, overwrite, skips)
