"""What a confined worker can't do, tried by a real process under the real kernel."""

import platform
import sys

import pytest
from prepared import told_by

from agentos.workers.confinement import ConfinementError, confine, missing_for

needs_landlock = pytest.mark.skipif(
    missing_for(network=True, limits_writing=True) is not None, reason="this system has no Landlock"
)
needs_seccomp = pytest.mark.skipif(
    missing_for(network=False, limits_writing=False) is not None, reason="this system has no seccomp filters"
)

TRY = """
import os, socket, subprocess, sys
from pathlib import Path

def attempt(what, *arguments, **named):
    try:
        what(*arguments, **named)
    except OSError as error:
        print(error.strerror or error)
    else:
        print("done")

"""


def tried(code, *, network=True, write=None):
    """Return how each attempt of *code* ended."""
    return told_by(TRY + code, {"confine": {"network": network, "write": None if write is None else list(write)}})


@pytest.fixture
def places(tmp_path):
    inside, outside = tmp_path / "data", tmp_path / "other"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "old.txt").write_text("as it was")
    return inside, outside


@needs_landlock
def test_what_is_beneath_a_named_folder_can_be_changed_at_will(places):
    inside, _ = places
    code = f"""
inside = Path({str(inside)!r})
attempt((inside / "new.txt").write_text, "x")
attempt(os.truncate, inside / "old.txt", 0)
attempt((inside / "sub").mkdir)
attempt(os.rename, inside / "new.txt", inside / "sub" / "moved.txt")
attempt((inside / "old.txt").unlink)
attempt((inside / "link").symlink_to, "sub")
"""
    assert tried(code, write=[str(inside)]) == ["done"] * 6
    assert (inside / "sub" / "moved.txt").read_text() == "x"


@needs_landlock
def test_nothing_else_can_be_written_made_removed_or_moved(places):
    inside, outside = places
    code = f"""
inside, outside = Path({str(inside)!r}), Path({str(outside)!r})
attempt((outside / "new.txt").write_text, "x")
attempt((outside / "old.txt").open, "a")
attempt(os.truncate, outside / "old.txt", 0)
attempt((outside / "sub").mkdir)
attempt((outside / "old.txt").unlink)
attempt((outside / "link").symlink_to, "sub")
attempt(os.rename, inside / "old.txt", outside / "moved.txt")
"""
    assert set(tried(code, write=[str(inside)])) <= {"Permission denied", "Invalid cross-device link"}
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"old.txt": "as it was"}


@needs_landlock
def test_a_link_inside_that_leads_out_is_no_way_out(places):
    inside, outside = places
    (inside / "link").symlink_to(outside)

    said = tried(f"attempt((Path({str(inside)!r}) / 'link' / 'new.txt').write_text, 'x')", write=[str(inside)])

    assert said == ["Permission denied"]


@needs_landlock
def test_what_a_confined_worker_starts_is_confined_as_well(places):
    inside, outside = places
    code = f"""
done = subprocess.run(["/bin/sh", "-c", "echo x > new.txt"], cwd={str(outside)!r}, stderr=subprocess.DEVNULL)
print(done.returncode != 0)
"""
    assert tried(code, write=[str(inside)]) == ["True"]


@needs_landlock
def test_reading_and_the_null_device_stay_as_they_are(places):
    inside, outside = places
    code = f"""
print(Path({str(outside)!r}, "old.txt").read_text())
attempt(Path("/dev/null").write_text, "x")
attempt(subprocess.run, ["/bin/true"], stdout=subprocess.DEVNULL)
"""
    assert tried(code, write=[str(inside)]) == ["as it was", "done", "done"]


@needs_landlock
def test_one_file_can_be_named_instead_of_a_folder(places):
    inside, _ = places
    code = f"""
attempt(Path({str(inside)!r}, "old.txt").write_text, "changed")
attempt(Path({str(inside)!r}, "new.txt").write_text, "x")
"""
    assert tried(code, write=[str(inside / "old.txt")]) == ["done", "Permission denied"]


@needs_landlock
def test_an_empty_list_leaves_nothing_to_write(places):
    inside, _ = places

    assert tried(f"attempt(Path({str(inside)!r}, 'new.txt').write_text, 'x')", write=[]) == ["Permission denied"]


@needs_landlock
def test_the_host_can_not_be_signalled_where_the_kernel_knows_of_that(places):
    from agentos.workers import confinement

    if confinement._landlock_version() < 6:
        pytest.skip("this kernel does not know of signals")

    assert tried("import signal; attempt(os.kill, os.getppid(), 0)", write=[]) == ["Operation not permitted"]


@needs_seccomp
def test_no_socket_of_any_kind_can_be_made():
    code = """
for family, kind in [
    (socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET6, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM),
    (socket.AF_UNIX, socket.SOCK_STREAM),
]:
    attempt(socket.socket, family, kind)
attempt(socket.create_connection, ("127.0.0.1", 1))
"""
    assert tried(code, network=False) == ["Permission denied"] * 5


@needs_seccomp
def test_what_a_worker_without_network_starts_has_none_either():
    code = """
import_and_try = "import socket; socket.socket()"
done = subprocess.run([sys.executable, "-I", "-c", import_and_try], capture_output=True, text=True)
print(done.stderr.splitlines()[-1])
"""
    assert tried(code, network=False) == ["PermissionError: [Errno 13] Permission denied"]


@needs_seccomp
def test_the_event_loop_threads_and_processes_work_without_network():
    code = """
import asyncio
async def main():
    await asyncio.to_thread(print, "in a thread")
    process = await asyncio.create_subprocess_exec("/bin/true")
    print(await process.wait())
asyncio.run(main())
"""
    assert tried(code, network=False) == ["in a thread", "0"]


def test_a_system_without_the_means_is_told_as_such(monkeypatch):
    monkeypatch.setattr(sys, "platform", "plan9")

    with pytest.raises(ConfinementError, match="confinement needs Linux, and this is plan9"):
        confine(network=False, write=None)


def test_a_machine_whose_calls_are_not_known_is_told_as_such(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "pdp11")
    monkeypatch.setattr(sys, "platform", "linux")

    assert missing_for(network=False, limits_writing=False) == (
        "`network = false` needs seccomp filters on x86_64 or aarch64, and this system has none"
    )
