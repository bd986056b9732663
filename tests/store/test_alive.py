"""Who still runs is told by the operating system."""

import asyncio
import functools
import os
import signal
import threading
import uuid

import pytest
from store_fixtures import outcome, python

from agentos.errors import StoreError
from agentos.store import Store, postgres, server_presence
from agentos.store.alive import FilePresence, leave_to_parent
from agentos.store.locations import StorePlace
from agentos.store.server_presence import ServerPresence, lock_number

HOST = """
    import asyncio, sys
    from agentos.store import Store

    async def main():
        store = Store(sys.argv[1])
        await store.open()
        print(store.instance, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await store.close()

    asyncio.run(main())
"""


@pytest.fixture
def other(store_url):
    """Return a store of another host, in the same process."""
    return Store(store_url)


async def sessions_that_hold(store, instance):
    """Return the process ids of the PostgreSQL sessions that hold the lock of *instance*."""
    query = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND (classid::bigint << 32 | objid::bigint) = {}"
    query = query.format(lock_number(instance))
    return await store.read(lambda connection: list(connection.exec_driver_sql(query).scalars()))


async def wait_until_noticed(store, store_url, instance):
    """Return when the end of a host is known: PostgreSQL notices a moment later; from then on its lock can be had."""
    if "postgres" in store_url:
        query = f"SELECT pg_advisory_xact_lock({lock_number(instance)})"
        await store.write(lambda connection: connection.exec_driver_sql(query).scalar())


async def test_a_host_is_alive_to_itself(any_store):
    assert await any_store.is_alive(any_store.instance)


async def test_nobody_is_not_alive(any_store):
    assert not await any_store.is_alive(uuid.uuid4().hex)


@pytest.mark.parametrize("instance", ["", "..", "../agentos.db", "x" * 32, "A" * 32, "\udc80", "a\0b"])
async def test_what_is_no_instance_is_not_alive(store, instance):
    assert not await store.is_alive(instance)


async def test_two_stores_in_one_process_see_each_other(store, other):
    await store.open()
    await other.open()
    seen = await store.is_alive(other.instance), await other.is_alive(store.instance)
    await other.close()

    assert seen == (True, True)


async def test_a_store_that_was_closed_is_not_alive(store, other):
    await other.open()
    await other.close()

    assert not await store.is_alive(other.instance)


async def test_a_store_that_was_opened_again_is_alive(store, other):
    for _ in range(2):
        await other.open()
        await other.close()
    await other.open()
    alive = await store.is_alive(other.instance)
    await other.close()

    assert alive


async def test_many_that_ask_at_once_do_not_take_each_other_for_the_host(store):
    gone = uuid.uuid4().hex

    assert not any(await asyncio.gather(*(store.is_alive(gone) for _ in range(50))))


async def test_a_process_is_alive_until_it_closes_its_store(store, store_url):
    process = python(HOST, store_url)
    instance = process.stdout.readline().strip()
    before = await store.is_alive(instance)
    outcome(process, "end\n")

    assert (before, await store.is_alive(instance)) == (True, False)


async def test_a_process_that_was_killed_is_not_alive(store, store_url):
    process = python(HOST, store_url)
    instance = process.stdout.readline().strip()
    before = await store.is_alive(instance)
    process.kill()
    process.communicate()
    await wait_until_noticed(store, store_url, instance)

    assert (before, await store.is_alive(instance)) == (True, False)


FORKING = """
    import asyncio, os, signal, sys
    from agentos.store import Store

    async def main():
        store = Store(sys.argv[1])
        await store.open()
        if os.fork() == 0:
            sys.stdin.readline()
            os._exit(0)
        print(store.instance, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(main())
"""


async def test_a_process_that_was_killed_is_not_alive_in_those_that_it_forked(store, store_url):
    process = python(FORKING, store_url, options=("-W", "ignore"))
    instance = process.stdout.readline().strip()
    process.wait()
    await wait_until_noticed(store, store_url, instance)
    alive = await store.is_alive(instance)
    process.communicate("end\n")

    assert not alive


