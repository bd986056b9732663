"""Idempotency keys: what was called once with a key is not done again, and no key is ever stuck."""

import asyncio
import contextlib
import itertools
import sqlite3

import pytest
from cancelling import cancelled_after, cancelled_at

from agentos import PUBLIC, AgentOS, ExtensionPack, Principal, Tool, ToolCall
from agentos.access.idempotency import _sealed_text

ANN = Principal("ann")
BOB = Principal("bob")
NOW = 1_800_000_000.0
DAY = 24 * 3600.0


class Clock:
    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


class Counter:
    """A tool's body that counts its runs; told to wait, it does so until it is let go."""

    def __init__(self, *, waits=False):
        self.runs = 0
        self.started = asyncio.Event()
        self.open = asyncio.Event()
        if not waits:
            self.open.set()

    async def __call__(self, args, context):
        self.runs += 1
        self.started.set()
        await self.open.wait()
        return {"run": self.runs, "n": args.get("n")}


def acting(execute, name="act", effect="mutate", **fields):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "text": {"type": "string"}}}
    return Tool.from_schema(
        name=name,
        description="Do it.",
        input_schema=schema,
        effect=effect,
        required_access=PUBLIC,
        execute=execute,
        **fields,
    )


@contextlib.asynccontextmanager
async def hosted(store, *tools, **options):
    options.setdefault("budget", None)
    options.setdefault("mode", "auto")
    async with AgentOS(store=store, **options) as host:
        outcome = await host.extensions.load_pack(ExtensionPack("p", "1.0", tools))
        assert outcome.status == "loaded", outcome
        yield host


async def call(host, key="k", arguments=None, name="act", principal=None, **fields):
    given = ToolCall(name, arguments, idempotency_key=key, **fields)
    return await host.tools.process_tool_call(given, principal)


def kind(result):
    return "ok" if result.success else result.error.type


def bug(reason):
    """Mark what the code does not keep yet."""
    return pytest.mark.xfail(strict=True, reason=reason)


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "agentos.db"


@pytest.fixture(params=["read", "mutate"])
def effect(request):
    return request.param


# -- repeats -----------------------------------------------------------------------------------------------------------


async def test_a_repeat_gets_the_first_result_whatever_its_call_id(store, effect):
    body = Counter()
    async with hosted(store, acting(body, effect=effect)) as host:
        first = await call(host, id="one")
        second = await call(host, id="two")

    assert (first.output, second.output) == ({"run": 1, "n": None},) * 2
    assert (first.call_id, second.call_id) == ("one", "two")
    assert second.meta["replayed"] is True
    assert body.runs == 1


async def test_without_a_key_a_call_id_makes_no_repeat(store):
    body = Counter()
    async with hosted(store, acting(body)) as host:
        await call(host, None, id="one")
        await call(host, None, id="one")

    assert body.runs == 2


async def test_another_key_principal_or_tool_is_another_call(store):
    body = Counter()
    async with hosted(store, acting(body), acting(body, "other")) as host:
        await call(host)
        await call(host, "l")
        await call(host, principal=ANN)
        await call(host, principal=BOB)
        await call(host, name="other")

    assert body.runs == 5


async def test_another_name_of_the_same_tool_is_the_same_call(store):
    body = Counter()
    async with hosted(store, acting(body, aliases=("do",))) as host:
        for name in ("act", "do", "p:act"):
            await call(host, name=name)

    assert body.runs == 1


async def test_a_key_with_other_arguments_is_refused(store):
    body = Counter()
    async with hosted(store, acting(body)) as host:
        await call(host, arguments={"n": 1})
        result = await call(host, arguments={"n": 2})

    assert (kind(result), "other arguments" in result.content) == ("Refused", True)
    assert body.runs == 1


async def test_the_same_arguments_written_otherwise_are_the_same(store):
    body = Counter()
    async with hosted(store, acting(body)) as host:
        await call(host, arguments={"n": 1, "text": "a"})
        result = await call(host, arguments='{ "text": "\\u0061", "n": 1 }')

    assert kind(result) == "ok"
    assert body.runs == 1


