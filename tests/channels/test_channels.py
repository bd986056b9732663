"""Channels: each message is taken once, in order within a conversation, and answered once or kept."""

import asyncio
import contextlib
import sqlite3
import time

import pytest
from channelling import MANIFEST, Post, message, not_sent, on_channels, pack

from agentos import AgentOS, ChannelMessage, Descriptor, DescriptorError, ExtensionPack, ManifestError, Media


async def echo(message, principal):
    return f"{principal.id}: {message.text}"


async def settled(host, condition):
    """Wait until the dead letters of a host are so."""
    async with asyncio.timeout(60):
        while not condition(found := await host.channels.letters()):
            await asyncio.sleep(0.02)
    return found


async def test_a_message_is_answered_as_the_principal_that_its_sender_is():
    post = Post()
    async with on_channels(post, handler=echo):
        assert await post.deliver(message(1, "good day"))
        await post.until(lambda: post.sent)

    assert [(one.text, one.conversation, one.reply_to) for one in post.sent] == [("ann: good day", "c1", "1")]


async def test_a_message_that_comes_a_thousand_times_is_answered_once():
    post = Post()
    async with on_channels(post, handler=echo):
        taken = [await post.deliver(message(1)) for _ in range(1_000)]
        await post.deliver(message(2))
        await post.until(lambda: len(post.sent) == 2)

    assert taken == [True, *[False] * 999]
    assert [one.reply_to for one in post.sent] == ["1", "2"]


async def test_a_conversation_keeps_its_order_while_others_go_on():
    post, begun, may_end = Post(), [], asyncio.Event()

    async def slow(message, principal):
        begun.append(message.id)
        if message.id == "1":
            await may_end.wait()
        return message.id

    async with on_channels(post, handler=slow):
        for id, conversation in ((1, "c1"), (2, "c1"), (3, "c2"), (4, "c1")):
            await post.deliver(message(id, conversation=conversation))
        await post.until(lambda: [one.text for one in post.sent] == ["3"])
        assert begun == ["1", "3"]
        may_end.set()
        await post.until(lambda: len(post.sent) == 4)

    assert [one.text for one in post.sent] == ["3", "1", "2", "4"]


async def test_nothing_answers_a_sender_whom_nobody_knows_and_the_operator_is_told(caplog):
    post, told, asked = Post(), [], []

    async def ask(message, principal):
        asked.append(message)

    async with on_channels(post, handler=ask) as [host]:
        host.extensions.on(lambda event: told.append(event) if event.type == "channel:unknown-sender" else None)
        await post.deliver(message(1, "let me in", sender="u9"))
        await post.deliver(message(2, "let me in", sender="u9"))
        await post.deliver(message(3))
        await post.until(lambda: asked)

    assert [one.id for one in asked] == ["3"]
    assert [(one.sender, one.message) for one in told] == [("u9", "1"), ("u9", "2")]
    assert [record.message for record in caplog.records if "u9" in record.message] == [
        "channel post: nobody knows the sender u9; [channels.post.senders] in the manifest says who is who"
    ]


@pytest.mark.parametrize("channels", [{}, {"post": {"enabled": False, "senders": {"u1": "ann"}}}])
async def test_a_channel_is_off_unless_the_manifest_turns_it_on(channels):
    post = Post()
    manifest = {**MANIFEST, "channels": channels, "packs": [{"factory": pack(post)}]}
    async with AgentOS(extension_manifest=manifest) as host:
        host.channels.handle(echo)
        await host.channels.start()
        await asyncio.sleep(0)
        [info] = await host.channels.known()

    assert (info.is_on, info.is_running, post.deliver) == (False, False, None)


async def test_a_reply_that_was_not_sent_is_sent_again():
    post = Post()
    post.troubles = [not_sent()]
    async with on_channels(post, handler=echo) as [host]:
        await post.deliver(message(1))
        await post.until(lambda: post.sent)

        assert await host.channels.letters() == []
    assert len(post.sent) == 1


async def test_a_channel_says_when_somebody_can_be_reached_again():
    post = Post()
    post.troubles = [not_sent(retry_after=100_000)]
    async with on_channels(post, handler=lambda message, principal: f"to {message.text}") as (host,):
        await post.deliver(message(1, "first"))
        await post.until(lambda: not post.troubles)
        await post.deliver(message(2, "other", conversation="c2"))
        await post.until(lambda: post.sent)
        await post.deliver.resume("c2")
        while (await host.channels.known())[0].to_send != 1:
            await asyncio.sleep(0.01)
        assert [one.text for one in post.sent] == ["to other"]
        await post.deliver.resume("c1")
        await post.until(lambda: len(post.sent) == 2)

    assert [one.text for one in post.sent] == ["to other", "to first"]


