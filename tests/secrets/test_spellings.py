"""Known values are hidden in every encoding of the one table, in any text; other text stays as it is."""

import base64
import html
import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agentos.secrets.masking import MASK, SPELLED, Masker
from agentos.secrets.spellings import CHARACTERS, WHOLES, Spellings


def utf8(value):
    return value.encode("utf-8", "surrogatepass")


def each(spell):
    """Return what encodes every character, also those that need not be."""
    return lambda value: "".join(map(spell, value))


def specials(spell):
    """Return what encodes all but letters and digits."""
    return lambda value: "".join(one if one.isascii() and one.isalnum() else spell(one) for one in value)


def percent(form):
    return lambda one: "".join(form.format(byte) for byte in utf8(one))


def units(form):
    """Return what encodes a character by its UTF-16 units, as JSON does."""

    def spell(one):
        pair = one.encode("utf-16-be", "surrogatepass")
        return "".join(form.format(int.from_bytes(pair[at : at + 2])) for at in range(0, len(pair), 2))

    return spell


def lines(width, end):
    return lambda text: end.join(text[at : at + width] for at in range(0, len(text), width))


def inside_json(text):
    return json.dumps(text)[1:-1]


def b64(value):
    return base64.b64encode(utf8(value)).decode()


ENCODERS = {
    "as it is": {"str": str, "crlf": lambda value: value.replace("\r\n", "\n").replace("\n", "\r\n")},
    "backslash": {
        "json": inside_json,
        "json that is not ascii": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
        "json in json": lambda value: inside_json(inside_json(value)),
        "json in json in json": lambda value: inside_json(inside_json(inside_json(value))),
        "json in json in json in json": lambda value: inside_json(inside_json(inside_json(inside_json(value)))),
        "json with upper-case escapes": specials(units("\\u{:04X}")),
        "json with escaped slashes": lambda value: inside_json(value).replace("/", "\\/"),
        "json of .NET": lambda value: re.sub("[\"&'+<>`]", lambda one: f"\\u{ord(one[0]):04X}", inside_json(value)),
        "json of Go": lambda value: re.sub("[<>&]", lambda one: f"\\u{ord(one[0]):04x}", inside_json(value)),
        "json, every character": each(units("\\u{:04x}")),
        "javascript": specials(lambda one: f"\\u{{{ord(one):X}}}"),
        "repr": lambda value: repr(value)[1:-1],
        "repr with both quotes around": lambda value: repr(value + "'\"")[1:-4],
        "ascii": lambda value: ascii(value)[1:-1],
        "repr of bytes": lambda value: repr(utf8(value))[2:-1],
        "repr of bytes in json": lambda value: inside_json(repr(utf8(value))[2:-1]),
        "hex escapes": each(lambda one: "".join(f"\\x{byte:02X}" for byte in utf8(one))),
        "octal escapes": each(lambda one: "".join(f"\\{byte:03o}" for byte in utf8(one))),
    },
    "percent": {
        "quote": lambda value: quote(utf8(value)),
        "quote with slashes": lambda value: quote(utf8(value), safe=""),
        "quote in lower case": lambda value: re.sub("%..", lambda one: one[0].lower(), quote(utf8(value), safe="")),
        "quote twice": lambda value: quote(quote(utf8(value), safe="")),
        "every character": each(percent("%{:02x}")),
    },
    "plus": {"quote_plus": lambda value: quote_plus(utf8(value)), "form": lambda value: value.replace(" ", "+")},
    "html": {
        "escape": html.escape,
        "without quotes": lambda value: html.escape(value, quote=False),
        "escape twice": lambda value: html.escape(html.escape(value)),
        "apos": lambda value: html.escape(value, quote=False).replace('"', "&quot;").replace("'", "&apos;"),
        "decimal": specials(lambda one: f"&#{ord(one)};"),
        "decimal with zeros": specials(lambda one: f"&#{ord(one):07};"),
        "hexadecimal": specials(lambda one: f"&#x{ord(one):x};"),
        "hexadecimal in upper case with zeros": specials(lambda one: f"&#X{ord(one):06X};"),
        "every character": each(lambda one: f"&#{ord(one)};"),
    },
    "hex": {"hex": lambda value: utf8(value).hex(), "in upper case": lambda value: utf8(value).hex().upper()},
    "base64": {
        "base64": b64,
        "without padding": lambda value: b64(value).rstrip("="),
        "url-safe": lambda value: base64.urlsafe_b64encode(utf8(value)).decode(),
        "in lines": lambda value: lines(76, "\n")(b64(value)),
        "in short lines": lambda value: lines(8, "\r\n")(b64(value)),
        "in indented lines": lambda value: lines(10, "\n    ")(b64(value)),
        "in lines in json": lambda value: inside_json(lines(12, "\n")(b64(value))),
        "in lines in json in json": lambda value: inside_json(inside_json(lines(12, "\r\n")(b64(value)))),
        "in a URL": lambda value: quote_plus(b64(value)),
        "in json with escaped slashes": lambda value: b64(value).replace("/", "\\/"),
    },
}
"""For each encoding of the table, the writers that there are of it."""
ALL = [(name, form) for name, forms in ENCODERS.items() for form in forms]

