"""Packs that leave something behind."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from testing.parts import Text, pack, reads, undo


def calling(leave):
    """Return a pack whose tool does *leave* the first time that it is called."""
    done = []

    @reads
    async def count_letters(text: Text) -> int:
        """Count the letters of a text, blanks included."""
        if not done:
            done.append(leave())
        return len(text)

    return pack(count_letters)


def task():
    return calling(lambda: asyncio.create_task(asyncio.sleep(3600), name="poller"))


def thread():
    def leave():
        over = threading.Event()
        undo.append(over.set)
        threading.Thread(target=over.wait, args=(60,), name="poller", daemon=True).start()

    return calling(leave)


def work_in_a_thread_of_the_loop():
    def leave():
        over = threading.Event()
        undo.append(over.set)
        return asyncio.get_running_loop().run_in_executor(None, over.wait, 60)

    return calling(leave)


_begun = []


def work_that_begins_with_it():
    def begin():
        if not _begun:
            over = threading.Event()
            undo.append(over.set)
            _begun.append(asyncio.get_running_loop().run_in_executor(None, over.wait, 60))

    return pack(on_activate=begin)


_started = []


def thread_of_the_whole_process():
    """What is started once, however often the pack is loaded, is seen the first time."""

    def begin():
        if not _started:
            over = threading.Event()
            undo.append(over.set)
            _started.append(threading.Thread(target=over.wait, args=(60,), name="poller", daemon=True))
            _started[0].start()

    return pack(on_activate=begin)


def descriptor():
    def leave():
        file = Path(os.devnull).open()  # noqa: SIM115 - that it stays open is what is wrong
        undo.append(file.close)
        return file

    return calling(leave)


def lost_file():
    def leave():
        Path(os.devnull).open()  # noqa: SIM115 - as above

    return calling(leave)


def lost_coroutine():
    def leave():
        asyncio.sleep(0)

    return calling(leave)


def lost_exception():
    async def fail():
        raise ValueError("nobody looks at this")

    def leave():
        asyncio.create_task(fail())  # noqa: RUF006 - that nobody keeps it is what is wrong

    return calling(leave)


def child():
    def leave():
        process = subprocess.Popen(["sleep", "60"])
        undo.extend([process.kill, process.wait])
        return process

    return calling(leave)


def temporary_file():
    return calling(lambda: os.close(tempfile.mkstemp()[0]))


def file_in_the_working_folder():
    return calling(lambda: Path("notes.txt").write_text("mine"))


def log_handler():
    def leave():
        handler = logging.StreamHandler()
        logging.getLogger("example").addHandler(handler)
        undo.append(lambda: logging.getLogger("example").removeHandler(handler))

    return calling(leave)


def log_level():
    return calling(lambda: logging.getLogger().setLevel(logging.ERROR))


def signal_handler():
    return calling(lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN))


def environment():
    return calling(lambda: os.environ.update(EXAMPLE_MODE="on"))


def working_folder():
    return calling(lambda: os.chdir("/"))


def working_folder_that_is_gone():
    return calling(lambda: Path.cwd().rmdir())


def import_path():
    return calling(lambda: sys.path.append("/nowhere"))


def hook():
    return calling(lambda: setattr(sys, "excepthook", print))


def umask():
    return calling(lambda: os.umask(0o027))


def process_in_the_background():
    def leave():
        done = subprocess.run(["sh", "-c", "sleep 60 >&- 2>&- & echo $!"], check=True, capture_output=True, text=True)
        undo.append(lambda: os.kill(int(done.stdout), signal.SIGKILL))

    return calling(leave)
