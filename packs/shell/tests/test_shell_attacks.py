"""Programs that are not what they are called, and programs that take what they can."""

import asyncio
import fcntl
import os
import sys
from pathlib import Path

import pytest
from agentos_pack_common import OptionsError, find_program
from agentos_pack_shell.policy import NotAllowedError, read_policy

from agentos import ToolCall

HELLO = "print('hello')"
EVIL = "print('evil')"


def policy(root, *allow, **options):
    return read_policy({"root": str(root), "allow": list(allow), **options})


# -- which file runs ---------------------------------------------------------------------------------------------


async def test_a_script_in_the_folder_is_not_run_for_a_program(hosting, run, root, program):
    for name in ("echo", "ls"):
        (root / name).symlink_to(program(EVIL, name))
    async with hosting("echo *", env={"PATH": f".:{root}:/usr/bin:/bin"}) as host:
        result = await run(host, "echo", "hello")

    assert result.output["stdout"] == "hello\n"


@pytest.mark.parametrize("word", ["./echo", "bin/echo", "../bin/echo", "echo/", "~/echo"])
def test_a_program_may_not_depend_on_the_folder(root, word):
    with pytest.raises(NotAllowedError, match="depends on the folder; give the plain name"):
        policy(root, "echo *").allow([word, "x"])


def test_the_path_of_an_allowed_program_is_that_program(root):
    real = os.path.realpath(find_program("echo"))

    assert policy(root, "echo *").allow([real, "x"]).argv == (find_program("echo"), "x")


def test_a_link_to_an_allowed_program_runs_the_program_itself(root):
    (root / "echo").symlink_to(find_program("echo"))

    assert policy(root, "echo *").allow([str(root / "echo"), "x"]).argv == (find_program("echo"), "x")


def test_a_link_called_like_an_allowed_program_is_not_that_program(root):
    (root / "echo").symlink_to(find_program("rm"))

    with pytest.raises(NotAllowedError, match="is not allowed"):
        policy(root, "echo *").allow([str(root / "echo"), "x"])


def test_a_copy_called_like_an_allowed_program_is_not_that_program(program, root):
    with pytest.raises(NotAllowedError, match="is not allowed"):
        policy(root, "echo *").allow([program(EVIL, "echo"), "x"])


def test_one_file_with_many_names_is_allowed_by_name_too(tmp_path, program, root):
    """With busybox, and with coreutils in one file, `ls` and `rm` really are the same program."""
    box = Path(program("import sys; print(sys.argv[0])", "box"))
    for name in ("list", "remove"):
        (box.parent / name).symlink_to(box)
    listing = policy(root, f"{box.parent}/list *")

    assert listing.allow(["list", "x"]).argv == (f"{box.parent}/list", "x")
    for word in ("remove", f"{box.parent}/remove", str(box)):
        with pytest.raises(NotAllowedError, match="is not allowed"):
            listing.allow([word, "x"])


def test_a_program_that_became_another_file_is_not_run(tmp_path, program, root):
    (tmp_path / "tool").symlink_to(program(HELLO, "good"))
    found = policy(root, f"{tmp_path}/tool")
    (tmp_path / "tool").unlink()
    (tmp_path / "tool").symlink_to(program(EVIL, "bad"))

    with pytest.raises(NotAllowedError, match="is another file than when the pack was loaded"):
        found.allow(["tool"])


def test_a_program_in_the_root_fails_the_load(root, program):
    Path(program(EVIL, "tool")).rename(root / "tool")

    with pytest.raises(OptionsError, match=r"options\.allow\[0\]: 'tool' lies in root, where it can be replaced"):
        policy(root, f"{root}/tool")


def test_a_link_in_the_root_fails_the_load(root, program):
    (root / "tool").symlink_to(program(HELLO, "good"))

    with pytest.raises(OptionsError, match="lies in root"):
        policy(root, f"{root}/tool")


def test_a_program_that_is_not_installed_is_told_as_such(root):
    with pytest.raises(NotAllowedError, match="'no-such-program' is allowed, but not installed here"):
        policy(root, "no-such-program").allow(["no-such-program"])


