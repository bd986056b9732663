"""A host that is killed at any step, and started again: nothing runs twice, and no record is lost."""

import asyncio
import itertools
import json
import signal
from collections.abc import Callable
from typing import Any

import attrs
import psycopg
import pytest
import store_fixtures
from access.workers.driving import Worker, started
from access.workers.places import by_socket
from access.workers.recording import KEY, Log, host_at

from agentos import AgentOS, ToolCall

pytestmark = pytest.mark.proof
postgres_server = store_fixtures.postgres_server

TRANSACTION = ["to be begun", "begun", "to be committed", "committed"]
RUN = ["to be run", "took effect", "run"]
WITHIN = {"statement", "to be recorded", "recorded"}


@attrs.frozen
class End:
    """How a host ended: the steps it got through, the last of them the fatal one unless it finished."""

    steps: tuple[str, ...]
    finished: bool

    @property
    def commits(self):
        return self.steps.count("committed")

    @property
    def effects(self):
        return self.steps.count("took effect")


@attrs.frozen
class Ground:
    """A store and a log of executions, and hosts that come and go there."""

    url: str
    log: Log
    spawner: Worker
    run: Callable[..., Any]
    """Runs a coroutine, in the event loop of the spawner."""

    def host(self, **options):
        return host_at(self.url, self.log, **options)

    def stranger(self):
        """Return a host on the same store that has no packs."""
        return AgentOS(store=self.url, store_key=KEY)

    async def end_of(self, flow, fatal, arguments, *, finely=False, **options):
        """Run *flow* in a host of its own that is killed at the step *fatal*."""
        host = {"url": self.url, "log": str(self.log.path), **options}
        told = await self.spawner.ask("spawn", flow=flow, fatal=fatal, finely=finely, host=host, arguments=arguments)
        assert told["code"] in ((0,) if told["finished"] else (-signal.SIGKILL, -signal.SIGALRM))
        await self._noticed()
        return End(tuple(told["steps"]), told["finished"])

    async def _noticed(self):
        """Wait until the server knows that a client is gone; for a file the kernel has seen to it."""
        if not self.url.startswith("postgresql"):
            return
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        with psycopg.connect(self.url, autocommit=True) as connection:
            while connection.execute(others).fetchone()[0]:
                await asyncio.sleep(0.002)


@pytest.fixture(scope="module")
def runner():
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def spawner(runner):
    """Return the one process that starts all those that are killed."""
    started_spawner = started("crashing")
    yield runner.run(started_spawner.__aenter__())
    runner.run(started_spawner.__aexit__(None, None, None))


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def place(request, tmp_path_factory, runner, spawner):
    """Return a function that makes a ground, on each kind of store in turn."""
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None

    def make():
        folder = tmp_path_factory.mktemp("ground")
        url = f"sqlite:///{folder / 'agentos.db'}" if server is None else by_socket(server)
        return Ground(url, Log(folder / "executions"), spawner, runner.run)

    return make


def until_finished(ground, once):
    """Call `once(fatal)` for each step that a host can be killed at, until one gets through; return what it returns."""

    async def one_after_another():
        found: list[Any] = []
        while not found or not found[-1].end.finished:
            found.append(await once(len(found) + 1))
        return found

    return ground.run(one_after_another())


def every_end(ground, flow, prepare, look, *, finely=False, **options):
    """Have a host killed at each step of *flow*, until one gets through; return what each looks like afterwards.

    `prepare(host, text)` returns the flow's arguments; `look(host, text, arguments, end)`, with a host that was started
    after the other's end, what it finds.
    """
    texts = (f"{flow} {number}" for number in itertools.count(1))
    ahead: list[Any] = []

    async def ready(host):
        text = next(texts)
        ahead.append((text, await prepare(host, text)))

    async def once(fatal):
        if not ahead:
            async with ground.host(**options) as host:
                await ready(host)
        text, arguments = ahead.pop()
        end = await ground.end_of(flow, fatal, arguments, finely=finely, **options)
        async with ground.host(**options) as host:
            found = await look(host, text, arguments, end)
            await ready(host)
        return found

    return until_finished(ground, once)


