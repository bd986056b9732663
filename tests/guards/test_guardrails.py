"""Guardrails are asked about every text, call and result, and without their answer nothing passes."""

import asyncio
import contextlib
import threading

import pytest
from kit import Recorder

from agentos import (
    PUBLIC,
    AgentOS,
    Descriptor,
    DescriptorError,
    ExtensionPack,
    GuardAction,
    GuardrailBlockedError,
    GuardVerdict,
    PackLoadError,
    Principal,
    ProposalError,
    RequiredGuardrailError,
    ToolCall,
    ToolContext,
    ToolResult,
    guardrail,
    tool,
)
from agentos.testing import call_tools

ANN = Principal("ann", access={"*"})
RAN = []


@tool(effect="read", required_access=PUBLIC)
async def read(text: str = "") -> dict:
    """Read."""
    RAN.append(("read", text))
    return {"text": text}


@tool(effect="mutate", required_access=PUBLIC)
async def write(text: str) -> str:
    """Write."""
    RAN.append(("write", text))
    return text


@tool(effect="read", required_access=PUBLIC)
async def failing() -> str:
    """Fail."""
    raise ValueError("secret inside")


@tool(effect="read", required_access=PUBLIC)
async def nesting(context: ToolContext, text: str) -> ToolResult:
    """Call another tool."""
    return await context.call("read", {"text": text})


@pytest.fixture(autouse=True)
def nothing_ran():
    RAN.clear()


def host_with(*descriptors, **fields):
    pack = ExtensionPack("guards", "1", [read, write, failing, nesting, *descriptors])
    return AgentOS(extension_manifest={"packs": [{"factory": lambda: pack}]}, **fields)


def finds(word, verdict, **fields):
    """Return a guardrail that has *verdict* for whatever has *word* in it."""

    async def found(subject, context):
        text = subject if isinstance(subject, str) else getattr(subject, "content", None) or str(subject.arguments)
        return verdict if word in text else None

    return guardrail(**fields)(found)


def named(id, payload, **fields):
    return Descriptor("guardrail", id, payload, **fields)


async def call(host, name="read", **arguments):
    return await host.tools.process_tool_call(ToolCall(name, arguments), ANN)


# -- what is said of texts ---------------------------------------------------------------------------------------------


async def test_without_guardrails_a_text_is_as_it_was():
    async with host_with() as host:
        outcome = await host.guardrails.check_input("hello")

    assert (outcome.action, outcome.value, outcome.verdicts) == (GuardAction.ALLOW, "hello", ())


async def test_the_decorated_function_is_a_descriptor_under_its_own_name():
    @guardrail(stage="input")
    async def polite(text, context):
        return None

    async with host_with(polite) as host:
        outcome = await host.guardrails.check_input("hello")

    (row,) = outcome.verdicts
    assert (row.id, row.pack, row.verdict.action) == ("polite", "guards", "allow")
    assert row.seconds >= 0


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        (("allow",), "allow"),
        (("allow", "flag"), "flag"),
        (("flag", "sanitize"), "sanitize"),
        (("sanitize", "block", "flag"), "block"),
    ],
)
async def test_the_worst_answer_wins(actions, expected):
    guards = [
        named(f"g{number}", finds("", GuardVerdict(action, "r", replacement="clean"), stage="output", sanitizes=True))
        for number, action in enumerate(actions)
    ]
    async with host_with(*guards) as host:
        outcome = await host.guardrails.check_output("dirty")

    assert outcome.action == expected
    assert outcome.value == {"allow": "dirty", "flag": "dirty", "sanitize": "clean", "block": ""}[expected]


async def test_sanitizers_see_what_the_one_before_made_and_the_others_see_the_end():
    seen = []

    def noting(id, replacement=None):
        async def note(text, context):
            seen.append((id, text))
            return None if replacement is None else GuardVerdict.sanitize(text + replacement, "r")

        return named(id, guardrail(stage="input", sanitizes=replacement is not None)(note))

    async with host_with(noting("last"), noting("first", "1"), noting("second", "2")) as host:
        outcome = await host.guardrails.check_input("x")

    assert seen == [("first", "x"), ("second", "x1"), ("last", "x12")]
    assert outcome.value == "x12"


