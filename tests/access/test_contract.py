"""The promises about access, the gate, approvals and grants, tried through the host, as an enemy would."""

import asyncio
import contextlib
import copy
import itertools
import logging
import shutil
import sqlite3
import time

import pytest
from cancelling import cancelled_after, cancelled_at
from hypothesis import given, settings
from hypothesis import strategies as st
from kit import Recorder
from thorough import examples

from agentos import (
    PUBLIC,
    AgentOS,
    Answer,
    Budget,
    Descriptor,
    ExtensionPack,
    GrantError,
    InterventionRule,
    Principal,
    Proposal,
    ProposalError,
    SecretRequirement,
    Tool,
    ToolCall,
    ToolDefinitionError,
    ToolResult,
    tool,
)

SECRET = "sk-very-secret-0123456789"
NOW = 1_800_000_000.0
ANN = Principal("ann", access={"mail.read", "mail.write"})
BOB = Principal("bob", access={"mail.read"})
SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "default": "/tmp/a"},
        "count": {"type": "integer", "default": 1},
        "items": {"type": "array", "items": {"type": "string"}},
    },
}


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


def acting(log, name="act", effect="mutate", *, result="done", description="Do it.", **fields):
    """Return a tool that writes down with what it ran."""

    async def execute(args, context):
        log.append((name, copy.deepcopy(args)))
        return result

    fields.setdefault("required_access", PUBLIC)
    fields.setdefault("input_schema", SCHEMA)
    fields.setdefault("execute", execute)
    return Tool.from_schema(name=name, description=description, effect=effect, **fields)


def pack(name, *offered, version="1.0", **fields):
    return ExtensionPack(name, version, offered, **fields)


def bug(reason):
    """Mark what the code does not keep yet."""
    return pytest.mark.xfail(strict=True, reason=reason)


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    """Return where a store is: in memory, and in a file."""
    return None if request.param == "memory" else tmp_path / "agentos.db"


@pytest.fixture
def log():
    return []


@pytest.fixture
def clock():
    return Clock()


@contextlib.asynccontextmanager
async def hosted(store, *packs, **options):
    """Run a host with *packs* and no budget."""
    options.setdefault("budget", None)
    async with AgentOS(store=store, **options) as host:
        for one in packs:
            await loaded(host, one)
        yield host


async def loaded(host, one):
    outcome = await host.extensions.load_pack(one)
    assert outcome.status == "loaded", outcome


async def call(host, name="act", arguments=None, principal=None, **fields):
    session = fields.pop("session", None)
    return await host.tools.process_tool_call(ToolCall(name, arguments, **fields), principal, session=session)


async def proposed(host, name="act", arguments=None, principal=None, **fields):
    """Make a call that has to ask; return the details of what it was told."""
    result = await call(host, name, arguments, principal, **fields)
    assert kind(result) == "ApprovalRequired", result
    return result.error.details


def kind(result):
    """Return the type of a result's error; `ok` for a success."""
    return "ok" if result.success else result.error.type


async def state(host, details):
    return (await host.approvals.describe(details["proposal_id"])).state


async def events(host, *names):
    return [one for one in await host.audit.records() if not names or one.event in names]


def stored_bytes(folder):
    """Return every byte that is in any file of *folder*."""
    return b"\0".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())


def with_secret(*descriptors, options=None):
    """Return a pack whose secret the host knows, so that its value is masked."""
    need = Descriptor("note", "need", "x", required_secrets=(SecretRequirement("api.key"),))
    return pack("files", *descriptors, need)


def told_by(log, decide):
    """Return a hitl-handler that writes down what it is told."""

    async def on_proposal(proposal):
        log.append(proposal)
        answer = decide(proposal)
        return await answer if asyncio.iscoroutine(answer) else answer

    return Descriptor("hitl-handler", "person", on_proposal)


# -- principals and the resolver ---------------------------------------------------------------------------------------

RULES = st.sampled_from(["a", "b", "c", "d", "*"])
SETS = st.frozensets(RULES)


@given(access=SETS, scopes=st.none() | SETS, narrowed=SETS, again=SETS)
def test_narrowing_never_adds_and_never_yields_everything(access, scopes, narrowed, again):
    before = Principal("ann", access=access, scopes=scopes)
    after = before.narrow(narrowed)
    last = after.narrow(again)

    assert "*" not in after.held
    assert "*" not in last.held
    if "*" not in before.held:
        assert after.held <= before.held
    assert after.held <= narrowed
    assert last.held <= after.held


@given(access=SETS, scopes=st.none() | SETS, required=st.frozensets(st.sampled_from("abcd"), min_size=1))
def test_a_tool_is_allowed_exactly_if_every_rule_is_held_or_everything(access, scopes, required):
    who = Principal("ann", access=access, scopes=scopes)
    one = acting([], required_access=tuple(sorted(required)))

    assert who.may_call(one) == ("*" in who.held or required <= who.held)
    assert bool(who.missing(one)) != who.may_call(one)


def test_narrowing_the_system_leaves_only_what_is_named():
    assert Principal.system().narrow(["a", "*"]).held == {"a"}


def test_a_service_gets_nothing_that_is_not_named():
    assert not Principal("cron", "service").may_call(acting([], required_access="mail.read"))


@pytest.mark.parametrize("scopes", [None, {"*"}, {"mail.read", "*"}])
def test_everything_means_nothing_for_a_service(scopes):
    service = Principal("cron", "service", {"*", "mail.read"}, scopes)

    assert service.held <= {"mail.read"}
    assert service.narrow(["mail.write", "*"]).held == frozenset()


def test_empty_access_is_refused_at_definition():
    with pytest.raises(ToolDefinitionError, match="PUBLIC"):
        acting([], required_access=())


def test_a_missing_effect_is_refused_at_definition():
    with pytest.raises(ToolDefinitionError, match="effect"):
        tool(required_access=PUBLIC)(lambda: None)


async def test_what_is_listed_is_what_can_be_called(log):
    rules = ["a", "b", "c"]
    needs = [combo for size in (1, 2, 3) for combo in itertools.combinations(rules, size)]
    tools = [acting(log, "_".join(need), "read", required_access=need) for need in needs]
    async with hosted(None, pack("p", *tools, acting(log, "open", "read")), deny=["a_b"]) as host:
        for size in range(4):
            for held in itertools.combinations(rules, size):
                who = Principal("ann", access=set(held) | {"d"}).narrow(held)
                listed = {info.name for info in host.tools.list_available_tools(who)}
                results = [(one.name, await call(host, one.name, {}, who)) for one in tools]
                assert listed - {"open"} == {name for name, result in results if result.success}


async def test_a_tool_that_a_principal_may_not_call_does_not_exist_for_it(log):
    hidden = acting(log, "read_mail", "read", required_access="mail.admin", system_prompt="Mind the mail.")
    async with hosted(None, pack("mail", hidden)) as host:
        unknown = await call(host, "nothing_such", {}, BOB)
        results = [await call(host, name, {}, BOB) for name in ("read_mail", "mail:read_mail")]

        assert {kind(one) for one in results} == {"UnknownTool"}
        assert results[0].content == unknown.content.replace("nothing_such", "read_mail")
        assert host.tools.list_available_tools(BOB) == []
        assert host.tools.system_prompt(BOB) == ""
        assert host.tools.get_tool("read_mail", BOB) is None
        assert str(host.tools.explain("read_mail", BOB, asked_by=BOB)).count("mail.admin") == 0
        assert log == []


async def test_an_operator_is_told_which_rule_is_missing(log):
    async with hosted(None, pack("mail", acting(log, "read_mail", required_access=("mail.read", "x.y")))) as host:
        explained = host.tools.explain("read_mail", BOB)

        assert explained.missing == ("x.y",)
        assert "x.y" in str(explained)


async def test_no_way_of_naming_a_tool_gets_around_access(log):
    hidden = acting(log, "wipe", required_access="root", aliases=("clean",))
    async with hosted(None, pack("disk", hidden), mode="auto") as host:
        for name in ("wipe", "clean", "disk:wipe", "disk:clean"):
            assert kind(await call(host, name, {}, BOB)) == "UnknownTool"
        batch = await host.tools.process_tool_calls([ToolCall("wipe"), ToolCall("clean")], BOB)

    assert {kind(one) for one in batch} == {"UnknownTool"}
    assert log == []


async def test_a_subclass_of_principal_can_not_say_for_itself_what_it_may_call(log):
    class Trickster(Principal):
        def may_call(self, tool):
            return True

        def missing(self, tool):
            return ()

    async with hosted(None, pack("p", acting(log, required_access="root")), mode="auto") as host:
        with pytest.raises(TypeError, match="Principal"):
            await call(host, "act", {}, Trickster("eve"))

    assert log == []


async def test_what_a_tool_calls_is_called_for_its_own_principal(log):
    async def calls(args, context):
        return kind(await context.call("admin", {}))

    tools = (acting(log, "outer", "read", execute=calls), acting(log, "admin", "read", required_access="root"))
    async with hosted(None, pack("p", *tools)) as host:
        result = await call(host, "outer", {}, BOB)

    assert result.output == "UnknownTool"
    assert log == []


# -- denials -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["act", "p:act", "p:*", "*", "a?t", "*:act"])
async def test_a_denied_tool_is_not_listed_and_its_call_is_refused(log, pattern):
    async with hosted(None, pack("p", acting(log, effect="read")), mode="auto", deny=[pattern]) as host:
        await host.grants.add("p:act", "always")
        result = await call(host)

        assert kind(result) == "Refused"
        assert "deny" in result.content
        assert host.tools.list_available_tools() == []
    assert log == []


async def test_denying_a_tool_by_its_alias_denies_it(log):
    async with hosted(None, pack("p", acting(log, effect="read", aliases=("do_it",))), deny=["do_it"]) as host:
        result = await call(host, "do_it")

    assert kind(result) == "Refused"
    assert log == []


async def test_a_never_grant_on_an_alias_denies_the_tool(log):
    async with hosted(None, pack("p", acting(log, effect="read", aliases=("do_it",)))) as host:
        await host.grants.add("do_it", "never")

        assert kind(await call(host, "do_it")) == "Refused"
        assert kind(await call(host, "act")) == "Refused"
    assert log == []


async def test_the_dry_run_of_a_denied_tool_does_not_run(log):
    async def rehearse(args, context):
        log.append("rehearsed")

    async with hosted(None, pack("p", acting(log, dry_run=rehearse)), deny=["act"]) as host:
        result = await host.tools.preview(ToolCall("act"))

    assert kind(result) == "Refused"
    assert log == []


async def test_a_denial_holds_for_what_a_tool_calls_and_for_what_it_wraps(log):
    def beneath(args, context):
        return context.below(args)

    async def elsewhere(args, context):
        return await context.call("base:act", args)

    wrapper = acting(log, effect="read", execute=beneath, placement="inline")
    caller = acting(log, "caller", "read", execute=elsewhere)
    packs = (pack("base", acting(log, effect="read")), pack("top", Descriptor("tool", "act", wrapper, wraps=True)))
    async with hosted(None, *packs, pack("c", caller), deny=["base:*"]) as host:
        results = [await call(host, "act"), await call(host, "caller")]

    assert [kind(one) for one in results] == ["Refused", "Refused"]
    assert log == []


async def test_an_approved_wrapper_does_not_get_past_a_denial(store, log):
    async def beneath(args, context):
        return await context.below(args)

    wrapper = acting(log, execute=beneath)
    packs = (pack("base", acting(log)), pack("top", Descriptor("tool", "act", wrapper, wraps=True)))
    async with hosted(store, *packs, deny=["base:*"]) as host:
        details = await proposed(host)
        result = await host.approvals.approve(details["token"])

    assert kind(result) == "Refused"
    assert log == []


