"""Random rules, scopes, tools, overrides, grants, clocks and arguments: what access promises holds for all of them."""

import asyncio
import fnmatch
import itertools
import json
from collections import Counter
from collections.abc import Mapping

import attrs
from hypothesis import example, given, settings
from hypothesis import strategies as st
from thorough import examples

from agentos import PUBLIC, AgentOS, Descriptor, ExtensionPack, Override, Principal, Tool, ToolCall, ToolResult
from agentos.access.budgets import Budget, Budgets, Refusal
from agentos.interop import anthropic, gemini, mcp, openai
from agentos.model.overrides import Overrides
from agentos.rules.intervention import ArgumentPattern

RULES = ("mail.read", "mail.write", "files", "büro")
PACKS = ("one", "two")
NAMES = ("add", "ask", "bid", "b.c")
ANY = {"type": "object", "additionalProperties": True}


# -- what is generated ---------------------------------------------------------------------------------------------


@attrs.frozen
class Spec:
    """One tool of a generated pack."""

    name: str
    access: object = PUBLIC
    effect: str = "read"
    intervention: str | None = None
    has_alias: bool = False
    wraps: bool = False


rules = st.sampled_from(RULES)
held = st.frozensets(st.sampled_from([*RULES, "*", "other"]), max_size=4)
access = st.just(PUBLIC) | st.lists(rules, min_size=1, max_size=3, unique=True).map(tuple)
kinds = st.sampled_from(["user", "service", "system"])
principals = st.builds(Principal, id=st.sampled_from(["ann", "bob"]), kind=kinds, access=held, scopes=st.none() | held)
specs = st.builds(
    Spec,
    name=st.sampled_from(NAMES),
    access=access,
    effect=st.sampled_from(["read", "mutate"]),
    has_alias=st.booleans(),
    wraps=st.booleans(),
)
offered = st.lists(st.lists(specs, min_size=1, max_size=3, unique_by=lambda spec: spec.name), min_size=1, max_size=2)
override_keys = st.sampled_from([*NAMES, *(f"{pack}:{name}" for pack in PACKS for name in NAMES)])
overrides = st.builds(
    Override, enabled=st.sampled_from([None, True, False]), priority=st.sampled_from([None, -1, 0, 1])
)
changes = st.lists(st.tuples(override_keys, overrides), max_size=4)
denials = st.lists(
    st.sampled_from([*NAMES, "one:add", "two:*", "*:bid", "a*", "?id", "[!a]*", "*", "one", "ADD", "call_*"]),
    max_size=2,
)


def made(spec, pack="one", execute=None, **fields):
    async def answer(args, context):
        return f"{pack}:{spec.name}"

    return Tool.from_schema(
        name=spec.name,
        description="Do something.",
        input_schema=ANY,
        effect=spec.effect,
        required_access=spec.access,
        intervention=spec.intervention,
        execute=execute or answer,
        system_prompt=f"{pack}:{spec.name}",
        aliases=(f"call_{spec.name}",) if spec.has_alias else (),
        **fields,
    )


async def load(host, packs):
    for name, content in zip(PACKS, packs, strict=False):
        tools = [Descriptor("tool", spec.name, made(spec, name), wraps=spec.wraps) for spec in content]
        await host.extensions.load_pack(ExtensionPack(name, "1.0", tools))


async def error_of(host, name, principal):
    result = await host.tools.process_tool_call(ToolCall(name, {}), principal)
    return None if result.success else result.error.type


def callable_by(principal, tools):
    return {one for one in tools if principal.may_call(made(one))}


# -- narrowing -----------------------------------------------------------------------------------------------------


@given(principal=principals, scopes=held, tools=st.lists(specs, min_size=1, max_size=6))
def test_narrowing_never_adds_a_tool(principal, scopes, tools):
    assert callable_by(principal.narrow(scopes), tools) <= callable_by(principal, tools)


@given(principal=principals, scopes=held)
def test_narrowing_never_yields_everything(principal, scopes):
    narrowed = principal.narrow(scopes)

    assert "*" not in narrowed.held | narrowed.access | (narrowed.scopes or set())


@given(principal=principals, scopes=held)
def test_what_is_held_after_narrowing_was_held_before_and_is_in_the_scopes(principal, scopes):
    before = principal.held if "*" not in principal.held else scopes

    assert principal.narrow(scopes).held <= before & scopes