async def test_they_are_asked_by_priority_and_then_in_the_order_of_registration():
    seen = []

    def noting(id, priority):
        async def note(text, context):
            seen.append(id)

        return named(id, guardrail(stage="input", sanitizes=True)(note), priority=priority)

    async with host_with(noting("a", 0), noting("b", 5), noting("c", 0), noting("d", 5)) as host:
        await host.guardrails.check_input("x")

    assert seen == ["b", "d", "a", "c"]


async def test_a_block_of_a_sanitizer_ends_it():
    asked = []

    @guardrail(stage="input")
    async def other(text, context):
        asked.append(text)

    async with host_with(named("s", finds("", GuardVerdict.block("no"), stage="input", sanitizes=True)), other) as host:
        outcome = await host.guardrails.check_input("x")

    assert asked == []
    assert [row.id for row in outcome.verdicts] == ["s"]


async def test_sanitize_by_one_that_did_not_say_so_counts_as_flag():
    async with host_with(named("s", finds("", GuardVerdict.sanitize("y", "r"), stage="input"))) as host:
        outcome = await host.guardrails.check_input("x")

    assert (outcome.action, outcome.value) == (GuardAction.FLAG, "x")


async def test_those_that_do_not_sanitize_are_asked_side_by_side():
    meeting = asyncio.Barrier(3)

    def meeting_guard(id):
        async def meet(text, context):
            await meeting.wait()

        return named(id, guardrail(stage="input")(meet))

    async with host_with(*map(meeting_guard, "abc")) as host:
        outcome = await host.guardrails.check_input("x")

    assert outcome.action == GuardAction.ALLOW


async def test_a_sync_guardrail_runs_in_a_thread():
    threads = []

    @guardrail(stage="input")
    def sync(text, context):
        threads.append(threading.current_thread())

    async with host_with(sync) as host:
        await host.guardrails.check_input("x")

    assert threads != [threading.main_thread()]


class Everything:
    """An object that is asked at every stage."""

    tools = "guards:read"

    def __init__(self):
        self.seen = []

    async def evaluate_input(self, text, context):
        self.seen.append((context.stage, text, context.call, context.preceding, context.is_final))

    async def evaluate_output(self, text, context):
        self.seen.append((context.stage, text, context.call, context.preceding, context.is_final))

    async def evaluate_tool_call(self, call, context):
        self.seen.append((context.stage, call.tool, call.name, call.arguments, call.effect, context.call is call))

    def evaluate_tool_result(self, result, context):
        self.seen.append((context.stage, result.content, context.call.name))


async def test_an_object_is_asked_at_the_stages_that_it_has_methods_for():
    everything = Everything()
    async with host_with(named("all", everything)) as host:
        await host.guardrails.check_input("in")
        await host.guardrails.check_output("out")
        await call(host, text="x")
        await call(host, "failing")

    assert everything.seen == [
        ("input", "in", None, "", True),
        ("output", "out", None, "", True),
        ("tool_call", "guards:read", "read", {"text": "x"}, "read", True),
        ("tool_result", '{"text": "x"}', "read"),
    ]


async def test_the_context_has_what_the_pack_may_use():
    seen = []

    @guardrail(stage="input")
    async def look(text, context):
        seen.append((context.principal, dict(context.session), dict(context.options), context.secret("key")))
        context.logger.info("asked")
        assert context.services.has("nothing") is False

    pack = ExtensionPack("p", "1", [named("look", look, required_secrets=["key"])])
    manifest = {"packs": [{"factory": lambda: pack, "options": {"level": 3}}]}
    async with AgentOS(extension_manifest=manifest, extension_secrets={"key": "value-1"}) as host:
        await host.guardrails.check_input("x", ANN, {"id": "s"})

    assert seen == [(ANN, {"id": "s"}, {"level": 3}, "value-1")]


# -- without an answer -------------------------------------------------------------------------------------------------


async def raises(subject, context):
    raise ValueError("the text itself")


async def leaves(subject, context):
    raise SystemExit(3)


async def cancels(subject, context):
    raise asyncio.CancelledError


