"""Packs that would end the program without a word: a command that says nothing and exits 0 looks like success."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import attrs

from agentos.cli.terminal.signals import may_be_ctrl_c
from agentos.loading.finder import Finder, FoundPack

if TYPE_CHECKING:
    from agentos.extensions.manager import ExtensionManager
    from agentos.model.manifest import PackEntry
    from agentos.model.pack import ExtensionPack
    from agentos.model.pack_context import PackContext

_WAYS = ("_exit", "abort", "execv", "execve")
"""What ends this program at once, or puts another one in its place. What else there is in `os` comes down to these."""


class LeavingError(RuntimeError):
    """A pack tried to end the program that it is a guest in."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}, which would end the whole program without a word")


@contextlib.contextmanager
def nobody_leaves() -> Iterator[None]:
    """Let what would end this process raise for the block, so that whoever runs the pack can name it.

    Processes that were forked may end as they like. A signal, and what C code does, are out of reach here.
    """
    home = os.getpid()
    # `os` has them from a module of its own name, which packs can import as well.
    modules = [os, sys.modules[os.name]]
    before = [(module, way, getattr(module, way)) for module in modules for way in _WAYS if hasattr(module, way)]
    for module, way, real in before:
        setattr(module, way, _refusal(way, real, home))
    try:
        yield
    finally:
        for module, way, real in before:
            setattr(module, way, real)


def _refusal(way: str, real: Callable[..., Any], home: int) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if os.getpid() != home:
            return real(*args, **kwargs)
        raise LeavingError(f"called os.{way}")

    return refuse


# -- what is raised ----------------------------------------------------------------------------------------------------


def keep_packs_in(manager: "ExtensionManager") -> None:
    """Let what packs raise to end the program while they are imported and made fail the pack alone."""
    manager._builder._finder = _Finder()  # noqa: SLF001 - of the same house


class _Finder(Finder):
    """Imports packs, which may not end the program by what they raise."""

    def find(self, entry: "PackEntry", *, fresh: bool = False) -> FoundPack:
        with contained():
            return _Kept(**attrs.asdict(super().find(entry, fresh=fresh), recurse=False))


class _Kept(FoundPack):
    """Makes a pack, as its factory may not end the program either."""

    async def make(self, key: str, context: "PackContext") -> "ExtensionPack":
        with contained():
            return await super().make(key, context)


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """Let what foreign code raises in the block to end the program become a LeavingError.

    What comes from outside goes on: Ctrl-C, and the end of a coroutine that its task does not run any more.
    """
    task = _running_task()
    try:
        yield
    except (Exception, SystemExit, asyncio.CancelledError):  # those who load packs expect these
        raise
    except BaseException as error:
        if (isinstance(error, KeyboardInterrupt) and may_be_ctrl_c()) or _running_task() is not task:
            raise
        said = ": ".join(filter(None, [type(error).__name__, str(error)]))
        raise LeavingError(f"raised {said}") from error


def _running_task() -> "asyncio.Task[Any] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs
        return None