def assert_killed_everywhere(found, *parts):
    """Every step was the last of one host, the last host got through, and what it did was *parts*, in that order."""
    ends = [list(one.end.steps) for one in found]
    whole = ends[-1]
    rest = iter(step for step in whole if step not in WITHIN)

    assert ends == [*(whole[:number] for number in range(1, len(whole) + 1)), whole]
    assert [step for part in parts for step in part if step in rest] == [step for part in parts for step in part]


def those(found, **facts):
    """Return those with such facts; never none, or nothing would be shown."""
    chosen = [one for one in found if all(getattr(one, name) == value for name, value in facts.items())]
    assert chosen
    return chosen


def after(found, commits):
    """Return those that died after so many transactions; never none."""
    chosen = [one for one in found if one.end.commits == commits]
    assert chosen
    return chosen


async def proposed(host, text, tool="write", key=None):
    """Have a call proposed and return what it is told: `proposal_id`, `token`, ..."""
    result = await host.tools.process_tool_call(ToolCall(tool, {"text": text}, idempotency_key=key))
    return result.error.details


async def records_of(host, *events, **facts):
    """Return the records about something, in order; with *events*, those of them."""
    records = await host.audit.records()
    about = [record for record in records if facts.items() <= record.data.items()]
    return [record for record in about if not events or record.event in events]


async def events_of(host, **facts):
    return [record.event for record in await records_of(host, **facts)]


def kind_of(result):
    return "success" if result.success else result.error.type


# -- applying ----------------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Applied:
    """A proposal whose host was killed while it applied it, as a fresh host finds it, and what approving again does."""

    end: End
    state: str
    result: str | None
    executions: int
    again: str
    words: str
    executions_after: int
    events: list[str]
    chain_holds: bool


def applying(ground, tool, *, keyed=False, finely=False):
    """Kill hosts at every step of applying a proposal."""

    async def prepare(host, text):
        return {"token": (await proposed(host, text, tool, text if keyed else None))["token"]}

    async def look(host, text, arguments, end):
        token = arguments["token"]
        id = (await host.approvals.describe(token)).id
        result = await host.approvals.result(id)
        proposal = await host.approvals.describe(id)
        executions = ground.log.count(text)
        again = await host.approvals.approve(token)
        return Applied(
            end=end,
            state=proposal.state,
            result=None if result is None else result.output,
            executions=executions,
            again=kind_of(again),
            words=again.content,
            executions_after=ground.log.count(text),
            events=await events_of(host, proposal=id),
            chain_holds=bool(await host.audit.verify()),
        )

    return every_end(ground, "approve", prepare, look, finely=finely)


@pytest.fixture(scope="module")
def applied(place):
    """Return what is found after each way to die while a tool is applied that is not idempotent."""
    return applying(place(), "write", finely=True)


@pytest.fixture(scope="module")
def applied_again(place):
    """Return the same for an idempotent tool."""
    return applying(place(), "put")


@pytest.fixture(scope="module")
def applied_keyed(place):
    """Return the same for a tool that is not idempotent, and a call with an idempotency key."""
    return applying(place(), "write", keyed=True)


def test_hosts_are_killed_between_every_pair_of_steps_of_an_apply(applied):
    assert_killed_everywhere(applied, TRANSACTION, RUN, TRANSACTION)
    assert set(applied[-1].end.steps) > WITHIN


def test_no_apply_runs_twice(applied):
    assert [one for one in applied if one.executions_after > 1] == []


def test_an_apply_that_was_not_claimed_waits_and_can_be_approved_once(applied):
    unclaimed = after(applied, 0)

    assert {(one.state, one.executions, one.again, one.executions_after) for one in unclaimed} == {
        ("proposed", 0, "success", 1)
    }


def test_an_apply_that_was_cut_off_is_unknown_and_does_not_run_again(applied):
    cut_off = after(applied, 1)

    assert {(one.state, one.result, one.again) for one in cut_off} == {("unknown", None, "ProposalInvalid")}
    assert [one.executions_after for one in cut_off] == [one.end.effects for one in cut_off]


def test_approving_what_was_cut_off_says_that_it_is_unknown(applied):
    words = {one.words for one in after(applied, 1)}

    assert [text for text in words if "whether it took effect is unknown" not in text] == []


def test_an_apply_that_was_finished_has_its_result(applied):
    finished = after(applied, 2)

    assert {(one.state, one.again, one.executions_after) for one in finished} == {("applied", "ProposalInvalid", 1)}
    assert [one for one in finished if not one.result] == []