async def hangs(subject, context):
    await asyncio.Event().wait()


async def babbles(subject, context):
    return "yes"


async def replaces_by_garbage(subject, context):
    return GuardVerdict.sanitize(object(), "r")


def sync_raises(subject, context):
    raise KeyboardInterrupt


FAULTS = [raises, leaves, cancels, hangs, babbles, replaces_by_garbage, sync_raises]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("stage", ["input", "output", "tool_call", "tool_result"])
@pytest.mark.parametrize("on_failure", ["block", "allow"])
async def test_a_guardrail_that_fails_blocks_or_flags(fault, stage, on_failure):
    async def faulty(subject, context):
        return await fault(subject, context)

    guard = fault if fault is sync_raises else faulty
    guard = guardrail(stage=stage, timeout=0.05, sanitizes=True, on_failure=on_failure)(guard)
    async with host_with(named("faulty", guard)) as host:
        heard = Recorder()
        host.extensions.on(heard)
        if stage in ("input", "output"):
            outcome = await getattr(host.guardrails, f"check_{stage}")("x")
            blocked, (row,) = outcome.action == GuardAction.BLOCK, outcome.verdicts
            assert row.verdict.code == "GuardFailed"
            assert "the text itself" not in row.verdict.reason
        else:
            result = await call(host, text="x")
            blocked = result.error is not None and result.error.type == "GuardrailBlocked"
            assert not blocked or result.error.details["code"] == "GuardFailed"
        (event,) = [one for one in heard.events if one.type.startswith("guardrail:")]
        (record,) = [one.data for one in await host.audit.records() if one.event == "guardrail"]

    assert blocked == (on_failure == "block")
    assert event.type == ("guardrail:blocked" if blocked else "guardrail:flagged")
    assert (event.code, event.stage, event.guard) == ("GuardFailed", stage, "faulty")
    assert (record["answer"], record["code"], record["stage"]) == ("block" if blocked else "flag", "GuardFailed", stage)


async def test_one_that_does_not_end_when_it_is_cancelled_is_left_behind():
    released = asyncio.Event()

    @guardrail(stage="input", timeout=0.02)
    async def clings(text, context):
        while not released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await released.wait()

    async with host_with(clings) as host:
        outcome = await host.guardrails.check_input("x")
        released.set()

    assert outcome.action == GuardAction.BLOCK


async def test_the_guardrails_of_a_stage_share_one_time_limit():
    """Each of many that hang would wait for as long as the stage has; together they wait once."""
    guards = [
        named(f"g{number}", guardrail(stage="input", sanitizes=True, timeout=0.2, on_failure="allow")(hangs_anew()))
        for number in range(40)
    ]
    async with host_with(*guards) as host:
        async with asyncio.timeout(4):  # one after another they would take 8 s
            outcome = await host.guardrails.check_input("x")

    assert {row.verdict.code for row in outcome.verdicts} == {"GuardFailed"}
    assert len(outcome.verdicts) == 40


def hangs_anew():
    async def hang(subject, context):
        await asyncio.Event().wait()

    return hang


async def test_a_cancelled_caller_is_cancelled():
    began = asyncio.Event()

    @guardrail(stage="input")
    async def waits(text, context):
        began.set()
        await asyncio.Event().wait()

    async with host_with(waits) as host:
        task = asyncio.create_task(host.guardrails.check_input("x"))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


# -- calls -------------------------------------------------------------------------------------------------------------


def no_bad(**fields):
    return named("no_bad", finds("bad", GuardVerdict.block("nothing bad", "BAD"), stage="tool_call", **fields))


async def test_a_blocked_call_does_not_run_and_says_why():
    async with host_with(no_bad()) as host:
        result = await call(host, text="bad thing")

    assert RAN == []
    assert result.error.type == "GuardrailBlocked"
    assert dict(result.error.details) == {
        "guard": "no_bad",
        "code": "BAD",
        "reason": "nothing bad",
        "stage": "tool_call",
    }
    assert "nothing bad" in result.content
    assert "bad thing" not in result.content


async def test_a_nested_call_is_guarded_alike():
    async with host_with(no_bad(tools="read")) as host:
        result = await call(host, "nesting", text="bad")

    assert RAN == []
    assert result.error.type == "GuardrailBlocked"


