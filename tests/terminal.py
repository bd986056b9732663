"""Running the command as people do, in a terminal, and as programs do, through pipes; and packs to run it with."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence

AGENTOS = [sys.executable, "-W", "error", "-m", "agentos.cli"]
PATIENCE = 60.0
"""After how many seconds a command counts as stuck."""
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "COVERAGE_PROCESS_START", "PYTHONPATH")


class Told(str):  # noqa: SLOT000 - it carries its exit code
    """What a command wrote to its terminal; `code` is its exit code."""

    code: int


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment with nothing in it that belongs to whoever runs the tests."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PYTHONUTF8": "1", "TERM": "xterm", **(extra or {})}


def run_piped(
    *arguments: str,
    cwd: object = None,
    env: Mapping[str, str] | None = None,
    input: str = "",
    argv: Sequence[str] = AGENTOS,
) -> subprocess.CompletedProcess[str]:
    """Run the command with pipes for stdin, stdout and stderr."""
    return subprocess.run(
        [*argv, *arguments],
        cwd=cwd,
        env=environment(env),
        input=input,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def run_in_terminal(
    argv: Sequence[str],
    *,
    width: int = 80,
    inputs: Sequence[tuple[str, str | Callable[[], str]]] = (),
    cwd: object = None,
    env: Mapping[str, str] | None = None,
) -> Told:
    """Run *argv* in a pseudo-terminal of *width* columns and return all it wrote there.

    *inputs* are pairs: when the first text was written, the second is typed, or what a function returns. `"\\x03"` is
    Ctrl-C.
    """
    with _started(argv, width, cwd, env) as (pid, fd):
        text = _conversation(fd, list(inputs))
        _, status = os.waitpid(pid, 0)
    told = Told(text.replace("\r\n", "\n"))
    told.code = os.waitstatus_to_exitcode(status)
    return told


def take_terminal():
    """Make the terminal that is this process's input the one whose Ctrl-C it gets. For `preexec_fn`."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextlib.contextmanager
def _started(argv, width, cwd, env):
    main, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    child = subprocess.Popen(
        list(argv),
        stdin=secondary,
        stdout=secondary,
        stderr=secondary,
        cwd=cwd,
        env=environment(env),
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    os.close(secondary)
    try:
        yield child.pid, main
        child.returncode = 0  # waited for by whoever asked
    finally:
        if child.returncode is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        os.close(main)


def _conversation(fd: int, inputs: list[tuple[str, str | Callable[[], str]]]) -> str:
    """Read until the other end is closed, typing each text when what it waits for was written."""
    raw, seen, end = b"", 0, time.monotonic() + PATIENCE
    while True:
        ready, _, _ = select.select([fd], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise TimeoutError(f"the command is stuck after:\n{raw.decode('utf-8', 'replace')}")
        try:
            chunk = os.read(fd, 65_536)
        except OSError:  # the last process has left the terminal
            chunk = b""
        if not chunk:
            break
        raw += chunk
        while inputs and (at := raw.find(inputs[0][0].encode(), seen)) >= 0:
            seen = at + len(inputs[0][0].encode())
            typed = inputs.pop(0)[1]
            os.write(fd, (typed() if callable(typed) else typed).encode())
    if inputs:
        raise AssertionError(f"never written: {inputs[0][0]!r}\n{raw.decode('utf-8', 'replace')}")
    return raw.decode("utf-8", "replace")


# -- packs to run it with ----------------------------------------------------------------------------------------------

GREET = '''
from typing import Annotated

from agentos import PUBLIC, ExtensionPack, tool


@tool(effect="read", required_access=PUBLIC)
async def greet(name: Annotated[str, "Whom to greet"]) -> str:
    """Greet a person by name.

    Use it to welcome somebody.
    """
    return f"Hello, {name}!"


pack = ExtensionPack("hello", "1.0", [greet])
'''
GIFS = '''
from typing import Annotated

from agentos import PUBLIC, Descriptor, ExtensionPack, tool


@tool(effect="read", required_access=PUBLIC)
async def gif_search(query: Annotated[str, "What to search for, such as cats"]) -> str:
    """Search for moving pictures.

    Use it to amuse.
    """
    return query


pack = ExtensionPack("gifs", "0.2", [Descriptor("tool", "gif_search", gif_search, required_secrets=["giphy.apiKey"])])
'''
BAD = {
    "exits": "import sys\nsys.exit(3)\n",
    "leaves": "import os\nos._exit(7)\n",
    "raises": "raise RuntimeError('boom')\n",
    "hangs": "while True:\n    pass\n",
    "crashes": "import os, signal\nprint('about to crash', flush=True)\nos.kill(os.getpid(), signal.SIGSEGV)\n",
    "chatters": "print('{\"noise\": true}')\n" + GREET.replace('"hello"', '"chatters"').replace("greet", "chat"),
}
"""Packs that do what no pack should, by name."""
