"""What the tools that only look answer."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from agentos_pack_common import quoted

from agentos_pack_git_repo.names import commit_of, path_of
from agentos_pack_git_repo.patches import changes, commits, name_of, one_commit, patch, text_of
from agentos_pack_git_repo.places import GitError
from agentos_pack_git_repo.running import Git, beside
from agentos_pack_git_repo.values import Blame, BlameLine, Branch, Commit, Diff, FileState, Log, Shown, State, Status

MOST_FILES: Final = 500
MOST_BRANCHES: Final = 100
MOST_NAMES: Final = 1_000
_BINARY_LOOK: Final = 8_000

# -- status ------------------------------------------------------------------------------------------------------

_STATES: Final[dict[str, State]] = {
    ".": "unmodified",
    "M": "modified",
    "A": "added",
    "D": "deleted",
    "T": "type changed",
    "U": "unmerged",
}
_OPERATIONS: Final = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "BISECT_LOG": "bisect",
}


def operation_of(git: Git) -> str | None:
    """Return what was begun in the repository and is not finished."""
    return next((word for name, word in _OPERATIONS.items() if (git.place.own / name).exists()), None)


async def status(git: Git) -> Status:
    """Say how a repository stands."""
    asked = (
        "--porcelain=v2",
        "--branch",
        "-z",
        "--no-renames",
        "--ignore-submodules=dirty",
        "--untracked-files=normal",
    )
    done = await git.run("status", *asked, output=1_000_000)
    entries = done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    said = dict(entry[2:].split(" ", 1) for entry in entries if entry.startswith("# branch."))
    files = [_state(entry) for entry in entries if entry[:2] in ("1 ", "u ", "? ")]
    ahead, behind = _counts(said.get("branch.ab"))
    head, branch = said.get("branch.oid"), said.get("branch.head")
    return Status(
        repo=git.place.name,
        branch=None if branch in (None, "(detached)") else name_of(branch or ""),
        head=None if head == "(initial)" else head,
        upstream=name_of(said["branch.upstream"]) if "branch.upstream" in said else None,
        ahead=ahead,
        behind=behind,
        operation=operation_of(git),
        clean=not files and not done.truncated,
        files=files[:MOST_FILES],
        branches=await _branches(git),
        truncated=done.truncated or len(files) > MOST_FILES,
    )


def _state(entry: str) -> FileState:
    """Read `1 XY sub modes hashes path`, `u XY sub modes hashes path` or `? path`."""
    if entry[0] == "?":
        return FileState(path=name_of(entry[2:]), index="untracked", folder="untracked")
    path = entry.split(" ", 8 if entry[0] == "1" else 10)[-1]
    index, folder = (_STATES.get(letter, "modified") for letter in entry[2:4])
    if entry[0] == "u":
        index = folder = "unmerged"
    return FileState(path=name_of(path), index=index, folder=folder)


def _counts(said: str | None) -> tuple[int | None, int | None]:
    if said is None:
        return None, None
    ahead, behind = said.split()
    return abs(int(ahead)), abs(int(behind))


async def _branches(git: Git) -> list[Branch]:
    lines = await git.run(
        "for-each-ref",
        "--sort=-committerdate",
        f"--count={MOST_BRANCHES}",
        "--format=%(objectname) %(refname:lstrip=2)",
        "refs/heads",
    )
    pairs = [line.split(" ", 1) for line in lines.stdout.decode("utf-8", "surrogateescape").splitlines()]
    return [Branch(name=name_of(name), commit=commit) for commit, name in pairs]


# -- history -----------------------------------------------------------------------------------------------------


async def log(git: Git, rev: str, *, path: str | None, text: str, author: str, limit: int, skip: int) -> Log:
    """Return commits that lead to *rev*, the newest first."""
    commit = await commit_of(git, rev)
    asked = ["--fixed-strings", "--regexp-ignore-case", f"--skip={skip}"]
    for name, value in (("grep", text), ("author", author)):
        if "\0" in value or "\n" in value:
            raise GitError(f"{'text' if name == 'grep' else name}: expected one line")
        asked += [f"--{name}={value}"] if value else []
    paths = [] if path is None else [path_of(git, path)]
    found, cut = await commits(git, *asked, commit, "--", *paths, limit=limit + 1)
    return Log(commits=found[:limit], truncated=cut or len(found) > limit)


async def diff(git: Git, base: str | None, target: str | None, *, staged: bool, path: str | None, around: int) -> Diff:
    """Compare two commits, or a commit, the index and the folder."""
    if target is not None and (staged or base is None):
        raise GitError("target: goes with base alone: two commits are compared; leave out staged, or target")
    first = None if base is None else await commit_of(git, base, "base")
    second = None if target is None else await commit_of(git, target, "target")
    compared = [*(["--cached"] if staged else []), *filter(None, (first, second))]
    paths = ["--"] if path is None else ["--", path_of(git, path)]
    looking = git if second else await beside(git)
    files, more = await changes(looking, *compared, *paths)
    text, withheld, cut = await patch(looking, f"--unified={around}", *compared, *paths)
    return Diff(
        compared=_compared(base, target, staged=staged),
        files=files,
        patch=text,
        withheld=withheld,
        truncated=more or cut,
    )


def _compared(base: str | None, target: str | None, *, staged: bool) -> str:
    if target is not None:
        return f"commit {base} to commit {target}"
    if staged:
        return f"commit {base or 'HEAD'} to the index"
    return f"commit {base} to the folder" if base is not None else "the index to the folder"


async def show(git: Git, rev: str, path: str | None) -> Shown:
    """Return a commit with its changes, or what is at *path* in it."""
    commit = await one_commit(git, await commit_of(git, rev))
    return await _show_commit(git, commit) if path is None else await _show_path(git, commit, path_of(git, path))


async def _show_commit(git: Git, commit: Commit) -> Shown:
    before = commit.parents[0] if commit.parents else await empty_tree(git)
    files, more = await changes(git, before, commit.commit, "--")
    text, withheld, cut = await patch(git, before, commit.commit, "--")
    return _commit_details("commit", commit, None, text=text, files=files, withheld=withheld, truncated=more or cut)


async def empty_tree(git: Git) -> str:
    """Return the number of the tree with nothing in it."""
    return await git.line("hash-object", "-t", "tree", "--stdin")


def _commit_details(kind: Any, commit: Commit, path: str | None, **fields: Any) -> Shown:
    empty: dict[str, Any] = {"text": "", "files": [], "names": [], "withheld": [], "binary": False, "truncated": False}
    return Shown(kind=kind, commit=commit, path=path, **{**empty, **fields})


async def _show_path(git: Git, commit: Commit, path: str) -> Shown:
    if path == ".":
        return await _show_folder(git, commit, path, f"{commit.commit}^{{tree}}")
    entries = await git.names("ls-tree", "-z", "--full-tree", commit.commit, "--", path)
    if len(entries) != 1:
        raise GitError(f"path: there is no {quoted(path)} in commit {commit.commit[:12]}")
    mode, kind, number = entries[0].partition("\t")[0].split(" ")
    if kind == "tree":
        return await _show_folder(git, commit, path, number)
    if kind != "blob":
        return _commit_details("submodule", commit, path, text=number)
    done = await git.run("cat-file", "blob", number, output=git.options.max_bytes)
    binary = b"\0" in done.stdout[:_BINARY_LOOK]
    text = "" if binary else text_of(done.stdout)
    name = "link" if mode.startswith("12") else "file"
    return _commit_details(name, commit, path, text=text, binary=binary, truncated=done.truncated)


async def _show_folder(git: Git, commit: Commit, path: str, tree: str) -> Shown:
    entries = await git.names("ls-tree", "-z", tree)
    names = [_entry(*entry.split("\t", 1)) for entry in entries]
    return _commit_details("folder", commit, path, names=names[:MOST_NAMES], truncated=len(names) > MOST_NAMES)


def _entry(described: str, name: str) -> str:
    return name_of(name) + ("/" if " tree " in described else "")


# -- blame -------------------------------------------------------------------------------------------------------


async def blame(git: Git, path: str, rev: str, first: int, count: int) -> Blame:
    """Return lines of a file with the commits that they are from."""
    commit, name = await commit_of(git, rev), path_of(git, path)
    await _check_file(git, commit, name)
    done = await git.run(
        "blame",
        "--line-porcelain",
        "--no-textconv",
        "--encoding=UTF-8",
        f"-L{first},+{count + 1}",  # one more than asked for shows whether the file goes on
        commit,
        "--",
        name,
        output=git.options.max_bytes * 10,
    )
    lines = _blamed(done.stdout.split(b"\n"))
    return Blame(path=name, commit=commit, lines=lines[:count], truncated=done.truncated or len(lines) > count)


async def _check_file(git: Git, commit: str, path: str) -> None:
    entries = await git.names("ls-tree", "-z", "--full-tree", commit, "--", path)
    if len(entries) != 1 or " blob " not in entries[0]:
        raise GitError(f"path: there is no file {quoted(path)} in commit {commit[:12]}")


def _blamed(rows: Sequence[bytes]) -> list[BlameLine]:
    """Read `hash old new [count]`, then `key value` rows, then the line itself behind a tab."""
    found, facts, head = [], dict[bytes, bytes](), list[bytes]()
    for row in rows:
        if row.startswith(b"\t"):
            found.append(_line(head, facts, row[1:]))
            facts, head = {}, []
        elif not head:
            head = row.split(b" ")
        else:
            key, _, value = row.partition(b" ")
            facts[key] = value
    return found


def _line(head: Sequence[bytes], facts: dict[bytes, bytes], text: bytes) -> BlameLine:
    seconds = int(facts.get(b"author-time", b"0"))
    return BlameLine(
        number=int(head[2]),
        commit=head[0].decode("ascii", "replace"),
        author=text_of(facts.get(b"author", b"")),
        date=datetime.fromtimestamp(min(max(seconds, 0), 2**33), UTC).isoformat(),
        text=text_of(text),
    )