@pytest.mark.parametrize(
    ("pattern", "is_asked"), [("*", True), ("read", True), ("guards:*", True), (["x", "re*"], True), ("other:*", False)]
)
async def test_it_is_asked_about_the_tools_that_it_names(pattern, is_asked):
    async with host_with(no_bad(tools=pattern)) as host:
        result = await call(host, text="bad")

    assert result.success is not is_asked


async def test_changing_the_arguments_changes_nothing():
    @guardrail(stage="tool_call")
    async def changes(call, context):
        call.arguments["text"] = "changed"
        call.arguments.clear()

    async with host_with(changes) as host:
        await call(host, text="x")

    assert RAN == [("read", "x")]


def replacing(arguments):
    async def replace(call, context):
        return None if call.arguments == arguments else GuardVerdict.sanitize(arguments, "replaced")

    return named("replace", guardrail(stage="tool_call", sanitizes=True)(replace))


async def test_replaced_arguments_run_and_are_what_a_person_is_asked_about():
    async with host_with(replacing({"text": "clean"})) as host:
        await call(host, text="dirty")
        asked = await call(host, "write", text="dirty")
        (proposal,) = await host.approvals.pending()
        result = await host.approvals.approve(asked.error.details["token"])

    assert proposal.arguments == {"text": "clean"}
    assert result.success
    assert RAN == [("read", "clean"), ("write", "clean")]


async def test_replaced_arguments_are_validated_again():
    async with host_with(replacing({"text": 5})) as host:
        result = await call(host, text="x")

    assert (result.error.type, result.error.details["code"]) == ("GuardrailBlocked", "GuardFailed")
    assert RAN == []


async def test_flags_stand_in_the_proposal():
    flag = named("taint", finds("x", GuardVerdict.flag("from a web page", "TAINT"), stage="tool_call"))
    async with host_with(flag) as host:
        await call(host, "write", text="x")
        (proposal,) = await host.approvals.pending()
        described = await host.approvals.describe(proposal.id)

    expected = {"guard": "taint", "code": "TAINT", "reason": "from a web page", "stage": "tool_call"}
    assert list(map(dict, proposal.flags)) == [expected]
    assert list(map(dict, described.flags)) == [expected]


async def test_flags_last_in_a_store(tmp_path):
    flag = named("taint", finds("x", GuardVerdict.flag("from a web page", "TAINT"), stage="tool_call"))
    async with host_with(flag, store=tmp_path / "s.db") as host:
        await call(host, "write", text="x")
    async with host_with(flag, store=tmp_path / "s.db") as host:
        (proposal,) = await host.approvals.pending()

    assert [one["code"] for one in proposal.flags] == ["TAINT"]


class Switch:
    """A guardrail on calls whose answer a test sets."""

    sanitizes = True

    def __init__(self):
        self.answer = None

    async def evaluate_tool_call(self, call, context):
        return self.answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (GuardVerdict.block("not any more", "LATE"), "GuardrailBlocked"),
        (GuardVerdict.sanitize({"text": "other"}, "changed"), "ProposalInvalid"),
        (GuardVerdict.sanitize({"text": "x"}, "the same"), None),
        (GuardVerdict.flag("strange"), None),
    ],
)
async def test_guardrails_are_asked_again_when_a_proposal_is_applied(answer, expected):
    switch = Switch()
    async with host_with(named("switch", switch)) as host:
        asked = await call(host, "write", text="x")
        switch.answer = answer
        result = await host.approvals.approve(asked.error.details["token"])

    assert (None if result.error is None else result.error.type) == expected
    assert len(RAN) == (expected is None)


async def test_an_edited_proposal_is_guarded_alike():
    async with host_with(no_bad()) as host:
        await call(host, "write", text="x")
        (proposal,) = await host.approvals.pending()
        with pytest.raises(ProposalError, match="nothing bad"):
            await host.approvals.edit(proposal.id, {"text": "bad"})


