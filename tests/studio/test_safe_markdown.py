"""The safe subset of markdown: what is of it is drawn, and everything else is text."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentos.studio.safe_markdown import LINES, SOURCE_LIMIT, safe_markdown

LINK = 'rel="noopener noreferrer" target="_blank"'
TAGS = {"h3", "h4", "h5", "h6", "p", "ul", "ol", "li", "pre", "code", "em", "strong", "a"}
ATTRIBUTES = {"href", "rel", "target"}


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("", ""),
        ("two\nlines", "<p>two\nlines</p>"),
        ("one\n\ntwo", "<p>one</p>\n<p>two</p>"),
        ("# A *b*", "<h3>A <em>b</em></h3>"),
        ("###### deep ##", "<h6>deep</h6>"),
        ("**bold _and_ more**", "<p><strong>bold <em>and</em> more</strong></p>"),
        ("snake_case_name and 2*3*4", "<p>snake_case_name and 2<em>3</em>4</p>"),
        ("`a <b> *c*`", "<p><code>a &lt;b&gt; *c*</code></p>"),
        ("```python\nx = 1 < 2\n```\nafter", "<pre><code>x = 1 &lt; 2</code></pre>\n<p>after</p>"),
        ("```\nnever closed", "<pre><code>never closed</code></pre>"),
        ("- a\n- b\n  - c\n- d", "<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ul>"),
        ("1. a\n2. b", "<ol><li>a</li><li>b</li></ol>"),
        ("[here](https://a.example/?b=1&c)", f'<p><a href="https://a.example/?b=1&amp;c" {LINK}>here</a></p>'),
        ("[m](mailto:a@b.example)", f'<p><a href="mailto:a@b.example" {LINK}>m</a></p>'),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("[x](JaVaScRiPt:alert)", "<p>[x](JaVaScRiPt:alert)</p>"),
        ("[x](data:text/html;base64,aaaa)", "<p>[x](data:text/html;base64,aaaa)</p>"),
        ("[x](//evil.example)", "<p>[x](//evil.example)</p>"),
        ("![x](https://a.example/pixel.png)", f'<p>!<a href="https://a.example/pixel.png" {LINK}>x</a></p>'),
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"),
        ('[a" onclick="x](https://b.example)', f'<p><a href="https://b.example" {LINK}>a&#34; onclick=&#34;x</a></p>'),
    ],
)
def test_the_subset_is_drawn_and_all_else_is_text(source, html):
    assert str(safe_markdown(source)) == html


class Seen(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found = []
        self.open = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_comment(self, data):
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


SIGNS = ("```", "**", "](", "# ", "- ", "1. ", "  ", "javascript:", "https://a.example", "word", "<script>", "&#x6a;")
PIECES = st.sampled_from([*"<>\"'&`*_[)(\t\x00\n", *SIGNS, "data:text/html,", "<img src=x onerror=1>", "<!--"])


@given(st.lists(PIECES | st.text(max_size=6), max_size=40).map("".join))
def test_no_tag_and_no_attribute_beyond_the_list_ever_comes_out(source):
    seen = Seen()
    seen.feed(str(safe_markdown(source)))
    seen.close()

    assert {tag for tag, _ in seen.found} <= TAGS
    assert {name for _, attributes in seen.found for name in attributes} <= ATTRIBUTES
    assert all(
        attributes["href"].lower().startswith(("http://", "https://", "mailto:"))
        for _, attributes in seen.found
        if "href" in attributes
    )
    assert seen.open == []


@pytest.mark.parametrize("piece", ["*", "[", "_a", "`", "- ", "**a", "[a](", "#", "\n", " - a\n  "])
def test_any_source_ends_and_is_bounded(piece):
    html = safe_markdown(piece * (SOURCE_LIMIT // len(piece) + 10))

    assert len(html) < SOURCE_LIMIT * 12


def test_what_is_cut_says_so():
    assert str(safe_markdown("a\n\n" * LINES)).endswith("<p>…</p>")