# -- where it runs -----------------------------------------------------------------------------------------------


async def test_a_folder_outside_is_refused(hosting, run, root, tmp_path):
    (root / "out").symlink_to(tmp_path)
    async with hosting("pwd") as host:
        for cwd in ("..", "/", "out", "out/bin", "a/../..", str(tmp_path)):
            result = await run(host, "pwd", cwd=cwd)

            assert not result.success, cwd
            assert str(tmp_path) not in result.content.replace(repr(cwd), "")


async def test_a_link_to_a_folder_inside_is_followed(hosting, run, root):
    (root / "real").mkdir()
    (root / "link").symlink_to("real")
    async with hosting("pwd") as host:
        result = await run(host, "pwd", cwd="link")

    assert result.output["stdout"] == f"{root}/real\n"


@pytest.mark.parametrize("cwd", ["file", "missing", "fifo", ".ssh", "a\0b"])
async def test_what_is_no_folder_is_refused(hosting, run, root, cwd):
    (root / "file").touch()
    (root / ".ssh").mkdir()
    os.mkfifo(root / "fifo")
    async with hosting("pwd") as host:
        assert not (await run(host, "pwd", cwd=cwd)).success


# -- what it gets ------------------------------------------------------------------------------------------------


async def test_nothing_of_the_environment_leaks(hosting, run, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "leaked")
    monkeypatch.setenv("LD_PRELOAD", "/tmp/evil.so")
    async with hosting("env", env={"GREETING": "hello"}) as host:
        result = await run(host, "env")

    names = {line.partition("=")[0] for line in result.output["stdout"].splitlines()}
    assert names == {"PATH", "GREETING"}


async def test_no_descriptor_of_the_host_leaks(hosting, run, program, root):
    listing = program("import os; print(sorted(int(fd) for fd in os.listdir('/proc/self/fd'))[:4])")
    with (root / "secret").open("w"):
        async with hosting(listing) as host:
            result = await run(host, "program")

    assert result.output["stdout"] == "[0, 1, 2, 3]\n"  # the last is the listing's own


async def test_there_is_no_terminal(hosting, run, program):
    asking = program("try:\n    open('/dev/tty')\nexcept OSError as error:\n    print(error.strerror)")
    async with hosting(asking) as host:
        assert "No such device" in (await run(host, "program")).output["stdout"]


@pytest.mark.parametrize("word", ["$HOME", "`id`", "$(id)", "; id", "| id", "> x", "*", "~", "a b", "é\n'\""])
async def test_no_shell_takes_an_argument_apart(hosting, run, word):
    async with hosting("printf *") as host:
        result = await run(host, "printf", "%s", word)

    assert (result.output["stdout"], result.output["exit_code"]) == (word, 0)


@pytest.mark.parametrize("words", [["echo", "a\0b"], ["echo\0", "x"]], ids=ascii)
async def test_what_can_be_no_argument_is_refused(hosting, run, words):
    async with hosting("echo *") as host:
        assert not (await run(host, *words)).success


@pytest.mark.parametrize(
    "arguments",
    [{"argv": ["echo", "\ud800"]}, {"argv": ["pwd"], "cwd": "\ud800"}, {"argv": ["cat"], "stdin": "\ud800"}],
    ids=["argv", "cwd", "stdin"],
)
async def test_half_a_character_is_no_argument(hosting, arguments):
    async with hosting("echo *", "pwd", "cat") as host:
        result = await host.tools.process_tool_call(ToolCall("run_command", arguments))

    assert result.error.type == "InvalidArguments"


async def test_output_is_plain(hosting, run):
    async with hosting("printf *") as host:
        result = await run(host, "printf", r"\033[31mred\033[0m \342\200\256x \377\000.")

    assert result.output["stdout"] == "red x \ufffd."


# -- what it takes -----------------------------------------------------------------------------------------------


async def test_a_flood_is_cut_and_ended(hosting, run):
    async with hosting("yes", outputBytes=1_000) as host:
        result = await run(host, "yes")

    assert (len(result.output["stdout"]), result.output["truncated"]) == (1_000, True)
    assert result.output["exit_code"] is None


