"""Mail that goes out: what is certain, who is allowed, how a password travels, and that text stays text."""

import asyncio

import pytest

from agentos import OptionsError, PackEntry, read_options


async def sent(call, host, **arguments):
    given = {"to": ["ann@example.org"], "subject": "Tea", "body": "It is ready", **arguments}
    return await call(host, "email_send", **given)


async def test_a_mail_is_sent_to_all_of_its_recipients(smtp, hosting, call):
    async with hosting(fromName="The agent, of tea") as host:
        result = await sent(call, host, to=["ann@example.org", "bob@example.org"], in_reply_to="<1@example.org>")

    [mail] = smtp.mails
    assert smtp.envelopes == [("agent@example.org", "ann@example.org", "bob@example.org")]
    assert result.output["message_id"] == mail["Message-ID"]
    assert (mail["From"], mail["To"]) == (
        '"The agent, of tea" <agent@example.org>',
        "ann@example.org, bob@example.org",
    )
    assert (mail["Subject"], mail["In-Reply-To"], mail["Auto-Submitted"]) == (
        "Tea",
        "<1@example.org>",
        "auto-generated",
    )
    assert mail.get_content().splitlines() == ["It is ready"]


@pytest.mark.parametrize("address", ["eve@evil.example", "ann@example.org.evil.example", "ann@sub.example.org"])
async def test_nobody_is_written_to_who_is_not_allowed(smtp, hosting, call, address):
    async with hosting() as host:
        result = await sent(call, host, to=["ann@example.org", address])

    assert (result.success, smtp.raw) == (False, [])
    assert f"{address} is not allowed; the operator's option `recipients` allows *@example.org" in str(result.error)


async def test_nobody_is_allowed_by_default(smtp, hosting, call):
    async with hosting(recipients=[]) as host:
        result = await sent(call, host)

    assert "allows nobody" in str(result.error)
    assert smtp.raw == []


HOSTILE = [
    "x\r\nBcc: eve@evil.example",
    "x\nBcc: eve@evil.example",
    "x\u2028Bcc: eve@evil.example",
    "x\r\n\r\nbody\r\n.",
]


@pytest.mark.parametrize("text", HOSTILE)
async def test_no_text_becomes_a_header_or_a_command(smtp, hosting, call, text):
    async with hosting() as host:
        first = await sent(call, host, subject=text, body=f"Hi\r\n.\r\nMAIL FROM:<eve@evil.example>\r\n{text}")
        second = await sent(call, host, to=[f"ann@example.org{text[1:]}"])
        third = await sent(call, host, in_reply_to=f"<1@example.org>{text}")

    [mail] = smtp.mails
    assert (first.success, second.success, third.success) == (True, False, False)
    assert (mail["Bcc"], smtp.envelopes) == (None, [("agent@example.org", "ann@example.org")])
    assert mail.get_content().splitlines()[:3] == ["Hi", ".", "MAIL FROM:<eve@evil.example>"]


async def test_a_subject_is_what_it_looks_like(smtp, hosting, call):
    async with hosting() as host:
        await sent(call, host, subject="Gr\u00fc\u00dfe \u202eabc =?utf-8?q?B=0Acc?= x")

    assert smtp.mails[0]["Subject"] == "Gr\u00fc\u00dfe abc B=0Acc?= x"


async def test_long_ids_stay_as_they_are(smtp, hosting, call):
    id = f"<{'a' * 200}@{'b' * 200}.example.org>"
    async with hosting() as host:
        await sent(call, host, in_reply_to=id)

    assert f"In-Reply-To: {id}\r\nReferences: {id}\r\n".encode() in smtp.raw[0]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("451 come later", "the server refused with 451: come later"),
        ("554 it looks like spam", "the server refused with 554: it looks like spam"),
        (None, "it may have been sent"),
    ],
)
async def test_a_mail_that_was_not_taken_is_told(smtp, hosting, call, answer, words):
    smtp.answers.append(answer)
    async with hosting() as host:
        result = await sent(call, host)

    assert not result.success
    assert words in str(result.error)


async def test_one_refused_recipient_keeps_it_from_all(smtp, hosting, call):
    smtp.refused["bob@example.org"] = "550 no such user"
    async with hosting() as host:
        result = await sent(call, host, to=["ann@example.org", "bob@example.org"])

    assert "550: no such user" in str(result.error)
    assert smtp.raw == []


async def test_a_wrong_password_is_told_without_the_password(smtp, hosting, call):
    async with hosting(secrets={"email.smtpPassword": "wrong-word-7"}) as host:
        result = await sent(call, host)

    assert "the login was refused (535); check email.smtpUser and email.smtpPassword" in str(result.error)
    assert "wrong-word-7" not in repr(result)
    assert smtp.raw == []


