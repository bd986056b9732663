"""The chat of the studio: a model behind a real endpoint, calls as cards, approvals in place, and whose it is."""

import asyncio

import pytest
from browsing import browsing
from model_wires import Says
from studios import ANN, GUEST, Visitor, served
from talking import KEY, WRITE, chatting

from agentos.studio.studio_chats import KEPT, ChatError


async def settled(chat):
    """Wait until nothing is under way, or the conversation waits for a person."""
    while chat.is_answering:
        await asyncio.sleep(0)


def shown(chat):
    return [(one.kind, one.text or (one.call.name if one.call else "")) for one in chat.entries]


def nothing(*topics):
    """Tell nobody."""


async def test_a_conversation_goes_on_with_what_was_said_before():
    async with chatting(Says("Good day."), Says("And you?")) as (host, model, endpoint, _):
        chat = model.begin(ANN, None)
        for text in ("hello", "how are you"):
            model.say(host, ANN, chat, text, nothing)
            await settled(chat)

    assert shown(chat) == [("user", "hello"), ("model", "Good day."), ("user", "how are you"), ("model", "And you?")]
    assert [one["role"] for one in endpoint.requests[-1]["messages"]] == ["system", "user", "assistant", "user"]
    assert endpoint.faults == []


async def test_a_call_that_waits_is_gone_on_with_when_somebody_decided():
    async with chatting(Says("", (WRITE,)), Says("Done.")) as (host, model, endpoint, written):
        chat = model.begin(ANN, None)
        model.say(host, ANN, chat, "write", nothing)
        await settled(chat)
        (proposal,) = await host.approvals.pending(ANN.key)
        assert (proposal.session, written) == (chat.id, [])
        going_on = chat.task
        await host.approvals.approve(proposal.id)
        await asyncio.wait([going_on])

    assert written == [{"path": "a.txt", "text": "good day"}]
    assert shown(chat)[-1] == ("model", "Done.")
    assert [one.result.success for one in chat.entries if one.kind == "call"] == [True]
    assert endpoint.faults == []


async def test_a_conversation_that_was_stopped_is_valid():
    async with chatting(Says("", (WRITE,)), Says("Well.")) as (host, model, endpoint, written):
        chat = model.begin(ANN, None)
        model.say(host, ANN, chat, "write", nothing)
        stopped = chat.task
        model.stop(chat)
        await asyncio.wait([stopped])
        await asyncio.sleep(0)
        model.say(host, ANN, chat, "write after all", nothing)
        await settled(chat)
        model.say(host, ANN, chat, "never mind", nothing)
        await settled(chat)

    assert written == []
    assert shown(chat)[-1] == ("model", "Well.")
    assert endpoint.faults == []


async def test_a_persona_narrows_the_tools_that_the_model_is_shown():
    async with chatting(Says("Hm.")) as (host, model, endpoint, _):
        chat = model.begin(ANN, "quiet")
        model.say(host, ANN, chat, "hello", nothing)
        await settled(chat)

    assert [one["function"]["name"] for one in endpoint.requests[0]["tools"]] == ["look"]


async def test_conversations_are_of_one_principal_and_bounded():
    async with chatting(Says("x")) as (_, model, _, _):
        first = model.begin(ANN, None)
        with pytest.raises(ChatError, match="no such conversation"):
            model.chat(GUEST, first.id)
        for _ in range(KEPT + 5):
            model.begin(ANN, None)

        assert len(model.chats_of(ANN)) == KEPT
        assert model.chats_of(GUEST) == []


async def test_an_endpoint_that_fails_is_told_without_the_key():
    async with chatting(Says("x")) as (host, model, endpoint, _):
        endpoint.wire.fault = lambda body: f"no, {KEY} is wrong"
        await host.extensions.set_secret("openai.apiKey", KEY)
        chat = model.begin(ANN, None)
        model.say(host, ANN, chat, "hello", nothing)
        await settled(chat)

    kind, text = shown(chat)[-1]
    assert (kind, "The model did not answer" in text, KEY in text) == ("note", True, False)


async def test_a_conversation_of_somebody_else_is_unknown_on_the_page():
    async with chatting(Says("x")) as (host, model, _, _):
        of_ann = model.begin(ANN, None)
        async with served(host, GUEST, settings={"chat": model}) as site, Visitor(site) as visitor:
            await visitor.sign_in()
            log = await visitor.get(f"/chat/log?id={of_ann.id}")
            said = [
                await visitor.submit(f"/chat/{act}", {"id": of_ann.id, "text": "hi"})
                for act in ("say", "stop", "forget")
            ]

    assert [one.status_code for one in (log, *said)] == [409] * 4


async def test_without_a_model_the_page_says_how_to_name_one():
    async with chatting(Says("x")) as (host, _, _, _), served(host) as site, Visitor(site) as visitor:
        await visitor.sign_in()
        page = await visitor.get("/chat")

    assert "agentos studio --model" in page.text


@pytest.mark.proof
async def test_a_person_talks_sees_cards_and_edits_and_approves_in_place():
    script = [Says("I look.", (("c0", "look", "{}"),)), Says("", (WRITE,)), Says("It is **written**.")]
    async with (
        chatting(*script) as (host, model, endpoint, written),
        served(host, settings={"chat": model}) as site,
        browsing(site) as browser,
    ):
        page = await browser.page()
        await page.goto(f"{site.base}/chat")
        await page.get_by_label("Message").fill("write me a note")
        await page.get_by_role("button", name="Send").click()
        await page.get_by_role("article", name="notes:look").get_by_text("<b>Dogs</b>").wait_for()
        waits = page.get_by_role("article", name="notes:write waits")
        await waits.get_by_text("Edit the arguments").click()
        await waits.get_by_role("button", name="Change the arguments").click()
        await waits.get_by_role("textbox", name="text").fill("good night")
        await waits.get_by_role("button", name="Propose notes:write").click()
        await page.get_by_role("article", name="notes:write waits").get_by_text("good night").first.wait_for()
        await page.get_by_role("button", name="Approve notes:write").click()
        await page.get_by_role("strong").filter(has_text="written").wait_for()
        text = await page.content()

    assert written == [{"path": "a.txt", "text": "good night"}]
    assert KEY not in text
    assert (browser.complaints, browser.outside, endpoint.faults) == ([], [], [])
