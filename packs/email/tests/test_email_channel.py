"""The channel: mails are taken once, answered in their thread, and nobody answers a machine."""

import asyncio
import datetime as dt
import logging
import threading

import pytest

from agentos import ChannelMessage, Media


async def echo(message, principal):
    return f"{principal.id}: {message.text}"


def is_seen(kept):
    return "\\Seen" in kept.flags


@pytest.mark.parametrize("isolation", ["inline", "process"])
async def test_a_mail_is_answered_in_its_thread(mailbox, smtp, hosting, mail, isolation):
    thread = ["References: <root@example.org> <second@example.org>", "In-Reply-To: <second@example.org>"]
    kept = await mailbox.add(mail("Is it ready?", id="<third@example.org>", subject="Re: Tea", headers=thread))
    async with hosting(echo, isolation=isolation):
        await smtp.until(lambda: smtp.raw)
        await mailbox.until(lambda: is_seen(kept))

    [answer] = smtp.mails
    assert smtp.envelopes == [("agent@example.org", "ann@example.org")]
    assert answer["In-Reply-To"] == "<third@example.org>"
    assert answer["References"].split() == ["<root@example.org>", "<second@example.org>", "<third@example.org>"]
    assert (answer["From"], answer["To"], answer["Subject"], answer["Auto-Submitted"]) == (
        "agent@example.org",
        "ann@example.org",
        "Re: Tea",
        "auto-replied",
    )
    assert answer.get_content().strip() == "ann: Is it ready?"


async def test_a_mail_that_comes_while_the_channel_waits_is_taken_by_idle(mailbox, smtp, hosting, mail):
    async with hosting(echo):
        await mailbox.until(lambda: "IDLE" in mailbox.commands)
        await mailbox.add(mail(subject="Tea"))
        await smtp.until(lambda: smtp.raw)

    assert smtp.mails[0]["Subject"] == "Re: Tea"
    assert smtp.mails[0].get_content().splitlines() == ["ann: Subject: Tea", "", "Hello"]


@pytest.mark.parametrize("moment", [("UID STORE", False), ("UID STORE", True), ("IDLE", False), ("IDLE", True)])
async def test_a_mail_that_comes_at_any_moment_is_not_waited_for(
    serve_imap, smtp, hosting, mail, tls, certificate, moment
):
    """It is told with the answer to another command, or in one breath with the beginning of IDLE."""
    when, is_encrypted = moment
    context, mode = (tls, "implicit") if is_encrypted else (None, "none")
    mailbox = serve_imap(tls=context, is_implicit=is_encrypted)
    left = [mail("two", id="<2@example.org>")]

    def comes(name):
        if name == when and left:
            mailbox.put(left.pop())

    mailbox.troubles.append(comes)
    mailbox.put(mail("one"))
    async with mailbox.serving(), hosting(echo, imap=mailbox, imapTls=mode, caFile=str(certificate)):
        await smtp.until(lambda: len(smtp.raw) == 2)

    assert mailbox.logins == 1


async def test_a_server_without_idle_is_polled(serve_imap, smtp, hosting, mail):
    async with serve_imap(idles=False).serving() as mailbox, hosting(echo, imap=mailbox):
        await mailbox.until(lambda: any("UID SEARCH" in one.upper() for one in mailbox.commands))
        await mailbox.add(mail())
        await smtp.until(lambda: smtp.raw)

    assert "IDLE" not in mailbox.commands


async def test_a_mail_is_marked_as_read_only_when_it_is_stored(mailbox, hosting, mail):
    from agentos_pack_email.channel import EmailChannel
    from agentos_pack_email.settings import Options

    options = Options(imap_port=mailbox.port, imap_tls="none", smtp_tls="none", from_address="a@x.org", trust="any")
    secrets = {"email.imapHost": "127.0.0.1", "email.imapUser": "robot", "email.imapPassword": "pass-word-9"}
    secrets["email.smtpHost"] = "127.0.0.1"
    channel = EmailChannel(options, secrets.get, logging.getLogger("test"))
    begun, may_end, seen = asyncio.Event(), asyncio.Event(), []

    async def deliver(message):
        begun.set()
        await may_end.wait()
        seen.append(is_seen(kept))
        return True

    kept = await mailbox.add(mail())
    await channel.start(deliver)
    await begun.wait()
    may_end.set()
    await mailbox.until(lambda: is_seen(kept))
    await channel.stop()

    assert seen == [False]
    assert not any("EXPUNGE" in one.upper() for one in mailbox.commands)