async def test_a_dry_run_is_guarded_alike():
    dry = []

    async def rehearse(arguments, context):
        dry.append(arguments)
        return "would"

    @tool(effect="mutate", required_access=PUBLIC, dry_run=rehearse)
    async def act(text: str) -> str:
        """Act."""
        return text

    async with host_with(act, no_bad()) as host:
        blocked = await host.tools.preview(ToolCall("act", {"text": "bad"}))
        shown = await host.tools.preview(ToolCall("act", {"text": "good"}))

    assert blocked.error.type == "GuardrailBlocked"
    assert shown.content == "would"
    assert len(dry) == 1


# -- results -----------------------------------------------------------------------------------------------------------


async def test_a_blocked_result_says_that_the_tool_did_run_and_nothing_else_of_it():
    guard = named("hide", finds("secret", GuardVerdict.block("it has a secret", "S"), stage="tool_result"))
    async with host_with(guard) as host:
        result = await call(host, text="secret 42")

    assert RAN == [("read", "secret 42")]
    assert result.error.type == "GuardrailBlocked"
    assert result.error.details["stage"] == "tool_result"
    assert "did run" in result.content
    assert "42" not in repr(result)


async def test_guardrails_see_the_errors_of_tools():
    guard = named("hide", finds("secret", GuardVerdict.block("it has a secret"), stage="tool_result"))
    async with host_with(guard) as host:
        result = await call(host, "failing")

    assert result.error.type == "GuardrailBlocked"
    assert "inside" not in repr(result)


async def test_a_text_leaves_nothing_of_the_old_result():
    guard = named("cut", finds("x", GuardVerdict.sanitize("[cut]", "r"), stage="tool_result", sanitizes=True))
    async with host_with(guard) as host:
        result = await call(host, text="x")

    assert (result.success, result.content, result.output, result.state) == (True, "[cut]", None, None)


async def test_a_text_in_the_place_of_an_error_leaves_nothing_of_its_message():
    guard = named("cut", finds("secret", GuardVerdict.sanitize("[cut]", "r"), stage="tool_result", sanitizes=True))
    async with host_with(guard) as host:
        result = await call(host, "failing")

    assert not result.success
    assert "secret" not in repr(result)


async def test_an_empty_text_says_that_the_result_was_removed():
    guard = named("cut", finds("x", GuardVerdict.sanitize("", "r"), stage="tool_result", sanitizes=True))
    async with host_with(guard) as host:
        result = await call(host, text="x")

    assert "removed" in result.content


async def test_a_result_takes_the_place_of_another():
    other = ToolResult.ok({"text": "other"}, state={"s": 1})
    guard = named("swap", finds("x", GuardVerdict.sanitize(other, "r"), stage="tool_result", sanitizes=True))
    async with host_with(guard) as host:
        result = await call(host, text="x")

    assert (result.output, result.state) == ({"text": "other"}, {"s": 1})


async def test_a_guardrail_that_changes_the_result_in_place_changes_nothing():
    @guardrail(stage="tool_result")
    async def changes(result, context):
        result.output["text"] = "changed"

    async with host_with(changes) as host:
        result = await call(host, text="x")

    assert result.output == {"text": "x"}


@tool(effect="read", required_access=PUBLIC)
async def telling(context: ToolContext, text: str) -> str:
    """Tell a part of the result before the whole is there."""
    await context.send_content(f"part {text}")
    return f"whole {text}"


@pytest.mark.parametrize(("text", "expected"), [("fine", ["part fine"]), ("secret", [])])
async def test_content_waits_for_the_guardrails_of_the_result(text, expected):
    heard = Recorder()
    seen = []

    @guardrail(stage="tool_result")
    async def look(result, context):
        seen.append(list(heard.of("tool:content")))
        return GuardVerdict.block("no") if "secret" in result.content else None

    async with host_with(telling, look) as host:
        host.extensions.on(heard)
        await call(host, "telling", text=text)

    assert seen == [[]]
    assert [event.content for event in heard.of("tool:content")] == expected


# -- required ----------------------------------------------------------------------------------------------------------


@guardrail(stage="input")
async def pii(text, context):
    """Let everything pass."""


async def test_a_required_guardrail_that_is_missing_keeps_the_host_from_starting():
    with pytest.raises(RequiredGuardrailError, match="pii") as error:
        async with host_with(required_guardrails=("pii",)):
            pass

    assert error.value.missing == ("pii",)


