"""Pages through a host, from a real site on loopback: what is extracted, part by part, in which charset."""

import json

import pytest
from agentos_pack_web_extract import _child
from agentos_pack_web_extract.fetching import Document
from agentos_pack_web_extract.pages import _Content, _page

from agentos import ToolCall

HTML = {"Content-Type": "text/html; charset=utf-8"}
ARTICLE = """<!doctype html><html><head><title>Tea and time</title><meta name="author" content="Ann Berg">
<meta property="article:published_time" content="2026-03-04"></head>
<body><nav><a href="/">Home</a> <a href="/about">About us</a></nav><article><h1>Tea and time</h1>
<p>Green tea is made of leaves that have not been oxidised. It came from China and spread to all of Asia long ago.</p>
<ul><li>water that does not boil</li><li>two minutes</li></ul>
<p>More is <a href="/more">told elsewhere</a> about how it is brewed in many of the countries of this world.</p>
</article>
<script>alert("never shown")</script><footer>Imprint and cookies</footer></body></html>"""


async def call(host, name, **arguments):
    return await host.tools.process_tool_call(ToolCall(name, arguments))


async def page_of(host, url, **arguments):
    result = await call(host, "fetch_page", url=url, **arguments)
    assert result.success, result.content
    return result.output


# -- through a host ----------------------------------------------------------------------------------------------


async def test_a_page_comes_as_markdown_with_what_it_says_of_itself(hosting, site):
    site.pages["/tea"] = (200, HTML, ARTICLE.encode())
    async with hosting(site) as host:
        page = await page_of(host, f"{site.url}/tea")

    assert (page["title"], page["author"], page["date"]) == ("Tea and time", "Ann Berg", "2026-03-04")
    assert (page["url"], page["extraction"], page["truncated"]) == (f"{site.url}/tea", "article", False)
    assert "# Tea and time" in page["text"]
    assert "- water that does not boil" in page["text"]
    assert f"[told elsewhere]({site.url}/more)" in page["text"]
    assert not any(word in page["text"] for word in ("Imprint", "About us", "never shown"))


async def test_a_page_comes_as_text_without_marks(hosting, site):
    site.pages["/tea"] = (200, HTML, ARTICLE.encode())
    async with hosting(site) as host:
        page = await page_of(host, f"{site.url}/tea", format="text")

    assert "Green tea is made of leaves" in page["text"]
    assert not any(mark in page["text"] for mark in ("# ", "](", "<p>"))


async def test_a_page_comes_as_it_was_sent(hosting, site):
    site.pages["/tea"] = (200, HTML, ARTICLE.encode())
    async with hosting(site) as host:
        page = await page_of(host, f"{site.url}/tea", format="html")

    assert (page["text"], page["extraction"]) == (ARTICLE, "as is")


async def test_a_long_page_is_read_part_by_part(hosting, site):
    body = "".join(f"line {number}\n" for number in range(1_000))
    site.pages["/"] = (200, {"Content-Type": "text/plain"}, body.encode())
    parts, start = [], 0
    async with hosting(site) as host:
        while start is not None:
            page = await page_of(host, f"{site.url}/", start=start, max_chars=4_000)
            parts.append(page["text"])
            start = page["next_start"]

    assert ("".join(parts), len(parts)) == (body, 3)
    assert (page["total_chars"], page["truncated"]) == (len(body), False)


async def test_to_begin_after_the_end_is_refused(hosting, site):
    site.pages["/"] = (200, {"Content-Type": "text/plain"}, b"hello")
    async with hosting(site) as host:
        result = await call(host, "fetch_page", url=f"{site.url}/", start=5)

    assert "start: the text has 5 characters" in result.content


async def test_hidden_characters_do_not_reach_the_model(hosting, site):
    body = "<p>a\u202eb\u200bc\U000e0041d</p>" * 30
    site.pages["/"] = (200, HTML, body.encode())
    async with hosting(site) as host:
        page = await page_of(host, f"{site.url}/")

    assert "abcd" in page["text"]


