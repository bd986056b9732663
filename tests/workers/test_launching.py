"""The command line of a worker: which Python, what it imports from where, and what it is not told."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from prepared import told_by
from wheels import write_wheel

import agentos
from agentos import Confinement, PackEntry, WorkerLimits
from agentos.errors import PackLoadError
from agentos.workers import confinement
from agentos.workers.launching import launch_plan

pytestmark = pytest.mark.anyio


def entry(**fields):
    return PackEntry(module="./pack.py", isolation="process", **fields)


@pytest.fixture
def program(tmp_path):
    """Make a program that answers the question of what it is."""

    def make(answer, name="python9"):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\necho '{answer}'\n")
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture
def other(tmp_path):
    """Make an environment of its own, of the same Python, with a library that the host has too."""
    place = tmp_path / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (site,) = place.glob("lib/python3*/site-packages")
    write_wheel(site, "blinker", "0.0.1", {"blinker.py": "VERSION = 'its own'\n"})
    (site / "blinker.py").write_text("VERSION = 'its own'\n")
    return place


async def test_a_worker_runs_in_the_hosts_python_and_imports_what_the_host_does():
    plan = await launch_plan(entry())

    assert plan.argv[0] == sys.executable
    assert json.loads(told_by("import json, sys; print(json.dumps(sys.path))", plan=plan)[0]) == [
        str(Path(path).absolute()) for path in sys.path
    ]


async def test_its_environment_has_no_secret_of_the_host(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    plan = await launch_plan(entry())
    names = json.loads(told_by("import json, os; print(json.dumps(list(os.environ)))", plan=plan)[0])

    assert {*names} <= {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "AGENTOS_DATA"}


async def test_the_hosts_python_by_another_path_is_still_the_hosts(tmp_path):
    (tmp_path / "link").symlink_to(sys.prefix)
    plan = await launch_plan(entry(python=str(tmp_path / "link" / "bin" / "python")))

    assert json.loads(plan.argv[-1])["is_host"] is True


async def test_what_another_environment_has_comes_before_what_the_host_has(other):
    plan = await launch_plan(entry(python=str(other / "bin" / "python")))
    said = told_by(
        """
        import agentos, attrs, blinker, sys
        print(blinker.VERSION)
        print(agentos.__file__)
        print(attrs.__file__)
        print(sys.prefix)
        """,
        plan=plan,
    )

    import attrs

    assert said == ["its own", agentos.__file__, attrs.__file__, str(other)]


async def test_agentos_is_the_hosts_even_where_another_one_is_installed(other):
    (site,) = other.glob("lib/python3*/site-packages")
    (site / "agentos").mkdir()
    (site / "agentos" / "__init__.py").write_text("raise RuntimeError('not this one')")
    plan = await launch_plan(entry(python=str(other / "bin" / "python")))

    assert told_by("import agentos; print(agentos.__file__)", plan=plan) == [agentos.__file__]


async def test_nothing_installed_runs_before_the_process_is_limited(other):
    (site,) = other.glob("lib/python3*/site-packages")
    (site / "early.pth").write_text("import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n")
    plan = await launch_plan(entry(python=str(other / "bin" / "python"), worker=WorkerLimits(open_files=64)))

    assert set(told_by("", plan=plan)) == {"64"}


async def test_a_path_is_relative_to_the_manifest_and_a_name_is_looked_for(other, monkeypatch):
    by_path = await launch_plan(entry(python="bin/python", base_path=other))
    monkeypatch.setenv("PATH", str(other / "bin"))
    by_name = await launch_plan(entry(python="python3"))

    assert by_path.argv[0] == str(other / "bin" / "python")
    assert by_name.argv[0] == str(other / "bin" / "python3")


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("no-such-python", "its python 'no-such-python' is not on PATH; name one that is, or give its path"),
        ("/no/such/python", "its python /no/such/python is no program that may be run"),
        ("/bin/true", "its python /bin/true does not answer as a Python would"),
        ("/bin/false", "its python /bin/false does not answer as a Python would"),
    ],
)
async def test_what_is_no_python_is_refused(named, told):
    with pytest.raises(PackLoadError) as caught:
        await launch_plan(entry(python=named))

    assert told in str(caught.value)


async def test_a_python_that_is_too_old_is_refused(program):
    path = program('[[3, 10, 4], "/old", null]')

    with pytest.raises(PackLoadError, match=r"is 3\.10\.4; a worker needs 3\.11 or later"):
        await launch_plan(entry(python=path))


async def test_another_version_of_python_needs_agentos_of_its_own(program):
    path = program('[[3, 99, 0], "/new", null]')

    with pytest.raises(PackLoadError, match="install agentos-host there, or add it to `requirements`"):
        await launch_plan(entry(python=path))


async def test_another_version_of_python_is_not_given_what_is_installed_for_the_host(program):
    plan = await launch_plan(entry(python=program('[[3, 99, 0], "/new", "0.9"]')))

    assert json.loads(plan.argv[-1])["paths"] == []


async def test_a_python_that_changed_is_asked_again(program):
    path = program('[[3, 10, 4], "/old", null]')
    with pytest.raises(PackLoadError):
        await launch_plan(entry(python=path))
    Path(path).unlink()
    program(json.dumps([sys.version_info[:3], "/new", None]))

    assert (await launch_plan(entry(python=path))).argv[0] == path


confines = pytest.mark.skipif(
    confinement.missing_for(network=False, limits_writing=True) is not None, reason="this system can't confine"
)


@confines
async def test_a_confined_worker_has_its_folders_made_and_its_temporary_files_in_the_first(tmp_path):
    confine = Confinement(network=False, write=("data/here", "more"))
    plan = await launch_plan(entry(base_path=tmp_path, worker=WorkerLimits(confine=confine)))
    said = told_by(
        f"""
        import socket, tempfile
        from pathlib import Path
        print(tempfile.mkdtemp())
        Path("{tmp_path}/more/new.txt").write_text("x")
        for attempt in (Path("{tmp_path}/new.txt").touch, socket.socket):
            try:
                attempt()
            except PermissionError:
                print("refused")
        """,
        plan=plan,
    )

    assert Path(said[0]).parent == tmp_path / "data" / "here"
    assert said[1:] == ["refused", "refused"]


async def test_confinement_is_refused_where_the_system_has_no_means(monkeypatch):
    monkeypatch.setattr(confinement.sys, "platform", "plan9")

    with pytest.raises(PackLoadError) as caught:
        await launch_plan(entry(worker=WorkerLimits(confine=Confinement(network=False))))

    assert "it can't be confined here: confinement needs Linux, and this is plan9; run it elsewhere" in str(
        caught.value
    )


@confines
async def test_a_folder_to_write_in_that_can_not_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(PackLoadError, match="to write in can't be made: Not a directory"):
        await launch_plan(entry(worker=WorkerLimits(confine=Confinement(write=(str(tmp_path / "file" / "data"),)))))
