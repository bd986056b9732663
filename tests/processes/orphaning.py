"""A host that is killed: its child ignores its input and every signal it can, and has a child of its own."""

import asyncio
import sys

from agentos.processes.spawned_process import ChildProcess, start

STUBBORN = """
import signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
inner = subprocess.Popen([sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"],
    stdout=subprocess.PIPE)
inner.stdout.readline()
print(inner.pid, flush=True)
time.sleep(600)
"""


async def main():
    said = asyncio.get_running_loop().create_future()
    process = ChildProcess(grace=0.1, line_limit=100, note=lambda fd, line, is_whole: said.set_result(line))
    await start(process, sys.executable, ["-c", STUBBORN], {}, None)
    sys.stdout.write(f"{process.pid} {(await said).decode()}\n")
    sys.stdout.flush()
    await asyncio.sleep(600)


asyncio.run(main())