async def test_a_required_guardrail_stands_in_the_manifest():
    with pytest.raises(RequiredGuardrailError):
        async with AgentOS(extension_manifest={"packs": [], "requiredGuardrails": ["pii"]}):
            pass


async def test_without_a_required_guardrail_nothing_passes_until_it_is_back():
    async with host_with(pii, required_guardrails=["pii"]) as host:
        before = await call(host, text="1")
        await host.extensions.set_override("guardrail", "pii", {"enabled": False})
        refused = await call(host, text="2")
        texts = [await host.guardrails.check_input("x"), await host.guardrails.check_output("x")]
        with pytest.raises(GuardrailBlockedError) as blocked:
            _ = [part async for part in host.guardrails.stream(["x"])]
        await host.extensions.set_override("guardrail", "pii", None)
        after = await call(host, text="3")

    assert (before.success, after.success) == (True, True)
    assert refused.error.type == "GuardrailBlocked"
    assert refused.error.details["code"] == "RequiredGuardMissing"
    assert [(one.action, one.value) for one in texts] == [("block", "")] * 2
    assert {row.verdict.code for one in texts for row in one.verdicts} == {"RequiredGuardMissing"}
    assert blocked.value.code == "RequiredGuardMissing"
    assert RAN == [("read", "1"), ("read", "3")]


async def test_before_anything_is_loaded_nothing_passes():
    host = host_with(pii, required_guardrails=["pii"])
    outcome = await host.guardrails.check_input("x")
    await host.shutdown()

    assert outcome.action == GuardAction.BLOCK


# -- coming and going --------------------------------------------------------------------------------------------------


async def test_a_guardrail_counts_from_the_moment_it_is_there_until_it_is_gone():
    async with host_with() as host:
        before = await call(host, text="bad")
        await host.extensions.load_pack(ExtensionPack("more", "1", [no_bad()]))
        with_it = await call(host, text="bad")
        await host.extensions.unload("more")
        after = await call(host, text="bad")

    assert [one.success for one in (before, with_it, after)] == [True, False, True]


# -- guardrails that call tools ----------------------------------------------------------------------------------------


async def test_a_guardrail_calls_tools_as_its_pack_and_is_not_asked_about_that():
    asked, callers = [], []

    @tool(effect="read", required_access=PUBLIC)
    async def lookup(context: ToolContext) -> str:
        """Look up."""
        callers.append(context.principal.key)
        return "known"

    @guardrail(stage="tool_call")
    async def curious(call, context):
        asked.append(call.name)
        result = await context.call_tool("lookup")
        return None if result.success else GuardVerdict.block("unknown")

    async with host_with(lookup, curious) as host:
        result = await call(host, text="x")

    assert result.success
    assert asked == ["read"]
    assert callers == ["service:guards"]


async def test_a_sync_guardrail_calls_tools_too():
    @guardrail(stage="tool_call", tools="write")
    def curious(call, context):
        return GuardVerdict.block(context.call_tool("read", {"text": "y"}).output["text"])

    async with host_with(curious) as host:
        result = await call(host, "write", text="x")

    assert result.error.details["reason"] == "y"


async def test_a_pack_holds_what_its_principal_in_the_manifest_holds():
    @tool(effect="read", required_access=("records.read",))
    async def records() -> str:
        """Read records."""
        return "known"

    said = []

    @guardrail(stage="input")
    async def curious(text, context):
        said.append((await context.call_tool("records")).success)

    for principals in ({}, {"guards": {"kind": "service", "access": ["records.read"]}}, {"guards": {"access": ["*"]}}):
        async with AgentOS(extension_manifest={"packs": [], "principals": principals}) as host:
            await host.extensions.load_pack(ExtensionPack("guards", "1", [records, curious]))
            await host.guardrails.check_input("x")

    assert said == [False, True, False]


async def test_guardrails_that_call_guarded_tools_come_to_an_end():
    asked = []

    def calling(id):
        async def guard(call, context):
            asked.append(id)
            await context.call_tool("read")

        return named(id, guardrail(stage="tool_call")(guard))

    async with host_with(*map(calling, "abcdefgh")) as host:
        async with asyncio.timeout(60):
            result = await call(host, text="x")

    assert result.success
    assert len(asked) < 20_000


