"""The channel as people and hosts see it, on a Bot API of our own on loopback."""

import asyncio
import logging
import socket

import pytest

from agentos import AgentOS, ChannelMessage, Media

from .conftest import ANN, TOKEN, message, refusal


async def letters(host):
    """Wait for dead letters."""
    async with asyncio.timeout(60):
        while not (found := await host.channels.letters()):  # noqa: ASYNC110 - they come without an event
            await asyncio.sleep(0.01)
    return found


def texts(bot):
    return [one["text"] for one in bot.sent]


def channel_of(host):
    return host.extensions.registry("messaging-channel").get_active("telegram").payload


# -- in and out ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("isolation", ["inline", "process"])
async def test_a_message_is_answered_where_it_was_written(hosting, bot, until, isolation):
    async with hosting(isolation=isolation):
        bot.write(message(7, "good day"))
        await until(lambda: bot.sent)

    assert bot.sent == [
        {
            "chat_id": ANN,
            "text": "ann: good day",
            "link_preview_options": {"is_disabled": True},
            "reply_parameters": {"message_id": 7, "allow_sending_without_reply": True},
        }
    ]


async def test_a_topic_of_a_forum_is_a_conversation_of_its_own(hosting, bot, until):
    seen = []

    async def note(message, principal):
        seen.append(message)
        return "yes"

    async with hosting(handler=note):
        bot.write(
            message(7, chat=-100, message_thread_id=5, is_topic_message=True, reply_to_message={"message_id": 3}),
            message(8, chat=-100, message_thread_id=9),
        )
        await until(lambda: len(bot.sent) == 2)

    assert [(one.id, one.conversation, one.sender, one.reply_to) for one in sorted(seen, key=lambda one: one.id)] == [
        ("-100/7", "-100/5", "4242", "-100/3"),
        ("-100/8", "-100", "4242", None),
    ]
    assert sorted(one.get("message_thread_id", 0) for one in bot.sent) == [0, 5]


async def test_a_message_that_is_brought_again_and_again_is_answered_once(hosting, bot, until):
    bot.is_deaf = True
    async with hosting():
        bot.write(message(7, "first"))
        await until(lambda: bot.sent)
        bot.write(message(8, "second"))
        await until(lambda: len(bot.sent) == 2)
        polls = len(bot.calls("getUpdates"))
        await until(lambda: len(bot.calls("getUpdates")) > polls + 3)

    assert texts(bot) == ["ann: first", "ann: second"]


async def test_a_message_is_confirmed_after_it_was_stored(hosting, bot, until):
    brought, is_broken = [], [True]

    async def deliver(message):
        brought.append(message.id)
        if is_broken:
            is_broken.clear()
            raise OSError("the store is away")
        return True

    async with hosting(channels=False) as host:
        channel = channel_of(host)
        bot.write(message(7), message(8))
        await channel.start(deliver)
        await until(lambda: len(bot.calls("getUpdates")) == 3)
        await channel.stop()

    assert brought == ["4242/7", "4242/7", "4242/8"]
    assert [said.get("offset") for said in bot.calls("getUpdates")] == [None, None, 102]


async def test_nothing_answers_somebody_whom_nobody_knows(hosting, bot, until):
    told = []
    async with hosting() as host:
        host.extensions.on(lambda event: told.append(event) if event.type == "channel:unknown-sender" else None)
        bot.write(message(7, sender=6666, chat=6666), message(8))
        await until(lambda: bot.sent)

    assert [one.sender for one in told] == ["6666"]
    assert [one["chat_id"] for one in bot.sent] == [ANN]


NOT_OF_PEOPLE = [
    {**message(1), "from": {"id": ANN, "is_bot": True}},
    {**message(1), "sender_chat": {"id": -5}},
    {**message(1), "from": None},
    {**message(1), "from": {"id": str(ANN), "is_bot": False}},
    {**message(1), "from": {"id": True, "is_bot": False}},
    {**message(1), "chat": {"id": 2**70}},
    {**message(1), "message_id": "1"},
    {**message(1), "text": ["a"]},
    {**message(1), "text": "", "sticker": {"file_id": "x"}},
    {**message(1), "text": "", "document": {"file_id": 5}, "photo": "x"},
    "text",
    None,
]


