"""Programs that are run: what they get, what they may use, and that nothing of them stays, whatever they do."""

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from agentos_pack_common import (
    SAFE_PATH,
    Limits,
    ProcessError,
    Root,
    find_program,
    run_process,
)

from agentos.processes import program_start as _starting

SHELL = "/bin/sh"


@pytest.fixture(params=["pidfd", "looking"])
def watched(request, monkeypatch):
    """Be told of the end of a process, or look for it, as where the system does not tell."""
    if request.param == "looking":
        monkeypatch.delattr(os, "pidfd_open", raising=False)


@pytest.fixture(params=["prlimit", "python"])
def launcher(request, monkeypatch):
    """Set limits by util-linux, or without it."""
    if request.param == "python":
        monkeypatch.setattr(_starting, "PRLIMIT", None)
    elif _starting.PRLIMIT is None:
        pytest.skip("there is no prlimit")


class Lifeline:
    """A pipe that processes hold open as long as they live; they say so on it first."""

    def __init__(self, path):
        os.mkfifo(path)
        self.path = path
        self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def read(self):
        ready, _, _ = select.select([self.fd], [], [], 30)
        assert ready, "a process that should be dead holds the line"
        return os.read(self.fd, 1_000)

    def heard(self):
        """Return all that was said, when nobody is left who could say more."""
        said = b""
        while data := self.read():
            said += data
        return said


@pytest.fixture
def line(tmp_path):
    made = Lifeline(tmp_path / "line")
    yield made
    os.close(made.fd)