# -- the gate, through the host ----------------------------------------------------------------------------------------

EFFECTS = ("read", "mutate", "destructive")


async def says_never(args, context):
    return "never"


INTERVENTIONS = {
    "none": None,
    "never": "never",
    "required": "required",
    "always": "always",
    "rule_never": (InterventionRule("never"),),
    "rule_required": (InterventionRule("required"),),
    "rule_always": (InterventionRule("always"),),
    "function_never": says_never,
    "function_required": lambda args, context: "required",
    "function_always": lambda args, context: "always",
}


def expected(effect, policy, mode, granted):
    """Say what the contract says, written down a second time."""
    policy = policy.rpartition("_")[2]
    asks = "Refused" if mode == "unattended" else "ApprovalRequired"
    if effect == "destructive" or policy == "always":
        return asks
    if granted:
        return "ok"
    if policy == "required":
        return asks
    if policy == "never" or effect == "read":
        return "ok"
    return "ok" if mode == "auto" else asks


@pytest.mark.parametrize("mode", ["approve", "auto", "unattended"])
@pytest.mark.parametrize("granted", [False, True])
async def test_every_combination_is_decided_as_promised_by_whatever_name(log, mode, granted):
    async def calls(args, context):
        return await context.call(args["path"], {})

    combinations = list(itertools.product(EFFECTS, INTERVENTIONS))
    tools = [
        acting(log, f"{effect}-{how}", effect, intervention=INTERVENTIONS[how], aliases=(f"alias-{effect}-{how}",))
        for effect, how in combinations
    ]
    caller = acting(log, "caller", "read", execute=calls)
    async with hosted(None, pack("p", *tools, caller), mode=mode) as host:
        wrong = []
        for (effect, how), one in zip(combinations, tools, strict=True):
            if granted:
                await host.grants.add(one.name, "always")
                await host.grants.add(one.name, "session", session="s")
                await host.grants.add(one.name, "once")
                await host.grants.add(one.name, "always", arguments={})
            want = expected(effect, how, mode, granted)
            names = (one.name, f"alias-{one.name}", f"p:{one.name}")
            results = [await call(host, "caller", {"path": names[0]}, session={"id": "s"})]
            results += await host.tools.process_tool_calls([ToolCall(name) for name in names[1:]], session={"id": "s"})
            wrong += [(one.name, kind(result), want) for result in results if kind(result) != want]
            ran = [name for name, _ in log if name == one.name]
            wrong += [] if bool(ran) == (want == "ok") else [(one.name, "ran", len(ran))]
            log.clear()

    assert wrong == []


@pytest.mark.parametrize("mode", ["approve", "auto", "unattended"])
@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("above", ["read", "mutate"])
async def test_what_is_wrapped_is_decided_on_like_any_other_call(log, mode, effect, above):
    async def beneath(args, context):
        return await context.below(args)

    wrapper = acting(log, effect=above, execute=beneath, intervention="never")
    packs = (pack("base", acting(log, effect=effect)), pack("top", Descriptor("tool", "act", wrapper, wraps=True)))
    async with hosted(None, *packs, mode=mode) as host:
        result = await call(host)

    assert kind(result) == expected(effect, "none", mode, granted=False)
    assert bool(log) == result.success


async def test_rules_may_be_given_as_a_list(log):
    rules = [InterventionRule("never", {"$.path": "/tmp/*"}), InterventionRule("always")]
    async with hosted(None, pack("p", acting(log, intervention=rules))) as host:
        assert kind(await call(host, "act", {"path": "/tmp/x"})) == "ok"
        assert kind(await call(host, "act", {"path": "/etc/x"})) == "ApprovalRequired"


@pytest.mark.parametrize("nonsense", [5, {}, object(), ["never"], "sometimes", [{"policy": "nevr"}]])
def test_an_intervention_that_is_none_is_refused_at_definition(nonsense):
    with pytest.raises((ToolDefinitionError, ValueError, TypeError)):
        acting([], intervention=nonsense)


async def test_rules_decide_by_the_arguments_that_will_run(log):
    rules = (InterventionRule("never", {"$.path": "/tmp/*", "$.count": "1"}), InterventionRule("always"))
    async with hosted(None, pack("p", acting(log, intervention=rules))) as host:
        assert kind(await call(host, "act", {})) == "ok"  # by the defaults
        assert kind(await call(host, "act", {"path": "/tmp/../etc/passwd"})) == "ApprovalRequired"
        assert kind(await call(host, "act", {"path": "/etc/passwd"})) == "ApprovalRequired"
        assert kind(await call(host, "act", {"count": 2})) == "ApprovalRequired"


async def test_a_command_rule_wants_every_part_of_a_compound_command(log):
    rules = (InterventionRule("never", {"$.path": "git add *"}, kind="command"), InterventionRule("required"))
    async with hosted(None, pack("p", acting(log, intervention=rules))) as host:
        assert kind(await call(host, "act", {"path": "git add file"})) == "ok"
        for line in (
            "git add file; rm -rf /",
            "git add $(rm x)",
            "git add a && git push",
            "git add a | sh",
            "git push",
        ):
            assert kind(await call(host, "act", {"path": line})) == "ApprovalRequired", line


async def test_coerced_arguments_are_decided_on_as_they_will_run(log):
    rules = (InterventionRule("never", {"$.count": "5"}), InterventionRule("always"))
    async with hosted(None, pack("p", acting(log, intervention=rules, coerce=True))) as host:
        assert kind(await call(host, "act", {"count": "5"})) == "ok"
        assert kind(await call(host, "act", {"count": "6"})) == "ApprovalRequired"

    assert log == [("act", {"count": 5, "path": "/tmp/a"})]


class Agreeable:
    """Says that it equals everything."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


class Quarrelsome:
    """Can't be compared."""

    __hash__ = None

    def __eq__(self, other):
        raise ValueError("no comparison")


def raising(error):
    def raises(args, context):
        raise error

    return raises


@pytest.mark.parametrize(
    "intervention",
    [
        raising(ValueError("no")),
        raising(SystemExit(0)),
        raising(asyncio.CancelledError()),
        raising(StopIteration()),
        lambda args, context: "",
        lambda args, context: "NEVER",
        lambda args, context: 0,
        lambda args, context: True,
        lambda args, context: ["never"],
        lambda args, context: Agreeable(),
        pytest.param(lambda args, context: Quarrelsome()),
        lambda args, context: (_ for _ in ("never",)),
        lambda: "never",
    ],
    ids=lambda value: None,
)
async def test_a_function_that_fails_or_talks_nonsense_counts_as_always(log, intervention):
    async with hosted(None, pack("p", acting(log, effect="read", intervention=intervention)), mode="auto") as host:
        await host.grants.add("act", "always")
        result = await call(host)

    assert kind(result) == "ApprovalRequired"
    assert log == []


async def test_a_function_that_says_nothing_leaves_it_to_the_mode(log):
    async with hosted(None, pack("p", acting(log, intervention=lambda args, context: None))) as host:
        assert kind(await call(host)) == "ApprovalRequired"


async def test_a_function_that_never_ends_does_not_hold_the_call_for_ever(log):
    async def hangs(args, context):
        await asyncio.Event().wait()

    async with hosted(None, pack("p", acting(log, intervention=hangs, timeout=0.05))) as host:
        async with asyncio.timeout(10):
            result = await call(host)

    assert kind(result) in ("ApprovalRequired", "TimedOut")
    assert log == []


async def test_a_function_can_not_change_the_arguments_that_run(log):
    def changes(args, context):
        args["path"] = "/etc/passwd"
        args["items"].append("more")
        return "never"

    async with hosted(None, pack("p", acting(log, intervention=changes))) as host:
        await call(host, "act", {"items": ["a"]})

    assert log == [("act", {"items": ["a"], "path": "/tmp/a", "count": 1})]


async def test_the_callers_own_mapping_may_change_after_the_gate_without_effect(log):
    given = {"items": ["a"]}

    async def changes(args, context):
        given["items"].append("b")
        given["path"] = "/etc/passwd"
        return "never"

    async with hosted(None, pack("p", acting(log, intervention=changes))) as host:
        await call(host, "act", given)

    assert log == [("act", {"items": ["a"], "path": "/tmp/a", "count": 1})]


async def test_a_tool_that_goes_while_the_gate_thinks_does_not_run(log):
    """A pack that was unloaded, with its hooks run, must not be called any more."""
    asked, answered = asyncio.Event(), asyncio.Event()

    async def ponders(args, context):
        asked.set()
        await answered.wait()
        return "never"

    leaving = pack("p", acting(log, intervention=ponders), on_deactivate=lambda context: log.append("gone"))
    async with hosted(None, leaving) as host:
        task = asyncio.ensure_future(call(host))
        await asked.wait()
        await host.extensions.unload("p")
        answered.set()
        await task

    assert log == ["gone"]


@pytest.mark.parametrize(
    "bad",
    [
        *({"mode": "yolo"}, {"deny": [5]}, {"deny": [""]}, {"pins": "loose"}),
        *({"proposal_ttl": ttl} for ttl in (0, -1, True, float("nan"), float("inf"), "60")),
    ],
    ids=str,
)
def test_a_host_with_decisions_that_make_no_sense_is_refused(bad):
    with pytest.raises((ValueError, TypeError), match=next(iter(bad))):
        AgentOS(**bad)


async def test_every_answer_says_which_step_gave_it(log):
    async with hosted(None, pack("p", acting(log, effect="destructive")), mode="unattended") as host:
        result = await call(host)

    assert result.error.details["step"] == "destructive"
    assert "unattended" in result.error.message


async def test_what_is_refused_is_on_record_with_its_reason(store, log):
    async with hosted(store, pack("p", acting(log)), mode="unattended") as host:
        await call(host)
        (record,) = await events(host, "decision")

    assert (record.data["answer"], record.data["tool"]) == ("refuse", "p:act")
    assert "unattended" in record.data["reason"]


async def test_a_name_of_any_length_takes_little_room_in_the_audit_log(log):
    async with hosted(None, pack("p", acting(log, effect="read"))) as host:
        await call(host, "x" * 1_000_000)
        await call(host, "act", id="y" * 1_000_000)
        longest = max(len(str(dict(record.data))) for record in await host.audit.records())

    assert longest < 10_000


async def test_the_log_is_in_the_order_of_what_happened(store, log):
    async with hosted(store, pack("p", acting(log), acting(log, "look", "read"))) as host:
        before = len(await host.audit.records())
        await call(host, "look")
        details = await proposed(host)
        await call(host, "look")
        await host.approvals.reject(details["proposal_id"], "no")
        records = (await host.audit.records())[before:]

    assert [one.event for one in records] == ["call", "proposal", "call", "proposal:rejected"]
    assert [one.at for one in records] == sorted(one.at for one in records)


# -- the clock ---------------------------------------------------------------------------------------------------------


async def test_a_proposal_expires_by_the_machines_clock_whoever_sets_it(store, log, monkeypatch):
    async with hosted(store, pack("p", acting(log)), proposal_ttl=60) as host:
        details = await proposed(host)
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 61)
        result = await host.approvals.approve(details["token"])

    assert (kind(result), "expired" in result.content, log) == ("ProposalInvalid", True, [])


async def test_a_budget_counts_by_the_clock_that_a_host_gives(log, clock):
    one = Budget(calls=1, window=10)
    async with hosted(None, pack("p", acting(log, effect="read")), clock=clock, budget=one) as host:
        first, second = kind(await call(host)), kind(await call(host))
        clock.now += 10.1
        third = kind(await call(host))

    assert (first, second, third) == ("ok", "BudgetExceeded", "ok")


