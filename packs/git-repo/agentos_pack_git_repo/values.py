"""What the tools return."""

from typing import Literal

import attrs

State = Literal["unmodified", "modified", "added", "deleted", "type changed", "unmerged", "untracked"]
Change = Literal["added", "modified", "deleted", "type changed", "unmerged"]


@attrs.frozen(kw_only=True)
class FileState:
    """A file that differs: in the index (what the next commit has) from HEAD, in the folder from the index."""

    path: str
    index: State
    folder: State


@attrs.frozen(kw_only=True)
class Branch:
    """A branch and the commit it is at."""

    name: str
    commit: str


@attrs.frozen(kw_only=True)
class Status:
    """How a repository stands. `branch` is null if none is checked out, `head` if there is no commit yet.

    `operation` is what was begun and not finished: a merge, a rebase, ...
    """

    repo: str
    branch: str | None
    head: str | None
    upstream: str | None
    ahead: int | None
    behind: int | None
    operation: str | None
    clean: bool
    files: list[FileState]
    branches: list[Branch]
    truncated: bool


@attrs.frozen(kw_only=True)
class Commit:
    """A commit. The date is its author's, in UTC."""

    commit: str
    parents: list[str]
    author: str
    email: str
    date: str
    subject: str
    body: str


@attrs.frozen(kw_only=True)
class Log:
    """Commits, the newest first."""

    commits: list[Commit]
    truncated: bool


@attrs.frozen(kw_only=True)
class FileChange:
    """A file that changed. Lines are not counted in binary files."""

    path: str
    change: Change
    added: int | None
    deleted: int | None
    binary: bool


@attrs.frozen(kw_only=True)
class Diff:
    """Changes, as a list and as a patch. `withheld` are files that usually hold secrets: they are not in the patch."""

    compared: str
    files: list[FileChange]
    patch: str
    withheld: list[str]
    truncated: bool


@attrs.frozen(kw_only=True)
class Shown:
    """A commit with its changes, or what is at a path in it: the text of a file, or the names in a folder."""

    kind: Literal["commit", "file", "folder", "link", "submodule"]
    commit: Commit
    path: str | None
    text: str
    binary: bool
    files: list[FileChange]
    names: list[str]
    withheld: list[str]
    truncated: bool


@attrs.frozen(kw_only=True)
class BlameLine:
    """A line of a file, and the commit that it is from."""

    number: int
    commit: str
    author: str
    date: str
    text: str


@attrs.frozen(kw_only=True)
class Blame:
    """Lines of a file; `truncated` tells that the file goes on."""

    path: str
    commit: str
    lines: list[BlameLine]
    truncated: bool


@attrs.frozen(kw_only=True)
class Committed:
    """A commit that was made; `previous` is the one before."""

    commit: str
    previous: str | None
    branch: str | None
    subject: str
    files: list[FileChange]


@attrs.frozen(kw_only=True)
class Branched:
    """A branch that was made."""

    name: str
    commit: str
    checked_out: bool


@attrs.frozen(kw_only=True)
class Losses:
    """What a reset takes away. `unreachable` counts the commits that no other branch, tag or remote branch has.

    commits: those that the branch would not have any more. overwritten: files whose content in the folder is lost.
    unstaged: files whose changes are no longer in the index; their content stays.
    """

    commits: list[str]
    commits_total: int
    unreachable: int
    overwritten: list[str]
    unstaged: list[str]


@attrs.frozen(kw_only=True)
class Reset:
    """A reset that was done; `previous` is where HEAD was, and a reset to it brings the commits back."""

    head: str
    previous: str
    mode: Literal["soft", "mixed", "hard"]
    lost: Losses


@attrs.frozen(kw_only=True)
class Preview:
    """What a call would do: in one sentence, and in detail."""

    would: str
    details: list[str]