def test_what_was_applied_was_on_record_before(applied):
    ran = [one for one in applied if one.executions]

    assert {tuple(one.events[:2]) for one in ran} == {("proposal", "proposal:applying")}


def test_the_record_ends_with_the_state_of_the_proposal(applied):
    decided = [*after(applied, 1), *after(applied, 2)]
    events = [[event for event in one.events if event != "decision"] for one in decided]

    assert [one[-1] for one in events] == [f"proposal:{one.state}" for one in decided]


def test_the_chain_holds_after_every_death_of_an_apply(applied):
    assert all(one.chain_holds for one in applied)


def test_an_idempotent_apply_that_was_cut_off_is_applied_again(applied_again):
    cut_off = after(applied_again, 1)

    assert {(one.state, one.again) for one in cut_off} == {("applied", "ProposalInvalid")}
    assert [one.executions_after for one in cut_off] == [one.end.effects + 1 for one in cut_off]


def test_an_idempotent_apply_that_was_not_claimed_waits(applied_again):
    unclaimed = after(applied_again, 0)

    assert {(one.state, one.executions, one.again, one.executions_after) for one in unclaimed} == {
        ("proposed", 0, "success", 1)
    }


def test_an_idempotent_apply_that_was_finished_is_not_applied_again(applied_again):
    assert {(one.state, one.executions_after) for one in after(applied_again, 2)} == {("applied", 1)}


def test_each_time_that_something_is_applied_is_on_record(applied_again):
    events = ["proposal", "proposal:applying", "proposal:unknown", "proposal:applying", "proposal:applied", "decision"]

    assert {tuple(one.events) for one in after(applied_again, 1)} == {tuple(events)}


def test_the_chain_holds_after_every_death_of_an_idempotent_apply(applied_again):
    assert all(one.chain_holds for one in applied_again)


def test_hosts_are_killed_at_every_step_of_an_apply_with_a_key(applied_keyed):
    assert_killed_everywhere(applied_keyed, TRANSACTION, RUN, TRANSACTION)


def test_no_apply_with_a_key_runs_twice(applied_keyed):
    assert [one for one in applied_keyed if one.executions_after > 1] == []


def test_an_apply_with_a_key_is_cut_off_as_one_without(applied_keyed):
    cut_off = those(applied_keyed, state="unknown")

    assert {one.again for one in cut_off} == {"ProposalInvalid"}
    assert [one.executions_after for one in cut_off] == [one.end.effects for one in cut_off]


def test_an_apply_with_a_key_that_was_finished_has_its_result(applied_keyed):
    finished = those(applied_keyed, state="applied")

    assert {(one.again, one.executions_after) for one in finished} == {("ProposalInvalid", 1)}
    assert [one for one in finished if not one.result] == []


def test_an_apply_with_a_key_that_was_not_claimed_can_be_approved_once(applied_keyed):
    waiting = those(applied_keyed, state="proposed")

    assert {(one.executions, one.again, one.executions_after) for one in waiting} == {(0, "success", 1)}


def test_the_chain_holds_after_every_death_of_an_apply_with_a_key(applied_keyed):
    assert all(one.chain_holds for one in applied_keyed)


# -- at any moment -----------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Interrupted:
    """Several proposals that were applied when the process ended at no step in particular."""

    states: list[str]
    executions: list[int]
    again: list[str]
    executions_after: list[int]
    chain_holds: bool


@pytest.fixture(scope="module")
def interrupted(place):
    """Return what is found after processes that ended at moments a few milliseconds apart."""
    ground = place()

    async def once(number):
        texts = [f"moment {number} text {one}" for one in range(3)]
        async with ground.host() as host:
            tokens = [(await proposed(host, text))["token"] for text in texts]
        await ground.end_of("approve_all", 0, {"tokens": tokens, "moment": 0.003 * number + 0.001})
        async with ground.host() as host:
            states = [(await host.approvals.describe(token)).state for token in tokens]
            executions = [ground.log.count(text) for text in texts]
            again = [kind_of(await host.approvals.approve(token)) for token in tokens]
            executions_after = [ground.log.count(text) for text in texts]
            chain_holds = bool(await host.audit.verify())
        return Interrupted(
            states=states,
            executions=executions,
            again=again,
            executions_after=executions_after,
            chain_holds=chain_holds,
        )

    async def one_after_another():
        return [await once(number) for number in range(12)]

    return ground.run(one_after_another())


