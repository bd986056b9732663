"""The channel as people and hosts see it: events over served HTTP, and a Slack of our own on loopback."""

import asyncio
import logging
import socket
import time

import pytest
from agentos_pack_slack.signed_requests import signature_of

from agentos import AgentOS, ChannelMessage, Media

from .conftest import ANN, SIGNING, TOKEN, event, refusal, served


async def letters(host):
    """Wait for dead letters."""
    async with asyncio.timeout(60):
        while not (found := await host.channels.letters()):  # noqa: ASYNC110 - they come without an event
            await asyncio.sleep(0.01)
    return found


def texts(slack):
    return [one["text"] for one in slack.sent]


def channel_of(host):
    return host.extensions.registry("messaging-channel").get_active("slack").payload


# -- in and out ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("isolation", ["inline", "process"])
async def test_a_message_is_answered_where_it_was_written(hosting, slack, until, isolation):
    async with hosting(isolation=isolation) as (_, sender):
        answer = await sender.send(event(7, "good day &lt;b&gt; &amp;amp;"))
        await until(lambda: slack.sent)

    assert (answer.status_code, answer.content) == (200, b"")
    assert slack.sent == [
        {
            "channel": "D1",
            "text": "ann: good day &lt;b&gt; &amp;amp;",
            "parse": "none",
            "link_names": False,
            "unfurl_links": False,
            "unfurl_media": False,
        }
    ]


async def seen_of(hosting, until, *events):
    seen = []

    async def note(message, principal):
        seen.append(message)

    async with hosting(handler=note) as (_, sender):
        statuses = [(await sender.send(one)).status_code for one in events]
        await sender.send(event(999, "last"))
        await until(lambda: any(one.text == "last" for one in seen))
    assert set(statuses) == {200}
    return sorted((one for one in seen if one.text != "last"), key=lambda one: one.id)


async def test_what_is_written_in_a_channel_is_answered_in_its_thread(hosting, slack, until):
    async with hosting() as (_, sender):
        await sender.send(event(1, "<@U0BOT> top", kind="app_mention", channel="C1"))
        await sender.send(event(2, "reply", channel="C1", thread_ts="1600000000.000001"))
        await sender.send(event(3, "direct", thread_ts="1600000000.000002"))
        await until(lambda: len(slack.sent) == 3)

    assert sorted((one["text"], one["channel"], one["thread_ts"]) for one in slack.sent) == [
        ("ann: direct", "D1", "1600000000.000002"),
        ("ann: reply", "C1", "1600000000.000001"),
        ("ann: top", "C1", "1700000000.000001"),
    ]


async def test_a_message_has_its_channel_and_time_as_id_and_team_and_user_as_sender(hosting, until):
    [seen] = await seen_of(hosting, until, event(1, "hello", channel="C1"))

    assert (seen.id, seen.conversation, seen.sender) == ("C1/1700000000.000001", "C1/1700000000.000001", ANN)


async def test_a_message_that_is_brought_again_is_answered_once(hosting, slack, until):
    async with hosting() as (_, sender):
        again = {"x-slack-retry-num": "1", "x-slack-retry-reason": "http_timeout"}
        answers = [await sender.send(event(7, "first"), headers=again) for _ in range(5)]
        answers.append(await sender.send(event(7, "<@U0BOT> first", kind="app_mention")))
        await sender.send(event(8, "second"))
        await until(lambda: len(slack.sent) == 2)

    assert {one.status_code for one in answers} == {200}
    assert texts(slack) == ["ann: first", "ann: second"]


async def test_nothing_answers_somebody_whom_nobody_knows(hosting, slack, until):
    told = []
    async with hosting() as (host, sender):
        host.extensions.on(lambda one: told.append(one.sender) if one.type == "channel:unknown-sender" else None)
        await sender.send(event(1, user="U9EVE"))
        await sender.send(event(2, team="T9EVIL"))
        await sender.send(event(3, user_team="T9EVIL", team="T1TEAM"))
        await sender.send(event(4, "known"))
        await until(lambda: slack.sent)

    assert told == ["T1TEAM/U9EVE", "T9EVIL/U1ANN", "T9EVIL/U1ANN"]
    assert texts(slack) == ["ann: known"]