async def test_a_failure_is_a_result_that_a_repeat_gets(store):
    runs = []

    async def fails(args, context):
        runs.append(1)
        raise ValueError("broken")

    async with hosted(store, acting(fails)) as host:
        results = [await call(host) for _ in range(3)]

    assert [kind(one) for one in results] == ["ToolRaised"] * 3
    assert len(runs) == 1


async def test_a_repeat_survives_a_restart(tmp_path):
    store, body = tmp_path / "agentos.db", Counter()
    async with hosted(store, acting(body)) as host:
        first = await call(host)
    async with hosted(store, acting(body)) as host:
        second = await call(host)

    assert first.output == second.output
    assert body.runs == 1


async def test_a_repeat_needs_the_access_that_the_call_needs(store):
    body = Counter()
    one = acting(body)
    async with hosted(store, one) as host:
        await call(host, principal=ANN)
        await host.grants.add("act", "never", principal=ANN)
        result = await call(host, principal=ANN)

    assert kind(result) == "Refused"


@pytest.mark.parametrize("key", ["", "x" * 201, 5, b"k", ["k"], {"k": 1}, True], ids=lambda key: repr(key)[:9])
@pytest.mark.parametrize("mode", ["auto", pytest.param("approve")])
async def test_a_key_that_is_none_is_refused_before_anything_happens(key, mode):
    body = Counter()
    async with hosted(None, acting(body), mode=mode) as host:
        result = await call(host, key)

        assert (kind(result), "idempotency_key" in result.content) == ("InvalidArguments", True)
        assert await host.approvals.pending() == []
    assert body.runs == 0


@pytest.mark.parametrize(
    "key",
    [
        *("\0", "ä😀", "' OR 1=1", " "),
        pytest.param("\ud800"),
    ],
    ids=repr,
)
async def test_any_text_may_be_a_key_or_is_refused_in_a_result(key):
    body = Counter()
    async with hosted(None, acting(body)) as host:
        first = await call(host, key)
        second = await call(host, key)

    assert kind(first) == kind(second)
    assert kind(first) in ("ok", "InvalidArguments")
    assert body.runs <= 1


# -- while the first runs ----------------------------------------------------------------------------------------------


async def test_fifty_calls_with_one_key_at_once_run_once(store, effect):
    body = Counter()
    async with hosted(store, acting(body, effect=effect)) as host:
        results = await asyncio.gather(*(call(host, id=str(number)) for number in range(50)))

    assert [one.output for one in results] == [{"run": 1, "n": None}] * 50
    assert [one.call_id for one in results] == [str(number) for number in range(50)]
    assert body.runs == 1


async def test_a_repeat_waits_for_the_call_that_runs(store):
    body = Counter(waits=True)
    async with hosted(store, acting(body)) as host:
        first = asyncio.ensure_future(call(host))
        await body.started.wait()
        second = asyncio.ensure_future(call(host))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not second.done()
        body.open.set()

        assert (await first).output == (await second).output
    assert body.runs == 1


async def test_a_repeat_in_another_host_waits_for_the_call_that_runs(tmp_path):
    store, body = tmp_path / "agentos.db", Counter(waits=True)
    async with hosted(store, acting(body)) as one, hosted(store, acting(body)) as other:
        first = asyncio.ensure_future(call(one))
        await body.started.wait()
        second = asyncio.ensure_future(call(other))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not second.done()
        body.open.set()

        assert (await first).output == (await second).output
    assert body.runs == 1


async def test_two_hosts_race_for_one_key_and_one_runs(tmp_path):
    store, body = tmp_path / "agentos.db", Counter()
    async with hosted(store, acting(body)) as one, hosted(store, acting(body)) as other:
        for number in range(5):
            await asyncio.gather(*(call(host, f"k{number}") for host in [one, other] * 3))

    assert body.runs == 5


