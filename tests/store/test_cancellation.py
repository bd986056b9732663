"""A task that is cancelled anywhere leaves the store as good as before."""

import asyncio
import random

import anyio
import pytest
from sqlalchemy import func, select

from agentos.store import Store, schema

ROUNDS = 400


def record(seq):
    return {"seq": seq, "prev": "", "hash": "", "body": ""}


async def write_pair(store, number):
    """Write two rows that belong together."""
    async with store.begin() as connection:
        await connection.execute(schema.audit.insert(), record(2 * number))
        await connection.execute(schema.audit.select().limit(1))
        await connection.execute(schema.audit.insert(), record(2 * number + 1))


async def look(store):
    async with store.read() as connection:
        return set((await connection.execute(select(schema.audit.c.seq))).scalars())


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


async def test_after_many_cancellations_every_turn_and_connection_is_free(any_store):
    await any_store.open()
    await disturb(any_store, random.Random(3))
    arrived = asyncio.Barrier(1 if not any_store.is_durable else 5)

    async def together(writes):
        async with any_store.begin() if writes else any_store.read() as connection:
            await connection.execute(select(func.count()).select_from(schema.audit))
            await arrived.wait()

    await asyncio.gather(*(together(number == 0) for number in range(arrived.parties)))

    assert not any_store._session._users


async def test_a_cancelled_waiter_does_not_keep_others_from_their_turn(any_store):
    async with any_store.begin():
        waiting = [asyncio.create_task(write_pair(any_store, number)) for number in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        waiting[1].cancel()
    await asyncio.gather(*waiting, return_exceptions=True)

    assert await look(any_store) == {4, 5}


async def test_a_cancellation_within_the_block_undoes_it(any_store):
    async def stop_halfway():
        async with any_store.begin() as connection:
            await connection.execute(schema.audit.insert(), record(1))
            asyncio.current_task().cancel()
            await connection.execute(schema.audit.insert(), record(2))

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(stop_halfway())

    assert await look(any_store) == set()


async def test_a_time_limit_around_a_transaction_is_a_time_limit(any_store):
    await any_store.open()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await write_pair(any_store, 1)

    assert await look(any_store) == set()


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
