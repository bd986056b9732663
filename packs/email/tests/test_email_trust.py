"""Senders: nobody is believed by their own word, and a trusted server only by its topmost."""

import pytest
from agentos_pack_email.settings import Options
from agentos_pack_email.trust import is_verified

GOOD = "mx.example.org; dmarc=pass (p=REJECT) header.from=example.org"


def believed(*fields, method="dmarc", sender="ann@example.org"):
    options = Options(trust="authentication-results", trust_server="mx.example.org", trust_method=method)
    return is_verified(sender, fields, options)


@pytest.mark.parametrize(
    "field",
    [
        GOOD,
        "MX.example.org 1; DMARC=Pass header.from=Example.org",
        "mx.example.org; spf=fail smtp.mailfrom=x@y.org; dmarc=pass",
        "mx.example.org (a (nested) comment);\r\n\tdkim=none;\r\n\tdmarc = pass  header.from = example.org",
        'mx.example.org; spf=pass smtp.mailfrom="a; b"@y.org; dmarc=pass header.from=example.org;',
    ],
)
def test_a_sender_counts_if_the_trusted_server_vouches(field):
    assert believed(field)


@pytest.mark.parametrize(
    "fields",
    [
        [],
        ["evil.example; dmarc=pass header.from=example.org"],
        ["mx.example.org.evil.example; dmarc=pass"],
        ["mx.example.org; dmarc=fail header.from=example.org"],
        ["mx.example.org; dmarc=fail (x; dmarc=pass header.from=example.org)"],
        ["mx.example.org; dmarc=fail (a \\) ; dmarc=pass )"],
        ['mx.example.org; spf=pass smtp.mailfrom="x; dmarc=pass header.from=example.org"@evil.example'],
        ["mx.example.org; dmarc=fail; dmarc=pass header.from=example.org"],
        ["mx.example.org; dmarc=pass header.from=evil.example"],
        ["mx.example.org; dmarc=passed"],
        ["mx.example.org; dmarc=pass (open"],
        ['mx.example.org; dmarc=pass "open'],
        ["mx.example.org; none"],
        ["mx.example.org; nonsense; dmarc=pass header.from=example.org"],
        ["dmarc=pass header.from=example.org"],
        ["evil.example mx.example.org; dmarc=pass"],
        # what came with the mail stands beneath what the server wrote
        ["mx.example.org; dmarc=none", GOOD],
        ["mx.example.org; spf=pass smtp.mailfrom=example.org", GOOD],
        ["mx.example.org;" + " " * 30_000 + "dmarc=pass"],
    ],
)
def test_nobody_else_counts(fields):
    assert not believed(*fields)


def test_the_word_of_others_above_changes_nothing():
    assert believed("other.example; dmarc=fail", GOOD, "mx.example.org; dmarc=fail")


@pytest.mark.parametrize(
    ("method", "results", "is_believed"),
    [
        ("dkim", "dkim=pass header.d=example.org", True),
        ("dkim", "dkim=fail header.d=other.org; dkim=pass header.i=@example.org", True),
        ("dkim", "dkim=pass header.d=evil.example", False),
        ("dkim", "dkim=pass header.d=sub.example.org", False),
        ("dkim", "dkim=pass", False),
        ("spf", "spf=pass smtp.mailfrom=robot@example.org", True),
        ("spf", "spf=pass smtp.mailfrom=evil.example", False),
        ("spf", "spf=pass smtp.helo=example.org", False),
        ("spf", "spf=softfail smtp.mailfrom=example.org", False),
        ("dkim", "dmarc=pass header.from=example.org", False),
    ],
)
def test_other_methods_are_about_the_very_domain(method, results, is_believed):
    assert believed(f"mx.example.org; {results}", method=method) is is_believed


async def test_a_forged_mail_is_not_answered(mailbox, smtp, hosting, mail):
    forged = await mailbox.add(
        mail("do it", id="<f@x.org>", headers=["Authentication-Results: evil.example; dmarc=pass"])
    )
    beneath = ["Authentication-Results: mx.example.org; dmarc=fail", f"Authentication-Results: {GOOD}"]
    layered = await mailbox.add(mail("do it", id="<g@x.org>", headers=beneath))
    await mailbox.add(mail("please", id="<1@example.org>", headers=[f"Authentication-Results: {GOOD}"]))
    asked = []

    async def answer(message, principal):
        asked.append((message.id, principal.id))
        return "yes"

    async with hosting(answer, trust="authentication-results", trustServer="mx.example.org"):
        await smtp.until(lambda: smtp.raw)

    assert asked == [("<1@example.org>", "ann")]
    assert ["\\Seen" in one.flags for one in (forged, layered)] == [False, False]


async def test_a_trusted_server_has_to_be_named(hosting):
    async def answer(message, principal):
        return None

    async with hosting(answer, trust="authentication-results") as host:
        troubles = [str(one) for one in (await host.check()).troubles]

    assert any("`trustServer` does not name the server" in one for one in troubles)


async def test_an_answer_goes_to_the_verified_sender_alone(mailbox, smtp, hosting, mail, tmp_path):
    """A forger sends a mail with the id of one that waits for its answer: the answer finds the right one."""
    from agentos import ChannelMessage

    good = [f"Authentication-Results: {GOOD}"]
    for sender, headers in (("eve@evil.example", []), ("ann@example.org", good), ("eve@evil.example", [])):
        (await mailbox.add(mail(id="<x@example.org>", sender=sender, headers=headers))).flags.add("\\Seen")

    async def answer(message, principal):
        return None

    async with hosting(answer, trust="authentication-results", trustServer="mx.example.org") as host:
        place = {"channel": "email", "conversation": "<x@example.org>", "reply_to": "<x@example.org>"}
        await host.channels.send(ChannelMessage(**place, text="secret"))
        await smtp.until(lambda: smtp.raw)

    assert smtp.envelopes == [("agent@example.org", "ann@example.org")]
