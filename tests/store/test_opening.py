"""Opening, closing, opening again; and programs that forget to close."""

import asyncio
import gc
import json
import subprocess
import sys
import threading

import pytest
from store_fixtures import outcome, python

from agentos.errors import StoreError
from agentos.store import Store, schema

HEAVY = ("sqlalchemy", "psycopg", "platformdirs", "greenlet")


def loaded_by(script):
    script = f"import json, sys\n{script}\nprint(json.dumps(sorted({{n.split('.')[0] for n in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # a cold start
    return set(json.loads(done.stdout))


async def write(store, pack):
    row = {"pack": pack, "enabled": True, "at": 1.0}
    await store.write(lambda connection: connection.execute(schema.flags.insert(), row).rowcount)


async def packs(store):
    return await store.read(lambda connection: sorted(connection.execute(schema.flags.select()).scalars()))


def test_importing_the_store_imports_no_database_library():
    assert loaded_by("import agentos.store") & set(HEAVY) == set()


@pytest.mark.parametrize("location", ["", "'some.db'", "'postgresql://localhost/x'"])
def test_a_store_that_was_never_opened_imports_no_database_library(location):
    assert loaded_by(f"from agentos.store import Store; Store({location})") & set(HEAVY) == set()


async def test_a_store_that_was_never_opened_makes_no_file(tmp_path):
    Store(tmp_path / "some.db")

    assert list(tmp_path.iterdir()) == []


async def test_closing_a_store_that_was_never_opened_does_nothing(tmp_path):
    await Store(tmp_path / "some.db").close()

    assert list(tmp_path.iterdir()) == []


async def test_every_store_is_another_host():
    assert Store().instance != Store().instance


async def test_folders_are_made(tmp_path, data_folder):
    store = Store(tmp_path / "some" / "folder" / "my.db")
    await store.open()
    await store.close()

    assert (tmp_path / "some" / "folder" / "my.db").is_file()


async def test_the_default_store_is_in_the_users_folder(data_folder):
    store = Store("default")
    await store.open()
    await store.close()

    assert (data_folder / "agentos.db").is_file()


async def test_opening_twice_is_opening_once(any_store):
    await any_store.open()
    session = any_store._session
    await any_store.open()

    assert any_store._session is session


async def test_many_that_open_at_once_open_once(any_store):
    await asyncio.gather(*(any_store.open() for _ in range(20)))
    await write(any_store, "a")

    assert await packs(any_store) == ["a"]


async def test_a_transaction_opens_the_store(any_store):
    await write(any_store, "a")

    assert await packs(any_store) == ["a"]


async def test_closing_twice_is_closing_once(any_store):
    await any_store.open()
    await any_store.close()
    await any_store.close()

    assert any_store._session.is_over


async def test_many_that_close_at_once_close_once(any_store):
    await any_store.open()
    await asyncio.gather(*(any_store.close() for _ in range(20)))

    assert any_store._session.is_over


async def test_a_durable_store_opened_again_has_its_rows(store):
    await write(store, "a")
    await store.close()
    await write(store, "b")

    assert await packs(store) == ["a", "b"]


async def test_a_store_in_memory_opened_again_is_empty():
    store = Store()
    await write(store, "a")
    await store.close()
    found = await packs(store)
    await store.close()

    assert found == []


async def test_two_stores_in_memory_share_nothing():
    one, other = Store(), Store()
    await write(one, "a")
    found = await packs(other)
    await one.close()
    await other.close()

    assert found == []


async def test_closing_waits_for_transactions(any_store):
    begun, release = threading.Event(), threading.Event()
    writing = asyncio.create_task(any_store.write(lambda _: begun.set() or release.wait(60)))
    while not begun.is_set():
        await asyncio.sleep(0)
    closing = asyncio.create_task(any_store.close())
    for _ in range(5):
        await asyncio.sleep(0)
    was_waiting = not closing.done()
    release.set()
    await asyncio.gather(writing, closing)

    assert was_waiting


async def test_a_transaction_that_comes_while_the_store_closes_opens_it_again(store):
    await write(store, "a")
    closing = asyncio.create_task(store.close())
    while not store._session.is_ending:
        await asyncio.sleep(0)
    await write(store, "b")
    await closing

    assert await packs(store) == ["a", "b"]


async def test_closing_while_the_store_opens_closes_it(any_store):
    opening = asyncio.create_task(any_store.open())
    await asyncio.sleep(0)
    await any_store.close()
    await asyncio.gather(opening, return_exceptions=True)

    assert any_store._session.is_over


async def test_an_opening_that_failed_fails_for_all_who_wait_and_is_tried_again(tmp_path, data_folder):
    path = tmp_path / "my.db"
    path.mkdir()
    store = Store(path)
    results = await asyncio.gather(*(store.open() for _ in range(3)), return_exceptions=True)
    path.rmdir()
    await store.open()
    await store.close()

    assert [type(result) for result in results] == [StoreError] * 3