# -- proposals ---------------------------------------------------------------------------------------------------------


async def test_what_is_asked_is_told_with_its_proposal(store, log, clock):
    async with hosted(store, pack("p", acting(log)), clock=clock, proposal_ttl=60) as host:
        details = await proposed(host, "act", {"path": "/x"}, ANN)
        (waiting,) = await host.approvals.pending()

    assert set(details) == {"proposal_id", "token", "expires_at", "reason"}
    assert len(details["token"]) >= 43  # 256 bits
    assert (waiting.id, waiting.token) == (details["proposal_id"], None)
    assert (waiting.tool, waiting.effect, waiting.state) == ("p:act", "mutate", "proposed")
    assert waiting.arguments == {"path": "/x", "count": 1}
    assert waiting.preview == {"path": "/x", "count": 1}
    assert waiting.principal == ANN
    assert (waiting.expires_at - waiting.created_at).total_seconds() == 60
    assert waiting.reason == details["reason"]
    assert log == []


async def test_an_approved_call_runs_exactly_what_was_stored(store, log):
    async with hosted(store, pack("p", acting(log))) as host:
        details = await proposed(host, "act", '{"path": "/x", "items": ["ä", "\\u0000"]}')
        result = await host.approvals.approve(details["token"])

        assert kind(result) == "ok"
        assert await state(host, details) == "applied"
    assert log == [("act", {"path": "/x", "items": ["ä", "\0"], "count": 1})]


@pytest.mark.parametrize("by_id", [False, True])
async def test_a_token_is_taken_once_however_many_try_at_once(store, log, by_id):
    async with hosted(store, pack("p", acting(log))) as host:
        details = await proposed(host)
        given = details["proposal_id" if by_id else "token"]
        results = await asyncio.gather(*(host.approvals.approve(given) for _ in range(50)))
        late = await host.approvals.approve(given)

    assert sorted(kind(one) for one in results) == ["ProposalInvalid"] * 49 + ["ok"]
    assert kind(late) == "ProposalInvalid"
    assert "used" in late.error.message
    assert len(log) == 1


async def test_two_hosts_on_one_file_take_a_token_once(tmp_path, log):
    store = tmp_path / "agentos.db"
    async with hosted(store, pack("p", acting(log))) as one, hosted(store, pack("p", acting(log))) as other:
        details = await proposed(one)
        hosts = [one, other] * 10
        results = await asyncio.gather(*(host.approvals.approve(details["token"]) for host in hosts))

    assert sorted(kind(result) for result in results) == ["ProposalInvalid"] * 19 + ["ok"]
    assert len(log) == 1


@pytest.mark.parametrize(
    "given",
    [
        *("", "x", "\0", "%", "x" * 1_000_000, None, 5, b"x", ["x"], {"id": "x"}, "' OR 1=1 --"),
        pytest.param("\ud800"),
    ],
    ids=lambda given: repr(given)[:12],
)
async def test_whatever_is_given_for_a_token_approving_ends_in_a_result(log, given):
    async with hosted(None, pack("p", acting(log))) as host:
        await proposed(host)
        result = await host.approvals.approve(given)

    assert kind(result) == "ProposalInvalid"
    assert "unknown" in result.error.message
    assert log == []


async def test_an_expired_proposal_is_refused_in_its_own_words(store, log, clock):
    async with hosted(store, pack("p", acting(log)), clock=clock, proposal_ttl=60) as host:
        details = await proposed(host)
        clock.now += 60
        result = await host.approvals.approve(details["token"])

        assert (kind(result), "expired" in result.error.message) == ("ProposalInvalid", True)
        assert await state(host, details) == "expired"
        assert await host.approvals.pending() == []
    assert log == []


async def test_a_moment_before_it_expires_a_proposal_can_be_applied(log, clock):
    async with hosted(None, pack("p", acting(log)), clock=clock, proposal_ttl=60) as host:
        details = await proposed(host)
        clock.now += 59.99

        assert kind(await host.approvals.approve(details["token"])) == "ok"


@pytest.mark.parametrize(
    "seen_by",
    [
        "pending",
        pytest.param("approve"),
        pytest.param("describe"),
    ],
)
async def test_what_was_seen_as_expired_stays_so_when_the_clock_goes_back(store, log, clock, seen_by):
    async with hosted(store, pack("p", acting(log)), clock=clock, proposal_ttl=60) as host:
        details = await proposed(host)
        clock.now += 61
        if seen_by == "pending":
            await host.approvals.pending()
        elif seen_by == "approve":
            await host.approvals.approve(details["token"])
        else:
            assert await state(host, details) == "expired"
        clock.now -= 30
        result = await host.approvals.approve(details["token"])

    assert kind(result) == "ProposalInvalid"
    assert log == []


async def test_a_clock_that_went_far_back_gives_no_second_life(log, clock):
    async with hosted(None, pack("p", acting(log)), clock=clock, proposal_ttl=60) as host:
        details = await proposed(host)
        clock.now -= 3600
        result = await host.approvals.approve(details["token"])

    assert (kind(result), "clock" in result.error.message) == ("ProposalInvalid", True)
    assert log == []


async def test_a_rejected_proposal_is_refused_with_the_reason(store, log):
    async with hosted(store, pack("p", acting(log))) as host:
        details = await proposed(host)
        await host.approvals.reject(details["proposal_id"], "not today")
        result = await host.approvals.approve(details["token"])

        assert (kind(result), "not today" in result.error.message) == ("ProposalInvalid", True)
        assert await state(host, details) == "rejected"
        with pytest.raises(ProposalError, match="not today"):
            await host.approvals.reject(details["proposal_id"], "again")
        with pytest.raises(ProposalError, match="not today"):
            await host.approvals.edit(details["proposal_id"], {})
    assert log == []


@pytest.mark.parametrize(
    "reason",
    [
        *("\0", "x" * 1_000_000),
        pytest.param("\ud800"),
    ],
    ids=lambda reason: repr(reason)[:12],
)
async def test_a_reason_may_be_any_text(log, reason):
    async with hosted(None, pack("p", acting(log))) as host:
        details = await proposed(host)
        await host.approvals.reject(details["proposal_id"], reason)

        assert await state(host, details) == "rejected"


async def test_approving_and_rejecting_at_once_does_one_of_both(store, log):
    async with hosted(store, pack("p", acting(log))) as host:
        for _ in range(5):
            log.clear()
            details = await proposed(host)
            tries = [host.approvals.approve(details["token"]), host.approvals.reject(details["proposal_id"], "no")]
            applied, rejected = await asyncio.gather(*tries, return_exceptions=True)

            assert bool(log) == (kind(applied) == "ok") == isinstance(rejected, ProposalError)
            assert await state(host, details) == ("applied" if log else "rejected")


async def test_an_unknown_proposal_is_said_to_be_unknown(log):
    async with hosted(None, pack("p", acting(log))) as host:
        for attempt in (
            host.approvals.describe("x"),
            host.approvals.edit("x", {}),
            host.approvals.reject("x", "no"),
        ):
            with pytest.raises(ProposalError, match="'x'"):
                await attempt
        assert await host.approvals.result("x") is None


async def test_proposals_of_others_are_not_in_ones_own_list(log):
    async with hosted(None, pack("p", acting(log))) as host:
        await proposed(host, principal=ANN)
        await proposed(host, principal=BOB)

        assert [one.principal for one in await host.approvals.pending(BOB)] == [BOB]
        assert [one.principal.id for one in await host.approvals.pending("ann")] == ["ann"]
        assert len(await host.approvals.pending()) == 2


async def test_describing_says_from_where_it_comes_and_whom_it_shadows(log):
    packs = (pack("old", acting(log)), pack("new", acting(log), version="2.1"))
    async with hosted(None, *packs) as host:
        details = await proposed(host)
        described = await host.approvals.describe(details["proposal_id"])

    assert (described.tool, described.pack, described.version) == ("new:act", "new", "2.1")
    assert described.shadows == ("old:act",)


async def test_a_call_that_can_not_be_asked_about_any_more_is_refused(log, monkeypatch):
    monkeypatch.setattr("agentos.access.proposals.PENDING_LIMIT", 5)
    async with hosted(None, pack("p", acting(log))) as host:
        for _ in range(5):
            await proposed(host, principal=ANN)

        result = await call(host, principal=ANN)
        assert (kind(result), "decide on those first" in result.content) == ("Refused", True)
        assert kind(await call(host, principal=BOB)) == "ApprovalRequired"


# -- what may have changed between propose and apply -------------------------------------------------------------------


async def not_applied(host, details, *words):
    """Check that applying is refused, with *words*."""
    result = await host.approvals.approve(details["token"])
    assert kind(result) == "ProposalInvalid", result
    for word in words:
        assert word in result.error.message


async def test_an_unloaded_tool_is_not_applied(log):
    async with hosted(None, pack("p", acting(log))) as host:
        details = await proposed(host)
        await host.extensions.unload("p")

        await not_applied(host, details, "p:act", "active then")
    assert log == []


async def test_a_disabled_tool_is_not_applied_until_it_is_enabled(log):
    async with hosted(None, pack("p", acting(log))) as host:
        details = await proposed(host)
        await host.extensions.disable("p")
        await not_applied(host, details, "p:act")
        await host.extensions.enable("p")

        assert kind(await host.approvals.approve(details["token"])) == "ok"


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Do something else."},
        {"effect": "read"},
        {"effect": "destructive"},
        {"input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}},
        {"output_schema": {"type": "string"}},
        {"intervention": "never"},
        {"required_access": "mail.read"},
        {"aliases": ("do",)},
        {"idempotent": True},
        {"system_prompt": "Use it often."},
        {"display_name": "Harmless"},
    ],
    ids=str,
)
async def test_a_changed_definition_is_not_applied(log, change):
    async with hosted(None) as host:
        service = host.tools_service()
        await service.register_tool(acting(log))
        details = await proposed(host, principal=ANN)
        await service.register_tool(acting(log, **change))

        await not_applied(host, details, "definition", "changed")
    assert log == []


async def test_the_same_definition_loaded_again_is_applied(log):
    async with hosted(None, pack("p", acting(log))) as host:
        details = await proposed(host)
        await host.extensions.unload("p")
        await loaded(host, pack("p", acting(log)))

        assert kind(await host.approvals.approve(details["token"])) == "ok"


async def test_a_tool_that_another_pack_shadows_now_is_not_applied(log):
    async with hosted(None, pack("p", acting(log))) as host:
        details = await proposed(host)
        await loaded(host, pack("q", acting(log)))

        await not_applied(host, details, "p:act", "q:act is active now")
    assert log == []


async def test_a_tool_that_an_override_pushed_down_is_not_applied(log):
    async with hosted(None, pack("q", acting(log)), pack("p", acting(log))) as host:
        details = await proposed(host)
        await host.extensions.set_override("tool", "q:act", {"priority": 10})

        await not_applied(host, details, "q:act is active now")
    assert log == []


async def test_a_tool_under_a_new_wrapper_is_not_applied(log):
    async with hosted(None, pack("p", acting(log))) as host:
        details = await proposed(host)
        await loaded(host, pack("q", Descriptor("tool", "act", acting(log), wraps=True)))

        await not_applied(host, details, "p:act")
    assert log == []


