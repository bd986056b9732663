"""The rooms that checks run in: how they are furnished, and that the process is as it was when they are left."""

import asyncio
import contextlib
import os
import sys
import threading
from pathlib import Path

import attrs
import pytest
from testing.parts import Text, count_letters, pack, reads

from agentos import PUBLIC, Descriptor, ToolContext, tool
from agentos.testing import assert_pack_ok, check_pack, examine_pack
from agentos.testing._leftovers import ResourceSnapshot
from agentos.testing._sandbox import enter_sandbox, leaving_sandboxes


def look_up_with(seen):
    @reads
    async def look_up(text: Text, *, context: ToolContext) -> str:
        """Look a text up in the table of known ones."""
        seen.append((text, dict(context.options)))
        return "found"

    return lambda: pack(look_up)


# -- furniture ---------------------------------------------------------------------------------------------------------


async def test_a_seed_is_in_the_folder_of_every_room(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.txt").write_text("seed")
    seen = []

    def factory(context):
        file = Path(context.options["root"]) / "inner" / "a.txt"
        seen.append(file.read_text())
        file.write_text("changed")
        return pack()

    await assert_pack_ok(factory, seed=tmp_path, options={"root": "{tmp}"}, only=["loads", "twice"])

    assert seen[:2] == ["seed", "seed"]


async def test_names_that_are_prepared_are_filled_in():
    seen = []

    @contextlib.asynccontextmanager
    async def prepare(tmp):
        yield {"port": 4711, "word": "hello", "home": tmp}

    await examine_pack(
        look_up_with(seen),
        prepare=prepare,
        options={"port": "{port}", "address": "http://127.0.0.1:{port}/{other}", "all": ["{word}", "{home}"]},
        samples={"look_up": {"text": "{word} in {tmp}"}},
        only=["quiet"],
    )

    (text, options), (word, home) = seen[0], seen[0][1].pop("all")
    assert options == {"port": 4711, "address": "http://127.0.0.1:4711/{other}"}
    assert (word, text) == ("hello", f"hello in {home}")


async def test_names_that_are_prepared_are_filled_into_secrets():
    seen = []

    @contextlib.asynccontextmanager
    async def prepare(tmp):
        yield {"port": 4711}

    def factory():
        begin = lambda context: seen.append(context.secret("openai.apiKey"))  # noqa: E731 - a hook
        needs = ["openai.apiKey"]
        return pack(Descriptor("tool", "count_letters", count_letters, required_secrets=needs, on_activate=begin))

    await examine_pack(factory, prepare=prepare, secrets={"openai.apiKey": "127.0.0.1:{port}"}, only=["loads"])

    assert seen == ["127.0.0.1:4711"]


async def test_what_is_prepared_is_left_after_every_check():
    told = []

    @contextlib.asynccontextmanager
    async def prepare(tmp):
        told.append("in")
        yield
        told.append("out")

    await examine_pack(lambda: pack(), prepare=prepare, only=["loads", "quiet"])

    assert told == ["in", "out"] * 2


async def test_what_preparing_says_and_leaves_running_is_not_the_packs_doing():
    @contextlib.asynccontextmanager
    async def prepare(tmp):
        print("preparing")  # noqa: T201 - that is what is tried
        os.write(1, b"preparing")
        async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0):
            yield {}

    assert await examine_pack(lambda: pack(), prepare=prepare, only=["quiet", "leaks"]) == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"tmp": "a"}, "ValueError: it yields the name 'tmp'"),
        ({"a b": "a"}, "ValueError: it yields the name 'a b'"),
        ({"a": []}, "TypeError: it yields list as 'a'"),
        (5, "TypeError: it yields int"),
    ],
)
async def test_names_that_cant_be_filled_in_are_told_once(given, told):
    @contextlib.asynccontextmanager
    async def prepare(tmp):
        yield given

    (finding,) = await examine_pack(lambda: pack(), prepare=prepare)

    assert (finding.rule, finding.cure) == ("loads", "fix what prepares the sandbox, such as conformance.py")
    assert f"prepare() raised {told}" in finding.message


async def test_a_function_that_is_no_context_manager_is_told():
    async def prepare(tmp):
        return {}

    (finding,) = await examine_pack(lambda: pack(), prepare=prepare)

    assert "no async context manager; decorate `async def prepare(tmp)` with" in finding.message


async def test_what_cant_be_left_is_told():
    @contextlib.asynccontextmanager
    async def prepare(tmp):
        yield
        raise RuntimeError("it does not end")

    (finding,) = await examine_pack(lambda: pack(), prepare=prepare, only=["loads"])

    assert "prepare() raised RuntimeError: it does not end" in finding.message


