"""Budgets: how much a principal may do. A slot is taken before a call runs, and none is lost, however the call ends."""

import asyncio
import contextlib
import itertools

import pytest
from cancelling import cancelled_after, cancelled_at
from hypothesis import given
from hypothesis import strategies as st

from agentos import PUBLIC, AgentOS, Answer, Budget, Descriptor, ExtensionPack, Principal, Tool, ToolCall
from agentos.access.budgets import Budgets

ANN = Principal("ann")
BOB = Principal("bob")
HOUR = 3600.0


class Gate:
    """A tool's body that waits until it is let go, and counts how many wait at once."""

    def __init__(self):
        self.open = asyncio.Event()
        self.running = 0
        self.most = 0
        self.ran = 0

    async def __call__(self, args, context):
        self.ran += 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.open.wait()
        finally:
            self.running -= 1


async def nothing(args, context):
    return "done"


async def fails(args, context):
    raise ValueError("broken")


async def hangs(args, context):
    await asyncio.Event().wait()


def acting(execute=nothing, name="act", effect="read", **fields):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
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
async def hosted(*tools, store=None, **options):
    async with AgentOS(store=store, **options) as host:
        outcome = await host.extensions.load_pack(ExtensionPack("p", "1.0", tools))
        assert outcome.status == "loaded", outcome
        yield host


async def call(host, name="act", principal=None, arguments=None, **fields):
    return await host.tools.process_tool_call(ToolCall(name, arguments, **fields), principal)


def kind(result):
    return "ok" if result.success else result.error.type


async def kinds(calls):
    return [kind(await one) for one in calls]


def bug(reason):
    """Mark what the code does not keep yet."""
    return pytest.mark.xfail(strict=True, reason=reason)


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "agentos.db"


# -- what counts -------------------------------------------------------------------------------------------------------


async def test_sixty_calls_a_minute_that_change_something_are_the_default():
    async with hosted(acting(effect="mutate"), mode="auto") as host:
        results = [await call(host) for _ in range(61)]

    assert [kind(one) for one in results] == ["ok"] * 60 + ["BudgetExceeded"]


async def test_calls_that_only_read_are_not_counted_by_default():
    async with hosted(acting()) as host:
        assert {kind(await call(host)) for _ in range(200)} == {"ok"}


async def test_a_thousand_reads_of_a_principal_at_once_are_the_default():
    gate = Gate()
    async with hosted(acting(gate), acting(gate, name="other")) as host:
        tasks = [asyncio.ensure_future(call(host, name, ANN)) for name in ("act", "other") for _ in range(500)]
        while gate.running < 1_000:
            await asyncio.sleep(0)
        refused, others = await call(host, "act", ANN), asyncio.ensure_future(call(host, "act", BOB))
        gate.open.set()
        ended = [kind(one) for one in await asyncio.gather(*tasks, others)]

        assert ended == ["ok"] * 1_001
        assert kind(refused) == "BudgetExceeded"
        assert refused.error.details["setting"] == "budget.reads"
        assert kind(await call(host, "act", ANN)) == "ok"


async def test_a_budget_that_counts_changes_leaves_reads_alone():
    budget = Budget(calls=1, window=HOUR, counts="changes")
    async with hosted(acting(), acting(name="do", effect="mutate"), budget=budget, mode="auto") as host:
        assert await kinds(call(host, name) for name in ("act", "act", "do", "do")) == ["ok"] * 3 + ["BudgetExceeded"]


async def test_what_counts_all_counts_reads_and_changes_together():
    budget = Budget(calls=2, window=HOUR, scope="principal")
    async with hosted(acting(), acting(name="do", effect="mutate"), budget=budget, mode="auto") as host:
        assert await kinds(call(host, name) for name in ("act", "do", "act")) == ["ok", "ok", "BudgetExceeded"]


SETTINGS = {
    "budget.calls": Budget(calls=1, window=HOUR),
    "budget.cost": Budget(calls=None, cost=1, window=HOUR),
}


@pytest.mark.parametrize("setting", SETTINGS)
async def test_a_refusal_names_the_setting(setting):
    async with hosted(acting(), budget=SETTINGS[setting]) as host:
        await call(host)
        refused = await call(host)

    assert refused.error.details["setting"] == setting
    assert f"the limit is the setting `{setting}`" in refused.content


