"""Two processes want the same thing at the same moment: one gets it, and both are told the truth."""

import asyncio
import collections
import contextlib
import socket
from collections.abc import Callable
from typing import Any

import attrs
import pytest
import store_fixtures
from access.workers.driving import Worker, WorkerEndedError, started
from access.workers.places import by_socket
from access.workers.recording import Log, host_at

pytestmark = pytest.mark.proof
postgres_server = store_fixtures.postgres_server

ROUNDS = 1_000
CLAIMS = 200
KEYS = 200
GRANTS = 40
CALLS = 60
LATE = "the proposal was used already, or expired in this moment"


@attrs.frozen
class Place:
    """A store and a log of executions."""

    url: str
    log: Log

    def host(self, **options):
        """Return a host in this process."""
        return host_at(self.url, self.log, **options)


@contextlib.asynccontextmanager
async def racers(count):
    """Start workers, of which the first two can meet."""
    ends = socket.socketpair()
    async with contextlib.AsyncExitStack() as stack:
        numbers = [end.fileno() for end in ends[:count]]
        workers = [await stack.enter_async_context(started("racing", number, pass_fds=(number,))) for number in numbers]
        for end in ends:
            end.close()
        yield workers


@attrs.frozen
class Pair:
    """Two processes that have hosts on the same store, wherever that is now."""

    workers: list[Worker]
    run: Callable[..., Any]

    @contextlib.asynccontextmanager
    async def hosts_at(self, place, mode="approve"):
        for worker in self.workers:
            await worker.ask("start", url=place.url, log=str(place.log.path), mode=mode)
        yield self.workers
        for worker in self.workers:
            await worker.ask("stop")

    async def both(self, do, **arguments):
        """Ask both for the same; return what they say, round by round."""
        first, second = await asyncio.gather(*(worker.ask(do, **arguments) for worker in self.workers))
        return list(zip(first, second, strict=True))

    async def tokens(self, texts):
        """Have a call proposed for each of *texts*, half of them by each."""
        middle = len(texts) // 2
        halves = zip(self.workers, (texts[:middle], texts[middle:]), strict=True)
        first, second = await asyncio.gather(*(worker.ask("propose", texts=half) for worker, half in halves))
        return [*first, *second]


@pytest.fixture(scope="module")
def pair():
    with asyncio.Runner() as runner:
        workers = racers(2)
        yield Pair(runner.run(workers.__aenter__()), runner.run)
        runner.run(workers.__aexit__(None, None, None))


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Return an empty store, of each kind in turn."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'agentos.db'}"
    else:
        url = by_socket(request.getfixturevalue("postgres_server"))
    return Place(url, Log(tmp_path / "executions"))


def outcomes(rounds):
    """Count what came out of the rounds, whoever it was that won."""
    return collections.Counter(tuple(sorted(one["error"] or "success" for one in pair)) for pair in rounds)


def once_each(texts):
    return dict.fromkeys(texts, 1)


# -- one token ---------------------------------------------------------------------------------------------------------


def test_of_two_processes_that_apply_one_token_one_wins_a_thousand_times(pair, place):
    """Most rounds meet at `approve`; the others where the token is taken, so that neither can see it used."""
    texts = [f"round {number}" for number in range(ROUNDS)]

    async def race():
        async with pair.hosts_at(place):
            at_the_door = await pair.both("approve", tokens=await pair.tokens(texts[CLAIMS:]))
            at_the_claim = await pair.both("claim", tokens=await pair.tokens(texts[:CLAIMS]))
        async with place.host() as host:
            return at_the_door, at_the_claim, await host.audit.verify()

    at_the_door, at_the_claim, verdict = pair.run(race())

    assert outcomes([*at_the_door, *at_the_claim]) == {("ProposalInvalid", "success"): ROUNDS}
    assert collections.Counter(place.log.lines()) == once_each(texts)
    assert {one["message"] for pair in at_the_claim for one in pair if not one["success"]} == {LATE}
    assert verdict


# -- one grant ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("do", ["call", "take"])
def test_a_once_grant_serves_one_call_of_two_processes(pair, place, do):
    """They meet where they call, or where the grant is taken."""
    texts = [f"grant {number}" for number in range(GRANTS)]

    async def race():
        async with place.host() as host:
            for text in texts:
                await host.grants.add("recorder:write", "once", arguments={"$.text": text})
        async with pair.hosts_at(place):
            return await pair.both(do, tool="write", texts=texts)

    rounds = pair.run(race())

    assert collections.Counter(place.log.lines()) == once_each(texts)
    assert [one for one in rounds if one[0]["success"] == one[1]["success"]] == []
    assert {error for found in outcomes(rounds) for error in found} <= {"success", "Refused", "ApprovalRequired"}


