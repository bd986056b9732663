"""`agentos workers`: what served hosts tell of packs in processes of their own, and what is said where none tells."""

import fcntl
import json
import os
import signal
import time

import pytest
from terminal import GREET, PATIENCE

from agentos.workers.environments import MARK, environments_folder

ISOLATED = '[[packs]]\nmodule = "hello.py"\nidentifier = "hello"\nisolation = "process"\n'


@pytest.fixture
def isolated(project):
    folder = project()
    (folder / "agentos.toml").write_text(ISOLATED)
    return folder


def test_without_such_a_pack_the_list_says_so(project, command):
    project()

    assert "No pack of this manifest has a process of its own." in command("workers", "list").out


def test_without_a_served_host_the_manifests_packs_are_listed_as_not_running(isolated, command):
    told = command("workers", "list", "--json")

    assert told.code == 0
    assert (told.data["hosts"], told.data["notRunning"]) == ([], ["hello"])
    assert "not running" in command("workers", "list").out


@pytest.mark.parametrize("what", ["restart", "logs"])
def test_without_a_served_host_nothing_can_be_asked_for(isolated, command, what):
    told = command("workers", what, "hello")

    assert told.code == 1
    assert "no host that is served here runs a worker of hello" in told.err


@pytest.mark.parametrize("what", ["restart", "logs"])
def test_a_pack_without_a_process_is_named_with_those_that_have_one(isolated, command, what):
    told = command("workers", what, "helo")

    assert told.code == 2
    assert "did you mean 'hello'?" in told.err


def made_environment(name, requirements):
    folder = environments_folder() / name
    folder.mkdir(parents=True)
    (folder / MARK).write_text(json.dumps({"python": "python", "requirements": requirements}))
    return folder


def test_clean_removes_environments_that_nobody_runs_in_and_names_them_without_credentials(project, command):
    project()
    free = made_environment("a", ["tinylib<2", "other @ https://me:pass@example.com/other.whl"])
    held = made_environment("b", ["tinylib>=2"])
    with held.with_name("b.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        told = command("workers", "clean", "--json")

    assert (told.code, free.exists(), held.exists()) == (0, False, True)
    assert told.data["removed"] == ["tinylib<2, other @ https://***@example.com/other.whl"]
    assert "Removed the environment of tinylib>=2." in command("workers", "clean").out
    assert "no environment" in command("workers", "clean").out


# -- what other commands say of such a pack ----------------------------------------------------------------------------


def test_why_names_the_pack_of_a_tool_in_a_process_of_its_own(isolated, command):
    told = command("why", "tool:greet", "--json")

    assert told.code == 0, told.err
    assert [(one["pack"], one["state"]) for one in told.data["entries"]] == [("hello", "active")]


def test_why_says_what_kept_a_process_from_being_mounted(isolated, command):
    (isolated / "hello.py").write_text("import os\nos._exit(3)\n")
    told = command("why", "tool:greet")

    assert told.code == 1
    assert "the process exited with code 3" in told.out + told.err


def test_show_says_that_a_pack_has_a_process_of_its_own(isolated, command):
    assert command("packs", "show", "hello", "--json").data["entry"]["isolation"] == "process"
    assert "process" in command("packs", "show", "hello").out


def test_show_asks_such_a_pack_what_it_offers(isolated, command):
    told = command("packs", "show", "hello", "--probe", "--json")

    assert told.code == 0, told.err
    assert "greet" in str(told.data["probe"])


# -- with a served host ------------------------------------------------------------------------------------------------


@pytest.fixture
def served(isolated, started):
    """Serve the manifest, with its pack's process started at once; return the served program."""
    (isolated / "agentos.toml").write_text(ISOLATED + "eager = true\n")
    (isolated / "hello.py").write_text(f"{GREET}\nprint('a line of its own', flush=True)\n")
    child = started("serve", "--http", "--port", "0", env={"AGENTOS_DATA": os.environ["AGENTOS_DATA"]})
    child.until("http://")
    return child


def told_workers(command):
    """Return what the list tells of the one host that is served, once it tells something."""
    end = time.monotonic() + PATIENCE
    while not (hosts := command("workers", "list", "--json").data["hosts"]):
        assert time.monotonic() < end
    [host] = hosts
    return host


def test_a_served_host_tells_of_its_workers(served, command):
    host = told_workers(command)
    [worker] = host["workers"]

    assert host["pid"] == served.pid
    assert (worker["pack"], worker["state"], worker["restarts"]) == ("hello", "ready", 0)
    assert worker["pid"] not in (None, served.pid)
    assert "ready" in command("workers", "list").out


def test_a_worker_of_a_served_host_is_restarted_by_its_key(served, command):
    before = told_workers(command)["workers"][0]["pid"]
    told = command("workers", "restart", "hello")
    after = told_workers(command)["workers"][0]

    assert told.code == 0, told.err
    assert (after["restarts"], after["pid"] == before) == (1, False)


def test_the_log_of_a_worker_is_told(served, command):
    told_workers(command)

    assert "a line of its own" in command("workers", "logs", "hello").out
    assert command("workers", "logs", "hello", "--json").data["hosts"][0]["pid"] == served.pid


def test_a_host_that_was_killed_tells_nothing_any_more(served, command):
    told_workers(command)
    served.kill()
    served.wait()

    assert command("workers", "list", "--json").data["hosts"] == []


def test_the_doctor_tells_of_a_served_hosts_worker_that_died(served, command):
    pid = told_workers(command)["workers"][0]["pid"]
    os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + PATIENCE
    while not told_workers(command)["workers"][0]["strikes"]:
        assert time.monotonic() < end

    troubles = command("doctor", "--json").data["troubles"]
    [trouble] = [one for one in troubles if one["about"] == "worker hello"]

    assert trouble["level"] == "warning"
    assert trouble["message"].startswith("it died: ")