async def test_what_is_no_message_of_a_person_is_left_out(hosting, bot, until):
    async with hosting():
        bot.write(*NOT_OF_PEOPLE)
        bot.write(message(1, "edited"), kind="edited_message")
        bot.write(message(1, "posted"), kind="channel_post")
        bot.updates += ["no update", {"update_id": "5"}, {}]
        bot.write(message(9, "real"))
        await until(lambda: bot.sent)

    assert texts(bot) == ["ann: real"]
    assert bot.calls("getUpdates")[0]["allowed_updates"] == ["message"]


async def test_who_took_over_a_user_name_is_not_taken_for_its_owner(hosting, bot, until):
    async with hosting():
        thief = message(7, sender=6666, chat=6666)
        thief["from"]["username"] = "4242"
        bot.write(thief, message(8, "real"))
        await until(lambda: bot.sent)

    assert texts(bot) == ["ann: real"]


# -- sending -------------------------------------------------------------------------------------------------------


def cut(method, said):
    """Break the connection off, after the request was read."""
    raise ConnectionResetError


def lost(bot):
    """Take the message, and lose the answer."""

    def take(method, said):
        bot.sendMessage(said)
        raise ConnectionResetError

    return take


@pytest.mark.parametrize(
    "trouble",
    [
        "lost",
        (500, {}, b"oops"),
        refusal(502, "Bad Gateway"),
        refusal(408),
        (200, {}, b"<html>"),
        (200, {}, b'{"ok": true, "result": true}'),
        (302, {"Location": "http://127.0.0.1:1/"}, b""),
    ],
)
async def test_a_lost_answer_leaves_a_letter_that_nobody_sends_again_by_itself(hosting, bot, until, trouble):
    bot.troubles["sendMessage"] = [lost(bot) if trouble == "lost" else trouble]
    async with hosting() as host:
        bot.write(message(7, "first"))
        [letter] = await letters(host)
        bot.write(message(8, "second"))
        await until(lambda: "ann: second" in texts(bot))
        sends = [said["text"] for said in bot.calls("sendMessage")]

    assert (letter.state, letter.message.text) == ("uncertain", "ann: first")
    assert sends == ["ann: first", "ann: second"]


async def test_a_rate_limit_is_waited_for(hosting, bot, until):
    bot.troubles["sendMessage"] = [refusal(429, "Too Many Requests: retry after 1", retry_after=1)]
    async with hosting() as host:
        bot.write(message(7))
        await until(lambda: bot.sent)

        assert await host.channels.letters() == []
    assert len(bot.calls("sendMessage")) == 2


@pytest.mark.parametrize("status", [400, 403])
async def test_a_refusal_for_good_is_not_tried_again(hosting, bot, status):
    bot.troubles["sendMessage"] = [refusal(status, "Forbidden: bot was blocked by the user")]
    async with hosting() as host:
        bot.write(message(7))
        [letter] = await letters(host)

    assert (letter.state, letter.attempts) == ("dead", 1)
    assert (
        letter.reason == f"Telegram answered sendMessage with status {status}: Forbidden: bot was blocked by the user"
    )


async def not_sent(host, **fields):
    return await outcome(channel_of(host), ChannelMessage(**{"channel": "telegram", "conversation": "5", **fields}))


async def outcome(channel, message):
    try:
        return await channel.send(message)
    except Exception as error:
        return error


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        (refusal(429, retry_after=7), ("NotSentError", 7.0, False)),
        (refusal(429, retry_after=-7), ("NotSentError", 1.0, False)),
        (refusal(429, retry_after=10**9), ("NotSentError", 3600.0, False)),
        (refusal(401), ("NotSentError", None, False)),
        (refusal(400), ("NotSentError", None, True)),
        ((403, {}, b"a proxy's page"), ("NotSentError", None, True)),
        (refusal(500), ("BotApiError", None, None)),
        (cut, ("WebError", None, None)),
    ],
)
async def test_what_is_certain_of_a_failure_is_said(hosting, bot, trouble, expected):
    bot.troubles["sendMessage"] = [trouble]
    async with hosting(channels=False) as host:
        error = await not_sent(host, text="x")

    found = (type(error).__name__, getattr(error, "retry_after", None), getattr(error, "is_final", None))
    assert found == expected


async def test_without_a_connection_nothing_is_sent(hosting):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with hosting(channels=False, baseUrl=url) as host:
            error = await not_sent(host, text="x")

    assert (type(error).__name__, error.is_final) == ("NotSentError", False)


