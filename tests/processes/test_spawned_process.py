"""A process that is started here ends with all that it started, whatever it does and however this one goes."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agentos.processes import spawned_process
from agentos.processes.lines import LineSplitter
from agentos.processes.programs import ProgramLimits
from agentos.processes.spawned_process import CannotStartError, ChildProcess, start

HERE = Path(__file__).parent


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Noted:
    """A process, and the lines that it wrote."""

    def __init__(self, script, **kwargs):
        self.lines = []
        self._script = script
        self.process = ChildProcess(grace=kwargs.pop("grace", 30.0), line_limit=100, note=self._note)
        self._more = asyncio.Event()

    def _note(self, fd, line, is_whole):
        self.lines.append((fd, line, is_whole))
        self._more.set()

    async def __aenter__(self):
        await start(self.process, sys.executable, ["-c", self._script], {}, None)
        return self

    async def __aexit__(self, *_):
        await self.process.stop()

    async def line(self):
        while not self.lines:
            self._more.clear()
            await self._more.wait()
        return self.lines.pop(0)


async def test_lines_of_both_streams_are_noted_and_what_is_too_long_is_cut():
    async with Noted("import sys; print('out', flush=True); sys.stderr.write('x' * 1000 + '\\n')") as child:
        found = {(await child.line())[0:3] for _ in range(2)}

    assert (1, b"out", True) in found
    assert next(len(line) for fd, line, is_whole in found if fd == 2 and not is_whole) < 300


async def test_the_last_line_counts_without_its_end():
    async with Noted("print('a last word', end='')") as child:
        assert await child.line() == (1, b"a last word", True)


async def test_how_it_ended_is_said():
    async with Noted("raise SystemExit(7)") as child:
        await child.process.exited.wait()

        assert await child.process.how_it_ended() == ("the process exited with code 7", 7)


@pytest.mark.parametrize("code", [0, 1])
async def test_a_process_that_exits_was_ended_by_no_signal(code):
    async with Noted(f"raise SystemExit({code})") as child:
        await child.process.exited.wait()

        assert await child.process.how_it_ended() == (f"the process exited with code {code}", code)


async def test_what_floods_has_to_wait_again_and_again_and_is_read_to_its_end(monkeypatch):
    monkeypatch.setattr(spawned_process, "_AT_ONCE", 10_000)
    monkeypatch.setattr(spawned_process, "_WINDOW", 0.01)
    script = "import sys\nfor _ in range(20): sys.stdout.write(('x' * 99 + '\\n') * 2_000)\nprint('the end')"
    async with Noted(script) as child:
        async with asyncio.timeout(60):
            while (await child.line())[1] != b"the end":
                pass


async def test_a_stubborn_process_is_killed_with_its_children():
    script = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()"
    async with Noted(script, grace=0.05) as child:
        await child.line()
        pid = child.process.pid

    assert not is_running(pid)
    assert child.process._guardian._process is None


async def test_what_can_not_be_started_says_why():
    process = ChildProcess(grace=1.0, line_limit=100, note=print)

    with pytest.raises(CannotStartError, match="is not on PATH"):
        await start(process, "no-such-command-anywhere", [], {}, None)


def test_a_child_that_ignores_its_input_and_its_own_child_end_with_a_host_that_is_killed():
    host = subprocess.Popen([sys.executable, str(HERE / "orphaning.py")], stdout=subprocess.PIPE, text=True)
    try:
        child, inner = map(int, host.stdout.readline().split())
        watches = [os.pidfd_open(pid) for pid in (child, inner)]
        os.kill(host.pid, signal.SIGKILL)
        for watch in watches:
            assert_ended(watch)
    finally:
        host.kill()
        host.wait()
        host.stdout.close()

    assert not is_running(child)
    assert not is_running(inner)


def assert_ended(watch):
    import select

    try:
        assert select.select([watch], [], [], 60.0)[0]
    finally:
        os.close(watch)


@pytest.mark.parametrize(("length", "is_whole"), [(9, True), (10, True), (11, False)])
def test_a_line_of_just_the_longest_length_is_whole(length, is_whole):
    assert LineSplitter(10, 2).feed(b"x" * length + b"\n")[0][1] is is_whole


@pytest.mark.parametrize(("seconds", "is_limit"), [(0, False), (0.1, True), (3_600, True), (3_601, False)])
def test_a_program_has_an_hour_at_the_most(seconds, is_limit):
    with contextlib.nullcontext() if is_limit else pytest.raises(ValueError, match="seconds: expected"):
        ProgramLimits(seconds=seconds)
