"""The tools that read: they list, find and show mails, change nothing, and no server or query leads them astray."""

import datetime as dt
import re

import pytest


async def filled(mailbox, mail):
    """Put three mails into the mailbox, the second of which was read."""
    days = [dt.date(2026, 1, day) for day in (10, 20, 30)]
    await mailbox.add(mail("About tea", id="<1@x.org>", subject="Tea"), day=days[0])
    await mailbox.add(mail("About cake", id="<2@x.org>", subject="Cake", sender="Bob <bob@example.org>"), day=days[1])
    await mailbox.add(mail("About Gr\u00fc\u00dfe", id="<3@x.org>", subject="More"), day=days[2])
    mailbox.mails[1].flags.add("\\Seen")


async def test_mails_are_listed_newest_first(mailbox, hosting, mail, call):
    await filled(mailbox, mail)
    async with hosting() as host:
        all_of_them = (await call(host, "email_list")).output
        first = (await call(host, "email_list", limit=1, offset=1)).output
        unread = (await call(host, "email_list", unread_only=True)).output

    assert [(one["id"], one["subject"], one["unread"]) for one in all_of_them["mails"]] == [
        ("7-3", "More", True),
        ("7-2", "Cake", False),
        ("7-1", "Tea", True),
    ]
    assert (all_of_them["total"], all_of_them["truncated"]) == (3, False)
    assert ([one["sender"] for one in first["mails"]], first["total"], first["truncated"]) == (
        ["Bob <bob@example.org>"],
        3,
        True,
    )
    assert [one["id"] for one in unread["mails"]] == ["7-3", "7-1"]
    assert not any(command.upper().startswith(("SELECT", "UID STORE")) for command in mailbox.commands)


@pytest.mark.parametrize(
    ("asked", "ids"),
    [
        ({"text": "cake"}, ["7-2"]),
        ({"text": "Gr\u00fc\u00dfe"}, ["7-3"]),
        ({"sender": "bob@"}, ["7-2"]),
        ({"subject": "tea"}, ["7-1"]),
        ({"since": "2026-01-15"}, ["7-3", "7-2"]),
        ({"since": "2026-01-15", "before": "2026-01-30"}, ["7-2"]),
        ({"subject": "tea", "sender": "bob"}, []),
        ({"text": 'tea" ALL'}, []),
        ({"text": "tea\\"}, []),
        ({"subject": "x\r\nA1 UID STORE 1 +FLAGS (\\Deleted)\r\n"}, []),
    ],
)
async def test_mails_are_found_by_what_is_asked(mailbox, hosting, mail, call, asked, ids):
    await filled(mailbox, mail)
    async with hosting() as host:
        result = await call(host, "email_search", **asked)

    assert [one["id"] for one in result.output["mails"]] == ids
    assert not any("STORE" in command.split()[:2] for command in mailbox.commands)


@pytest.mark.parametrize(
    ("asked", "words"),
    [({}, "expected one of text"), ({"since": "2026-02-31"}, "since: expected a day"), ({"text": "\u200b"}, "be seen")],
)
async def test_a_search_that_asks_nothing_is_refused(mailbox, hosting, call, asked, words):
    async with hosting() as host:
        result = await call(host, "email_search", **asked)

    assert words in str(result.error)
    assert mailbox.logins == 0


async def test_a_mail_is_read_and_stays_unread(mailbox, hosting, mail, call):
    results = ["Authentication-Results: mx.example.org; dmarc=pass header.from=example.org"]
    kept = await mailbox.add(mail("Hello", headers=results))
    async with hosting(trustServer="mx.example.org") as host:
        found = (await call(host, "email_read", id="7-1")).output

    assert found == {
        "id": "7-1",
        "message_id": "<1@example.org>",
        "sender": "ann@example.org",
        "to": "agent@example.org",
        "subject": "Tea",
        "date": "2026-11-02T10:00:00+00:00",
        "verified": True,
        "text": "Hello",
        "truncated": False,
        "attachments": [],
    }
    assert kept.flags == set()


@pytest.mark.parametrize(
    ("id", "words"),
    [("7-9", "no such mail any more"), ("6-1", "no such mail any more"), ("1:*", "expected one such as")],
)
async def test_a_mail_that_is_not_there_is_told(mailbox, hosting, mail, call, id, words):
    await mailbox.add(mail())
    async with hosting() as host:
        result = await call(host, "email_read", id=id)

    assert words in str(result.error)


async def test_a_mail_that_is_too_large_is_not_fetched(mailbox, hosting, mail, call):
    await mailbox.add(mail("x" * 20_000))
    async with hosting(maxMessageBytes=10_000) as host:
        result = await call(host, "email_read", id="7-1")

    assert "more than the operator allows" in str(result.error)
    assert not any("BODY" in command for command in mailbox.commands)


@pytest.mark.parametrize(
    "flood",
    [
        [b"* 1 FETCH (UID 1 RFC822.SIZE 10 BODY[] {900000000}\r\n"],
        [b"* 1 FETCH (FLAGS ())\r\n" * 10_000] * 20,
        [b"x" * 1_000_000] * 25,
    ],
    ids=["literal", "lines", "line"],
)
async def test_a_server_that_pours_is_left(mailbox, hosting, mail, call, flood):
    await mailbox.add(mail())
    mailbox.flood = flood
    async with hosting() as host:
        result = await call(host, "email_list")

    assert "IMAP: the connection was lost, or the server said what it may not" in str(result.error)


async def test_a_server_that_says_nothing_is_left_in_time(mailbox, hosting, call):
    await mailbox.add(b"Subject: x\r\n\r\n")
    mailbox.is_silent = True
    async with hosting(timeout=1) as host:
        result = await call(host, "email_list")

    assert re.search("IMAP: (the server does not answer|no whole answer within 1 s)", str(result.error))


async def test_a_wrong_password_is_told_without_the_password(mailbox, hosting, call):
    async with hosting(secrets={"email.imapPassword": "wrong-word-7"}) as host:
        result = await call(host, "email_list")

    assert "the server refused: the login; check email.imapUser and email.imapPassword" in str(result.error)
    assert "wrong-word-7" not in repr(result)


async def test_a_folder_that_is_not_there_is_told(mailbox, hosting, call):
    async with hosting(folder="Agents") as host:
        result = await call(host, "email_list")

    assert "to open the folder; see the option `folder`" in str(result.error)


async def test_the_tools_work_from_a_process(mailbox, mail, hosting, call):
    await mailbox.add(mail())
    async with hosting(isolation="process") as host:
        result = await call(host, "email_list")

    assert [one["subject"] for one in result.output["mails"]] == ["Tea"]
