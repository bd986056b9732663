"""A worker limits its own process before anything foreign runs, and never outlives its host."""

import json
import os
import resource
import signal
import subprocess
import sys

import pytest
from prepared import PREPARED, run_prepared, spec, told_by

from agentos import WorkerLimits
from agentos.workers import start
from agentos.workers.process_limits import OUT_OF_MEMORY, limit_reached

MIB = 1024 * 1024
GREEDY = """
    from agentos.workers.process_limits import end_if_out_of_memory
    try:
        kept = [bytearray(8 * 1024 * 1024) for _ in range(1_000)]
    except MemoryError:
        end_if_out_of_memory()
        print("goes on")
"""


def test_a_worker_that_needs_more_memory_than_it_may_have_ends_and_says_so():
    done = run_prepared(GREEDY, {"limits": {"memory": 256 * MIB}})

    assert done.returncode == OUT_OF_MEMORY, done.stderr
    assert limit_reached(done.returncode, WorkerLimits(memory=256 * MIB)) == (
        "it needed more than its 268,435,456 bytes of memory (worker.memory)"
    )


def test_a_memory_error_of_a_worker_without_a_limit_is_the_packs_own():
    assert told_by(
        """
        from agentos.workers.process_limits import end_if_out_of_memory
        end_if_out_of_memory()
        print("goes on")
        """
    ) == ["goes on"]


def test_threads_and_what_is_only_reserved_do_not_count_as_memory():
    code = """
        import mmap, threading
        reserved = mmap.mmap(-1, 1024 * 1024 * 1024, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
        threads = [threading.Thread(target=bytearray, args=(1024,)) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print("done")
    """
    if not sys.platform.startswith("linux"):
        pytest.skip("other systems count addresses")

    assert told_by(code, {"limits": {"memory": 256 * MIB}}) == ["done"]


def test_a_worker_that_computes_for_too_long_is_ended():
    done = run_prepared("while True: pass", {"limits": {"cpu_seconds": 1}})

    assert done.returncode == -signal.SIGXCPU
    assert limit_reached(done.returncode, WorkerLimits(cpu_seconds=1)) == (
        "it computed for more than its 1 seconds (worker.cpu_seconds)"
    )


def test_open_files_are_limited_for_good():
    code = """
        import resource
        files = []
        try:
            while True:
                files.append(open("/dev/null"))
        except OSError as error:
            print(error.strerror, len(files) < 32)
        print(resource.getrlimit(resource.RLIMIT_NOFILE))
    """

    assert told_by(code, {"limits": {"open_files": 32}}) == ["Too many open files True", "(32, 32)"]


def test_limits_are_never_above_those_that_hold_already():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[1])"

    assert told_by(code, {"limits": {"open_files": hard + 1}}) == [str(hard)]


def test_a_worker_leaves_no_core_dump_which_would_hold_secrets():
    assert told_by("import resource; print(resource.getrlimit(resource.RLIMIT_CORE))") == ["(0, 0)"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the signal of a parent's death is Linux's")
def test_a_worker_is_killed_with_its_host():
    worker = PREPARED.format(start=start.__file__) + "import signal; print('up'); signal.pause()"
    host = f"""
import json, os, subprocess, sys
said = json.loads(sys.argv[1]) | {{"parent": os.getpid()}}
subprocess.run([sys.executable, "-P", "-S", "-u", "-c", {worker!r}, json.dumps(said)])
"""
    with subprocess.Popen([sys.executable, "-c", host, json.dumps(spec())], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"up\n"
        process.kill()

        assert process.stdout.read() == b"", "the end of the output comes when all who hold it are gone"


def test_a_worker_whose_host_is_gone_already_ends_at_once():
    done = run_prepared("print('runs')", {"parent": os.getppid() or 1})

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("code", [None, 0, 3, -signal.SIGSEGV, -signal.SIGKILL, -signal.SIGXCPU, OUT_OF_MEMORY])
def test_an_end_without_a_limit_is_no_limits_doing(code):
    assert limit_reached(code, WorkerLimits()) is None
