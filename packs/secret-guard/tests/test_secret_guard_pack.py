"""The pack as a host sees it."""

import random
import string

import pytest

from agentos import PUBLIC, AgentOS, ExtensionPack, GuardAction, GuardrailBlockedError, ToolCall, ToolResult, tool

TOKEN = "ghp_" + "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=36))


@tool(effect="read", required_access=PUBLIC)
def echo(text: str, headers: dict[str, str] | None = None) -> dict:
    """Return what was given."""
    return {"text": text, "headers": headers or {}}


@tool(effect="read", required_access=PUBLIC)
def leak(text: str) -> str:
    """Return a secret that stands in no argument."""
    return f"{text}: {TOKEN[:4]}{TOKEN[4:]}"


@pytest.fixture
async def hosts():
    opened = []

    async def make(**options):
        host = AgentOS(extension_manifest={"packs": [{"package": "secret-guard", "options": options}]})
        await host.initialize()
        opened.append(host)
        await host.extensions.load_pack(ExtensionPack("ours", "1.0", [echo, leak]))
        return host

    yield make
    for host in opened:
        await host.shutdown()


async def call(host, name, **arguments) -> ToolResult:
    return await host.tools.process_tool_call(ToolCall(name, arguments))


async def test_secrets_in_arguments_and_results_are_replaced_by_their_format(hosts):
    host = await hosts()
    echoed = await call(host, "echo", text=f"use {TOKEN}", headers={"X-Api-Key": "kd82LkV78zLxtQ9w7Pb3"})
    leaked = await call(host, "leak", text="it is")

    assert echoed.output == {"text": "use [github-personal-token]", "headers": {"X-Api-Key": "[assigned-secret]"}}
    assert leaked.output == leaked.content == "it is: [github-personal-token]"


async def test_secrets_are_blocked_where_that_is_asked_for(hosts):
    host = await hosts(action="block")
    asked, leaked = await call(host, "echo", text=TOKEN), await call(host, "leak", text="it is")

    assert [one.error.type for one in (asked, leaked)] == ["GuardrailBlocked"] * 2
    assert [one.error.details["stage"] for one in (asked, leaked)] == ["tool_call", "tool_result"]
    assert TOKEN not in repr((asked, leaked))


async def test_secrets_are_flagged_where_that_is_asked_for(hosts):
    host = await hosts(action="flag", stages=["output"])
    outcome = await host.guardrails.check_output(f"it is {TOKEN}")

    assert (outcome.action, outcome.value) == (GuardAction.FLAG, f"it is {TOKEN}")
    assert (await call(host, "leak", text="it is")).output.endswith(TOKEN)


async def test_what_is_allowed_passes(hosts):
    host = await hosts(allowed=[TOKEN])

    assert (await call(host, "leak", text="it is")).output.endswith(TOKEN)


@pytest.mark.parametrize("action", ["block", "sanitize"])
async def test_not_a_character_of_a_secret_leaves_a_stream(hosts, action):
    host = await hosts(action=action)
    chance = random.Random(action)
    for _ in range(30):
        text = f"{'word ' * chance.randrange(400)}token: {TOKEN} {'word ' * chance.randrange(400)}"
        left = "".join([part async for part in guarded(host, chunks_of(text, chance))])

        assert TOKEN[:8] not in left
        assert action == "block" or left == text.replace(TOKEN, "[github-personal-token]")


async def guarded(host, chunks):
    try:
        async for part in host.guardrails.stream(chunks):
            yield part
    except GuardrailBlockedError:
        return


def chunks_of(text, chance):
    while text:
        size = chance.randint(1, 80)
        yield text[:size]
        text = text[size:]


async def test_the_tool_tells_where_and_never_what(hosts):
    host = await hosts(stages=["output"])
    result = await call(host, "scan_secrets", text=f"a {TOKEN} b")

    assert result.output == [{"format": "github-personal-token", "start": 2, "end": 42}]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"action": "hide"}, "options.action"),
        ({"stage": ["output"]}, "options.stage"),
        ({"stages": ["here"]}, "options.stages"),
    ],
)
async def test_wrong_options_fail_the_load_by_their_place(options, said):
    host = AgentOS(extension_manifest={"packs": [{"package": "secret-guard", "options": options}]})
    report = await host.initialize()
    await host.shutdown()

    assert [said in str(one) for one in report.failed] == [True]
