"""Who is let in, what is refused, and what the page may do."""

import re
import uuid
from pathlib import Path

import agentos_pack_webchat
import pytest
from agentos_pack_webchat.chat_events import ChatEvents, WebchatOptions
from agentos_pack_webchat.chat_handler import MessageRate
from agentos_pack_webchat.chat_requests import ChatRefusedError

FILES = Path(agentos_pack_webchat.__file__).parent / "page"
PAGES = ("/packs/webchat/webchat/", "/packs/webchat/webchat-page/")


async def test_without_a_token_nothing_but_the_page_is_there(chatting):
    async with chatting() as chat:
        nobody = chat.page(None)
        asked = [
            (await nobody.say("hello")).status_code,
            (await nobody.post("taken", {"conversation": "main", "last": ""})).status_code,
            (await nobody.get("events?conversation=main")).status_code,
            (await nobody.get("attachments/0-0/0?conversation=main")).status_code,
            (await nobody.get("")).status_code,
            (await chat.page("wrong").say("hello")).status_code,
        ]
        page = await chat.client.get(PAGES[1])
        beside = await chat.client.get(PAGES[1] + "messages")

    assert asked == [401] * 6
    assert (page.status_code, beside.status_code) == (200, 404)


async def test_unless_the_manifest_allows_it_the_page_is_behind_the_token_too(chatting):
    async with chatting(permissions=()) as chat:
        status = [(await chat.client.get(PAGES[1], headers=one)).status_code for one in ({}, chat.page("ann").headers)]

    assert status == [401, 200]


async def test_a_token_that_was_narrowed_lets_in_only_if_it_was_meant_for_this(chatting):
    async with chatting() as chat:
        answers = [await chat.page(token).say("hello") for token in ("narrow", "meant")]
        followed = await chat.page("narrow").get("events?conversation=main")

    assert [one.status_code for one in (*answers, followed)] == [403, 202, 403]
    assert answers[0].json()["error"] == "insufficient_scope"


async def test_pages_of_other_origins_are_refused_also_where_they_may_call_tools(chatting):
    async with chatting(allowed_origins=["https://friend.example"]) as chat:
        ann, own = chat.page("ann"), str(chat.client.base_url).rstrip("/")

        async def status(**headers):
            return (await ann.say("hello", **headers)).status_code

        assert await status(origin=own, sec_fetch_site="same-origin") == 202
        assert await status(origin="https://evil.example") == 403
        assert await status(origin="https://friend.example") == 403
        assert await status(origin="null") == 403
        assert await status(sec_fetch_site="cross-site") == 403
        assert await status(sec_fetch_site="same-site") == 403
        assert await status(origin=own, sec_fetch_site="cross-site") == 403
        asked = await ann.get("events?conversation=main", **{"sec-fetch-site": "cross-site"})
        assert asked.status_code == 403


async def test_a_form_of_a_page_posts_nothing(chatting):
    async with chatting() as chat:
        content = b'{"id": "%s", "conversation": "main", "text": "x"}' % str(uuid.uuid4()).encode()
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            headers = {**chat.page("ann").headers, "content-type": kind}
            answer = await chat.client.post(PAGES[0] + "messages", content=content, headers=headers)
            assert (answer.status_code, answer.json()["error"]) == (415, "unsupported_media_type"), kind


ID = "0b9e2d3c-1f6a-4c8e-9d7b-2a1f0e3d4c5b"


BOUNDS = [
    ({"id": ID, "conversation": "main", "text": "x" * 100}, 202),
    ({"id": ID, "conversation": "main", "text": "\u20ac" * 100}, 202),
    ({"id": ID, "conversation": "main", "text": "x" * 101}, 413),
    ({"id": ID, "conversation": "main", "text": "x" * 10_000}, 413),
    ({"id": ID, "conversation": "main", "text": " \n"}, 400),
    ({"id": ID, "conversation": "main", "text": 5}, 400),
    ({"id": ID, "conversation": "main"}, 400),
    ({"id": ID, "conversation": "main", "text": "x", "sender": "bob"}, 400),
    ({"id": "1", "conversation": "main", "text": "x"}, 400),
    ({"id": ID, "conversation": "../bob/main", "text": "x"}, 400),
    ({"id": ID, "conversation": "", "text": "x"}, 400),
    ({"id": ID, "conversation": "x" * 65, "text": "x"}, 400),
    ([], 400),
    ("text", 400),
]