async def test_a_cancelled_repeat_does_not_disturb_the_call_that_runs(store):
    body = Counter(waits=True)
    async with hosted(store, acting(body)) as host:
        first = asyncio.ensure_future(call(host))
        await body.started.wait()
        for turns in range(0, 40, 5):
            await cancelled_after(turns, call(host))
        body.open.set()

        assert kind(await first) == "ok"
        assert kind(await call(host)) == "ok"
    assert body.runs == 1


async def test_who_waits_for_a_cancelled_first_call_gets_a_result_too(store):
    body = Counter(waits=True)
    async with hosted(store, acting(body)) as host:
        first = asyncio.ensure_future(call(host))
        await body.started.wait()
        second = asyncio.ensure_future(call(host))
        await asyncio.sleep(0)
        first.cancel()

        async with asyncio.timeout(5):
            assert kind(await second) == "Cancelled"
    assert body.runs == 1


# -- when a host died --------------------------------------------------------------------------------------------------


def cut_off(host, store):
    """Leave the row that a host leaves which died while the call with the one key ran."""
    with contextlib.closing(sqlite3.connect(store)) as database, database:
        database.row_factory = sqlite3.Row
        row = dict(database.execute("SELECT * FROM idempotency").fetchone())
        row |= {"state": "running", "owner": "0" * 32, "result": None, "finished_at": None}
        row["seal"] = host._store.seal(_sealed_text(row))
        database.execute("UPDATE idempotency SET " + ", ".join(f"{name} = :{name}" for name in row), row)


async def test_a_call_whose_host_died_is_not_done_again(tmp_path):
    store, body = tmp_path / "agentos.db", Counter()
    async with hosted(store, acting(body)) as host:
        await call(host)
        cut_off(host, store)
        result = await call(host)

    assert (kind(result), "unknown" in result.content) == ("Refused", True)
    assert body.runs == 1


@pytest.mark.parametrize("fields", [{"effect": "read"}, {"idempotent": True}])
async def test_a_call_whose_host_died_is_done_again_if_that_does_no_harm(tmp_path, fields):
    store, body = tmp_path / "agentos.db", Counter()
    async with hosted(store, acting(body, **fields)) as host:
        await call(host)
        cut_off(host, store)
        results = await asyncio.gather(*(call(host) for _ in range(5)))

    assert {kind(one) for one in results} == {"ok"}
    assert body.runs == 2


# -- what somebody changed in the store --------------------------------------------------------------------------------


def change(store, sql, *values):
    with contextlib.closing(sqlite3.connect(store)) as database, database:
        database.execute(sql, values)


FORGED = {
    "another result": "UPDATE idempotency SET result = replace(result, '1', '7')",
    "another call": "UPDATE idempotency SET proposal = 'x'",
    "a dead host": "UPDATE idempotency SET state = 'running', owner = '" + "0" * 32 + "', result = NULL",
    "no seal": "UPDATE idempotency SET seal = ''",
}


