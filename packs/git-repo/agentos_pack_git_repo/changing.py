"""What the tools that change something do, and what they would do.

A commit is made of a tree that was looked at first, in an index of its own: what the checks saw is what is committed.
Every change of a reference names the commit that it expects to find there.
"""

import asyncio
import os
import time
from collections.abc import Collection, Sequence
from typing import Final, Literal

import attrs
from agentos_pack_common import plain, quoted

from agentos_pack_git_repo.looking import empty_tree, operation_of
from agentos_pack_git_repo.names import branch_of, check_branch, check_head, commit_of, head_of, path_of
from agentos_pack_git_repo.patches import changes, commits, name_of, one_commit
from agentos_pack_git_repo.places import GitError, read_small
from agentos_pack_git_repo.running import Git, beside
from agentos_pack_git_repo.values import Branched, Committed, FileChange, Losses, Preview, Reset

MOST_LISTED: Final = 50
_MESSAGE: Final = 20_000
_PATIENCE: Final = 5.0
_PAUSE: Final = 0.05
"""For how many seconds to wait for an index that another process has locked, and how often to look."""
Mode = Literal["soft", "mixed", "hard"]


# -- commit ------------------------------------------------------------------------------------------------------


@attrs.frozen
class Staged:
    """What would be committed. `git` is told to use its index."""

    git: Git
    head: str | None
    branch: str | None
    paths: tuple[str, ...]
    tree: str
    files: list[FileChange]


async def stage(git: Git, paths: Sequence[str], head: str | None, *, dry: bool) -> Staged:
    """Make the tree of a commit: what is staged, or of *paths* what is in the folder. With *dry* nothing is kept."""
    if operation := operation_of(git):
        raise GitError(f"a {operation} is not finished; finish or abort it by hand first")
    present = await head_of(git)
    if head is not None:
        check_head(present, head)
    await _unlocked(git)
    named = tuple(path_of(git, path, f"paths[{index}]") for index, path in enumerate(paths))
    variables = _objects_apart(git) if dry else {}
    if named:
        apart = git.with_environment(GIT_INDEX_FILE=str(git.desk / "index"), **variables)
        await _fill(apart, present, named)
    else:
        apart = await beside(git, **variables)
    if git.options.hooks and not dry:
        await _hook(apart, "pre-commit")
    tree = await apart.line("write-tree")
    files = await _committed_files(apart, present or await empty_tree(apart), tree)
    return Staged(apart, present, await branch_of(git), named, tree, files)


async def _unlocked(git: Git) -> None:
    """Wait until no other process has the index locked: a commit would be made, and the index could not follow it."""
    lock = f"{(git.place.own / 'index').resolve()}.lock"
    until = time.monotonic() + min(_PATIENCE, git.options.max_seconds)
    while os.path.lexists(lock):  # noqa: ASYNC240 - one look, and no content
        if time.monotonic() < until:
            await asyncio.sleep(_PAUSE)
            continue
        raise GitError(
            "the index is locked: another git is at work here, or one was ended (then index.lock in the git folder is "
            "removed by hand); try again later"
        )


async def _write_index(git: Git, *arguments: str) -> None:
    """Run a command that writes the index; if another process locked it just before, wait and try again."""
    until = time.monotonic() + _PATIENCE
    while True:
        await _unlocked(git)
        try:
            await git.run(*arguments)
        except GitError as error:  # git changes nothing before it has the lock
            if "index.lock': File exists" not in str(error) or time.monotonic() > until:
                raise
        else:
            return


def _objects_apart(git: Git) -> dict[str, str]:
    """Return what makes git keep new objects elsewhere, for a dry run."""
    info = git.desk / "objects" / "info"
    info.mkdir(parents=True)
    (info / "alternates").write_text(f"{git.place.parts['objects']}\n", "utf-8", "surrogateescape")
    return {"GIT_OBJECT_DIRECTORY": str(git.desk / "objects")}


async def _fill(git: Git, head: str | None, paths: Sequence[str]) -> None:
    """Put *paths* into the index as they are in the folder; what is refused does not get into the objects either."""
    if head is not None:
        await git.run("read-tree", head)
    coming = await git.names("ls-files", "-z", "--modified", "--others", "--exclude-standard", "--", *paths)
    present = [path for path in dict.fromkeys(coming) if _exists(git, path)]
    _check_secrets(git, present)
    await _check_filters(git, present)
    await git.run("add", "--all", "--", *paths)