async def test_a_secret_in_what_was_prepared_is_no_leak():
    @contextlib.asynccontextmanager
    async def prepare(tmp):
        (tmp / "server.conf").write_text("password of the server")
        yield

    def factory():
        return pack(Descriptor("tool", "count_letters", count_letters, required_secrets=["openai.apiKey"]))

    secrets = {"openai.apiKey": "password of the server"}
    assert await examine_pack(factory, prepare=prepare, secrets=secrets, only=["secrets"]) == []


# -- the process afterwards --------------------------------------------------------------------------------------------


def state():
    return Path.cwd(), dict(os.environ), sys.stdout, os.fstat(1), os.umask(os.umask(0o022))


async def test_a_room_that_nobody_leaves_is_left_all_the_same():
    mask = os.umask(0o022)
    before = state()
    with leaving_sandboxes():
        sandbox = enter_sandbox()
        sandbox.__enter__()
        assert Path.cwd() != before[0]

    assert state() == before
    os.umask(mask)


def test_a_tool_that_never_lets_go_leaves_the_process_as_it_was():
    before = state()

    @reads
    async def look_up(text: Text) -> str:
        """Look a text up in the table of known ones."""
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.1)

    with pytest.raises(AssertionError, match=r"1 thing to mend:\n.*\[cancel\]"):
        check_pack(pack(look_up), limit=0.5, grace=0.2)
    assert state() == before


async def test_the_event_loop_works_in_its_own_pool_again():
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(os.getpid)
    own = loop._default_executor
    with enter_sandbox() as sandbox:
        await asyncio.to_thread(os.getpid)
        within = loop._default_executor

    assert (within, loop._default_executor) == (sandbox.pool, own)


async def test_a_pool_knows_what_has_not_ended():
    over = threading.Event()
    with enter_sandbox() as sandbox:
        work = asyncio.create_task(asyncio.to_thread(over.wait, 60))
        await asyncio.sleep(0)
        before = [*sandbox.pool.unfinished.values()]
        over.set()
        await work
        after = [*sandbox.pool.unfinished.values()]

    assert (before, after) == (["Event.wait"], [])


async def test_idle_threads_of_the_event_loop_are_nobody_s():
    with enter_sandbox() as sandbox:
        before = ResourceSnapshot.now(sandbox)
        await asyncio.to_thread(os.getpid)
        left = await before.left_over(0.5)

    assert left == []


# -- many at once ------------------------------------------------------------------------------------------------------


def remover(**fields):
    """Return a pack with a tool that removes a file, and refuses when it is gone."""

    def factory(context):
        root = Path(context.options["root"])

        @tool(effect="destructive", required_access=PUBLIC, timeout=5, **fields)
        def remove_file(name: Text) -> str:
            """Remove a file of the folder for good."""
            if not name.isalnum() or not (root / name).is_file():
                raise ValueError(f"name: {name[:20]!a} does not exist")
            (root / name).unlink(missing_ok=True)
            return "removed"

        return pack(remove_file)

    return factory


@pytest.fixture
def seeded(tmp_path):
    (tmp_path / "a").write_text("")
    samples = {"remove_file": {"name": "a"}}
    return {"seed": tmp_path, "options": {"root": "{tmp}"}, "samples": samples, "sandboxed": True}


async def test_what_can_be_done_only_once_is_no_fault_at_once(seeded):
    found = await examine_pack(remover(), **seeded, cases=20)

    assert [finding for finding in found if finding.rule != "dry-run"] == []


async def test_what_is_said_to_be_idempotent_is_compared(seeded):
    found = await examine_pack(remover(idempotent=True), **seeded, only=["parallel"])

    assert {finding.rule for finding in found} == {"parallel"}


def poster(post):
    made = tool(effect="mutate", required_access=PUBLIC)(post)
    return lambda: pack(attrs.evolve(made, name="post_letters"))


async def test_of_calls_that_change_something_one_must_succeed_at_once():
    running = []

    async def post_letters(text: Text) -> str:
        """Post a text to whoever is listening."""
        running.append(text)
        try:
            await asyncio.sleep(0.02)
            if len(running) > 1:
                raise ValueError("it is busy")
        finally:
            await asyncio.sleep(0.02)
            running.pop()
        return "posted"

    (finding,) = await examine_pack(poster(post_letters), sandboxed=True, only=["parallel"])

    assert "none succeeded, although one alone does" in finding.message


async def test_a_slip_of_a_call_that_changes_something_counts_at_once():
    running = []

    async def post_letters(text: Text) -> str:
        """Post a text to whoever is listening."""
        if running:
            raise KeyError("running")
        running.append(text)
        await asyncio.sleep(0)
        running.clear()
        return "posted"

    found = await examine_pack(poster(post_letters), sandboxed=True, only=["parallel"])

    assert any("it raised KeyError" in finding.message for finding in found)