async def test_what_the_host_could_not_store_stays_unread_and_comes_again(mailbox, mail):
    from agentos_pack_email import receiving
    from agentos_pack_email.imap import MailboxConnection
    from agentos_pack_email.settings import Options, Server

    options = Options(imap_tls="none", trust="any")
    server = Server("127.0.0.1", mailbox.port, "none", "robot", "pass-word-9")
    came = []

    def connect():
        return MailboxConnection(lambda: server, options, can_write=True)

    async def deliver(message):
        came.append(is_seen(kept))
        if len(came) == 1:
            raise OSError("the store is away")
        return True

    kept = await mailbox.add(mail())
    receiver = receiving.Receiver(options, "a@x.org", connect, logging.getLogger("test"), lambda mail: None)
    task = asyncio.create_task(receiver.run(deliver, connect()))
    await mailbox.until(lambda: is_seen(kept))
    task.cancel()
    await asyncio.wait([task])

    assert came == [False, False]


async def test_a_mail_that_comes_again_is_answered_once(mailbox, smtp, hosting, mail, tmp_path):
    store = str(tmp_path / "store.db")
    await mailbox.add(mail("one"))
    async with hosting(echo, store=store):
        await smtp.until(lambda: len(smtp.raw) == 1)
    for kept in mailbox.mails:
        kept.flags.clear()
    again = await mailbox.add(mail("one"))
    await mailbox.add(mail("two", id="<2@example.org>"))
    async with hosting(echo, store=store):
        await smtp.until(lambda: len(smtp.raw) == 2)
        await mailbox.until(lambda: is_seen(again))

    assert [one["In-Reply-To"] for one in smtp.mails] == ["<1@example.org>", "<2@example.org>"]


async def test_a_mail_without_an_id_is_known_by_a_digest(mailbox, smtp, hosting, mail):
    first = await mailbox.add(mail("one", id=None))
    second = await mailbox.add(mail("one", id=None))
    async with hosting(echo):
        await smtp.until(lambda: smtp.raw)
        await mailbox.until(lambda: is_seen(first) and is_seen(second))

    [answer] = smtp.mails
    assert (answer["To"], answer["In-Reply-To"], answer["References"]) == ("ann@example.org", None, None)


async def test_other_uids_after_a_reconnect_make_no_second_answer(mailbox, smtp, hosting, mail):
    await mailbox.add(mail("one"))
    async with hosting(echo):
        await smtp.until(lambda: len(smtp.raw) == 1)
        await mailbox.until(lambda: is_seen(mailbox.mails[0]) and "IDLE" in mailbox.commands)
        mailbox.mails[0].flags.clear()
        await mailbox.renumber()
        await mailbox.add(mail("two", id="<2@example.org>"))
        await smtp.until(lambda: len(smtp.raw) == 2)
        await mailbox.until(lambda: all(is_seen(kept) for kept in mailbox.mails))

    assert [one["In-Reply-To"] for one in smtp.mails] == ["<1@example.org>", "<2@example.org>"]
    assert mailbox.logins >= 2


async def test_a_uid_that_means_another_mail_now_is_looked_at_again(mailbox, smtp, hosting, mail):
    refused = await mailbox.add(mail(id="<list@example.org>", headers=["List-Id: <x>"]))
    async with hosting(echo):
        await mailbox.until(lambda: "IDLE" in mailbox.commands)
        mailbox.recreate()
        kept = await mailbox.add(mail(id="<2@example.org>"))
        await smtp.until(lambda: smtp.raw)

    assert kept.uid == refused.uid
    assert smtp.mails[0]["In-Reply-To"] == "<2@example.org>"


