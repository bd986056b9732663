"""Every format finds tokens that are made by its own pattern, and ordinary text has none."""

import random
import re._constants as constants
import re._parser as parser
import string
import uuid
from pathlib import Path

import pytest
from agentos_pack_secret_guard.detector import find
from agentos_pack_secret_guard.formats import FORMATS

SAMPLES = 20
_ALL = [chr(code) for code in range(33, 127)]
_CLASSES = {
    constants.CATEGORY_DIGIT: string.digits,
    constants.CATEGORY_WORD: string.ascii_letters + string.digits + "_",
    constants.CATEGORY_SPACE: " ",
}


def made(parsed, chance):
    """Return a text that fits a parsed pattern; the group is marked by \\0."""
    return "".join(_made(operation, value, chance) for operation, value in parsed)


def _made(operation, value, chance):
    match operation:
        case constants.LITERAL:
            return chr(value)
        case constants.NOT_LITERAL:
            return chance.choice([one for one in _ALL if one != chr(value)])
        case constants.IN:
            return chance.choice(_members(value))
        case constants.BRANCH:
            return made(chance.choice(value[1]), chance)
        case constants.SUBPATTERN:
            number, _, _, inner = value
            return f"\0{made(inner, chance)}\0" if number else made(inner, chance)
        case constants.MAX_REPEAT | constants.MIN_REPEAT:
            least, most, inner = value
            return "".join(made(inner, chance) for _ in range(chance.randint(least, min(most, least + 6))))
        case constants.AT:
            return ""
    raise AssertionError(operation)


def _members(value):
    members, is_negated = set(), False
    for operation, one in value:
        match operation:
            case constants.NEGATE:
                is_negated = True
            case constants.LITERAL:
                members.add(chr(one))
            case constants.RANGE:
                members.update(chr(code) for code in range(one[0], one[1] + 1))
            case constants.CATEGORY:
                members.update(_CLASSES[one])
    return sorted(set(" \n,;()<>") - members if is_negated else members)


def tokens(format):
    chance = random.Random(format.id)
    parsed = parser.parse(format.pattern)
    return [made(parsed, chance).split("\0") for _ in range(SAMPLES)]


PLACES = {
    "authorization-header": ('curl -H "Authorization: Bearer ', "jC+6TUUjCNHcVtAXpcqBCgxnA8r", '"'),
    "key-header": ("curl -H 'X-Api-Key: ", "c4ed6c21-9dd5-4a05-8e3f-c56d1151cce8", "'"),
    "curl-user": ("curl -s -u '", "ann:d2LkV78zLx!t", "' https://api.example.org"),
    "curl-user-key": ("curl https://api.example.org -u ", "kd82LkV78zLxt", ": -d x=1"),
    "url-password": ("postgresql://ann:", "d2LkV78zLx!t", "@db.example.org/main"),
    "assigned-secret": ('DB_PASSWORD = "', "d2LkV78z-Lx!tQ9w", '"'),
    "private-key": (
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,8A71\n\n",
        "MIIEpQIBAAKCAQEAn6/O8li+SX4m98LLYt/PKSzEmQ++ZBD7Loh9P13f4yQ92EF3\nyxR5MsXFu9PRsrYQA7/4UTPHiC4y2sAVCBg4C2yyBpUEtMQj",
        "\n-----END RSA PRIVATE KEY-----",
    ),
}
"""What stands in a place that is told by its surroundings, which a random text would not be."""


@pytest.mark.parametrize(("format", "parts"), PLACES.items())
def test_a_value_is_found_by_where_it_stands(format, parts):
    before, secret, after = parts
    (found,) = find(f"{before}{secret}{after}")

    assert found.kind == format
    assert (found.start, found.end) == (len(before), len(before + secret)) or format == "private-key"
    assert found.start <= len(before) < len(before + secret) <= found.end


@pytest.mark.parametrize("format", [one for one in FORMATS if one.id not in PLACES], ids=lambda one: one.id)
def test_tokens_of_its_own_making_are_found(format):
    found = 0
    for before, token, after in tokens(format):
        text = f"{before}{token}{after}"
        found += any(one.start <= len(before) and one.end >= len(before) + len(token) for one in find(text))

    assert found >= SAMPLES * 0.8


def test_there_are_as_many_formats_as_are_said():
    assert len({one.id for one in FORMATS}) == len(FORMATS) >= 120
    assert all(word == word.lower() for one in FORMATS for word in one.words)


def test_ordinary_lines_have_no_secret():
    chance = random.Random(15)
    lines = [f'{{"id": "{uuid.UUID(int=chance.getrandbits(128))}"}}' for _ in range(500)]
    lines += [f"commit {chance.getrandbits(160):040x}" for _ in range(500)]
    lines += [f"sha256:{chance.getrandbits(256):064x}  dist/agentos-{number}.whl" for number in range(500)]
    lines += [line for module in (random, parser, uuid) for line in Path(module.__file__).read_text().splitlines()]

    assert [line for line in lines if find(line)] == []


@pytest.mark.parametrize(
    "text",
    [
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "AKIAIOSFODNN7EXAMPLE",
        "api_key = '${API_KEY}'",
        "Authorization: Bearer <your token>",
        'password = "changeme-changeme"',
        "https://user:password@example.org/",
        "hf_requiredCharacteristicTypesForDisplayMetadata",
        "-----BEGIN PRIVATE KEY-----\nanything\n-----END PRIVATE KEY-----",
    ],
)
def test_placeholders_are_no_secrets(text):
    assert find(text) == []


def test_places_are_counted_in_characters():
    token = "ghp_" + "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=36))
    text = f"é € 𝄞 {token} \ud800 ü {token}"

    assert [text[one.start : one.end] for one in find(text)] == [token, token]


def test_what_two_formats_find_is_told_once():
    (only,) = find("Authorization: Bearer sk-ant-api03-" + "aB3-" * 23 + "xAA")

    assert only.kind == "anthropic-api-key"
