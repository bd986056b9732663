"""What git says about changes: lists of files, patches, commits; read from its forms for programs, and bounded."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from agentos_pack_common import clip, decode, plain

from agentos_pack_git_repo.places import GitError
from agentos_pack_git_repo.running import Git
from agentos_pack_git_repo.values import Change, Commit, FileChange

MOST_FILES: Final = 500
_BODY: Final = 2_000
DIFF: Final = (
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
    "--no-color",
    "--no-relative",
    "--submodule=short",
    "--ignore-submodules=dirty",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)
_CHANGES: Final[dict[str, Change]] = {
    "A": "added",
    "M": "modified",
    "D": "deleted",
    "T": "type changed",
    "U": "unmerged",
}


def text_of(data: bytes) -> str:
    """Return foreign bytes as plain text."""
    return plain(decode(data))


def name_of(path: str) -> str:
    """Return a path, whatever its bytes, for a result."""
    return plain(path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")).replace("\n", "\ufffd")


# -- lists of files ----------------------------------------------------------------------------------------------


async def changes(git: Git, *compared: str) -> tuple[list[FileChange], bool]:
    """Return the files that differ, and whether there are more of them."""
    done = await git.run("diff", *DIFF, "--raw", "--numstat", "-z", *compared)
    found = list(_changes(done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]))
    return found[:MOST_FILES], done.truncated or len(found) > MOST_FILES


def _changes(fields: Sequence[str]) -> Iterator[FileChange]:
    """Read `:modes hashes letter`, path, ..., then `added deleted path`, ..., each ended by NUL."""
    letters: dict[str, str] = {}
    rest = iter(fields)
    for field in rest:
        if field.startswith(":"):
            letters[next(rest, "")] = field.rpartition(" ")[2][:1]
        elif field.count("\t") >= 2:  # noqa: PLR2004 - two counts and a path
            added, deleted, path = field.split("\t", 2)
            yield _change(path, letters.pop(path, "M"), added, deleted)
    for path, letter in letters.items():
        yield _change(path, letter, "-", "-", binary=False)


def _change(path: str, letter: str, added: str, deleted: str, *, binary: bool | None = None) -> FileChange:
    return FileChange(
        path=name_of(path),
        change=_CHANGES.get(letter, "modified"),
        added=int(added) if added.isdigit() else None,
        deleted=int(deleted) if deleted.isdigit() else None,
        binary=added == "-" if binary is None else binary,
    )


# -- patches -----------------------------------------------------------------------------------------------------


async def patch(git: Git, *compared: str) -> tuple[str, list[str], bool]:
    """Return a patch, the files that are withheld from it, and whether it was cut."""
    done = await git.run("diff", *DIFF, *compared, output=git.options.max_bytes)
    kept, withheld = [], []
    for section in _sections(done.stdout):
        path = _path_of(section)
        if path is not None and git.withholds(path):
            withheld.append(name_of(path))
        else:
            kept.append(section)
    return text_of(b"".join(kept)), withheld, done.truncated


_HEADER: Final = re.compile(rb"^diff --(?:git|cc|combined) ", re.MULTILINE)


def _sections(data: bytes) -> Iterator[bytes]:
    """Yield what is before the first file, and each file's part. Lines of a file begin with a sign, never with diff."""
    starts = [found.start() for found in _HEADER.finditer(data)]
    for start, end in zip([0, *starts], [*starts, len(data)], strict=True):
        if end > start:
            yield data[start:end]


def _path_of(section: bytes) -> str | None:
    line = section.partition(b"\n")[0].decode("utf-8", "surrogateescape")
    if line.startswith("diff --git "):
        both = line.removeprefix("diff --git ")
        # Without renames both names are the same: `a/x b/x`, or `"a/x" "b/x"`.
        return _unquoted(both[: (len(both) - 1) // 2], "a/")
    if line.startswith(("diff --cc ", "diff --combined ")):
        return _unquoted(line.split(" ", 2)[2], "")
    return None


_ESCAPE: Final = re.compile(r"\\([0-7]{3}|.)")
_LETTERS: Final = {"a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}


def _unquoted(name: str, prefix: str) -> str:
    if name.startswith('"') and name.endswith('"'):
        name = _ESCAPE.sub(lambda found: _unescaped(found[1]), name[1:-1])
    return name.removeprefix(prefix)


def _unescaped(escape: str) -> str:
    if escape.isdigit():
        return bytes([int(escape, 8) & 0xFF]).decode("utf-8", "surrogateescape")
    return _LETTERS.get(escape, escape)


# -- commits -----------------------------------------------------------------------------------------------------

_FORMAT: Final = "%H%x00%P%x00%an%x00%ae%x00%ad%x00%s%x00%b"
_FIELDS: Final = 7


async def commits(git: Git, *asked: str, limit: int) -> tuple[list[Commit], bool]:
    """Return the first *limit* commits of a question to `git log`, and whether they were too long to be all read."""
    done = await git.run(
        "log",
        "--no-show-signature",
        "--no-decorate",
        "--no-notes",
        "--no-mailmap",
        "--no-color",
        "--encoding=UTF-8",
        "--date=iso-strict-local",
        f"--max-count={limit}",
        "-z",
        f"--format=tformat:{_FORMAT}",
        *asked,
    )
    fields = done.stdout.split(b"\0")[:-1]
    whole = len(fields) - len(fields) % _FIELDS
    rows = [fields[at : at + _FIELDS] for at in range(0, whole, _FIELDS)]
    return [_commit([text_of(field) for field in row]) for row in rows], done.truncated


def _commit(fields: Sequence[str]) -> Commit:
    hash, parents, author, email, date, subject, body = fields
    return Commit(
        commit=hash,
        parents=parents.split(),
        author=clip(author, 200).text,
        email=clip(email, 200).text,
        date=datetime.fromisoformat(date).isoformat(),  # newer versions of git write Z for +00:00
        subject=clip(subject, 500).text,
        body=clip(body.strip(), _BODY).text,
    )


async def one_commit(git: Git, commit: str) -> Commit:
    """Return the commit of that number."""
    found, _ = await commits(git, commit, "--", limit=1)
    if not found:
        raise GitError("rev: the message of this commit is too long to be shown")
    return found[0]