async def test_a_wrapper_is_not_applied_over_another_tool_than_it_was_approved_over(store, log):
    """A person who approved a wrapper was shown what it wraps; something destructive must not slip in beneath it."""

    async def beneath(args, context):
        return await context.below(args)

    wrapper = Descriptor("tool", "act", acting(log, execute=beneath), wraps=True, priority=10)
    packs = (pack("base", acting(log, result="harmless")), pack("top", wrapper))
    async with hosted(store, *packs) as host:
        details = await proposed(host)
        await loaded(host, pack("evil", acting(log, effect="destructive", description="Wipe it all.")))
        result = await host.approvals.approve(details["token"])

    assert kind(result) in ("ProposalInvalid", "ApprovalRequired")
    assert log == []


async def test_a_wrapper_is_not_applied_over_a_definition_that_changed(log):
    async def beneath(args, context):
        return await context.below(args)

    wrapper = Descriptor("tool", "act", acting(log, execute=beneath), wraps=True, priority=10)
    async with hosted(None, pack("top", wrapper)) as host:
        await host.tools_service().register_tool(acting(log))
        details = await proposed(host)
        await host.tools_service().register_tool(acting(log, effect="destructive", description="Wipe it all."))
        result = await host.approvals.approve(details["token"])

    assert kind(result) in ("ProposalInvalid", "ApprovalRequired")
    assert log == []


async def test_an_approved_wrapper_does_not_call_what_slipped_in_beneath_it_while_it_ran(log):
    started, opened = asyncio.Event(), asyncio.Event()

    async def beneath(args, context):
        started.set()
        await opened.wait()
        return await context.below(args)

    wrapper = Descriptor("tool", "act", acting(log, execute=beneath), wraps=True, priority=10)
    async with hosted(None, pack("base", acting(log)), pack("top", wrapper)) as host:
        details = await proposed(host)
        task = asyncio.ensure_future(host.approvals.approve(details["token"]))
        await started.wait()
        await loaded(host, pack("evil", acting(log, effect="destructive", description="Wipe it all.")))
        opened.set()
        result = await task

    assert not result.success
    assert log == []


async def test_rules_lost_meanwhile_are_missed_when_applying(store, log):
    async with hosted(store, pack("p", acting(log, required_access="mail.write"))) as host:
        details = await proposed(host, principal=ANN)
        result = await host.approvals.approve(details["token"], by=Principal("ann", access={"mail.read"}))

        assert (kind(result), "mail.write" in result.error.message) == ("ProposalInvalid", True)
        assert await state(host, details) == "proposed"
    assert log == []


async def test_a_denial_that_came_meanwhile_counts_when_applying(store, log):
    async with hosted(store, pack("p", acting(log))) as host:
        details = await proposed(host)
        grant = await host.grants.add("act", "never")
        await not_applied(host, details, "never")
        await host.grants.revoke(grant.id)

        assert kind(await host.approvals.approve(details["token"])) == "ok"


async def test_a_host_with_another_deny_list_does_not_apply_what_it_denies(tmp_path, log):
    store = tmp_path / "agentos.db"
    async with hosted(store, pack("p", acting(log))) as host:
        details = await proposed(host)
    async with hosted(store, pack("p", acting(log)), deny=["act"]) as host:
        await not_applied(host, details, "deny")
    assert log == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("arguments", '{"count":1,"path":"/etc/passwd"}'),
        ("arguments", "null"),
        ("principal", "root"),
        ("principal_data", '{"access":["*"],"id":"ann","kind":"user","scopes":null}'),
        ("tool", "p:other"),
        ("definition", "0" * 64),
        ("entry_state", "wrapped"),
        ("expires_at", NOW + 10_000),
        ("created_at", NOW - 1),
        ("preview", '"harmless"'),
        ("effect", "read"),
        ("session_id", "other"),
        ("idempotency_key", "other"),
        ("token_hash", "0" * 64),
        ("pack", "trusted"),
        ("version", "9"),
    ],
)
async def test_a_row_that_somebody_changed_is_not_applied(tmp_path, log, clock, column, value):
    store = tmp_path / "agentos.db"
    async with hosted(store, pack("p", acting(log), acting(log, "other")), clock=clock) as host:
        details = await proposed(host, principal=ANN)
        with contextlib.closing(sqlite3.connect(store)) as database, database:
            database.execute(f"UPDATE proposals SET {column} = ?", (value,))
        result = await host.approvals.approve(details["proposal_id"])

    assert kind(result) == "ProposalInvalid"
    assert log == []


async def test_a_used_proposal_whose_state_was_set_back_is_not_applied_again(tmp_path, log):
    store = tmp_path / "agentos.db"
    async with hosted(store, pack("p", acting(log))) as host:
        details = await proposed(host)
        await host.approvals.approve(details["token"])
        with contextlib.closing(sqlite3.connect(store)) as database, database:
            database.execute("UPDATE proposals SET state = 'proposed', owner = NULL, result = NULL")
        result = await host.approvals.approve(details["token"])

    assert kind(result) == "ProposalInvalid"
    assert len(log) == 1


async def test_approving_with_a_broken_store_still_ends_in_a_result(tmp_path, log):
    store = tmp_path / "agentos.db"
    async with hosted(store, pack("p", acting(log))) as host:
        details = await proposed(host)
        with contextlib.closing(sqlite3.connect(store)) as database, database:
            database.execute("ALTER TABLE proposals RENAME TO elsewhere")
        result = await host.approvals.approve(details["token"])

    assert isinstance(result, ToolResult)
    assert not result.success
    assert log == []


async def test_a_mutating_call_whose_audit_can_not_be_written_does_not_run(tmp_path, log):
    store = tmp_path / "agentos.db"
    async with hosted(store, pack("p", acting(log)), mode="auto") as host:
        with contextlib.closing(sqlite3.connect(store)) as database, database:
            database.execute("ALTER TABLE audit RENAME TO elsewhere")
        result = await call(host)
        with contextlib.closing(sqlite3.connect(store)) as database, database:
            database.execute("ALTER TABLE elsewhere RENAME TO audit")

        assert kind(result) == "Refused"
        assert log == []
        assert kind(await call(host)) == "ok"


async def test_an_approved_call_whose_audit_can_not_be_written_does_not_run(tmp_path, log):
    store = tmp_path / "agentos.db"
    async with hosted(store, pack("p", acting(log))) as host:
        details = await proposed(host)
        with contextlib.closing(sqlite3.connect(store)) as database, database:
            database.execute("ALTER TABLE audit RENAME TO elsewhere")
        result = await host.approvals.approve(details["token"])
        with contextlib.closing(sqlite3.connect(store)) as database, database:
            database.execute("ALTER TABLE elsewhere RENAME TO audit")

        assert kind(result) == "Refused"
        assert log == []
        assert kind(await host.approvals.approve(details["token"])) == "ok"


# -- who approves ------------------------------------------------------------------------------------------------------


async def test_somebody_else_may_not_approve_edit_or_reject(store, log):
    async with hosted(store, pack("p", acting(log))) as host:
        details = await proposed(host, principal=ANN)
        id = details["proposal_id"]
        results = [await host.approvals.approve(given, by=BOB) for given in (id, details["token"])]

        assert [kind(one) for one in results] == ["ProposalInvalid"] * 2
        assert "bob" in results[0].error.message
        with pytest.raises(ProposalError, match="bob"):
            await host.approvals.edit(id, {}, by=BOB)
        with pytest.raises(ProposalError, match="bob"):
            await host.approvals.reject(id, "no", by="bob")
        assert await state(host, details) == "proposed"
    assert log == []


async def test_somebody_else_may_approve_where_the_host_allows_it(log):
    async with hosted(None, pack("p", acting(log)), allow_other_approver=True) as host:
        details = await proposed(host, principal=ANN)

        assert kind(await host.approvals.approve(details["token"], by=BOB)) == "ok"
        assert (await host.approvals.describe(details["proposal_id"])).decided_by == "bob"


async def test_an_approved_call_runs_for_its_proposer_whoever_approves(log):
    seen = []

    async def look(args, context):
        seen.append(context.principal)

    async with hosted(None, pack("p", acting(log, execute=look)), allow_other_approver=True) as host:
        details = await proposed(host, principal=BOB)
        await host.approvals.approve(details["token"], by=Principal.system())

    assert seen == [BOB]


@pytest.mark.parametrize(
    "by",
    [
        Principal("bob", access={"*"}),
        Principal("bob", access={"mail.read", "mail.write", "root"}),
        Principal("bob", access={"*"}, scopes={"mail.read", "root"}),
    ],
)
async def test_an_approver_of_the_same_name_with_more_rules_adds_nothing(log, by):
    seen = []

    async def look(args, context):
        seen.append(context.principal.held)
        return kind(await context.call("admin", {}))

    tools = (acting(log, execute=look), acting(log, "admin", "read", required_access="root"))
    async with hosted(None, pack("p", *tools)) as host:
        details = await proposed(host, principal=BOB)
        result = await host.approvals.approve(details["token"], by=by)

    assert seen == [frozenset({"mail.read"})]
    assert result.output == "UnknownTool"


async def test_an_approver_of_the_same_name_and_another_kind_is_somebody_else(log):
    async with hosted(None, pack("p", acting(log))) as host:
        details = await proposed(host, principal=BOB)
        result = await host.approvals.approve(details["token"], by=Principal("bob", "system", {"*"}))

    assert kind(result) == "ProposalInvalid"
    assert log == []


async def test_a_narrowed_principal_stays_narrow_through_a_restart(tmp_path, log):
    store = tmp_path / "agentos.db"
    seen = []

    async def look(args, context):
        seen.append(context.principal.held)

    narrow = Principal("root", access={"*"}).narrow(["mail.read"])
    async with hosted(store, pack("p", acting(log, execute=look))) as host:
        details = await proposed(host, principal=narrow)
    async with hosted(store, pack("p", acting(log, execute=look))) as host:
        await host.approvals.approve(details["token"], by=Principal("root", access={"*"}))

    assert seen == [frozenset({"mail.read"})]


# -- editing -----------------------------------------------------------------------------------------------------------


async def test_an_edit_makes_a_new_proposal_and_closes_the_old_one(store, log):
    async with hosted(store, pack("p", acting(log))) as host:
        old = await proposed(host, "act", {"path": "/x"}, ANN)
        new = await host.approvals.edit(old["proposal_id"], {"path": "/y"})

        assert new.id != old["proposal_id"]
        assert new.token not in (None, old["token"])
        assert (new.parent, new.principal, new.arguments) == (old["proposal_id"], ANN, {"path": "/y", "count": 1})
        await not_applied(host, old, "used")
        assert kind(await host.approvals.approve(new.token)) == "ok"
    assert log == [("act", {"path": "/y", "count": 1})]


@pytest.mark.parametrize("arguments", [{"path": 5}, {"unknown": 1}, {"count": "x"}])
async def test_an_edit_with_bad_arguments_changes_nothing(log, arguments):
    async with hosted(None, pack("p", acting(log))) as host:
        details = await proposed(host)
        with pytest.raises(ProposalError):
            await host.approvals.edit(details["proposal_id"], arguments)

        assert await state(host, details) == "proposed"
        assert len(await host.approvals.pending()) == 1


async def test_an_edit_into_what_is_denied_is_refused(log):
    async with hosted(None, pack("p", acting(log))) as host:
        await host.grants.add("act", "never", arguments={"$.path": "/etc/*"})
        details = await proposed(host, "act", {"path": "/tmp/x"})
        with pytest.raises(ProposalError, match="never"):
            await host.approvals.edit(details["proposal_id"], {"path": "/etc/passwd"})

        assert await state(host, details) == "proposed"


async def test_an_edited_call_is_asked_about_again(log):
    async with hosted(None, pack("p", acting(log))) as host:
        await host.grants.add("act", "always", arguments={"$.path": "/y"})
        details = await proposed(host, "act", {"path": "/x"})
        await host.approvals.edit(details["proposal_id"], {"path": "/y"})

    assert log == []


