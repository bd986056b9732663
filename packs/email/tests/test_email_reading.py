"""Mails as they are read: text, threads, senders, and what is made to break readers."""

import random

import pytest
from agentos_pack_email.addresses import is_allowed, sender_of
from agentos_pack_email.html_text import text_of_html
from agentos_pack_email.mails import UnreadableError, read_mail, without_quotes
from agentos_pack_email.settings import Options

OPTIONS = Options()


@pytest.mark.parametrize(
    ("field", "sender"),
    [
        ("ann@example.org", "ann@example.org"),
        ("<Ann.B+c@Example.ORG>", "ann.b+c@example.org"),
        ("Ann B <ann@example.org>", "ann@example.org"),
        ('"Ann, of tea <eve@x.org>" <ann@example.org>', "ann@example.org"),
        ("=?utf-8?q?Ann?= <ann@example.org>", "ann@example.org"),
        ("ann@example.org <eve@evil.example>", None),
        ("ann@example.org, eve@evil.example", None),
        ("ann@example.org <eve@evil.example>, bob@example.org", None),
        ("<ann@example.org> <eve@evil.example>", None),
        ("Ann (ann@example.org) <eve@evil.example>", None),
        ("friends: ann@example.org;", None),
        ('"ann@example.org" <>', None),
        ('"a b"@example.org', None),
        ("ann@example.org@evil.example", None),
        ("ann@[127.0.0.1]", None),
        ("\u0430nn@example.org", None),
        ("", None),
        ('"' * 1_999, None),
    ],
)
def test_a_sender_is_one_clear_address(field, sender):
    assert sender_of(field) == sender


def test_patterns_are_addresses_or_whole_domains():
    patterns = ("*@example.org", "bob@Example.com")

    assert [
        is_allowed(one, patterns) for one in ("Ann@EXAMPLE.org", "BOB@example.com", "ann@example.com", "x@a.org")
    ] == [
        True,
        True,
        False,
        False,
    ]


def test_a_thread_is_known_by_its_first_mail(mail):
    def read(*headers, **more):
        return read_mail(mail(headers=headers, **more), OPTIONS)

    alone = read()
    answer = read("In-Reply-To: <0@x.org>", id="<2@x.org>")
    later = read("References: <0@x.org>\r\n <1@x.org>", "In-Reply-To: <1@x.org>", id="<3@x.org>")
    itself = read("References: <4@x.org>", id="<4@x.org>")

    assert [one.conversation for one in (alone, answer, later, itself)] == [
        "<1@example.org>",
        "<0@x.org>",
        "<0@x.org>",
        "<4@x.org>",
    ]
    assert (alone.is_reply, later.is_reply, later.references) == (False, True, ("<0@x.org>", "<1@x.org>"))


def test_a_mail_with_an_id_that_is_none_has_a_digest(mail):
    ids = [read_mail(mail(id=id), OPTIONS).id for id in (None, "no-brackets", "<with space@x.org>", f"<{'x' * 600}>")]

    assert [one.partition(":")[0] for one in ids] == ["sha256"] * 4
    assert len(set(ids)) == 4


ALTERNATIVES = (
    "--x\nContent-Type: text/html; charset=utf-8\n\n<p>From <b>HTML</b></p>\n--x\n"
    "Content-Type: text/plain; charset=utf-8\n\nFrom plain \u00e9\n--x--"
)


def test_the_plain_part_is_read_before_html(mail):
    found = read_mail(mail(ALTERNATIVES, kind="multipart/alternative; boundary=x"), OPTIONS)

    assert (found.text, found.attached) == ("From plain \u00e9", ())