async def test_somebody_who_can_be_reached_while_a_message_is_not_sent_has_it_at_once():
    class Late(Post):
        async def send(self, message):
            if self.troubles:
                await self.deliver.resume(message.conversation)
            return await super().send(message)

    post = Late()
    post.troubles = [not_sent(retry_after=100_000)]
    async with on_channels(post, handler=echo):
        await post.deliver(message(1))
        await post.until(lambda: post.sent)

    assert [one.text for one in post.sent] == ["ann: hello"]


async def test_to_start_costs_nothing_if_no_channel_is_on():
    async with AgentOS(extension_manifest={"channels": {"post": {"enabled": False}}}) as host:
        before = asyncio.all_tasks()
        await host.channels.start()

        assert asyncio.all_tasks() == before


async def test_a_channel_that_does_not_stop_is_left_behind():
    class Stubborn(Post):
        timeout = 1000.0

        async def stop(self):
            await asyncio.Event().wait()

    async with on_channels(Stubborn()) as (host,), asyncio.timeout(60):
        await host.channels.close(0.1)


async def test_a_reply_that_can_not_be_sent_is_kept_as_a_dead_letter_until_somebody_retries_it(caplog):
    post, told = Post(), []
    post.troubles = [not_sent(is_final=True)]
    async with on_channels(post, handler=echo) as [host]:
        host.extensions.on(lambda event: told.append(event) if event.type == "channel:letter" else None)
        await post.deliver(message(1))
        [letter] = await settled(host, len)
        assert (letter.state, letter.reason, letter.message.text) == ("dead", "the service is away", "ann: hello")
        await host.channels.retry(letter.id)
        await post.until(lambda: post.sent)

        assert await host.channels.letters() == []
    assert [(one.letter, one.state) for one in told] == [(letter.id, "dead")]
    assert f"message {letter.id} is kept as dead: the service is away" in caplog.text


async def test_attempts_end():
    post = Post()
    post.troubles = [not_sent() for _ in range(9)]
    manifest = {**MANIFEST, "channels": {"post": {"senders": {"u1": "ann"}, "attempts": 2}}}
    async with on_channels(post, manifest=manifest, handler=echo) as [host]:
        await post.deliver(message(1))
        [letter] = await settled(host, len)

    assert (letter.state, letter.attempts, len(post.troubles)) == ("dead", 2, 7)


async def test_a_message_whose_answer_was_lost_is_uncertain_and_never_sent_again_by_itself():
    post = Post()
    post.troubles = [ConnectionResetError("cut")]
    async with on_channels(post, handler=echo) as [host]:
        await post.deliver(message(1))
        [letter] = await settled(host, len)
        await post.deliver(message(2))
        await post.until(lambda: post.sent)

        assert (letter.state, letter.reason) == ("uncertain", "ConnectionResetError: cut")
        assert [one.reply_to for one in post.sent] == ["2"]
        await host.channels.drop(letter.id)
        assert await host.channels.letters() == []


async def test_a_message_that_could_not_be_answered_is_kept_and_the_next_is_answered():
    post = Post()

    async def picky(message, principal):
        if message.text == "bad":
            raise ValueError("no")
        return "fine"

    async with on_channels(post, handler=picky) as [host]:
        await post.deliver(message(1, "bad"))
        await post.deliver(message(2, "good"))
        await post.until(lambda: post.sent)
        [letter] = await host.channels.letters()

    assert (letter.state, letter.reason, letter.message.id) == ("failed", "ValueError: no", "1")


async def test_what_came_before_there_was_a_handler_waits_for_it():
    post = Post()
    async with on_channels(post) as [host]:
        await post.deliver(message(1))
        assert (await host.channels.known())[0].waiting == 1
        host.channels.handle(lambda message, principal: "at last")
        await post.until(lambda: post.sent)

    assert [one.text for one in post.sent] == ["at last"]


