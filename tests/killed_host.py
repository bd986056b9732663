"""A host that is killed: has a worker or a bridged server, says which processes there are, and waits.

Usage: killed_host.py worker FOLDER | killed_host.py server
"""

import asyncio
import sys

from bridging import bridged, hostile
from working import call, entry, worker_of, working


def say(*pids):
    sys.stdout.write(" ".join(map(str, pids)) + "\n")
    sys.stdout.flush()


async def with_worker(folder):
    async with working(entry(folder)) as host:
        child = (await call(host, "start_child")).output
        say(worker_of(host).pid, child)
        await call(host, "wait")


async def with_server():
    async with bridged({"plain": hostile("stubborn")}) as host:
        say((await call(host, "pid")).content)
        await asyncio.Event().wait()


asyncio.run({"worker": with_worker, "server": with_server}[sys.argv[1]](*sys.argv[2:]))