def children():
    """Return the processes that are ours, also those that have ended and are not reaped."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            found.add((path.parent.name, path.read_text().rpartition(")")[2].split()[1]))
    return {process for process, parent in found if parent == str(os.getpid())}


def descriptors():
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


async def heard(line, text):
    """Wait until *text* is said."""
    said = b""
    while text not in said:
        said += await asyncio.to_thread(line.read)
        await asyncio.sleep(0)


def shell(script, *arguments):
    return [SHELL, "-c", textwrap.dedent(script), "sh", *map(str, arguments)]


def python(script, *arguments):
    return [sys.executable, "-I", "-c", textwrap.dedent(script), *map(str, arguments)]


async def refusal(*arguments, **fields):
    with pytest.raises(ProcessError) as caught:
        await run_process(*arguments, **fields)
    return str(caught.value)


# -- what a program gets -----------------------------------------------------------------------------------------


async def test_a_program_is_run_to_its_end(watched):
    done = await run_process(shell("echo out; echo err >&2; exit 3"))

    assert (done.exit_code, done.signal, done.stdout, done.stderr) == (3, None, b"out\n", b"err\n")
    assert (done.truncated, done.timed_out) == (False, False)


async def test_arguments_are_taken_as_they_are():
    words = ["$(id)", "`id`", "; id", "&& id", "*", "a b", "-n", "", "ü", "'\"\\", "\n", "\udcff"]

    done = await run_process(["printf", "%s|", *words])

    assert done.stdout == b"".join(os.fsencode(word) + b"|" for word in words)


async def test_arguments_are_taken_as_they_are_within_limits_too(launcher):
    words = ["--", "--cpu=1", "-h", "$(id)", "", "a b"]

    done = await run_process(["printf", "%s|", *words], limits=Limits(cpu_seconds=5))

    assert done.stdout == b"--|--cpu=1|-h|$(id)||a b|"


async def test_the_environment_is_what_is_given_and_a_safe_path(monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "hunter2")
    monkeypatch.setenv("LD_PRELOAD", "")

    done = await run_process(["env"], env={"A": "1 2", "LC_CTYPE": "C"})

    assert sorted(done.stdout.decode().splitlines()) == ["A=1 2", "LC_CTYPE=C", f"PATH={SAFE_PATH}"]


async def test_the_environment_is_the_same_within_limits(launcher, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "hunter2")

    done = await run_process(["env"], env={"A": "1"}, limits=Limits(cpu_seconds=5))
    other = await run_process(["env"], env={"LC_CTYPE": "C"}, limits=Limits(cpu_seconds=5))

    assert sorted(done.stdout.decode().splitlines()) == ["A=1", f"PATH={SAFE_PATH}"]
    assert sorted(other.stdout.decode().splitlines()) == ["LC_CTYPE=C", f"PATH={SAFE_PATH}"]


async def test_programs_are_looked_for_in_the_path_that_is_given(tmp_path):
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\necho mine")
    program.chmod(0o755)

    done = await run_process(["mine"], env={"PATH": str(tmp_path)})

    assert done.stdout == b"mine\n"


async def test_the_hosts_own_path_is_not_looked_in(tmp_path, monkeypatch):
    (tmp_path / "ls").write_text("#!/bin/sh\necho fake")
    (tmp_path / "ls").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)

    done = await run_process(["ls", str(tmp_path)])

    assert done.stdout == b"ls\n"


async def test_open_files_are_not_passed_on(tmp_path):
    with (tmp_path / "open").open("wb") as file:
        os.set_inheritable(file.fileno(), True)
        done = await run_process(python("import os; print(os.listdir('/proc/self/fd'))"))

        assert f"'{file.fileno()}'" not in done.stdout.decode()


async def test_signals_are_as_a_shell_would_leave_them(launcher):
    """Python ignores SIGPIPE and SIGXFSZ; a program that it starts must not."""
    done = await run_process(["grep", "SigIgn", "/proc/self/status"], limits=Limits(cpu_seconds=5))
    ignored = int(done.stdout.split()[1], 16)

    assert [one for one in (signal.SIGPIPE, signal.SIGXFSZ) if ignored >> (one - 1) & 1] == []


@pytest.mark.parametrize("data", [b"", b"short", b"x" * 3_000_000])
async def test_what_is_fed_comes_in(data):
    done = await run_process(["cat"], stdin=data, limits=Limits(output_bytes=5_000_000))

    assert done.stdout == data


async def test_a_program_that_does_not_listen_is_not_waited_for():
    done = await run_process(["true"], stdin=b"x" * 3_000_000)

    assert done.exit_code == 0


async def test_many_run_side_by_side(watched):
    done = await asyncio.gather(*(run_process(["echo", str(number)]) for number in range(20)))

    assert [int(each.stdout) for each in done] == list(range(20))


# -- where it runs -----------------------------------------------------------------------------------------------


async def test_it_runs_in_the_folder_that_is_given(tmp_path):
    done = await run_process(["pwd"], cwd=tmp_path)

    assert done.stdout.decode().strip() == str(Root(tmp_path).folder)


async def test_it_runs_in_an_open_folder_whatever_its_name_leads_to_by_then(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "inner").touch()
    with Root(tmp_path).open_folder("sub") as folder:
        (tmp_path / "sub").rename(tmp_path / "moved")
        (tmp_path / "sub").symlink_to("/")
        done = await run_process(["ls"], cwd=folder)
        within = await run_process(["ls"], cwd=folder, limits=Limits(cpu_seconds=5))

    assert (done.stdout, within.stdout) == (b"inner\n", b"inner\n")


@pytest.mark.parametrize("cwd", ["/nowhere/at/all", "/etc/passwd", "a\0b", 999])
async def test_a_folder_that_is_none_is_refused(cwd):
    message = await refusal(["pwd"], cwd=cwd)

    assert "passwd" not in message
    assert "nowhere" not in message


# -- what can't be started ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        ("ls -l", "expected a list"),
        (b"ls", "expected a list"),
        (None, "expected a list"),
        ({"ls"}, "expected a list"),
        ([], "is empty"),
        ([""], "is empty"),
        (["ls", "a\0b"], r"argv\[1\]: has a NUL"),
        (["l\0s"], r"argv\[0\]: has a NUL"),
        (["ls", 7], r"argv\[1\]: expected text, got int"),
        (["ls", b"x"], r"argv\[1\]: expected text, got bytes"),
        (["ls", "\ud800"], "half of a surrogate pair"),
        (["no-such-program"], "there is no program 'no-such-program'"),
        (["./ls"], "depends on the folder"),
        (["../bin/ls"], "depends on the folder"),
        (["/etc/passwd"], "'passwd' is no program"),
        (["/etc"], "'etc' is no program"),
        (["/nowhere/secret-place/x"], "'x' is no program"),
        ([".."], "there is no program"),
        (["echo", "x" * 200_000], "more than 131,071 bytes; give it as stdin"),
        (["echo", *["x" * 100_000] * 100], "Argument list too long"),
        (["echo", *["x"] * 2_000_000], "more than 100,000 words"),
    ],
)
async def test_what_can_not_be_started_is_refused(argv, why):
    with pytest.raises(ProcessError, match=why):
        await run_process(argv)


@pytest.mark.parametrize(
    ("env", "why"),
    [
        ({"A": 1}, "expected text"),
        ({"A=B": "x"}, "no name"),
        ({"": "x"}, "no name"),
        ({"A": "x\0"}, "NUL"),
        ({1: "x"}, "env"),
        ({"A": "x" * 200_000}, "more than"),
    ],
)
async def test_an_environment_that_can_not_be_is_refused(env, why):
    assert why in await refusal(["true"], env=env)


async def test_no_value_of_the_environment_is_told():
    assert "hunter2" not in await refusal(["true"], env={"TOKEN": "hunter2\0"})


@pytest.mark.parametrize("stdin", ["text", None, b"x" * 10_000_001])
async def test_what_can_not_be_fed_is_refused(stdin):
    assert "stdin: expected bytes" in await refusal(["cat"], stdin=stdin)


@pytest.mark.parametrize("limits", [Limits(), Limits(cpu_seconds=5)])
async def test_a_program_that_the_system_does_not_take_is_refused(tmp_path, limits, launcher):
    program = tmp_path / "broken"
    program.write_text("#!/nowhere/interpreter\n")
    program.chmod(0o755)

    message = await refusal([str(program)], limits=limits)

    assert "can't be started: No such file or directory" in message
    assert str(tmp_path) not in message


@pytest.mark.parametrize("name", ["", "a/b", "../sh", "a\0b", ".", ".."])
def test_only_a_plain_name_is_looked_for(name):
    assert find_program(name) is None


def test_a_program_is_found_in_absolute_folders_only(tmp_path, monkeypatch):
    for name, mode in (("tool", 0o755), ("text", 0o644)):
        (tmp_path / name).touch(mode)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)

    assert find_program("tool", str(tmp_path)) == str(tmp_path / "tool")
    assert find_program("tool", ".::relative") is None
    assert [find_program(name, str(tmp_path)) for name in ("text", "folder")] == [None, None]
    assert Path(find_program("sh")).name == "sh"


# -- limits ------------------------------------------------------------------------------------------------------


async def test_a_flood_is_stopped_at_its_limit(watched):
    done = await run_process(["yes"], limits=Limits(output_bytes=100_000))

    assert (len(done.stdout), done.truncated, done.timed_out, done.signal) == (100_000, True, False, "SIGTERM")


async def test_a_flood_of_errors_counts_as_well():
    done = await run_process(shell("echo fine; yes >&2"), limits=Limits(output_bytes=100_000))

    assert (len(done.stdout) + len(done.stderr), done.truncated) == (100_000, True)


async def test_a_flood_that_does_not_want_to_stop_is_stopped():
    done = await run_process(shell("trap '' TERM; yes"), limits=Limits(output_bytes=1_000))

    assert (len(done.stdout), done.truncated, done.signal) == (1_000, True, "SIGKILL")


@pytest.mark.parametrize(("limit", "truncated"), [(6, False), (5, True), (0, True)])
async def test_what_just_fits_is_not_truncated(limit, truncated):
    done = await run_process(["echo", "12345"], limits=Limits(output_bytes=limit))

    assert (done.stdout, done.truncated) == (b"12345\n"[:limit], truncated)


async def test_a_process_that_takes_too_long_is_ended(watched):
    done = await run_process(["sleep", "600"], limits=Limits(seconds=0.1))

    assert (done.exit_code, done.signal, done.timed_out) == (None, "SIGTERM", True)


async def test_a_process_that_says_nothing_more_is_still_waited_for():
    done = await run_process(python("import os; os.close(1); os.close(2); import time; time.sleep(0.2); os._exit(5)"))

    assert (done.exit_code, done.timed_out) == (5, False)


async def test_a_process_that_ends_itself_by_a_signal_is_told():
    done = await run_process(shell("kill -9 $$"))
    other = await run_process(shell(f"kill -{signal.SIGRTMIN + 1} $$"))

    assert (done.exit_code, done.signal) == (None, "SIGKILL")
    assert other.signal == f"signal {signal.SIGRTMIN + 1}"


async def test_time_to_compute_is_limited():
    done = await run_process(shell("while :; do :; done"), limits=Limits(cpu_seconds=1, seconds=120))

    assert (done.signal, done.timed_out) == ("SIGXCPU", False)


async def test_memory_is_limited(launcher):
    done = await run_process(python("bytearray(2_000_000_000)"), limits=Limits(memory_bytes=500_000_000))

    assert (done.exit_code, b"MemoryError" in done.stderr) == (1, True)


async def test_the_size_of_files_is_limited(launcher, tmp_path):
    done = await run_process(
        ["dd", "if=/dev/zero", "of=big", "bs=1000", "count=100"], cwd=tmp_path, limits=Limits(file_bytes=5_000)
    )

    assert (done.signal, (tmp_path / "big").stat().st_size) == ("SIGXFSZ", 5_000)


async def test_limits_hold_for_children_from_the_start(launcher):
    limits = Limits(open_files=32, cpu_seconds=9, memory_bytes=4_096_000_000, file_bytes=1_024_000)

    done = await run_process(shell("sh -c 'ulimit -n; ulimit -t; ulimit -v; ulimit -f; ulimit -c'"), limits=limits)

    assert done.stdout.split() == [b"32", b"9", b"4000000", b"2000", b"0"]


def test_limits_are_never_above_those_that_hold_already(run_python):
    code = textwrap.dedent("""
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        resource.setrlimit(resource.RLIMIT_CPU, (50, 50))
        from agentos_pack_common import Limits
        print(Limits(open_files=10_000, cpu_seconds=50).bounds())
    """)

    assert run_python(code) == "{'CPU': (50, 50), 'NOFILE': (100, 100), 'CORE': (0, 0)}"


@pytest.mark.parametrize(
    "fields",
    [
        {"seconds": 0},
        {"seconds": -1},
        {"seconds": float("inf")},
        {"seconds": float("nan")},
        {"seconds": 3_601},
        {"seconds": "1"},
        {"seconds": True},
        {"cpu_seconds": 0},
        {"cpu_seconds": 1.5},
        {"memory_bytes": 10},
        {"file_bytes": -1},
        {"output_bytes": -1},
        {"output_bytes": 1_000_000_000},
        {"open_files": 1},
        {"open_files": True},
    ],
)
def test_limits_that_make_no_sense_are_refused(fields):
    with pytest.raises(ValueError, match=next(iter(fields))):
        Limits(**fields)


# -- nothing stays -----------------------------------------------------------------------------------------------

HOLDING = 'exec 3>"$1"; echo alive >&3; '


async def test_what_runs_in_the_background_ends_with_its_shell(line, watched):
    done = await run_process(shell(HOLDING + "sleep 600 & sh -c 'sleep 600 & sleep 600' & echo done", line.path))

    assert (done.exit_code, done.stdout, line.heard()) == (0, b"done\n", b"alive\n")


async def test_the_whole_group_ends_when_the_time_is_up(line, watched):
    script = HOLDING + "trap '' TERM; sleep 600 & (trap '' TERM; while :; do sleep 1; done) & wait; sleep 600"

    done = await run_process(shell(script, line.path), limits=Limits(seconds=1))

    assert (done.timed_out, line.heard()) == (True, b"alive\n")


async def test_a_hundred_children_end_with_their_parent(line):
    script = """
        import os, sys, time
        line = os.open(sys.argv[1], os.O_WRONLY)
        for _ in range(100):
            if os.fork() == 0:
                time.sleep(600)
        os.write(line, b"alive")
    """

    done = await run_process(python(script, line.path))

    assert (done.exit_code, line.heard()) == (0, b"alive")


async def cancelled(task):
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_who_is_cancelled_leaves_no_process(line, watched):
    before = children()
    task = asyncio.create_task(run_process(shell(HOLDING + "sleep 600 & sleep 600", line.path)))
    await heard(line, b"alive")
    task.cancel()
    await cancelled(task)

    assert line.heard() == b""
    assert children() == before


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("trap '' TERM HUP INT; ", "while :; do sleep 1; done"),
        ("", "kill -STOP $$; sleep 600"),
        ("exec >&- 2>&-; trap '' TERM; ", "sleep 600 & wait; sleep 600"),
    ],
)
async def test_a_process_that_does_not_want_to_end_is_ended(first, then, line):
    task = asyncio.create_task(run_process(shell(first + HOLDING + then, line.path)))
    await heard(line, b"alive")
    task.cancel()
    await cancelled(task)

    assert line.heard() == b""


async def test_a_process_may_clear_up_when_it_is_ended(line, tmp_path):
    lock = tmp_path / "lock"
    script = 'trap \'rm "$2"; exit\' TERM; touch "$2"; exec 3>"$1"; echo alive >&3; while :; do sleep 0.01; done'
    task = asyncio.create_task(run_process(shell(script, line.path, lock)))
    await heard(line, b"alive")
    before = lock.exists()
    task.cancel()
    await cancelled(task)

    assert (before, lock.exists()) == (True, False)


async def test_who_is_cancelled_twice_leaves_no_process(line):
    """The second time comes while the process is given time to end by itself."""
    task = asyncio.create_task(run_process(shell("trap '' TERM; " + HOLDING + "while :; do sleep 1; done", line.path)))
    await heard(line, b"alive")
    task.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await cancelled(task)

    assert await asyncio.to_thread(line.heard) == b""


LOOP = """
import asyncio, os, sys
from agentos_pack_common import run_process

