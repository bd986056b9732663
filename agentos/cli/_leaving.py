"""Packs that would end the program without a word: a command that says nothing and exits 0 looks like success."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

_WAYS = ("_exit", "abort", "execv", "execve")
"""What ends this program at once, or puts another one in its place. What else there is in `os` comes down to these."""


class LeavingError(RuntimeError):
    """A pack tried to end the program that it is a guest in."""

    def __init__(self, way: str) -> None:
        super().__init__(f"called os.{way}, which would end the whole program without a word")


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
        raise LeavingError(way)

    return refuse