# -- one key -----------------------------------------------------------------------------------------------------------


def test_two_processes_with_one_key_run_it_once_and_get_the_same_result(pair, place):
    keys = [f"key {number}" for number in range(KEYS)]

    async def race():
        async with pair.hosts_at(place, "auto"):
            return await pair.both("call_keyed", tool="write", texts=keys)

    rounds = pair.run(race())

    assert outcomes(rounds) == {("success", "success"): KEYS}
    assert collections.Counter(place.log.lines()) == once_each(keys)
    assert [first["output"] for first, _ in rounds] == [second["output"] for _, second in rounds]
    assert {first["replayed"] + second["replayed"] for first, second in rounds} == {1}


async def call_while_it_runs(first, second, tool):
    """Have *first* in the midst of a call, and *second* wait for it with the same key; return both answers to come."""
    await first.ask("hold")
    running = first.begin("call_alone", tool=tool, text="held", key="k")
    await first.hear("running")
    waiting = second.begin("call_alone", tool=tool, text="held", key="k")
    await second.hear("waiting")
    return running, waiting


def test_a_repeat_in_another_process_waits_for_the_call_that_runs(pair, place):
    async def repeat():
        async with pair.hosts_at(place, "auto") as (first, second):
            running, waiting = await call_while_it_runs(first, second, "write")
            waited = not waiting.done()
            await first.ask("release")
            return waited, await running, await waiting

    waited, result, repeated = pair.run(repeat())

    assert waited
    assert repeated == {**result, "replayed": True}
    assert place.log.lines() == ["held"]


async def repeat_of_what_was_killed(pair, place, tool):
    """Kill the process that runs a call while another waits for its result; return what that one gets."""
    async with racers(1) as [first], pair.hosts_at(place, "auto") as [second, _]:
        await first.ask("start", url=place.url, log=str(place.log.path), mode="auto")
        running, waiting = await call_while_it_runs(first, second, tool)
        await first.kill()
        with contextlib.suppress(WorkerEndedError):
            await running
        return await waiting


def test_a_repeat_of_a_call_whose_process_was_killed_is_refused_in_words(pair, place):
    result = pair.run(repeat_of_what_was_killed(pair, place, "write"))

    assert (result["error"], result["message"]) == (
        "Refused",
        "the first call with this key was cut off; whether it took effect is unknown",
    )
    assert place.log.lines() == ["held"]


def test_a_repeat_of_an_idempotent_call_whose_process_was_killed_runs_again(pair, place):
    result = pair.run(repeat_of_what_was_killed(pair, place, "put"))

    assert (result["success"], result["replayed"]) == (True, False)
    assert place.log.lines() == ["held", "held"]


# -- one log -----------------------------------------------------------------------------------------------------------


@attrs.frozen
class Written:
    """What two processes wrote at once, and what a third found meanwhile and afterwards."""

    records: list[Any]
    meanwhile: list[Any]
    afterwards: Any


async def verdicts_until(done, host):
    """Verify again and again, at least once, while others write."""
    verdicts = [await host.audit.verify()]
    while not done.done():
        verdicts.append(await host.audit.verify())
    return verdicts


@pytest.fixture
def written(pair, place):
    """Have two processes make calls that change something, written one by one, and reads, written in batches."""
    texts = [f"call {number}" for number in range(CALLS)]

    async def write():
        await pair.both("call", tool="write", texts=texts)
        await pair.both("call", tool="look", texts=texts)

    async def race():
        async with place.host() as host:
            async with pair.hosts_at(place, "auto"):
                writing = asyncio.ensure_future(write())
                meanwhile = await verdicts_until(writing, host)
                await writing
            return Written(await host.audit.records(), meanwhile, await host.audit.verify())

    return pair.run(race())


def test_what_two_processes_write_at_once_is_one_chain_with_all_records(written):
    told = collections.Counter((record.event, record.data["tool"]) for record in written.records)

    assert told == {
        **{("pin", f"recorder:{tool}"): 1 for tool in ("write", "put", "look")},
        ("decision", "recorder:write"): 2 * CALLS,
        ("call", "recorder:write"): 2 * CALLS,
        ("call", "recorder:look"): 2 * CALLS,
    }
    assert (written.afterwards.ok, written.afterwards.records) == (True, 3 + 6 * CALLS)


def test_a_chain_is_found_whole_while_two_processes_write_to_it(written):
    assert [verdict for verdict in written.meanwhile if not verdict] == []