@pytest.mark.parametrize(
    "fields",
    [
        {"conversation": "@ann", "text": "x"},
        {"conversation": "5/x", "text": "x"},
        {"text": " \n"},
        {"text": "x" * 200_000},
    ],
)
async def test_what_can_not_be_sent_is_never_tried_again(hosting, bot, fields):
    async with hosting(channels=False) as host:
        error = await not_sent(host, **fields)

    assert (type(error).__name__, error.is_final, bot.asked) == ("NotSentError", True, [])


async def test_a_long_text_goes_as_several_messages_that_are_whole(hosting, bot):
    text = "\U0001f600" * 5_000
    async with hosting(channels=False) as host:
        receipt = await channel_of(host).send(
            ChannelMessage(channel="telegram", conversation="5", text=text, reply_to="5/7")
        )

    assert [len(one["text"].encode("utf-16-le")) // 2 for one in bot.sent] == [4096, 4096, 1808]
    assert "".join(texts(bot)) == text
    assert ["reply_parameters" in one for one in bot.sent] == [True, False, False]
    assert receipt == "5/901 5/902 5/903"


async def test_a_text_that_was_sent_in_part_is_uncertain(hosting, bot):
    async def long(message, principal):
        return "x" * 5_000

    bot.troubles["sendMessage"] = [
        lambda _, said: (200, {}, b'{"ok": true, "result": {"message_id": 1}}'),
        refusal(403),
    ]
    async with hosting(handler=long) as host:
        bot.write(message(7))
        [letter] = await letters(host)

    assert letter.state == "uncertain"
    assert "1 of 2 parts were sent" in letter.reason


async def test_attachments_go_as_photos_and_documents_and_addresses_as_text(hosting, bot, until):
    attachments = (
        Media("image/png", data=b"PNG-bytes", name="a.png"),
        Media("application/pdf", data=b"PDF-bytes"),
        Media("text/html", url="https://example.org/x", name="page"),
    )

    async def attach(message, principal):
        return ChannelMessage(channel="telegram", conversation="x", text="see", attachments=attachments)

    async with hosting(handler=attach):
        bot.write(message(7, chat=-100, message_thread_id=5, is_topic_message=True))
        await until(lambda: len(bot.sent) == 3)

    text, photo, document = bot.sent
    assert text["text"] == "see\npage: https://example.org/x"
    assert [method for method, _ in bot.asked if method != "getUpdates"] == ["sendMessage", "sendPhoto", "sendDocument"]
    assert b'name="photo"; filename="a.png"' in photo
    assert b"PNG-bytes" in photo
    assert b'name="document"; filename="file.pdf"' in document
    assert all(b'name="message_thread_id"\r\n\r\n5\r\n' in one for one in (photo, document))


# -- files ---------------------------------------------------------------------------------------------------------


async def received(hosting, bot, until, *messages, **options):
    seen = []

    async def note(message, principal):
        seen.append(message)

    async with hosting(handler=note, **options):
        bot.write(*messages)
        await until(lambda: len(seen) == len(messages))
    return sorted(seen, key=lambda one: one.id)


async def test_the_largest_photo_that_is_small_enough_is_fetched(hosting, bot, until):
    bot.files = {"files/medium": b"M" * 500}
    sizes = [{"file_id": id, "file_size": size} for id, size in (("small", 50), ("large", 5_000), ("medium", 500))]
    photo = {**message(7), "text": None, "caption": "look", "photo": sizes}

    [seen] = await received(hosting, bot, until, photo, maxFileBytes=1_000)

    assert (seen.text, seen.attachments) == ("look", (Media("image/jpeg", data=b"M" * 500),))


async def test_documents_keep_a_harmless_name_and_a_type(hosting, bot, until):
    bot.files = {"files/a": b"1", "files/b": b"2"}
    named = {"file_id": "a", "file_name": "re\u202eport\n.pdf", "mime_type": "application/pdf"}
    typeless = {"file_id": "b", "mime_type": "no type"}

    seen = await received(
        hosting, bot, until, *({**message(n), "text": None, "document": one} for n, one in ((7, named), (8, typeless)))
    )

    assert [one.attachments for one in seen] == [
        (Media("application/pdf", data=b"1", name="report .pdf"),),
        (Media("application/octet-stream", data=b"2"),),
    ]


@pytest.mark.parametrize(
    ("said", "files"),
    [
        ({"file_size": 2_000}, {}),
        ({}, {"files/x": b"x" * 2_000}),
        ({"file_id": "../../getMe"}, {}),
        ({"file_id": "lost"}, {}),
    ],
)
async def test_a_file_that_is_not_fetched_is_named(hosting, bot, until, said, files):
    bot.files = files
    document = {"file_id": "x", "file_name": "big.bin", **said}

    [seen] = await received(
        hosting, bot, until, {**message(7), "text": None, "caption": "see", "document": document}, maxFileBytes=1_000
    )

    assert (seen.text, seen.attachments) == ("see\n[document big.bin: not fetched]", ())
    assert not any("getMe" in request.path for request in bot.seen)


async def test_a_file_that_can_not_be_fetched_for_now_does_not_hold_messages_up_for_ever(hosting, bot, until):
    bot.troubles["getFile"] = [refusal(500)] * 9
    document = {"file_id": "x", "file_name": "a.bin"}

    seen = await received(hosting, bot, until, {**message(7), "text": None, "document": document}, message(8, "next"))

    assert [one.text for one in seen] == ["[document a.bin: not fetched]", "next"]
    assert len(bot.calls("getFile")) == 2


# -- troubles of polling -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble",
    [
        refusal(409, "Conflict: terminated by other getUpdates request"),
        refusal(429, "Too Many Requests", retry_after=1),
        (502, {}, b"<html>"),
        (200, {}, b'{"ok": true, "result": {}}'),
        cut,
    ],
)
async def test_a_trouble_of_the_service_is_told_and_gets_over(hosting, bot, until, trouble, caplog):
    bot.troubles["getUpdates"] = [trouble]
    async with hosting():
        bot.write(message(7))
        await until(lambda: bot.sent)

    assert [record.message.partition(" wait: ")[0] for record in caplog.records if "telegram:" in record.message] == [
        "telegram: messages have to"
    ]