@given(principal=principals, first=held, second=held, tools=st.lists(specs, min_size=1, max_size=6))
def test_narrowing_twice_is_within_both(principal, first, second, tools):
    twice = callable_by(principal.narrow(first).narrow(second), tools)

    assert twice <= callable_by(principal.narrow(first), tools) & callable_by(principal.narrow(second), tools)


@given(principal=principals, first=held, second=held)
def test_the_order_of_narrowing_does_not_matter(principal, first, second):
    assert principal.narrow(first).narrow(second) == principal.narrow(second).narrow(first)


@given(principal=principals, scopes=held)
def test_narrowing_again_to_the_same_changes_nothing(principal, scopes):
    assert principal.narrow(scopes).narrow(scopes) == principal.narrow(scopes)


@given(principal=principals, scopes=held)
def test_narrowing_leaves_who_it_is(principal, scopes):
    narrowed = principal.narrow(scopes)

    assert (narrowed.id, narrowed.kind) == (principal.id, principal.kind)


# -- what is held --------------------------------------------------------------------------------------------------


@given(principal=principals, tools=st.lists(specs, min_size=1, max_size=6))
def test_a_tool_may_be_called_if_it_is_public_or_every_rule_is_held(principal, tools):
    rules = principal.access - ({"*"} if principal.kind == "service" else set())
    if principal.scopes is not None:
        rules = principal.scopes - {"*"} if "*" in rules else rules & principal.scopes
    expected = {one for one in tools if one.access is PUBLIC or "*" in rules or set(one.access) <= rules}

    assert callable_by(principal, tools) == expected


@given(names=held, tools=st.lists(specs, min_size=1, max_size=6))
def test_a_service_gets_what_is_public_and_what_is_named_and_nothing_else(names, tools):
    service = Principal("cron", "service", access=names)

    assert callable_by(service, tools) == {one for one in tools if one.access is PUBLIC or set(one.access) <= names}


@settings(max_examples=examples(300))
@given(names=held, scopes=held, tools=st.lists(specs, min_size=1, max_size=6))
def test_a_service_with_scopes_gets_what_is_public_and_what_is_named_in_both(names, scopes, tools):
    both = names & scopes
    expected = {one for one in tools if one.access is PUBLIC or set(one.access) <= both}

    assert callable_by(Principal("cron", "service", names, scopes), tools) == expected
    assert callable_by(Principal("cron", "service", names).narrow(scopes), tools) == expected


@given(kind=kinds, rules=held, scopes=st.none() | held, tools=st.lists(specs, min_size=1, max_size=6))
def test_no_kind_of_principal_gets_more_than_a_user_with_the_same_rules(kind, rules, scopes, tools):
    user = Principal("ann", "user", rules, scopes)

    assert callable_by(attrs.evolve(user, kind=kind), tools) <= callable_by(user, tools)


@given(principal=principals, tool=specs)
def test_rules_are_missing_exactly_where_a_tool_may_not_be_called(principal, tool):
    missing = principal.missing(made(tool))

    assert bool(missing) != principal.may_call(made(tool))
    assert set(missing) == (set() if not missing else set(tool.access) - principal.held)


# -- listing and calling -------------------------------------------------------------------------------------------


@attrs.frozen
class World:
    """Two packs that stack on each other, what operators change about them, and who looks after whom."""

    packs: list
    before: list
    after: list
    deny: list
    principal: Principal | None
    somebody_else: Principal | None = None

    @property
    def asked(self):
        """Return every name by which something might be reached."""
        return [*NAMES, *(f"{pack}:{name}" for pack in PACKS for name in NAMES), *(f"call_{name}" for name in NAMES)]

    def denies(self, qualified):
        name = qualified.partition(":")[2]
        return any(fnmatch.fnmatchcase(name, one) or fnmatch.fnmatchcase(qualified, one) for one in self.deny)


worlds = st.builds(
    World,
    packs=offered,
    before=changes,
    after=changes,
    deny=denials,
    principal=st.none() | principals,
    somebody_else=st.none() | principals,
)
undenied = worlds.map(lambda world: attrs.evolve(world, deny=[]))