async def _committed_files(git: Git, before: str, tree: str) -> list[FileChange]:
    """Return what a commit would change; refuse what is nothing, too much, a secret, or not what it looks like."""
    files, more = await changes(git, before, tree, "--")
    if more:
        raise GitError(f"more than {len(files)} files would be committed; name fewer paths")
    if not files:
        raise GitError(
            "there is nothing to commit: stage something, or name paths with changes (git_status shows them)"
        )
    _check_secrets(git, [one.path for one in files if one.change != "deleted"])
    raw = await git.names("diff", "--raw", "-z", "--no-renames", "--no-abbrev", before, tree, "--")
    if nested := [path for row, path in zip(raw[::2], raw[1::2], strict=True) if row.startswith(":000000 160000 ")]:
        raise GitError(f"{_listed(nested)} is a repository of its own; it is not committed as a part of this one")
    await _check_filters(git, [path for row, path in zip(raw[::2], raw[1::2], strict=True) if not row.endswith(" D")])
    return files


def _check_secrets(git: Git, paths: Sequence[str]) -> None:
    if secret := [path for path in paths if git.withholds(path)]:
        raise GitError(f"{_listed(secret)} would be committed, and such files usually hold secrets; name other paths")


async def _check_filters(git: Git, paths: Sequence[str], *options: str) -> None:
    """Refuse files that a filter changes on their way (large files, encryption): filters do not run here."""
    if not paths:
        return
    listed = "\0".join([*paths, ""]).encode("utf-8", "surrogateescape")
    said = await git.names("check-attr", "-z", *options, "--stdin", "filter", stdin=listed)
    filtered = [
        path for path, value in zip(said[::3], said[2::3], strict=True) if value not in ("unspecified", "unset")
    ]
    if filtered:
        raise GitError(
            f"{_listed(filtered)} is to go through a filter (such as git-lfs or git-crypt), and filters do not run "
            "here; do this by hand"
        )


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""  # noqa: PLR2004 - three are shown
    return ", ".join(quoted(name_of(path)) for path in paths[:3]) + more


async def commit(git: Git, message: str, paths: Sequence[str], head: str | None) -> Committed:
    """Commit what is staged, or *paths* as they are in the folder."""
    text, author = _message(message), _author(git)
    staged = await stage(git, paths, head, dry=False)
    if git.options.hooks:
        text = await _edited(staged.git, text)
    parents = ["-p", staged.head] if staged.head else []
    made = await staged.git.with_environment(**author).line(
        "commit-tree", staged.tree, *parents, "-F", "-", stdin=text.encode()
    )
    subject = text.partition("\n")[0]
    moving = git.with_environment(**author)
    kind = "commit" if staged.head else "commit (initial)"
    await moving.run("update-ref", "-m", f"{kind}: {subject}", "HEAD", made, staged.head or "")
    if staged.paths:
        await _write_index(git, "reset", "--quiet", "--", *staged.paths)
    if git.options.hooks:
        await _hook(moving, "post-commit", accepted=range(256))
    return Committed(commit=made, previous=staged.head, branch=staged.branch, subject=subject, files=staged.files)


def _message(message: str) -> str:
    text = plain(message).strip()
    if not text or len(text) > _MESSAGE:
        raise GitError(f"message: expected text that can be seen, at most {_MESSAGE:,} characters")
    return f"{text}\n"


def _author(git: Git) -> dict[str, str]:
    name, email = git.options.author_name.strip(), git.options.author_email.strip()
    if not name or not email:
        raise GitError("nobody is named as author; the operator says authorName and authorEmail in the pack's options")
    parts = {"NAME": name, "EMAIL": email}
    return {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in parts.items()}


async def preview_commit(git: Git, message: str, paths: Sequence[str], head: str | None) -> Preview:
    """Say what a commit would have in it."""
    subject = _message(message).partition("\n")[0]
    _author(git)
    staged = await stage(git, paths, head, dry=True)
    where = f"on branch {quoted(staged.branch)}" if staged.branch else "on no branch"
    author = f"{git.options.author_name} <{git.options.author_email}>"
    would = f"commit {_count(len(staged.files), 'file')} {where} of {git.place.name!r} as {author}: {quoted(subject)}"
    details = [f"{one.change}: {one.path}{_lines(one)}" for one in staged.files[:MOST_LISTED]]
    return Preview(would=would, details=[*details, *_more(len(staged.files))])


def _lines(change: FileChange) -> str:
    return " (binary)" if change.binary else f" (+{change.added or 0} -{change.deleted or 0})"