NOT_OF_PEOPLE = [
    event(1, bot_id="B1"),
    event(1, user="U0BOT"),
    event(1, user=None),
    event(1, user=["U1ANN"]),
    event(1, subtype="message_changed"),
    event(1, subtype="bot_message"),
    event(1, subtype="channel_join"),
    event(1, kind="reaction_added"),
    event(1, channel="c/1"),
    event(1, channel=None),
    event(1, ts="now"),
    event(1, text=None),
    event(1, text=" "),
    event(1, text="x" * 1_000_001),
    event(1, envelope={"team_id": {"a": 1}}),
    event(1, envelope={"event": "text"}),
    event(1, envelope={"type": "app_rate_limited"}),
]


async def test_what_is_no_message_of_a_person_is_left_out(hosting, until):
    assert await seen_of(hosting, until, *NOT_OF_PEOPLE) == []


async def test_files_are_named_and_not_fetched(hosting, until):
    files = [{"name": "re\u202eport.pdf", "url_private": "https://files.slack.com/x"}, {"name": None}, 5]

    [seen] = await seen_of(hosting, until, event(1, "see", subtype="file_share", files=files))

    named = ["[file report.pdf: not fetched]", *["[file without a name: not fetched]"] * 2]
    assert seen.text.split("\n") == ["see", *named]


# -- signatures ----------------------------------------------------------------------------------------------------


BAD = {
    "another secret": {"secret": "x" * 32},
    "stale": {"age": 301},
    "of the future": {"age": -330},
    "another body": {"body": b'{"type": "url_verification", "challenge": "c"}'},
    "no signature": {"headers": {"x-slack-signature": None}},
    "no time": {"headers": {"x-slack-request-timestamp": None}},
    "another time": {"headers": {"x-slack-request-timestamp": "1"}},
    "garbage": {"headers": {"x-slack-signature": "v0=zz"}},
    "an empty one": {"headers": {"x-slack-signature": ""}},
    "a time that is no number": {"headers": {"x-slack-request-timestamp": "-1"}},
}


async def test_what_is_not_signed_by_slack_and_of_now_is_refused(hosting, slack, until):
    forged = [event(1, "forged"), {"type": "url_verification", "challenge": "abc"}]
    async with hosting() as (_, sender):
        answers = {name: [await sender.send(one, **changes) for one in forged] for name, changes in BAD.items()}
        await sender.send(event(2, "real"))
        await until(lambda: slack.sent)

    statuses = {name: [one.status_code for one in said] for name, said in answers.items()}
    assert statuses == {name: [401, 401] for name in BAD}
    assert not [one for said in answers.values() for one in said if "abc" in one.text]
    assert texts(slack) == ["ann: real"]


async def test_a_signature_with_the_time_at_the_edge_of_the_window_counts(hosting):
    async with hosting() as (_, sender):
        assert (await sender.send(event(1), age=290)).status_code == 200


async def test_a_header_that_stands_twice_does_not_count(hosting):
    now = str(int(time.time())).encode()
    headers = [(b"x-slack-request-timestamp", now), (b"x-slack-signature", signature_of(SIGNING, now, b"{}"))]
    async with hosting() as (_, sender):
        statuses = [
            (await sender.client.post("/packs/slack/events/", content=b"{}", headers=said)).status_code
            for said in (headers, [*headers, headers[0]], [*headers, headers[1]])
        ]

    assert statuses == [200, 401, 401]


async def test_a_request_that_is_recorded_and_sent_again_does_nothing(hosting, slack, until):
    async with hosting() as (_, sender):
        first = await sender.send(event(1, "once"))
        replay = {name: value for name, value in first.request.headers.items() if name.startswith("x-slack")}
        again = await sender.client.post("/packs/slack/events/", content=first.request.content, headers=replay)
        await sender.send(event(2, "other"))
        await until(lambda: len(slack.sent) == 2)

    assert again.status_code == 200
    assert texts(slack) == ["ann: once", "ann: other"]


async def test_the_address_is_verified_with_a_signature(hosting):
    async with hosting(running=False) as (_, sender):
        answer = await sender.send({"type": "url_verification", "challenge": "3eZbrw1aB"})

        assert (answer.status_code, answer.text) == (200, "3eZbrw1aB")
        assert answer.headers["content-type"].startswith("text/plain")
        assert (await sender.send({"type": "url_verification", "challenge": 5})).status_code == 400
        assert (await sender.send({"type": "url_verification", "challenge": "x" * 1_001})).status_code == 400


