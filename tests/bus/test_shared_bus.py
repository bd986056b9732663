"""The bus of hosts that share a PostgreSQL store: each hears the others, its own once, and what is lost is lost."""

import asyncio
import os
import threading
from pathlib import Path

import psycopg
import pytest
from bussing import Ears, until
from store_fixtures import outcome, python

from agentos import AgentOS, StoreError

LISTENERS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND starts_with(query, 'LISTEN')"
CHANNEL = "'agentos_' || md5(current_schema())"


def open_files():
    return {file.name for file in Path("/proc/self/fd").iterdir()}


def ask(url, statement, *values):
    """Run a statement as somebody else who can reach the database; return its rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement, values)
        return [] if cursor.description is None else cursor.fetchall()


async def test_messages_reach_the_other_host_in_their_order_large_ones_too_and_the_own_once(postgres_url):
    here, there = Ears(), Ears()
    # Some fit into a notification, some just do not, some are as large as they may be.
    sizes = [1, 7_700, 7_900, 8_000, 9_000, 300_000, 2, 999_000, 3]
    sent = [[number, "é" if size < 10 else "x" * size] for number, size in enumerate(sizes)]
    async with AgentOS(store=postgres_url) as one, AgentOS(store=postgres_url) as other:
        await one.bus.subscribe("news", here)
        await other.bus.subscribe("news", there)
        for message in sent:
            await one.bus.publish("news", message)
        await there.until(len(sent))
        await other.bus.publish("news", "back")

        assert await here.until(len(sent) + 1) == [*sent, "back"]
        assert await there.until(len(sent) + 1) == [*sent, "back"]


async def test_what_is_published_side_by_side_shares_commits_and_keeps_its_order(postgres_url):
    here, there = Ears(), Ears()
    async with AgentOS(store=postgres_url) as one, AgentOS(store=postgres_url) as other:
        await one.bus.subscribe("news", here)
        await other.bus.subscribe("news", there)
        await asyncio.gather(*(one.bus.publish("news", number) for number in range(300)))

        assert await there.until(300) == list(range(300)) == await here.until(300)


async def test_one_that_gave_up_publishing_is_in_nobodys_way(postgres_url):
    there = Ears()
    async with AgentOS(store=postgres_url) as one, AgentOS(store=postgres_url) as other:
        await other.bus.subscribe("news", there)
        some = [asyncio.create_task(one.bus.publish("news", number)) for number in range(20)]
        await asyncio.sleep(0)
        for task in some[::2]:
            task.cancel()
        await asyncio.wait(some)
        await one.bus.publish("news", "last")
        await until(lambda: "last" in there.heard)

    numbers = [number for number in there.heard if number != "last"]
    assert {*range(1, 20, 2)} <= {*numbers}
    assert numbers == sorted({*numbers})


async def test_hosts_in_other_processes_hear_one_another(postgres_url):
    script = """
        import asyncio, os, sys
        from agentos import AgentOS, StoreError

        async def main():
            done = asyncio.Event()
            async with AgentOS(store=sys.argv[1]) as host:
                async def answer(message):
                    await host.bus.publish("answers", {"pid": os.getpid(), "size": len(message)})
                    done.set()
                await host.bus.subscribe("questions", answer)
                print("ready", flush=True)
                await done.wait()

        asyncio.run(main())
    """
    ears = Ears()
    async with AgentOS(store=postgres_url) as host:
        await host.bus.subscribe("answers", ears)
        process = python(script, postgres_url)
        assert (await asyncio.to_thread(process.stdout.readline)).strip() == "ready"
        await host.bus.publish("questions", "x" * 100_000)

        assert await ears.until(1) == [{"pid": process.pid, "size": 100_000}]
        assert await asyncio.to_thread(outcome, process) == ""
    assert process.pid != os.getpid()


async def test_a_host_that_lost_its_connection_listens_again(postgres_url, caplog):
    there = Ears()
    async with AgentOS(store=postgres_url) as one, AgentOS(store=postgres_url) as other:
        await other.bus.subscribe("news", there)
        [[lost]] = ask(postgres_url, LISTENERS)
        ask(postgres_url, "SELECT pg_terminate_backend(%s, 10000)", lost)
        await until(lambda: [pid for (pid,) in ask(postgres_url, LISTENERS) if pid != lost])
        await one.bus.publish("news", "again")

        assert await there.until(1) == ["again"]
    assert "the bus does not hear other hosts until the store can be reached again" in caplog.text


async def test_nobody_without_the_key_speaks_for_a_host_and_nothing_is_heard_twice(postgres_url):
    there, said = Ears(), []
    async with AgentOS(store=postgres_url) as one, AgentOS(store=postgres_url) as other:
        await other.bus.subscribe("news", there)
        with psycopg.connect(postgres_url, autocommit=True) as spy:
            spy.add_notify_handler(lambda notice: said.append(notice.payload))
            [[name]] = spy.execute(f"SELECT {CHANNEL}").fetchall()
            spy.execute(f'LISTEN "{name}"')
            await one.bus.publish("news", 1)
            await one.bus.publish("news", 2)
            spy.execute("SELECT 1")
        forged = [
            said[0],
            said[0].replace('"news"', '"other"'),
            said[1][:-1] + "7",
            "",
            "row x",
            "row ",
            "{}",
            "é" * 99,
        ]
        for one_said in forged:
            ask(postgres_url, f"SELECT pg_notify({CHANNEL}, %s)", one_said)
        await one.bus.publish("news", 3)

        assert await there.until(3) == [1, 2, 3]
    assert len(said) == 2


async def test_large_messages_are_removed_after_some_minutes(postgres_url):
    async with AgentOS(store=postgres_url) as host:
        await host.bus.publish("news", "x" * 10_000)
        await host.bus.publish("news", "y" * 10_000)
        ask(postgres_url, "UPDATE bus_messages SET created_at = created_at - 301 WHERE body LIKE %s", "%xxx%")
        await host.bus.publish("news", "z" * 10_000)
        assert ask(postgres_url, "SELECT right(body, 2) FROM bus_messages ORDER BY 1") == [('y"',), ('z"',)]

        ask(postgres_url, "UPDATE bus_messages SET created_at = created_at - 301")
        async with AgentOS(store=postgres_url) as other:
            await other.bus.subscribe("news", print)
        assert ask(postgres_url, "SELECT * FROM bus_messages") == []


async def test_a_message_that_other_hosts_can_not_be_told_is_heard_here_and_who_publishes_is_told(
    postgres_url,
):
    ears = Ears()
    async with AgentOS(store=postgres_url) as host:
        await host.bus.subscribe("news", ears)
        ask(postgres_url, "DROP TABLE bus_messages")
        with pytest.raises(StoreError, match='relation "bus_messages" does not exist'):
            await host.bus.publish("news", "x" * 10_000)
        await host.bus.publish("news", "small")

        assert [one[:5] for one in await ears.until(2)] == ["xxxxx", "small"]


async def test_nothing_is_left_when_a_host_shuts_down(postgres_url):
    before, threads = asyncio.all_tasks(), {*threading.enumerate()}
    descriptors = open_files()
    async with AgentOS(store=postgres_url) as host:
        await host.bus.subscribe("news", Ears())
        await host.bus.publish("news", "x" * 10_000)
        assert len(ask(postgres_url, LISTENERS)) == 1

    assert asyncio.all_tasks() == before
    assert [one for one in threading.enumerate() if one.name == "agentos-store" and one not in threads] == []
    assert open_files() <= descriptors
    await until(lambda: ask(postgres_url, LISTENERS) == [])


async def test_a_host_that_only_publishes_has_no_connection_that_listens(postgres_url):
    async with AgentOS(store=postgres_url) as host:
        await host.bus.publish("news", 1)

        assert ask(postgres_url, LISTENERS) == []