def in_each_state(world, look, mode="auto"):
    """Let *look* see a host of that world, as it begins and after each change that an operator makes while it runs."""

    async def run():
        given = Overrides({"tools": dict(world.before)})
        async with AgentOS(extension_overrides=given, mode=mode, deny=world.deny, budget=None) as host:
            await load(host, world.packs)
            for key, override in [(None, None), *world.after]:
                if key is not None:
                    await host.extensions.set_override("tool", key, override)
                host.tools.list_available_tools(world.somebody_else)
                await look(host)

    asyncio.run(run())


def listed(host, world):
    return [info.name for info in host.tools.list_available_tools(world.principal)]


@given(world=undenied)
def test_what_is_listed_is_what_a_call_finds(world):
    async def look(host):
        errors = {name: await error_of(host, name, world.principal) for name in NAMES}

        assert set(listed(host, world)) == {name for name, error in errors.items() if error != "UnknownTool"}

    in_each_state(world, look)


@settings(max_examples=examples(50))
@given(world=undenied, mode=st.sampled_from(["approve", "unattended"]))
def test_what_has_to_be_asked_about_is_listed_as_well(world, mode):
    async def look(host):
        errors = {name: await error_of(host, name, world.principal) for name in NAMES}

        assert set(listed(host, world)) == {name for name, error in errors.items() if error != "UnknownTool"}

    in_each_state(world, look, mode)


@given(world=worlds)
def test_what_is_listed_is_what_runs_and_nothing_that_is_denied_does(world):
    async def look(host):
        runs = {name for name in NAMES if await error_of(host, name, world.principal) is None}

        assert set(listed(host, world)) == runs

    in_each_state(world, look)


@given(world=worlds)
def test_a_call_of_what_is_denied_says_refused_to_who_may_call_it_and_unknown_to_others(world):
    async def look(host):
        for entry in host.extensions.registry("tool").list_active():
            if world.denies(f"{entry.source.pack}:{entry.id}"):
                may = (world.principal or Principal.system()).may_call(entry.payload)

                assert await error_of(host, entry.id, world.principal) == ("Refused" if may else "UnknownTool")

    in_each_state(world, look)


@given(world=worlds)
def test_no_other_name_of_a_tool_reaches_what_is_denied(world):
    async def look(host):
        for name in world.asked:
            result = await host.tools.process_tool_call(ToolCall(name, {}), world.principal)

            assert not (result.success and world.denies(result.output))

    in_each_state(world, look)


@given(world=worlds)
def test_no_other_name_of_a_tool_reaches_what_is_not_allowed(world):
    async def look(host):
        who = world.principal or Principal.system()
        for name in world.asked:
            result = await host.tools.process_tool_call(ToolCall(name, {}), world.principal)
            if result.success:
                pack, _, id = result.output.partition(":")
                [entry] = [one for one in host.extensions.registry("tool").stack(id) if one.source.pack == pack]

                assert who.may_call(entry.payload)

    in_each_state(world, look)


@given(world=undenied)
def test_a_tool_is_found_by_the_names_that_a_call_finds(world):
    async def look(host):
        found = {name for name in world.asked if host.tools.get_tool(name, world.principal) is not None}
        errors = {name: await error_of(host, name, world.principal) for name in world.asked}

        assert found == {name for name, error in errors.items() if error != "UnknownTool"}

    in_each_state(world, look)


@example(world=World([[Spec("add")]], [], [], ["add"], None))
@given(world=worlds)
def test_what_is_denied_is_not_found_either(world):
    async def look(host):
        found = {name for name in NAMES if host.tools.get_tool(name, world.principal) is not None}

        assert found == set(listed(host, world))

    in_each_state(world, look)


@given(world=worlds)
def test_the_system_prompt_is_of_what_is_listed(world):
    async def look(host):
        infos = host.tools.list_available_tools(world.principal)

        assert host.tools.system_prompt(world.principal) == "\n\n".join(one.fully_qualified_id for one in infos)

    in_each_state(world, look)


@given(world=worlds)
def test_every_provider_is_given_what_is_listed(world):
    async def look(host):
        for provider in (openai, anthropic, gemini, mcp):
            given = provider.tools(host, world.principal)
            wires = [item.get("function", item)["name"] for item in given]

            assert [given.names.decode(wire) for wire in wires] == listed(host, world)

    in_each_state(world, look)