async def test_what_is_no_event_is_refused(hosting):
    async with hosting() as (_, sender):
        answers = [await sender.send(body) for body in (b"", b"[]", b"{", b"[" * 100_000, b"\xff")]

    assert [one.status_code for one in answers] == [400] * 5


async def test_only_posts_are_taken_and_bodies_are_bounded(hosting):
    async with hosting() as (_, sender):
        assert (await sender.client.get("/packs/slack/events/")).status_code == 405
        assert (await sender.send(b" " * 2_000_001)).status_code == 413


async def test_without_the_permission_events_need_a_token_like_everything_else():
    secrets = {"slack.botToken": TOKEN, "slack.signingSecret": SIGNING}
    manifest = {"packs": [{"module": "agentos_pack_slack"}]}
    async with AgentOS(extension_manifest=manifest, extension_secrets=secrets) as host, served(host) as client:
        assert (await client.post("/packs/slack/events/")).status_code == 401
        assert any("http:public" in one.cure for one in (await host.check()).troubles)


# -- while it is not at work ---------------------------------------------------------------------------------------


async def test_while_the_channel_does_not_run_events_are_to_come_again(hosting, slack, until):
    async with hosting(running=False) as (host, sender):
        early = await sender.send(event(1))
        await host.channels.start()
        await until(lambda: host.channels._running.get("slack"))
        again = await sender.send(event(1))
        await until(lambda: slack.sent)
        await channel_of(host).stop()
        late = await sender.send(event(2))

    assert [one.status_code for one in (early, again, late)] == [503, 200, 503]


async def test_a_message_that_is_not_stored_is_to_come_again(hosting, caplog):
    async def deliver(message):
        raise OSError("the store is away")

    async with hosting(running=False) as (host, sender):
        await channel_of(host).start(deliver)

        assert (await sender.send(event(1))).status_code == 503
    assert "slack: a message has to wait: OSError: the store is away" in caplog.text


# -- sending -------------------------------------------------------------------------------------------------------


def cut(said):
    """Break the connection off, after the request was read."""
    raise ConnectionResetError


def lost(slack):
    """Take the message, and lose the answer."""

    def take(said):
        slack.take(said)
        raise ConnectionResetError

    return take


async def test_a_lost_answer_leaves_a_letter_that_nobody_sends_again_by_itself(hosting, slack, until):
    slack.troubles = [lost(slack)]
    async with hosting() as (host, sender):
        await sender.send(event(1, "first"))
        [letter] = await letters(host)
        await sender.send(event(2, "second"))
        await until(lambda: "ann: second" in texts(slack))

    assert (letter.state, letter.message.text) == ("uncertain", "ann: first")
    assert [said["text"] for said in slack.asked] == ["ann: first", "ann: second"]


async def test_a_rate_limit_is_waited_for(hosting, slack, until):
    slack.troubles = [refusal("ratelimited", 429, **{"Retry-After": "1"})]
    async with hosting() as (host, sender):
        await sender.send(event(1))
        await until(lambda: slack.sent)

        assert await host.channels.letters() == []
    assert len(slack.asked) == 2


async def test_a_refusal_for_good_is_not_tried_again(hosting, slack):
    slack.troubles = [refusal("channel_not_found")]
    async with hosting() as (host, sender):
        await sender.send(event(1))
        [letter] = await letters(host)

    assert (letter.state, letter.attempts) == ("dead", 1)
    assert letter.reason == "Slack answered chat.postMessage with status 200: channel_not_found"


async def outcome(host, **fields):
    try:
        return await channel_of(host).send(ChannelMessage(**{"channel": "slack", "conversation": "C1", **fields}))
    except Exception as error:
        return error


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        (refusal("ratelimited", 429, **{"Retry-After": "7"}), ("NotSentError", 7.0, False)),
        ((429, {"Retry-After": "99999999999"}, b""), ("NotSentError", 1.0, False)),
        (refusal("rate_limited"), ("NotSentError", 1.0, False)),
        (refusal("invalid_auth"), ("NotSentError", None, False)),
        (refusal("not_in_channel"), ("NotSentError", None, False)),
        (refusal("is_archived"), ("NotSentError", None, True)),
        ((404, {}, b"a proxy's page"), ("NotSentError", None, False)),
        (refusal("internal_error"), ("SlackApiError", None, None)),
        (refusal("not a code"), ("SlackApiError", None, None)),
        (refusal("invalid_auth", 500), ("SlackApiError", None, None)),
        ((408, {}, b""), ("SlackApiError", None, None)),
        ((200, {}, b"<html>"), ("SlackApiError", None, None)),
        ((200, {}, b'{"ok": true}'), ("SlackApiError", None, None)),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), ("SlackApiError", None, None)),
        (cut, ("WebError", None, None)),
    ],
)
async def test_what_is_certain_of_a_failure_is_said(hosting, slack, trouble, expected):
    slack.troubles = [trouble]
    async with hosting(running=False, serves=False) as (host, _):
        error = await outcome(host, text="x")

    found = (type(error).__name__, getattr(error, "retry_after", None), getattr(error, "is_final", None))
    assert found == expected