def test_html_is_read_as_text(mail):
    page = (
        "<html><head><title>no</title><style>p {color: red}</style></head><body><!-- no --><h1>Tea &amp; cake</h1>"
        "<p>One<br>two   three</p><ul><li>a</li><li>b</li></ul><script>alert('no')</script>"
        "<img src='http://evil.example/pixel'><a href='http://example.org'>link</a> 1 < 2</body></html>"
    )

    found = read_mail(mail(page, kind="text/html"), OPTIONS)

    assert found.text == "Tea & cake\n\nOne\ntwo three\n\n- a\n\n- b\n\nlink 1 < 2"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<" * 50_000, "<" * 50_000),
        ("a<!--" + "<!--" * 80_000, "a"),
        ("a<script>" + "<script>" * 40_000, "a"),
        ("a<a " + "<a " * 100_000, "a"),
        ("&" * 300_000, "&" * 300_000),
        ("a" + "<p>" * 100_000 + "b", "a\n\nb"),
    ],
    ids=["less than", "comments", "scripts", "tags", "references", "paragraphs"],
)
def test_html_that_is_never_closed_is_read_in_one_pass(page, text):
    assert text_of_html(page) == text


def test_quotes_are_left_out_unless_they_are_wanted(mail):
    text = "Yes.\n\nOn Monday I rest.\nOn Mon, 2 Nov 2026 Ann <ann@example.org>\nwrote:\n\n> Tea?\n>> Cake?\n\nAnn"

    assert read_mail(mail(text), OPTIONS).text == "Yes.\n\nOn Monday I rest.\n\n\nAnn"
    assert read_mail(mail(text), Options(keep_quotes=True)).text == text
    assert without_quotes("> only\n> this") == "> only\n> this"


def test_quotes_in_html_are_left_out_too(mail):
    page = "<div>Yes</div><blockquote><p>Tea?</p><blockquote>Cake?</blockquote></blockquote><div>Ann</div>"

    assert read_mail(mail(page, kind="text/html"), OPTIONS).text.split() == ["Yes", "Ann"]
    assert "Cake?" in read_mail(mail(page, kind="text/html"), Options(keep_quotes=True)).text


def test_text_is_bounded_and_visible(mail):
    found = read_mail(mail("a\u202eb\x1b[31m" + "c" * 1_000), Options(max_text=100))

    assert (found.text, found.truncated) == ("ab" + "c" * 98, True)


def test_fields_are_decoded_on_one_line(mail):
    found = read_mail(mail(subject="=?utf-8?q?Gr=C3=BC=C3=9Fe=0D=0ABcc=3A?= =?x-unknown?b?/w==?="), OPTIONS)

    assert found.subject == "Gr\u00fc\u00dfe Bcc:\ufffd"


def nested(depth):
    lines = ["Content-Type: multipart/mixed; boundary=b0", ""]
    for level in range(depth):
        lines += [f"--b{level}", f"content-TYPE:\tmultipart/mixed; boundary=b{level + 1}", ""]
    return "\r\n".join(lines).encode() + b"\r\nx" * 1_000


def test_a_mail_that_is_nested_too_deep_is_unreadable():
    with pytest.raises(UnreadableError, match="nested too deep"):
        read_mail(nested(2_000), OPTIONS)


def test_a_mail_with_too_many_parts_is_unreadable(mail):
    with pytest.raises(UnreadableError, match="more than 200 parts"):
        read_mail(mail("--x\n\ny\n" * 300 + "--x--", kind="multipart/mixed; boundary=x"), OPTIONS)


def test_whatever_comes_is_read_or_refused(mail):
    """Mails with bytes changed at random, from a seed: nothing but UnreadableError comes out."""
    chance = random.Random(17)
    whole = mail(ALTERNATIVES, kind="multipart/alternative; boundary=x", headers=["References: <a@b>"])
    read = 0
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 30)):
            data[chance.randrange(len(data))] = chance.choice(b'\r\n\0\xff<>"=?;:-x')
        try:
            found = read_mail(bytes(data), OPTIONS)
        except UnreadableError:
            continue
        read += 1
        assert found.id.isprintable()
        assert found.conversation.isprintable()

    assert read > 300


def test_a_mail_within_a_mail_is_an_attachment(mail):
    inner = "--x\n\nSee\n--x\nContent-Type: message/rfc822\n\nSubject: inner\n\nHidden\n--x--"

    found = read_mail(mail(inner, kind="multipart/mixed; boundary=x"), OPTIONS)

    assert found.text == "See"
    assert [(one.mime, b"Hidden" in one.data) for one in found.attached] == [("message/rfc822", True)]