@given(world=undenied)
def test_explaining_allows_what_a_call_finds(world):
    async def look(host):
        for name in NAMES:
            error = await error_of(host, name, world.principal)

            assert host.tools.explain(name, world.principal).is_allowed == (error != "UnknownTool")

    in_each_state(world, look)


@given(world=undenied)
def test_a_tool_that_may_not_be_called_answers_like_one_that_is_not_there(world):
    async def look(host):
        visible = listed(host, world)
        for name in set(NAMES) - set(visible):
            result = await host.tools.process_tool_call(ToolCall(name, {}), world.principal)
            said = result.error.message.partition(";")[0]

            assert (result.error.type, dict(result.error.details), dict(result.meta)) == ("UnknownTool", {}, {})
            assert said.startswith(f"there is no tool called {name!r}")

    in_each_state(world, look)


# -- budgets -------------------------------------------------------------------------------------------------------

QUARTERS = st.integers(0, 24).map(lambda number: number / 4)
"""Numbers that binary floats add up without rounding: the model and the budgets must agree to the last bit."""
LIMITS = st.none() | st.integers(1, 4)
budgets = st.builds(
    Budget,
    calls=LIMITS,
    window=st.sampled_from([0.25, 1.0, 3.0]),
    cost=st.none() | st.integers(1, 24).map(lambda number: number / 4),
    concurrency=LIMITS,
    scope=st.sampled_from(["tool", "principal"]),
)
reservations = st.tuples(st.just("reserve"), st.sampled_from("ab"), st.sampled_from("xy"), QUARTERS)
releases = st.tuples(st.just("release"), st.integers(0, 3))
refunds = st.tuples(st.just("refund"), st.integers(0, 3))
waits = st.tuples(st.just("wait"), st.sampled_from([0.25, 0.75, 1.0, 2.0, 3.0]))
histories = st.lists(reservations | releases | refunds | waits, max_size=40)


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


class Ledger:
    """A sliding window in its simplest form: every slot that was taken, looked through each time."""

    def __init__(self, budget):
        self._budget = budget
        self._taken = []
        self._running = Counter()

    def key(self, who, tool):
        return (who, tool) if self._budget.scope == "tool" else who

    def has_room(self, who, tool, cost, now):
        budget, key = self._budget, self.key(who, tool)
        recent = [paid for at, paid, owner in self._taken if owner == key and at > now - budget.window]
        return (
            (budget.calls is None or len(recent) < budget.calls)
            and (budget.cost is None or sum(recent) + cost <= budget.cost)
            and (budget.concurrency is None or self._running[key] < budget.concurrency)
        )

    def take(self, who, tool, cost, now):
        self._taken.append((now, cost, self.key(who, tool)))
        self._running[self.key(who, tool)] += 1

    def release(self, who, tool):
        self._running[self.key(who, tool)] -= 1

    def refund(self, who, tool, cost, at):
        self.release(who, tool)
        self._taken.remove((at, cost, self.key(who, tool)))


def has_slot(subject, *call):
    return not isinstance(subject.reserve(*call), Refusal)


@settings(max_examples=examples(400))
@example(
    limits=[Budget(calls=None, cost=6.0, window=1.0, scope="principal")],
    history=[
        ("reserve", "a", "x", 1.0),
        ("reserve", "a", "y", 5.0),
        ("refund", 0),
        ("wait", 1.0),
        ("reserve", *"ax", 6),
    ],
)
@given(limits=st.lists(budgets, max_size=3), history=histories)
def test_budgets_agree_with_a_ledger_that_looks_through_every_slot(limits, history):
    clock = Clock()
    subject, ledgers, running = Budgets(tuple(limits), clock), [Ledger(one) for one in limits], []
    for act, *facts in history:
        if act == "wait":
            clock.now += facts[0]
        elif act == "reserve":
            slot = subject.reserve(*facts)
            has_room = all(one.has_room(*facts, clock.now) for one in ledgers)

            assert isinstance(slot, Refusal) != has_room, (act, facts)

            for one in ledgers if has_room else ():
                one.take(*facts, clock.now)
            running += [(*facts, clock.now)] if has_room else []
        elif running:
            who, tool, cost, at = running.pop(facts[0] % len(running))
            for each in (subject, *ledgers):
                each.refund(who, tool, cost, at) if act == "refund" else each.release(who, tool)


