"""Known secrets leave by no payload: what guardrails, processors, memories, strategies, personas and channels say."""

import asyncio
import contextlib
import sqlite3

import pytest
from channelling import Post, message, on_channels

from agentos import (
    AgentOS,
    ChannelMessage,
    Descriptor,
    ExtensionPack,
    GuardVerdict,
    Media,
    MemoryHit,
    MemoryStats,
    NotSentError,
    Persona,
    Plan,
    PlanStep,
    Response,
    guardrail,
)
from agentos.testing import capture_events

SECRET = "s3cr3t-v4lue-of-x"
KNOWN = {"extension_secrets": {"x.key": SECRET}}


@contextlib.asynccontextmanager
async def knowing(*offered):
    """Give a host that knows the secret, with a pack of these."""
    async with AgentOS(budget=None, mode="auto", **KNOWN) as host:
        host.extensions.secret_sources.find("x.key", {})
        outcome = await host.extensions.load_pack(ExtensionPack("p", "1", offered))
        assert outcome.status == "loaded", outcome
        yield host


@pytest.mark.parametrize("stage", ["input", "output"])
@pytest.mark.parametrize("verdict", [GuardVerdict.block, GuardVerdict.flag])
async def test_what_a_guardrail_says_is_masked(stage, verdict):
    @guardrail(stage)
    async def telling(text, context):
        return verdict(f"found {SECRET}", f"code-{SECRET}")

    async with knowing(telling) as host:
        outcome = await getattr(host.guardrails, f"check_{stage}")("hello")

    assert "found ***" in str(outcome.verdicts)
    assert SECRET not in repr(outcome)


async def test_what_a_guardrail_puts_in_the_place_of_a_text_is_masked():
    @guardrail("input", sanitizes=True)
    async def telling(text, context):
        return GuardVerdict.sanitize(f"use {SECRET}", "better")

    async with knowing(telling) as host:
        assert (await host.guardrails.check_input("hello")).value == "use ***"


@pytest.mark.parametrize("answer", [f"it is {SECRET}", Response(f"it is {SECRET}", metadata={"key": SECRET})])
async def test_what_a_processor_answers_is_masked(answer):
    async with knowing(Descriptor("response-processor", "r", lambda response, context: answer)) as host:
        response = await host.respond("hello")

    assert response.text == "it is ***"
    assert SECRET not in repr(response)


class Telling:
    """A memory-provider that knows too much, and keeps what it is given."""

    def __init__(self):
        self.given = []

    async def remember(self, record):
        self.given.append(record)
        return "1"

    async def recall(self, query, *, scope, limit):
        self.given.append(query)
        return [MemoryHit("1", f"it is {SECRET}", scope.principal, tags=[SECRET], metadata={"key": SECRET})]

    async def forget(self, ids, *, scope):
        return 0

    async def stats(self, scope):
        return MemoryStats(1, details={"url": f"db://{SECRET}"})


async def test_what_a_memory_is_given_and_gives_is_masked():
    provider = Telling()
    async with knowing(Descriptor("memory-provider", "m", provider)) as host:
        await host.memory.remember("a text", tags=[SECRET], metadata={"key": SECRET})
        hits = await host.memory.recall(f"where is {SECRET}?")
        stats = await host.memory.stats()
        with pytest.raises(ValueError, match="namespace: it has a known secret in it"):
            await host.memory.recall("x", namespace=SECRET)

    assert hits[0].text == "it is ***"
    assert SECRET not in repr((provider.given, hits, stats))


class Planner:
    async def plan(self, goal, context):
        return Plan([PlanStep("1", f"use {SECRET}")])

    async def refine(self, plan, results, context):
        return plan


async def test_what_a_strategy_plans_is_masked():
    async with knowing(Descriptor("planning-strategy", "s", Planner())) as host:
        with capture_events(host.extensions) as events:
            plan = await host.planning.plan("a goal")

    assert plan.as_text() == "[ ] 1. use ***"
    assert "use ***" in repr(list(events))
    assert SECRET not in repr(list(events))


@pytest.mark.parametrize("prompt", [f"use {SECRET}", lambda context: f"use {SECRET}"])
async def test_what_a_persona_tells_a_model_is_masked(prompt):
    async with knowing(Persona("p", system_prompt=prompt)) as host:
        assert await host.personas.prompt("p") == "use ***"


async def test_what_a_channel_is_given_and_says_is_masked(tmp_path):
    class Receipts(Post):
        async def send(self, message):
            await super().send(message)
            return f"receipt {SECRET}"

    place, post = tmp_path / "agentos.db", Receipts()
    post.troubles = [None, NotSentError(f"never {SECRET}", is_final=True), ValueError(f"no {SECRET}")]
    media = Media(url=f"https://example.org/{SECRET}", mime="text/html", name=f"{SECRET}.html")
    async with on_channels(post, store=place, **KNOWN) as [host]:
        host.extensions.secret_sources.find("x.key", {})
        host.channels.handle(lambda message, principal: _with(message, media))
        for id in (1, 2, 3):
            await post.deliver(message(id))
        await post.until(lambda: not post.troubles)
        letters = await _letters(host, 2)
    with contextlib.closing(sqlite3.connect(place)) as database:
        rows = [*database.execute("SELECT * FROM channel_outbox"), *database.execute("SELECT * FROM channel_inbox")]

    assert post.sent[0].attachments[0].name == "***.html"
    assert SECRET not in repr((post.sent[0].attachments[0].url, letters, rows))


def _with(message, media):
    return ChannelMessage(channel="post", conversation="c1", text="here", attachments=[media])


async def _letters(host, count):
    async with asyncio.timeout(60):
        while len(found := await host.channels.letters()) < count:
            await asyncio.sleep(0.02)
    return found