async def test_what_a_guardrail_leaves_behind_is_guarded():
    results = []
    go = asyncio.Event()

    async def later(host):
        await go.wait()
        results.append(await call(host, text="bad"))

    class Leaving:
        host = None
        task = None

        async def evaluate_tool_call(self, call, context):
            if self.task is None:
                self.task = asyncio.create_task(later(self.host))
            return GuardVerdict.block("no") if "bad" in str(call.arguments) else None

    leaving = Leaving()
    async with host_with(named("leaving", leaving)) as host:
        leaving.host = host
        await call(host, text="fine")
        go.set()
        await leaving.task

    assert [one.error.type for one in results] == ["GuardrailBlocked"]


# -- what is on record -------------------------------------------------------------------------------------------------


async def test_the_audit_log_has_guard_code_and_stage_and_never_the_text(tmp_path):
    async with host_with(no_bad(), store=tmp_path / "s.db") as host:
        await call(host, text="bad-and-private")
        records = await host.audit.records()

    (record,) = [one.data for one in records if one.event == "guardrail"]
    assert (record["guard"], record["code"], record["stage"]) == ("guards:no_bad", "BAD", "tool_call")
    assert "private" not in str(records)


# -- what is no guardrail ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload",
    [lambda text, context: None, object(), Everything, "text", guardrail(stage="input")(lambda: None)],
    ids=["undecorated", "object", "class", "text", "no parameters"],
)
async def test_a_payload_that_is_no_guardrail_is_refused_when_its_pack_is_loaded(payload):
    host = host_with(named("wrong", payload))
    report = await host.initialize()
    await host.shutdown()

    (outcome,) = report.failed
    assert isinstance(outcome.error, PackLoadError | DescriptorError)
    assert "guardrail" in str(outcome.error)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"stage": "inptu"},
        {"stage": "input", "timeout": 0},
        {"stage": "input", "timeout": "5"},
        {"stage": "input", "on_failure": "ignore"},
        {"stage": "output", "holds_back": 5_000},
        {"stage": "tool_call", "tools": ()},
        {"stage": "tool_call", "tools": [5]},
    ],
)
def test_a_decorator_that_says_something_wrong_is_refused_where_it_is_written(fields):
    with pytest.raises(DescriptorError, match="guardrail"):
        guardrail(**fields)(lambda text, context: None)


def test_the_testing_kit_takes_a_guardrail_as_it_is():
    @guardrail(stage="tool_call")
    async def never(call, context):
        return GuardVerdict.block("never")

    (result,) = call_tools([read, never], ("read", {"text": "x"}))

    assert result.error.type == "GuardrailBlocked"


async def test_what_a_guardrail_says_beside_its_answer_is_bounded():
    endless = {}
    endless["again"] = endless
    said = iter([{"found": ["x"] * 400_000}, endless, {"found": 3}])

    @guardrail("input")
    async def talkative(text, context):
        return GuardVerdict(GuardAction.FLAG, "r" * 20_000, "c" * 300, details=next(said))

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", "1", [talkative]))
        verdicts = [(await host.guardrails.check_input("hello")).verdicts[0].verdict for _ in range(3)]

    assert [dict(one.details) for one in verdicts] == [
        {"details_dropped": 2_000_011},
        {"details_dropped": "it is not JSON"},
        {"found": 3},
    ]
    assert {(len(one.reason), len(one.code)) for one in verdicts} == {(10_000, 200)}


async def test_a_guardrail_that_flags_is_asked_once_when_a_call_is_made_and_once_when_it_is_approved():
    asked = []

    @guardrail("tool_call")
    async def strange(called, context):
        asked.append(called.name)
        return GuardVerdict.flag("strange")

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", "1", [strange, write]))
        result = await host.tools.process_tool_call(ToolCall("write", {"text": "a"}))
        before = len(asked)
        done = await host.approvals.approve(result.error.details["proposal_id"])

    assert (before, len(asked), done.success) == (1, 2, True)