async def test_an_edit_adds_no_access(log):
    async with hosted(None, pack("p", acting(log)), allow_other_approver=True) as host:
        details = await proposed(host, principal=BOB)
        new = await host.approvals.edit(details["proposal_id"], {"path": "/y"}, by=Principal.system())

    assert new.principal == BOB


async def test_of_many_edits_at_once_one_counts(store, log):
    async with hosted(store, pack("p", acting(log))) as host:
        details = await proposed(host)
        tries = [host.approvals.edit(details["proposal_id"], {"count": number}) for number in range(20)]
        results = await asyncio.gather(*tries, return_exceptions=True)

        assert sum(isinstance(one, Proposal) for one in results) == 1
        assert len(await host.approvals.pending()) == 1


# -- previews ----------------------------------------------------------------------------------------------------------


async def test_a_dry_run_is_the_preview(log):
    async def rehearse(args, context):
        return {"would": args["path"]}

    async with hosted(None, pack("p", acting(log, dry_run=rehearse))) as host:
        details = await proposed(host, "act", {"path": "/x"})

        assert (await host.approvals.describe(details["proposal_id"])).preview == {"would": "/x"}
    assert log == []


async def test_a_dry_run_can_not_change_what_will_run(log):
    async def rehearse(args, context):
        args["path"] = "/etc/passwd"
        args["items"].append("more")
        context.tool_call.arguments["items"].append("more")

    async with hosted(None, pack("p", acting(log, dry_run=rehearse))) as host:
        details = await proposed(host, "act", {"items": ["a"]})
        await host.approvals.approve(details["token"])

    assert log == [("act", {"items": ["a"], "path": "/tmp/a", "count": 1})]


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1), asyncio.CancelledError(), StopAsyncIteration()])
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_dry_run_that_raises_leaves_the_proposal_with_the_arguments(log, error, is_async):
    def raises(args, context):
        raise error

    async def raises_later(args, context):
        raise error

    async with hosted(None, pack("p", acting(log, dry_run=raises_later if is_async else raises))) as host:
        details = await proposed(host, "act", {"path": "/x"})
        preview = (await host.approvals.describe(details["proposal_id"])).preview

        assert preview["arguments"] == {"path": "/x", "count": 1}
        assert "dry_run_failed" in preview
        assert kind(await host.approvals.approve(details["token"])) == "ok"


async def test_a_dry_run_that_hangs_ends_with_the_tools_timeout(log):
    async def hangs(args, context):
        await asyncio.Event().wait()

    async with hosted(None, pack("p", acting(log, dry_run=hangs, timeout=0.2))) as host:
        details = await proposed(host)

        assert "dry_run_failed" in (await host.approvals.describe(details["proposal_id"])).preview
        assert kind(await host.approvals.approve(details["token"])) == "ok"


async def test_a_dry_run_can_not_run_what_it_rehearses(log):
    async def cheats(args, context):
        return [kind(await context.call("act", args)), kind(await context.call("wipe", args))]

    tools = (acting(log, dry_run=cheats), acting(log, "wipe", "destructive"))
    async with hosted(None, pack("p", *tools)) as host:
        async with asyncio.timeout(5):
            await proposed(host)

    assert log == []


# -- how an applied call ends ------------------------------------------------------------------------------------------


async def fails(args, context):
    raise ValueError("broken")


async def hangs(args, context):
    await asyncio.Event().wait()


async def reports_failure(args, context):
    return ToolResult.fail("OutOfPaper", "fill it", state={"tray": 2})


@pytest.mark.parametrize(
    ("execute", "timeout", "error"),
    [(fails, None, "ToolRaised"), (hangs, 0.02, "TimedOut"), (reports_failure, None, "OutOfPaper")],
)
async def test_an_applied_call_that_fails_is_failed_and_not_applied_again(store, log, execute, timeout, error):
    async with hosted(store, pack("p", acting(log, execute=execute, timeout=timeout))) as host:
        details = await proposed(host)
        result = await host.approvals.approve(details["token"])

        assert kind(result) == error
        assert await state(host, details) == "failed"
        assert await host.approvals.result(details["proposal_id"]) == result
        await not_applied(host, details, "failed")


async def test_a_result_can_be_fetched_as_it_was_after_a_restart(tmp_path, log):
    store = tmp_path / "agentos.db"
    own = ToolResult.ok({"a": [1, 2.5, None, "ä\0😀"]}, content="did it", state={"shown": True}, stop=True)
    async with hosted(store, pack("p", acting(log, result=own))) as host:
        details = await proposed(host)
        assert await host.approvals.result(details["proposal_id"]) is None
        result = await host.approvals.approve(details["token"])
    async with hosted(store) as host:
        assert await host.approvals.result(details["proposal_id"]) == result

    assert (result.output, result.state, result.stop) == (own.output, own.state, True)


async def test_a_proposal_survives_a_restart(tmp_path, log, clock):
    store = tmp_path / "agentos.db"
    async with hosted(store, pack("p", acting(log)), clock=clock) as host:
        details = await proposed(host, "act", {"path": "/x"}, ANN, session={"id": "s"})
    async with hosted(store, pack("p", acting(log)), clock=clock) as host:
        assert [one.id for one in await host.approvals.pending(ANN)] == [details["proposal_id"]]
        assert kind(await host.approvals.approve(details["token"], by=ANN)) == "ok"


async def test_an_applied_call_can_be_cancelled_by_its_proposals_id(log):
    started = asyncio.Event()

    async def waits(args, context):
        started.set()
        await asyncio.Event().wait()

    async with hosted(None, pack("p", acting(log, execute=waits))) as host:
        details = await proposed(host)
        task = asyncio.ensure_future(host.approvals.approve(details["token"]))
        await started.wait()

        assert await host.tools.cancel(details["proposal_id"])
        assert kind(await task) == "Cancelled"
        assert await state(host, details) == "failed"


def snapshot(store, folder):
    """Copy a store that is in use, with its key: what another host finds when the first one died in this moment."""
    folder.mkdir()
    shutil.copy(f"{store}.key", folder / "agentos.db.key")
    target = folder / "agentos.db"
    with contextlib.closing(sqlite3.connect(store)) as source, contextlib.closing(sqlite3.connect(target)) as copied:
        source.backup(copied)
    return target


def manifest_of(one):
    """Return a manifest whose one entry makes a pack, always by the same factory."""
    return [lambda: one]


async def cut_off(tmp_path, **fields):
    """Return the store of a host that died while it applied its one proposal, and the proposal's details."""
    started, opened = asyncio.Event(), asyncio.Event()

    async def waits(args, context):
        started.set()
        await opened.wait()

    store = tmp_path / "agentos.db"
    async with hosted(store, extension_manifest=manifest_of(pack("p", acting([], execute=waits, **fields)))) as host:
        details = await proposed(host, principal=ANN)
        task = asyncio.ensure_future(host.approvals.approve(details["token"]))
        await started.wait()
        left = snapshot(store, tmp_path / "left")
        opened.set()
        await task
    return left, details


async def test_what_was_being_applied_when_the_host_died_is_unknown_and_never_runs_again(tmp_path, log):
    store, details = await cut_off(tmp_path)
    for _ in range(2):
        async with hosted(store, extension_manifest=manifest_of(pack("p", acting(log)))) as host:
            assert await state(host, details) == "unknown"
            await not_applied(host, details, "unknown")
            assert await host.approvals.result(details["proposal_id"]) is None
            assert [one.data["proposal"] for one in await events(host, "proposal:unknown")] == [details["proposal_id"]]
    assert log == []


async def test_what_was_cut_off_runs_again_once_if_its_tool_is_idempotent(tmp_path, log):
    store, details = await cut_off(tmp_path, idempotent=True)
    manifest = manifest_of(pack("p", acting(log, idempotent=True)))
    async with hosted(store, extension_manifest=manifest) as host:
        assert kind(await host.approvals.result(details["proposal_id"])) == "ok"
        assert await state(host, details) == "applied"
    async with hosted(store, extension_manifest=manifest) as host:
        await not_applied(host, details, "applied")
    assert len(log) == 1


async def test_what_was_cut_off_does_not_run_again_with_another_definition(tmp_path, log):
    store, details = await cut_off(tmp_path, idempotent=True)
    changed = pack("p", acting(log, idempotent=True, description="Do worse."))
    async with hosted(store, extension_manifest=manifest_of(changed), pins="off") as host:
        assert await host.approvals.result(details["proposal_id"]) is None
        assert await state(host, details) == "unknown"
    assert log == []


async def test_what_was_made_to_look_cut_off_does_not_run_again(tmp_path, log):
    """Who can write to the database can't have an idempotent tool run by it."""
    store = tmp_path / "agentos.db"
    manifest = [lambda: pack("p", acting(log, idempotent=True))]
    async with hosted(store, extension_manifest=manifest) as host:
        details = await proposed(host, principal=ANN)
    for _ in range(3):
        with contextlib.closing(sqlite3.connect(store)) as database, database:
            database.execute("UPDATE proposals SET state = 'applying', owner = ?, decided_by = 'ann'", ("0" * 32,))
        async with hosted(store, extension_manifest=manifest) as host:
            assert kind(await host.approvals.result(details["proposal_id"])) == "ProposalInvalid"
            assert kind(await host.approvals.approve(details["token"])) == "ProposalInvalid"
    assert log == []


# -- hitl-handlers -----------------------------------------------------------------------------------------------------


async def test_a_handler_is_told_without_the_token(log):
    told = []
    async with hosted(None, pack("p", acting(log)), pack("h", told_by(told, lambda one: None))) as host:
        details = await proposed(host)

    assert [one.id for one in told] == [details["proposal_id"]]
    assert told[0].token is None
    assert log == []


async def test_a_handlers_approval_gives_the_call_its_result(store, log):
    async with hosted(store, pack("p", acting(log)), pack("h", told_by([], lambda one: Answer.approve()))) as host:
        result = await call(host, id="c1")

    assert (kind(result), result.output, result.call_id) == ("ok", "done", "c1")
    assert len(log) == 1


async def test_a_handlers_rejection_is_a_refusal_with_the_reason(log):
    handler = told_by([], lambda one: Answer.reject("too late in the day"))
    async with hosted(None, pack("p", acting(log)), pack("h", handler)) as host:
        result = await call(host)

        assert (kind(result), "too late in the day" in result.content) == ("Refused", True)
        assert await host.approvals.pending() == []
    assert log == []


async def test_a_handlers_edit_runs_with_the_other_arguments(log):
    handler = told_by([], lambda one: Answer.edit({"path": "/safe"}))
    async with hosted(None, pack("p", acting(log)), pack("h", handler)) as host:
        assert kind(await call(host, "act", {"path": "/x"})) == "ok"

    assert log == [("act", {"path": "/safe", "count": 1})]


@pytest.mark.parametrize(
    "answer",
    [
        *(True, "approve", 1, {"decision": "approve"}),
        *(pytest.param(Answer(decision, "no")) for decision in ("deny", "Reject", "no", "", None, False)),
    ],
    ids=lambda answer: str(getattr(answer, "decision", answer)),
)
async def test_an_answer_that_is_none_approves_nothing(log, answer):
    async with hosted(None, pack("p", acting(log)), pack("h", told_by([], lambda one: answer))) as host:
        result = await call(host)

    assert not result.success
    assert log == []


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        pytest.param(SystemExit(1)),
        pytest.param(asyncio.CancelledError()),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_handler_that_raises_has_not_answered_and_the_next_is_asked(log, error):
    def raises(proposal):
        raise error

    handlers = (
        pack("h", Descriptor("hitl-handler", "one", raises)),
        pack("i", Descriptor("hitl-handler", "two", lambda proposal: Answer.approve())),
    )
    async with hosted(None, pack("p", acting(log)), *handlers) as host:
        assert kind(await call(host)) == "ok"