@given(budget=budgets.filter(lambda one: one.calls), history=st.lists(waits, max_size=8))
def test_no_window_ever_has_more_calls_than_the_budget(budget, history):
    clock, taken = Clock(), []
    subject = Budgets((attrs.evolve(budget, concurrency=None, cost=None),), clock)
    for _, seconds in history:
        for _ in range(budget.calls + 1):
            taken += [clock.now] if has_slot(subject, "a", "x", 1.0) else []
        clock.now += seconds

    assert all(sum(end - budget.window < at <= end for at in taken) <= budget.calls for end in taken)


def refused(limit, history, cost):
    """Return budgets and their clock at the first refusal that names a time, or None."""
    clock = Clock()
    subject = Budgets((limit,), clock)
    for seconds, paid in history:
        clock.now += seconds
        subject.reserve("a", "x", paid)
    slot = subject.reserve("a", "x", cost)
    return (subject, clock, slot.retry_after) if isinstance(slot, Refusal) and slot.retry_after is not None else None


timed = st.lists(st.tuples(QUARTERS, st.sampled_from([0.25, 1.0, 2.0])), max_size=8)
by_cost = st.builds(Budget, calls=st.none(), cost=st.sampled_from([2.0, 3.0]), window=st.sampled_from([1.0, 3.0, 10.0]))
by_calls = st.builds(Budget, calls=st.integers(1, 4), window=st.sampled_from([1.0, 3.0, 10.0]))


@given(budget=by_calls, history=timed)
def test_who_waits_as_long_as_a_refusal_says_gets_a_slot(budget, history):
    found = refused(budget, history, 1.0)
    if found is not None:
        subject, clock, seconds = found
        clock.now += seconds

        assert has_slot(subject, "a", "x", 1.0)


@given(budget=by_calls, history=timed)
def test_who_waits_less_than_a_refusal_says_gets_none(budget, history):
    found = refused(budget, history, 1.0)
    if found is not None:
        subject, clock, seconds = found
        clock.now += seconds - 0.25

        assert not has_slot(subject, "a", "x", 1.0)


@example(budget=Budget(calls=None, cost=2.0, window=1.0), history=[(0.0, 0.25), (0.25, 1.75)], cost=2.0)
@given(budget=by_cost, history=timed, cost=st.sampled_from([0.25, 1.0, 2.0]))
def test_who_waits_as_long_as_a_refusal_for_its_cost_says_gets_a_slot(budget, history, cost):
    found = refused(budget, history, cost)
    if found is not None:
        subject, clock, seconds = found
        clock.now += seconds

        assert has_slot(subject, "a", "x", cost)


# -- grants --------------------------------------------------------------------------------------------------------


@attrs.frozen
class Given:
    """One grant, as a person gives it."""

    decision: str
    tool: str = "one:add"
    principal: str | None = None
    arguments: Mapping | None = None
    session: str | None = None

    async def to(self, host):
        return await host.grants.add(
            self.tool, self.decision, principal=self.principal, arguments=self.arguments, session=self.session
        )

    @property
    def allows(self):
        return self.decision != "never"

    def is_about(self, call):
        pattern = ArgumentPattern(self.arguments or {})
        return (
            self.principal in (None, call.principal)
            and self.session in (None, call.session)
            and pattern.matches(call.arguments, widely=not self.allows)
        )


@attrs.frozen
class Asked:
    """One call, of which several are made."""

    principal: str
    arguments: Mapping
    session: str | None

    async def to(self, host):
        session = None if self.session is None else {"id": self.session}
        return await host.tools.process_tool_call(
            ToolCall("add", self.arguments), Principal(self.principal), session=session
        )


ARGUMENTS = ({}, {"path": "/tmp/a"}, {"path": "/tmp/../etc"}, {"list": ["a", "b"], "n": 1}, {"list": ["a"], "n": "1"})
CALLS = [Asked(*one) for one in itertools.product(("ann", "bob"), ARGUMENTS, (None, "s1", "s2"))]

