"""The threads that run transactions: as many as are needed, and gone with whom they serve."""

import asyncio
import gc
import threading

import pytest

from agentos.errors import StoreError
from agentos.store.transactions import StoreThreads, Transaction, Worker


class Plain(Worker):
    """A worker without a database."""

    def __init__(self):
        self.is_closed = False

    def run(self, transactions):
        for one in transactions:
            if one.take():
                one.run(len(transactions))

    def close(self):
        self.is_closed = True


def store_threads():
    return [thread for thread in threading.enumerate() if thread.name == "agentos-store"]


async def test_no_thread_is_started_before_it_is_needed():
    before = store_threads()
    StoreThreads(Plain, 3)

    assert store_threads() == before


async def test_there_are_as_many_threads_as_work_at_once_and_no_more_than_allowed():
    before, threads, arrived = len(store_threads()), StoreThreads(Plain, 3), threading.Barrier(3)
    for _ in range(5):
        await threads.run(Transaction(lambda _: None))
    alone = len(store_threads()) - before
    await asyncio.gather(*(threads.run(Transaction(lambda _: arrived.wait(60))) for _ in range(6)))
    together = len(store_threads()) - before
    await threads.close()

    assert (alone, together) == (1, 3)


async def test_closing_ends_the_threads_and_closes_their_connections():
    before, made = store_threads(), []

    def make():
        made.append(Plain())
        return made[-1]

    threads = StoreThreads(make, 2)
    await threads.run(Transaction(lambda _: None))
    await threads.close()

    assert (store_threads(), [one.is_closed for one in made]) == (before, [True])


async def test_after_closing_nothing_is_run():
    threads = StoreThreads(Plain, 1)
    await threads.close()

    with pytest.raises(StoreError, match="closed meanwhile"):
        await threads.run(Transaction(lambda _: None))


async def test_threads_that_were_dropped_end():
    before = set(store_threads())
    threads = StoreThreads(Plain, 2)
    await threads.run(Transaction(lambda _: None))
    (thread,) = set(store_threads()) - before
    del threads
    gc.collect()
    await asyncio.to_thread(thread.join, 60)

    assert not thread.is_alive()


async def test_a_group_is_what_waits_at_that_moment_and_never_more_than_allowed():
    threads, begun, release = StoreThreads(Plain, 1, group=4), threading.Event(), threading.Event()
    first = asyncio.create_task(threads.run(Transaction(lambda _: begun.set() or release.wait(60))))
    while not begun.is_set():
        await asyncio.sleep(0)
    others = [asyncio.create_task(threads.run(Transaction(lambda size: size))) for _ in range(6)]
    await asyncio.sleep(0)
    release.set()
    await first
    sizes = await asyncio.gather(*others)
    await threads.close()

    assert sizes == [4, 4, 4, 4, 2, 2]


def test_a_result_for_a_loop_that_was_closed_is_dropped():
    loop, release, threads = asyncio.new_event_loop(), threading.Event(), None

    async def begin():
        nonlocal threads
        threads = StoreThreads(Plain, 1)
        running = asyncio.ensure_future(threads.run(Transaction(lambda _: release.wait(60))))
        await asyncio.sleep(0)
        return running

    running = loop.run_until_complete(begin())
    running._log_destroy_pending = False
    loop.close()
    thread = threads._started[0][0]
    release.set()
    del running, threads
    while thread.is_alive():  # it has the transaction in its hands until it notices that nobody wants it
        gc.collect()
        thread.join(0.01)