async def test_a_forked_process_leaves_what_is_held_to_its_parent(store, other):
    await other.open()
    leave_to_parent()  # as in a child, where it is this process's share that ends
    await wait_until_noticed(store, str(store), other.instance)
    alive = await store.is_alive(other.instance)
    await other.close()

    assert not alive


# -- beside a SQLite file --------------------------------------------------------------------------------------


async def test_opening_removes_the_files_of_the_dead(sqlite_url, tmp_path):
    folder = tmp_path / "agentos.db.hosts"
    folder.mkdir()
    (folder / uuid.uuid4().hex).write_text("")
    store = Store(sqlite_url)
    await store.open()
    left = [file.name for file in folder.iterdir()]
    await store.close()

    assert left == [store.instance]


async def test_opening_leaves_the_files_of_the_living_and_of_strangers(sqlite_url, tmp_path):
    living, store = Store(sqlite_url), Store(sqlite_url)
    await living.open()
    (tmp_path / "agentos.db.hosts" / "notes.txt").write_text("")
    await store.open()
    left = {file.name for file in (tmp_path / "agentos.db.hosts").iterdir()}
    await store.close()
    await living.close()

    assert left == {living.instance, store.instance, "notes.txt"}


async def test_closing_removes_our_file(sqlite_url, tmp_path):
    store = Store(sqlite_url)
    await store.open()
    await store.close()

    assert list((tmp_path / "agentos.db.hosts").iterdir()) == []


async def test_a_file_that_somebody_removed_is_made_again(sqlite_url, tmp_path):
    store, other = Store(sqlite_url), Store(sqlite_url)
    await store.open()
    await other.open()
    (tmp_path / "agentos.db.hosts" / store.instance).unlink()
    await store.read(lambda _: None)
    alive = await other.is_alive(store.instance)
    await other.close()
    await store.close()

    assert alive


async def test_a_file_that_is_swept_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    folder, instance = tmp_path / "hosts", uuid.uuid4().hex
    samestat, lost = os.path.samestat, [True]

    def sweep_once(one, other):
        if lost:
            lost.clear()
            (folder / instance).unlink()
            return False
        return samestat(one, other)

    monkeypatch.setattr(os.path, "samestat", sweep_once)
    presence = FilePresence(folder, instance)
    await presence.renew()
    alive = await FilePresence(folder, uuid.uuid4().hex).is_alive(instance)
    await presence.release()

    assert alive


async def test_a_host_that_can_not_be_told_about_is_not_taken_for_dead(sqlite_url, tmp_path):
    store, instance = Store(sqlite_url), uuid.uuid4().hex
    (tmp_path / "agentos.db.hosts" / instance).mkdir(parents=True)
    await store.open()
    with pytest.raises(StoreError, match=f"whether the host {instance} runs can't be told"):
        await store.is_alive(instance)

    await store.close()


async def test_a_folder_that_can_not_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    presence = FilePresence(tmp_path / "file", uuid.uuid4().hex)

    with pytest.raises(StoreError, match=r"can't show that this host runs, at .*file.*: File exists"):
        await presence.renew()


async def test_a_presence_that_was_never_shown_has_nothing_to_release(tmp_path):
    await FilePresence(tmp_path, uuid.uuid4().hex).release()

    assert list(tmp_path.iterdir()) == []


# -- in PostgreSQL ---------------------------------------------------------------------------------------------


async def end_sessions(store, pids):
    """End sessions of the server and return when the server has no trace of them."""

    def end(connection):
        for pid in pids:
            connection.exec_driver_sql(f"SELECT pg_terminate_backend({pid}, 10000)").scalar()

    await store.write(end)


async def lose(store, other):
    """End the session that holds the lock of *store*, and return when the end was read from its socket."""
    presence = store._session.presence
    session = presence._session
    await end_sessions(other, await sessions_that_hold(other, store.instance))
    while presence._session is session and presence._is_watched:
        await asyncio.sleep(0)


async def test_a_lock_whose_session_was_lost_is_taken_again_on_the_next_use(postgres_url):
    store, other = Store(postgres_url), Store(postgres_url)
    await store.open()
    await other.open()
    await lose(store, other)
    await store.read(lambda _: None)
    found = await other.is_alive(store.instance)
    await other.close()
    await store.close()

    assert found


