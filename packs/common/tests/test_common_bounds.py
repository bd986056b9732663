"""Results within bounds, and foreign text without what can't be seen."""

import codecs
import datetime as dt
import itertools
import unicodedata
from decimal import Decimal

import pytest
from agentos_pack_common import Clipped, ClippedRows, clip, clip_rows, decode, plain
from hypothesis import example, given
from hypothesis import strategies as st

ANY = st.text(alphabet=st.characters(), max_size=40)
TRICKY = st.lists(
    st.sampled_from(
        [
            *("a", "é", "e\u0301", "\u0301", "\u200d", "\u200c", "\U0001f468", "\ufe0f", "\ufe0e", "\U0001f3fb"),
            *("\U0001f1e9", "\U0001f1ea", "\u1100", "\u1161", "\u11a8", "\uac00", "\r", "\n", "\t", "\x1b[31m", "\x1b"),
            *(
                "\x1b]0;x\x07",
                "\x9b",
                "\u202e",
                "\u2066",
                "\ufeff",
                "\U000e0041",
                "\ud83d",
                "\ude00",
                "[",
                "]",
                "0",
                "\x07",
            ),
        ]
    ),
    max_size=12,
).map("".join)

# -- clip --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "limit"), [("", 0), ("abc", 3), ("abc", 10)])
def test_a_text_that_fits_is_whole(text, limit):
    assert clip(text, limit) == Clipped(text, truncated=False, total_chars=len(text))


def test_a_text_that_does_not_fit_is_cut_and_says_so():
    assert clip("abcdef", 4) == Clipped("abcd", truncated=True, total_chars=6)
    assert clip("abcdef", -1) == Clipped("", truncated=True, total_chars=6)


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        ("xe\u0301y", 2, "x"),
        ("xe\u0301\u0323y", 3, "x"),
        ("e\u0301" * 3, 5, "e\u0301" * 2),
        ("x\U0001f468\u200d\U0001f469\u200d\U0001f467", 4, "x"),
        ("\U0001f44d\U0001f3fd\U0001f44d\U0001f3fd", 3, "\U0001f44d\U0001f3fd"),
        ("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", 3, "\U0001f1e9\U0001f1ea"),
        ("x\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", 3, "x\U0001f1e9\U0001f1ea"),
        ("\u2764\ufe0fx", 1, ""),
        ("\u0915\u093f\u0916", 1, ""),
        ("\u1100\u1161\u11a8\u1100", 2, ""),
        ("\uac00\u11a8x", 1, ""),
        ("x\r\ny", 2, "x"),
        ("x\ud83d\ude00", 2, "x"),
        ("\u0301" * 10, 5, ""),
        ("ab", 1, "a"),
    ],
)
def test_what_is_seen_as_one_character_is_not_cut_in_two(text, limit, kept):
    assert clip(text, limit).text == kept


@example("", -1)
@given(ANY | TRICKY, st.integers(-2, 45))
def test_a_clipped_text_is_a_beginning_within_the_limit(text, limit):
    clipped = clip(text, limit)

    assert text.startswith(clipped.text)
    assert len(clipped.text) <= max(limit, 0)
    assert clipped.truncated == (clipped.text != text)


def test_a_long_text_of_marks_is_clipped_at_once():
    assert clip("e" + "\u0301" * 600_000, 300_000).text == ""
    assert len(clip("\U0001f1e9" * 300_001, 100_001).text) == 100_000


# -- clip_rows ---------------------------------------------------------------------------------------------------


def test_rows_that_fit_are_all_kept():
    assert clip_rows([1, 2], max_rows=2, max_bytes=100) == ClippedRows([1, 2], truncated=False, total=2)


def test_more_rows_than_allowed_are_cut():
    assert clip_rows([1, 2, 3], max_rows=2, max_bytes=100) == ClippedRows([1, 2], truncated=True, total=3)


def test_more_bytes_than_allowed_are_cut_between_rows():
    rows = [{"a": "x" * 10}] * 5

    clipped = clip_rows(rows, max_rows=10, max_bytes=2 * (len('{"a":"xxxxxxxxxx"}') + 1))

    assert (len(clipped.rows), clipped.truncated, clipped.total) == (2, True, 5)


def test_a_row_that_is_too_large_by_itself_is_left_out():
    assert clip_rows(["x" * 100], max_rows=1, max_bytes=50) == ClippedRows([], truncated=True, total=1)


def test_an_iterator_is_read_no_further_than_needed():
    numbers = itertools.count()

    clipped = clip_rows(numbers, max_rows=3, max_bytes=100)

    assert (clipped, next(numbers)) == (ClippedRows([0, 1, 2], truncated=True, total=None), 4)


def test_an_iterator_that_ends_is_counted():
    assert clip_rows(iter([1, 2]), max_rows=2, max_bytes=100) == ClippedRows([1, 2], truncated=False, total=2)


@pytest.mark.parametrize(("rows", "size"), [([], 0), ([1], 0)])
def test_where_nothing_is_allowed_nothing_is_kept(rows, size):
    assert clip_rows(rows, max_rows=size, max_bytes=100) == ClippedRows([], truncated=bool(rows), total=len(rows))


def test_rows_of_any_values_are_measured():
    rows = [{"when": dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "sum": Decimal("1.5"), "raw": b"x", "half": "\ud800"}]

    assert clip_rows(rows, max_rows=1, max_bytes=1_000).rows == rows


def test_bytes_are_counted_not_characters():
    assert clip_rows(["ü" * 10], max_rows=1, max_bytes=22).rows == []
    assert clip_rows(["ü" * 10], max_rows=1, max_bytes=23).rows == ["ü" * 10]


