"""No child outlives this process, however it goes: not even by kill -9, and not even a child that ignores its input."""

import contextlib
import subprocess

_SHELL = "/bin/sh"
_WATCH = 'trap "" HUP INT TERM; read -r _; kill -s KILL -- "-$1"'
"""Waits for the end of its input, which comes when the process that holds the other end of the pipe is gone."""


class Guardian:
    """A small process that ends a group of processes when this one is gone.

    The end of a parent closes pipes and, on Linux, may send a signal; neither reaches what a child has started by
    itself, and a child may ignore the former.
    """

    def __init__(self, group: int) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):  # a system without a shell: its children end by their pipes
            self._process = subprocess.Popen(  # noqa: S603 - all of it is ours
                [_SHELL, "-c", _WATCH, "agentos-guardian", str(group)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )

    def dismiss(self) -> None:
        """Let it go without having done anything: the group has ended."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
