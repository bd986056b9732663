"""A full disk is called one, whatever a database or a file says of it, and it breaks no log."""

import errno
import json
import os
import sqlite3
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest
from terminal import AGENTOS, environment

from agentos.base.full_disks import has_no_room, is_full
from agentos.errors import StoreError
from agentos.store import Store, sealing_key
from agentos.store.failures import described
from agentos.store.locations import place_of

ON_A_SMALL_DISK = """
mount -t tmpfs -o size=1m none "$1" && cd "$1" || exit 9
shift
exec "$@"
"""

SCENE = """
    import asyncio, json, logging, os, sys
    from pathlib import Path
    from agentos import AgentOS, StoreError

    logging.basicConfig(stream=sys.stderr)

    def fill():
        with open("filler", "wb", buffering=0) as file:
            for size in (4096, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    pass

    async def refusal(action):
        try:
            await action
        except StoreError as error:
            return str(error)

    async def main():
        told = {}
        async with AgentOS(store="s.db") as host:
            await host.audit.record("note")
            fill()
            told["writing"] = await refusal(host.grants.add("x" * 100, "never"))
            told["checked"] = [(one.about, one.message, one.cure) for one in (await host.check()).troubles]
            verdict = await host.audit.verify()
            told["verified"] = verdict.ok
        told["opening"] = await refusal(AgentOS(store="new.db").initialize())
        os.unlink("filler")
        async with AgentOS(store="s.db") as host:
            verdict = await host.audit.verify()
            told["later"] = [verdict.ok, verdict.reason]
        fill()  # closing removed what SQLite has beside the file, without which it can't be read
        host = AgentOS(store="s.db")
        verdict = await host.audit.verify()
        told["unread"] = [verdict.ok, verdict.broken_at, verdict.reason]
        await host.shutdown()
        print(json.dumps(told))

    asyncio.run(main())
"""


@pytest.fixture
def small_disk(tmp_path):
    """Return a function that runs a program in a folder on a disk of 1 MB."""
    mount = tmp_path / "mount"
    mount.mkdir()
    arguments = ["unshare", "-m", "sh", "-c", ON_A_SMALL_DISK, "sh", str(mount)]
    env = environment({"PYTHONDONTWRITEBYTECODE": "1", "AGENTOS_DATA": str(tmp_path / "data")})

    def run(*program):
        return subprocess.run([*arguments, *program], env=env, capture_output=True, text=True, check=False)

    try:
        is_there = run("true").returncode == 0
    except OSError:
        is_there = False
    if not is_there:
        pytest.skip("no file system can be mounted here")
    return run


def test_on_a_real_disk_that_is_full(small_disk):
    done = small_disk(sys.executable, "-c", textwrap.dedent(SCENE))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)

    assert "the disk is full. Free some space" in told["writing"]
    assert [(about, "the disk is full" in message, cure) for about, message, cure in told["checked"]] == [
        ("store", True, "make room there")
    ]
    assert told["verified"] is True
    assert told["unread"][:2] == [False, None]
    assert "the log can't be read now: " in told["unread"][2]
    assert "the disk is full" in told["unread"][2]
    assert "the disk is full" in told["opening"]
    assert told["later"] == [True, ""]


def test_the_command_calls_a_full_disk_no_broken_chain(small_disk):
    script = f"""
        cat > agentos.toml <<'END'
        store = "s.db"
        END
        {AGENTOS[0]} {" ".join(AGENTOS[1:])} grants add 'files:*' never >/dev/null || exit 8
        dd if=/dev/zero of=filler 2>/dev/null
        {AGENTOS[0]} {" ".join(AGENTOS[1:])} audit verify
    """
    done = small_disk("sh", "-c", textwrap.dedent(script))

    assert done.returncode == 3, done.stderr
    assert "the disk is full" in done.stderr
    assert "broken" not in done.stderr


# -- what a disk that is full looks like, wherever it can be tried ----------------------------------------------------


def failing(code):
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    return error


def a_disk(monkeypatch, *, free, flag=0):
    disk = SimpleNamespace(f_bavail=free, f_frsize=4096, f_files=10, f_favail=10, f_flag=flag)
    monkeypatch.setattr(os, "statvfs", lambda folder: disk)


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR | (19 << 8), sqlite3.SQLITE_CANTOPEN])
def test_an_error_of_sqlite_on_a_full_disk_is_a_full_disk(code, tmp_path, monkeypatch):
    a_disk(monkeypatch, free=0)
    error = described(failing(code), place_of(tmp_path / "s.db"))

    assert error.message.endswith(": the disk is full")
    assert error.unavailable


def test_an_error_of_sqlite_on_another_disk_is_what_it_says(tmp_path, monkeypatch):
    a_disk(monkeypatch, free=10_000)

    assert "disk I/O error" in str(described(failing(sqlite3.SQLITE_IOERR), place_of(tmp_path / "s.db")))


def test_a_disk_that_is_read_only_is_not_full(tmp_path, monkeypatch):
    a_disk(monkeypatch, free=0, flag=os.ST_RDONLY)

    assert not has_no_room(tmp_path)


def test_a_folder_that_is_not_there_is_not_full(tmp_path):
    assert not has_no_room(tmp_path / "nothing")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
async def test_a_key_that_finds_no_room_does_not_ask_for_rights(number, tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(sealing_key, "make_file", full)
    with pytest.raises(StoreError, match=r"Free some space on that disk, or set AGENTOS_STORE_KEY"):
        await Store(tmp_path / "s.db").open()


def test_other_errors_are_no_full_disk():
    assert [is_full(one) for one in (PermissionError(errno.EACCES, ""), ValueError())] == [False, False]
