"""A fully-qualified id names its entry, also where another one is in force for the name: under the same rules."""

import asyncio

import pytest

from agentos import (
    PUBLIC,
    AgentOS,
    Descriptor,
    ExtensionPack,
    Principal,
    SecretRequirement,
    Tool,
    ToolCall,
    guardrail,
)

ANN = Principal("ann", access={"p"})
DEADLINE = 20.0


def answering(pack, *, effect="read", access=PUBLIC, execute=None, **said):
    """Return a descriptor of the tool `act`, which says whose it is."""
    tool = Tool.from_schema(
        name="act",
        description=f"Act as {pack}.",
        input_schema={"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False},
        effect=effect,
        required_access=access,
        execute=execute or (lambda args, context: f"{pack} {dict(context.options)}"),
    )
    return Descriptor("tool", "act", tool, **said)


async def beneath(args, context):
    return await context.below(args)


async def load(host, pack, descriptor, **fields):
    outcome = await host.extensions.load_pack(ExtensionPack(pack, "1.0", [descriptor], **fields))
    assert outcome.status == "loaded", outcome.reason


@pytest.fixture
async def host(anyio_backend):
    async with AgentOS(budget=None) as host:
        yield host


async def call(host, name="p:act", arguments=None, principal=None):
    async with asyncio.timeout(DEADLINE):
        return await host.tools.process_tool_call(ToolCall(name, arguments), principal)


def kind(result):
    return "ok" if result.success else result.error.type


async def two(host, **said):
    """Load p's tool, and q's above it."""
    await load(host, "p", answering("p", **said))
    await load(host, "q", answering("q"))


# -- reached -----------------------------------------------------------------------------------------------------------


async def test_the_full_id_of_a_shadowed_tool_reaches_it(host):
    await two(host)

    assert (await call(host)).output == "p {}"
    assert (await call(host, "q:act")).output == "q {}"
    assert (await call(host, "act")).output == "q {}"


async def test_a_shadowed_tool_is_not_listed(host):
    await two(host)

    assert [one.fully_qualified_id for one in host.tools.list_available_tools()] == ["q:act"]


async def test_of_three_the_lowest_is_reached(host):
    await two(host)
    await load(host, "r", answering("r"))

    assert (await call(host)).output == "p {}"


async def test_the_result_and_the_record_name_the_tool_that_ran(host):
    await two(host)
    result = await call(host)
    named = {record.data.get("tool") for record in await host.audit.records()}

    assert result.meta["tool"] == "p:act"
    assert "p:act" in named
    assert "q:act" not in named


async def test_its_arguments_are_checked_by_its_own_schema(host):
    await two(host)

    assert "expected an integer" in (await call(host, arguments={"n": "x"})).error.message


async def test_an_override_of_its_own_options_counts(host):
    await two(host)
    await host.extensions.set_override("tool", "p:act", {"options": {"to": "there"}})

    assert (await call(host)).output == "p {'to': 'there'}"


async def test_explaining_says_that_it_was_reached_so(host):
    await two(host)
    explained = host.tools.explain("p:act", ANN)

    assert (explained.tool, explained.is_reached_by_id, explained.is_allowed) == ("p:act", True, True)
    assert "p:act is shadowed; its full id reaches it" in str(explained)
    assert not host.tools.explain("q:act", ANN).is_reached_by_id
    assert not host.tools.explain("act", ANN).is_reached_by_id


async def test_what_was_named_by_its_plain_name_is_gone_when_it_is_shadowed(host):
    """The call of `act` meant the tool in force; one that is shadowed by the time it runs is another matter."""
    await load(host, "p", answering("p", effect="mutate"))
    asked = await call(host, "act")
    await load(host, "q", answering("q", effect="mutate"))
    result = await host.approvals.approve(asked.error.details["token"])

    assert kind(result) == "ProposalInvalid"


# -- under the same rules ----------------------------------------------------------------------------------------------


async def test_whoever_may_not_call_it_finds_nothing(host):
    await two(host, access=("p",))

    assert kind(await call(host, principal=Principal("eve"))) == "UnknownTool"
    assert kind(await call(host, principal=ANN)) == "ok"


async def test_whoever_may_not_call_the_tool_in_force_reaches_its_own_and_learns_nothing(host):
    await load(host, "p", answering("p", access=("p",)))
    await load(host, "q", answering("q", access=("q",)))
    explained = host.tools.explain("p:act", ANN, asked_by=ANN)

    assert kind(await call(host, "act", principal=ANN)) == "UnknownTool"
    assert kind(await call(host, principal=ANN)) == "ok"
    assert explained.tool == "p:act"
    assert "q" not in str(explained).split()
    assert "q:act" not in str(explained)


async def test_a_call_that_changes_something_waits_for_approval(host):
    await two(host, effect="mutate")
    asked = await call(host)
    (proposal,) = await host.approvals.pending()

    assert (kind(asked), proposal.tool) == ("ApprovalRequired", "p:act")
    assert (await host.approvals.approve(asked.error.details["token"])).output == "p {}"


@pytest.mark.parametrize("change", ["options", "reloaded", "in force"])
async def test_an_approval_is_bound_to_the_shadowed_tool_as_it_was(host, change):
    await two(host, effect="mutate")
    asked = await call(host)
    if change == "options":
        await host.extensions.set_override("tool", "p:act", {"options": {"to": "evil"}})
    elif change == "reloaded":
        await host.extensions.unload("p")
        await load(host, "p", answering("p", effect="destructive", priority=-1))
    else:
        await host.extensions.unload("q")

    assert kind(await host.approvals.approve(asked.error.details["token"])) == "ProposalInvalid"


async def test_what_stands_above_takes_no_part_in_the_approval(host):
    await two(host, effect="mutate")
    asked = await call(host)
    await load(host, "r", answering("r"))

    assert kind(await host.approvals.approve(asked.error.details["token"])) == "ok"


@pytest.mark.parametrize("denied", ["act", "p:act", "p:*"])
async def test_a_denial_counts(anyio_backend, denied):
    async with AgentOS(budget=None, deny=[denied]) as host:
        await two(host, effect="mutate")

        assert kind(await call(host)) == "Refused"


async def test_a_grant_for_the_tool_in_force_is_none_for_the_shadowed_one(host):
    await load(host, "p", answering("p", effect="mutate"))
    await load(host, "q", answering("q", effect="mutate"))
    await host.grants.add("q:act", "always")

    assert kind(await call(host, "q:act")) == "ok"
    assert kind(await call(host)) == "ApprovalRequired"


@pytest.mark.parametrize("key", ["act", "p:act"])
async def test_a_disabled_tool_is_out_of_reach(host, key):
    await two(host)
    await host.extensions.set_override("tool", key, {"enabled": False})

    assert kind(await call(host)) == "UnknownTool"


async def test_a_tool_of_a_disabled_pack_is_out_of_reach(host):
    await two(host)
    await host.extensions.disable("p")

    assert kind(await call(host)) == "UnknownTool"


async def test_a_tool_whose_secret_is_missing_is_out_of_reach(host):
    await two(host, required_secrets=(SecretRequirement("p.key"),))

    assert kind(await call(host)) == "UnknownTool"
    await host.extensions.set_secret("p.key", "a-value-of-some-length")
    assert kind(await call(host)) == "ok"


async def test_a_tool_whose_gate_is_shut_is_out_of_reach_with_the_reason(host):
    await two(host, gate=lambda: "its server is away")
    result = await call(host)

    assert (kind(result), result.error.message) == ("WorkerDied", "its server is away")


# -- what must not be bypassed -----------------------------------------------------------------------------------------


async def test_a_tool_beneath_a_wrapper_is_out_of_reach(host):
    """q's tool is wrapped and p's shadowed; whoever wraps them sees to what leaves, say."""
    await two(host)
    await load(host, "guard", answering("guard", execute=beneath, wraps=True))
    result = await call(host)

    assert kind(result) == "UnknownTool"
    assert result.error.message == (
        "p:act can't be called by its full id: a tool above it wraps those beneath, and is not to be bypassed"
    )
    assert result.error.message in str(host.tools.explain("p:act"))


async def test_a_wrapper_that_is_shadowed_itself_is_not_bypassed(host):
    await load(host, "p", answering("p"))
    await load(host, "guard", answering("guard", execute=beneath, wraps=True))
    await load(host, "q", answering("q"))

    assert "not to be bypassed" in (await call(host)).error.message
    assert "calls the tool beneath it" in (await call(host, "guard:act")).error.message


async def test_a_wrapper_that_is_disabled_protects_nothing_as_ever(host):
    await two(host)
    await load(host, "guard", answering("guard", execute=beneath, wraps=True))
    await host.extensions.set_override("tool", "guard:act", {"enabled": False})

    assert (await call(host)).output == "p {}"


async def test_a_wrapper_beneath_does_not_matter(host):
    await load(host, "guard", answering("guard", execute=beneath, wraps=True))
    await load(host, "p", answering("p"))
    await load(host, "q", answering("q"))

    assert (await call(host)).output == "p {}"


async def test_a_tool_whose_hook_has_not_run_is_out_of_reach(host):
    await two(host, on_activate=lambda context: None)
    result = await call(host)
    # Its hook ran when it was alone, and it was taken out of force when q came.

    assert kind(result) == "UnknownTool"
    assert "made ready when it comes into force" in result.error.message


async def test_why_it_is_out_of_reach_is_told_to_those_who_may_call_it(host):
    await two(host, access=("p",))
    await load(host, "guard", answering("guard", execute=beneath, wraps=True))

    refusals = [(await call(host, principal=who)).error.message for who in (ANN, Principal("eve"))]

    assert ["not to be bypassed" in one for one in refusals] == [True, False]


# -- while it runs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["unload", "disable", "shut down"])
async def test_its_pack_is_not_ended_while_a_call_of_it_runs(anyio_backend, end):
    seen, running, go_on = [], asyncio.Event(), asyncio.Event()

    async def execute(args, context):
        running.set()
        await go_on.wait()
        seen.append("ran")

    async def ending():
        if end == "shut down":
            await host.extensions.shutdown()
        else:
            await getattr(host.extensions, end)("p")

    async with AgentOS(budget=None) as host:
        low = answering("p", execute=execute, priority=-1, on_deactivate=lambda context: seen.append("hook of a tool"))
        await load(host, "q", answering("q"))
        await load(host, "p", low, on_deactivate=lambda context: seen.append("pack ended"))
        async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
            called = group.create_task(call(host))
            await running.wait()
            ended = group.create_task(ending())
            while is_eligible(host, "p"):
                await asyncio.sleep(0)
            for _ in range(20):  # whoever does not wait for the call would end the pack now
                await asyncio.sleep(0)
            go_on.set()
            await ended

    assert called.result().success
    assert seen == ["ran", "pack ended"]


def is_eligible(host, pack):
    stack = host.extensions.registry("tool").stack("act")
    return any(one.source.pack == pack and one.state in ("active", "shadowed") for one in stack)


async def test_a_tool_that_goes_before_its_call_is_recorded_does_not_run(host):
    """The denial is looked at, the call recorded, and only then it runs: it must still be there."""
    await two(host)
    ready = host.tools.catalog.find("p:act")
    assert host.tools.catalog.is_in_force(ready)
    await host.extensions.unload("p")

    assert not host.tools.catalog.is_in_force(ready)


async def test_a_tool_that_comes_into_force_is_still_the_one_that_was_named(host):
    await two(host)
    ready = host.tools.catalog.find("p:act")
    await host.extensions.unload("q")

    assert host.tools.catalog.is_in_force(ready)


async def test_its_validators_are_made_once(host):
    await two(host)
    await load(host, "r", answering("r"))

    assert host.tools.catalog.find("p:act") is host.tools.catalog.find("p:act")


# -- found, and gone before it could run -------------------------------------------------------------------------------


async def leaving(host, *, effect="mutate", **fields):
    """Load p's tool and q's above it; q goes while a guardrail looks at a call of it."""

    @guardrail(stage="tool_call", tools="q:act")
    async def go_meanwhile(call, context):
        await host.extensions.unload("q")

    await load(host, "p", answering("p", effect=effect, **fields))
    await load(host, "q", answering("q", effect="mutate"))
    await load(host, "guard", Descriptor("guardrail", "go_meanwhile", go_meanwhile))


@pytest.mark.parametrize("effect", ["read", "mutate"])
async def test_a_call_whose_tool_goes_before_it_runs_is_that_of_the_one_beneath(anyio_backend, effect):
    async with AgentOS(budget=None, mode="auto") as host:
        await leaving(host, effect=effect)
        result = await call(host, "act", {"n": 1})

    assert (result.output, result.meta["tool"]) == ("p {}", "p:act")


async def test_it_is_under_the_rules_of_the_one_beneath(anyio_backend):
    async with AgentOS(budget=None, mode="auto") as host:
        await leaving(host, access=("p",))

        assert kind(await call(host, "act", principal=Principal("ben"))) == "UnknownTool"


async def test_if_nothing_is_beneath_it_is_unknown(anyio_backend):
    async with AgentOS(budget=None, mode="auto") as host:
        await leaving(host)
        await host.extensions.unload("p")

        assert "went out of force before" in (await call(host, "act")).error.message
