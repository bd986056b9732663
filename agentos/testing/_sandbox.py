"""The sandbox that checks run in: its own folder, no network, no secrets of the machine, everything recorded."""

import asyncio
import contextlib
import functools
import gc
import io
import logging
import os
import re
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from pathlib import Path
from typing import Any
from unittest import mock

import attrs

from agentos.secrets.catalog import SecretCatalog
from agentos.testing._thread_pool import CountingPool, counting_pool
from agentos.testing.network import Attempt, offline

_current: ContextVar["Sandbox"] = ContextVar("agentos_sandbox")
FOLDER_PLACEHOLDER = "{tmp}"
_PLACE = re.compile(r"\{([^\W\d]\w*)\}")


def fill_placeholders(value: Any) -> Any:
    """Return a value with what the sandbox that was entered knows in the place of every `{tmp}` and `{name}`.

    A text that is nothing but a name becomes the value as it is, a number for instance. Other braces stay.
    """
    sandbox = _current.get(None)
    if isinstance(value, str):
        return value if sandbox is None or "{" not in value else _fill(value, sandbox.names)
    if isinstance(value, Mapping):
        return {key: fill_placeholders(inner) for key, inner in value.items()}
    return [fill_placeholders(inner) for inner in value] if isinstance(value, list | tuple) else value


def _fill(text: str, names: Mapping[str, Any]) -> Any:
    whole = _PLACE.fullmatch(text)
    if whole is not None:
        return names.get(whole[1], text)
    return _PLACE.sub(lambda found: str(names.get(found[1], found[0])), text)


@attrs.define
class Sandbox:
    """What is known of the time since the sandbox was entered."""

    folder: Path
    attempts: list[Attempt]
    records: list[logging.LogRecord]
    warned: list[warnings.WarningMessage]
    printed: io.StringIO
    error_output: io.StringIO
    loop_complaints: list[str]
    """What the event loop reports of exceptions and tasks that nobody awaited."""
    written: Callable[[], str] = attrs.field(repr=False)
    """Read what was written to the descriptor of standard output itself."""
    pool: CountingPool = attrs.field(repr=False)
    """The event loop's default pool of threads."""
    skipped: int = 0
    names: dict[str, Any] = attrs.field(factory=dict)
    """What stands for `{name}` in options, samples and secrets."""

    def __attrs_post_init__(self) -> None:
        self.names.setdefault("tmp", str(self.data))

    def forget_notes(self) -> None:
        """Forget what was noted until now."""
        for noted in (self.attempts, self.records, self.warned, self.loop_complaints):
            del noted[:]
        for stream in (self.printed, self.error_output):
            stream.seek(0)
            stream.truncate()
        self.skipped = len(self.written())

    @property
    def output(self) -> str:
        """Return what went to standard output, by whatever way."""
        return self.printed.getvalue() + self.written()[self.skipped :]

    @property
    def data(self) -> Path:
        """Return the folder that `{tmp}` in options stands for."""
        return self.folder / "data"

    @property
    def workplace(self) -> Path:
        """Return the working folder."""
        return self.folder / "cwd"

    def lines(self) -> Iterator[str]:
        """Yield what was logged, as text."""
        for record in self.records:
            yield f"{record.name}: {_message(record)}"

    def warnings(self) -> list[str]:
        """Return what was warned of, as text."""
        return [f"{one.category.__name__}: {one.message}" for one in self.warned]


def _message(record: logging.LogRecord) -> str:
    try:
        text = record.getMessage()
    except Exception:  # noqa: BLE001 - a record of foreign code: its arguments need not fit
        text = f"{record.msg!r} {record.args!r}"
    return f"{text} {record.exc_info[1]!r}" if record.exc_info and record.exc_info[1] else text


