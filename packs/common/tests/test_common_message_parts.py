"""Texts cut to the limits of a service, and their parts sent in order."""

import pytest
from agentos_pack_common import PartlySentError, send_parts, split_text
from hypothesis import given
from hypothesis import strategies as st

from agentos import NotSentError


def units(char):
    """Count a character as UTF-16 does."""
    return len(char.encode("utf-16-le", "surrogatepass")) // 2


@given(st.text(alphabet="ab \n\U0001f600\u0301\u200d", max_size=300), st.integers(2, 40))
def test_parts_are_within_the_limit_and_only_blanks_are_lost(text, limit):
    parts = split_text(text, limit, units)

    assert all(sum(map(units, part)) <= limit for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("", 5, []),
        (" \n ", 5, []),
        ("12345", 5, ["12345"]),
        ("one two three", 9, ["one two ", "three"]),
        ("line one\nand two", 10, ["line one\n", "and two"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("ab\u0301cd", 2, ["a", "b\u0301", "cd"]),
    ],
)
def test_a_text_is_cut_at_the_end_of_a_line_a_word_or_a_character(text, limit, parts):
    assert split_text(text, limit) == parts


def sending(*outcomes):
    """Return functions that send: each takes the next outcome, and raises it if it is an error."""
    left = list(outcomes)

    async def send():
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return send


async def test_receipts_come_in_the_order_of_the_parts():
    assert await send_parts([sending("1"), sending("2")]) == ["1", "2"]


async def test_nothing_was_sent_if_the_first_part_was_not():
    with pytest.raises(NotSentError, match="away"):
        await send_parts([sending(NotSentError("away", retry_after=1), "1"), sending("2")])


async def test_a_later_part_that_is_not_sent_leaves_the_message_half_sent():
    with pytest.raises(PartlySentError, match="1 of 2 parts were sent, and then: away"):
        await send_parts([sending("1"), sending(NotSentError("away"))])


async def test_a_later_part_waits_for_as_long_as_the_service_says_within_bounds():
    receipts = await send_parts([sending("1"), sending(NotSentError("slowly", retry_after=0), "2")])
    with pytest.raises(PartlySentError):
        await send_parts([sending("1"), sending(NotSentError("slowly", retry_after=31))])

    assert receipts == ["1", "2"]