def _more(total: int) -> list[str]:
    return [f"and {total - MOST_LISTED} more"] if total > MOST_LISTED else []


# -- hooks, if the operator wants them ---------------------------------------------------------------------------


async def _hook(git: Git, name: str, *arguments: str, accepted: Collection[int] = (0,)) -> None:
    """Run a hook of the repository, if it has one."""
    setting = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath"}
    ready = git.with_environment(**setting, GIT_CONFIG_VALUE_0=str(git.place.shared / "hooks"))
    behind = ("--", *arguments) if arguments else ()
    await ready.run("hook", "run", "--ignore-missing", name, *behind, accepted=accepted)


async def _edited(git: Git, text: str) -> str:
    """Return the message as the hook commit-msg leaves it."""
    file = git.desk / "COMMIT_EDITMSG"
    file.write_text(text, "utf-8")
    await _hook(git, "commit-msg", str(file))
    return _message(read_small(file, 1_000_000).decode("utf-8", "replace"))


# -- branch ------------------------------------------------------------------------------------------------------


async def branch(git: Git, name: str, start: str, *, checkout: bool, dry: bool = False) -> tuple[Branched, str]:
    """Make a branch at *start*, and check it out if that changes no file. Return it, and what HEAD was."""
    await check_branch(git, name)
    commit = await commit_of(git, start, "start")
    if (await git.run("show-ref", "--verify", "--quiet", f"refs/heads/{name}", accepted=(0, 1))).exit_code == 0:
        raise GitError(f"name: there is a branch {quoted(name)} already; choose another name")
    await _check_no_other_is_folder(git, name)
    before = await branch_of(git) or await head_of(git) or "HEAD"
    if checkout:
        await _check_checkout(git, commit)
    if not dry:
        await git.run("update-ref", "-m", f"branch: Created from {start}", f"refs/heads/{name}", commit, "")
        if checkout:
            moved = f"checkout: moving from {before} to {name}"
            await git.run("symbolic-ref", "-m", moved, "HEAD", f"refs/heads/{name}")
    return Branched(name=name, commit=commit, checked_out=checkout), before


async def _check_no_other_is_folder(git: Git, name: str) -> None:
    """Refuse a name that another branch has as a folder, or that has another branch as a folder."""
    parts = name.split("/")
    above = [f"refs/heads/{'/'.join(parts[:count])}" for count in range(1, len(parts))]
    said = await git.run("for-each-ref", "--count=1", "--format=%(refname:lstrip=2)", f"refs/heads/{name}/")
    other = said.stdout.decode("utf-8", "replace").strip()
    for one in above:
        if (await git.run("show-ref", "--verify", "--quiet", one, accepted=(0, 1))).exit_code == 0:
            other = one.removeprefix("refs/heads/")
    if other:
        raise GitError(f"name: {quoted(name)} can't be beside the branch {quoted(other)}; choose another name")


async def _check_checkout(git: Git, commit: str) -> None:
    if operation := operation_of(git):
        raise GitError(f"checkout: a {operation} is not finished; finish or abort it by hand first")
    if await head_of(git) != commit:
        raise GitError("checkout: files would change; it is done for a branch that starts at HEAD only")


async def preview_branch(git: Git, name: str, start: str, *, checkout: bool) -> Preview:
    """Say what making a branch would do."""
    made, before = await branch(git, name, start, checkout=checkout, dry=True)
    commit = await one_commit(git, made.commit)
    details = [f"it starts at {made.commit[:12]} {quoted(commit.subject)}"]
    details += [f"checked out instead of {quoted(before)}; no file changes"] if checkout else []
    return Preview(would=f"make the branch {quoted(name)} in {git.place.name!r}", details=details)


# -- reset -------------------------------------------------------------------------------------------------------


@attrs.frozen
class Plan:
    """A reset that was looked at."""

    previous: str
    target: str
    branch: str | None
    mode: Mode
    lost: Losses


async def plan_reset(git: Git, target: str, head: str, mode: Mode) -> Plan:
    """Look at what a reset would take away; refuse one that was made for another HEAD."""
    previous = await head_of(git)
    check_head(previous, head)
    if previous is None:
        raise GitError("there is no commit yet")
    commit, name = await commit_of(git, target, "target"), await branch_of(git)
    if mode != "soft":
        await _unlocked(git)
    looking = await beside(git)
    if mode == "hard":
        await _check_reset_filters(looking, previous, commit)
    return Plan(previous, commit, name, mode, await _losses(looking, previous, commit, name, mode))