@pytest.mark.parametrize("media", ["application/json", "application/ld+json", "text/markdown", "application/xml"])
async def test_what_is_text_already_comes_as_it_is(hosting, site, media):
    site.pages["/"] = (200, {"Content-Type": media}, b'{"a": 1}')
    async with hosting(site) as host:
        page = await page_of(host, f"{site.url}/")

    assert (page["text"], page["extraction"]) == ('{"a": 1}', "as is")


async def test_what_is_no_text_is_refused_and_named(hosting, site):
    site.pages["/"] = (200, {"Content-Type": "image/png"}, b"\x89PNG" * 10)
    async with hosting(site) as host:
        result = await call(host, "fetch_page", url=f"{site.url}/")

    assert "what is there is image/png, 40 bytes, and no text" in result.content


async def test_a_pdf_is_sent_to_the_tool_for_it(hosting, site, make_pdf):
    site.pages["/"] = (200, {"Content-Type": "text/html"}, make_pdf("x"))
    async with hosting(site) as host:
        result = await call(host, "fetch_page", url=f"{site.url}/")

    assert "this is a PDF; use extract_pdf" in result.content


@pytest.mark.parametrize(("status", "words"), [(404, "404 Not Found"), (503, "503 Service Unavailable"), (599, "599;")])
async def test_an_error_of_the_server_is_told(hosting, site, status, words):
    site.pages["/"] = (status, HTML, b"<p>secret stack trace</p>")
    async with hosting(site) as host:
        result = await call(host, "fetch_page", url=f"{site.url}/")

    assert f"url: 127.0.0.1 answered {words}" in result.content
    assert "stack trace" not in str(result)


async def test_links_are_listed_with_their_texts(hosting, site):
    site.pages["/dir/page"] = (
        200,
        HTML,
        b"""<title>Links</title><a href="next?a=1#part"> Next <b>one</b></a><a href='/'><img alt="Home"></a>
        <a href="//elsewhere.example/x" title="Elsewhere"></a> <a href="next?a=1">again</a> <a name=x>no link</a>
        <a href="javascript:alert(1)">js</a><a href="mailto:a@b.c">mail</a><a href="#top">top</a>
        <a href="data:text/html,x">data</a><a href="https://u:p@evil.example/">user</a>""",
    )
    async with hosting(site) as host:
        result = await call(host, "extract_links", url=f"{site.url}/dir/page")
        only = await call(host, "extract_links", url=f"{site.url}/dir/page", which="other_sites")
        one = await call(host, "extract_links", url=f"{site.url}/dir/page", which="same_site", limit=1)

    assert result.output == {
        "url": f"{site.url}/dir/page",
        "title": "Links",
        "links": [
            {"url": f"{site.url}/dir/next?a=1", "text": "Next one", "same_site": True},
            {"url": f"{site.url}/", "text": "Home", "same_site": True},
            {"url": "http://elsewhere.example/x", "text": "Elsewhere", "same_site": False},
        ],
        "total": 3,
        "truncated": False,
    }
    assert [link["text"] for link in only.output["links"]] == ["Elsewhere"]
    assert (len(one.output["links"]), one.output["total"], one.output["truncated"]) == (1, 2, True)


async def test_the_base_of_a_page_counts_for_its_links(hosting, site):
    site.pages["/"] = (200, HTML, b'<base href="/docs/"><base href="http://evil.example/"><a href="x y">x</a>')
    async with hosting(site) as host:
        result = await call(host, "extract_links", url=f"{site.url}/")

    assert [link["url"] for link in result.output["links"]] == [f"{site.url}/docs/x%20y"]


async def test_only_pages_have_links(hosting, site):
    site.pages["/"] = (200, {"Content-Type": "application/json"}, b"{}")
    async with hosting(site) as host:
        result = await call(host, "extract_links", url=f"{site.url}/")

    assert "what is there is application/json, and only pages have links" in result.content


async def test_results_are_json(hosting, site):
    site.pages["/"] = (200, {"Content-Type": "text/plain"}, b"hello")
    async with hosting(site) as host:
        result = await call(host, "fetch_page", url=f"{site.url}/")

    assert json.loads(result.content) == result.output


# -- charsets ----------------------------------------------------------------------------------------------------

