"""Calls that wait for a person: asked in place where the client can, told how to approve where it can't."""

import asyncio
import contextlib
import json
import sys
import time
from pathlib import Path

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

import agentos.mcp.server.approval_prompts as asking
from agentos import (
    PUBLIC,
    Answer,
    Descriptor,
    ExtensionPack,
    GuardVerdict,
    Principal,
    ToolContext,
    ToolResult,
    guardrail,
    tool,
)
from agentos.mcp import MCPServer

sys.path.append(str(Path(__file__).parent))
import fixture_pack as pack

ERAS = ("legacy", "2026-07-28")
MODERN = "2026-07-28"


@pytest.fixture(params=ERAS)
def era(request):
    return request.param


@pytest.fixture
async def host(anyio_backend):
    async with pack.hosted() as host:
        yield host


class Person:
    """Whoever sits at the client: gives the answers in their order, and the last one again."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def __call__(self, context, params):
        self.asked.append(params)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        return await answer() if callable(answer) else answer


def accept(**content):
    return types.ElicitResult(action="accept", content=content)


APPROVE = accept(decision="approve")
REJECT = accept(decision="reject", reason="not today")
DECLINE = types.ElicitResult(action="decline")
DISMISS = types.ElicitResult(action="cancel")


def connected(host, era, person=None, **options):
    options = {"principal": pack.USER, **options}
    return Client(MCPServer(host, **options).server, mode=era, elicitation_callback=person)


def text_of(result):
    return result.content[0].text


# -- asked in place --------------------------------------------------------------------------------------------------


async def test_a_call_that_a_person_approves_runs(host, era):
    async with connected(host, era, Person(APPROVE)) as client:
        result = await client.call_tool("write", {"path": "a.txt"})

    assert result.structured_content == {"path": "a.txt", "text": ""}
    assert pack.seen == ["wrote a.txt"]


async def test_the_call_runs_once_and_nothing_waits_afterwards(host, era):
    async with connected(host, era, Person(APPROVE)) as client:
        await client.call_tool("write", {"path": "a.txt"})
    proposals = [record for record in await host.audit.records() if record.event == "proposal"]

    assert len(proposals) == 1
    assert await host.approvals.pending() == []


async def test_the_person_is_told_what_exactly_will_run(host, era):
    person = Person(APPROVE)
    async with connected(host, era, person) as client:
        await client.call_tool("remove", {"path": "a.txt"})
    message = person.asked[0].message

    assert "Tool: fixture:remove (destructive)" in message
    assert "Pack: fixture 1.2, from host" in message
    assert "Why it asks: fixture:remove may destroy something" in message
    assert '"path": "a.txt"' in message
    assert 'Preview: "would remove a.txt"' in message


async def test_the_form_has_one_decision_and_an_optional_reason(host, era):
    person = Person(APPROVE)
    async with connected(host, era, person) as client:
        await client.call_tool("remove", {"path": "a.txt"})
    schema = person.asked[0].requested_schema

    assert schema["properties"]["decision"]["enum"] == ["approve", "reject"]
    assert schema["required"] == ["decision"]
    assert set(schema["properties"]) == {"decision", "reason"}


async def test_the_person_is_told_what_the_tool_stands_in_front_of(host, era):
    @tool(effect="mutate", required_access=PUBLIC, name="write")
    async def other(path: str) -> str:
        """Write elsewhere."""
        return path

    await host.extensions.load_pack(ExtensionPack("newcomer", "1", [other]))
    person = Person(APPROVE)
    async with connected(host, era, person) as client:
        await client.call_tool("write", {"path": "a.txt"})

    assert "It stands in front of: fixture:write" in person.asked[0].message


async def test_the_person_is_told_what_guardrails_flagged(host, era):
    @guardrail(stage="tool_call")
    async def wary(call, context):
        return GuardVerdict.flag("the path is not the user's", "TAINT")

    await host.extensions.load_pack(ExtensionPack("wary", "1", [wary]))
    person = Person(APPROVE)
    async with connected(host, era, person) as client:
        await client.call_tool("remove", {"path": "a.txt"})

    assert "\nFlagged: wary: the path is not the user's\n" in person.asked[0].message


async def test_a_client_that_lists_proposals_is_told_what_guardrails_flagged(host, era):
    @guardrail(stage="tool_call")
    async def wary(call, context):
        return GuardVerdict.flag("the path is not the user's", "TAINT")

    await host.extensions.load_pack(ExtensionPack("wary", "1", [wary]))
    async with connected(host, era) as client:
        await client.call_tool("remove", {"path": "a.txt"})
        listed = await client.call_tool("proposals_list", {})

    assert "wary: the path is not the user's" in text_of(listed)


async def test_arguments_can_not_hide_anything_from_the_person(host, era):
    person = Person(APPROVE)
    async with connected(host, era, person) as client:
        await client.call_tool("write", {"path": "safe\u202etxt.exe\u200b"})

    assert "safe\\u202etxt.exe\\u200b" in person.asked[0].message


async def test_arguments_that_are_too_long_to_be_shown_are_cut_with_a_warning(host, era):
    person = Person(APPROVE)
    async with connected(host, era, person) as client:
        await client.call_tool("write", {"path": "x", "text": "y" * 100_000})

    assert len(person.asked[0].message) < 10_000
    assert "Reject it unless you know the rest" in person.asked[0].message


async def test_a_secret_in_the_arguments_is_masked_in_the_question(host, era):
    host.extensions.masker.learn("hunter2-and-more")
    person = Person(APPROVE)
    async with connected(host, era, person) as client:
        await client.call_tool("write", {"path": "x", "text": "hunter2-and-more"})

    assert "hunter2" not in person.asked[0].message
    assert pack.seen == ["wrote x"]


@pytest.mark.parametrize(("answer", "words"), [(REJECT, "not today"), (DECLINE, "no reason given")])
async def test_a_call_that_a_person_rejects_does_not_run(host, era, answer, words):
    async with connected(host, era, Person(answer)) as client:
        result = await client.call_tool("write", {"path": "a.txt"})

    assert result.is_error
    assert text_of(result) == f"Refused: a person refused the call: {words}"
    assert pack.seen == []
    assert await host.approvals.pending() == []


@pytest.mark.parametrize("answer", [DISMISS, accept(), accept(decision="maybe")], ids=["dismissed", "empty", "neither"])
async def test_a_question_without_an_answer_leaves_the_call_waiting(host, era, answer):
    async with connected(host, era, Person(answer)) as client:
        result = await client.call_tool("write", {"path": "a.txt"})
    (waiting,) = await host.approvals.pending()

    assert not result.is_error
    assert result.meta["agentos/pending"]["proposal_id"] == waiting.id
    assert f'`proposals_apply` with the id "{waiting.id}"' in text_of(result)
    assert pack.seen == []


async def test_a_reason_is_bounded(host, era):
    async with connected(host, era, Person(accept(decision="reject", reason="x" * 10_000))) as client:
        result = await client.call_tool("write", {"path": "a.txt"})

    assert len(text_of(result)) < 700


async def test_progress_of_an_approved_call_reaches_the_client(host, era):
    told = []

    async def report(done, total, message):
        told.append(message)

    async with connected(host, era, Person(APPROVE)) as client:
        await client.call_tool("write", {"path": "a.txt"}, progress_callback=report)

    assert told == ["writing"]


async def test_a_tool_that_changed_between_question_and_answer_does_not_run(host, era):
    @tool(effect="mutate", required_access=PUBLIC, name="write")
    async def other(path: str) -> str:
        """Write elsewhere."""
        pack.seen.append("the other ran")
        return path

    async def meanwhile():
        await host.extensions.load_pack(ExtensionPack("newcomer", "1", [other]))
        return APPROVE

    async with connected(host, era, Person(meanwhile)) as client:
        result = await client.call_tool("write", {"path": "a.txt"})

    assert result.is_error
    assert text_of(result).startswith("ProposalInvalid")
    assert pack.seen == []


async def test_who_handles_approvals_at_the_host_answers_first(host, era):
    handler = Descriptor("hitl-handler", "desk", lambda proposal: Answer.reject("the desk says no"))
    await host.extensions.load_pack(ExtensionPack("desk", "1", [handler]))
    person = Person(APPROVE)
    async with connected(host, era, person) as client:
        result = await client.call_tool("write", {"path": "a.txt"})

    assert "the desk says no" in text_of(result)
    assert person.asked == []


async def test_reading_asks_nobody(host, era):
    person = Person(APPROVE)
    async with connected(host, era, person) as client:
        await client.call_tool("add", {"a": 1})

    assert person.asked == []


async def test_the_approval_is_on_record_with_the_principal(host, era):
    async with connected(host, era, Person(APPROVE)) as client:
        await client.call_tool("write", {"path": "a.txt"})
    applying = [record.data for record in await host.audit.records() if record.event == "proposal:applying"]

    assert [record["by"] for record in applying] == ["ada"]


async def test_a_client_that_fails_to_ask_leaves_the_call_waiting(host):
    async def broken(context, params):
        return types.ErrorData(code=-1, message="no window")

    async with connected(host, "legacy", broken) as client:
        result = await client.call_tool("write", {"path": "a.txt"})

    assert "waits for approval" in text_of(result)


async def test_a_person_has_as_long_as_the_proposal_lasts(anyio_backend):
    now = [time.time()]

    async def never():
        now[0] += 1
        await asyncio.Event().wait()

    async with (
        pack.hosted(proposal_ttl=0.05, clock=lambda: now[0]) as host,
        connected(host, "legacy", Person(never)) as client,
    ):
        result = await client.call_tool("write", {"path": "a.txt"})

    assert text_of(result) == "ProposalInvalid: nobody decided here, and the proposal is expired by now"


async def test_a_proposal_that_is_decided_elsewhere_meanwhile_is_told_so(host):
    async def meanwhile():
        (waiting,) = await host.approvals.pending()
        await host.approvals.approve(waiting.id)
        return DISMISS

    async with connected(host, "legacy", Person(meanwhile)) as client:
        result = await client.call_tool("write", {"path": "a.txt"})

    assert "the proposal is applied by now" in text_of(result)
    assert pack.seen == ["wrote a.txt"]


async def test_a_call_that_is_cancelled_while_somebody_is_asked_can_not_run_later(host):
    asked = asyncio.Event()

    async def never():
        asked.set()
        await asyncio.Event().wait()

    async with connected(host, "legacy", Person(never)) as client, anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "write", {"path": "a.txt"})
        await asked.wait()
        (waiting,) = await host.approvals.pending()
        group.cancel_scope.cancel()
    with anyio.fail_after(5):
        while (await host.approvals.describe(waiting.id)).state == "proposed":
            await asyncio.sleep(0)

    assert (await host.approvals.describe(waiting.id)).state == "rejected"


# -- the sealed state of the new era ---------------------------------------------------------------------------------


async def first_round(client, name="write", **arguments):
    asked = await client.session.call_tool(name, arguments, allow_input_required=True)
    assert isinstance(asked, types.InputRequiredResult)
    return asked.request_state


async def second_round(client, state, answer=APPROVE, name="write", **arguments):
    responses = None if answer is None else {"approval": answer}
    return await client.session.call_tool(
        name, arguments, input_responses=responses, request_state=state, allow_input_required=True
    )


async def test_calling_again_with_an_answer_applies_the_stored_proposal(host):
    async with connected(host, MODERN, Person(APPROVE)) as client:
        state = await first_round(client, path="a.txt")
        result = await second_round(client, state, path="a.txt")
    made = [record for record in await host.audit.records() if record.event == "proposal"]

    assert result.structured_content["path"] == "a.txt"
    assert len(made) == 1


async def test_a_state_says_nothing_to_the_client(host):
    async with connected(host, MODERN, Person(APPROVE)) as client:
        state = await first_round(client, path="a.txt")
    (waiting,) = await host.approvals.pending()

    assert waiting.id not in state
    assert "a.txt" not in state


async def test_a_state_that_is_used_again_is_refused(host):
    async with connected(host, MODERN, Person(APPROVE)) as client:
        state = await first_round(client, path="a.txt")
        await second_round(client, state, path="a.txt")
        again = await second_round(client, state, path="a.txt")

    assert again.is_error
    assert "used already" in text_of(again)
    assert pack.seen == ["wrote a.txt"]


async def test_a_state_without_an_answer_asks_again_about_the_same_proposal(host):
    async with connected(host, MODERN, Person(APPROVE)) as client:
        state = await first_round(client, path="a.txt")
        again = await second_round(client, state, None, path="a.txt")

        assert isinstance(again, types.InputRequiredResult)
        assert len(await host.approvals.pending()) == 1
        assert not (await second_round(client, again.request_state, path="a.txt")).is_error


async def test_a_state_without_an_answer_never_approves(host):
    """Also not by a client that says, the second time, that nobody can be asked."""
    async with connected(host, MODERN, Person(APPROVE)) as client:
        state = await first_round(client, path="a.txt")
        client.session._elicitation_callback = None
        result = await raw_call(client, {"name": "write", "arguments": {"path": "a.txt"}, "requestState": state})

    assert not result["isError"]
    assert "agentos/pending" in result["_meta"]
    assert "nobody decided" in result["content"][0]["text"]
    assert pack.seen == []


async def raw_call(client, params):
    meta = {
        types.PROTOCOL_VERSION_META_KEY: MODERN,
        types.CLIENT_INFO_META_KEY: {"name": "test", "version": "1"},
        types.CLIENT_CAPABILITIES_META_KEY: {},
    }
    return await client.session._dispatcher.send_raw_request("tools/call", {**params, "_meta": meta})


async def test_a_state_without_an_answer_after_the_decision_says_so(host):
    async with connected(host, MODERN, Person(APPROVE)) as client:
        state = await first_round(client, path="a.txt")
        await second_round(client, state, REJECT, path="a.txt")
        again = await second_round(client, state, None, path="a.txt")

    assert "the proposal is rejected by now" in text_of(again)


@pytest.mark.parametrize("forged", ["", "v1.AAAA", "x" * 100, "v1." + "A" * 200])
async def test_a_forged_state_is_refused(host, forged):
    async with connected(host, MODERN, Person(APPROVE)) as client:
        await first_round(client, path="a.txt")
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await second_round(client, forged, path="a.txt")

    assert pack.seen == []


def _tampered(state, other):
    """List states that are nearly the real one: each character another, cut at each place, and made of two.

    The last character is left: of its bits some do not count, and another one with the same others says the same.
    """
    for place, char in enumerate(state[:-1]):
        yield state[:place] + ("B" if char != "B" else "C") + state[place + 1 :]
    yield from (state[:place] for place in range(0, len(state), 4))
    yield from (state[:place] + other[place:] for place in range(4, len(state) - 8, 8))
    yield from (state + more for more in ("A", "=", "==", ".", " ", "\n", "\0", state))
    yield from (state.upper(), state.lower(), state[::-1], f" {state}", state.replace(".", "", 1), state.encode().hex())


async def test_a_state_that_was_tampered_with_is_refused_at_every_place(host):
    async with connected(host, MODERN, Person(APPROVE)) as client:
        state = await first_round(client, path="a.txt")
        other = await first_round(client, path="a.txt")
        through, attempts = [], 0
        for forged in (one for one in _tampered(state, other) if one != other):
            attempts += 1
            with contextlib.suppress(MCPError):
                await second_round(client, forged, path="a.txt")
                through.append(forged)

    assert (through, pack.seen, attempts > 400) == ([], [], True)


@pytest.mark.parametrize(
    ("name", "arguments"), [("write", {"path": "b.txt"}), ("remove", {"path": "a.txt"}), ("write", {})], ids=str
)
async def test_a_state_holds_for_one_tool_and_its_arguments(host, name, arguments):
    async with connected(host, MODERN, Person(APPROVE)) as client:
        state = await first_round(client, path="a.txt")
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await second_round(client, state, name=name, **arguments)

    assert pack.seen == []


async def test_a_state_holds_for_one_principal(host):
    who = {"now": pack.USER}
    server = MCPServer(host, principal=lambda ctx: who["now"])
    async with Client(server.server, mode=MODERN, elicitation_callback=Person(APPROVE)) as client:
        state = await first_round(client, path="a.txt")
        who["now"] = Principal("eve", access={"files:write"})
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await second_round(client, state, path="a.txt")

    assert pack.seen == []


async def test_a_state_of_another_server_is_refused(host):
    async with connected(host, MODERN, Person(APPROVE)) as client:
        state = await first_round(client, path="a.txt")
    async with connected(host, MODERN, Person(APPROVE)) as other:
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await second_round(other, state, path="a.txt")


async def test_servers_with_the_same_keys_take_over_from_one_another(host):
    keys = [b"k" * 32]
    async with connected(host, MODERN, Person(APPROVE), state_keys=keys) as client:
        state = await first_round(client, path="a.txt")
    async with connected(host, MODERN, Person(APPROVE), state_keys=keys) as other:
        result = await second_round(other, state, path="a.txt")

    assert not result.is_error


async def test_a_state_expires_with_its_proposal(anyio_backend):
    now = [time.time()]
    async with pack.hosted(clock=lambda: now[0]) as host, connected(host, MODERN, Person(APPROVE)) as client:
        state = await first_round(client, path="a.txt")
        now[0] += 601
        result = await second_round(client, state, path="a.txt")

    assert result.is_error
    assert "expired" in text_of(result)
    assert pack.seen == []


async def test_a_state_expires_by_itself_too(host):
    server = MCPServer(host, principal=pack.USER)
    async with Client(server.server, mode=MODERN, elicitation_callback=Person(APPROVE)) as client:
        state = await first_round(client, path="a.txt")
        codec = server.server.middleware[2]._security.codec
        claims = json.loads(codec.unseal(state))
        old = codec.seal(json.dumps({**claims, "iat": 1.0, "exp": 2.0}).encode())
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await second_round(client, old, path="a.txt")


@pytest.mark.parametrize("inner", ["not JSON", "[]", '{"proposal": 5}', '{"proposal": "unknown"}'])
async def test_a_state_that_names_no_proposal_says_so(host, inner):
    server = MCPServer(host, principal=pack.USER)
    async with Client(server.server, mode=MODERN, elicitation_callback=Person(APPROVE)) as client:
        state = await first_round(client, path="a.txt")
        codec = server.server.middleware[2]._security.codec
        claims = json.loads(codec.unseal(state))
        result = await second_round(client, codec.seal(json.dumps({**claims, "s": inner}).encode()), path="a.txt")

    assert "make the call again" in text_of(result)


async def test_answers_without_a_state_are_a_new_call(host):
    async with connected(host, MODERN, Person(APPROVE)) as client:
        asked = await second_round(client, None, path="a.txt")

    assert isinstance(asked, types.InputRequiredResult)
    assert pack.seen == []


# -- where nobody can be asked ---------------------------------------------------------------------------------------


async def test_the_result_says_that_the_call_waits_and_how_it_is_approved(host, era):
    async with connected(host, era) as client:
        result = await client.call_tool("write", {"path": "a.txt"})
    (waiting,) = await host.approvals.pending()

    assert not result.is_error
    assert waiting.id in text_of(result)
    assert "`proposals_apply`" in text_of(result)
    assert "do not repeat the call" in text_of(result)


@pytest.mark.parametrize("name", ["write", "remove"])
async def test_a_call_that_waits_is_no_error_and_says_that_it_is_pending(host, era, name):
    """Also for a client that knows what the tool returns, and checks it."""
    async with connected(host, era) as client:
        await client.list_tools()
        result = await client.call_tool(name, {"path": "a.txt"})
    (waiting,) = await host.approvals.pending()
    expected = {
        "proposal_id": waiting.id,
        "expires_at": waiting.expires_at.isoformat(),
        "reason": waiting.reason,
    }

    assert not result.is_error
    assert expected == result.meta["agentos/pending"]
    assert text_of(result).startswith(f"Pending: {waiting.reason}. It waits for approval")


async def test_a_call_that_waits_is_no_error_with_other_fields_of_a_request_either(host, era):
    async with connected(host, era) as client:
        params = {"name": "write", "arguments": {"path": "a.txt"}, "_meta": {"progressToken": "t"}}
        request = types.CallToolRequest(method="tools/call", params=types.CallToolRequestParams.model_validate(params))
        result = await client.session.send_request(request, types.CallToolResult)

    assert not result.is_error
    assert "agentos/pending" in result.meta


async def test_the_same_call_again_is_the_same_proposal_while_it_waits(host, era):
    async with connected(host, era) as client:
        first = await client.call_tool("write", {"path": "a.txt"})
        again = await client.call_tool("write", {"text": "", "path": "a.txt"})
        other = await client.call_tool("write", {"path": "b.txt"})
        waiting = await host.approvals.pending()
        await client.call_tool("proposals_apply", {"id": waiting[0].id})
        later = await client.call_tool("write", {"path": "a.txt"})

    assert first.meta["agentos/pending"] == again.meta["agentos/pending"]
    assert [one.arguments["path"] for one in waiting] == ["a.txt", "b.txt"]
    ids = {one.meta["agentos/pending"]["proposal_id"] for one in (first, other, later)}
    assert len(ids) == 3
    assert pack.seen == ["wrote a.txt"]


async def test_what_a_tool_could_not_do_without_approval_is_an_error_where_its_output_is_promised(host, era):
    """A client that was shown an output schema refuses any other answer without structured content."""

    @tool(effect="read", required_access=PUBLIC)
    async def relay(*, context: ToolContext) -> dict[str, str]:
        """Call a tool that has to ask."""
        return await context.call("write", {"path": "a.txt"})

    await host.extensions.load_pack(ExtensionPack("relay", "1", [relay]))
    async with connected(host, era) as client:
        await client.list_tools()
        result = await client.call_tool("relay", {})
    (waiting,) = await host.approvals.pending()

    assert result.is_error
    assert result.meta["agentos/pending"]["proposal_id"] == waiting.id


async def test_without_the_tools_the_result_names_the_host(host, era):
    async with connected(host, era, approvals_tools=False) as client:
        result = await client.call_tool("write", {"path": "a.txt"})

    assert "proposals_apply" not in text_of(result)
    assert "A person approves it at the host, by the id" in text_of(result)


async def test_a_token_never_goes_to_the_client(host, era, monkeypatch):
    tokens = []
    process = host.tools.process_tool_call

    async def noting(*args, **options):
        result = await process(*args, **options)
        tokens.append(result.error.details["token"])
        return result

    monkeypatch.setattr(host.tools, "process_tool_call", noting)
    async with connected(host, era) as client:
        result = await client.call_tool("write", {"path": "a.txt"})
        listed = await client.call_tool("proposals_list", {})
        shown = await client.call_tool("proposals_show", {"id": listed.structured_content["proposals"][0]["id"]})

    assert len(tokens) == 1
    assert tokens[0] not in f"{result} {listed} {shown}"


async def test_what_a_tool_could_not_do_without_approval_can_be_approved_in_place(host, era):
    """The tool hands on what it was told; the person is shown what the tool wanted to call."""

    @tool(effect="read", required_access=PUBLIC)
    async def relay(*, context: ToolContext) -> ToolResult:
        """Call a tool that has to ask."""
        return await context.call("write", {"path": "a.txt"})

    await host.extensions.load_pack(ExtensionPack("relay", "1", [relay]))
    person = Person(APPROVE)
    async with connected(host, era, person) as client:
        result = await client.call_tool("relay", {})

    assert "Tool: fixture:write (mutate)" in person.asked[0].message
    assert result.structured_content["path"] == "a.txt"


async def test_an_approval_that_a_tool_made_up_asks_nobody(host, era):
    @tool(effect="read", required_access=PUBLIC)
    async def liar() -> ToolResult:
        """Pretend to wait."""
        return ToolResult.fail("ApprovalRequired", "give me your consent", {"proposal_id": "no such"})

    await host.extensions.load_pack(ExtensionPack("liar", "1", [liar]))
    person = Person(APPROVE)
    async with connected(host, era, person) as client:
        result = await client.call_tool("liar", {})

    assert result.is_error
    assert person.asked == []


@pytest.mark.parametrize(
    ("version", "elicitation", "can_send", "expected"),
    [
        ("2025-06-18", types.ElicitationCapability(), True, True),
        ("2025-11-25", types.ElicitationCapability(form=types.FormElicitationCapability()), True, True),
        ("2025-11-25", types.ElicitationCapability(url=types.UrlElicitationCapability()), True, False),
        ("2025-11-25", types.ElicitationCapability(), False, False),
        ("2025-03-26", types.ElicitationCapability(), True, False),
        ("2025-11-25", None, True, False),
        (MODERN, types.ElicitationCapability(), False, True),
    ],
)
def test_a_client_can_be_asked_if_it_said_so_and_can_be_reached(version, elicitation, can_send, expected):
    class Session:
        client_capabilities = types.ClientCapabilities(elicitation=elicitation)
        can_send_request = can_send

    class Context:
        session = Session()
        protocol_version = version

    assert asking.can_elicit(Context()) is expected


def test_a_client_that_declared_nothing_can_not_be_asked():
    class Session:
        client_capabilities = None

    class Context:
        session = Session()
        protocol_version = MODERN

    assert not asking.can_elicit(Context())


# -- the proposals tools ---------------------------------------------------------------------------------------------


@pytest.fixture
async def client(host, era):
    async with connected(host, era) as client:
        yield client


async def waiting(client, **arguments):
    await client.call_tool("write", arguments or {"path": "a.txt"})
    listed = await client.call_tool("proposals_list", {})
    return listed.structured_content["proposals"][-1]["id"]


async def test_a_proposal_is_applied_by_its_id(client):
    id = await waiting(client)
    result = await client.call_tool("proposals_apply", {"id": id})

    assert result.structured_content == {"path": "a.txt", "text": ""}
    assert pack.seen == ["wrote a.txt"]


async def test_a_proposal_is_applied_once(client):
    id = await waiting(client)
    await client.call_tool("proposals_apply", {"id": id})
    again = await client.call_tool("proposals_apply", {"id": id})

    assert again.is_error
    assert "used already" in text_of(again)


async def test_a_proposal_is_rejected_by_its_id(client, host):
    id = await waiting(client)
    result = await client.call_tool("proposals_reject", {"id": id, "reason": "no"})

    assert result.structured_content == {"id": id, "state": "rejected"}
    assert (await host.approvals.describe(id)).note == "no"


async def test_what_was_decided_can_not_be_rejected(client):
    id = await waiting(client)
    await client.call_tool("proposals_apply", {"id": id})

    assert text_of(await client.call_tool("proposals_reject", {"id": id})).startswith("ProposalInvalid")


async def test_a_proposal_is_shown_whole(client):
    id = await waiting(client, path="a.txt", text="hello")
    shown = (await client.call_tool("proposals_show", {"id": id})).structured_content

    assert shown["arguments"] == {"path": "a.txt", "text": "hello"}
    assert (shown["tool"], shown["effect"], shown["pack"], shown["version"]) == (
        *("fixture:write", "mutate", "fixture", "1.2"),
    )


async def test_nothing_waits_is_said_in_words(client):
    assert text_of(await client.call_tool("proposals_list", {})) == "Nothing waits for approval."


@pytest.mark.parametrize("name", ["proposals_show", "proposals_apply", "proposals_reject"])
async def test_an_unknown_id_says_where_to_look(client, name):
    assert "`proposals_list` lists" in text_of(await client.call_tool(name, {"id": "nope"}))


@pytest.mark.parametrize("arguments", [{}, {"id": 5}, {"id": ""}, {"id": "x", "also": 1}], ids=str)
async def test_arguments_of_the_servers_own_tools_are_checked(client, arguments):
    result = await client.call_tool("proposals_show", arguments)

    assert text_of(result).startswith("InvalidArguments")


async def test_a_principal_sees_its_own_proposals_alone(host, era):
    async with connected(host, era) as client:
        id = await waiting(client)
    async with connected(host, era, principal=Principal("eve", access={"files:write"})) as other:
        listed = await other.call_tool("proposals_list", {})
        applied = await other.call_tool("proposals_apply", {"id": id})

    assert listed.structured_content["proposals"] == []
    assert "there is no proposal" in text_of(applied)
    assert pack.seen == []


async def test_a_principal_that_lost_the_access_does_not_see_what_it_proposed(host, era):
    async with connected(host, era) as client:
        id = await waiting(client)
    async with connected(host, era, principal=pack.USER.narrow([])) as narrowed:
        listed = await narrowed.call_tool("proposals_list", {})
        applied = await narrowed.call_tool("proposals_apply", {"id": id})

    assert listed.structured_content["proposals"] == []
    assert "there is no proposal" in text_of(applied)


async def test_the_host_itself_sees_every_proposal(host, era):
    async with connected(host, era) as client:
        id = await waiting(client)
    async with connected(host, era, principal=None) as system:
        listed = await system.call_tool("proposals_list", {})
        shown = await system.call_tool("proposals_show", {"id": id})

    assert listed.structured_content["proposals"][0]["principal"] == "ada"
    assert shown.structured_content["id"] == id


async def test_the_host_itself_applies_for_others_only_if_that_is_allowed(host, era):
    async with connected(host, era) as client:
        id = await waiting(client)
    async with connected(host, era, principal=None) as system:
        result = await system.call_tool("proposals_apply", {"id": id})

    assert "somebody else" in text_of(result)
    assert pack.seen == []


async def test_a_token_is_no_id(host, client):
    asked = await host.tools.process_tool_call({"name": "write", "arguments": {"path": "x"}}, pack.USER)
    token = asked.error.details["token"]

    assert "there is no proposal" in text_of(await client.call_tool("proposals_apply", {"id": token}))


async def test_secrets_are_masked_in_what_is_shown(host, client):
    host.extensions.masker.learn("hunter2-and-more")
    id = await waiting(client, path="x", text="hunter2-and-more")
    shown = await client.call_tool("proposals_show", {"id": id})

    assert "hunter2" not in str(shown)
