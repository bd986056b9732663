"""A task that is cancelled anywhere leaves the store as good as before."""

import asyncio
import random
import threading

import anyio
import pytest
from sqlalchemy import func, select

from agentos.store import Store, schema

ROUNDS = 400


def record(seq):
    return {"seq": seq, "prev": "", "hash": "", "body": ""}


async def write_pair(store, number):
    """Write two rows that belong together."""

    def write(connection):
        connection.execute(schema.audit.insert(), record(2 * number))
        connection.execute(schema.audit.select().limit(1))
        connection.execute(schema.audit.insert(), record(2 * number + 1))

    await store.write(write)


async def look(store):
    return await store.read(lambda connection: set(connection.execute(select(schema.audit.c.seq)).scalars()))


async def cancel_after(task, steps, times):
    """Cancel *task* after so many turns of the event loop, and again while it cleans up."""
    for _ in range(times):
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()


async def disturb(store, chance):
    """Run writers and readers that are cancelled at random points; return the numbers of those that came through."""
    through = []

    async def work(number):
        await write_pair(store, number)
        through.append(number)

    for first in range(0, ROUNDS, 4):
        tasks = [asyncio.create_task(work(number)) for number in range(first, first + 4)]
        tasks.append(asyncio.create_task(look(store)))
        cancelling = [cancel_after(task, chance.randrange(150), chance.randrange(1, 4)) for task in tasks]
        await asyncio.gather(*cancelling)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        unexpected = [one for one in results if isinstance(one, Exception)]
        assert unexpected == []
    return through


@pytest.mark.parametrize("seed", [1, 2])
async def test_transactions_cancelled_at_random_points_are_whole_or_not_there(any_store, seed):
    await any_store.open()
    through = await disturb(any_store, random.Random(seed))
    found = await look(any_store)

    assert {number // 2 for number in found if number ^ 1 not in found} == set()
    assert {2 * number for number in through} <= found


async def test_after_many_cancellations_every_connection_is_free(any_store):
    await any_store.open()
    await disturb(any_store, random.Random(3))
    arrived = threading.Barrier(1 if not any_store.is_durable else 5)

    def together(connection):
        connection.execute(select(func.count()).select_from(schema.audit)).scalar()
        arrived.wait(60)

    uses = [any_store.write if number == 0 else any_store.read for number in range(arrived.parties)]
    await asyncio.gather(*(use(together) for use in uses))

    assert not any_store._session._users


class Halted:
    """A function that is being run, until it is let go."""

    def __init__(self):
        self.begun, self.release = threading.Event(), threading.Event()

    def __call__(self, connection):
        self.begun.set()
        self.release.wait()
        connection.execute(schema.audit.insert(), record(1))

    async def under_way(self, store):
        task = asyncio.create_task(store.write(self))
        while not self.begun.is_set():
            await asyncio.sleep(0)
        return task


async def test_a_cancelled_waiter_does_not_keep_others_from_their_turn(sqlite_url):
    store, halted = Store(sqlite_url), Halted()
    writing = await halted.under_way(store)
    waiting = [asyncio.create_task(write_pair(store, number)) for number in range(1, 4)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    waiting[1].cancel()
    dropped = await asyncio.gather(*waiting[:2], return_exceptions=True)
    was_running = not writing.done()
    halted.release.set()
    await asyncio.gather(writing, waiting[2])
    found = await look(store)
    await store.close()

    assert [type(one) for one in dropped] == [asyncio.CancelledError] * 2
    assert (was_running, found) == (True, {1, 6, 7})


async def test_a_function_that_was_begun_has_ended_when_the_cancellation_comes_out(any_store):
    halted = Halted()
    task = await halted.under_way(any_store)
    for _ in range(5):
        task.cancel()
        await asyncio.sleep(0)
    was_waiting = not task.done()
    halted.release.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert was_waiting
    assert await look(any_store) == {1}


async def test_a_statement_that_nobody_waits_for_is_given_up_by_the_server_as_well(postgres_url):
    store = Store(postgres_url)
    await store.open()
    begun = threading.Event()

    def sleep(connection):
        connection.execute(schema.audit.insert(), record(1))
        begun.set()
        connection.exec_driver_sql("SELECT pg_sleep(600)")

    task = asyncio.create_task(store.write(sleep))
    while not begun.is_set():
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    found = await look(store)
    await store.close()

    assert found == set()


async def test_a_time_limit_around_a_transaction_is_a_time_limit(any_store):
    await any_store.open()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await write_pair(any_store, 1)

    assert await look(any_store) in (set(), {2, 3})


@pytest.mark.parametrize("steps", range(0, 60, 10))
async def test_a_cancel_scope_that_cancels_again_and_again_does_no_harm(any_store, steps):
    await any_store.open()
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write_pair, any_store, 1)
            tasks.start_soon(look, any_store)
            for _ in range(steps):
                await asyncio.sleep(0)
            scope.cancel()
    await write_pair(any_store, 2)

    assert await look(any_store) in ({4, 5}, {2, 3, 4, 5})


async def test_a_caller_that_is_cancelled_while_the_store_opens_does_not_disturb_others(any_store):
    callers = [asyncio.create_task(any_store.open()) for _ in range(3)]
    await asyncio.sleep(0)
    callers[0].cancel()
    results = await asyncio.gather(*callers, return_exceptions=True)

    assert [type(result) for result in results] == [asyncio.CancelledError, type(None), type(None)]


@pytest.mark.parametrize("steps", range(0, 200, 25))
async def test_an_opening_that_ends_with_its_loop_leaves_nothing_half_open(store_url, steps):
    store = Store(store_url)
    opening = asyncio.create_task(store.open())
    for _ in range(steps):
        await asyncio.sleep(0)
    store._session and store._session._opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    await store.open()
    found = await look(store)
    await store.close()

    assert found == set()
