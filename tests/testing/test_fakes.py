"""Time and secrets for tests."""

import pytest
from testing.good_packs import with_a_secret
from testing.parts import Text, pack, reads

from agentos import Descriptor, ToolContext
from agentos.testing import FakeClock, FakeSecrets, call_tools, fake_secrets, make_host
from agentos.testing.fakes import canary_of


def test_a_clock_stands_until_it_is_told_to_go_on():
    clock = FakeClock(100)
    before = clock()

    assert (before, clock.advance(5), clock(), clock.now) == (100, 105, 105, 105)
    assert repr(clock) == "FakeClock(105.0)"


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_a_clock_does_not_go_back(seconds):
    with pytest.raises(ValueError, match="time does not go back"):
        FakeClock().advance(seconds)


def test_secrets_are_a_mapping():
    secrets = FakeSecrets({"a": "1"})

    assert (dict(secrets), len(secrets), secrets["a"], "b" in secrets) == ({"a": "1"}, 1, "1", False)


def test_values_are_not_in_the_repr():
    assert repr(FakeSecrets({"a": "hidden"})) == "FakeSecrets(a)"


def test_canaries_are_made_for_what_a_pack_declares():
    secrets = fake_secrets(with_a_secret())

    assert list(secrets) == ["openai.apiKey"]
    assert secrets["openai.apiKey"] == canary_of("openai.apiKey")


def test_canaries_have_no_part_in_common():
    one, other = canary_of("openai.apiKey"), canary_of("brave.apiKey")

    assert not {one[at : at + 6] for at in range(43)} & {other[at : at + 6] for at in range(43)}


def test_a_few_characters_of_a_canary_are_in_no_sentence_and_no_hash():
    value = canary_of("openai.apiKey")

    for part in (value[at : at + 6] for at in range(43)):
        assert any(map(str.isdigit, part))
        assert any(map(str.islower, part))
        assert any(map(str.isupper, part))
        assert not set(part) & set("abcdefABCDEF")


def test_canaries_are_made_for_ids_and_values_are_taken():
    secrets = fake_secrets(["a", "b"], {"b": "given"})

    assert secrets["a"] == fake_secrets(["a"])["a"]
    assert secrets["b"] == "given"


async def test_a_host_reads_what_is_declared_and_nothing_else():
    secrets = fake_secrets()
    async with make_host(with_a_secret, secrets=secrets) as host:
        assert host.extensions.registry("search-engine").get_active("example") is not None

    assert secrets.reads == ["openai.apiKey"]


async def test_what_is_not_given_is_missing():
    async with make_host(with_a_secret, secrets=FakeSecrets({"other": "value"})) as host:
        assert host.extensions.explain("search-engine", "example").entries[0].state == "gated"


def test_a_canary_is_masked_in_results():
    @reads
    async def tell(text: Text, *, context: ToolContext) -> str:
        """Tell what should not be told."""
        return context.secret("openai.apiKey")

    teller = pack(Descriptor("tool", "tell", tell, required_secrets=["openai.apiKey"]))
    (result,) = call_tools(teller, ("tell", {"text": "a"}), secrets=fake_secrets())

    assert result.output == "***"