async def test_a_refusal_for_what_runs_already_names_the_setting():
    gate = Gate()
    async with hosted(acting(gate), budget=Budget(calls=None, concurrency=1)) as host:
        task = asyncio.ensure_future(call(host))
        while not gate.running:
            await asyncio.sleep(0)
        refused = await call(host)
        gate.open.set()
        await task

    assert refused.error.details["setting"] == "budget.concurrency"


async def test_in_a_manifest_what_a_budget_does_not_say_is_as_by_default():
    tools = (acting(), acting(name="do", effect="mutate"))
    async with hosted(*tools, extension_manifest={"packs": [], "budget": {"calls": 1}}, mode="auto") as host:
        assert await kinds(call(host, name) for name in ("act", "act", "do", "do")) == ["ok"] * 3 + ["BudgetExceeded"]


async def test_a_call_is_counted_on_the_account_that_is_named():
    async with hosted(acting(), budget=Budget(calls=1, window=HOUR)) as host:
        tools, made = host.tools, ToolCall("act")
        ended = [
            await tools.process_tool_call(made, ANN, account=one) for one in (None, "ann at a", "ann at b", "ann at a")
        ]

    assert [kind(one) for one in ended] == ["ok", "ok", "ok", "BudgetExceeded"]


@pytest.mark.parametrize("wrong", [{"counts": "writes"}, {"reads": 0}, {"reads": 1.5}], ids=str)
def test_what_a_budget_can_not_count_is_refused(wrong):
    with pytest.raises(ValueError, match=r"Budget\.(counts|reads): expected"):
        Budget(**wrong)


async def test_a_refusal_says_how_much_and_when_to_try_again():
    async with hosted(acting(), budget=Budget(calls=2, window=HOUR)) as host:
        results = [await call(host) for _ in range(3)]

    assert "2 calls of p:act" in results[2].content
    assert 0 < results[2].error.details["retry_after"] <= HOUR


async def test_every_principal_and_every_tool_has_its_own_account():
    async with hosted(acting(), acting(name="other"), budget=Budget(calls=1, window=HOUR)) as host:
        first = await kinds(call(host, name, who) for name in ("act", "other") for who in (ANN, BOB, None))
        second = await kinds(call(host, name, who) for name in ("act", "other") for who in (ANN, BOB, None))

    assert first == ["ok"] * 6
    assert second == ["BudgetExceeded"] * 6


async def test_a_budget_of_a_principal_counts_all_tools_together():
    async with hosted(acting(), acting(name="other"), budget=Budget(calls=2, window=HOUR, scope="principal")) as host:
        assert await kinds(call(host, name, ANN) for name in ("act", "other", "act")) == ["ok", "ok", "BudgetExceeded"]
        assert kind(await call(host, "act", BOB)) == "ok"


async def test_another_name_of_a_tool_has_no_account_of_its_own():
    async with hosted(acting(aliases=("do",)), budget=Budget(calls=1, window=HOUR)) as host:
        assert await kinds(call(host, name) for name in ("act", "do", "p:act")) == ["ok"] + ["BudgetExceeded"] * 2


async def test_no_budget_is_no_limit():
    async with hosted(acting(), budget=None) as host:
        assert {kind(await call(host)) for _ in range(100)} == {"ok"}


async def test_of_several_budgets_each_counts_and_a_refusal_takes_nothing_of_the_others():
    budgets = [Budget(calls=3, window=HOUR, scope="principal"), Budget(calls=1, window=HOUR)]
    async with hosted(acting(), acting(name="b"), acting(name="c"), budget=budgets) as host:
        await call(host, "act")
        for _ in range(5):
            assert kind(await call(host, "act")) == "BudgetExceeded"

        assert await kinds(call(host, name) for name in ("b", "c")) == ["ok", "ok"]


async def test_cost_units_are_what_the_tool_says():
    tools = (acting(cost=2.5), acting(name="free", cost=0))
    async with hosted(*tools, budget=Budget(calls=None, cost=5, window=HOUR, scope="principal")) as host:
        assert await kinds(call(host) for _ in range(3)) == ["ok", "ok", "BudgetExceeded"]
        assert kind(await call(host, "free")) == "ok"


async def test_a_call_that_costs_more_than_there_is_says_so():
    async with hosted(acting(cost=6), budget=Budget(calls=None, cost=5)) as host:
        result = await call(host)

    assert (kind(result), "more than the whole budget" in result.content) == ("BudgetExceeded", True)