async def test_attachments_come_and_go(store_url):
    post, came = Post(), []

    async def back(message, principal):
        came.extend(message.attachments)
        return ChannelMessage(channel="x", conversation="y", text="", attachments=message.attachments)

    media = (Media("image/png", b"\x89PNG"), Media("text/plain", url="https://example.org/a.txt", name="a.txt"))
    async with on_channels(post, store=store_url, handler=back):
        await post.deliver(message(1, attachments=media))
        await post.until(lambda: post.sent)

    assert (tuple(came), post.sent[0].attachments, post.sent[0].conversation) == (media, media, "c1")


async def test_two_hosts_on_one_store_never_both_answer(store_url):
    posts, answered = [Post(), Post()], []

    async def note(message, principal):
        answered.append(message.id)
        await asyncio.sleep(0)
        return message.id

    async with on_channels(*posts, store=store_url, handler=note):
        for id in range(60):
            for post in posts:
                await post.deliver(message(id, conversation=f"c{id % 7}"))
        await posts[0].until(lambda: sum(len(post.sent) for post in posts) >= 60)

    assert sorted(answered, key=int) == [str(id) for id in range(60)]
    sent = [one.text for post in posts for one in post.sent]
    assert sorted(sent, key=int) == [str(id) for id in range(60)]


async def test_what_a_host_that_was_shut_down_left_the_next_one_answers(sqlite_url):
    first, second, never = Post(), Post(), asyncio.Event()
    begun = asyncio.Event()

    async def stuck(message, principal):
        begun.set()
        await never.wait()

    async with on_channels(first, store=sqlite_url, handler=stuck):
        await first.deliver(message(1))
        await begun.wait()
    async with on_channels(second, store=sqlite_url, handler=echo):
        assert not await second.deliver(message(1))
        await second.until(lambda: second.sent)

    assert (len(first.sent), [one.text for one in second.sent]) == (0, ["ann: hello"])


async def test_a_row_that_somebody_changed_in_the_store_speaks_for_nobody(sqlite_url):
    import sqlite3

    post = Post()
    async with on_channels(post, store=sqlite_url) as [host]:
        await post.deliver(message(1))
        with sqlite3.connect(sqlite_url.removeprefix("sqlite:///")) as database:
            database.execute("UPDATE channel_inbox SET data = replace(data, 'u1', 'u2')")
        database.close()
        host.channels.handle(echo)
        [letter] = await settled(host, len)

    assert (letter.state, letter.reason, post.sent) == ("failed", "it was changed in the store", [])


async def test_a_host_may_send_by_itself():
    post = Post()
    async with on_channels(post) as [host]:
        await host.channels.send(ChannelMessage(channel="post", conversation="c1", text="news"))
        await post.until(lambda: post.sent)

        with pytest.raises(LookupError, match="no channel 'pots' is turned on"):
            await host.channels.send(ChannelMessage(channel="pots", conversation="c1", text="news"))
    assert [one.text for one in post.sent] == ["news"]


async def test_known_secrets_leave_by_no_channel():
    post = Post()
    async with on_channels(post, extension_secrets={"x.key": "s3cr3t-v4lue-of-x"}) as [host]:
        host.extensions.secret_sources.find("x.key", {})
        host.channels.handle(lambda message, principal: "it is s3cr3t-v4lue-of-x")
        await post.deliver(message(1))
        await post.until(lambda: post.sent)

    assert "s3cr3t" not in post.sent[0].text


async def test_a_channel_whose_pack_goes_is_stopped():
    post = Post()
    async with on_channels(post, handler=echo) as [host]:
        await host.extensions.unload("post-office")
        await post.until(lambda: post.deliver is None)

        assert [(one.pack, one.is_running) for one in await host.channels.known()] == [(None, False)]


class Sync:
    def start(self, deliver):
        """Start."""

    async def send(self, message):
        """Send."""

    async def stop(self):
        """Stop."""


@pytest.mark.parametrize(
    ("payload", "why"), [(Post, "got a class"), (object(), "no method start"), (Sync(), "start: it is not async")]
)
def test_what_is_no_channel_is_refused(payload, why):
    from agentos.kinds.messaging_channel import MESSAGING_CHANNEL

    with pytest.raises(DescriptorError, match=why):
        MESSAGING_CHANNEL.check(Descriptor("messaging-channel", "x", payload))


async def test_a_sender_that_is_mapped_to_nobody_is_told_at_the_start(caplog):
    manifest = {**MANIFEST, "channels": {"post": {"senders": {"u1": "eve"}}}}
    async with on_channels(Post(), manifest=manifest):
        pass

    assert "channel post: sender u1 is 'eve', and no principal is" in caplog.messages


