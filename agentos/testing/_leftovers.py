"""What a process holds: tasks, threads, descriptors, child processes, files, settings. And what of it is left over."""

import asyncio
import gc
import itertools
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from agentos.testing._sandbox import Sandbox, settings_of_process, work_in_pool
from agentos.testing._watchdog import tasks_ignoring_cancel, wait_until_idle

_POOL_THREADS = ("asyncio_", "AnyIO worker thread", "agentos-tool-")
"""Threads that an event loop or a host keeps for later, whoever used them first: what runs in them is counted."""


@attrs.frozen
class ActivitySnapshot:
    """What was running at one moment: tasks, threads, work in the event loop's own threads, child processes."""

    tasks: frozenset[Any]
    threads: frozenset[threading.Thread]
    work: Mapping[Any, str]
    """What was handed to the event loop's pool, with the names of the functions."""
    children: frozenset[int]

    @classmethod
    def now(cls) -> "ActivitySnapshot":
        """Take stock."""
        threads = [thread for thread in threading.enumerate() if not thread.name.startswith(_POOL_THREADS)]
        return cls(frozenset(asyncio.all_tasks()), frozenset(threads), work_in_pool(), frozenset(_children()))

    async def left_over(self, grace: float) -> list[tuple[str, str]]:
        """Return what came since and still runs, in words, with its cure; what is ending has *grace* seconds."""
        await wait_until_idle(lambda: list(self._differences(ActivitySnapshot.now())), grace)
        return list(self._differences(ActivitySnapshot.now()))

    def tasks_ignoring_cancel(self) -> list[Any]:
        """Return the tasks that came since, were cancelled, and go on."""
        return tasks_ignoring_cancel(self.tasks)

    def _differences(self, after: "ActivitySnapshot") -> Iterator[tuple[str, str]]:
        for task in after.tasks - self.tasks:
            yield f"the task {_named(task)} still runs", "cancel it in on_deactivate, and await it there"
        for thread in after.threads - self.threads:
            yield f"the thread {thread.name!r} still runs", "end it in on_deactivate, and join it there"
        for name in sorted(after.work[one] for one in after.work.keys() - self.work.keys()):
            message = f"{name} still runs in a thread of the event loop"
            yield message, "no cancellation ends what runs in a thread: bound it, and wait for its end"
        for pid in sorted(after.children - self.children):
            yield f"the child process {pid} still runs", "end it in on_deactivate, and wait for it there"


@attrs.frozen
class ResourceSnapshot:
    """What was held at one moment: what was running, descriptors, files, settings of the process."""

    sandbox: Sandbox
    running: ActivitySnapshot
    descriptors: frozenset[tuple[int, str]]
    files: frozenset[str]
    settings: Mapping[str, Any]
    strays: frozenset[int]

    @classmethod
    def now(cls, sandbox: Sandbox) -> "ResourceSnapshot":
        """Take stock."""
        gc.collect()
        files, settings = frozenset(_files(sandbox.folder)), settings_of_process()
        strays = frozenset(_strays(sandbox.folder))
        return cls(sandbox, ActivitySnapshot.now(), frozenset(_descriptors()), files, settings, strays)

    async def left_over(self, grace: float) -> list[tuple[str, str]]:
        """Return what came since and is still there, in words, with its cure; what is ending has *grace* seconds."""
        after, left = await self._settle(grace)
        return [*left, *_changes(self.settings, after.settings), *_complaints(self.sandbox)]

    async def left_over_resources(self, grace: float) -> list[tuple[str, str]]:
        """Return the same without settings and complaints: what a library does when it is imported is not counted."""
        return (await self._settle(grace))[1]

    async def _settle(self, grace: float) -> tuple["ResourceSnapshot", list[tuple[str, str]]]:
        """Return what is held when what is ending has ended, and what of it came since."""
        left = await self.running.left_over(grace)
        await wait_until_idle(lambda: list(self._new_in(ResourceSnapshot.now(self.sandbox))), 0 if left else grace)
        after = ResourceSnapshot.now(self.sandbox)
        return after, [*left, *self._new_in(after)]

    def _new_in(self, after: "ResourceSnapshot") -> Iterator[tuple[str, str]]:
        for pid in sorted(after.strays - self.strays - after.running.children):
            yield f"the process {pid} that it sent into the background still runs", "end it in on_deactivate"
        for _, target in sorted(after.descriptors - self.descriptors):
            yield f"{target} is still open", "close it in on_deactivate, or as soon as the call is done with it"
        for name in sorted(after.files - self.files):
            yield f"the file {name} was left behind", "remove it in on_deactivate, or when the call is done with it"


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in {**before, **after}:
        if (before.get(name) or None) != (after.get(name) or None):
            yield f"{name} was changed", "leave what the whole process shares as it is, or put it back in on_deactivate"


def _complaints(sandbox: Sandbox) -> Iterator[tuple[str, str]]:
    """Yield what Python itself says about things that were lost rather than closed."""
    for warning in sandbox.warned:
        if issubclass(warning.category, ResourceWarning) or "was never awaited" in str(warning.message):
            yield f"Python warns: {_shortened(warning.message)}", "close, or await, what was made"
    for complaint in sandbox.loop_complaints:
        yield f"asyncio says: {_shortened(complaint)}", "await every task, or look at its exception"


def _shortened(text: object) -> str:
    return " ".join(str(text).split())[:200]


def _named(task: Any) -> str:
    coroutine = task.get_coro()
    return f"{task.get_name()!r} ({getattr(coroutine, '__qualname__', type(coroutine).__name__)})"


def _descriptors() -> Iterator[tuple[int, str]]:
    """Yield the open descriptors of this process and what they lead to; nothing where the system does not tell."""
    folder = Path("/proc/self/fd") if sys.platform == "linux" else Path("/dev/fd")
    try:
        names = os.listdir(folder)  # noqa: PTH208 - the listing's own descriptor must be closed when it is read
    except OSError:
        return
    for name in names:
        try:
            yield int(name), os.readlink(folder / name)  # noqa: PTH115 - a pipe has no path
        except OSError:  # that of the listing itself, or closed meanwhile
            continue


def _children() -> list[int]:
    """Return the processes that this one started and has not waited for; nothing where the system does not tell."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (ChildProcessError, AttributeError):  # there is none, or no way to ask
        return []
    return [pid for pid in _processes() if _parent_of(pid) == os.getpid()]


def _processes() -> list[int]:
    return [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()] if Path("/proc").is_dir() else []


def _parent_of(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:  # it has just ended
        return None
    return int(stat.rpartition(")")[2].split()[1])


def _strays(folder: Path) -> list[int]:
    """Return the processes that were started in a sandbox, also by others that have ended, as far as they tell."""
    mark = f"TMPDIR={folder / 'tmp'}".encode()
    return [pid for pid in _processes() if pid != os.getpid() and mark in _environment_of(pid)]


def _environment_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # somebody else's, or it has just ended
        return []


def _files(folder: Path) -> Iterator[str]:
    """Yield what is in a sandbox, but for the folder that options name: what is there is meant to stay."""
    for top, folders, files in itertools.chain(os.walk(folder / "cwd"), os.walk(folder / "tmp")):
        for name in (*folders, *files):
            yield str((Path(top) / name).relative_to(folder))