class _LogCollector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def enter_sandbox(variables: Iterable[str] = ()) -> Iterator[Sandbox]:
    """Enter the sandbox, and leave the process as it was. *variables* hold secrets besides those of the catalog."""
    notes, printed, error_output = _LogCollector(), io.StringIO(), io.StringIO()
    with contextlib.ExitStack() as undo:
        _open_sandboxes.append(undo)
        undo.callback(_open_sandboxes.remove, undo)
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="agentos-", ignore_cleanup_errors=True)))
        for name in ("tmp", "cwd", "data"):
            (folder / name).mkdir()
        undo.enter_context(_process_settings_restored())
        undo.enter_context(mock.patch.dict(os.environ, {"TMPDIR": str(folder / "tmp")}))
        for name in (*_secret_variables(), *variables):
            os.environ.pop(name, None)
        undo.enter_context(mock.patch.object(tempfile, "tempdir", str(folder / "tmp")))
        # Absolute, so that what is imported from the working folder is found from another one too.
        undo.enter_context(mock.patch.object(sys, "path", [str(Path(one).absolute()) for one in sys.path]))
        undo.enter_context(contextlib.chdir(folder / "cwd"))
        undo.enter_context(_logged_to(notes))
        written = undo.enter_context(_descriptor_redirected(_STANDARD_OUTPUT, folder))
        undo.enter_context(contextlib.redirect_stdout(printed))
        undo.enter_context(contextlib.redirect_stderr(error_output))
        warned = undo.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        undo.enter_context(_old_objects.frozen())
        loop_complaints = undo.enter_context(_loop_complaints())
        pool = undo.enter_context(counting_pool())
        attempts = undo.enter_context(offline(files=True))
        sandbox = Sandbox(
            folder, attempts, notes.records, warned, printed, error_output, loop_complaints, written, pool
        )
        undo.callback(_reset_current, _current.set(sandbox))
        yield sandbox


def work_in_pool() -> dict[Any, str]:
    """Return what waits or runs in the event loop's pool of the sandbox that was entered, each with its name."""
    sandbox = _current.get(None)
    return {} if sandbox is None else sandbox.pool.unfinished


_open_sandboxes: list[contextlib.ExitStack] = []
"""How to leave the sandboxes that were entered and not left, the innermost last."""


@contextmanager
def leaving_sandboxes() -> Iterator[None]:
    """Leave at the end of the block every sandbox that was entered in it, also where the loop that did so is gone."""
    depth = len(_open_sandboxes)
    try:
        yield
    finally:
        while len(_open_sandboxes) > depth:
            _open_sandboxes[-1].close()


def _reset_current(token: Token["Sandbox"]) -> None:
    with contextlib.suppress(ValueError):  # it was entered in a task that is gone, and whose context is gone with it
        _current.reset(token)


_STANDARD_OUTPUT = 1


@contextmanager
def _descriptor_redirected(number: int, folder: Path) -> Iterator[Callable[[], str]]:
    """Lead what is written to a descriptor into a file, also by child processes; give a function that reads it."""
    _flush()
    try:
        kept = os.dup(number)
    except OSError:  # it is closed
        yield str
        return
    with tempfile.TemporaryFile("a+b", dir=folder) as file:  # what is appended goes to the end, wherever one reads

        def read() -> str:
            _flush()
            os.lseek(file.fileno(), 0, os.SEEK_SET)
            return os.read(file.fileno(), _MOST_READ).decode("utf-8", "replace")

        os.dup2(file.fileno(), number)
        try:
            yield read
        finally:
            _flush()
            os.dup2(kept, number)
            os.close(kept)


_MOST_READ = 1_000_000


