"""A Python that has imported what is large, and becomes whatever program it is asked for, each in a process of its own.

`warm_starts` starts it. It has no threads and nothing of a test: a fork of it is a Python that has just begun.
"""

import contextlib
import gc
import importlib
import io
import json
import os
import runpy
import socket
import sys
import time
from pathlib import Path

LARGE = {
    "": (
        *("agentos.cli.main", "agentos.cli.app", "agentos.cli.layered_config", "agentos.cli.terminal.drawing"),
        *("agentos.host", "agentos.store.sqlite", "jsonschema_rs", "sqlalchemy.dialects.sqlite"),
    ),
    "\nchat\n": ("openai",),
    "\nserve\n": ("agentos.mcp.http", "agentos.mcp.server", "mcp", "uvicorn"),
    "agentos.mcp": ("agentos.mcp.http", "agentos.mcp.server", "mcp", "uvicorn"),
    "/fast.py\n": ("fastmcp",),
    "/fixture_pack.py\n": ("agentos.mcp.http", "agentos.mcp.server", "mcp"),
    "/ours.py\n": ("agentos.mcp.http", "agentos.mcp.server", "mcp"),
    "/sdk.py\n": ("mcp.server.mcpserver", "uvicorn"),
    "/varied.py\n": ("mcp.server.mcpserver",),
}
"""What takes a program longest to import, by what stands in its arguments, each with a line's end: "" for all."""


def serve(number):
    """Read what to start from the socket *number* and start it, until there is no other end; return in the child."""
    _import("")
    path = sys.path[1:]
    with socket.socket(fileno=number) as asker:
        asker.send(b"ready")
        while True:
            message, files, *_ = socket.recv_fds(asker, 1 << 22, 3)
            if not message:
                os._exit(0)
            asked = json.loads(message)
            _import("\n".join([*asked["argv"][:5], ""]))
            if _child(asker):
                break
            for file in files:
                os.close(file)
    _become(asked, files, path)


def _import(text):
    """Import what these arguments call for; it is no garbage of a child's, in the end neither."""
    gc.disable()
    for name in (name for part, names in LARGE.items() if part in text for name in names):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
    gc.enable()


def _child(asker):
    """Fork a process that nobody here is the parent of; tell its id, and then that it has its new parent."""
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        asker.send(b"begun")
        return False
    between = os.getpid()
    if child := os.fork():
        asker.send(str(child).encode())
        os._exit(0)
    while os.getppid() == between:
        os.sched_yield()
    return True


def _become(asked, files, path):
    """Do what a Python does when it was started with these arguments, here, with these files."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    for file in set(files) - {0, 1, 2}:
        os.close(file)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    time.tzset()
    if asked["session"]:
        os.setsid()
    for name in asked["first"]:
        module, _, function = name.partition(":")
        sys.path.insert(0, str(Path(__file__).parent))
        getattr(importlib.import_module(module), function)()
        del sys.path[0]
    _open_streams()
    sys.orig_argv = [sys.executable, *asked["argv"]]
    _run(*asked["argv"][asked["options"] :], path=path)


def _open_streams():
    """Open the three streams as a Python does that begins."""
    unbuffered = sys.stdout.write_through
    for number, name, mode, errors in (
        (0, "stdin", "r", "surrogateescape"),
        (1, "stdout", "w", "surrogateescape"),
        (2, "stderr", "w", "backslashreplace"),
    ):
        raw = mode == "w" and unbuffered
        binary = open(number, f"{mode}b", buffering=0 if raw else -1, closefd=False)  # noqa: SIM115 - for as long as it runs
        getattr(binary, "raw", binary).name = f"<{name}>"
        lines = not unbuffered and (number == 2 or binary.isatty())
        text = io.TextIOWrapper(binary, "utf-8", errors, newline="\n", line_buffering=lines, write_through=unbuffered)
        text.mode = mode
        setattr(sys, name, text)
        setattr(sys, f"__{name}__", text)


def _run(what, *arguments, path):
    """Run a module (`-m`), a text (`-c`) or a file as the main program."""
    own = sys.modules["__main__"].__dict__
    kept = {"__name__": "__main__", "__builtins__": own["__builtins__"], "__doc__": None, "__package__": None}
    own.clear()
    own.update(kept, __annotations__={}, __loader__=None, __spec__=None)
    if what == "-m":
        sys.path[:] = [str(Path.cwd()), *path]
        sys.argv[:] = arguments
        runpy._run_module_as_main(arguments[0])
        return
    if what == "-c":
        sys.path[:] = ["", *path]
        sys.argv[:] = ["-c", *arguments[1:]]
        code = compile(arguments[0], "<string>", "exec")
    else:
        sys.path[:] = [str(Path(what).resolve().parent), *path]
        sys.argv[:] = [what, *arguments]
        own.update(__file__=what, __cached__=None)
        with io.open_code(what) as file:
            code = compile(file.read(), what, "exec")
    exec(code, own)