WORDS = "Grüße aus Köln, \u201eKäse\u201c"


def document(body, charset=None, media="text/html"):
    return Document("http://a.example/", media, charset, body)


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        (WORDS.encode(), "utf-8"),
        (WORDS.encode(), None),
        (WORDS.encode(), "iso-8859-1"),
        (WORDS.encode(), "no-such-charset"),
        (WORDS.encode("cp1252"), "windows-1252"),
        (WORDS.encode("cp1252"), "iso-8859-1"),
        (WORDS.encode("cp1252"), "utf-8"),
        (WORDS.encode("cp1252"), None),
        (WORDS.encode("utf-16"), None),
        (WORDS.encode("utf-16-le"), "utf-16"),
        (WORDS.encode("utf-8-sig"), "iso-8859-1"),
    ],
)
def test_text_is_read_right_even_if_its_charset_is_told_wrong(body, charset):
    assert document(body, charset).text == WORDS


@pytest.mark.parametrize("charset", ["shift_jis", "iso-2022-jp", "euc-jp"])
def test_what_a_page_says_of_its_charset_counts(charset):
    page = f'<meta charset="{charset}"><p>日本語</p>'

    assert document(page.encode(charset)).text == page


@pytest.mark.parametrize("charset", ["zlib", "rot13", "idna", "unicode_escape", "utf-7", "../x", "punycode"])
def test_no_charset_is_looked_up_that_is_code(charset):
    assert document(b"a \xff+ADw-b", charset).text == "a \ufffd+ADw-b"


# -- the whole text, when no article stands out -------------------------------------------------------------------


def whole(html, wanted="markdown"):
    (said,) = _child.read_page(html, {"format": wanted, "url": "http://a.example/"})
    return said


def test_without_an_article_all_text_is_told():
    bottom = "<p>one</p><p>two <b>bold</b></p><script>no</script><style>no</style>"
    said = whole(f"<title>T</title>{'<div>' * 300}{bottom}")

    assert (said["text"], said["title"], said["is_article"]) == ("one\ntwo bold", "T", False)


@pytest.mark.parametrize(
    ("html", "words"),
    [
        ("<div>" * 20_000 + "at the bottom" + "</div>" * 20_000, "at the bottom"),
        ("<b>" * 20_000 + "in bold", "in bold"),
        ("<table><tr><td>" * 5_000 + "in a cell", "in a cell"),
        ("<p>&#x41;&amp;&nosuch; &#xD800; &#99999999999;", "A&&nosuch;"),
        ("<![CDATA[x]]><!DOCTYPE a [<!ENTITY b 'c'>]><p>text &b;", "text"),
        ("<p>never closed <a href='x", "never closed"),
        ("\0\x01<p>with controls", "with controls"),
        ("", ""),
        ("<![", ""),
        ("<!---->-->text", "text"),
    ],
)
def test_hostile_markup_is_read_all_the_same(html, words):
    assert words in whole(html)["text"]


def test_a_page_of_too_many_elements_is_told_whole():
    said = whole("<article>" + "<p>Some words of a paragraph.</p>" * 70_000 + "</article>")

    assert (said["is_article"], said["is_cut"]) == (False, False)
    assert said["text"].startswith("Some words of a paragraph.\nSome words")


def test_a_text_that_is_too_long_is_cut_and_says_so():
    said = whole("<p>" + "word " * 500_000)

    assert (len(said["text"]), said["is_cut"]) == (_child.MAX_TEXT, True)


def test_too_many_links_are_counted_and_not_kept():
    (said,) = _child.read_links("<a href=x>y</a>" * 5_000, {})

    assert (len(said["links"]), said["total"]) == (2_000, 5_000)


def test_the_text_of_a_link_is_short():
    (said,) = _child.read_links(f"<a href=x>{'word <b>' * 10_000}</a>", {})

    assert len(said["links"][0][1]) <= 300


def test_a_mark_on_a_mark_without_end_does_not_keep_one_from_reading_on():
    text = "a" + "\u0301" * 1_000
    page = _page(document(b""), _Content(text, "as is"), 0, 100)

    assert (len(page.text), page.next_start) == (100, 100)