async def test_without_a_connection_nothing_is_sent(hosting):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/api"
        async with hosting(running=False, serves=False, baseUrl=url) as (host, _):
            error = await outcome(host, text="x")

    assert (type(error).__name__, error.is_final) == ("NotSentError", False)


@pytest.mark.parametrize(
    "fields",
    [{"conversation": "#general", "text": "x"}, {"conversation": "C1/x", "text": "x"}, {}, {"text": "x" * 500_000}],
)
async def test_what_can_not_be_sent_is_never_tried_again(hosting, slack, fields):
    async with hosting(running=False, serves=False) as (host, _):
        error = await outcome(host, **fields)

    assert (type(error).__name__, error.is_final, slack.asked) == ("NotSentError", True, [])


async def test_a_long_text_goes_as_several_messages_to_the_same_thread(hosting, slack):
    async with hosting(running=False, serves=False) as (host, _):
        receipt = await outcome(host, conversation="C1/1600000000.000001", text="<" * 15_000)

    assert [len(one["text"]) for one in slack.sent] == [40_000, 20_000]
    assert {one["thread_ts"] for one in slack.sent} == {"1600000000.000001"}
    assert receipt == "C1/1700000001.000001 C1/1700000001.000002"


async def test_a_text_that_was_sent_in_part_is_uncertain(hosting, slack):
    slack.troubles = [slack.take, refusal("channel_not_found")]

    async def long(message, principal):
        return "x" * 50_000

    async with hosting(handler=long) as (host, sender):
        await sender.send(event(1))
        [letter] = await letters(host)

    assert letter.state == "uncertain"
    assert "1 of 2 parts were sent" in letter.reason


async def test_nobody_is_called_by_what_an_answer_says_and_attachments_are_named(hosting, slack):
    media = (Media("image/png", data=b"12345", name="a.png"), Media("text/html", url="https://example.org/x"))
    async with hosting(running=False, serves=False) as (host, _):
        await outcome(host, text="<!channel> & <@U1>", attachments=media)

    [text] = texts(slack)
    assert text.split("\n") == [
        "&lt;!channel&gt; &amp; &lt;@U1&gt;",
        "[image image/png a.png, 5 bytes]",
        "[file text/html at https://example.org/x]",
    ]


# -- secrets and ends ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", [refusal(TOKEN), (500, {}, TOKEN.encode()), (200, {}, TOKEN.encode()), cut])
async def test_the_secrets_are_in_nothing_that_is_shown(hosting, slack, until, trouble, caplog):
    caplog.set_level(logging.DEBUG)
    slack.troubles = [trouble, trouble]
    async with hosting() as (host, sender):
        error = await outcome(host, text="x")
        channel, handler = channel_of(host), host.extensions.registry("http-handler").get_active("events").payload
        answers = [await sender.send(event(1)), await sender.send(event(2), secret="x"), await sender.send(b"{")]
        shown = [str(error), repr(error), repr(vars(error)), repr(channel), repr(vars(channel)), repr(vars(handler))]
        shown += [str(await letters(host)), *(one.text + repr(one.headers) for one in answers)]

    assert not [secret for secret in (TOKEN, SIGNING) if secret in "".join(shown) + caplog.text]


async def test_a_token_can_not_change_the_request(hosting, slack):
    async with hosting(running=False, serves=False, token="x\r\nX-More: 1") as (host, _):
        error = await outcome(host, text="x")

    assert (type(error).__name__, slack.seen) == ("NotSentError", [])


async def test_stop_leaves_no_task(hosting):
    async with hosting(running=False) as (host, sender):
        channel, before = channel_of(host), asyncio.all_tasks()

        async def deliver(message):
            return True

        await channel.start(deliver)
        await channel.stop()
        await channel.stop()

        assert asyncio.all_tasks() <= before
        assert (await sender.send(event(1))).status_code == 503