async def test_a_handler_that_never_answers_leaves_the_proposal_waiting_no_longer_than_it_lasts(log):
    handler = Descriptor("hitl-handler", "one", lambda proposal: asyncio.Event().wait())
    async with hosted(None, pack("p", acting(log)), pack("h", handler), proposal_ttl=0.05) as host:
        async with asyncio.timeout(5):
            result = await call(host)

    assert kind(result) == "ApprovalRequired"
    assert log == []


async def test_a_call_that_waits_for_a_handler_can_be_cancelled_by_its_id(log):
    asked = asyncio.Event()

    async def ponders(proposal):
        asked.set()
        await asyncio.Event().wait()

    handler = Descriptor("hitl-handler", "one", ponders)
    async with hosted(None, pack("p", acting(log)), pack("h", handler), proposal_ttl=60) as host:
        task = asyncio.ensure_future(call(host, id="c1"))
        await asked.wait()

        assert await host.tools.cancel("c1")
        assert kind(await task) == "Cancelled"


async def test_a_call_that_was_cancelled_while_a_handler_thought_can_not_be_approved_any_more(store, log):
    told, asked = [], asyncio.Event()

    async def ponders(proposal):
        told.append(proposal.id)
        asked.set()
        await asyncio.Event().wait()

    async with hosted(store, pack("p", acting(log)), pack("h", Descriptor("hitl-handler", "one", ponders))) as host:
        task = asyncio.ensure_future(call(host, id="c1"))
        await asked.wait()
        await host.tools.cancel("c1")
        assert kind(await task) == "Cancelled"

        assert kind(await host.approvals.approve(told[0])) == "ProposalInvalid"
    assert log == []


async def test_a_call_that_was_cancelled_while_a_handler_thought_is_recorded_to_end(store, log):
    asked = asyncio.Event()

    async def ponders(proposal):
        asked.set()
        await asyncio.Event().wait()

    async with hosted(store, pack("p", acting(log)), pack("h", Descriptor("hitl-handler", "one", ponders))) as host:
        task = asyncio.ensure_future(call(host, id="c1"))
        await asked.wait()
        await host.tools.cancel("c1")
        await task
        ends = [one for one in await host.audit.records() if one.data.get("error") == "Cancelled"]

    assert len(ends) == 1


async def test_a_handlers_edit_does_not_run_a_definition_that_nobody_was_asked_about(store, log):
    """Between the question and the answer the tool was replaced: an edit must not carry the yes over to the new one."""
    async with hosted(store) as host:
        service = host.tools_service()

        async def on_proposal(proposal):
            await service.register_tool(acting(log, effect="destructive", description="Wipe it all."))
            return Answer.edit({"path": "/y"})

        await loaded(host, pack("h", Descriptor("hitl-handler", "person", on_proposal)))
        await service.register_tool(acting(log))
        result = await call(host)

    assert not result.success
    assert log == []


async def test_a_handlers_approval_does_not_run_a_definition_that_nobody_was_asked_about(log):
    async with hosted(None) as host:
        service = host.tools_service()

        async def on_proposal(proposal):
            await service.register_tool(acting(log, effect="destructive", description="Wipe it all."))
            return Answer.approve()

        await loaded(host, pack("h", Descriptor("hitl-handler", "person", on_proposal)))
        await service.register_tool(acting(log))
        result = await call(host)

    assert kind(result) == "ProposalInvalid"
    assert log == []


@pytest.mark.parametrize("arguments", [5, "x", [1], object()])
async def test_a_handlers_edit_with_no_arguments_at_all_ends_in_a_result(log, arguments):
    handler = told_by([], lambda one: Answer.edit(arguments))
    async with hosted(None, pack("p", acting(log)), pack("h", handler)) as host:
        result = await call(host)

    assert not result.success
    assert log == []


async def test_a_handler_that_approves_twice_runs_once(log):
    async with hosted(None, pack("p", acting(log))) as host:

        async def on_proposal(proposal):
            await host.approvals.approve(proposal.id)
            return Answer.approve()

        await loaded(host, pack("h", Descriptor("hitl-handler", "person", on_proposal)))
        await call(host)

    assert len(log) == 1


async def test_a_call_that_a_handler_approved_can_be_cancelled_by_its_id_while_it_runs(store, log):
    started = asyncio.Event()

    async def waits(args, context):
        started.set()
        await asyncio.Event().wait()

    told = []
    packs = (pack("p", acting(log, execute=waits)), pack("h", told_by(told, lambda one: Answer.approve())))
    async with hosted(store, *packs) as host:
        task = asyncio.ensure_future(call(host, id="c1"))
        await started.wait()

        assert await host.tools.cancel("c1")
        assert kind(await task) == "Cancelled"
        assert (await host.approvals.describe(told[0].id)).state == "failed"


async def test_a_handler_may_not_answer_in_the_name_of_somebody_else(log):
    handler = told_by([], lambda one: Answer.approve(by=BOB))
    async with hosted(None, pack("p", acting(log)), pack("h", handler)) as host:
        result = await call(host, principal=ANN)

    assert kind(result) == "ApprovalRequired"
    assert log == []


async def test_a_handler_is_not_asked_where_nobody_is_to_be_asked(log):
    handler = told_by(log, lambda one: Answer.approve())
    async with hosted(None, pack("p", acting(log)), pack("h", handler), mode="unattended") as host:
        assert kind(await call(host)) == "Refused"

    assert log == []


async def test_a_handler_that_is_not_in_force_is_not_asked(log):
    handler = told_by(log, lambda one: Answer.approve())
    async with hosted(None, pack("p", acting(log)), pack("h", handler)) as host:
        await host.extensions.disable("h")

        assert kind(await call(host)) == "ApprovalRequired"
    assert log == []


def meddling(seen):
    """Return a listener that changes what proposals hold, when everything was checked and the tool is about to run."""

    def listener(event):
        if event.type == "tool:started":
            for proposal in seen:
                proposal.arguments["path"] = "/etc/passwd"
                proposal.arguments["items"][1] = "b"

    return listener


ARGUMENTS = [
    pytest.param({"items": ["x", "a"]}, id="plain"),
    pytest.param({"items": [SECRET, "a"]}, id="secret"),
]


@pytest.mark.parametrize("arguments", ARGUMENTS)
async def test_a_handler_can_not_change_the_arguments_of_what_it_approves(store, log, arguments):
    """A handler keeps the proposal and changes what it holds, while the approval is on its way."""
    told = []
    packs = (with_secret(acting(log)), pack("h", told_by(told, lambda one: Answer.approve())))
    async with hosted(store, *packs, extension_secrets={"api.key": SECRET}) as host:
        host.extensions.on(meddling(told))
        await call(host, "act", arguments)

    assert [(args["path"], args["items"][1]) for _, args in log] == [("/tmp/a", "a")]


@pytest.mark.parametrize("arguments", ARGUMENTS)
async def test_whoever_looked_at_a_proposal_can_not_change_the_arguments_that_run(log, arguments):
    async with hosted(None, with_secret(acting(log)), extension_secrets={"api.key": SECRET}) as host:
        details = await proposed(host, "act", arguments)
        described = await host.approvals.describe(details["proposal_id"])
        host.extensions.on(meddling([described, *await host.approvals.pending()]))
        await host.approvals.approve(details["token"])

    assert [(args["path"], args["items"][1]) for _, args in log] == [("/tmp/a", "a")]


async def test_an_approval_is_told_before_the_call_returns(log):
    recorder = Recorder()
    async with hosted(None, pack("p", acting(log))) as host:
        host.extensions.on(recorder)
        details = await proposed(host)
        told = recorder.of("tool:approval")

    assert [one.proposal for one in told] == [details["proposal_id"]]


# -- tokens ------------------------------------------------------------------------------------------------------------


async def test_a_token_is_in_no_log_event_content_or_file(tmp_path, log, caplog):
    caplog.set_level(logging.DEBUG)
    recorder = Recorder()
    folder = tmp_path / "store"
    folder.mkdir()
    async with hosted(folder / "agentos.db", pack("p", acting(log)), audit_arguments=True) as host:
        host.extensions.on(recorder)
        result = await call(host)
        token = result.error.details["token"]
        edited = await host.approvals.edit(result.error.details["proposal_id"], {"path": "/y"})
        described = await host.approvals.describe(edited.id)
        applied = await host.approvals.approve(edited.token)
        records = [str(record) for record in await host.audit.records()]

    told = [result.content, repr(edited), repr(described), repr(applied), applied.content, caplog.text]
    for one in (token, edited.token):
        assert not any(one in text for text in [*told, *records, *map(repr, recorder.events)])
        assert one.encode() not in stored_bytes(folder)


async def test_a_token_is_not_in_the_repr_of_the_result_that_tells_it(log):
    async with hosted(None, pack("p", acting(log))) as host:
        result = await call(host)

    assert result.error.details["token"] not in repr(result)


async def test_a_tool_whose_call_waits_is_not_given_the_token(store, log):
    """A token is for a person: a tool that had it could show it to the model, store it, or approve its own call."""
    details = []

    async def relays(args, context):
        result = await context.call("act", {})
        details.append(result.error.details)
        return {"first": result}

    async with hosted(store, pack("p", acting(log), acting(log, "relay", "read", execute=relays))) as host:
        await call(host, "relay")
        (waiting,) = await host.approvals.pending()

    assert (details[0]["proposal_id"], "token" in details[0]) == (waiting.id, False)


# -- secrets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [{"path": SECRET}, {"path": f"x {SECRET} y"}, {"items": ["a", SECRET]}, {"items": [SECRET.upper()]}]
)
async def test_a_secret_in_arguments_is_in_no_file_log_event_or_preview(tmp_path, log, caplog, arguments):
    caplog.set_level(logging.DEBUG)
    recorder = Recorder()
    folder = tmp_path / "store"
    folder.mkdir()
    options = {"extension_secrets": {"api.key": SECRET}, "audit_arguments": True}

    async def rehearse(args, context):
        return {"would": args}

    async with hosted(folder / "agentos.db", with_secret(acting(log, dry_run=rehearse)), **options) as host:
        host.extensions.on(recorder)
        first = await call(host, "act", arguments)
        details = first.error.details
        described = await host.approvals.describe(details["proposal_id"])
        result = await host.approvals.approve(details["token"])
        again = await proposed(host, "act", arguments)
        await host.approvals.reject(again["proposal_id"], f"because of {SECRET}")
        records = [str(dict(record.data)) for record in await host.audit.records()]

    assert kind(result) == "ok"
    assert log[0][1].items() >= arguments.items()
    told = [repr(first), repr(described), str(described.preview), repr(result), caplog.text, *records]
    assert not any(SECRET in text for text in [*told, *map(repr, recorder.events)])
    assert SECRET.encode() not in stored_bytes(folder)


async def test_arguments_with_a_secret_do_not_survive_a_restart_and_that_is_said(tmp_path, log):
    store = tmp_path / "agentos.db"
    options = {"extension_secrets": {"api.key": SECRET}}
    async with hosted(store, with_secret(acting(log)), **options) as host:
        details = await proposed(host, "act", {"path": SECRET})
    async with hosted(store, with_secret(acting(log)), **options) as host:
        await not_applied(host, details, "secret")
    assert log == []