def test_nothing_runs_twice_at_whatever_moment_a_process_ends(interrupted):
    assert [one for one in interrupted if max(one.executions_after) > 1] == []


def test_the_state_tells_what_ran_at_whatever_moment_a_process_ended(interrupted):
    """Of what is unknown nobody can tell; all else is told truly."""
    told = [pair for one in interrupted for pair in zip(one.states, one.executions, one.again, strict=True)]

    assert {pair for pair in told if pair[0] != "unknown"} <= {
        ("proposed", 0, "success"),
        ("applied", 1, "ProposalInvalid"),
    }
    assert {again for state, _, again in told if state == "unknown"} <= {"ProposalInvalid"}


def test_the_chain_holds_at_whatever_moment_a_process_ended(interrupted):
    assert all(one.chain_holds for one in interrupted)


# -- finding what was cut off ------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Recovered:
    """A proposal that was cut off, after the host that was to find it was killed as well."""

    end: End
    state: str
    executions: int
    events: list[str]
    chain_holds: bool


def recovering(ground, tool):
    """Kill hosts at every step of starting, when a proposal was cut off before."""

    async def once(fatal):
        text = f"start {fatal}"
        async with ground.host() as host:
            details = await proposed(host, text, tool)
        cut_off = await ground.end_of("approve", len(TRANSACTION) + 2, {"token": details["token"]})
        assert cut_off.steps[-1] == "took effect"
        end = await ground.end_of("start", fatal, {"awaited": details["proposal_id"]})
        async with ground.host() as host:
            await host.approvals.result(details["proposal_id"])
            proposal = await host.approvals.describe(details["proposal_id"])
            return Recovered(
                end=end,
                state=proposal.state,
                executions=ground.log.count(text),
                events=await events_of(host, proposal=proposal.id),
                chain_holds=bool(await host.audit.verify()),
            )

    return until_finished(ground, once)


@pytest.fixture(scope="module")
def recovered(place):
    """Return what is found after each way to die while something cut off is found."""
    return recovering(place(), "write")


@pytest.fixture(scope="module")
def resumed(place):
    """Return what is found after each way to die while something cut off is applied again."""
    return recovering(place(), "put")


def test_what_was_cut_off_is_found_once_however_often_hosts_die(recovered):
    assert_killed_everywhere(recovered, TRANSACTION)
    assert {(one.state, one.executions, tuple(one.events)) for one in recovered} == {
        ("unknown", 1, ("proposal", "proposal:applying", "proposal:unknown"))
    }


def test_hosts_are_killed_at_every_step_of_applying_again(resumed):
    assert_killed_everywhere(resumed, TRANSACTION, RUN, TRANSACTION)


def test_what_is_applied_again_is_applied_in_the_end_however_often_hosts_die(resumed):
    assert {(one.state, one.events[-1]) for one in resumed} == {("applied", "proposal:applied")}


def test_what_is_applied_again_is_on_record_each_time(resumed):
    assert [one for one in resumed if one.events.count("proposal:applying") < one.executions] == []


def test_what_was_applied_again_is_not_applied_once_more(resumed):
    assert {(one.state, one.executions) for one in resumed if one.end.finished} == {("applied", 2)}


def test_what_is_applied_again_may_be_found_first_by_a_host_without_the_tool(place):
    ground = place()

    async def find():
        async with ground.host() as host:
            details = await proposed(host, "lost and found", "put")
        await ground.end_of("approve", len(TRANSACTION) + 2, {"token": details["token"]})
        async with ground.stranger() as host:
            await host.approvals.pending()
        async with ground.host() as host:
            await host.approvals.result(details["proposal_id"])
            return await host.approvals.describe(details["proposal_id"])

    assert ground.run(find()).state == "applied"


def test_the_chain_holds_after_every_death_of_a_start(recovered, resumed):
    assert all(one.chain_holds for one in [*recovered, *resumed])


# -- proposing, editing, rejecting -------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Left:
    """What is left of something that is written in one transaction: what there is, and what the records say."""

    end: End
    found: Any
    recorded: Any
    chain_holds: bool