@pytest.mark.parametrize("sql", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("fields", [{}, {"idempotent": True}], ids=["once", "idempotent"])
async def test_what_somebody_changed_is_neither_returned_nor_run(tmp_path, sql, fields):
    store, body = tmp_path / "agentos.db", Counter()
    async with hosted(store, acting(body, **fields)) as host:
        await call(host)
        change(store, sql)
        result = await call(host)

    assert (kind(result), "has no seal of this store" in result.content) == ("Refused", True)
    assert body.runs == 1


async def test_what_somebody_changed_is_not_returned_where_the_call_would_be_asked_about(tmp_path):
    store, body = tmp_path / "agentos.db", Counter()
    async with hosted(store, acting(body)) as host:
        await call(host)
    change(store, FORGED["another result"])
    async with hosted(store, acting(body), mode="approve") as host:
        assert kind(await call(host)) == "ApprovalRequired"


# -- how long a key is kept --------------------------------------------------------------------------------------------


async def test_a_key_is_kept_for_a_day(store):
    clock, body = Clock(), Counter()
    async with hosted(store, acting(body), clock=clock) as host:
        await call(host)
        clock.now += DAY - 1
        await call(host)
        assert body.runs == 1
        clock.now += DAY
        await call(host)

    assert body.runs == 2


async def test_a_clock_that_goes_back_does_not_forget_a_key(store):
    clock, body = Clock(), Counter()
    async with hosted(store, acting(body), clock=clock) as host:
        await call(host)
        clock.now -= 10 * DAY
        await call(host)
        clock.now += 10 * DAY
        await call(host)

    assert body.runs == 1


async def test_a_key_whose_call_still_runs_is_not_forgotten(store):
    clock, body = Clock(), Counter(waits=True)
    async with hosted(store, acting(body), clock=clock) as host:
        first = asyncio.ensure_future(call(host))
        await body.started.wait()
        clock.now += 2 * DAY
        body.started.clear()
        second = asyncio.ensure_future(call(host))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await body.started.wait()
        body.open.set()
        await asyncio.gather(first, second)

    assert body.runs == 1


# -- keys and approvals ------------------------------------------------------------------------------------------------


async def test_a_repeat_of_an_approved_call_gets_its_result_without_being_asked(store):
    body = Counter()
    async with hosted(store, acting(body), mode="approve") as host:
        details = (await call(host)).error.details
        first = await host.approvals.approve(details["token"])
        second = await call(host)

    assert (kind(second), second.output) == ("ok", first.output)
    assert body.runs == 1


async def test_two_proposals_with_one_key_run_once(store):
    body = Counter()
    async with hosted(store, acting(body), mode="approve") as host:
        both = [(await call(host)).error.details for _ in range(2)]
        results = [await host.approvals.approve(one["token"]) for one in both]
        states = [(await host.approvals.describe(one["proposal_id"])).state for one in both]

    assert [one.output for one in results] == [{"run": 1, "n": None}] * 2
    assert states == ["applied", "applied"]
    assert body.runs == 1


async def test_two_proposals_with_one_key_approved_at_once_run_once(store):
    body = Counter()
    async with hosted(store, acting(body), mode="approve") as host:
        both = [(await call(host)).error.details for _ in range(2)]
        results = await asyncio.gather(*(host.approvals.approve(one["token"]) for one in both))
        states = [(await host.approvals.describe(one["proposal_id"])).state for one in both]

    assert [kind(one) for one in results] == ["ok", "ok"]
    assert states == ["applied", "applied"]
    assert body.runs == 1


async def test_a_token_that_was_used_leaves_its_key_alone(store):
    body = Counter()
    async with hosted(store, acting(body), mode="approve") as host:
        details = (await call(host)).error.details
        await asyncio.gather(*(host.approvals.approve(details["token"]) for _ in range(10)))
        again = await call(host)

    assert (kind(again), again.output) == ("ok", {"run": 1, "n": None})
    assert body.runs == 1


async def test_a_call_that_was_refused_does_not_use_up_its_key(store):
    body = Counter()
    async with hosted(store, acting(body)) as host:
        grant = await host.grants.add("act", "never")
        assert kind(await call(host)) == "Refused"
        await host.grants.revoke(grant.id)

        assert kind(await call(host)) == "ok"


async def test_a_call_that_can_not_be_recorded_does_not_use_up_its_key(tmp_path):
    store, body = tmp_path / "agentos.db", Counter()
    async with hosted(store, acting(body)) as host:
        with contextlib.closing(sqlite3.connect(store)) as database, database:
            database.execute("ALTER TABLE audit RENAME TO elsewhere")
        assert kind(await call(host)) == "Refused"
        with contextlib.closing(sqlite3.connect(store)) as database, database:
            database.execute("ALTER TABLE elsewhere RENAME TO audit")

        assert kind(await call(host)) == "ok"
    assert body.runs == 1


@pytest.mark.parametrize("mode", ["auto", pytest.param("approve")])
async def test_a_broken_table_of_keys_gives_a_result_and_runs_nothing(tmp_path, mode):
    store, body = tmp_path / "agentos.db", Counter()
    async with hosted(store, acting(body), mode=mode) as host:
        with contextlib.closing(sqlite3.connect(store)) as database, database:
            database.execute("ALTER TABLE idempotency RENAME TO elsewhere")
        result = await call(host)

    assert kind(result) == "Refused"
    assert body.runs == 0


async def test_a_result_that_can_not_be_kept_is_still_the_result(tmp_path):
    store, body = tmp_path / "agentos.db", Counter(waits=True)
    async with hosted(store, acting(body, effect="read")) as host:
        first = asyncio.ensure_future(call(host))
        await body.started.wait()
        with contextlib.closing(sqlite3.connect(store)) as database, database:
            database.execute("CREATE TRIGGER stop BEFORE UPDATE ON idempotency BEGIN SELECT RAISE(ABORT, 'stop'); END")
        body.open.set()

        assert kind(await first) == "ok"
        async with asyncio.timeout(5):
            assert (await call(host)).output == {"run": 1, "n": None}
    assert body.runs == 1


# -- cancellation ------------------------------------------------------------------------------------------------------


async def is_stuck(host, key):
    """Tell whether a repeat with *key* does not come to an end."""
    try:
        async with asyncio.timeout(5):
            await call(host, key)
    except TimeoutError:
        return True
    return False


async def wherever_cancelled(make):
    """Cancel what `make(key)` returns at its first wait, its second, and so on; and after 0 to 60 turns of the loop.

    Yields the key of each try, when it is over.
    """
    for later in (False, True):
        for turn in itertools.count(1):
            key = f"wait {turn}{' later' if later else ''}"
            was_cancelled = await cancelled_at(turn, make(key), later=later)
            yield key
            if not was_cancelled:
                break
    for turns in range(0, 61, 6):
        await cancelled_after(turns, make(f"turn {turns}"))
        yield f"turn {turns}"


async def test_no_key_is_stuck_wherever_its_first_caller_was_cancelled(store, effect):
    body = Counter()
    async with hosted(store, acting(body, effect=effect)) as host:
        stuck = []
        async for key in wherever_cancelled(lambda key: call(host, key)):
            runs = body.runs
            if await is_stuck(host, key):
                stuck.append(key)
                break  # each costs seconds
            assert body.runs - runs <= 1

    assert stuck == []


async def test_a_call_that_was_cancelled_before_it_ran_does_not_use_up_its_key(store):
    """Where the tool did not even begin, a repeat is the first call; it is not told that it was cancelled."""
    body = Counter()
    async with hosted(store, acting(body)) as host:
        burnt = []
        for turn in itertools.count(1):
            runs = body.runs
            was_cancelled = await cancelled_at(turn, call(host, f"k{turn}"))
            if body.runs > runs or not was_cancelled:
                break
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5):
                    if kind(await call(host, f"k{turn}")) != "ok":
                        burnt.append(turn)

    assert burnt == []


async def test_no_proposal_hangs_when_the_approver_of_a_repeat_is_cancelled(store):
    """The second of two proposals with one key is closed with the first one's result: wholly, or not at all."""
    body = Counter()
    async with hosted(store, acting(body), mode="approve") as host:
        hanging = []
        for turn in itertools.count(1):
            both = [(await call(host, f"k{turn}")).error.details for _ in range(2)]
            await host.approvals.approve(both[0]["token"])
            was_cancelled = await cancelled_at(turn, host.approvals.approve(both[1]["token"]))
            state = (await host.approvals.describe(both[1]["proposal_id"])).state
            if state not in ("proposed", "applied"):
                hanging.append((turn, state))
            if not was_cancelled:
                break

    assert hanging == []
