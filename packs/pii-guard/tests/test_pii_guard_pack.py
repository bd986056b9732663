"""The pack as a host sees it."""

import random

import pytest

from agentos import AgentOS, GuardAction, ToolCall

TEXT = "Ann pays with 4111 1111 1111 1111 and gets mail at ann@example.org."
HIDDEN = "Ann pays with [card] and gets mail at [email]."


@pytest.fixture
async def hosts():
    opened = []

    async def make(**options):
        host = AgentOS(extension_manifest={"packs": [{"package": "pii-guard", "options": options}]})
        opened.append(host)
        assert (await host.initialize()).failed == []
        return host

    yield make
    for host in opened:
        await host.shutdown()


async def test_it_is_hidden_on_both_ways_unless_it_is_allowed(hosts):
    host, lenient = await hosts(), await hosts(allowed=["ann@example.org"], kinds=["email", "card"])
    outcomes = [await host.guardrails.check_input(TEXT), await host.guardrails.check_output(TEXT)]

    assert [(one.action, one.value) for one in outcomes] == [(GuardAction.SANITIZE, HIDDEN)] * 2
    assert (await lenient.guardrails.check_output(TEXT)).value == TEXT.replace("4111 1111 1111 1111", "[card]")


@pytest.mark.parametrize(("action", "value"), [("block", ""), ("flag", TEXT)])
async def test_what_is_done_is_the_operators_choice(hosts, action, value):
    host = await hosts(action=action)
    outcome = await host.guardrails.check_output(TEXT)

    assert (outcome.action, outcome.value) == (GuardAction(action), value)
    assert "ann" not in outcome.verdicts[0].verdict.reason


async def test_not_a_digit_leaves_a_stream(hosts):
    host, chance = await hosts(), random.Random(5)
    for _ in range(50):
        text = f"{'word ' * chance.randrange(200)}{TEXT}{' word' * chance.randrange(200)}"
        chunks = []
        while "".join(chunks) != text:
            begin = len("".join(chunks))
            chunks.append(text[begin : begin + chance.randint(1, 40)])

        assert "".join([part async for part in host.guardrails.stream(chunks)]) == text.replace(TEXT, HIDDEN)


async def test_the_tools_never_repeat_what_they_find(hosts):
    host = await hosts()
    scanned = await host.tools.process_tool_call(ToolCall("pii_scan", {"text": TEXT}))
    redacted = await host.tools.process_tool_call(ToolCall("pii_redact", {"text": TEXT}))

    assert [(one["type"], TEXT[one["start"] : one["end"]]) for one in scanned.output] == [
        ("card", "4111 1111 1111 1111"),
        ("email", "ann@example.org"),
    ]
    assert redacted.output == HIDDEN
    assert "ann@" not in repr((scanned, redacted))


async def test_a_wrong_option_fails_the_load():
    host = AgentOS(extension_manifest={"packs": [{"package": "pii-guard", "options": {"kind": ["email"]}}]})
    report = await host.initialize()
    await host.shutdown()

    assert ["options.kind" in str(one) for one in report.failed] == [True]
