"""The door of the command `agentos`.

Nothing is imported here before a command is known: `agentos --help` costs little more than Python itself.
"""

import os
import sys

from agentos._version import __version__
from agentos.cli.command_list import COMMANDS, help_text, terminal_width
from agentos.cli.terminal.streams import have_streams, silence

__all__ = ["COMMANDS", "main"]

_PATIENCE = 2.0
"""For how many seconds threads that packs left may go on when all else is done."""


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    try:
        return _main(argv)
    except KeyboardInterrupt:  # while something was still being imported, or while it was told that Ctrl-C was heard
        return _interrupted()


def _main(argv: list[str] | None) -> int:
    arguments = sys.argv[1:] if argv is None else list(argv)
    have_streams()
    if "_AGENTOS_COMPLETE" not in os.environ:
        if not arguments or arguments in (["--help"], ["-h"], ["help"]):
            return _say(help_text(terminal_width()))
        if arguments == ["--version"]:
            return _say(f"agentos {__version__}\n")
    try:
        import click  # noqa: F401 - is it there?
    except ModuleNotFoundError:
        sys.stderr.write("The command agentos needs its extra: pip install 'agentos-host[cli]'\n")
        return 3
    from agentos.cli.app import run

    code = run(arguments)
    if argv is None:
        _end_in_time(code)
    return code


def _interrupted() -> int:
    """Say so with what is there already: whatever is imported now may be interrupted as well."""
    try:
        os.write(2, b"interrupted\n")
    except OSError:
        silence(2)
    return 130


def _end_in_time(code: int) -> None:
    """See that this process ends though packs left threads running, which Python would wait for."""
    import threading
    import time

    def end() -> None:
        time.sleep(_PATIENCE)
        sys.stderr.write("agentos: a pack left threads running that did not come to an end\n")
        sys.stderr.flush()
        os._exit(code)

    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        sys.stdout.flush()
        threading.Thread(target=end, daemon=True).start()


def _say(text: str) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        silence(1)
        if isinstance(error, BrokenPipeError):  # whoever read it has read enough
            return 0
        from agentos.base.full_disks import reason

        sys.stderr.write(f"error: {reason(error)}\n")
        return 1
    return 0
