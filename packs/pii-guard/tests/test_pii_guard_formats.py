"""What is found, and what only looks like it."""

import hashlib
import random
import uuid

import pytest
from agentos_pack_pii_guard.detector import KINDS, find


def kinds(text, **options):
    return [(one.kind, text[one.start : one.end]) for one in find(text, **options)]


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("write to ann.o'neil+x@mail.example.co.uk, please", "email", "ann.o'neil+x@mail.example.co.uk"),
        ("schreib an jörg@müller.de.", "email", "jörg@müller.de"),
        ("card 4111 1111 1111 1111 thanks", "card", "4111 1111 1111 1111"),
        ("card 4111-1111-1111-1111.", "card", "4111-1111-1111-1111"),
        ("amex 378282246310005", "card", "378282246310005"),
        ("mastercard 5555555555554444, or", "card", "5555555555554444"),
        ("(diners 30569309025904)", "card", "30569309025904"),
        ("iban DE89 3704 0044 0532 0130 00 at the bank", "iban", "DE89 3704 0044 0532 0130 00"),
        ("gb82west12345698765432 to you", "iban", "gb82west12345698765432"),
        ("ssn 078-05-1120", "ssn", "078-05-1120"),
        ("from 203.0.113.7.", "ip", "203.0.113.7"),
        ("from 2001:db8:85a3::8a2e:370:7334 today", "ip", "2001:db8:85a3::8a2e:370:7334"),
    ],
)
def test_it_is_found_as_it_stands(text, kind, found):
    assert kinds(text) == [(kind, found)]


@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 1112",  # the check digit
        "9111111111111111",  # no issuer
        "4111-1111 1111-1111",  # two separators
        "DE88 3704 0044 0532 0130 00",  # the check digits
        "ZZ89370400440532013000",  # no such country
        "000-12-3456 666-12-3456 900-12-3456 123-00-4567 123-45-0000",
        "127.0.0.1 0.0.0.0 255.255.255.0 256.1.1.1 1.2.3.4.5",
        "std::vector a::b ::1 12:34:56 00:1a:2b:3c:4d:5e",
        "image@2x.png @mention user@localhost a..b@example.org",
        "2024-05-17T10:20:30.123456Z 1715941230 1715941230123",
    ],
)
def test_what_only_looks_like_it_is_not(text):
    assert kinds(text) == []


def test_timestamps_ids_and_hashes_are_hardly_ever_taken_for_it():
    chance = random.Random(15)
    lines = []
    for number in range(500):
        lines += [
            str(chance.randrange(1_500_000_000, 1_900_000_000)),
            str(chance.randrange(1_500_000_000_000, 1_900_000_000_000)),
            f"order {chance.randrange(10**8, 10**11)}",
            str(uuid.UUID(int=chance.getrandbits(128))),
            hashlib.sha1(str(number).encode()).hexdigest(),
            hashlib.sha256(str(number).encode()).hexdigest(),
            f"id={chance.getrandbits(60)}",
            f"2024-{number % 12 + 1:02}-{number % 28 + 1:02} 10:{number % 60:02}:00,{number:03}",
        ]

    assert sum(bool(find(line)) for line in lines) <= len(lines) * 0.005


def test_phone_numbers_are_found_where_they_are_asked_for():
    pytest.importorskip("phonenumbers")
    text = "call +49 30 901820 or 030 901821"

    assert kinds(text) == []
    assert kinds(text, kinds=frozenset(KINDS)) == [("phone", "+49 30 901820")]
    assert kinds(text, kinds=frozenset(KINDS), region="DE") == [("phone", "+49 30 901820"), ("phone", "030 901821")]


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("GB82 WEST 1234 5698 7654 32 4111 1111 1111 1111", "card", "4111 1111 1111 1111"),
        ("12 4111 1111 1111 1111", "card", "4111 1111 1111 1111"),
        ("4111 1111 1111 1111 12", "card", "4111 1111 1111 1111"),
        ("219-09-9999 4111 1111 1111 1111", "card", "4111 1111 1111 1111"),
        ("order 7 2026 4111111111111111 9", "card", "4111111111111111"),
        ("AB12 DE89 3704 0044 0532 0130 00", "iban", "DE89 3704 0044 0532 0130 00"),
    ],
)
def test_what_stands_among_other_numbers_is_found(text, kind, found):
    assert (kind, found) in [(one.kind, text[one.start : one.end]) for one in find(text)]


@pytest.mark.parametrize("text", [" ".join(map(str, range(60))), "7 2026 411 11 111 111 111 11"])
def test_digits_of_several_numbers_are_no_card(text):
    assert find(text) == []
