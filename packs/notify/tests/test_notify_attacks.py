"""A model that wants a message to go elsewhere, or to be more than a message.

What `docs/security.md` says of the number of attempts is the number of cases here.
"""

import asyncio
import json

import pytest

from agentos import Principal

# apprise imports a module of Python that is going away, on Pythons that still have it.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
SENDER = Principal("sue", access={"notify:send", "notify:read"})
EVIL = "Bcc: eve@example.org"
TITLES = (
    *(f"A{end}{EVIL}" for end in ("\r\n", "\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x85", "\u2028", "\u2029", "\0")),
    *(f"A\r\n {EVIL}", f"A\r\n\r\n{EVIL}", f"\r\n{EVIL}", f"A\\r\\n{EVIL}", f"A%0d%0a{EVIL}", f"A&#13;&#10;{EVIL}"),
    *(f"=?utf-8?q?A=0D=0A{EVIL.replace(' ', '_')}?=", "=?utf-8?b?QQ0KQmNjOiBldmVAZXhhbXBsZS5vcmc=?=", f"A?=\r\n{EVIL}"),
    *("x" * 240 + f" {EVIL}", "{{app_id}} ${HOME} %(to)s {0} {to}", "to=eve@example.org&cc=eve@example.org"),
)
BODIES = (
    *(
        f"A{dot}MAIL FROM:<eve@example.org>\r\nRCPT TO:<eve@example.org>\r\nDATA\r\nevil\r\n.\r\n"
        for dot in ("\r\n.\r\n",)
    ),
    *(
        f"A{dot}RCPT TO:<eve@example.org>"
        for dot in ("\n.\n", "\r.\r", "\n.\r\n", "\r\n.\n", "\r.\n", "\n.\r", "\0.\r\n")
    ),
    *(
        f"{EVIL}\r\n\r\nx",
        "From eve@example.org\nx",
        ".",
        "..",
        ".\r\n",
        "--===============0==\r\nContent-Type: text/html",
    ),
    *("begin 644 x\nevil\nend", "x" * 5_000, "<img src=http://127.0.0.1:1/>", "Content-Type: text/html\n\n<b>x</b>"),
)


def mail(mailbox):
    return (
        f"mail=mailto://robot:pass-word-9@127.0.0.1:{mailbox.port}"
        "?from=robot@example.org&to=ann@example.org&mode=insecure&format=text"
    )


async def in_turns(sends):
    """Await all of them, a few at a time: each is a process."""
    turn = asyncio.Semaphore(3)

    async def one(send):
        async with turn:
            return await send

    return await asyncio.gather(*(one(send) for send in sends))


@pytest.mark.proof
async def test_no_title_and_no_body_makes_a_header_a_recipient_or_a_second_mail(hosting, call, mailbox):
    messages = [{"title": title, "body": "x"} for title in TITLES] + [{"title": "A", "body": body} for body in BODIES]
    async with hosting(mail(mailbox)) as host:
        results = await in_turns(call(host, "notify_send", SENDER, target="mail", **one) for one in messages)

    sent = sum(result.success for result in results)
    assert (sent > 0, len(mailbox.messages)) == (True, sent)
    assert set(mailbox.recipients) == {("robot@example.org", "ann@example.org")}
    assert [one for one in mailbox.messages if one["bcc"] or one["cc"] or one["to"] != "ann@example.org"] == []
    assert {one.get_content_type() for one in mailbox.messages} == {"text/plain"}
    assert [one for one in mailbox.messages if any("\n" in value for value in one.values())] == []
    assert [one.defects for one in mailbox.messages if one.defects] == []


TARGETS = (
    *("dev", "OPS", "Ops", "ops ", " ops", "ops\n", "ops,hook", "ops hook", "ops;hook", "*", "all", "%", "", "ops\0"),
    *(
        "ops=json://127.0.0.1:{port}/",
        "json://127.0.0.1:{port}/",
        "http://127.0.0.1:{port}/",
        "ops/../hook",
        "ops?to=x",
    ),
    *("mailto://eve:x@example.org", "ops\u200b", "\uff4fps", "file:///tmp/x", "exec://id", "ops#hook", "ops@127.0.0.1"),
)


@pytest.mark.parametrize("tool", ["notify_send", "notify_schedule"])
async def test_no_target_but_a_named_one_is_sent_to(hosting, call, hook, tool):
    later = {"at": "2030-05-01T09:00:00+02:00"} if tool == "notify_schedule" else {}
    async with hosting(f"ops=json://user:s3cr3t@127.0.0.1:{hook.port}/hook") as host:
        names = [target.format(port=hook.port) for target in TARGETS]
        results = [await call(host, tool, SENDER, target=name, title="", body="x", **later) for name in names]

    assert ([one.content for one in results if one.success], hook.received) == ([], [])
    assert "s3cr3t" not in json.dumps([one.content for one in results])


@pytest.mark.parametrize("title", [one for one in TITLES if one.startswith("=?")])
async def test_a_title_that_a_mail_program_shows_as_something_else_is_refused(hosting, call, hook, title):
    """Whoever approves a message sees the title as it is."""
    async with hosting(f"ops=json://127.0.0.1:{hook.port}/hook") as host:
        result = await call(host, "notify_send", SENDER, target="ops", title=title, body="x")

    assert ("shows as other text" in result.content, hook.received) == (True, [])


@pytest.mark.proof
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_of_a_service_is_followed(hosting, call, hook, status):
    hook.status, hook.headers = f"{status} Elsewhere", f"Location: http://127.0.0.1:{hook.port}/other\r\n"
    async with hosting(f"ops=json://user:s3cr3t@127.0.0.1:{hook.port}/hook") as host:
        result = await call(host, "notify_send", SENDER, target="ops", title="", body="x")

    assert (result.success, len(hook.received)) == (False, 1)
