"""Messages that a person types and edits while the event loop runs on, and those typed before, to be recalled."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentos.base.atomic_files import replace_file
from agentos.cli.terminal import message_editor
from agentos.cli.terminal.line_input import without_keys

_LARGEST = 1_000_000
"""How many bytes the file of messages may have before old ones are dropped."""
_LEAVE_PASTE_MODE = b"\x1b[?2004l"


class MessageHistory:
    """The messages that were typed, in a file for the user alone. What can't be kept there is not recalled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, message: str) -> None:
        """Keep *message*; as in a shell, one that begins with a space is not kept."""
        if message.startswith(" ") or message == next(reversed([*message_editor.recalled(str(self.path))]), None):
            return
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "ab") as file:
                file.write(f"{json.dumps(message)}\n".encode())
            self._drop_old()

    def _drop_old(self) -> None:
        if self.path.stat().st_size > _LARGEST:
            lines = self.path.read_bytes().splitlines(keepends=True)[-message_editor.KEPT // 2 :]
            while len(lines) > 1 and sum(map(len, lines)) > _LARGEST // 2:
                del lines[0]
            replace_file(self.path, b"".join(lines), private=True)


async def read_message(history: Path) -> str | None:
    """Let a person type a message, with line editing and those in *history* to recall; None at the end of input."""
    if os.name == "nt":  # pragma: no cover - a terminal of another kind, with an editor of its own
        return await asyncio.to_thread(message_editor.read_message)
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as reply, _terminal_kept():
        try:
            child = _start_editor(writer, history)
        finally:
            os.close(writer)
        try:
            told = await _until_closed(reply.fileno())
        finally:
            child.kill()
            child.wait()
    message = json.loads(told) if told else None
    return None if message is None else without_keys(message)


def _start_editor(writer: int, history: Path) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-I", "-S", "-X", "utf8", message_editor.__file__, str(writer), str(history)]
    where: dict[str, Any] = {"stdout": sys.stderr.fileno(), "stderr": subprocess.DEVNULL, "pass_fds": (writer,)}
    return subprocess.Popen(argv, **where)  # noqa: S603 - Python itself and a file of ours


@contextlib.contextmanager
def _terminal_kept() -> Iterator[None]:
    """Give the terminal back as it was, however the editor ends."""
    import termios

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, termios.error):  # it may be gone
            if termios.tcgetattr(terminal) != before:
                termios.tcsetattr(terminal, termios.TCSADRAIN, before)
                os.write(sys.stderr.fileno(), _LEAVE_PASTE_MODE)


async def _until_closed(descriptor: int) -> bytes:
    """Return all that is written to a pipe until its other end is closed."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    taken = bytearray()

    def take() -> None:
        chunk = os.read(descriptor, 65_536)
        taken.extend(chunk)
        if not chunk and not done.done():
            done.set_result(None)

    loop.add_reader(descriptor, take)
    try:
        await done
    finally:
        loop.remove_reader(descriptor)
    return bytes(taken)
