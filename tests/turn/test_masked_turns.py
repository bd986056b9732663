"""Known secrets leave by no turn: not by what a model says, streamed or not, nor by its calls, its plan or its end."""

import base64
import html
import json
from urllib.parse import quote

import pytest
from model_wires import Says, tools_of

from agentos import AgentOS, Descriptor, ExtensionPack, Plan, PlanStep
from agentos.secrets.masked_stream import MaskedStream
from agentos.secrets.masking import Masker
from agentos.testing import capture_events

SECRET = 's3cr3t-"v4lue"-of-x'
PHRASE = "correct horse\nbattery staple"
CHINESE = "密码是天王盖地虎"
KNOWN = {"x.key": SECRET, "y.key": PHRASE, "z.key": CHINESE}
SPELLINGS = {
    "plain": str,
    "json": lambda value: json.dumps(value),
    "html": html.escape,
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "lines of base64": lambda value: base64.encodebytes((value * 5).encode()).decode(),
    "hex": lambda value: value.encode().hex(),
    "quoted": lambda value: quote(value, safe=""),
}


class Planner:
    async def plan(self, goal, context):
        return Plan([PlanStep("1", f"use {SECRET}")])

    async def refine(self, plan, results, context):
        return Plan([*plan.steps, PlanStep(f"{len(plan.steps) + 1}", f"and then {SECRET}")])


@pytest.mark.parametrize("is_streamed", [True, False])
@pytest.mark.parametrize("value", [SECRET, PHRASE])
async def test_nothing_of_a_turn_has_a_known_value(wire, endpoint, client, log, is_streamed, value):
    endpoint.script = [
        Says("", (("c1", "add", json.dumps({"a": 1, "b": value})),)),
        Says(f"It is {value}, as you know."),
    ]
    async with AgentOS(extension_secrets=KNOWN) as host:
        for id in KNOWN:
            host.extensions.secret_sources.find(id, {})
        await host.tools_service().sync(tools_of(log))
        await host.extensions.load_pack(ExtensionPack("p", "1", [Descriptor("planning-strategy", "s", Planner())]))
        options = {"model": "m", "plan": "s", **wire.options}
        told = []
        with capture_events(host.extensions) as heard:
            if is_streamed:
                async for event in host.turn(client, wire.asked("go"), stream=True, **options):
                    told.append((event.type, event.text, event.call and event.call.arguments, event.plan))
                    turn = event.turn
            else:
                turn = await host.turn(client, wire.asked("go"), **options)
        shown = [turn.content, turn.response, turn.plan, turn.results, told, list(heard)]

    assert turn.content == "It is ***, as you know."
    assert not [part for part in (value, *value.split("\n")) if part in json.dumps(shown, default=repr)]
    assert not is_streamed or "".join(text for _, text, *_ in told) == turn.content
    assert not is_streamed or {"tool_call", "plan"} <= {kind for kind, *_ in told}
    assert value not in str(wire.key(turn.messages[-1:]))


@pytest.fixture
def masker():
    masker = Masker()
    for value in KNOWN.values():
        masker.learn(value)
    return masker


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("value", KNOWN.values())
def test_a_value_that_comes_in_parts_is_masked_as_in_one(masker, value, spelling, size):
    text = f"One may say: {SPELLINGS[spelling](value)} and then again,\n{SPELLINGS[spelling](value)} it was."
    stream = MaskedStream(masker)
    parts = [stream.feed(text[at : at + size]) for at in range(0, len(text), size)]

    assert "".join([*parts, stream.rest()]) == masker.mask(text)


def test_words_leave_as_soon_as_they_are_whole(masker):
    stream = MaskedStream(masker)

    assert [stream.feed(part) for part in ("Good ", "day, s3", "cr", "eam! ", "corre", "ct hor", "ses. ")] == [
        "Good ",
        "day, ",
        "",
        "s3cream! ",
        "",
        "",
        "correct horses. ",
    ]
    assert stream.feed("天气很好") == "天气很好"


def test_without_known_values_nothing_is_held_back():
    stream = MaskedStream(Masker())

    assert [stream.feed(part) for part in ("wo", "rd")] == ["wo", "rd"]


def test_a_word_without_end_leaves_masked_all_the_same(masker):
    stream, text = MaskedStream(masker), f"{'a' * 30_000}{SECRET}{'b' * 30_000}"
    parts = [stream.feed(text[at : at + 100]) for at in range(0, len(text), 100)]

    assert max(map(len, parts)) < 20_000
    assert sum(map(len, parts)) > 40_000
    assert "".join([*parts, stream.rest()]) == masker.mask(text)