async def test_a_setting_that_no_channel_has_is_a_problem_of_the_manifest():
    with pytest.raises(ManifestError, match="sender"):
        AgentOS(extension_manifest={"channels": {"post": {"sender": {"u1": "ann"}}}})


async def test_what_was_answered_long_ago_is_forgotten(tmp_path):
    post, now, place = Post(), [1_800_000_000.0], tmp_path / "agentos.db"
    async with on_channels(post, handler=echo, store=place, clock=lambda: now[0]):
        await post.deliver(message(1))
        await post.until(lambda: post.sent)
        now[0] += 31 * 24 * 3600
        await post.deliver(message(2))
        await post.until(lambda: len(post.sent) == 2)
    with contextlib.closing(sqlite3.connect(place)) as database:
        assert [row[0] for row in database.execute("SELECT message FROM channel_inbox")] == ["2"]


def test_a_message_is_written_as_the_contract_spells_it():
    written = ChannelMessage("post", "c1", "ann", "hello", id="m1")

    assert written == ChannelMessage(channel="post", conversation="c1", sender="ann", text="hello", id="m1")


async def test_what_was_answered_a_moment_ago_is_not_forgotten(tmp_path):
    post, place = Post(), tmp_path / "agentos.db"
    async with on_channels(post, handler=echo, store=place):
        for id in (1, 2):
            await post.deliver(message(id))
            await post.until(lambda id=id: len(post.sent) == id)
    with contextlib.closing(sqlite3.connect(place)) as database:
        assert database.execute("SELECT COUNT(*) FROM channel_outbox").fetchone() == (2,)
        assert database.execute("SELECT COUNT(*) FROM channel_inbox").fetchone() == (2,)


async def test_a_channel_that_is_still_starting_is_started_no_more_when_its_pack_goes():
    ended = []

    class Starting(Post):
        is_asked = False

        async def start(self, deliver):
            self.is_asked = True
            self.news.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("start")

        async def stop(self):
            ended.append("stop")
            self.news.set()

    post, starting = Post(), Starting()
    manifest = {**MANIFEST, "channels": {**MANIFEST["channels"], "slow": {"senders": {}}}}
    async with on_channels(post, manifest=manifest, handler=echo) as [host]:
        slow = ExtensionPack("slow", "1", [Descriptor("messaging-channel", "slow", starting)])
        await host.extensions.load_pack(slow)
        await starting.until(lambda: starting.is_asked)
        await host.extensions.unload("slow")
        await starting.until(lambda: "stop" in ended)
        assert ended == ["start", "stop"]


@pytest.mark.parametrize(("ended", "state"), [(2, "answered"), (3, "failed")])
async def test_a_message_whose_hosts_ended_is_answered_at_the_third_attempt_and_no_more(tmp_path, ended, state):
    place, post = tmp_path / "agentos.db", Post()
    async with on_channels(Post(), store=place) as [host]:
        await host.channels._deliver(message(1))
    with contextlib.closing(sqlite3.connect(place)) as database:
        database.execute("UPDATE channel_inbox SET attempts = ?", (ended,))
        database.commit()
    async with on_channels(post, store=place, handler=echo) as [host]:
        if state == "failed":
            assert "hosts ended 3 times" in (await settled(host, len))[0].reason
        else:
            await post.until(lambda: post.sent)


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        (1000000000.0, 23.9, 24.1),
        (24 * 3600.0, 23.9, 24.1),
        (7 * 3600, 6.9, 7.1),
        (float("inf"), 0, 1),
        (float("nan"), 0, 1),
        (-1000000000.0, 0, 1),
        ("1000000", 0, 1),
        (True, 0, 1),
        (10**400, 0, 24.1),
    ],
)
async def test_a_channel_puts_a_message_off_by_a_day_at_the_most(sqlite_url, asked, least, most):
    post, begin = Post(), time.time()
    post.troubles = [not_sent(retry_after=asked), not_sent(retry_after=90_000), not_sent(retry_after=90_000)]
    with contextlib.closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as database:
        async with on_channels(post, store=sqlite_url, handler=echo):
            await post.deliver(message(1))
            await post.until(lambda: put_off(database) is not None)
            due_at = put_off(database)

    hours = (due_at - begin) / 3600
    assert least <= hours <= most


def put_off(database):
    """Return until when the first message that was not sent waits; the first time it was put off."""
    row = database.execute("SELECT due_at FROM channel_outbox WHERE state = 'waiting' AND attempts > 0").fetchone()
    return None if row is None else row[0]
