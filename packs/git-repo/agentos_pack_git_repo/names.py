"""Commits, branches and paths, as a caller writes them.

Nothing that a caller wrote reaches git where it could be an option, a range, a path behind a colon or a pattern: a
commit is looked up first and goes on as its number, paths stand behind `--` and for themselves.
"""

import re
from typing import Final

from agentos_pack_common import quoted

from agentos_pack_git_repo.places import GitError
from agentos_pack_git_repo.running import Git

_PLAIN: Final = r"[^\s\x00-\x1f\x7f~^:?*\[\]\\{}]"
_COMMIT: Final = re.compile(rf"(?!-){_PLAIN}{{1,250}}(~[0-9]{{0,5}}|\^[0-9]?){{0,10}}")
_BRANCH: Final = re.compile(rf"(?!-){_PLAIN}{{1,200}}")
_NUMBER: Final = re.compile(r"[0-9a-f]{7,64}")


async def commit_of(git: Git, rev: str, place: str = "rev") -> str:
    """Return the number of the commit that *rev* names."""
    if ".." in rev or not rev.isprintable() or not _COMMIT.fullmatch(rev):
        raise GitError(
            f"{place}: expected a commit's hash, a branch, a tag or HEAD, with ~2 or ^ behind it if need be, got "
            f"{quoted(rev)}; ranges, paths and searches are not taken here"
        )
    done = await git.run("rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}", accepted=(0, 1, 128))
    found = done.stdout.decode("ascii", "replace").strip()
    if done.exit_code or not _NUMBER.fullmatch(found):
        raise GitError(f"{place}: there is no commit {quoted(rev)} here; git_log and git_status show what there is")
    return found


async def head_of(git: Git) -> str | None:
    """Return the number of the commit that is checked out; None if there is no commit yet."""
    done = await git.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}", accepted=(0, 1, 128))
    return done.stdout.decode("ascii", "replace").strip() or None


def check_head(head: str | None, expected: str) -> None:
    """See that *head* is what the caller believes it to be."""
    if not _NUMBER.fullmatch(expected):
        raise GitError(f"head: expected a commit's hash, 7 digits at least, got {quoted(expected)}")
    if head is None or not head.startswith(expected):
        now = f"HEAD is at {head[:12]} now" if head else "there is no commit yet"
        raise GitError(f"head: {now}, and this call was made for {expected[:12]}; nothing was done. Look again")


async def branch_of(git: Git) -> str | None:
    """Return the branch that is checked out; None if none is."""
    done = await git.run("symbolic-ref", "--quiet", "HEAD", accepted=(0, 1))
    name = done.stdout.decode("utf-8", "replace").strip()
    return name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else None


async def check_branch(git: Git, name: str) -> None:
    """See that *name* can be the name of a branch, and is not mistaken for something else."""
    fits = bool(_BRANCH.fullmatch(name)) and name.isprintable() and name not in ("HEAD", "@")
    fits = fits and not _NUMBER.fullmatch(name) and not name.startswith("refs/")
    if fits:
        done = await git.run("check-ref-format", f"refs/heads/{name}", accepted=(0, 1))
        fits = done.exit_code == 0
    if not fits:
        raise GitError(f"name: {quoted(name)} can't be the name of a branch; write one such as fix/login")


def path_of(git: Git, path: str, place: str = "path") -> str:
    """Return *path*, from the top of the repository on, as git takes it."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise GitError(f"{place}: expected a path from the repository's top folder on, without .., got {quoted(path)}")
    if "\0" in path:
        raise GitError(f"{place}: {quoted(path)} is no path")
    if parts and parts[0].lower() == ".git":
        raise GitError(f"{place}: {quoted(path)} is git's own folder; it holds no files of the repository")
    written = "/".join(parts)
    if written and git.withholds(written):
        raise GitError(f"{place}: {quoted(path)} is withheld, since such a file usually holds secrets")
    return written or "."