async def test_a_secret_in_the_pattern_of_a_grant_is_in_no_file_and_no_words(tmp_path, log):
    folder = tmp_path / "store"
    folder.mkdir()
    options = {"extension_secrets": {"api.key": SECRET}}
    async with hosted(folder / "agentos.db", with_secret(acting(log)), **options) as host:
        with contextlib.suppress(GrantError):
            await host.grants.add("act", "always", arguments={"$.path": f"{SECRET}*"})
        shown = [str(one) for one in await host.grants.list()] + [str(one) for one in await host.audit.records()]

    assert not any(SECRET in text for text in shown)
    assert SECRET.encode() not in stored_bytes(folder)


async def test_a_secret_in_what_a_tool_returns_is_in_no_file(tmp_path, log):
    folder = tmp_path / "store"
    folder.mkdir()
    options = {"extension_secrets": {"api.key": SECRET}}
    one = acting(log, result={"key": SECRET, SECRET: "x"})
    async with hosted(folder / "agentos.db", with_secret(one), **options) as host:
        details = await proposed(host, idempotency_key="k")
        result = await host.approvals.approve(details["token"])

    assert kind(result) == "ok"
    assert SECRET not in repr(result)
    assert SECRET.encode() not in stored_bytes(folder)


async def test_a_secret_in_ids_that_a_caller_chooses_is_in_no_file(tmp_path, log):
    folder = tmp_path / "store"
    folder.mkdir()
    options = {"extension_secrets": {"api.key": SECRET}}
    async with hosted(folder / "agentos.db", with_secret(acting(log)), **options) as host:
        await call(host, SECRET)
        await call(host, "act", id=SECRET, idempotency_key=SECRET, session={"id": SECRET})
        await call(host, "act", f'{{"{SECRET}": 1}}')

    assert SECRET.encode() not in stored_bytes(folder)


# -- grants ------------------------------------------------------------------------------------------------------------


async def test_a_once_grant_lets_one_call_run_and_the_next_asks(store, log):
    async with hosted(store, pack("p", acting(log))) as host:
        await host.grants.add("act", "once")

        assert [kind(await call(host)) for _ in range(3)] == ["ok", "ApprovalRequired", "ApprovalRequired"]
        assert await host.grants.list() == []


async def test_a_once_grant_lets_one_of_fifty_calls_run(store, log):
    async with hosted(store, pack("p", acting(log))) as host:
        await host.grants.add("act", "once")
        results = await asyncio.gather(*(call(host) for _ in range(50)))

    assert sum(one.success for one in results) == 1
    assert {kind(one) for one in results} <= {"ok", "ApprovalRequired", "Refused"}
    assert len(log) == 1


async def test_a_once_grant_that_lost_the_race_is_asked_about(log):
    async with hosted(None, pack("p", acting(log))) as host:
        await host.grants.add("act", "once")
        results = await asyncio.gather(*(call(host) for _ in range(5)))

    assert sorted(kind(one) for one in results) == ["ApprovalRequired"] * 4 + ["ok"]


async def test_two_hosts_use_a_once_grant_once(tmp_path, log):
    store = tmp_path / "agentos.db"
    async with hosted(store, pack("p", acting(log))) as one, hosted(store, pack("p", acting(log))) as other:
        await one.grants.add("act", "once")
        await asyncio.gather(*(call(host) for host in [one, other] * 5))

    assert len(log) == 1


async def test_a_once_grant_is_not_used_up_by_a_call_that_can_not_run(log):
    async with hosted(None, pack("p", acting(log))) as host:
        await host.grants.add("act", "once")
        await call(host, "act", {"count": "x"})
        await call(host, "act", {"unknown": 1})

        assert kind(await call(host)) == "ok"


async def test_a_once_grant_is_not_used_up_by_a_call_over_its_budget(log):
    async with hosted(None, pack("p", acting(log)), budget=Budget(calls=1, window=3600)) as host:
        await host.grants.add("act", "once")
        assert kind(await call(host)) == "ok"
        await host.grants.add("act", "once")

        assert kind(await call(host)) == "BudgetExceeded"
        assert [one.decision for one in await host.grants.list()] == ["once"]


async def test_a_session_grant_counts_in_its_session_alone(store, log):
    async with hosted(store, pack("p", acting(log))) as host:
        await host.grants.add("act", "session", session={"id": "s", "more": object()})

        assert kind(await call(host, session={"id": "s"})) == "ok"
        for session in ({"id": "t"}, {}, None, {"id": None}, {"ID": "s"}, {"id": ""}, {"id": "S"}):
            assert kind(await call(host, session=session)) == "ApprovalRequired", session


@pytest.mark.parametrize(
    "session",
    [
        *(None, {}, {"id": None}, {"name": "s"}),
        *(pytest.param(one) for one in ("", {"id": ""}, {"id": "  "})),
    ],
    ids=str,
)
async def test_a_session_grant_needs_a_session_that_can_be_told_apart(log, session):
    async with hosted(None, pack("p", acting(log))) as host:
        with pytest.raises(GrantError, match="session"):
            await host.grants.add("act", "session", session=session)


async def test_a_grant_counts_for_its_principal_alone(log):
    async with hosted(None, pack("p", acting(log))) as host:
        await host.grants.add("act", "always", principal=ANN)

        assert kind(await call(host, principal=ANN)) == "ok"
        assert kind(await call(host, principal=BOB)) == "ApprovalRequired"
        assert kind(await call(host)) == "ApprovalRequired"


async def test_a_grant_counts_for_the_arguments_of_its_pattern_alone(log):
    async with hosted(None, pack("p", acting(log))) as host:
        await host.grants.add("act", "always", arguments={"$.path": "/tmp/*", "$.items[*]": "a*"})

        assert kind(await call(host, "act", {"path": "/tmp/x", "items": ["a", "ab"]})) == "ok"
        for arguments in (
            {"path": "/tmp/x"},
            {"path": "/tmp/x", "items": []},
            {"path": "/tmp/x", "items": ["a", "b"]},
            {"path": "/etc/x", "items": ["a"]},
            {"path": "/tmp/../etc/x", "items": ["a"]},
            {"path": "/tmp/\0/../x", "items": ["a"]},
        ):
            assert kind(await call(host, "act", arguments)) == "ApprovalRequired", arguments


async def test_a_denial_comes_before_what_allows(store, log):
    async with hosted(store, pack("p", acting(log)), mode="auto") as host:
        await host.grants.add("act", "always")
        denial = await host.grants.add("p:act", "never", principal=BOB)

        assert kind(await call(host, principal=BOB)) == "Refused"
        assert kind(await call(host, principal=ANN)) == "ok"
        await host.grants.revoke(denial.id)
        assert kind(await call(host, principal=BOB)) == "ok"


async def test_a_denial_by_pattern_fits_widely(log):
    async with hosted(None, pack("p", acting(log, effect="read"))) as host:
        await host.grants.add("act", "never", arguments={"$.items[*]": "x*"})

        assert kind(await call(host, "act", {"items": ["a", "xa"]})) == "Refused"
        assert kind(await call(host, "act", {"items": ["a"]})) == "ok"


async def test_a_denial_by_an_alias_may_come_before_its_tool(log):
    async with hosted(None) as host:
        await host.grants.add("do_it", "never")
        await loaded(host, pack("p", acting(log, effect="read", aliases=("do_it",))))
        result = await call(host, "do_it")

    assert kind(result) == "Refused"
    assert log == []


async def test_a_denial_by_a_name_counts_for_the_tool_that_has_this_name_later(log):
    async with hosted(None, pack("p", acting(log, effect="read", aliases=("send",)))) as host:
        await host.grants.add("send", "never")
        await loaded(host, pack("q", acting(log, "send", "read")))
        result = await call(host, "send")

    assert kind(result) == "Refused"
    assert log == []


async def test_a_denial_may_come_before_its_tool(log):
    async with hosted(None) as host:
        await host.grants.add("p:act", "never")
        await loaded(host, pack("p", acting(log, effect="read")))

        assert kind(await call(host)) == "Refused"


async def test_a_denial_of_a_read_counts_at_once(store, log):
    async with hosted(store, pack("p", acting(log, effect="read"))) as host:
        assert kind(await call(host)) == "ok"
        grant = await host.grants.add("act", "never")
        assert kind(await call(host)) == "Refused"
        await host.grants.revoke(grant.id)
        assert kind(await call(host)) == "ok"


async def test_a_revoked_grant_counts_no_more_and_can_be_revoked_once(store, log):
    async with hosted(store, pack("p", acting(log))) as host:
        grant = await host.grants.add("act", "always")

        assert [await host.grants.revoke(grant.id) for _ in range(2)] == [True, False]
        assert await host.grants.revoke("x") is False
        assert kind(await call(host)) == "ApprovalRequired"


async def test_grants_are_listed_for_a_principal_with_those_for_everybody(log):
    async with hosted(None, pack("p", acting(log))) as host:
        for who in (ANN, BOB, None):
            await host.grants.add("act", "always", principal=who)

        assert [one.principal for one in await host.grants.list(ANN)] == ["ann", None]
        assert len(await host.grants.list()) == 3


async def test_an_allowing_grant_does_not_follow_a_changed_definition(store, log):
    async with hosted(store) as host:
        service = host.tools_service()
        await service.register_tool(acting(log))
        await host.grants.add("act", "always")
        assert kind(await call(host)) == "ok"
        await service.register_tool(acting(log, description="Do worse."))

        assert kind(await call(host)) == "ApprovalRequired"


async def test_a_forbidding_grant_follows_a_changed_definition(log):
    async with hosted(None) as host:
        service = host.tools_service()
        await service.register_tool(acting(log, effect="read"))
        await host.grants.add("act", "never")
        await service.register_tool(acting(log, effect="read", description="Do worse."))

        assert kind(await call(host)) == "Refused"


async def test_an_allowing_grant_is_not_for_the_tool_of_another_pack(log):
    async with hosted(None, pack("p", acting(log))) as host:
        await host.grants.add("act", "always")
        await loaded(host, pack("q", acting(log)))

        assert kind(await call(host)) == "ApprovalRequired"


async def test_grants_survive_a_restart(tmp_path, log):
    store = tmp_path / "agentos.db"
    async with hosted(store, pack("p", acting(log), acting(log, "other", "read"))) as host:
        await host.grants.add("act", "always", principal=ANN, arguments={"$.path": "/tmp/*"})
        await host.grants.add("other", "never")
    async with hosted(store, pack("p", acting(log), acting(log, "other", "read"))) as host:
        assert kind(await call(host, principal=ANN)) == "ok"
        assert kind(await call(host, "act", {"path": "/x"}, ANN)) == "ApprovalRequired"
        assert kind(await call(host, "other")) == "Refused"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("decision", "always"),
        ("principal", None),
        ("arguments", None),
        ("session_id", None),
        ("tool", "p:other"),
    ],
)
async def test_a_grant_that_somebody_widened_counts_no_more(tmp_path, log, column, value):
    store = tmp_path / "agentos.db"
    async with hosted(store, pack("p", acting(log), acting(log, "other"))) as host:
        await host.grants.add("act", "once", principal=ANN, arguments={"$.path": "/x"}, session="s")
        with contextlib.closing(sqlite3.connect(store)) as database, database:
            database.execute(f"UPDATE grants SET {column} = ?", (value,))
        for name in ("act", "other"):
            assert kind(await call(host, name, {"path": "/x"}, ANN, session={"id": "s"})) == "ApprovalRequired"
    assert log == []