VALUES = [
    "sk-live-0123456789abcdef",
    "wJalrXUtnFEMI/K7MDENG+bPxRfiCY==",
    'it\'s "quoted" & <4> times',
    "C:\\new\\\\table\\",
    "pässwörd-ключ-鍵-😀",
    "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ\n-----END KEY-----",
    "a\r\nb\rc\nd\\\n",
    "100%s-%41-%(x)s&amp;#39;&",
    "    +    ",
    "????>>>>",
    "\x00\x07\x1b\x7f\x85\xa0\u2028",
    "1234567890",
    "~~~~",
    "\\\\\\\\",
    "&&&&",
    "%%%%",
]


def hiding(*values):
    masker = Masker()
    for value in values:
        masker.learn(value)
    return masker


def test_every_encoding_of_the_table_has_its_writers_here():
    assert set(ENCODERS) == {"as it is", *CHARACTERS, *WHOLES}


@pytest.mark.parametrize(("name", "form"), ALL, ids=lambda one: one)
def test_a_value_is_hidden_in(name, form):
    for value in VALUES:
        spelled = ENCODERS[name][form](value)
        assert hiding(value).mask(f"before|{spelled}|after") == f"before|{MASK}|after", value


some = st.characters(exclude_characters="*")
values = st.text(some, min_size=4, max_size=20).filter(lambda value: len(value.strip()) == len(value))
around = st.text(max_size=12) | st.text("\\%&+#x0u;amp=\r\n 'ABCDEFabcdef", max_size=12)


@pytest.mark.parametrize(("name", "form"), ALL, ids=lambda one: one)
@given(value=values, before=around, after=around)
def test_any_value_is_hidden_in_any_text(name, form, value, before, after):
    spelled, masker = ENCODERS[name][form](value), hiding(value)
    assume(masker.knows_any)

    assert spelled not in masker.mask(before + spelled + after)


@pytest.mark.parametrize(
    "form", [b64, lambda value: base64.urlsafe_b64encode(utf8(value)).decode()], ids=["std", "url"]
)
@given(value=values, before=st.binary(max_size=9), after=st.binary(max_size=9), width=st.integers(4, 90))
def test_a_value_inside_of_a_longer_base64_text_is_hidden(form, value, before, after, width):
    assume(len(utf8(value)) >= 6 and hiding(value).knows_any)
    encode = base64.urlsafe_b64encode if form is not b64 else base64.b64encode
    whole = encode(before + utf8(value) + after).decode()
    masked = hiding(value).mask(lines(width, "\n")(whole))

    assert MASK in masked
    left = masked.replace("\n", "").partition(MASK)[0]
    assert utf8(value)[:3] not in base64.b64decode(left + "A" * (-len(left) % 4), b"-_" if form is not b64 else None)


@given(st.text(), st.lists(values, max_size=3))
@example("%41%4a \\n &amp; &#39; 100% \\u00e9 https://a/b?c=d%20e", ["sk-live-0123456789abcdef"])
def test_a_text_without_a_value_stays_as_it_is(text, known):
    clean = [value for value in known if not {*value.lower()} & {*text.lower()}]

    assert hiding(*clean).mask(text) == text


def test_ordinary_texts_stay_as_they_are():
    masker = hiding(*VALUES[:6])
    for file in sorted((Path(__file__).parents[2] / "docs").glob("*.md")):
        text = file.read_text(encoding="utf-8")
        for one in (text, json.dumps(text), html.escape(text), quote(text), repr(text), b64(text)):
            assert masker.mask(one) == one