async def test_a_server_that_says_nothing_is_left_in_time(hosting, call):
    came = asyncio.Event()

    async def silent(reader, writer):
        came.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    server.port = server.sockets[0].getsockname()[1]
    async with server, hosting(outgoing=server, timeout=1) as host:
        result = await sent(call, host)

    assert came.is_set()
    assert "SMTP: the server did not answer within 1 s; nothing was sent" in str(result.error)


async def test_a_preview_sends_nothing(smtp, hosting):
    from agentos import ToolCall

    async with hosting(mode="approve") as host:
        arguments = {"to": ["ann@example.org"], "subject": "Tea", "body": "Ready"}
        await host.tools.process_tool_call(ToolCall("email_send", arguments))
        [proposal] = await host.approvals.pending()

    assert "send from agent@example.org to ann@example.org" in str(proposal.preview)
    assert smtp.raw == []


class TestTls:
    @pytest.mark.parametrize("mode", ["starttls", "implicit"])
    async def test_mail_goes_over_a_connection_that_is_checked(
        self, mode, tls, certificate, serve_smtp, serve_imap, hosting, mail
    ):
        is_implicit = mode == "implicit"
        smtp, imap = (serve(tls=tls, is_implicit=is_implicit) for serve in (serve_smtp, serve_imap))
        async with smtp.serving(), imap.serving():
            await imap.add(mail())
            given = {"smtpTls": mode, "imapTls": mode, "caFile": str(certificate), "outgoing": smtp, "imap": imap}

            async def echo(message, principal):
                return "yes"

            async with hosting(echo, **given):
                await smtp.until(lambda: smtp.raw)

        assert smtp.encrypted == [True]
        assert imap.encrypted_logins == imap.logins > 0

    @pytest.mark.parametrize("mode", ["starttls", "implicit"])
    async def test_a_certificate_that_nobody_trusts_gets_no_password(
        self, mode, tls, serve_smtp, serve_imap, hosting, call
    ):
        is_implicit = mode == "implicit"
        smtp, imap = (serve(tls=tls, is_implicit=is_implicit) for serve in (serve_smtp, serve_imap))
        given = {"smtpTls": mode, "imapTls": mode, "outgoing": smtp, "imap": imap}
        async with smtp.serving(), imap.serving(), hosting(**given) as host:
            results = [await sent(call, host), await call(host, "email_list")]

        assert ["certificate is not one that is trusted" in str(one.error) for one in results] == [True, True]
        assert (smtp.raw, imap.logins) == ([], 0)

    async def test_a_server_that_does_not_offer_starttls_gets_no_password(self, smtp, mailbox, hosting, call):
        async with hosting(smtpTls="starttls", imapTls="starttls") as host:
            results = [await sent(call, host), await call(host, "email_list")]

        assert [one.success for one in results] == [False, False]
        assert (smtp.raw, mailbox.logins) == ([], 0)

    @pytest.mark.parametrize(
        "host", ["mail.example.org", "192.0.2.7", "localhost.example.org", "127.0.0.1.example.org"]
    )
    async def test_without_tls_only_this_machine_is_spoken_to(self, hosting, call, host):
        async with hosting(secrets={"email.smtpHost": host, "email.imapHost": host}) as agent:
            results = [await sent(call, agent), await call(agent, "email_list")]

        assert ["without TLS only a server on this machine" in str(one.error) for one in results] == [True, True]


async def test_without_secrets_nothing_is_offered():
    from agentos import AgentOS

    async with AgentOS(extension_manifest=[PackEntry(module="agentos_pack_email")]) as host:
        active = [host.extensions.registry(kind).list_active() for kind in ("tool", "messaging-channel")]

    assert active == [[], []]


async def test_sending_needs_no_mailbox(hosting, smtp, call):
    missing = dict.fromkeys(["email.imapHost", "email.imapUser", "email.imapPassword"])
    async with hosting(secrets=missing) as host:
        names = [one.id for one in host.extensions.registry("tool").list_active()]
        result = await sent(call, host)

    assert (names, result.success) == (["email_send"], True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"trust": "everybody"}, "trust"),
        ({"recipients": ["*"]}, "recipients"),
        ({"recipients": ["*@*"]}, "recipients"),
        ({"fromAddress": "agent@example.org\r\nBcc: x@example.org"}, "fromAddress"),
        ({"smtpPort": 0}, "smtpPort"),
        ({"folder": "a\r\nb"}, "folder"),
        ({"trustServer": "mx.example.org; dmarc=pass"}, "trustServer"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_wrong_options_are_named(options, words):
    from agentos_pack_email.settings import Options

    with pytest.raises(OptionsError, match=rf"options\.{words}"):
        read_options(Options, options)