@pytest.mark.parametrize(
    "bad",
    [
        {"tool": "nothing_such"},
        {"tool": ""},
        {"decision": "sometimes"},
        {"decision": None},
        {"arguments": {"path": 5}},
        {"arguments": {"$[": "x"}},
        {"arguments": "x"},
    ],
    ids=str,
)
async def test_a_grant_that_makes_no_sense_is_refused(log, bad):
    given = {"tool": "act", "decision": "always", **bad}
    async with hosted(None, pack("p", acting(log))) as host:
        with pytest.raises(ValueError):
            await host.grants.add(given.pop("tool"), given.pop("decision"), **given)

        assert await host.grants.list() == []


@given(decisions=st.lists(st.sampled_from(["once", "session", "always"]), max_size=4), mode=st.sampled_from(["auto"]))
@settings(max_examples=examples(10))
async def test_no_heap_of_grants_makes_a_destructive_call_run(decisions, mode):
    log = []
    async with hosted(None, pack("p", acting(log, effect="destructive")), mode=mode) as host:
        for decision in decisions:
            await host.grants.add("act", decision, session="s", arguments={})
        result = await call(host, session={"id": "s"})

    assert kind(result) == "ApprovalRequired"
    assert log == []


# -- an approved wrapper -----------------------------------------------------------------------------------------------


async def test_one_approval_of_a_wrapper_covers_the_call_beneath_it(store, log):
    async def beneath(args, context):
        return await context.below(args)

    wrapper = Descriptor("tool", "act", acting(log, execute=beneath), wraps=True)
    async with hosted(store, pack("base", acting(log)), pack("top", wrapper)) as host:
        details = await proposed(host, "act", {"path": "/x"})
        assert kind(await host.approvals.approve(details["token"])) == "ok"

    assert log == [("act", {"path": "/x", "count": 1})]


async def test_an_approval_does_not_cover_what_the_tool_calls_otherwise(log):
    async def calls(args, context):
        return kind(await context.call("wipe", {}))

    tools = (acting(log, execute=calls), acting(log, "wipe", "destructive"))
    async with hosted(None, pack("p", *tools)) as host:
        details = await proposed(host)
        result = await host.approvals.approve(details["token"])

    assert result.output == "ApprovalRequired"
    assert log == []


async def test_a_wrapper_of_a_lesser_effect_is_shown_with_what_it_may_do(log):
    """A person who approves a mutating wrapper of a destructive tool has to be told that it may destroy."""

    async def beneath(args, context):
        return await context.below(args)

    wrapper = Descriptor("tool", "act", acting(log, execute=beneath), wraps=True)
    async with hosted(None, pack("base", acting(log, effect="destructive")), pack("top", wrapper)) as host:
        details = await proposed(host)
        described = await host.approvals.describe(details["proposal_id"])
        result = await host.approvals.approve(details["token"])

    assert described.effect == "destructive" or kind(result) == "ApprovalRequired"


# -- cancellation, wherever the caller waits ---------------------------------------------------------------------------


async def plainly(label):
    return label


async def wherever_cancelled(make, prepare=plainly):
    """Cancel what *make* returns at its first wait, its second, and so on; and after 0 to 60 turns of the loop.

    It is given what *prepare* made of the label of the try. Yields that too, when the try is over.
    """
    for later in (False, True):
        for turn in itertools.count(1):
            given = await prepare(f"wait {turn}{' later' if later else ''}")
            was_cancelled = await cancelled_at(turn, make(given), later=later)
            yield given
            if not was_cancelled:
                break
    for turns in range(0, 61, 12):
        given = await prepare(f"turn {turns}")
        await cancelled_after(turns, make(given))
        yield given


async def dawdling(args, context):
    context.session["log"].append(context.tool_call.id)
    for _ in range(3):
        await asyncio.sleep(0)
    return "done"


async def outcomes(host):
    """Return how often the audit log tells the end of each call."""
    counted = {}
    for record in await events(host, "call"):
        id = record.data.get("call_id")
        counted[id] = counted.get(id, 0) + 1
    return counted


@pytest.mark.parametrize("effect", ["read", "mutate"])
@pytest.mark.parametrize("intervention", [None, says_never])
async def test_a_call_that_began_is_recorded_to_end_once_wherever_it_is_cancelled(store, log, effect, intervention):
    one = acting(log, effect=effect, execute=dawdling, intervention=intervention)
    async with hosted(store, pack("p", one), mode="auto") as host:
        labels = [
            label
            async for label in wherever_cancelled(lambda label: call(host, id=label, session={"id": "s", "log": log}))
        ]
        counted = await outcomes(host)
        decided = {one.data["call_id"] for one in await events(host, "decision") if one.data["answer"] == "run"}

        assert (await host.audit.verify()).ok
    assert {counted.get(label, 0) for label in labels} <= {0, 1}
    assert {label for label in log if counted.get(label, 0) != 1} == set()
    assert {label for label in decided if counted.get(label, 0) != 1} == set()
    assert len(log) == len(set(log))


async def test_a_cancelled_call_is_recorded_even_if_it_was_not_decided_yet(store, log):
    """Every call ends in one result, and the audit log tells of it: also if nobody waits for the gate any more."""

    async def ponders(args, context):
        await asyncio.sleep(0)
        return "never"

    one = acting(log, execute=dawdling, intervention=ponders)
    async with hosted(store, pack("p", one), mode="auto") as host:
        labels = [
            label
            async for label in wherever_cancelled(lambda label: call(host, id=label, session={"id": "s", "log": log}))
            if label != "turn 0"  # the task did not even begin
        ]
        counted = await outcomes(host)

    assert {label: counted.get(label, 0) for label in labels} == dict.fromkeys(labels, 1)


async def test_listeners_hear_of_an_end_for_every_beginning(store, log):
    heard = []

    async def listener(event):
        if event.type in ("tool:started", "tool:finished"):
            heard.append((event.type, event.call_id))
            await asyncio.sleep(0)

    async with hosted(store, pack("p", acting(log, execute=dawdling)), mode="auto") as host:
        host.extensions.on(listener)
        async for _ in wherever_cancelled(lambda label: call(host, id=label, session={"id": "s", "log": log})):
            pass
        await host.extensions.events.deliver()

    begun = [id for type, id in heard if type == "tool:started"]
    ended = [id for type, id in heard if type == "tool:finished"]
    assert sorted(begun) == sorted(ended)
    assert set(log) <= set(ended)


async def test_an_approval_is_done_wholly_or_not_at_all_wherever_it_is_cancelled(store, log):
    async with hosted(store, pack("p", acting(log, execute=dawdling))) as host:

        async def propose(label):
            return (await proposed(host, session={"id": "s", "log": log}))["proposal_id"]

        tried = [id async for id in wherever_cancelled(host.approvals.approve, propose)]
        states = {id: (await host.approvals.describe(id)).state for id in tried}
        ends = [one.data["proposal"] for one in await events(host, "proposal:applied", "proposal:failed")]

        assert (await host.audit.verify()).ok
    assert set(states.values()) <= {"proposed", "applied", "failed"}
    assert sorted(ends) == sorted(id for id in tried if states[id] != "proposed")
    assert set(log) <= set(ends)
    assert len(log) == len(set(log))


async def test_a_call_that_a_handler_approves_is_done_wholly_or_not_at_all(store, log):
    told = {}

    async def approves(one):
        told[one.id] = one
        return Answer.approve()

    handler = Descriptor("hitl-handler", "person", approves)
    async with hosted(store, pack("p", acting(log, execute=dawdling)), pack("h", handler)) as host:
        async for _ in wherever_cancelled(lambda label: call(host, session={"id": "s", "log": log})):
            pass
        states = {id: (await host.approvals.describe(id)).state for id in told}
        ends = [one.data["proposal"] for one in await events(host, "proposal:applied", "proposal:failed")]

    assert set(states.values()) <= {"proposed", "applied", "failed"}
    assert sorted(ends) == sorted(id for id, one in states.items() if one != "proposed")
    assert set(log) <= set(ends)
    assert len(log) == len(set(log))


async def test_a_call_that_a_handler_approved_is_not_recorded_to_end_twice(store, log):
    packs = (pack("p", acting(log, execute=dawdling)), pack("h", told_by([], lambda one: Answer.approve())))
    async with hosted(store, *packs) as host:
        twice = []

        async def ends():
            return len(await events(host, "call", "proposal:applied", "proposal:failed"))

        before = 0
        async for label in wherever_cancelled(lambda label: call(host, session={"id": "s", "log": log})):
            after = await ends()
            if after - before > 1:
                twice.append(label)
            before = after

    assert twice == []


async def test_a_cancelled_question_leaves_a_whole_proposal_or_none(store, log):
    async with hosted(store, pack("p", acting(log))) as host:
        async for _ in wherever_cancelled(lambda label: call(host)):
            pass
        waiting = [one.id for one in await host.approvals.pending()]
        recorded = [one.data["proposal"] for one in await events(host, "proposal")]

        assert sorted(waiting) == sorted(recorded)
        assert {kind(await host.approvals.approve(id)) for id in waiting} == {"ok"}
    assert len(log) == len(waiting)


async def test_a_cancelled_edit_leaves_one_of_both_waiting(tmp_path, log):
    async with hosted(tmp_path / "agentos.db", pack("p", acting(log))) as host:

        async def propose(label):
            return (await proposed(host))["proposal_id"]

        tried = [id async for id in wherever_cancelled(lambda id: host.approvals.edit(id, {"path": "/y"}), propose)]

        assert len(await host.approvals.pending()) == len(tried)


async def test_a_cancelled_rejection_is_whole_or_has_not_happened(tmp_path, log):
    async with hosted(tmp_path / "agentos.db", pack("p", acting(log))) as host:

        async def propose(label):
            return (await proposed(host))["proposal_id"]

        tried = [id async for id in wherever_cancelled(lambda id: host.approvals.reject(id, "no"), propose)]
        rejected = [one.data["proposal"] for one in await events(host, "proposal:rejected")]

        assert sorted(rejected) == sorted(set(tried) - {one.id for one in await host.approvals.pending()})


@pytest.mark.parametrize(
    "durable",
    [True, pytest.param(False)],
)
async def test_a_cancelled_revocation_is_whole_or_has_not_happened(tmp_path, log, durable):
    """A grant that the store says is revoked must not allow anything, not even once more."""
    async with hosted(tmp_path / "agentos.db" if durable else None, pack("p", acting(log))) as host:
        wrong = []

        async def grant(label):
            return (await host.grants.add("act", "always")).id

        async for id in wherever_cancelled(host.grants.revoke, grant):
            allowed = kind(await call(host)) == "ok"
            if allowed != bool(await host.grants.list()):
                wrong.append(id)
            await host.grants.revoke(id)

    assert wrong == []


@pytest.mark.parametrize(
    "durable",
    [True, pytest.param(False)],
)
async def test_a_cancelled_denial_is_whole_or_has_not_happened(tmp_path, log, durable):
    async with hosted(tmp_path / "agentos.db" if durable else None, pack("p", acting(log, effect="mutate"))) as host:
        wrong = []
        async for label in wherever_cancelled(lambda label: host.grants.add("act", "never")):
            denied = kind(await call(host)) == "Refused"
            granted = await host.grants.list()
            if denied != bool(granted):
                wrong.append(label)
            for one in granted:
                await host.grants.revoke(one.id)

    assert wrong == []


async def test_a_once_grant_is_not_used_twice_wherever_a_call_is_cancelled(store, log):
    async with hosted(store, pack("p", acting(log, execute=dawdling))) as host:
        twice = []

        async def grant(label):
            await host.grants.add("act", "once")
            return label

        def use(label):
            return call(host, id=label, session={"id": "s", "log": log})

        async for label in wherever_cancelled(use, grant):
            while await host.grants.list():
                await use(label)
            if log.count(label) > 1:
                twice.append(label)

    assert twice == []