def _flush() -> None:
    """Have the interpreter's own stream, which leads to the descriptor, write what it holds."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # there is none, or it is closed
        sys.__stdout__.flush()  # type: ignore[union-attr]


@contextmanager
def _loop_complaints() -> Iterator[list[str]]:
    """Note what the running event loop complains about."""
    complaints: list[str] = []
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()

    def note(_: Any, context: Mapping[str, Any]) -> None:
        complaints.append(f"{context.get('message')} {context.get('exception')!r}")

    loop.set_exception_handler(note)
    try:
        yield complaints
    finally:
        loop.set_exception_handler(before)


@contextmanager
def _process_settings_restored() -> Iterator[None]:
    """Put back at the end what a pack may have changed for the whole process."""
    handlers = {one: signal.getsignal(one) for one in signal.valid_signals()}
    hooks = sys.excepthook, sys.unraisablehook, threading.excepthook
    limit, seconds, mask = sys.getrecursionlimit(), socket.getdefaulttimeout(), _umask()
    try:
        yield
    finally:
        os.umask(mask)
        sys.excepthook, sys.unraisablehook, threading.excepthook = hooks
        sys.setrecursionlimit(limit)
        socket.setdefaulttimeout(seconds)
        for one, handler in handlers.items():
            if handler is not None and signal.getsignal(one) is not handler:
                signal.signal(one, handler)


@functools.cache
def _secret_variables() -> list[str]:
    """Return the environment variables that hold secrets."""
    return [name for definition in SecretCatalog.shipped() for name in definition.variables]


class _Freezer:
    """Keeps what is old out of garbage collections: they are quick then, and find only what is of a sandbox."""

    def __init__(self) -> None:
        self._is_done = False
        """By us, or by somebody else, which is not to be undone: counting all that is frozen takes long."""

    @contextmanager
    def frozen(self) -> Iterator[None]:
        self._is_done = self._is_done or gc.get_freeze_count() > 0
        if self._is_done:
            yield
            return
        gc.freeze()
        self._is_done = True
        try:
            yield
        finally:
            gc.unfreeze()
            self._is_done = False


_old_objects = _Freezer()


@contextmanager
def _logged_to(handler: logging.Handler) -> Iterator[None]:
    """Have everything that is logged noted, and shown to nobody else."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def settings_of_process() -> dict[str, Any]:
    """Return what the whole process shares and a pack should leave as it was, by name."""
    named = [one for one in signal.valid_signals() if isinstance(one, signal.Signals)]
    handlers = {f"the handler of {one.name}": signal.getsignal(one) for one in named}
    return {
        **{f"the environment variable {name}": value for name, value in os.environ.items()},
        **handlers,
        "the working folder": _working_folder(),
        "sys.path": tuple(sys.path),
        "sys.meta_path": tuple(id(one) for one in sys.meta_path),
        "sys.excepthook": sys.excepthook,
        "sys.unraisablehook": sys.unraisablehook,
        "threading.excepthook": threading.excepthook,
        "sys.stdout": id(sys.stdout),
        "sys.stderr": id(sys.stderr),
        "the umask": _umask(),
        "the recursion limit": sys.getrecursionlimit(),
        "the default timeout of sockets": socket.getdefaulttimeout(),
        **_settings_of_logging(),
    }


def _umask() -> int:
    """Return the mask of new files. Asking the system for it sets it, so it is asked only where nothing tells."""
    try:
        lines = Path("/proc/self/status").read_text("ascii", "replace").splitlines()
        return int(next(line for line in lines if line.startswith("Umask:")).split()[1], 8)
    except (OSError, StopIteration, ValueError):
        mask = os.umask(0o077)
        os.umask(mask)
        return mask


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return "a folder that is gone"


def _settings_of_logging() -> dict[str, Any]:
    root = logging.getLogger()
    named = {name: one for name, one in root.manager.loggerDict.items() if isinstance(one, logging.Logger)}
    settings: dict[str, Any] = {"the level of the root logger": root.level, "logging.disable": root.manager.disable}
    for name, logger in {"the root logger": root, **named}.items():
        handlers = [id(one) for one in logger.handlers if not isinstance(one, logging.NullHandler)]
        settings[f"the log handlers of {name}"] = handlers
    return settings