@given(st.lists(values, min_size=2, max_size=4), st.sampled_from(ALL), st.sampled_from(ALL))
def test_values_in_different_encodings_are_all_hidden(known, one, other):
    masker = hiding(*known)
    first, second = ENCODERS[one[0]][one[1]](known[0]), ENCODERS[other[0]][other[1]](known[1])
    masked = masker.mask(f"{first} {second}")

    for spelled, value in ((first, known[0]), (second, known[1])):
        assert spelled not in masked or not hiding(value).knows_any


# -- numbers, keys and objects -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1234567890, -1234567890, 1234567890.0])
def test_a_value_of_digits_is_hidden_where_it_stands_as_a_number(number):
    masked = hiding("1234567890").mask_data({"pin": number, "list": [number, 5]})

    assert masked == {"pin": MASK, "list": [MASK, 5]}


@pytest.mark.parametrize("value", ["12345678901234567890123", "3.14159265", "0012345678", "-98765432", "1e300"])
def test_a_value_that_reads_as_a_number_is_hidden_as_one(value):
    masker = hiding(value)
    numbers = [float(value), *([int(value)] if value.lstrip("-").isdigit() else [])]

    assert masker.mask_data(numbers) == [MASK] * len(numbers)


@pytest.mark.parametrize("value", ["0001", "00000000", "1e3", "nan ", "inf ", "1_000_000", "٣٤٥٦", "....", "0.10"])
def test_few_digits_and_other_words_hide_no_number(value):
    for number in (0, 1, 1000, 1000.0, 1e6, 3456, 0.1, float("inf"), True, None):
        assert hiding(value).mask_data(number) is number


def test_keys_are_hidden():
    assert hiding(VALUES[0]).mask_data({VALUES[0]: 1, "a": {f"x-{VALUES[0]}": 2}}) == {MASK: 1, "a": {f"x-{MASK}": 2}}


@pytest.mark.parametrize("data", [VALUES[0].encode(), {VALUES[0]}, ValueError(VALUES[0])], ids=repr)
def test_what_is_no_json_is_hidden_too(data):
    assert VALUES[0] not in str(hiding(VALUES[0]).mask_data([data, {"a": data}]))


# -- bounds ------------------------------------------------------------------------------------------------------------


def test_a_value_has_a_bounded_number_of_clues():
    assert {len(Spellings(value * count).whole_clues) for value in VALUES for count in (1, 200)} <= {3, 5}


def test_more_values_than_are_spelled_are_hidden_as_they_are():
    known = [f"value-{number:06}/x" for number in range(SPELLED + 5)]
    masker = hiding(*known)

    assert masker.mask(f"{known[0]} {known[-1]} {known[-1]}.") == f"{MASK} {MASK} {MASK}."
    assert masker.mask(quote_plus(known[0])) == MASK


def test_a_very_long_value_is_hidden():
    value = "".join(f"line {number} of a 'long' value\n" for number in range(5_000)).strip()

    assert hiding(value).mask(f"a {json.dumps(value)} b") == f'a "{MASK}" b'


HOSTILE_VALUES = [
    'a\\\\"b',
    "\\" * 40 + '"',
    "aaaa-aaaa",
    "&amp;&amp;",
    "%25%25%25",
    'it\'s "x" \u00e9',
    "++++",
    "\n\n\n-",
]
HOSTILE_TEXTS = [
    "\\",
    "&amp;",
    "%25",
    "a",
    "aaaa\\",
    "+",
    "\\u00",
    "&#000000",
    "\n",
    "YWFh\n",
    "-",
    "\\n",
    "\r",
    "aaaa-",
]
MEASURING = """
import json, sys, time
from agentos.secrets.masking import Masker

values, texts = json.load(sys.stdin)
masker = Masker()
for value in values:
    masker.learn(value)
for text in texts:
    text = text * (60_000 // len(text))
    began = time.process_time()
    masker.mask(text)
    taken = time.process_time() - began
    assert taken < 30, (text[:10], taken)
"""


@pytest.mark.proof
def test_no_text_takes_long():
    """The margin is wide: the slowest takes a few seconds, and would take hours if the work were not bounded."""
    given = json.dumps([HOSTILE_VALUES, HOSTILE_TEXTS])

    subprocess.run([sys.executable, "-c", MEASURING], input=given, text=True, check=True, timeout=230)
