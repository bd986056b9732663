"""Packs that would end the program without a word: a command that says nothing and exits 0 looks like success."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from agentos.base.foreign import running_task
from agentos.cli.terminal.signals import may_be_ctrl_c

_EXITS = ("_exit", "abort", "execv", "execve")
"""What ends this program at once, or puts another one in its place. What else there is in `os` comes down to these."""


class ProgramEndError(RuntimeError):
    """A pack tried to end the program that it is a guest in."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}, which would end the whole program without a word")


@contextlib.contextmanager
def refuse_exit_calls() -> Iterator[None]:
    """Let what would end this process raise for the block, so that whoever runs the pack can name it.

    Processes that were forked may end as they like. A signal, and what C code does, are out of reach here.
    """
    home = os.getpid()
    # `os` has them from a module of its own name, which packs can import as well.
    modules = [os, sys.modules[os.name]]
    before = [(module, way, getattr(module, way)) for module in modules for way in _EXITS if hasattr(module, way)]
    for module, way, real in before:
        setattr(module, way, _refusing(way, real, home))
    try:
        yield
    finally:
        for module, way, real in before:
            setattr(module, way, real)


def _refusing(way: str, real: Callable[..., Any], home: int) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if os.getpid() != home:
            return real(*args, **kwargs)
        raise ProgramEndError(f"called os.{way}")

    return refuse


# -- what is raised ----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def refuse_raised_exits() -> Iterator[None]:
    """Let what foreign code raises in the block to end the program become a ProgramEndError.

    What comes from outside goes on: Ctrl-C, and the end of a coroutine that its task does not run any more.
    """
    task = running_task()
    try:
        yield
    except (Exception, SystemExit, asyncio.CancelledError):  # those who load packs expect these
        raise
    except BaseException as error:
        if (isinstance(error, KeyboardInterrupt) and may_be_ctrl_c()) or running_task() is not task:
            raise
        said = ": ".join(filter(None, [type(error).__name__, str(error)]))
        raise ProgramEndError(f"raised {said}") from error
