"""A process that breaks the rules, for real: what it does is bounded, it harms itself alone, and the fault is named."""

import asyncio
import json

import attrs
import pytest
from bridging import children, descriptors, eventually, tasks
from working import PATIENT, call, entry, worker_of, working

from agentos import PUBLIC, ExtensionPack, PackEntry, tool

MIB = 1024 * 1024


@tool(effect="read", required_access=PUBLIC)
def neighbour() -> str:
    """Be a tool of another pack."""
    return "well"


INLINE = PackEntry(factory=ExtensionPack("inline", descriptors=[neighbour]))


def hostile(folder):
    return working(INLINE, entry(folder, "hostile.py"), rules=PATIENT)


# -- messages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("100 MB", "it sent a message of"),
        ("100 MB without an end", "it sent a message of"),
        ("not UTF-8", "it sent a message that is not UTF-8"),
        ("nested", "it sent a message that is nested deeper than 512 levels"),
        ("half a message", "it sent a message that is not JSON"),
        ("a list", "it sent a message that is not an object"),
        ("no operation", "it sent a message that is not understood"),
        ("an id of another type", "it sent a message that is not understood"),
        ("a question with the id of another", "its id is invalid, or in use"),
        ("too many questions", "it asked for more than 1000 things at the same time"),
    ],
)
async def test_a_message_that_breaks_the_rules_ends_its_process_alone(tmp_path, kind, named):
    async with hostile(tmp_path) as host:
        before, held = (await call(host, "pid")).output, len(descriptors())
        beside = asyncio.create_task(call(host, "neighbour"))
        result = await call(host, "garble", {"kind": kind})

        assert (result.error.type, dict(result.error.details)) == ("WorkerDied", {"may_have_run": True})
        assert result.error.message.startswith("the worker of pack 'hostile': ")
        assert named in result.error.message
        assert (await beside).output == "well"
        await eventually(lambda: before not in children())
        assert (await call(host, "pid")).output != before
        await eventually(lambda: len(descriptors()) == held)
    assert (children(), tasks()) == ([], set())


@pytest.mark.parametrize("kind", ["100 MB", "100 MB without an end"])
async def test_of_a_message_that_is_too_large_no_more_is_read_than_the_limit(tmp_path, kind):
    async with hostile(tmp_path) as host:
        result = await call(host, "garble", {"kind": kind})

    size = int(result.error.message.partition("a message of ")[2].split()[0])
    assert 8 * MIB < size < 9 * MIB


@pytest.mark.parametrize(
    "kind",
    [
        *("an answer with a wrong id", "an end to nothing", "an unknown operation", "a function of nobody"),
        "much noise and a question",
    ],
)
async def test_a_message_that_concerns_nothing_is_ignored(tmp_path, kind):
    async with hostile(tmp_path) as host:
        results = [await call(host, "garble", {"kind": kind}) for _ in range(3)]

        assert ([one.output for one in results], worker_of(host, "hostile").restarts) == (["written"] * 3, 0)


@pytest.mark.parametrize("kind", ["all answers", "errors for answers"])
async def test_an_answer_that_comes_twice_counts_once(tmp_path, kind):
    """The first one is taken, whatever it is worth; those that follow are nobody's, and the next call's is its own."""
    async with hostile(tmp_path) as host:
        forged = await call(host, "garble", {"kind": kind})
        after = [(await call(host, "echo", {"text": str(number)})).output for number in range(20)]

        assert forged.output != "written"
        assert (after, worker_of(host, "hostile").restarts) == ([str(number) for number in range(20)], 0)


@pytest.mark.parametrize("name", ["large", "deep"])
async def test_an_honest_result_that_can_not_be_said_fails_alone(tmp_path, name):
    async with hostile(tmp_path) as host:
        result = await call(host, name)

        assert not result.success
        assert ((await call(host, "echo", {"text": "x"})).output, worker_of(host, "hostile").restarts) == ("x", 0)


# -- no answer -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ignore", "block"])
async def test_a_call_whose_answer_never_comes_ends_in_time_and_so_does_its_process(tmp_path, name):
    async with hostile(tmp_path) as host:
        before = (await call(host, "pid")).output
        result = await call(host, name)

        assert result.error.type == "TimedOut"
        assert (await call(host, "neighbour")).output == "well"
        await host.workers.restart("hostile")
        assert (await call(host, "pid")).output != before
    assert children() == []


# -- floods ----------------------------------------------------------------------------------------------------------


@pytest.mark.proof
@pytest.mark.parametrize("of", ["stdout", "stderr", "a line without an end", "log records", "answers to nothing"])
async def test_a_flood_is_bounded_and_both_sides_go_on(tmp_path, of):
    async with hostile(tmp_path) as host:
        await call(host, "flood", {"of": of})
        for _ in range(100):
            assert (await call(host, "neighbour")).success
        for _ in range(10):
            assert (await call(host, "echo", {"text": "x"})).success

        assert len(host.workers.logs("hostile")) <= 500
        assert sum(map(len, host.workers.logs("hostile"))) < MIB
    assert children() == []


# -- while it mounts -------------------------------------------------------------------------------------------------


def mounting(folder, data, after="import time; time.sleep(600)"):
    """Return the entry of a pack that writes *data* to its host when it is imported."""
    file = folder / "mounting.py"
    file.write_text(f"import os, sys\nos.write(int(sys.argv[1]), {data!r})\n{after}\n")
    return PackEntry(module=str(file), identifier="mounting", isolation="process", mount_timeout=60.0)


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"x" * 64 + b"\xff\n", "it sent a message that is not UTF-8"),
        (b"hello\n", "it sent a message that is not JSON"),
        (b'{"re": 1, "error": 7}\n', "an error that is not understood"),
        *(
            (json.dumps({"re": 1, "value": said}).encode() + b"\n", "what it declares is not understood: ")
            for said in (None, 7, [], {}, {"name": 7}, {"name": "x", "descriptors": 7}, {"descriptors": [{}]})
        ),
    ],
)
async def test_a_pack_that_is_declared_by_nonsense_is_not_loaded(tmp_path, data, named):
    async with working(INLINE, mounting(tmp_path, data)) as host:
        outcomes = {one.key: one for one in host.extensions.report.outcomes}
        found = outcomes["mounting"]

        assert (found.status, named in found.reason) == ("failed", True), found.reason
        assert (await call(host, "neighbour")).output == "well"
    assert children() == []


# -- silence -----------------------------------------------------------------------------------------------------------


async def test_a_process_that_answers_nothing_after_a_call_was_given_up_is_ended_and_named(tmp_path):
    """The one that only ignores a call answers others, and stays."""
    rules = attrs.evolve(PATIENT, silence=0.5)
    async with working(INLINE, entry(tmp_path, "hostile.py"), rules=rules) as host:
        before = (await call(host, "pid")).output
        await call(host, "block")
        await eventually(lambda: before not in children())
        info = worker_of(host, "hostile")

        assert "it did not answer for 0.5 s after a call was given up" in info.reason
        assert info.strikes == 1
        assert (await call(host, "pid")).output != before


async def test_a_process_that_answers_others_while_it_ignores_a_call_stays(tmp_path):
    rules = attrs.evolve(PATIENT, silence=60.0)
    async with working(entry(tmp_path, "hostile.py"), rules=rules) as host:
        before = (await call(host, "pid")).output
        for _ in range(3):
            await call(host, "ignore")
        assert (await call(host, "pid")).output == before
        assert worker_of(host, "hostile").strikes == 0
    assert (children(), tasks()) == ([], set())