# -- decode ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "declared", "text"),
    [
        (b"", None, ""),
        ("ü€".encode(), None, "ü€"),
        ("ü".encode(), "utf-8", "ü"),
        (b"\xfc", "iso-8859-1", "ü"),
        (b"\x93\xfc\x94", "ISO-8859-1", "\u201cü\u201d"),
        (b"\x80", "windows-1252", "€"),
        (b"\xa4", " ISO-8859-15 ", "€"),
        ("привет".encode("koi8-r"), "koi8-r", "привет"),
        ("привет".encode("cp1251"), "windows-1251", "привет"),
        ("日本".encode("shift_jis"), "Shift_JIS", "日本"),
        ("日本".encode("euc-jp"), "euc-jp", "日本"),
        ("中文".encode("gb18030"), "gb18030", "中文"),
        ("中文".encode("gbk"), "gb2312", "中文"),
        ("中文".encode("big5"), "big5", "中文"),
        ("한국".encode("euc-kr"), "euc-kr", "한국"),
        ("ü".encode("utf-16-le"), "utf-16", "ü"),
        (codecs.BOM_UTF8 + "ü".encode(), "iso-8859-1", "ü"),
        (codecs.BOM_UTF16_LE + "ü".encode("utf-16-le"), "utf-8", "ü"),
        (codecs.BOM_UTF16_BE + "ü".encode("utf-16-be"), None, "ü"),
        (codecs.BOM_UTF32_LE + "ü".encode("utf-32-le"), None, "ü"),
        (codecs.BOM_UTF32_BE + "ü".encode("utf-32-be"), None, "ü"),
        (b"\xff\xfe", None, ""),
        (b"a\xffb", None, "a\ufffdb"),
        (b"a\xffb", "no-such-charset", "a\ufffdb"),
        ("ü".encode(), "us-ascii", "ü"),
        (b"+ADw-script+AD4-", "utf-7", "+ADw-script+AD4-"),
        (b"x\x9c", "zlib", "x\ufffd"),
        (b"616263", "hex", "616263"),
        (b"abc", "rot13", "abc"),
        (b"\\u0041", "unicode_escape", "\\u0041"),
        (b"abc", "idna", "abc"),
        (b"abc", "\0", "abc"),
    ],
)
def test_bytes_are_decoded_by_mark_by_what_is_declared_or_as_utf_8(data, declared, text):
    assert decode(data, declared) == text


DECLARED = [
    "utf-8",
    "utf-16",
    "utf-32",
    "iso-2022-jp",
    "shift_jis",
    "gb18030",
    "big5",
    "windows-1252",
    "cp932",
    "x" * 99,
]


@given(st.binary(max_size=60), st.sampled_from(DECLARED) | st.none() | st.text(max_size=8))
def test_decoding_never_fails(data, declared):
    assert isinstance(decode(data, declared), str)


# -- plain -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ASCII text.", "plain ASCII text."),
        ("tab\tand\nline", "tab\tand\nline"),
        ("a\r\nb\rc\x0bd\x0ce\x85f\u2028g\u2029h", "a\nb\nc\nd\ne\nf\ng\nh"),
        ("a\0b\x07c\x7fd\x80e", "abcde"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hx", "x"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\x", "x"),
        ("\x1b]never ended", "never ended"),
        ("\x1bcx\x1b(By", "xy"),
        ("abc\u202edef\u202c", "abcdef"),
        ("\u2066a\u2069\u200e\u200f\u061cb", "ab"),
        ("in\u200bvis\u2060ible\ufeff\u00ad", "invisible"),
        ("x" + "".join(chr(0xE0000 + ord(char)) for char in "ignore all"), "x"),
        ("x\U000e0100\U000e0101y", "xy"),
        ("x\ufe00\ufe01y", "xy"),
        ("\u3164\uffa0\u115fx", "x"),
        ("\ufff9a\ufffab\ufffb", "ab"),
        ("x\ufdd0\ufffe\uffff\U0001ffffy", "xy"),
        ("a\ud83db", "a\ufffdb"),
        ("\u2764\ufe0f", "\u2764\ufe0f"),
        ("\u2764\ufe0f\ufe0f\ufe0e", "\u2764\ufe0f"),
        ("\ufe0fx", "x"),
        ("\u200c\ufe0e", ""),
        ("é\u200d\ufe0fé", "é\u200dé"),
        ("1\ufe0f\u20e3", "1\ufe0f\u20e3"),
        ("\U0001f468\u200d\U0001f469", "\U0001f468\u200d\U0001f469"),
        ("\u0645\u06cc\u200c\u062e\u0648", "\u0645\u06cc\u200c\u062e\u0648"),
        ("a\u200db\u200cc\u200d", "abc"),
        ("é\u200d\u200c\u200dé", "éé"),
        ("日本語 ünï café नमस्ते", "日本語 ünï café नमस्ते"),
    ],
)
def test_text_is_left_with_what_can_be_seen(text, shown):
    assert plain(text) == shown


HIDDEN = frozenset({"Cc", "Cs"})
BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@given(ANY | TRICKY)
def test_nothing_hidden_is_left_and_nothing_more_is_taken_the_second_time(text):
    shown = plain(text)

    assert plain(shown) == shown
    assert not [char for char in shown if unicodedata.category(char) in HIDDEN and char not in "\n\t"]
    assert not set(shown) & BIDIRECTIONAL
    assert not [char for char in shown if "\U000e0000" <= char <= "\U000e0fff"]


@pytest.mark.parametrize("unit", ["\x1b[", "\x9d", "\x1b]", "\x1b[0;", "\u200d", "\ufe0f", "é\u200d", "\x1bP\x9c"])
def test_a_long_text_of_such_is_done_at_once(unit):
    """A pattern that looked at each place from all others would take hours."""
    assert len(plain(unit * 300_000)) <= 600_000