async def test_what_is_over_budget_does_not_run_and_is_on_record(store):
    ran = []

    async def notes(args, context):
        ran.append(1)

    async with hosted(acting(notes), store=store, budget=Budget(calls=1, window=HOUR)) as host:
        await call(host)
        await call(host)
        refused = [one for one in await host.audit.records() if one.data.get("step") == "budget"]

    assert (len(ran), len(refused)) == (1, 1)


async def test_calls_that_a_tool_makes_count_too():
    async def calls(args, context):
        return [kind(await context.call("act", {})) for _ in range(3)]

    async with hosted(acting(), acting(calls, "caller"), budget=Budget(calls=2, window=HOUR)) as host:
        assert (await call(host, "caller")).output == ["ok", "ok", "BudgetExceeded"]


async def test_a_call_that_does_not_fit_or_is_refused_takes_no_slot():
    async with hosted(acting(effect="mutate"), budget=Budget(calls=1, window=HOUR), mode="auto") as host:
        assert kind(await call(host, arguments={"n": "x"})) == "InvalidArguments"
        grant = await host.grants.add("act", "never")
        assert kind(await call(host)) == "Refused"
        await host.grants.revoke(grant.id)

        assert kind(await call(host)) == "ok"


@pytest.mark.parametrize(
    "bad",
    [
        {"calls": 0},
        {"calls": -1},
        {"calls": 1.5},
        {"calls": True},
        {"calls": "60"},
        {"window": 0},
        {"window": None},
        {"window": float("inf")},
        {"window": float("nan")},
        {"cost": 0},
        {"cost": float("nan")},
        {"concurrency": 0},
        {"concurrency": 1.0},
        {"scope": "world"},
    ],
    ids=str,
)
def test_a_budget_that_makes_no_sense_is_refused(bad):
    with pytest.raises(ValueError, match="Budget"):
        Budget(**bad)


@pytest.mark.parametrize("bad", [pytest.param(60), [60], "60"])
def test_a_host_takes_only_budgets_for_its_budget(bad):
    with pytest.raises(TypeError, match="Budget"):
        AgentOS(budget=bad)


# -- windows, by a clock of our own ------------------------------------------------------------------------------------


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


STEPS = st.lists(st.tuples(st.floats(0, 5), st.sampled_from([0.0, 0.1, 1.0, 2.5])), max_size=60)


@given(steps=STEPS, calls=st.integers(1, 5), cost=st.sampled_from([None, 2.5, 4.0]))
def test_no_window_ever_holds_more_than_the_budget(steps, calls, cost):
    clock, window = Clock(), 7.0
    budgets = Budgets((Budget(calls=calls, window=window, cost=cost),), clock)
    taken = []
    for pause, price in steps:
        clock.now += pause
        if budgets.reserve("ann", "p:act", price) is None:
            taken.append((clock.now, price))
            budgets.release("ann", "p:act")

    for begin, _ in taken:
        within = [price for at, price in taken if begin <= at < begin + window]
        assert len(within) <= calls
        assert cost is None or sum(within) <= cost + 1e-6


@given(pauses=st.lists(st.floats(0, 5), min_size=1, max_size=60))
def test_whoever_waits_as_long_as_he_is_told_is_let_in(pauses):
    clock = Clock()
    budgets = Budgets((Budget(calls=2, window=7.0),), clock)
    for pause in pauses:
        clock.now += pause
        refusal = budgets.reserve("ann", "p:act", 1)
        if refusal is not None:
            clock.now += refusal.retry_after + 1e-6
            assert budgets.reserve("ann", "p:act", 1) is None


def test_a_slot_that_is_given_back_is_ones_own():
    """Of two calls with different costs the dearer one did not run: its units come back, and no more than those."""
    clock = Clock()
    budgets = Budgets((Budget(calls=None, cost=10, window=60.0, scope="principal"),), clock)
    assert budgets.reserve("ann", "p:dear", 9) is None
    assert budgets.reserve("ann", "p:cheap", 1) is None
    budgets.refund("ann", "p:dear", 9)
    budgets.release("ann", "p:cheap")
    clock.now += 120

    assert [budgets.reserve("ann", "p:dear", 5) is None for _ in range(4)] == [True, True, False, False]


def test_a_slot_that_is_given_back_does_not_make_another_call_older():
    clock = Clock()
    budgets = Budgets((Budget(calls=2, window=60.0, scope="principal"),), clock)
    assert budgets.reserve("ann", "p:one", 1) is None
    clock.now += 50
    assert budgets.reserve("ann", "p:two", 1) is None
    budgets.refund("ann", "p:one", 1)
    clock.now += 20  # two ran 20 seconds ago, one never did

    assert [budgets.reserve("ann", "p:two", 1) is None for _ in range(2)] == [True, False]


