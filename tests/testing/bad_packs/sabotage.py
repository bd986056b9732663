"""Packs that clean up only if all of them was there."""

import asyncio
import threading

from testing.parts import count_letters, pack, undo

from agentos import Descriptor


def leaves_cleaning_up_to_a_part():
    tasks = []

    def begin():
        tasks.append(asyncio.create_task(asyncio.sleep(3600), name="poller"))

    async def end():
        task = tasks.pop()
        task.cancel()
        await asyncio.wait([task])

    return pack(Descriptor("tool", "count_letters", count_letters, on_deactivate=end), on_activate=begin)


def leaves_ending_work_to_a_part():
    over, work = threading.Event(), []
    undo.append(over.set)

    def begin():
        over.clear()
        work.append(asyncio.get_running_loop().run_in_executor(None, over.wait, 60))

    async def end():
        over.set()
        await work.pop()

    return pack(Descriptor("tool", "count_letters", count_letters, on_deactivate=end), on_activate=begin)
