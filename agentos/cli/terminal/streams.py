"""The process's own streams, where they are missing or take nothing. It costs no import."""

import os
import sys


def have_streams() -> None:
    """Give a process that was started without its streams a stdin that is at its end, and others that take all."""
    if sys.stdin is None:
        nothing = os.open(os.devnull, os.O_RDONLY)
        sys.stdin = os.fdopen(nothing, encoding="utf-8", closefd=False)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, os.fdopen(nothing, "w", encoding="utf-8", closefd=False))


def silence(descriptor: int) -> None:
    """Let nothing more be written where nothing can be: not what is left in a buffer at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
