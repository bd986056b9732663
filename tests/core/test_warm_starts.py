"""A program that begins warm finds what one finds that begins as ever: `warm_starts` changes nothing but the time."""

import json
import os
import signal
import subprocess
import sys

import pytest
import warm_starts
from terminal import environment, run_in_terminal

FACTS = """
import json, os, resource, signal, sys, warnings
streams = [getattr(sys, name) for name in ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")]
told = {
    "argv": sys.argv, "orig_argv": sys.orig_argv[1:], "path": sys.path, "flags": str(sys.flags),
    "warnoptions": sys.warnoptions, "cwd": os.getcwd(), "environ": dict(os.environ), "main": sorted(globals()),
    "parent": os.getppid(), "leads": os.getsid(0) == os.getpid(), "files": sorted(os.listdir("/proc/self/fd"))[:-1],
    "signals": [str(signal.getsignal(number)) for number in (2, 13, 15)], "mask": os.umask(0o22),
    "streams": [[one.encoding, one.errors, one.line_buffering, one.write_through, one.newlines, one.mode, one.name]
                for one in streams],
    "buffers": [type(one.buffer).__name__ for one in streams], "terminals": [os.isatty(number) for number in range(3)],
}
print(json.dumps(told))
"""
linux = pytest.mark.skipif(sys.platform != "linux", reason="programs begin as ever elsewhere")


@pytest.fixture(params=["warm", "as ever"])
def how(request, monkeypatch):
    monkeypatch.setattr(
        subprocess.Popen,
        "_execute_child",
        {"warm": warm_starts._execute_child, "as ever": warm_starts._as_ever}[request.param],
    )
    return request.param


@linux
@pytest.mark.parametrize("options", [["-W", "error"], ["-u"], []])
@pytest.mark.parametrize("form", ["text", "file"])
def test_a_program_finds_what_it_finds_otherwise(options, form, monkeypatch, tmp_path):
    (tmp_path / "facts.py").write_text(FACTS)
    program = {"text": ["-c", FACTS], "file": [str(tmp_path / "facts.py")]}[form]
    monkeypatch.setattr(warm_starts, "_ours", lambda *_, **__: True)
    told = []
    for start in (warm_starts._execute_child, warm_starts._as_ever):
        monkeypatch.setattr(subprocess.Popen, "_execute_child", start)
        argv, env = [sys.executable, *options, *program, "one", "two"], environment({"WORD": "a"})
        done = subprocess.run(argv, cwd=tmp_path, env=env, input="", stdout=-1, start_new_session=True, check=True)
        told.append(json.loads(done.stdout))

    assert told[0] == told[1]


@linux
def test_a_program_in_a_terminal_finds_what_it_finds_otherwise(monkeypatch):
    told = []
    for start in (warm_starts._execute_child, warm_starts._as_ever):
        monkeypatch.setattr(subprocess.Popen, "_execute_child", start)
        told.append(json.loads(run_in_terminal([sys.executable, "-W", "error", "-c", FACTS])))

    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("program", "code"),
    [("raise SystemExit(7)", 7), ("1 / 0", 1), ("import os, signal; os.kill(os.getpid(), 9)", -signal.SIGKILL)],
)
def test_its_end_is_told_to_who_started_it(how, program, code):
    with subprocess.Popen([sys.executable, "-W", "error", "-c", program], stderr=subprocess.PIPE) as child:
        child.communicate()

    assert child.returncode == code
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)