where = st.sampled_from([None, None, {"$.path": "/tmp/*"}, {"$.path": "*"}, {"$.n": "1"}, {"$.list[*]": "a*"}])
grants = st.builds(
    Given,
    decision=st.sampled_from(["session", "always", "never"]),
    tool=st.sampled_from(["one:add", "add"]),
    principal=st.sampled_from([None, "ann", "bob"]),
    arguments=where,
    session=st.sampled_from([None, "s1", "s2"]),
).map(lambda one: attrs.evolve(one, session=one.session or "s1") if one.decision == "session" else one)
targets = st.builds(
    Spec,
    name=st.just("add"),
    effect=st.sampled_from(["read", "mutate", "mutate", "destructive"]),
    intervention=st.sampled_from([None, None, "never", "required", "always"]),
)
acts = st.lists(grants | st.integers(0, 5), max_size=6)
"""Grants that are added, and the places of those that are revoked."""


@attrs.frozen
class Step:
    """What a person did about which grant, what is granted since, and which calls ran before and run after it."""

    act: str
    grant: Given | None
    granted: list
    before: set
    after: set


async def walk(tool, acts):
    ran = []

    async def note(args, context):
        ran.append(args)

    async def running(host):
        done = set()
        for place, call in enumerate(CALLS):
            ran.clear()
            await call.to(host)
            done |= {place} if ran else set()
        return done

    async with AgentOS(mode="unattended", budget=None) as host:
        await host.extensions.load_pack(ExtensionPack("one", "1.0", [made(tool, execute=note)]))
        granted, before = [], await running(host)
        yield Step("none", None, [], before, before)
        for act in acts:
            if isinstance(act, Given):
                told, given = "added", act
                granted.append((act, await act.to(host)))
            elif granted:
                told, (given, grant) = "revoked", granted.pop(act % len(granted))
                assert await host.grants.revoke(grant.id)
            else:
                continue
            after = await running(host)
            yield Step(told, given, [one for one, _ in granted], before, after)
            before = after


def on_each_step(tool, acts, check):
    async def run():
        async for step in walk(tool, acts):
            check(step)

    asyncio.run(run())


@given(tool=targets, acts=acts)
def test_a_call_runs_if_it_need_not_be_asked_about_or_is_granted_and_is_not_denied(tool, acts):
    free = tool.intervention == "never" or (tool.effect == "read" and tool.intervention is None)
    may_be_granted = tool.effect != "destructive" and tool.intervention != "always"

    def is_expected(call, granted):
        about = [one.allows for one in granted if one.is_about(call)]
        return may_be_granted and all(about) and (free or bool(about))

    def check(step):
        assert step.after == {place for place, call in enumerate(CALLS) if is_expected(call, step.granted)}

    on_each_step(tool, acts, check)


@settings(max_examples=examples(50))
@given(tool=targets, acts=acts)
def test_adding_a_never_makes_nothing_run_that_did_not(tool, acts):
    def check(step):
        if step.act == "added" and not step.grant.allows:
            assert step.after <= step.before

    on_each_step(tool, acts, check)


@settings(max_examples=examples(50))
@given(tool=targets, acts=acts)
def test_revoking_what_allows_makes_nothing_run_that_did_not(tool, acts):
    def check(step):
        if step.act == "revoked" and step.grant.allows:
            assert step.after <= step.before

    on_each_step(tool, acts, check)


@attrs.frozen
class Case:
    """A tool, a mode, what was granted, and one call."""

    tool: Spec
    mode: str
    grants: list
    call: Asked


cases = st.builds(
    Case,
    tool=targets,
    mode=st.sampled_from(["approve", "auto", "unattended"]),
    grants=st.lists(grants | st.builds(Given, decision=st.just("once"), arguments=where), min_size=1, max_size=3),
    call=st.sampled_from(CALLS),
)


def runs(case, *, revoked=None):
    """Tell whether the call of *case* runs, with the grants it has; with *revoked*, after that one is taken back."""
    ran = []

    async def note(args, context):
        ran.append(args)

    async def call():
        async with AgentOS(mode=case.mode, budget=None) as host:
            await host.extensions.load_pack(ExtensionPack("one", "1.0", [made(case.tool, execute=note)]))
            added = [await one.to(host) for one in case.grants]
            if revoked is not None:
                assert await host.grants.revoke(added[revoked].id)
            await case.call.to(host)

    asyncio.run(call())
    return bool(ran)