async def main():
    script = 'trap "" TERM; exec 3>"$1"; echo alive >&3; while :; do sleep 1; done'
    task = asyncio.create_task(run_process(["sh", "-c", script, "sh", sys.argv[1]]))
    await asyncio.to_thread(input)
    if sys.argv[2] == "cancelled":
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

asyncio.run(main())
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("none")
"""


@pytest.mark.parametrize("mode", ["running", "cancelled"])
def test_when_the_loop_ends_no_process_is_left(line, mode):
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", LOOP, str(line.path), mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        text=True,
    ) as process:
        alive = line.read()
        out, _ = process.communicate("go\n", timeout=60)

    assert (alive, out, process.returncode, line.heard()) == (b"alive\n", "none\n", 0, b"")


KILLED = """
import asyncio, sys
from agentos_pack_common import run_process

script = 'trap "" TERM HUP; (trap "" HUP; sleep 600) & exec 3>"$1"; echo alive >&3; sleep 600'
asyncio.run(run_process(["sh", "-c", script, "sh", sys.argv[1]]))
"""


def test_when_the_host_is_killed_no_process_is_left(line):
    with subprocess.Popen([sys.executable, "-c", KILLED, str(line.path)]) as process:
        alive = line.read()
        process.kill()

    assert (alive, line.heard()) == (b"alive\n", b"")


async def test_no_child_and_no_descriptor_is_left_whatever_happens(watched, tmp_path):
    async def everything():
        await run_process(["true"])
        await run_process(["yes"], limits=Limits(output_bytes=10))
        await run_process(["sleep", "600"], limits=Limits(seconds=0.01))
        await run_process(["true"], stdin=b"x" * 1_000_000)
        await refusal([str(tmp_path / "none")])
        await refusal(["true"], cwd=999)
        task = asyncio.create_task(run_process(["sleep", "600"], stdin=b"x" * 1_000_000))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await cancelled(task)

    await everything()
    before = descriptors(), children()
    await everything()

    assert (descriptors(), children()) == before


async def test_a_process_is_ended_if_it_can_not_be_watched(line, monkeypatch):
    def refuse(*_):
        raise NotImplementedError

    before = children()
    monkeypatch.setattr(asyncio.get_running_loop(), "add_reader", refuse)
    with pytest.raises(NotImplementedError):
        await run_process(shell(HOLDING + "sleep 600", line.path))

    assert children() == before


async def test_a_process_that_leaves_its_session_is_not_waited_for(tmp_path, line):
    """Nor is it ended: that is what the README says is not contained."""
    script = """
        import os, sys, time
        line = os.open(sys.argv[1], os.O_WRONLY)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.write(line, b"%d" % os.getpid())
                os.close(line)
                time.sleep(600)
            os._exit(0)
        os.wait()
        print("gone")
    """

    done = await run_process(python(script, line.path))
    os.kill(int(line.read()), signal.SIGKILL)

    assert (done.exit_code, done.stdout, done.timed_out) == (0, b"gone\n", False)


async def test_a_process_says_how_long_it_took():
    done = await run_process(["true"])

    assert 0 <= done.seconds <= Limits().seconds