async def test_a_flood_of_both_kinds_is_cut_as_one(hosting, run, program):
    both = program("import sys\nwhile True:\n    sys.stdout.write('o' * 99); sys.stderr.write('e' * 99)")
    async with hosting(both, outputBytes=1_000) as host:
        output = (await run(host, "program")).output

    assert len(output["stdout"]) + len(output["stderr"]) == 1_000


async def test_a_program_that_takes_too_long_is_ended(hosting, run):
    async with hosting("sleep *") as host:
        result = await run(host, "sleep", "600", timeout=0.2)

    assert result.output["timed_out"]
    assert result.output["signal"] in {"SIGTERM", "SIGKILL"}


async def test_a_program_that_will_not_end_is_ended(hosting, run, program):
    stubborn = program("import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)")
    async with hosting(stubborn) as host:
        assert (await run(host, "program", timeout=0.3)).output["timed_out"]


FORKS = """
import fcntl, os, sys, time
held = open(sys.argv[1])
fcntl.flock(held, fcntl.LOCK_SH)
for _ in range(30):
    if os.fork() == 0:
        held = open(sys.argv[1])
        fcntl.flock(held, fcntl.LOCK_SH)
        os.write(1, b'x')
        time.sleep(600)
print('forked', flush=True)
time.sleep(0 if sys.argv[2] == 'leave' else 600)
"""


@pytest.mark.parametrize("how", ["stay", "leave"])
async def test_what_a_program_started_ends_with_it(hosting, run, program, root, how):
    lock = root / "lock"
    lock.touch()
    async with hosting(f"{program(FORKS)} *") as host:
        result = await run(host, "program", str(lock), how, timeout=1.5)

    assert result.success, result.content
    with lock.open("w") as file:
        async with asyncio.timeout(10):  # nobody holds it any more, or this waits in vain
            await asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX)


async def test_a_cancelled_call_ends_its_program(hosting, run, program, root):
    lock, fifo = root / "lock", root / "fifo"
    lock.touch()
    os.mkfifo(fifo)
    waiting = program(
        "import fcntl, sys, time\nheld = open('lock')\nfcntl.flock(held, fcntl.LOCK_SH)\n"
        "open('fifo', 'w').close()\ntime.sleep(600)"
    )
    async with hosting(waiting) as host:
        call = asyncio.create_task(run(host, "program"))
        await asyncio.to_thread(fifo.read_bytes)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    with lock.open("w") as file:
        async with asyncio.timeout(10):
            await asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX)


async def test_memory_is_bounded(hosting, run, program):
    async with hosting(program("x = bytearray(400_000_000); print(len(x))"), memoryMegabytes=200) as host:
        output = (await run(host, "program")).output

    assert (output["exit_code"], output["stdout"]) == (1, "")
    assert "MemoryError" in output["stderr"]


async def test_files_are_bounded(hosting, run, program, root):
    filling = program("with open('big', 'wb', buffering=0) as f:\n    while f.write(bytes(100_000)): pass")
    async with hosting(filling, fileMegabytes=1) as host:
        assert (await run(host, "program")).success

    assert (root / "big").stat().st_size <= 1_000_000


async def test_computing_is_bounded_for_each_process(hosting, run, program):
    async with hosting(program("import resource; print(resource.getrlimit(resource.RLIMIT_CPU)[0])")) as host:
        output = (await run(host, "program", timeout=5)).output

    assert output["stdout"] == "6\n"


async def test_a_timeout_above_the_operators_is_refused(hosting, run):
    async with hosting("sleep *", maxSeconds=5) as host:
        result = await run(host, "sleep", "0", timeout=6)

    assert "timeout: expected at most 5 seconds, which is the operator's limit" in result.content


def test_the_interpreter_of_a_script_is_the_programs_own_business(root, program):
    """A rule is about what is started: a program allowed to interpret is allowed to do anything."""
    rule = {"command": f"{sys.executable} *", "runsOthers": True}

    assert policy(root, rule).allow([Path(sys.executable).name, "-c", "anything"])
