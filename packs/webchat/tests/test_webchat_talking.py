"""Talking over real HTTP: a message comes in, its answer goes to the pages of who asked, once, whatever happens."""

import asyncio
import uuid

import pytest

from agentos import ChannelMessage, Media
from agentos.mcp.http.serving import HTTPLimits

DEADLINE = 60.0


@pytest.mark.parametrize("isolation", ["inline", "process"])
async def test_a_message_is_answered_to_its_sender_as_the_principal_that_it_is(chatting, isolation):
    async with chatting(isolation=isolation) as chat:
        ann = chat.page("ann")
        async with ann.stream() as stream:
            id = str(uuid.uuid4())
            posted = await ann.say("hello", id=id)
            own, answer = await stream.next(), await stream.next()

    assert (posted.status_code, posted.json()) == (202, {"id": id, "isNew": True})
    assert (own["from"], own["id"], own["text"]) == ("you", id, "hello")
    assert (answer["from"], answer["replyTo"], answer["text"]) == ("agent", id, "ann: hello")


async def test_answers_go_to_nobody_but_their_sender_and_conversation(chatting):
    async with chatting() as chat:
        ann, bob = chat.page("ann"), chat.page("bob")
        async with ann.stream() as hers, ann.stream(conversation="other") as her_other, bob.stream() as his:
            await ann.say("a secret")
            assert (await hers.answer())["text"] == "ann: a secret"
            await bob.say("mine")
            await ann.say("elsewhere", conversation="other")

            heard = [(await one.next())["text"] for one in (his, her_other)]
            assert (await his.answer())["text"] == "bob: mine"

    assert heard == ["mine", "elsewhere"]


async def test_a_message_that_is_posted_again_is_answered_once(chatting):
    asked = []

    async def answer(message, principal):
        asked.append(message.text)
        return f"answer to {message.text}"

    async with chatting(answer) as chat:
        ann = chat.page("ann")
        async with ann.stream() as stream:
            id = str(uuid.uuid4())
            answers = [await ann.say("once", id=id) for _ in range(5)]
            await ann.say("last")
            texts = [(await stream.answer())["text"] for _ in range(2)]

    assert [one.json()["isNew"] for one in answers] == [True, False, False, False, False]
    assert texts == ["answer to once", "answer to last"]
    assert asked == ["once", "last"]


async def test_two_senders_may_use_the_same_id(chatting):
    async with chatting() as chat:
        id = str(uuid.uuid4())
        taken = [(await chat.page(who).say("x", id=id)).json()["isNew"] for who in ("ann", "bob")]

    assert taken == [True, True]


async def test_a_page_goes_on_where_it_was(chatting):
    async with chatting() as chat:
        ann = chat.page("ann")
        async with ann.stream() as stream:
            await ann.say("one")
            assert (await stream.answer())["text"] == "ann: one"
            last = stream.last
            await ann.say("two")
            assert (await stream.answer())["text"] == "ann: two"
        async with ann.stream(last=last) as stream:
            missed = [(await stream.next())["text"] for _ in range(2)]
        async with ann.stream(last="0123456789abcdef-9") as stream:  # of a process that is gone
            everything = [(await stream.next())["text"] for _ in range(4)]

    assert missed == ["two", "ann: two"]
    assert everything == ["one", "ann: one", "two", "ann: two"]


async def test_an_answer_waits_for_a_page_and_is_then_there_at_once(chatting):
    async with chatting() as chat:
        ann = chat.page("ann")
        await ann.say("is anybody there?")
        await until_waiting(chat.host)

        async with ann.stream() as stream:
            answer = await stream.answer()
            await until_sent(chat.host)
            await ann.say("thanks")
            assert (await stream.answer())["text"] == "ann: thanks"

    assert answer["text"] == "ann: is anybody there?"


async def test_an_answer_that_no_page_took_is_sent_after_a_restart(chatting, tmp_path):
    store = f"sqlite:///{tmp_path}/store.db"
    async with chatting(store=store) as chat:
        ann = chat.page("ann")
        async with ann.stream() as stream:
            await ann.say("hello")
            assert (await stream.answer(takes=False))["text"] == "ann: hello"
            await chat.stop()
    async with chatting(store=store) as chat:
        assert await chat.host.channels.letters() == []
        async with chat.page("ann").stream() as stream:
            assert (await stream.answer())["text"] == "ann: hello"
        await until_sent(chat.host)


async def test_what_was_not_answered_when_the_host_ended_is_answered_by_the_next(chatting, tmp_path):
    store = f"sqlite:///{tmp_path}/store.db"
    begun = asyncio.Event()

    async def never(message, principal):
        begun.set()
        await asyncio.Event().wait()

    async with chatting(never, store=store) as chat:
        assert (await chat.page("ann").say("hello")).status_code == 202
        await begun.wait()
    async with chatting(store=store) as chat, chat.page("ann").stream() as stream:
        assert (await stream.answer())["text"] == "ann: hello"


