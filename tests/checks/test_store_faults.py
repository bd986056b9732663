"""What happened to a store behind its host's back: its key, its file."""

import pytest

from agentos import AgentOS, StoreError
from agentos.checks.faults import faults_of_store
from agentos.store.locations import place_of


@pytest.fixture
async def used(tmp_path, anyio_backend):
    """Return the path of a store that a host has used."""
    path = tmp_path / "s.db"
    async with AgentOS(store=path) as host:
        await host.grants.add("files:*", "never")
    return path


def beside(path, ending):
    return path.with_name(path.name + ending)


def found(path):
    ((message, cure),) = faults_of_store(place_of(path))
    return message, cure


async def test_a_store_that_was_used_is_fine(used):
    async with AgentOS(store=used) as host:
        assert (await host.check()).ok


async def test_a_store_whose_key_is_gone_gets_no_new_one(used):
    beside(used, ".key").unlink()
    with pytest.raises(StoreError, match=r"is gone: there is no file .*s\.db\.key") as raised:
        await AgentOS(store=used).initialize()

    assert "AGENTOS_STORE_KEY" in raised.value.hint
    assert f"move {used} away and remove {beside(used, '.begun')}" in raised.value.hint
    assert not beside(used, ".key").exists()


async def test_the_doctor_says_that_a_key_is_gone_and_makes_none(used):
    beside(used, ".key").unlink()
    message, cure = await run(found, used)

    assert "the key of the store" in message
    assert "is gone" in message
    assert "no new key is made by itself" in cure
    assert not beside(used, ".key").exists()


async def run(function, *arguments):
    """Run in a thread what has an event loop of its own."""
    import asyncio

    return await asyncio.to_thread(function, *arguments)


async def test_a_new_store_is_begun_on_purpose_as_the_hint_says(used):
    beside(used, ".key").unlink()
    used.rename(used.with_name("old.db"))
    beside(used, ".begun").unlink()
    async with AgentOS(store=used) as host:
        assert (await host.audit.verify()).ok
        assert (await host.check()).ok

    assert beside(used, ".key").exists()


async def test_a_store_without_its_database_gets_no_new_key_either(used):
    for file in (used, beside(used, ".key")):
        file.unlink()

    with pytest.raises(StoreError, match="is gone"):
        await AgentOS(store=used).initialize()


@pytest.mark.parametrize(
    ("text", "words"),
    [("5a" * 32, "sealed with another key"), ("nonsense", "does not hold a store's key")],
)
async def test_a_key_that_was_overwritten_is_told(used, text, words):
    beside(used, ".key").write_text(text)
    message, cure = await run(found, used)

    assert words in message
    assert "from a backup" in cure


async def test_a_key_in_the_environment_that_is_too_short_is_told_with_what_to_give(used, monkeypatch):
    monkeypatch.setenv("AGENTOS_STORE_KEY", "short")
    message, cure = await run(found, used)

    assert "too short" in message
    assert cure.startswith("Give the key that the store was begun with")


async def test_a_key_in_the_environment_that_is_another_one_is_told(used, monkeypatch):
    monkeypatch.setenv("AGENTOS_STORE_KEY", "another key of some length")

    assert "sealed with another key" in (await run(found, used))[0]


async def test_a_key_that_the_host_was_given_is_the_one_that_counts(tmp_path):
    key = "a key that a host keeps itself"
    async with AgentOS(store=tmp_path / "s.db", store_key=key) as host:
        await host.grants.add("files:*", "never")
    async with AgentOS(store=tmp_path / "s.db", store_key=key) as host:
        assert (await host.check()).ok


async def test_a_store_that_was_cut_to_nothing_is_told(used):
    used.write_bytes(b"")
    message, cure = await run(found, used)

    assert message == f"{used} is empty, and s.db.begun beside it says that something was stored there"
    assert cure.startswith("restore it from a backup; to begin a new store on purpose, remove ")
    assert used.read_bytes() == b""


async def test_a_store_that_is_gone_is_told(used):
    used.unlink()

    assert "is gone, and s.db.begun beside it says" in (await run(found, used))[0]


async def test_a_log_that_was_emptied_is_told(used):
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(used)) as database, database:
        database.execute("DELETE FROM audit")
        database.execute("DELETE FROM audit_head")

    assert "the log that was begun here is not in this database" in (await run(found, used))[0]


def test_an_empty_file_is_a_store_that_is_not_begun(tmp_path):
    (tmp_path / "s.db").touch()

    assert list(faults_of_store(place_of(tmp_path / "s.db"))) == []
