"""Who a principal is: its kind counts as much as its id, and whatever is no principal is nobody."""

import pytest

from agentos import PUBLIC, AgentOS, Budget, ExtensionPack, Principal, ProposalError, Tool, ToolCall, ToolResult
from agentos.interop import openai

USER = Principal("ann", access={"act"})
SERVICE = Principal("ann", "service", access={"act"})


@pytest.fixture
async def host(anyio_backend):
    ran = []

    async def act(args, context):
        ran.append(context.principal.key)
        return ToolResult.ok(len(ran))

    fields = {"description": "Do it.", "input_schema": {"type": "object"}, "execute": act}
    tools = [
        Tool.from_schema(name="act", effect="mutate", required_access={"act"}, **fields),
        Tool.from_schema(name="look", effect="read", required_access=PUBLIC, **fields),
        Tool.from_schema(
            name="hidden",
            effect="mutate",
            required_access={"never held"},
            dry_run=lambda args, context: ran.append("dry"),
            **fields,
        ),
    ]
    async with AgentOS(budget=Budget(calls=1, window=1e6)) as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=tools))
        host.ran = ran
        yield host


# -- kinds ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("principal", "key"),
    [
        (Principal("ann"), "ann"),
        (Principal("ann", "service"), "service:ann"),
        (Principal("cron", "system"), "system:cron"),
        (Principal.system(), "system"),
        (Principal("service:ann", "service"), "service:service:ann"),
    ],
)
def test_the_key_of_a_principal_has_its_kind(principal, key):
    assert principal.key == key


@pytest.mark.parametrize(
    ("id", "kind"), [("system", "user"), ("system", "service"), ("service:ann", "user"), ("system:cron", "user")]
)
def test_no_id_reads_as_a_principal_of_another_kind(id, kind):
    with pytest.raises(ValueError, match=r"Principal\.id"):
        Principal(id, kind)


async def test_a_proposal_of_a_user_is_not_that_of_a_service_of_the_same_id(host):
    asked = await host.tools.process_tool_call(ToolCall("act"), USER)
    id = asked.error.details["proposal_id"]

    assert await host.approvals.pending(SERVICE) == []
    assert [one.id for one in await host.approvals.pending(USER)] == [id]
    refused = await host.approvals.approve(asked.error.details["token"], by=SERVICE)
    assert refused.error.type == "ProposalInvalid"
    assert "somebody else" in refused.error.message
    with pytest.raises(ProposalError):
        await host.approvals.reject(id, "no", by=SERVICE)
    assert host.ran == []


async def test_a_grant_for_a_service_serves_no_user_of_that_id(host):
    await host.grants.add("p:act", "always", principal=SERVICE)

    asked = await host.tools.process_tool_call(ToolCall("act"), USER)
    ran = await host.tools.process_tool_call(ToolCall("act"), SERVICE)

    assert asked.error.type == "ApprovalRequired"
    assert ran.success
    assert host.ran == ["service:ann"]


async def test_user_and_service_have_budgets_of_their_own(host):
    results = [await host.tools.process_tool_call(ToolCall("look"), who) for who in (USER, SERVICE, USER)]

    assert [result.success for result in results] == [True, True, False]


async def test_an_idempotency_key_of_a_user_means_nothing_to_a_service(host):
    call = ToolCall("look", idempotency_key="k")
    first = await host.tools.process_tool_call(call, USER)
    second = await host.tools.process_tool_call(call, SERVICE)

    assert (first.output, second.output) == (1, 2)


async def test_the_audit_tells_kinds_apart(host):
    for who in (USER, SERVICE):
        await host.tools.process_tool_call(ToolCall("look"), who)
    await host.audit.verify()

    named = [record.data["principal"] for record in await host.audit.records() if record.event == "call"]
    assert named == ["ann", "service:ann"]


async def test_the_audit_says_which_rule_was_missing_though_the_caller_is_not_told(host):
    missing = await host.tools.process_tool_call(ToolCall("hidden"), USER)
    unknown = await host.tools.process_tool_call(ToolCall("no_such"), USER)
    await host.audit.verify()

    reasons = [record.data["reason"] for record in await host.audit.records() if record.event == "decision"]
    assert reasons == ["p:hidden requires never held", "there is no such tool"]
    assert missing.error.message.replace("hidden", "no_such") == unknown.error.message


# -- what is no principal ------------------------------------------------------------------------------------------

NOBODY = ["", "ann", False, 0, (), {"id": "ann"}]


@pytest.mark.parametrize("who", NOBODY, ids=repr)
@pytest.mark.parametrize(
    "ask",
    [
        lambda host, who: host.tools.list_available_tools(who),
        lambda host, who: host.tools.system_prompt(who),
        lambda host, who: host.tools.get_tool("hidden", who),
        lambda host, who: host.tools.explain("hidden", who),
        lambda host, who: openai.tools(host, who),
    ],
    ids=["list", "system prompt", "get", "explain", "openai"],
)
def test_what_is_no_principal_sees_nothing(ask, who, host):
    with pytest.raises(TypeError, match="expected a Principal"):
        ask(host, who)


@pytest.mark.parametrize("who", NOBODY, ids=repr)
async def test_what_is_no_principal_calls_nothing(who, host):
    for attempt in (host.tools.preview, host.tools.process_tool_call):
        with pytest.raises(TypeError, match="expected a Principal"):
            await attempt(ToolCall("hidden"), who)
    assert host.ran == []


@pytest.mark.parametrize("session", ["1", 1, ["id"]], ids=repr)
async def test_a_session_is_a_mapping(session, host):
    with pytest.raises(TypeError, match="session: expected a mapping"):
        await host.tools.process_tool_call(ToolCall("look"), session=session)