async def test_a_bad_token_is_told_once_and_not_tried_until_there_is_another(bot, until, monkeypatch, caplog):
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "4242:bad")
    manifest = {
        "principals": {"ann": {}},
        "channels": {"telegram": {"senders": {str(ANN): "ann"}}},
        "packs": [{"module": "agentos_pack_telegram", "options": {"baseUrl": bot.url}}],
    }
    async with AgentOS(extension_manifest=manifest) as host:
        host.channels.handle(lambda message, principal: "yes")
        await host.channels.start()
        await until(lambda: [one for one in caplog.records if "no messages come in" in one.message])
        asked = len(bot.seen)
        bot.write(message(7))
        await host.extensions.set_secret("telegram.botToken", TOKEN)
        await until(lambda: bot.sent)

    [record] = [one for one in caplog.records if "no messages come in" in one.message]
    assert (asked, record.levelno) == (1, logging.ERROR)
    assert record.message.endswith("set another telegram.botToken, as BotFather gives it")


# -- secrets and ends ----------------------------------------------------------------------------------------------


ECHOES = [
    refusal(400, f"bad /bot{TOKEN}/sendMessage"),
    (500, {}, TOKEN.encode()),
    (200, {}, TOKEN.encode()),
    cut,
]


@pytest.mark.parametrize("trouble", ECHOES)
async def test_the_token_is_in_nothing_that_is_shown(hosting, bot, until, trouble, caplog):
    caplog.set_level(logging.DEBUG)
    bot.troubles = {"sendMessage": [trouble], "getUpdates": [trouble], "getFile": [refusal(400, TOKEN)]}
    async with hosting(channels=False) as host:
        channel = channel_of(host)
        error = await not_sent(host, text="x")
        shown = [repr(error), str(error), repr(vars(error)), repr(channel), repr(channel._api), repr(channel._options)]
        shown += [str(error.__cause__), str(error.__context__)]
        await host.channels.start()
        bot.write(message(7, "go on"), {**message(8), "document": {"file_id": "x"}})
        await until(lambda: bot.sent)
        shown += [str(await host.channels.letters()), str(host.extensions.explain("messaging-channel", "telegram"))]

    secret = TOKEN.partition(":")[2]
    assert secret not in "".join(shown)
    assert secret not in caplog.text


async def test_a_token_can_not_change_the_address(hosting, bot):
    async with hosting(channels=False, token="1:a/../../x?") as host:
        error = await not_sent(host, text="x")

    assert (type(error).__name__, bot.seen) == ("NotSentError", [])


async def test_stop_leaves_no_task(hosting, bot, until):
    async with hosting(channels=False) as host:
        channel, before = channel_of(host), asyncio.all_tasks()

        async def deliver(message):
            return True

        await channel.start(deliver)
        await channel.start(deliver)
        await until(lambda: bot.calls("getUpdates"))
        await channel.stop()
        await channel.stop()

        assert asyncio.all_tasks() <= before
