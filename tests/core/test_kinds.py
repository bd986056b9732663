"""Kinds tell the truth: who reads them, and which name was meant."""

import pytest

from agentos import (
    AgentOS,
    Descriptor,
    ExtensionManager,
    ExtensionPack,
    Kind,
    KindError,
    declare_kind,
    guardrail,
    lint_pack,
)
from agentos.base.spelling import is_one_letter_away
from agentos.kinds import KINDS
from agentos.model import kind as kinds

UNREAD = "active, but nothing reads this kind here"


@pytest.fixture
def own_kinds(monkeypatch):
    """Forget the kinds that a test declares."""
    monkeypatch.setattr(kinds, "_declared", dict(kinds._declared))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_of_agentos_has_a_reader_and_can_t_be_declared_again(kind):
    assert kind.reader
    with pytest.raises(KindError, match=kind.name):
        declare_kind(Kind(kind.name))


@pytest.mark.parametrize(
    ("misspelled", "meant"),
    [
        ("tools", "tool"),
        ("hitl_handler", "hitl-handler"),
        ("guardrails", "guardrail"),
        ("guardral", "guardrail"),
        ("gaurdrail", "guardrail"),
        ("Tool", "tool"),
        ("tool_middleware", "tool-middleware"),
        ("response-procesor", "response-processor"),
    ],
)
async def test_a_kind_one_letter_away_is_refused_with_the_right_name(misspelled, meant):
    pack = ExtensionPack("p", "1", [Descriptor(misspelled, "x", 1)])
    async with ExtensionManager() as manager:
        outcome = await manager.load_pack(pack)
        with pytest.raises(KindError, match=f"did you mean '{meant}'"):
            await manager.register(Descriptor(misspelled, "x", 1))

    assert outcome.status == "failed"
    assert f"did you mean '{meant}'?" in outcome.reason
    assert any(meant in finding.message for finding in lint_pack(pack))


async def test_unless_the_host_declared_it_itself(own_kinds):
    declare_kind(Kind("tools"))
    async with ExtensionManager() as manager:
        await manager.load_pack(ExtensionPack("p", "1", [Descriptor("tools", "x", 1)]))

        assert manager.registry("tools").get_active("x") is not None


@pytest.mark.parametrize("word", ["tool", "note", "persona", "theme", "toolbox", "fools", "rail", "search-engine"])
def test_other_words_are_not_one_letter_away(word):
    assert not [kind.name for kind in KINDS if is_one_letter_away(word, kind.name)]


async def test_explain_says_who_reads_a_kind_and_that_nobody_does(own_kinds):
    @guardrail(stage="input")
    async def polite(text, context):
        """Let everything pass."""

    declare_kind(Kind("theme", reader="the window"))
    declare_kind(Kind("colour"))
    others = [Descriptor(kind, "x", 1) for kind in ("mood", "theme", "colour")]
    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", "1", [polite, *others]))
        explain = host.extensions.explain

        assert "read by every call" in str(explain("guardrail", "polite"))
        assert UNREAD in str(explain("mood", "x"))
        assert explain("mood", "x").reader is None
        assert "read by the window" in str(explain("theme", "x"))
        assert "read by the host" in str(explain("colour", "x"))


def test_lint_says_that_nothing_reads_a_kind():
    (finding,) = lint_pack(ExtensionPack("p", "1", [Descriptor("mood", "x", 1)]))

    assert UNREAD in finding.message