@pytest.mark.parametrize("when", ["UID FETCH", "UID STORE", "IDLE"])
async def test_a_connection_that_is_lost_is_made_anew(mailbox, smtp, hosting, mail, when):
    left = [True]

    def cut_once(name):
        return name == when and bool(left) and left.pop()

    mailbox.troubles.append(cut_once)
    kept = await mailbox.add(mail())
    async with hosting(echo):
        await smtp.until(lambda: smtp.raw)
        await mailbox.until(lambda: is_seen(kept) and not left)

    assert len(smtp.raw) == 1


async def test_nothing_answers_somebody_whom_nobody_mapped(mailbox, smtp, hosting, mail):
    stranger = await mailbox.add(mail("let me in", id="<s@x.org>", sender="eve@evil.example"))
    await mailbox.add(mail("hello", id="<2@example.org>"))
    async with hosting(echo) as host:
        await smtp.until(lambda: smtp.raw)
        await mailbox.until(lambda: is_seen(stranger))
        letters = await host.channels.letters()

    assert ([one["To"] for one in smtp.mails], letters) == (["ann@example.org"], [])


LOOPS = {
    "answered by a robot": ["Auto-Submitted: auto-replied"],
    "made by a robot": ["Auto-Submitted: auto-generated (by cron); x=y"],
    "bulk": ["Precedence: bulk"],
    "list": ["Precedence: List"],
    "of a mailing list": ["List-Id: <tea.example.org>"],
    "a newsletter": ["List-Unsubscribe: <https://example.org/u>"],
    "bounced": ["Return-Path: <>"],
    "out of office": ["X-Auto-Response-Suppress: All"],
}


async def test_no_loop_is_fed(mailbox, smtp, hosting, mail):
    for number, headers in enumerate(LOOPS.values()):
        await mailbox.add(mail(id=f"<loop{number}@example.org>", headers=headers))
    await mailbox.add(mail(id="<own@example.org>", sender="Agent <AGENT@example.org>"))
    await mailbox.add(mail(id="<report@example.org>", kind="multipart/report; boundary=x"))
    await mailbox.add(mail(id="<two@example.org>", sender="ann@example.org, bob@example.org"))
    await mailbox.add(mail(id="<twice@example.org>", headers=["From: bob@example.org"]))
    await mailbox.add(mail(id="<real@example.org>", headers=["Auto-Submitted: no"]))
    asked = []

    async def answer(message, principal):
        asked.append(message.id)
        return "yes"

    async with hosting(answer):
        await smtp.until(lambda: smtp.raw)
        await mailbox.until(lambda: is_seen(mailbox.mails[-1]))

    assert asked == ["<real@example.org>"]
    assert [is_seen(kept) for kept in mailbox.mails] == [*[False] * (len(mailbox.mails) - 1), True]


async def test_an_own_answer_that_comes_back_is_not_answered(mailbox, smtp, hosting, mail):
    await mailbox.add(mail())
    async with hosting(echo):
        await smtp.until(lambda: len(smtp.raw) == 1)
        back = await mailbox.add(smtp.raw[0].replace(b"From: agent@example.org", b"From: bob@example.org"))
        await mailbox.add(mail(id="<2@example.org>"))
        await smtp.until(lambda: len(smtp.raw) == 2)

    assert not is_seen(back)
    assert smtp.mails[1]["In-Reply-To"] == "<2@example.org>"


async def test_a_sender_without_measure_is_held_up(mailbox, smtp, hosting, mail):
    for number in range(4):
        await mailbox.add(mail(id=f"<{number}@example.org>"))
    await mailbox.add(mail(id="<bob@example.org>", sender="bob@example.org"))
    async with hosting(echo, maxPerHour=2):
        await smtp.until(lambda: len(smtp.raw) == 3)

    assert sorted(one["To"] for one in smtp.mails) == ["ann@example.org", "ann@example.org", "bob@example.org"]
    assert [is_seen(kept) for kept in mailbox.mails] == [True, True, False, False, True]


