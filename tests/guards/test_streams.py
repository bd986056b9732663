"""A stream behind guardrails: what leaves was seen by all of them, together with what follows it."""

import random
import re

import pytest
from thorough import examples

from agentos import AgentOS, Descriptor, ExtensionPack, GuardrailBlockedError, GuardVerdict, guardrail

TOKEN = re.compile(r"tok_[A-Za-z0-9.]{12,}")
MAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+\w")
WORDS = ["the", "host", "example.org", "says", "v1.2.3", "of", "a", "plan,", "http://a.example/x?y=1.", "stop."]


def host_with(*guards):
    pack = ExtensionPack("guards", "1", [Descriptor("guardrail", id, payload) for id, payload in guards])
    return AgentOS(extension_manifest={"packs": [{"factory": lambda: pack}]})


def blocking(pattern, **fields):
    @guardrail(stage="output", **fields)
    async def block(text, context):
        return GuardVerdict.block("found one", "FOUND") if pattern.search(text) else None

    return block


def masking(pattern, mask="[gone]", **fields):
    @guardrail(stage="output", sanitizes=True, **fields)
    async def sanitize(text, context):
        made = pattern.sub(mask, text)
        return None if made == text else GuardVerdict.sanitize(made, "masked")

    return sanitize


async def let_out(host, chunks):
    """Return what left, and whether the stream was blocked."""
    left = []
    try:
        async for part in host.guardrails.stream(chunks):
            left.append(part)
    except GuardrailBlockedError:
        return left, True
    return left, False


def cut(text, dice, longest):
    """Cut *text* at random places."""
    chunks, place = [], 0
    while place < len(text):
        size = dice.randint(1, longest)
        chunks.append(text[place : place + size])
        place += size
    return chunks


def prose(dice, words):
    return " ".join(dice.choice(WORDS) for _ in range(words))


async def test_without_guardrails_every_chunk_leaves_at_once():
    async with host_with() as host:
        left, _ = await let_out(host, ["a", "b", "", "c"])

    assert left == ["a", "b", "c"]


async def test_a_text_that_is_fine_leaves_whole_and_before_its_end():
    text = "x" * 2_000

    async def chunks():
        for letter in text:
            yield letter

    async with host_with(("g", blocking(TOKEN))) as host:
        left, blocked = await let_out(host, chunks())

    assert ("".join(left), blocked) == (text, False)
    assert len(left) > 5


async def test_the_last_characters_are_held_back():
    seen = []

    async def chunks():
        for _ in range(100):
            yield "0123456789"
            seen.append(sum(map(len, left)))

    left = []
    async with host_with(("g", blocking(TOKEN, holds_back=300))) as host:
        async for part in host.guardrails.stream(chunks()):
            left.append(part)

    assert [out for number, out in enumerate(seen, 1) if out > max(0, 10 * number - 300)] == []
    assert seen[-1] > 500
    assert "".join(left) == "0123456789" * 100


async def test_a_guardrail_sees_what_was_let_out_before_and_whether_this_is_all():
    seen = []

    @guardrail(stage="output", holds_back=10)
    async def look(text, context):
        seen.append((context.preceding, text, context.is_final))

    text = "".join(chr(ord("a") + number % 26) for number in range(500))
    async with host_with(("look", look)) as host:
        await let_out(host, cut(text, random.Random(1), 40))

    assert all(text.startswith(preceding + waiting) for preceding, waiting, _ in seen)
    assert [is_final for *_, is_final in seen] == [False] * (len(seen) - 1) + [True]
    assert "".join(seen[-1][:2]) == text


async def test_a_block_raises_and_nothing_of_what_was_found_has_left():
    secret = "tok_" + "aB3.dE6." * 10
    async with host_with(("g", blocking(TOKEN))) as host:
        left, blocked = await let_out(host, list("before " * 100 + secret + " after" * 100))

    assert blocked
    assert "tok_" not in "".join(left)