async def test_closing_after_a_failed_opening_does_nothing(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(StoreError):
        await store.open()

    await store.close()


async def test_closing_while_an_opening_fails_is_no_error(tmp_path):
    store = Store(tmp_path)
    opening = asyncio.create_task(store.open())
    await asyncio.sleep(0)
    await store.close()

    with pytest.raises(StoreError):
        await opening


async def test_a_closed_store_leaves_no_thread(sqlite_url):
    before = threading.active_count()
    store = Store(sqlite_url)
    await asyncio.gather(*(packs(store) for _ in range(10)))
    during = threading.active_count()
    await store.close()

    assert (during > before, threading.active_count()) == (True, before)


async def test_a_store_that_was_dropped_is_closed(store_url):
    store, other = Store(store_url), Store(store_url)
    await store.open()
    instance = store.instance
    del store
    gc.collect()
    while await other.is_alive(instance):
        await asyncio.sleep(0)
    await other.close()


# -- event loops -----------------------------------------------------------------------------------------------


def test_a_store_closed_in_one_loop_opens_in_another(store_url):
    store = Store(store_url)

    async def use(pack):
        await write(store, pack)
        await store.close()

    asyncio.run(use("a"))
    asyncio.run(use("b"))

    async def look():
        found = await packs(store)
        await store.close()
        return found

    assert asyncio.run(look()) == ["a", "b"]


def test_a_store_that_nobody_closed_is_closed_with_its_loop(store_url):
    store = Store(store_url)
    asyncio.run(write(store, "a"))
    asyncio.run(write(store, "b"))

    assert asyncio.run(packs(store)) == ["a", "b"]


def test_a_store_that_is_open_in_another_loop_is_refused(sqlite_url):
    store, loop = Store(sqlite_url), asyncio.new_event_loop()
    loop.run_until_complete(store.open())

    async def use():
        with pytest.raises(StoreError, match="is open in another event loop; close it there first"):
            await store.open()
        with pytest.raises(StoreError, match="is open in another event loop"):
            await store.close()

    asyncio.run(use())
    loop.run_until_complete(store.close())
    loop.close()


def test_a_loop_that_was_closed_without_a_word_does_not_keep_a_file_from_opening(sqlite_url):
    store, loop = Store(sqlite_url), asyncio.new_event_loop()
    loop.run_until_complete(write(store, "a"))
    loop.close()

    assert asyncio.run(packs(store)) == ["a"]


# -- programs that forget --------------------------------------------------------------------------------------

FORGETFUL = {
    "run": """
        import asyncio, sys
        from agentos.store import Store, schema

        store = Store(sys.argv[1] if sys.argv[1:] else None)

        def write(connection):
            connection.execute(schema.flags.insert(), {"pack": "a", "enabled": True, "at": 1.0})

        asyncio.run(store.write(write))
        print("done")
    """,
    "local": """
        import asyncio, sys
        from agentos.store import Store

        async def main():
            store = Store(sys.argv[1] if sys.argv[1:] else None)
            await store.read(lambda _: None)
            await Store(sys.argv[1] if sys.argv[1:] else None).read(lambda _: None)

        asyncio.run(main())
        print("done")
    """,
    "cancelled": """
        import asyncio, sys
        from agentos.store import Store, schema

        store = Store(sys.argv[1] if sys.argv[1:] else None)

        async def work(number):
            row = {"pack": str(number), "enabled": True, "at": 1.0}
            await store.write(lambda connection: connection.execute(schema.flags.insert(), row).rowcount)

        async def main():
            await store.open()
            tasks = [asyncio.create_task(work(number)) for number in range(10)]
            await tasks[2]

        asyncio.run(main())
        print("done")
    """,
}


@pytest.mark.parametrize("program", FORGETFUL)
@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_a_program_that_forgets_to_close_ends_without_a_warning(program, kind, request):
    arguments = [] if kind == "memory" else [request.getfixturevalue(f"{kind}_url")]

    assert outcome(python(FORGETFUL[program], *arguments)) == "done"


def test_a_program_with_a_loop_of_its_own_that_forgets_to_close_ends_without_a_warning(sqlite_url):
    script = """
        import asyncio, sys
        from agentos.store import Store

        store, memory, loop = Store(sys.argv[1]), Store(), asyncio.new_event_loop()
        loop.run_until_complete(store.open())
        loop.run_until_complete(memory.open())
        loop.close()
        print("done")
    """

    assert outcome(python(script, sqlite_url)) == "done"


def test_a_program_whose_modules_are_cleared_late_and_that_forgets_to_close_ends_without_a_warning(sqlite_url):
    script = """
        import asyncio, sys
        from agentos.store import Store

        store, memory, loop = Store(sys.argv[1]), Store(), asyncio.new_event_loop()
        loop.run_until_complete(store.open())
        loop.run_until_complete(memory.open())
        loop.close()
        sys.kept = dict(sys.modules)  # so that they outlive what asyncio needs
        print("done")
    """

    assert outcome(python(script, sqlite_url)) == "done"


def test_missing_psycopg_is_named_with_the_way_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "agentos.store.postgres", raising=False)

    with pytest.raises(StoreError, match=r"needs psycopg, .* pip install 'agentos-host\[postgres\]'"):
        asyncio.run(Store("postgresql://localhost/x").open())