async def test_old_and_large_mails_are_left_alone(mailbox, smtp, hosting, mail):
    old = await mailbox.add(mail(id="<old@x.org>"), day=dt.datetime.now(dt.UTC).date() - dt.timedelta(days=30))
    large = await mailbox.add(mail("x" * 20_000, id="<large@x.org>"))
    await mailbox.add(mail())
    async with hosting(echo, maxMessageBytes=10_000):
        await smtp.until(lambda: smtp.raw)

    assert (is_seen(old), is_seen(large), len(smtp.raw)) == (False, False, 1)
    assert not any(one.startswith(f"UID fetch {large.uid} ") and "BODY.PEEK[]" in one for one in mailbox.commands)


async def test_attachments_come_in_and_go_out(mailbox, smtp, hosting, mail):
    parts = (
        "--x\nContent-Type: text/plain\n\nSee this\n--x\nContent-Type: image/png; name=a.png\n"
        "Content-Disposition: attachment; filename=../../a.png\n"
        "Content-Transfer-Encoding: base64\n\niVBORw0KGgo=\n--x\n"
        f"Content-Type: application/pdf\nContent-Disposition: attachment; filename=big.pdf\n\n{'y' * 2000}\n--x--"
    )
    await mailbox.add(mail(parts, kind="multipart/mixed; boundary=x"))
    asked = []

    async def answer(message, principal):
        asked.append(message)
        media = [Media("image/png", data=b"\x89PNG", name="b.png"), Media("text/html", url="https://example.org/x")]
        return ChannelMessage(channel="email", conversation="x", text="Here", attachments=media)

    async with hosting(answer, maxAttachedBytes=1_000):
        await smtp.until(lambda: smtp.raw)

    [message] = asked
    assert [(one.mime, one.name, one.data) for one in message.attachments] == [
        ("image/png", "a.png", b"\x89PNG\r\n\x1a\n")
    ]
    assert message.text.splitlines()[-1] == "[attachment left out: big.pdf, application/pdf, 2,000 bytes]"
    [answer] = smtp.mails
    assert answer.get_body().get_content().split() == ["Here", "https://example.org/x"]
    assert [(one.get_filename(), one.get_content()) for one in answer.iter_attachments()] == [("b.png", b"\x89PNG")]


async def test_an_answer_after_a_restart_finds_its_thread_in_the_mailbox(mailbox, smtp, hosting, mail, tmp_path):
    """Another host sends what a first one took in: it knows nothing but what is in the store and in the folder."""
    asked = asyncio.Event()

    async def never(message, principal):
        asked.set()
        await asyncio.Event().wait()

    store = str(tmp_path / "store.db")
    root = ["References: <root@example.org>"]
    await mailbox.add(mail(id="<1@example.org>", headers=[*root, "Reply-To: eve@evil.example"]))
    await mailbox.add(mail(id=None, subject="no id"))
    async with hosting(never, store=store):
        await asked.wait()
        await mailbox.until(lambda: all(is_seen(kept) for kept in mailbox.mails))
    async with hosting(echo, store=store):
        await smtp.until(lambda: len(smtp.raw) == 2)

    by_subject = {one["Subject"]: one for one in smtp.mails}
    assert by_subject["Re: Tea"]["References"].split() == ["<root@example.org>", "<1@example.org>"]
    assert {one["To"] for one in smtp.mails} == {"ann@example.org"}
    assert set(by_subject) == {"Re: Tea", "Re: no id"}


@pytest.mark.parametrize("why", ["gone", "several"])
async def test_an_answer_whose_mail_is_unclear_is_a_dead_letter(mailbox, smtp, hosting, mail, letters, why):
    async with hosting(echo) as host:
        await mailbox.until(lambda: "IDLE" in mailbox.commands)
        if why == "several":
            for sender in ("ann@example.org", "eve@evil.example"):
                (await mailbox.add(mail(id="<x@example.org>", sender=sender))).flags.add("\\Seen")
        place = {"channel": "email", "conversation": "<x@example.org>"}
        await host.channels.send(ChannelMessage(**place, text="secret", reply_to="<x@example.org>"))
        [letter] = await letters(host)

    words = {"gone": "not in the folder 'INBOX' any more", "several": "mails of several senders"}
    assert (letter.state, words[why] in letter.reason, smtp.raw) == ("dead", True, [])