async def _losses(git: Git, previous: str, target: str, name: str | None, mode: Mode) -> Losses:
    leaving, _ = await commits(git, f"^{target}", previous, "--", limit=MOST_LISTED)
    elsewhere = [*([f"--exclude={name}"] if name else []), "--branches", "--tags", "--remotes"]
    count = ("rev-list", "--count")
    overwritten = await _overwritten(git, previous, target) if mode == "hard" else []
    unstaged = await _differing(git, "--cached", previous) if mode == "mixed" else []
    return Losses(
        commits=[f"{one.commit[:12]} {one.subject}" for one in leaving],
        commits_total=int(await git.line(*count, f"^{target}", previous, "--")),
        unreachable=int(await git.line(*count, previous, "--not", target, *elsewhere, "--")),
        overwritten=[name_of(path) for path in overwritten],
        unstaged=[name_of(path) for path in unstaged],
    )


async def _differing(git: Git, *compared: str) -> list[str]:
    return await git.names("diff", "--name-only", "-z", "--no-renames", "--ignore-submodules=dirty", *compared, "--")


async def _overwritten(git: Git, previous: str, target: str) -> list[str]:
    """Return the files whose content is in no commit and would be lost: changed ones, and untracked ones in the way."""
    losing = set(await _differing(git, target))
    changed = [path for path in await _differing(git, previous) if path in losing]
    coming = await _differing(git, "--diff-filter=A", previous, target)
    tracked = set(await git.names("ls-files", "-z"))
    in_the_way = dict.fromkeys(filter(None, (_in_the_way(git, path) for path in coming if path not in tracked)))
    return [*changed, *(path for path in in_the_way if path not in {*tracked, *changed})]


def _in_the_way(git: Git, path: str) -> str | None:
    """Return what is where *path* is to be: something at it, or a file that one of its folders has to replace."""
    parts = path.split("/")
    above = ["/".join(parts[:count]) for count in range(1, len(parts))]
    file = next((one for one in above if _exists(git, one) and not _is_folder(git, one)), None)
    return file or (path if _exists(git, path) else None)


def _is_folder(git: Git, path: str) -> bool:
    full = git.place.tree / path
    return full.is_dir() and not full.is_symlink()


def _exists(git: Git, path: str) -> bool:
    return os.path.lexists(git.place.tree / path)


async def _check_reset_filters(git: Git, previous: str, target: str) -> None:
    """Refuse to write files that a filter should change, by the attributes of the target and by those of now."""
    written = list(dict.fromkeys([*await _differing(git, previous, target), *await _differing(git, target)]))
    await _check_filters(git, written)
    coming = git.with_environment(GIT_INDEX_FILE=str(git.desk / "coming"))
    await coming.run("read-tree", target)
    await _check_filters(coming, written, "--cached")


async def reset(git: Git, target: str, head: str, mode: Mode) -> Reset:
    """Move the branch that is checked out to another commit."""
    plan = await plan_reset(git, target, head, mode)
    words = ("reset", "--quiet", "--no-recurse-submodules", f"--{mode}", plan.target, "--")
    await (git.run(*words) if mode == "soft" else _write_index(git, *words))
    return Reset(head=plan.target, previous=plan.previous, mode=mode, lost=plan.lost)


async def preview_reset(git: Git, target: str, head: str, mode: Mode) -> Preview:
    """Say which commits and files a reset would lose."""
    plan = await plan_reset(git, target, head, mode)
    lost = plan.lost
    where = f"branch {quoted(plan.branch)}" if plan.branch else "HEAD, which is on no branch,"
    would = f"move {where} of {git.place.name!r} from {plan.previous[:12]} to {plan.target[:12]} ({mode})"
    details = [f"leaves the branch: {one}" for one in lost.commits]
    details += [f"and {lost.commits_total - len(lost.commits)} more commits"] * (lost.commits_total > len(lost.commits))
    if lost.unreachable:
        details.append(f"{_count(lost.unreachable, 'commit')} will be on no branch or tag any more")
    details += [f"content is lost for good: {path}" for path in lost.overwritten[:MOST_LISTED]]
    details += _more(len(lost.overwritten))
    details += [f"no longer staged, content stays: {path}" for path in lost.unstaged[:MOST_LISTED]]
    details += _more(len(lost.unstaged))
    return Preview(would=would, details=details or ["nothing is lost"])


def _count(number: int, word: str) -> str:
    return f"1 {word}" if number == 1 else f"{number} {word}s"