@settings(max_examples=examples(50))
@given(case=cases, denial=grants, data=st.data())
def test_in_no_mode_does_a_never_make_a_call_run(case, denial, data):
    place = data.draw(st.integers(0, len(case.grants)))
    never = attrs.evolve(denial, decision="never")
    more = attrs.evolve(case, grants=[*case.grants[:place], never, *case.grants[place:]])

    assert runs(more) <= runs(case)


@settings(max_examples=examples(50))
@given(case=cases, data=st.data())
def test_in_every_mode_revoking_is_as_if_it_had_never_been_granted(case, data):
    place = data.draw(st.integers(0, len(case.grants) - 1))
    without = attrs.evolve(case, grants=[*case.grants[:place], *case.grants[place + 1 :]])

    assert runs(case, revoked=place) == runs(without)


@settings(max_examples=examples(50))
@given(case=cases, data=st.data())
def test_the_order_of_grants_does_not_matter(case, data):
    assert runs(attrs.evolve(case, grants=data.draw(st.permutations(case.grants)))) == runs(case)


# -- approval ------------------------------------------------------------------------------------------------------


class Strange:
    """Something that no JSON can tell."""


async def _echo(args, context):
    return args


async def _raise(args, context):
    raise ValueError(f"got {len(args)}")


async def _fail(args, context):
    return ToolResult.fail("Refused", "not today", {"given": args}, state=args)


async def _full(args, context):
    return ToolResult.ok(args, "read this", state={"seen": args}, stop=True)


async def _change(args, context):
    args["changed"] = True
    return args


async def _strange(args, context):
    return Strange()


async def _tell(args, context):
    return [context.principal.id, context.session.get("id"), context.tool.name]


def _sync(args, context):
    return sorted(args)


BEHAVIOURS = (_echo, _raise, _fail, _full, _change, _strange, _tell, _sync)

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
json_values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)
json_objects = st.dictionaries(st.text(), json_values, max_size=4)
in_order = json_objects.map(lambda given: json.loads(json.dumps(given, sort_keys=True)))


def same(result):
    """Return what of a result does not depend on the way that its call took."""
    meta = {key: value for key, value in result.meta.items() if key != "proposal"}
    return attrs.asdict(attrs.evolve(result, meta=meta), recurse=True)


async def through(mode, behaviour, arguments, then):
    async with AgentOS(mode=mode, budget=None) as host:
        await host.extensions.load_pack(
            ExtensionPack("one", "1.0", [made(Spec("add", effect="mutate"), execute=behaviour)])
        )
        call = ToolCall("add", arguments)
        result = await host.tools.process_tool_call(call, Principal("ann"), session={"id": "s1"})
        return await then(host, result)


async def itself(host, result):
    return result


async def approved(host, result):
    assert result.error.type == "ApprovalRequired"
    return await host.approvals.approve(result.error.details["token"], by=Principal("ann"))


async def approved_and_fetched(host, result):
    await approved(host, result)
    return await host.approvals.result(result.error.details["proposal_id"])


@settings(max_examples=examples(50))
@given(behaviour=st.sampled_from(BEHAVIOURS), arguments=in_order)
def test_what_was_approved_comes_to_the_same_as_what_runs_unasked(behaviour, arguments):
    direct = asyncio.run(through("auto", behaviour, arguments, itself))
    late = asyncio.run(through("approve", behaviour, arguments, approved))

    assert same(late) == same(direct)


@settings(max_examples=examples(20))
@example(behaviour=_echo, arguments={"b": 1, "a": 2})
@given(behaviour=st.sampled_from(BEHAVIOURS), arguments=json_objects)
def test_what_was_approved_runs_with_its_arguments_in_the_order_in_which_they_came(behaviour, arguments):
    direct = asyncio.run(through("auto", behaviour, arguments, itself))
    late = asyncio.run(through("approve", behaviour, arguments, approved))

    assert same(late) == same(direct)


@settings(max_examples=examples(50))
@given(behaviour=st.sampled_from(BEHAVIOURS), arguments=json_objects)
def test_a_result_that_is_fetched_later_is_the_one_that_was_given(behaviour, arguments):
    given = asyncio.run(through("approve", behaviour, arguments, approved))
    fetched = asyncio.run(through("approve", behaviour, arguments, approved_and_fetched))

    assert same(fetched) == same(given)