async def test_a_message_has_its_form_and_its_bounds(chatting):
    async with chatting(options={"messageLength": 100}) as chat:
        for said, status in BOUNDS:
            assert (await chat.page("ann").post("messages", said)).status_code == status, said


async def test_what_is_no_json_is_refused(chatting):
    async with chatting() as chat:
        headers = {**chat.page("ann").headers, "content-type": "application/json"}
        for content in (b"{", b"\xff", b"[" * 50_000, b'{"id": "\\ud800"}'):
            answer = await chat.client.post(PAGES[0] + "messages", content=content, headers=headers)
            assert answer.status_code == 400


async def test_a_stream_names_its_conversation(chatting):
    async with chatting() as chat:
        for query in ("", "?conversation=", "?conversation=a/b", "?conversation=a&conversation=b"):
            assert (await chat.page("ann").get(f"events{query}")).status_code == 400, query


async def test_a_sender_has_so_many_pages_and_messages(chatting):
    async with chatting(options={"streams": 2, "messagesPerMinute": 2}) as chat:
        ann = chat.page("ann")
        async with ann.stream(), ann.stream():
            third = await ann.get("events?conversation=main")
            async with chat.page("bob").stream():
                pass
        async with ann.stream():
            posted = [await ann.say("x") for _ in range(3)]

    assert (third.status_code, third.headers["retry-after"]) == (429, "5")
    assert [one.status_code for one in posted] == [202, 202, 429]


async def test_other_methods_and_places_are_refused(chatting):
    async with chatting() as chat:
        ann = chat.page("ann")
        answers = [await ann.get("messages"), await ann.post("events", {}), await ann.post("", {}), await ann.get("x")]

    assert [one.status_code for one in answers] == [405, 405, 405, 404]
    assert [one.headers.get("allow") for one in answers] == ["POST", "GET", "GET, HEAD", None]


@pytest.mark.parametrize("place", PAGES)
async def test_the_page_loads_nothing_from_elsewhere_and_nothing_inline(chatting, place):
    async with chatting() as chat:
        ann = chat.page("ann").headers
        page, script, style = [await chat.client.get(place + name, headers=ann) for name in ("", "chat.js", "chat.css")]
        short = await chat.client.get(place.rstrip("/"), headers=ann)

    assert (short.status_code, short.headers["location"]) == (308, place)
    for one, kind in ((page, "text/html"), (script, "text/javascript"), (style, "text/css")):
        assert (one.status_code, one.headers["content-type"]) == (200, f"{kind}; charset=utf-8")
        assert one.headers["x-content-type-options"] == "nosniff"
        policy = dict(part.strip().partition(" ")[::2] for part in one.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert "unsafe" not in one.headers["content-security-policy"]
    text = "\n".join(one.text for one in (page, script, style))
    assert re.findall(r"(?:https?:)?//[a-z]", text.replace("https?:\\/\\/", "")) == []
    assert not re.search(r"\son[a-z]+=|\sstyle=|<style|<script(?! src=\"chat\.js\" defer></script>)", page.text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|localStorage", script.text)


def test_the_page_can_be_used_by_keyboard_and_screen_reader():
    page, style = (FILES / "index.html").read_text(), (FILES / "chat.css").read_text()
    fields = re.findall(r"<(?:input|textarea) id=\"([a-z]+)\"", page)

    assert 'role="log"' in page
    assert 'role="status"' in page
    assert '<html lang="en">' in page
    assert fields == ["token", "text"]
    assert all(f'<label for="{one}">' in page for one in fields)
    assert ":focus-visible" in style
    assert "prefers-color-scheme: dark" in style


# -- bounds in memory, by the clock ------------------------------------------------------------------------------------


def test_what_is_kept_is_bounded_by_age_and_bytes():
    now = [0.0]
    events = ChatEvents(WebchatOptions(kept_minutes=1, kept_bytes=1_000_000), lambda: now[0])
    events.add("ann/a", "1", {"text": "x" * 600_000})
    events.add("ann/b", "2", {"text": "x" * 600_000})
    by_bytes = [len(events.after(one, 0)) for one in ("ann/a", "ann/b")]
    now[0] = 61.0

    assert by_bytes == [0, 1]
    assert events.after("ann/b", 0) == []


def test_a_sender_may_write_again_after_a_minute():
    now = [0.0]
    rate = MessageRate(1, lambda: now[0])
    rate.count("ann")
    rate.count("bob")
    with pytest.raises(ChatRefusedError):
        rate.count("ann")
    now[0] = 60.0

    rate.count("ann")