async def test_a_host_can_begin_a_thread(mailbox, smtp, hosting):
    async with hosting(echo) as host:
        message = ChannelMessage(channel="email", conversation="ann@example.org", text="Good morning\nIt rains")
        await host.channels.send(message)
        await smtp.until(lambda: smtp.raw)

    [sent] = smtp.mails
    assert (sent["To"], sent["Subject"], sent["Auto-Submitted"]) == (
        "ann@example.org",
        "Good morning",
        "auto-generated",
    )


async def test_a_connection_that_is_cut_after_the_mail_leaves_it_uncertain(mailbox, smtp, hosting, mail, letters):
    smtp.answers.append(None)
    await mailbox.add(mail())
    async with hosting(echo) as host:
        [letter] = await letters(host)
        await host.channels.retry(letter.id)
        await smtp.until(lambda: len(smtp.raw) == 2)

    assert (letter.state, letter.attempts) == ("uncertain", 1)
    assert "it may have been sent" in letter.reason
    first, second = smtp.mails
    assert first["Message-ID"] == second["Message-ID"]


async def test_a_mail_that_is_refused_for_now_is_sent_again(mailbox, smtp, hosting, mail):
    smtp.answers.append("451 come later")
    await mailbox.add(mail())
    async with hosting(echo) as host:
        await smtp.until(lambda: smtp.raw)
        letters = await host.channels.letters()

    assert (len(smtp.raw), letters) == (1, [])


async def test_a_mail_that_breaks_its_reader_holds_up_nobody(mailbox, smtp, hosting, mail):
    deep = "".join(f"--b{n}\nContent-Type: multipart/mixed; boundary=b{n + 1}\n\n" for n in range(200))
    broken = await mailbox.add(mail(deep, id="<deep@example.org>", kind="multipart/mixed; boundary=b0"))
    await mailbox.add(mail())
    async with hosting(echo):
        await smtp.until(lambda: smtp.raw)

    assert (is_seen(broken), smtp.mails[0]["In-Reply-To"]) == (False, "<1@example.org>")


async def test_a_mail_that_is_refused_for_good_is_a_dead_letter(mailbox, smtp, hosting, mail, letters):
    smtp.refused["ann@example.org"] = "550 no such user"
    await mailbox.add(mail())
    async with hosting(echo) as host:
        [letter] = await letters(host)

    assert (letter.state, letter.attempts) == ("dead", 1)
    assert letter.reason == "SMTP: the server refused with 550: no such user"


async def to_send(host):
    [info] = await host.channels.known()
    return info if info.to_send else None


async def test_a_mail_that_nobody_takes_waits(mailbox, hosting, mail, serve_smtp, found):
    async with serve_smtp().serving() as away:
        pass
    await mailbox.add(mail())
    async with hosting(echo, outgoing=away) as host:
        await mailbox.until(lambda: is_seen(mailbox.mails[0]))
        info = await found(lambda: to_send(host))

    assert (info.to_send, info.letters) == (1, 0)


async def test_it_does_not_start_before_the_operator_said_whom_to_believe(mailbox, hosting, mail, caplog, found):
    await mailbox.add(mail())
    async with hosting(echo, trust="nobody") as host:

        async def is_told():
            return "could not be started" in caplog.text

        await found(is_told)
        [info] = await host.channels.known()
        troubles = [str(one) for one in (await host.check()).troubles]

    assert not info.is_running
    assert mailbox.logins == 0
    assert any("the option `trust` does not say whose word counts" in one for one in troubles)


async def test_stop_ends_everything(mailbox, hosting, found):
    def threads():
        return [one for one in threading.enumerate() if one.name.startswith("agentos-email")]

    async def is_over():
        return not mailbox.talks and not threads()

    async with hosting(echo):
        await mailbox.until(lambda: "IDLE" in mailbox.commands)
        assert len(threads()) == 1

    assert await found(is_over)