def test_many_other_callers_do_not_give_somebody_a_second_budget():
    """The accounts are bounded. What is idle has to go first, not what is used up."""
    clock = Clock()
    budgets = Budgets((Budget(calls=1, window=60.0),), clock)
    for number in range(9_999):  # calls that ended long ago
        assert budgets.reserve(f"old{number}", "p:act", 1) is None
        budgets.release(f"old{number}", "p:act")
    clock.now += 120
    assert budgets.reserve("ann", "p:act", 1) is None
    budgets.release("ann", "p:act")
    for number in range(500):
        budgets.reserve(f"new{number}", "p:act", 1)

    assert budgets.reserve("ann", "p:act", 1) is not None


# -- concurrency -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", ["read", "mutate"])
async def test_no_more_run_at_once_than_the_budget_says(store, effect):
    gate = Gate()
    budget = Budget(calls=None, concurrency=3)
    async with hosted(acting(gate, effect=effect), store=store, budget=budget, mode="auto") as host:
        tasks = [asyncio.ensure_future(call(host)) for _ in range(20)]
        await asyncio.wait(tasks[:], return_when=asyncio.FIRST_COMPLETED)
        while gate.running < 3:
            await asyncio.sleep(0)
        gate.open.set()
        results = [kind(one) for one in await asyncio.gather(*tasks)]

    assert sorted(results) == ["BudgetExceeded"] * 17 + ["ok"] * 3
    assert gate.most == 3


async def test_fifty_calls_at_once_take_no_more_slots_than_there_are(store):
    async with hosted(acting(effect="mutate"), store=store, budget=Budget(calls=7, window=HOUR), mode="auto") as host:
        results = await asyncio.gather(*(call(host) for _ in range(50)))

    assert [kind(one) for one in results].count("ok") == 7


SHARED = Budget(calls=None, concurrency=2, scope="principal")


async def meets(args, context):
    """Wait until two calls are here at once."""
    async with asyncio.timeout(2):
        await context.session["met"].wait()


PROBE = acting(meets, "probe")


async def free_slots(host):
    """Return how many of the two slots of `SHARED` are free."""
    session = {"met": asyncio.Barrier(2)}
    results = await host.tools.process_tool_calls([ToolCall("probe")] * 2, session=session)
    return sum(result.success for result in results)


ENDINGS = [(fails, "ToolRaised", None), (hangs, "TimedOut", 0.02), (nothing, "ok", None)]


@pytest.mark.parametrize("effect", ["read", "mutate"])
@pytest.mark.parametrize(("bad", "error", "timeout"), ENDINGS)
async def test_a_slot_is_free_again_however_the_call_ended(effect, bad, error, timeout):
    one = acting(bad, effect=effect, timeout=timeout)
    async with hosted(one, PROBE, budget=SHARED, mode="auto") as host:
        for _ in range(3):
            assert kind(await call(host)) == error

        assert await free_slots(host) == 2


@pytest.mark.parametrize(("bad", "error", "timeout"), ENDINGS)
async def test_a_slot_is_free_again_after_an_applied_proposal(store, bad, error, timeout):
    one = acting(bad, effect="mutate", timeout=timeout)
    async with hosted(one, PROBE, store=store, budget=SHARED) as host:
        for _ in range(3):
            details = (await call(host)).error.details
            assert kind(await host.approvals.approve(details["token"])) == error
            assert kind(await host.approvals.approve(details["token"])) == "ProposalInvalid"

        assert await free_slots(host) == 2


async def test_an_approval_over_budget_leaves_the_proposal_waiting(store):
    async with hosted(acting(effect="mutate"), store=store, budget=Budget(calls=1, window=HOUR)) as host:
        asked = (await call(host)).error.details
        await host.grants.add("act", "always")
        assert kind(await call(host)) == "ok"

        assert kind(await host.approvals.approve(asked["token"])) == "BudgetExceeded"
        assert [one.id for one in await host.approvals.pending()] == [asked["proposal_id"]]


async def test_a_used_token_tried_many_times_at_once_does_not_eat_the_budget(store):
    """Who tries an old token again and again, maybe in parallel, must not keep others from the tool."""
    async with hosted(acting(effect="mutate"), store=store, budget=Budget(calls=5, window=HOUR)) as host:
        details = (await call(host)).error.details
        await asyncio.gather(*(host.approvals.approve(details["token"]) for _ in range(20)))
        another = (await call(host)).error.details

        assert kind(await host.approvals.approve(another["token"])) == "ok"


