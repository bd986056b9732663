"""The process that loads packs for this one: it tells how far it is line by line, and nothing of it is left behind.

`Child` is this side of it, `answer` the other. What the child prints is read to the end, and only its last words are
kept. Neither what it prints nor what it leaves running can hold up or mislead whoever listens.
"""

import contextlib
import io
import json
import os
import queue
import secrets
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import IO, Any, Self

from agentos.cli.terminal.harmless_text import one_line

_GOODBYE = 5.0
"""For how many seconds a process may take to end after its last message, and what it printed to arrive."""
_CHUNK = 65_536
_TAIL = 2_000
_SHOWN = 300

Message = Mapping[str, Any]


class ProbeProcess:
    """The process, in a session of its own: it sees no Ctrl-C and no terminal."""

    def __init__(self, request: Message) -> None:
        self._sign = secrets.token_hex(8)
        self._request = json.dumps({**request, "sign": self._sign}).encode() + b"\n"
        self._messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._tail = b""

    def __enter__(self) -> Self:
        # Without buffers, so that what it printed is here even if it crashed.
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-m", "agentos.cli.probe.child_main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._listeners = [_start_thread(self._read_messages), _start_thread(self._read_output)]
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        with contextlib.suppress(OSError):
            self._stream("stdin").close()

    def _end(self) -> None:
        """End the process and what it started, and hear all that was said; what escaped may hold the pipes for long."""
        with contextlib.suppress(OSError):
            if os.name == "posix":
                os.killpg(self._process.pid, signal.SIGKILL)
            else:  # pragma: no cover - sessions are a thing of POSIX
                self._process.kill()
        self._process.wait()
        end = time.monotonic() + _GOODBYE
        for listener in self._listeners:
            listener.join(max(0.0, end - time.monotonic()))

    # -- listening -------------------------------------------------------------------------------------------------

    def next_message(self, patience: float) -> Message | None:
        """Return what the child tells next: empty if it told its last, None if it tells nothing for so many seconds."""
        end = time.monotonic() + patience
        while True:
            try:
                line = self._messages.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                return None
            if not line:
                return {}
            if (message := self._parse_line(line)) is not None:
                return message

    def _parse_line(self, line: bytes) -> Message | None:
        """Read a line; None if it is not one of ours: foreign code may write wherever it likes."""
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            return None
        return said if isinstance(said, dict) and said.pop("sign", None) == self._sign else None

    def last_words(self) -> str:
        """End the process, and return the last line that it printed since the last mark; empty if there is none."""
        self._end()
        said = self._tail.rpartition(_marker(self._sign))[2].decode("utf-8", "replace")
        lines = [line for line in said.splitlines() if line.strip()]
        return one_line(lines[-1])[:_SHOWN] if lines else ""

    def wait(self, seconds: float = _GOODBYE) -> int | None:
        """Return the exit code; None if the process does not end by itself within so many seconds."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def _stream(self, name: str) -> IO[bytes]:
        stream: IO[bytes] = getattr(self._process, name)
        return stream

    def _read_messages(self) -> None:
        """Hand over the request, then read until the child is gone; an empty line is the end."""
        with contextlib.suppress(OSError, ValueError):
            self._stream("stdin").write(self._request)
            with self._stream("stdout") as raw, io.BufferedReader(raw) as lines:  # type: ignore[type-var]
                for line in lines:
                    self._messages.put(line)
        self._messages.put(b"")

    def _read_output(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._stream("stderr") as stream:
            while chunk := stream.read(_CHUNK):
                self._tail = (self._tail + chunk)[-_TAIL:]


def _start_thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def describe_end(child: ProbeProcess, message: Message | None) -> tuple[str, str]:
    """Say how a child ended that had more to tell: in a word, and in a sentence. None says that it told nothing."""
    code = child.wait(_GOODBYE if message is not None else 0)
    if code is None:
        return "hung", "did not come to an end in time" if message is None else "closed its output and went on"
    if code >= 0:
        return "exited", f"ended the process with exit code {code}"
    with contextlib.suppress(ValueError):
        return "crashed", f"was ended by {signal.Signals(-code).name}"
    return "crashed", f"was ended by signal {-code}"


# -- within the child --------------------------------------------------------------------------------------------------


class MessageWriter:
    """What a child tells. Where foreign code forked, only the first process tells, and the other one ends."""

    def __init__(self, descriptor: int, sign: str) -> None:
        self._descriptor = descriptor
        self._sign = sign
        self._process = os.getpid()

    def tell(self, event: str, **fields: Any) -> None:
        """Tell of an event."""
        if os.getpid() != self._process:
            os._exit(0)
        line = json.dumps({"sign": self._sign, "event": event, **fields}, default=str).encode() + b"\n"
        while line:
            line = line[os.write(self._descriptor, line) :]

    def mark(self) -> None:
        """Let what is printed from now on be told from what was printed before."""
        with contextlib.suppress(OSError):
            os.write(2, _marker(self._sign))


def _marker(sign: str) -> bytes:
    return f"\n{sign}\n".encode()


def serve_request(work: Callable[[Message, MessageWriter], None]) -> None:
    """Do what the request on stdin asks for, and end. What foreign code prints goes to stderr; it reads nothing."""
    request = json.loads(sys.stdin.buffer.readline())
    teller, lifeline = MessageWriter(os.dup(1), request["sign"]), os.dup(0)
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()
    try:
        work(request, teller)
    except SystemExit as error:
        teller.tell("exited", code=repr(error.code))
    except BaseException:  # noqa: BLE001 - foreign code may raise anything, and then threads of it must not keep us
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # as above


def _end_with_parent(lifeline: int) -> None:
    """End this process when the one that asked is gone: what hangs would outlive it."""
    while os.read(lifeline, 1024):
        pass
    os._exit(1)