async def test_a_token_that_goes_on_after_it_was_found_leaves_nothing():
    """A guardrail finds the first characters of a long token: the rest must not leave as if it were something else."""
    secret = "tok_" + "a1B2" * 500
    async with host_with(("g", masking(TOKEN))) as host:
        left, _ = await let_out(host, cut(f"before {secret} after", random.Random(2), 9))

    assert "".join(left) == "before [gone] after"


async def test_a_mask_that_keeps_the_beginning_keeps_no_more_of_it():
    secrets = ["tok_" + "q7" * 30 for _ in range(30)]
    async with host_with(("g", masking(TOKEN, "tok_***"))) as host:
        left, _ = await let_out(host, cut(" and ".join(secrets) + " end", random.Random(3), 20))

    assert "".join(left) == " and ".join(["tok_***"] * 30) + " end"


async def test_a_text_full_of_what_is_masked_leaves_before_its_end():
    lines = [f"{number},person{number}@example.org,{number * 7919}\n" for number in range(2_000)]
    async with host_with(("g", masking(MAIL))) as host:
        left, _ = await let_out(host, lines)

    assert "".join(left) == MAIL.sub("[gone]", "".join(lines))
    assert len(left) > 20


async def test_what_is_flagged_again_and_again_is_told_once():
    heard = []

    @guardrail(stage="output")
    async def flags(text, context):
        return GuardVerdict.flag("strange", "S")

    async with host_with(("flags", flags)) as host:
        host.extensions.on(lambda event: heard.append(event.type))
        await let_out(host, ["x" * 100] * 50)

    assert heard.count("guardrail:flagged") == 1


async def test_a_source_that_nobody_reads_on_is_closed():
    closed = []

    async def chunks():
        try:
            while True:
                yield "tok_" + "a" * 50
        finally:
            closed.append(True)

    async with host_with(("g", blocking(TOKEN))) as host:
        await let_out(host, chunks())

    assert closed == [True]


async def test_what_is_no_text_is_refused():
    async with host_with(("g", blocking(TOKEN))) as host:
        with pytest.raises(TypeError, match="expected strings"):
            await let_out(host, [b"x"])


@pytest.mark.proof
async def test_of_a_thousand_random_chunkings_not_one_character_of_a_secret_leaves():
    dice = random.Random(20260301)
    async with host_with(("tokens", masking(TOKEN)), ("mails", masking(MAIL))) as host:
        for _ in range(examples(1_000)):
            text, expected = planted(dice)
            left, blocked = await let_out(host, cut(text, dice, dice.choice([1, 3, 10, 60, 300])))

            assert not blocked
            assert "".join(left) == expected
    async with host_with(("tokens", blocking(TOKEN)), ("mails", blocking(MAIL))) as host:
        for _ in range(examples(1_000)):
            text, expected = planted(dice)
            left, blocked = await let_out(host, cut(text, dice, dice.choice([1, 3, 10, 60, 300])))
            clean = expected.partition("[gone]")[0]

            assert blocked == ("[gone]" in expected)
            assert clean.startswith("".join(left)) if blocked else "".join(left) == text


def planted(dice):
    """Return a text with secrets and addresses in it, and the same without them."""
    parts, clean = [], []
    for _ in range(dice.randint(0, 8)):
        words = prose(dice, dice.randint(0, 120))
        secret = dice.choice([token, mail])(dice)
        parts += [words, " ", secret, " "]
        clean += [words, " ", "[gone]", " "]
    end = prose(dice, dice.randint(0, 60))
    return "".join([*parts, end]), "".join([*clean, end])


def token(dice):
    return "tok_" + "".join(dice.choice("abcXYZ019.") for _ in range(dice.randint(12, 240))) + "z"


def mail(dice):
    return f"{dice.choice(['ann', 'bob.b', 'c+d'])}{dice.randint(0, 99)}@{dice.choice(['a.example', 'mail.b.example'])}"