async def test_a_call_that_waits_for_approval_takes_no_slot_of_what_runs(store):
    limit = Budget(calls=5, window=HOUR, concurrency=1)
    async with hosted(acting(effect="mutate"), store=store, budget=limit) as host:
        waiting = [(await call(host)).error.details for _ in range(5)]

        assert await kinds(host.approvals.approve(one["token"]) for one in waiting) == ["ok"] * 5


async def test_asking_is_within_the_budget(store):
    shown = []
    one = acting(effect="mutate", dry_run=lambda args, context: shown.append(1))
    async with hosted(one, store=store, budget=Budget(calls=1, window=HOUR)) as host:
        asked = await kinds(call(host) for _ in range(10))
        waiting = await host.approvals.pending()

    assert asked == ["ApprovalRequired"] + ["BudgetExceeded"] * 9
    assert (len(shown), len(waiting)) == (1, 1)


async def test_an_approval_is_not_refused_for_the_slot_that_its_asking_took(store):
    limits = [Budget(calls=1, window=HOUR), Budget(calls=None, cost=3, window=HOUR, scope="principal")]
    async with hosted(acting(effect="mutate", cost=3), store=store, budget=limits) as host:
        asked = (await call(host)).error.details

        assert kind(await host.approvals.approve(asked["token"])) == "ok"


async def test_a_call_that_is_approved_at_once_is_not_refused_for_the_slot_that_its_asking_took(store):
    handler = Descriptor("hitl-handler", "person", lambda proposal: Answer.approve())
    limit = Budget(calls=1, window=HOUR, concurrency=1)
    async with hosted(acting(effect="mutate"), handler, store=store, budget=limit) as host:
        assert await kinds(call(host) for _ in range(2)) == ["ok", "BudgetExceeded"]


async def test_every_principal_asks_within_its_own_budget():
    async with hosted(acting(effect="mutate"), budget=Budget(calls=1, window=HOUR)) as host:
        asked = await kinds(call(host, principal=one) for one in (ANN, ANN, BOB))

    assert asked == ["ApprovalRequired", "BudgetExceeded", "ApprovalRequired"]


# -- cancellation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", ["read", "mutate"])
async def test_a_cancelled_caller_leaves_no_slot_taken(store, effect):
    async def dawdles(args, context):
        for _ in range(3):
            await asyncio.sleep(0)

    one = acting(dawdles, effect=effect)
    async with hosted(one, PROBE, store=store, budget=SHARED, mode="auto") as host:
        for turn in itertools.count(1):
            if not await cancelled_at(turn, call(host)):
                break
        for turns in range(0, 61, 6):
            await cancelled_after(turns, call(host))

        assert await free_slots(host) == 2


async def test_a_cancelled_approver_leaves_no_slot_taken(store):
    async def dawdles(args, context):
        for _ in range(3):
            await asyncio.sleep(0)

    one = acting(dawdles, effect="mutate")
    async with hosted(one, PROBE, store=store, budget=SHARED) as host:
        for turn in itertools.count(1):
            details = (await call(host)).error.details
            if not await cancelled_at(turn, host.approvals.approve(details["token"])):
                break

        assert await free_slots(host) == 2


async def test_a_wrapped_call_takes_a_slot_of_its_own_tool():
    async def beneath(args, context):
        return await context.below(args)

    async with AgentOS(budget=Budget(calls=1, window=HOUR)) as host:
        await host.extensions.load_pack(ExtensionPack("base", "1", [acting()]))
        wrapper = Descriptor("tool", "act", acting(beneath), wraps=True)
        await host.extensions.load_pack(ExtensionPack("top", "1", [wrapper]))

        assert kind(await call(host, "base:act")) == "ok"
        assert kind(await call(host, "act")) == "BudgetExceeded"


def test_a_budget_that_is_used_up_says_when_there_is_enough_again_whatever_fractions_come_to():
    clock = Clock()
    budgets = Budgets((Budget(calls=None, cost=0.3, window=100.0),), clock)
    for _ in range(3):
        assert budgets.reserve("ann", "p:act", 0.1) is None
        budgets.release("ann", "p:act")
        clock.now += 10

    assert budgets.reserve("ann", "p:act", 0.1).retry_after == pytest.approx(70)
