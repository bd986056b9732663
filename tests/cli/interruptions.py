"""A program that runs commands again and again, each time interrupted at another step on the disk.

`python interruptions.py HOW TEMPLATE COMMANDS [FEW]` copies the folder TEMPLATE for every run. HOW is the signal that a
forked process sends itself at that step, or `limit`: then no file may become larger than a few bytes. COMMANDS is JSON:
lists of arguments by name. What it prints is JSON: of every command how each run ended, which files were left and what
they say, and the same of a run without interruption.
"""

import base64
import contextlib
import functools
import json
import os
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
from pathlib import Path

EVENTS = ("open", "os.rename", "os.link", "os.chmod", "os.mkdir", "os.remove")
LIMITS = (0, 30)
FEW = 10
"""Of commands with more steps than so, only some of those in the middle are tried: every so many-th, or a few."""
STRIDE = 17
FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None


def import_everything():
    """Import what commands import, so that no step is one of Python's own."""
    import sqlalchemy.dialects.sqlite  # noqa: F401
    import tomlkit  # noqa: F401
    from rich import console, table, tree  # noqa: F401

    from agentos import host  # noqa: F401
    from agentos.cli import app, store_records  # noqa: F401
    from agentos.cli.commands import approvals, audit, lock, packs, serve, setup  # noqa: F401
    from agentos.cli.manifest_edit import editing, toml_edits  # noqa: F401
    from agentos.cli.probe import isolated_load  # noqa: F401
    from agentos.cli.terminal import approval_dialog, drawing  # noqa: F401
    from agentos.mcp import auth  # noqa: F401
    from agentos.model.parsing import check

    check({}, "manifest")
    check({}, "overrides")


def at_each_step(act):
    """Call *act* with the number of every step that this process takes on the disk, before or after it."""
    taken = 0

    def count():
        nonlocal taken
        taken += 1
        act(taken)

    def hook(event, args):
        if event in EVENTS and (event != "open" or _writes(args)):
            count()

    sync = os.fsync

    def fsync(fd):
        count()
        sync(fd)
        count()

    from agentos.store.transactions import SqlWorker, StoreThreads

    run, commit = StoreThreads.run, SqlWorker._commit

    async def counted_run(self, transaction):
        count()
        return await run(self, transaction)

    def counted_commit(self):
        count()
        commit(self)
        count()

    os.fsync = fsync
    StoreThreads.run, SqlWorker._commit = counted_run, counted_commit
    sys.addaudithook(hook)


def _writes(args):
    _, mode, flags = args
    return bool(set(mode or "") & set("wxa+")) or bool((flags or 0) & (os.O_WRONLY | os.O_RDWR))


def run(template, arguments, prepare):
    """Run the command once in a copy of *template*; return how it ended and what was left."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as top:
        folder = Path(top) / "here"
        shutil.copytree(template, folder)
        pid = os.fork()
        if pid == 0:
            _run_here(folder, arguments, prepare)
        status = os.waitpid(pid, 0)[1]
        return {"code": os.waitstatus_to_exitcode(status), "files": contents(folder), "says": meaning(folder)}


def _run_here(folder, arguments, prepare):
    code = 99
    try:
        os.chdir(folder)
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1):
            os.dup2(nothing, fd)
        from agentos.cli.main import main

        prepare()
        code = main(arguments)
    finally:
        os._exit(code)


def contents(folder):
    """Return every file beneath *folder* with what is in it."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    noise = (".pyc", "-wal", "-shm")
    return {
        name: base64.b64encode(path.read_bytes()).decode()
        for name, path in sorted(files.items())
        if not name.endswith(noise) and "__pycache__" not in name and ".hosts/" not in name  # signs of life
    }


ROWS = {
    "proposals": "SELECT tool, arguments, state FROM proposals",
    "pins": "SELECT tool, definition FROM pins",
    "flags": "SELECT pack, enabled FROM flags",
    "grants": "SELECT tool, decision, state FROM grants",
}


def meaning(folder):
    """Return what files say whose bytes are never the same twice: the store, and the tokens without what is random."""
    said = {}
    for path in folder.glob("*.db"):
        with contextlib.closing(sqlite3.connect(path)) as store:
            said["whole"] = store.execute("PRAGMA integrity_check").fetchone()[0]
            said |= {name: sorted(store.execute(query).fetchall()) for name, query in ROWS.items()}
    for path in folder.glob("tokens.json"):
        tokens = json.loads(path.read_bytes())["tokens"]
        said["tokens"] = [one["principal"] for one in tokens]
    return said


def counted(template, arguments):
    """Return how many steps a command takes, and what it leaves."""
    reading, writing = os.pipe()
    whole = run(template, arguments, lambda: at_each_step(lambda step: os.write(writing, b".")))
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        return len(pipe.read()), whole


def interrupted(template, arguments, how, steps, few):
    number = signal.Signals[how]
    for step in chosen(steps, few):
        yield run(template, arguments, functools.partial(at_each_step, functools.partial(_send, step, number)))


def chosen(steps, few):
    """Return at which steps to interrupt: at the first and the last ones, and at some between."""
    if steps <= FEW:
        return range(1, steps + 1)
    if few:
        return sorted({1 + (steps - 1) * part // (few - 1) for part in range(few)})
    ends = [*range(1, FEW // 2 + 1), *range(steps - FEW // 2 + 1, steps + 1)]
    return sorted({*ends, *range(STRIDE, steps, STRIDE)})


def _send(wanted, number, step):
    if step == wanted:
        os.kill(os.getpid(), number)


def limited(template, arguments):
    for limit in LIMITS:
        setting = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit))
        yield run(template, arguments, setting)


def main():
    sys.dont_write_bytecode = True
    how, template, commands, *few = sys.argv[1:]
    import_everything()
    told = {}
    for name, arguments in json.loads(commands).items():
        steps, whole = counted(template, arguments)
        cut = (
            limited(template, arguments)
            if how == "limit"
            else interrupted(template, arguments, how, steps, sum(map(int, few)))
        )
        told[name] = {"cut": list(cut), "after": whole["files"], "said": whole["says"], "code": whole["code"]}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