def left_of(ground, flow, prepare, look, **options):
    """Kill hosts at every step of *flow*; `look(host, text, arguments)` returns what there is and what is recorded."""

    async def look_at(host, text, arguments, end):
        found, recorded = await look(host, text, arguments)
        chain_holds = bool(await host.audit.verify())
        return Left(end=end, found=found, recorded=recorded, chain_holds=chain_holds)

    return every_end(ground, flow, prepare, look_at, **options)


def assert_both_or_neither(left, before, afterwards):
    """What there is and what is recorded changed together, and the chain holds."""
    assert_killed_everywhere(left, TRANSACTION)
    assert [one.found for one in left] == [one.recorded for one in left]
    assert (left[0].found, left[-1].found) == (before, afterwards)
    assert [one for one in left if one.found not in (before, afterwards)] == []
    assert all(one.chain_holds for one in left)


async def with_text(host, text):
    return [one for one in await host.approvals.pending() if one.arguments == {"text": text}]


def test_a_proposal_is_there_with_its_record_or_not_at_all(place):
    async def prepare(host, text):
        return {"tool": "write", "text": text}

    async def look(host, text, arguments):
        others = [one.id for one in await host.approvals.pending() if one.arguments != {"text": text}]
        recorded = [record.data["proposal"] for record in await records_of(host, "proposal")]
        return len(await with_text(host, text)), len(recorded) - len(others)

    assert_both_or_neither(left_of(place(), "call", prepare, look), 0, 1)


def test_an_edit_leaves_one_proposal_that_waits_with_its_record(place):
    async def prepare(host, text):
        return {"id": (await proposed(host, text))["proposal_id"], "text": f"{text} edited"}

    async def look(host, text, arguments):
        old = await host.approvals.describe(arguments["id"])
        new = await with_text(host, f"{text} edited")
        recorded = await records_of(host, "proposal", parent=old.id)
        return (old.state, len(new)), ("rejected" if recorded else "proposed", len(recorded))

    assert_both_or_neither(left_of(place(), "edit", prepare, look), ("proposed", 0), ("rejected", 1))


def test_a_rejection_is_there_with_its_record_or_not_at_all(place):
    async def prepare(host, text):
        return {"id": (await proposed(host, text))["proposal_id"]}

    async def look(host, text, arguments):
        proposal = await host.approvals.describe(arguments["id"])
        recorded = await records_of(host, "proposal:rejected", proposal=proposal.id)
        return proposal.state, "rejected" if recorded else "proposed"

    assert_both_or_neither(left_of(place(), "reject", prepare, look), "proposed", "rejected")


# -- grants, pins, packs -----------------------------------------------------------------------------------------------


async def grant_of(host, text):
    return [one for one in await host.grants.list() if dict(one.arguments.match) == {"$.text": text}]


def test_a_grant_is_there_with_its_record_or_not_at_all(place):
    async def prepare(host, text):
        return {"text": text}

    async def look(host, text, arguments):
        patterns = [json.loads(record.data["pattern"]) for record in await records_of(host, "grant")]
        recorded = [one for one in patterns if one["match"] == {"$.text": text}]
        return len(await grant_of(host, text)), len(recorded)

    assert_both_or_neither(left_of(place(), "grant", prepare, look), 0, 1)


def test_a_revocation_is_there_with_its_record_or_not_at_all(place):
    async def prepare(host, text):
        return {"id": (await host.grants.add("recorder:write", "once", arguments={"$.text": text})).id}

    async def look(host, text, arguments):
        recorded = await records_of(host, "grant:revoked", grant=arguments["id"])
        return bool(await grant_of(host, text)), not recorded

    assert_both_or_neither(left_of(place(), "revoke", prepare, look), True, False)


@attrs.frozen(kw_only=True)
class Granted:
    """A call with a `once` grant whose host was killed, and what the same call comes to afterwards."""

    end: End
    is_granted: bool
    executions: int
    records: list[str]
    again: str
    executions_after: int
    chain_holds: bool


@pytest.fixture(scope="module")
def granted(place):
    """Return what is found after each way to die in a call that a `once` grant allows."""
    ground = place()

    async def prepare(host, text):
        await host.grants.add("recorder:write", "once", arguments={"$.text": text})
        return {"tool": "write", "text": text}

    async def look(host, text, arguments, end):
        is_granted, executions = bool(await grant_of(host, text)), ground.log.count(text)
        records = await events_of(host, call_id=text)
        again = await host.tools.process_tool_call(ToolCall("write", {"text": text}))
        return Granted(
            end=end,
            is_granted=is_granted,
            executions=executions,
            records=records,
            again=kind_of(again),
            executions_after=ground.log.count(text),
            chain_holds=bool(await host.audit.verify()),
        )

    return every_end(ground, "call", prepare, look)


