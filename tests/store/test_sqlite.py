"""The SQLite driver by itself."""

import asyncio
import gc
import threading

import pytest

from agentos.store.sqlite import Connection, Cursor


@pytest.fixture
async def connection():
    connection = Connection(":memory:")
    await connection.connect()
    yield connection
    await connection.close()


async def test_rows_can_be_had_one_by_one(connection):
    cursor = Cursor(connection)
    await cursor.execute("VALUES (1), (2)")

    assert [await cursor.fetchone() for _ in range(3)] == [(1,), (2,), None]


async def test_rows_can_be_had_in_parts(connection):
    cursor = Cursor(connection)
    await cursor.execute("VALUES (1), (2), (3)")

    assert [await cursor.fetchmany(2), await cursor.fetchall(), await cursor.fetchall()] == [[(1,), (2,)], [(3,)], []]


async def test_a_closed_cursor_has_no_rows(connection):
    cursor = Cursor(connection)
    await cursor.execute("VALUES (1)")
    await cursor.close()

    assert await cursor.fetchall() == []


async def test_a_connection_that_was_dropped_ends_its_thread():
    before = threading.active_count()
    connection = Connection(":memory:")
    await connection.connect()
    thread = connection._thread
    del connection
    gc.collect()
    await asyncio.to_thread(thread.join)

    assert threading.active_count() <= before + 1  # that of to_thread


async def test_a_cancelled_statement_has_ended_when_the_cancellation_comes_out(connection):
    ended = []

    async def work():
        await connection.do(lambda database: (database.execute("VALUES (1)").fetchall(), ended.append(1)))

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ended == [1]


async def test_a_statement_that_is_cancelled_again_and_again_has_ended_when_the_cancellation_comes_out(connection):
    release, ended = threading.Event(), []

    async def work():
        await connection.do(lambda _: (release.wait(), ended.append(1)))

    task = asyncio.create_task(work())
    for _ in range(5):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.sleep(0)
    was_waiting = not task.done()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (was_waiting, ended) == (True, [1])