async def test_a_lock_whose_session_was_lost_is_taken_again_by_itself(postgres_url):
    store, other = Store(postgres_url), Store(postgres_url)
    await store.open()
    await end_sessions(other, await sessions_that_hold(other, store.instance))
    while not await other.is_alive(store.instance):
        await asyncio.sleep(0)
    await other.close()
    await store.close()

    assert regaining() == []


async def test_a_host_that_ends_stops_taking_its_lock_again(postgres_url, monkeypatch):
    store, other = Store(postgres_url), Store(postgres_url)
    await store.open()
    await other.open()
    monkeypatch.setattr(postgres.PostgresConnection, "connect", unreachable)
    await lose(store, other)
    await other.close()
    await store.close()

    assert regaining() == []


def unreachable(*_, **__):
    raise OSError("nobody answers")


def regaining():
    """Return the tasks that take a lock again."""
    return [task for task in asyncio.all_tasks() if "_regain" in repr(task.get_coro())]


async def test_a_lock_that_a_lost_session_still_holds_is_tried_again_on_the_next_use(postgres_url):
    store, other = Store(postgres_url), Store(postgres_url)
    await other.open()
    held, taken, release = [], threading.Event(), threading.Event()

    def ghost(connection):
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({lock_number(store.instance)})").scalar()
        taken.set()
        release.wait(60)

    holding = asyncio.create_task(other.write(ghost))
    while not taken.is_set():
        await asyncio.sleep(0)
    await store.open()
    held.append(store._session.presence._is_held)
    release.set()
    await holding
    await store.read(lambda _: None)
    held.append(store._session.presence._is_held)
    await other.close()
    await store.close()

    assert held == [False, True]


async def test_many_that_find_the_lock_lost_take_it_once(postgres_url):
    store, other = Store(postgres_url), Store(postgres_url)
    await store.open()
    await lose(store, other)
    await asyncio.gather(*(store.open() for _ in range(10)))
    holding = await sessions_that_hold(other, store.instance)
    await other.close()
    await store.close()

    assert len(holding) == 1


async def test_a_session_that_can_not_be_had_is_a_store_error(postgres_server):
    connect = functools.partial(postgres.connect, postgres_server.url("nowhere"))
    presence = ServerPresence(connect, StorePlace("postgresql://somewhere"), uuid.uuid4().hex)
    with pytest.raises(StoreError, match='at postgresql://somewhere: database "nowhere" does not exist'):
        await presence.renew()

    await presence.release()


async def test_the_session_of_a_host_ends_with_its_store(postgres_url):
    store, other = Store(postgres_url), Store(postgres_url)
    await store.open()
    before = await sessions_that_hold(other, store.instance)
    await store.close()
    after = await sessions_that_hold(other, store.instance)
    await other.close()

    assert (len(before), after) == (1, [])


async def test_a_server_that_does_not_answer_does_not_keep_a_store_from_closing(postgres_url, monkeypatch):
    monkeypatch.setattr(server_presence, "_GOODBYE", 0.01)
    store, other = Store(postgres_url), Store(postgres_url)
    await store.open()
    (pid,) = await sessions_that_hold(other, store.instance)
    os.kill(pid, signal.SIGSTOP)
    try:
        await store.close()
    finally:
        os.kill(pid, signal.SIGCONT)
        await other.close()

    assert store._session.is_over


async def test_a_server_that_does_not_answer_a_question_does_not_keep_a_store_from_closing(postgres_url):
    store, other = Store(postgres_url), Store(postgres_url)
    await store.open()
    (pid,) = await sessions_that_hold(other, store.instance)
    os.kill(pid, signal.SIGSTOP)
    try:
        asking = asyncio.create_task(store.is_alive(other.instance))
        await asyncio.sleep(0)
        await store.close()
    finally:
        os.kill(pid, signal.SIGCONT)
        await other.close()

    with pytest.raises(StoreError, match="did not answer in time"):
        await asking