def test_a_once_grant_serves_one_run_whatever_dies(granted):
    assert_killed_everywhere(granted, TRANSACTION, RUN, TRANSACTION)
    assert [one for one in granted if one.executions_after > 1] == []


def test_a_once_grant_that_was_not_taken_still_serves(granted):
    assert {(one.executions, one.again) for one in those(granted, is_granted=True)} == {(0, "success")}


def test_a_once_grant_that_was_taken_does_not_serve_again(granted):
    taken = those(granted, is_granted=False)

    assert {one.again for one in taken} == {"ApprovalRequired"}
    assert [one.executions_after for one in taken] == [one.end.effects for one in taken]


def test_what_a_grant_allowed_was_on_record_before(granted):
    assert {one.records[0] for one in granted if one.executions} == {"decision"}


def test_a_once_grant_is_not_used_up_without_a_record(granted):
    assert [one for one in those(granted, is_granted=False) if not one.records] == []


def test_the_chain_holds_after_every_death_with_a_grant(granted):
    assert all(one.chain_holds for one in granted)


def test_a_pack_is_disabled_with_its_record_or_not_at_all(place):
    async def prepare(host, text):
        await host.extensions.enable("recorder")
        return {"pack": "recorder"}

    async def look(host, text, arguments):
        [pack] = host.extensions.packs()
        recorded = await records_of(host, "pack", pack="recorder")
        return pack.enabled, not recorded or recorded[-1].data["enabled"]

    assert_both_or_neither(left_of(place(), "disable", prepare, look), True, False)


@attrs.frozen(kw_only=True)
class Pinned:
    """What is pinned of a new pack whose host was killed when it first saw it, and after a host has seen it again."""

    end: End
    pinned: list[str]
    recorded: list[str]
    pinned_after: list[str]
    recorded_after: list[str]
    pending_after: list[Any]
    chain_holds: bool


@pytest.fixture(scope="module")
def pinned(place):
    """Return what is found after each way to die when definitions are seen for the first time."""
    ground = place()

    async def pins_of(host, name):
        accepted = [one.tool for one in await host.pins.accepted() if one.tool.startswith(f"{name}:")]
        recorded = [record.data["tool"] for record in await records_of(host, "pin")]
        return sorted(accepted), sorted(one for one in recorded if one.startswith(f"{name}:"))

    async def once(fatal):
        name = f"pack{fatal}"
        end = await ground.end_of("start", fatal, {}, name=name)
        async with ground.stranger() as host:
            await host.pins.load()
            before = await pins_of(host, name)
        async with ground.host(name=name) as host:
            afterwards = await pins_of(host, name)
            pending = await host.pins.pending()
            chain_holds = bool(await host.audit.verify())
        facts = dict(zip(("pinned", "recorded"), before, strict=True))
        facts |= dict(zip(("pinned_after", "recorded_after"), afterwards, strict=True))
        return Pinned(end=end, **facts, pending_after=pending, chain_holds=chain_holds)

    return until_finished(ground, once)


def test_each_pin_is_there_with_its_record_or_not_at_all(pinned):
    assert_killed_everywhere(pinned, TRANSACTION)
    assert [one.pinned for one in pinned] == [one.recorded for one in pinned]
    assert (len(pinned[0].pinned), len(pinned[-1].pinned)) == (0, 3)


def test_what_was_not_pinned_yet_is_pinned_by_the_next_host_once(pinned):
    assert [one for one in pinned if len(one.pinned_after) != 3 or one.recorded_after != one.pinned_after] == []


def test_nothing_is_held_back_because_a_host_died(pinned):
    assert [one for one in pinned if one.pending_after] == []


def test_the_chain_holds_after_every_death_of_a_first_sight(pinned):
    assert all(one.chain_holds for one in pinned)


