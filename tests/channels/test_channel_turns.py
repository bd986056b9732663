"""Answers by turns with a model, by the manifest alone; and calls that their principal decides on in the channel."""

import asyncio
import contextlib
import json
import re
import sqlite3

import pytest
from channelling import Post, message, on_channels
from model_wires import WIRES, Says, serving

from agentos import PUBLIC, GuardVerdict, guardrail, tool

DONE = []


@tool(effect="mutate", required_access=PUBLIC)
async def write_letter(to: str) -> str:
    """Write a letter."""
    DONE.append(to)
    return f"sent to {to}"


CALL = Says(calls=(("call_1", "write_letter", '{"to": "bob"}'),))


@pytest.fixture
def endpoint():
    DONE.clear()
    with serving(WIRES["chat"]) as endpoint:
        yield endpoint


def manifest(endpoint, **more):
    channel = {"senders": {"u1": "ann", "u2": "bob"}, "model": "any", "baseUrl": f"{endpoint.url}/v1", **more}
    return {
        "principals": {"ann": {}, "bob": {}},
        "personas": {"pirate": {"systemPrompt": "Talk like a pirate."}},
        "channels": {"post": channel},
    }


async def test_a_turn_answers_with_the_persona_and_what_the_sender_said_before(endpoint):
    post = Post()
    endpoint.script = [Says("Ahoy!"), Says("Not mine."), Says("You said hello.")]
    async with on_channels(post, manifest=manifest(endpoint, persona="pirate")):
        for id, (text, sender) in enumerate((("hello", "u1"), ("psst", "u2"), ("what did I say?", "u1"))):
            await post.deliver(message(id, text, sender=sender))
            await post.until(lambda id=id: len(post.sent) == id + 1)

    assert [one.text for one in post.sent] == ["Ahoy!", "Not mine.", "You said hello."]
    asked = endpoint.requests[-1]["messages"]
    assert "Talk like a pirate." in asked[0]["content"]
    assert [one["content"] for one in asked[1:]] == ["hello", "Ahoy!", "what did I say?"]


async def test_a_call_that_waits_is_approved_in_the_channel_by_its_principal_alone(endpoint, store_url):
    post = Post()
    endpoint.script = [CALL, Says("Bob has your letter.")]
    async with on_channels(post, manifest=manifest(endpoint, approvals=True), store=store_url, more=[write_letter]):
        await post.deliver(message(1, "write to bob"))
        await post.until(lambda: len(post.sent) == 1)
        id = re.search(r"approve ([0-9a-f]{8})", post.sent[0].text)[1]
        await post.deliver(message(2, f"approve {id}", sender="u2"))
        await post.until(lambda: len(post.sent) == 2)
        assert (post.sent[1].text, DONE) == (f"Nothing that waits for you here is called {id}.", [])
        await post.deliver(message(3, f"Approve {id}"))
        await post.until(lambda: len(post.sent) == 4)

    assert DONE == ["bob"]
    assert [(one.text, one.reply_to) for one in post.sent[2:]] == [("Approved.", "3"), ("Bob has your letter.", "1")]
    assert endpoint.requests[-1]["messages"][-1] == {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": "sent to bob",
    }


async def test_the_one_who_is_asked_in_the_channel_is_told_what_guardrails_flagged(endpoint):
    @guardrail(stage="tool_call")
    async def wary(call, context):
        return GuardVerdict.flag("the name is not the user's", "TAINT")

    post = Post()
    endpoint.script = [CALL]
    async with on_channels(post, manifest=manifest(endpoint, approvals=True), more=[write_letter, wary]):
        await post.deliver(message(1, "write to bob"))
        await post.until(lambda: len(post.sent) == 1)

    assert "\nFlagged: wary: the name is not the user's\n" in post.sent[0].text


async def test_a_call_that_waits_is_rejected_in_the_channel(endpoint):
    post = Post()
    endpoint.script = [CALL, Says("Then not.")]
    async with on_channels(post, manifest=manifest(endpoint, approvals=True), more=[write_letter]):
        await post.deliver(message(1, "write to bob"))
        await post.until(lambda: len(post.sent) == 1)
        id = re.search(r"reject ([0-9a-f]{8})", post.sent[0].text)[1]
        await post.deliver(message(2, f"reject {id}: he moved"))
        await post.until(lambda: len(post.sent) == 3)

    assert ([one.text for one in post.sent[1:]], DONE) == (["Rejected.", "Then not."], [])
    assert "he moved" in endpoint.requests[-1]["messages"][-1]["content"]


async def test_unless_the_manifest_allows_it_no_call_is_decided_on_in_the_channel(endpoint):
    post = Post()
    endpoint.script = [CALL, Says("I can't do that."), Says("Bob has your letter.")]
    async with on_channels(post, manifest=manifest(endpoint), more=[write_letter]) as [host]:
        await post.deliver(message(1, "write to bob"))
        await post.until(lambda: len(post.sent) == 1)
        [proposal] = await host.approvals.pending()
        await post.deliver(message(2, f"approve {proposal.id[:8]}"))
        await post.until(lambda: len(post.sent) == 2)
        assert ("approve" in post.sent[0].text, post.sent[1].text, DONE) == (False, "I can't do that.", [])

        await host.approvals.approve(proposal.id)
        await post.until(lambda: len(post.sent) == 3)
    assert (post.sent[2].text, post.sent[2].reply_to) == ("Bob has your letter.", "1")


async def test_a_model_that_is_away_leaves_a_dead_letter(endpoint):
    post = Post()
    endpoint.script = [Says("never")]
    async with on_channels(post, manifest=manifest(endpoint, baseUrl="http://127.0.0.1:9/v1")) as [host]:
        await post.deliver(message(1))
        while not (letters := await host.channels.letters()):
            await post.until(lambda: True)

    assert [(one.state, one.reason.split(":")[0]) for one in letters] == [("failed", "APIConnectionError")]


@pytest.mark.parametrize(
    "turn",
    [
        "{",
        "null",
        "[]",
        '"turn"',
        '{"turn": "x"}',
        '{"turn": "x", "pending": 3, "seal": ""}',
        "[" * 100000,
        "",
        None,
        '{"turn": "%s", "pending": [], "seal": "00"}',
    ],
)
async def test_a_turn_that_can_not_be_read_any_more_leaves_a_dead_letter(endpoint, sqlite_url, turn):
    post = Post()
    endpoint.script = [CALL, Says("Good day."), *[Says("Bob has your letter.")] * 9]
    async with on_channels(post, manifest=manifest(endpoint), store=sqlite_url, more=[write_letter]) as [host]:
        await post.deliver(message(1, "write to bob"))
        await post.until(lambda: len(post.sent) == 1)
        with contextlib.closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as database, database:
            [(kept,)] = database.execute("SELECT turn FROM channel_inbox WHERE state = 'parked'").fetchall()
            written = turn % json.loads(kept)["turn"] if turn and "%s" in turn else turn
            database.execute("UPDATE channel_inbox SET turn = ?", (written,))
        [proposal] = await host.approvals.pending()
        await host.approvals.approve(proposal.id)
        async with asyncio.timeout(60):
            while not (letters := await host.channels.letters()):
                await asyncio.sleep(0.02)
        await post.deliver(message(2, "hello"))
        await post.until(lambda: len(post.sent) == 2)

    assert [(letter.state, letter.reason) for letter in letters] == [("failed", "it was changed in the store")]
    assert [one.text for one in post.sent[1:]] == ["Good day."]
