"""Git on one repository.

For each call a folder is made that stands for the repository's shared one: it has links to the objects, references and
the like, and settings of ours instead of the repository's. Git is told to use it (`GIT_COMMON_DIR`). Nothing of the
environment, of the user's or of the system's settings reaches git, and no program, terminal or network is there for it.
"""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary, WeakValueDictionary

import attrs
from agentos_pack_common import PathError, ProcessResult, Root, decode, find_program, plain, run_process

from agentos_pack_git_repo.options import Options
from agentos_pack_git_repo.places import SMALL, GitError, Place, find_place, read_small, with_parts
from agentos_pack_git_repo.settings import settings_of

_SAID: Final = 500
_LISTED: Final = 2_000_000
_INDEX: Final = 500_000_000
_ENVIRONMENT: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "GIT_SSH_COMMAND": "false",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_ADVICE": "0",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
}

_Locks = WeakValueDictionary[Path, asyncio.Lock]
_LOCKS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Locks] = WeakKeyDictionary()
"""Who changes which repository now. A lock is of one event loop; whoever is in another waits as for another process."""


@attrs.frozen
class Git:
    """Git, ready for one repository. `desk` is a folder for what lasts as long as the call."""

    options: Options
    place: Place
    desk: Path
    program: str
    _root: Root = attrs.field(repr=False)
    _hidden: Root = attrs.field(repr=False)
    _more: Mapping[str, str] = attrs.field(factory=dict, repr=False)

    def with_environment(self, **variables: str) -> "Git":
        """Return the same, with further variables."""
        return attrs.evolve(self, more={**self._more, **variables})

    async def run(
        self, *arguments: str, stdin: bytes = b"", output: int = _LISTED, accepted: Collection[int] = (0,)
    ) -> ProcessResult:
        """Run a git command; raise GitError if it ends otherwise than *accepted*. Output that was cut is no error."""
        done = await run_process(
            [self.program, "--no-pager", *arguments],
            cwd=self.place.tree,
            env=self._environment(),
            stdin=stdin,
            limits=self.options.limits(output),
        )
        if done.timed_out:
            raise GitError(f"git {arguments[0]} took longer than {self.options.max_seconds:g} s; ask for less")
        if not done.truncated and done.exit_code not in accepted:
            raise GitError(f"git {arguments[0]} failed: {self.said(done)}")
        return done

    async def line(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run a git command that answers in one line, and return it."""
        return (await self.run(*arguments, stdin=stdin)).stdout.decode("utf-8", "replace").strip()

    async def names(self, *arguments: str, stdin: bytes = b"") -> list[str]:
        """Run a git command that answers in names that end in NUL; raise GitError if there are too many."""
        done = await self.run(*arguments, stdin=stdin)
        if done.truncated:
            raise GitError(f"git {arguments[0]} has more to say than can be looked at; do this by hand")
        return done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]

    def said(self, done: ProcessResult) -> str:
        """Return what git said of its failure, without the places of this machine."""
        if done.signal:
            return f"it was ended by {done.signal}"
        lines = plain(decode(done.stderr)).splitlines()
        text = "\n".join(line for line in lines if not line.startswith("hint:"))
        for folder in (self.desk, self.place.tree, self._root.folder):
            text = text.replace(f"{folder}/", "").replace(str(folder), ".")
        return " ".join(text.split())[:_SAID] or f"it ended with {done.exit_code}"

    def withholds(self, path: str) -> bool:
        """Tell whether a file usually holds secrets, by its name."""
        try:
            self._hidden.resolve(path)
        except PathError:
            return True
        return False

    def _environment(self) -> dict[str, str]:
        return {
            **_ENVIRONMENT,
            "HOME": str(self.desk / "home"),
            "XDG_CONFIG_HOME": str(self.desk / "home"),
            "GIT_DIR": str(self.place.own),
            "GIT_COMMON_DIR": str(self.desk / "shared"),
            "GIT_WORK_TREE": str(self.place.tree),
            **self._more,
        }


async def beside(git: Git, **variables: str) -> Git:
    """Return git with a copy of the index: git itself writes the index even where it only looks."""
    await asyncio.to_thread(_copy_index, git)
    return git.with_environment(GIT_INDEX_FILE=str(git.desk / "index"), **variables)


def _copy_index(git: Git) -> None:
    index, copy = (git.place.own / "index").resolve(), git.desk / "index"
    if index.exists():
        copy.write_bytes(read_small(index, _INDEX))
        # Git tells by this time which files may have changed without being noticed.
        os.utime(copy, ns=(0, index.stat().st_mtime_ns))


@asynccontextmanager
async def opened(options: Options, root: Root, repo: str, *, alone: bool = False) -> AsyncIterator[Git]:
    """Find a repository and make git ready for it; *alone*, after every other call that changes the same one."""
    program = find_program("git")
    if program is None:
        raise GitError("git is not installed here")
    found = await asyncio.to_thread(find_place, root, repo)
    async with _lock_of(found.shared) if alone else contextlib.nullcontext():
        # Only now: a call that was waited for may have made parts that were not there before.
        place = await asyncio.to_thread(with_parts, root, found)
        async with _ready(options, root, place, program) as git:
            yield git


def _lock_of(shared: Path) -> asyncio.Lock:
    locks = _LOCKS.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
    return locks.setdefault(shared, asyncio.Lock())


@asynccontextmanager
async def _ready(options: Options, root: Root, place: Place, program: str) -> AsyncIterator[Git]:
    with tempfile.TemporaryDirectory(prefix="agentos-git-", ignore_cleanup_errors=True) as folder:
        desk = Path(folder)
        (desk / "home").mkdir()
        hidden = options.withheld(desk / "home")
        git = Git(options, place, desk, program, root, hidden)
        await _prepare(git)
        yield git


async def _prepare(git: Git) -> None:
    """Make the folder that stands for the shared one."""
    shared = git.desk / "shared"
    shared.mkdir()
    for name, real in git.place.parts.items():
        if name != "config":
            (shared / name).symlink_to(real)
    (shared / "config").write_text(settings_of(await _own_settings(git)), "utf-8", "replace")


async def _own_settings(git: Git) -> bytes:
    """Return the repository's own settings, one by one, as git understands them; nothing that they include is read."""
    if "config" not in git.place.parts:
        return b""
    text = read_small(git.place.parts["config"], SMALL)
    elsewhere = {"GIT_DIR": str(git.desk / "none"), "GIT_COMMON_DIR": str(git.desk / "none")}
    asking = attrs.evolve(git.with_environment(**elsewhere), place=attrs.evolve(git.place, tree=git.desk))
    try:
        done = await asking.run("config", "--file", "-", "--no-includes", "--null", "--list", stdin=text)
    except GitError as error:
        raise GitError(f"repo: its config can't be read: {error}") from None
    if done.truncated:
        raise GitError("repo: its config is too large")
    return done.stdout
