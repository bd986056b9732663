"""Start the programs that tests start most from a Python that has imported the large libraries already.

A program of ours imports for two seconds and works for a tenth of one. So each worker of the tests keeps a Python that
has imported all that, and a program is a fork of it (`warm_parent`): a process of its own, a child of the test's, with
its own files, folder, environment and signals. What must not begin so begins as ever: anything started by another
Python, with options or variables for Python of its own, as another user, or beneath what measures coverage, and what
looks at the modules that have been imported.
"""

import atexit
import contextlib
import ctypes
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

TESTS = Path(__file__).parent
PARENT = f"import sys; sys.path[0] = {str(TESTS)!r}; import warm_parent; warm_parent.serve(int(sys.argv[1]))"
UNUSUAL = {"executable": None, "shell": False, "pass_fds": (), "gid": None, "gids": None, "uid": None, "umask": -1}
SUBREAPER = 36
"""`PR_SET_CHILD_SUBREAPER` of prctl(2): whose parent ends is a child of this process then."""

_as_ever = subprocess.Popen._execute_child
_signature = inspect.signature(_as_ever)
PIDS = set()
"""The processes that are kept for this, and belong to no test."""
_parents = {}
_lock = threading.Lock()


def install():
    """From now on, start what can be started so."""
    if sys.platform == "linux" and "COVERAGE_PROCESS_START" not in os.environ:
        subprocess.Popen._execute_child = _execute_child


def _execute_child(self, *arguments, **named):
    given = _signature.bind(self, *arguments, **named).arguments
    options = _options(given)
    if options is None:
        return _as_ever(self, *arguments, **named)
    self.pid = _start(given, options)
    self._child_created = True
    ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
    return self._close_pipe_fds(*(given[end] for end in ends))


def _options(given):
    """Return the options for Python of what is to be started; None if it must begin as ever."""
    argv = given["args"]
    if not isinstance(argv, (list, tuple)) or len(argv) < 2 or argv[0] != sys.executable:
        return None
    if any(given.get(name, usual) != usual for name, usual in UNUSUAL.items()) or given.get("process_group", -1) != -1:
        return None
    if not Path(given["cwd"] or ".").is_dir() or _first(given) is None:
        return None
    options = next((some for some in (("-W", "error"), ("-u",), ()) if tuple(argv[1 : 1 + len(some)]) == some), ())
    return options if _ours(*argv[1 + len(options) :], strict=options == ("-W", "error")) else None


def _ours(what="", *arguments, strict):
    """Return whether this is a program of ours that only wants to run, not to see how Python begins."""
    if what == "-m":
        return bool(arguments) and arguments[0].startswith(("agentos.cli", "access.workers."))
    if what == "-c":
        return strict and "sys.modules" not in arguments[0]  # else it is about what has been imported
    return not what.startswith("-") and Path(what).is_relative_to(TESTS.parent) and Path(what).is_file()


def _first(given):
    """Name what the child has to do first; None if it has no name."""
    function = given["preexec_fn"]
    if function is None:
        return []
    return [f"{function.__module__}:{function.__name__}"] if function.__module__ == "terminal" else None


def _start(given, options):
    env = {os.fsdecode(name): os.fsdecode(value) for name, value in (given["env"] or os.environ).items()}
    argv = [os.fsdecode(argument) for argument in given["args"]]
    asked = {
        "argv": argv[1:],
        "options": len(options),
        "cwd": str(Path(given["cwd"] or ".").absolute()),
        "env": env,
        "session": given["start_new_session"],
        "first": _first(given),
    }
    files = [_or(given["p2cread"], 0), _or(given["c2pwrite"], 1), _or(given["errwrite"], 2)]
    with _lock, _adopting():
        asker = _parent(options, env)
        socket.send_fds(asker, [json.dumps(asked).encode()], files)
        pid = int(asker.recv(100))
        assert asker.recv(100) == b"begun"
    return pid


def _or(number, usual):
    return usual if number == -1 else number


@contextlib.contextmanager
def _adopting():
    """Become the parent of what a child's child leaves behind, for this moment."""
    prctl = ctypes.CDLL(None).prctl
    prctl(SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(SUBREAPER, 0, 0, 0, 0)


def _parent(options, env):
    """Return the socket of the Python that was started with these options, and with these variables for Python."""
    said = {name: env[name] for name in sorted(env) if _for_python(name)}
    key = (os.getpid(), options, *said.items())
    if key not in _parents:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        plain = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL") if name in os.environ}
        with theirs:
            number = theirs.fileno()
            process = subprocess.Popen(
                [sys.executable, *options, "-c", PARENT, str(number)],
                env={**plain, **said},
                cwd="/",
                pass_fds=[number],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        assert ours.recv(100) == b"ready"
        _parents[key] = ours
        PIDS.add(process.pid)
        atexit.register(_end, ours, process)
    return _parents[key]


def _end(asker, process):
    asker.close()
    process.wait()


def _for_python(name):
    return name.startswith("PYTHON") and name != "PYTHON_KEYRING_BACKEND"