async def test_streams_end_when_the_server_stops(chatting):
    async with chatting() as chat, chat.page("ann").stream() as stream:
        await chat.stop()

        assert await stream.end() == []


async def test_streams_end_when_the_channel_stops_and_the_page_is_told_why(chatting):
    async with chatting() as chat:
        ann = chat.page("ann")
        async with ann.stream() as stream:
            await chat.host.channels.close()
            assert await stream.end() == []
        posted, asked = await ann.say("hello"), await ann.get("events?conversation=main")

    assert [(one.status_code, one.json()["error"]) for one in (posted, asked)] == [(503, "channel_off")] * 2


async def test_a_stream_that_the_server_ends_goes_on_without_loss(chatting):
    async with chatting(limits=HTTPLimits(stream=0.3)) as chat:
        ann = chat.page("ann")
        async with ann.stream() as stream:
            await ann.say("hello")
            heard = await stream.end()
        seen, last = {one["id"] for one in heard}, stream.last
        while len(seen) < 2:
            async with ann.stream(last=last) as stream:
                seen |= {one["id"] for one in await stream.end()}

    assert len(seen) == 2


async def test_a_stream_shows_that_it_is_alive(chatting):
    async with chatting(options={"heartbeat": 0.05}) as chat, chat.page("ann").stream() as stream:
        async with asyncio.timeout(DEADLINE):
            async for line in stream._lines:
                if line == ": still here":
                    break


async def test_attachments_are_saved_by_their_sender_alone_and_never_shown(chatting):
    async def answer(message, principal):
        attached = [
            Media("text/html", data=b"<script>alert(1)</script>", name="a/b \u00e9.html"),
            Media("image/png", url="https://example.org/a.png"),
            Media("text/plain", url="javascript:alert(1)"),
        ]
        return ChannelMessage(channel="webchat", conversation="x", text="see", attachments=attached)

    async with chatting(answer) as chat:
        ann, bob = chat.page("ann"), chat.page("bob")
        async with ann.stream() as stream:
            await ann.say("files?")
            said = await stream.answer()
            place = f"attachments/{stream.last}/0?conversation=main"
            saved = await ann.get(place)
            others = [
                (await page.get(path)).status_code
                for page, path in (
                    (bob, place),
                    (ann, place.replace("main", "other")),
                    (ann, place.replace("/0?", "/1?")),
                    (ann, place.replace("/0?", "/7?")),
                )
            ]

    assert said["attachments"] == [
        {"mime": "text/html", "name": "a/b \u00e9.html", "size": 25},
        {"mime": "image/png", "url": "https://example.org/a.png"},
        {"mime": "text/plain"},
    ]
    assert (saved.content, saved.headers["content-type"]) == (b"<script>alert(1)</script>", "application/octet-stream")
    assert saved.headers["content-disposition"] == "attachment; filename*=UTF-8''a_b%20%C3%A9.html"
    assert "sandbox" in saved.headers["content-security-policy"]
    assert others == [404, 404, 404, 404]


async def test_a_host_may_write_first(chatting):
    async with chatting() as chat, chat.page("ann").stream() as stream:
        await chat.host.channels.send(ChannelMessage(channel="webchat", conversation="ann/main", text="a reminder"))

        assert (await stream.answer())["text"] == "a reminder"


async def test_a_conversation_that_no_page_can_have_is_a_dead_letter(chatting):
    async with chatting() as chat:
        await chat.host.channels.send(ChannelMessage(channel="webchat", conversation="nowhere", text="x"))
        async with asyncio.timeout(DEADLINE):
            while not (letters := await chat.host.channels.letters()):  # noqa: ASYNC110 - it tells no event
                await asyncio.sleep(0.01)

    assert [one.state for one in letters] == ["dead"]


async def test_somebody_whom_the_manifest_does_not_map_is_answered_by_nothing(chatting):
    asked = []

    async def answer(message, principal):
        asked.append(message.sender)
        return "x"

    async with chatting(answer) as chat:
        await chat.page("eve").say("let me in")
        ann = chat.page("ann")
        async with ann.stream() as stream:
            await ann.say("hello")
            await stream.answer()

    assert asked == ["ann"]


async def test_of_a_conversation_the_last_messages_are_kept(chatting):
    async with chatting(lambda message, principal: None, options={"keptMessages": 3}) as chat:
        ann = chat.page("ann")
        for count in range(5):
            await ann.say(str(count))
        async with ann.stream() as stream:
            texts = [(await stream.next())["text"] for _ in range(3)]

    assert texts == ["2", "3", "4"]


async def until_waiting(host):
    await until(host, lambda one: (one.waiting, one.to_send) == (0, 1))


async def until_sent(host):
    await until(host, lambda one: (one.waiting, one.to_send, one.letters) == (0, 0, 0))


async def until(host, condition):
    async with asyncio.timeout(DEADLINE):
        while not condition((await host.channels.known())[0]):  # noqa: ASYNC110 - it tells no event
            await asyncio.sleep(0.01)