def test_an_accepted_definition_is_there_with_its_record_or_not_at_all(place):
    """Every host is the one that changed: it starts with a definition that was not accepted yet."""
    ground = place()

    async def once(fatal):
        wording = f", for the {fatal}. time"
        end = await ground.end_of("accept", fatal, {"tool": "recorder:write"}, wording=wording)
        async with ground.host(wording=wording) as host:
            waiting = [one for one in await host.pins.pending() if one.tool == "recorder:write"]
            definition = next(one.definition for one in [*waiting, *await host.pins.accepted()] if _is_write(one))
            recorded = await records_of(host, "pin", definition=definition)
            chain_holds = bool(await host.audit.verify())
        return Left(end=end, found=not waiting, recorded=len(recorded) == 1, chain_holds=chain_holds)

    def _is_write(pin):
        return pin.tool == "recorder:write"

    async def accept_the_first():
        async with ground.host():
            pass

    ground.run(accept_the_first())
    assert_both_or_neither(until_finished(ground, once), False, True)


# -- calls with an idempotency key -------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Keyed:
    """A call with a key whose host was killed, and what a repeat after a restart comes to."""

    end: End
    executions: int
    records: list[str]
    repeat: str
    replayed: bool
    words: str
    executions_after: int
    chain_holds: bool


def repeating(ground, tool):
    """Kill hosts at every step of a call that has a key and need not be approved."""

    async def prepare(host, text):
        return {"tool": tool, "text": text, "key": text}

    async def look(host, text, arguments, end):
        executions = ground.log.count(text)
        records = await events_of(host, call_id=text)
        repeat = await host.tools.process_tool_call(ToolCall(tool, {"text": text}, idempotency_key=text))
        return Keyed(
            end=end,
            executions=executions,
            records=records,
            repeat=kind_of(repeat),
            replayed=bool(repeat.meta.get("replayed")),
            words=repeat.content,
            executions_after=ground.log.count(text),
            chain_holds=bool(await host.audit.verify()),
        )

    return every_end(ground, "call", prepare, look, mode="auto")


@pytest.fixture(scope="module")
def repeated(place):
    """Return what is found after each way to die in a keyed call of a tool that is not idempotent."""
    return repeating(place(), "write")


@pytest.fixture(scope="module")
def repeated_freely(place):
    """Return the same for an idempotent tool."""
    return repeating(place(), "put")


def test_hosts_are_killed_at_every_step_of_a_call_with_a_key(repeated, repeated_freely):
    assert_killed_everywhere(repeated, TRANSACTION, RUN, TRANSACTION)
    assert_killed_everywhere(repeated_freely, TRANSACTION, RUN, TRANSACTION)


def test_no_call_with_a_key_runs_twice(repeated):
    assert [one for one in repeated if one.executions_after > 1] == []


def test_a_key_that_was_not_claimed_is_free(repeated):
    assert {(one.repeat, one.replayed, one.executions_after) for one in after(repeated, 0)} == {("success", False, 1)}


def test_a_repeat_of_what_was_cut_off_is_refused_in_words(repeated):
    cut_off = those(repeated, repeat="Refused")

    assert [one for one in cut_off if "whether it took effect is unknown" not in one.words] == []
    assert [one.executions_after for one in cut_off] == [one.end.effects for one in cut_off]


def test_a_repeat_of_what_was_finished_gets_its_result(repeated):
    finished = those(repeated, replayed=True)

    assert repeated[-1] in finished
    assert {(one.repeat, one.executions_after) for one in finished} == {("success", 1)}


def test_a_repeat_of_an_idempotent_call_that_was_cut_off_runs_again(repeated_freely):
    cut_off = those(repeated_freely, replayed=False)

    assert {one.repeat for one in cut_off} == {"success"}
    assert [one.executions_after for one in cut_off] == [one.end.effects + 1 for one in cut_off]


def test_a_repeat_of_an_idempotent_call_that_was_finished_does_not_run_again(repeated_freely):
    finished = those(repeated_freely, replayed=True)

    assert repeated_freely[-1] in finished
    assert {(one.repeat, one.executions_after) for one in finished} == {("success", 1)}


def test_a_call_that_ran_was_on_record_before(repeated, repeated_freely):
    ran = [one for one in [*repeated, *repeated_freely] if one.executions]

    assert {one.records[0] for one in ran} == {"decision"}


def test_the_chain_holds_after_every_death_with_a_key(repeated, repeated_freely):
    assert all(one.chain_holds for one in [*repeated, *repeated_freely])
