"""Environments for packs are made once, whole or not at all, and removed when nobody runs in them."""

import asyncio
import os
import shutil
import subprocess
import sys

import pytest
from prepared import PREPARED, told_by
from wheels import only_from, write_wheel

from agentos import PackEntry
from agentos.errors import PackLoadError
from agentos.workers import environments as rooms
from agentos.workers import start
from agentos.workers.environments import MARK, Environments, environments_folder, find_uv
from agentos.workers.launching import launch_plan

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(find_uv() is None, reason="uv is not installed; by pip each of these takes long"),
]


@pytest.fixture
def home(tmp_path, monkeypatch):
    write_wheel(tmp_path / "wheels", "tinylib", "1.0")
    write_wheel(tmp_path / "wheels", "tinylib", "2.0")
    only_from(monkeypatch, tmp_path / "wheels")
    monkeypatch.setenv("AGENTOS_DATA", str(tmp_path / "data"))
    return Environments()


@pytest.fixture
def told():
    return []


def entry(*requirements, **fields):
    return PackEntry(module="./pack.py", isolation="process", requirements=requirements, **fields)


async def version_in(plan):
    return await asyncio.to_thread(told_by, "import tinylib; print(tinylib.VERSION)", plan=plan)


async def test_each_set_of_requirements_has_an_environment_of_its_own(home):
    first = await launch_plan(entry("tinylib==1.0"), environments=home)
    second = await launch_plan(entry("tinylib==2.0"), environments=home)

    assert (await version_in(first), await version_in(second)) == (["1.0"], ["2.0"])
    assert first.fingerprint != second.fingerprint


async def test_one_that_is_there_is_used_again_without_an_installer(home, told, monkeypatch):
    first = await launch_plan(entry("tinylib"), environments=home, report=told.append)
    made = list(told)
    monkeypatch.setenv("PATH", "/nowhere")
    second = await launch_plan(entry("tinylib"), environments=home, report=told.append)

    assert first.argv[0] == second.argv[0]
    assert told == made


async def test_its_making_is_told(home, told):
    await launch_plan(entry("tinylib>1"), environments=home, report=told.append)

    assert told == [
        "making an environment with uv for tinylib>1",
        "installing with uv for tinylib>1",
        "its environment is made",
    ]


async def test_two_that_need_the_same_at_once_make_it_once(tmp_path, home, told):
    plans = await asyncio.gather(
        *(launch_plan(entry("tinylib"), environments=Environments(), report=told.append) for _ in range(3))
    )

    assert len({plan.argv[0] for plan in plans}) == 1
    assert sum("is made" in line for line in told) == 1


async def test_whether_it_is_made_can_be_asked_without_making_it(home):
    wanted = entry("tinylib==1.0")
    before = home.found_for(wanted, rooms_host())
    plan = await launch_plan(wanted, environments=home)

    assert (before, home.found_for(wanted, rooms_host()).interpreter.path) == (None, plan.argv[0])


async def test_what_was_begun_and_never_finished_is_made_anew(home):
    plan = await launch_plan(entry("tinylib==1.0"), environments=home)
    (place,) = (path for path in environments_folder().iterdir() if path.is_dir())
    (place / MARK).unlink()
    shutil.rmtree(place / "lib")

    assert await version_in(await launch_plan(entry("tinylib==1.0"), environments=home)) == ["1.0"]
    assert plan.argv[0] == str(place / "bin" / "python")


async def test_a_failed_installation_is_told_masked_and_leaves_nothing(home):
    with pytest.raises(PackLoadError) as caught:
        await launch_plan(
            entry("tinylib==3.0"), environments=home, mask=lambda text: text.replace("tinylib==3", "[hidden]")
        )

    assert "pack './pack.py': installing with uv failed:\n" in str(caught.value)
    assert "[hidden].0" in str(caught.value)
    assert [path for path in environments_folder().iterdir() if path.is_dir()] == []


async def test_credentials_in_an_address_are_never_told(home, told, monkeypatch):
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(PackLoadError) as caught:
        await launch_plan(
            entry("nolib @ http://user:pass-word@127.0.0.1:9/nolib-1.0-py3-none-any.whl"),
            environments=home,
            report=told.append,
        )

    assert "pass-word" not in str(caught.value)
    assert "pass-word" not in "".join(told)


async def test_an_installer_sees_no_variables_of_the_host_but_its_own(home, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_SECRET", "s3cret")
    fake = tmp_path / "bin" / "uv"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nenv\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(rooms.sys, "executable", str(fake.with_name("python")))
    monkeypatch.setattr(rooms, "_TAIL", 100)

    with pytest.raises(PackLoadError) as caught:
        await Environments().made_for(entry("tinylib"), rooms_host(), report=print, mask=str)

    assert "UV_NO_INDEX=1" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def rooms_host():
    from agentos.workers.interpreters import host_interpreter

    return host_interpreter()


async def test_one_who_is_cancelled_leaves_nothing_behind(home, tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    fake = tmp_path / "bin" / "uv"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\nmkdir -p "$5"\necho $$ > {pipe}\nsleep 1000\n')
    fake.chmod(0o755)
    monkeypatch.setattr(rooms.sys, "executable", str(fake.with_name("python")))
    task = asyncio.create_task(Environments().made_for(entry("tinylib"), rooms_host(), report=print, mask=str))
    pid = int(await asyncio.to_thread(pipe.read_text))
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert [path for path in environments_folder().iterdir() if path.is_dir()] == []


async def test_those_that_nobody_runs_in_can_be_removed(home):
    await launch_plan(entry("tinylib==1.0"), environments=home)
    plan = await launch_plan(entry("tinylib==2.0"), environments=home)
    code = PREPARED.format(start=start.__file__) + "print('up'); input()"
    with subprocess.Popen(
        [*plan.argv[:-2], "-c", code, plan.argv[-1]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=plan.env,
    ) as process:
        assert process.stdout.readline() == b"up\n"
        assert home.remove() == ["tinylib==1.0"]
        process.communicate(b"\n")

    assert home.remove() == ["tinylib==2.0"]
    assert home.remove() == []


@pytest.mark.proof
async def test_pip_makes_them_where_there_is_no_uv(home, told, tmp_path, monkeypatch):
    host, bare = rooms_host(), tmp_path / "bin"
    bare.mkdir()
    monkeypatch.setattr(rooms.sys, "executable", str(bare / "python"))
    monkeypatch.setenv("PATH", str(bare))
    made = await home.made_for(entry("tinylib==1.0"), host, report=told.append, mask=str)
    done = subprocess.run(
        [made.interpreter.path, "-c", "import tinylib; print(tinylib.VERSION)"], capture_output=True, text=True
    )

    assert done.stdout == "1.0\n"
    assert "installing with pip" in told[1]


def test_they_are_in_the_users_cache_unless_the_data_folder_is_named(monkeypatch):
    monkeypatch.delenv("AGENTOS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")

    assert environments_folder().name == "environments"
    if sys.platform.startswith("linux"):
        assert str(environments_folder()) == "/cache/agentos/environments"
