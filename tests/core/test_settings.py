"""Settings: the host's word wins over the manifest's, which wins over the default."""

from datetime import datetime

import pytest

from agentos import PUBLIC, AgentOS, Budget, ExtensionPack, ToolCall, tool
from agentos.access.policy import Policy
from agentos.model.settings import UNSET, ResultLimits, Settings

NOW = 1_800_000_000.0


@tool(effect="mutate", required_access=PUBLIC)
async def act() -> str:
    """Do something."""
    return "done"


def host_of(manifest=None, **given):
    packs = [{"factory": lambda: ExtensionPack("p", "1", [act])}]
    return AgentOS(extension_manifest={**(manifest or {}), "packs": packs}, clock=lambda: NOW, **given)


async def error_of(host):
    async with host:
        return (await host.tools.process_tool_call(ToolCall("act"))).error


async def seconds_to_approve(host):
    error = await error_of(host)
    return datetime.fromisoformat(str(error.details["expires_at"])).timestamp() - NOW


def test_what_is_not_given_is_the_default():
    assert Settings().overlaid(mode=UNSET) == Settings()
    assert Settings().given == frozenset()


def test_what_is_stronger_wins_and_the_rest_stays():
    settings = Settings().overlaid(mode="auto", pins="strict").overlaid(mode="unattended", pins=UNSET)

    assert (settings.mode, settings.pins, settings.given) == ("unattended", "strict", {"mode", "pins"})


async def test_a_default_that_the_host_gives_counts_over_the_manifest():
    assert (await error_of(host_of({"mode": "auto"}, mode="approve"))).type == "ApprovalRequired"
    assert await error_of(host_of({"mode": "auto"})) is None


async def test_no_budget_counts_over_the_manifests():
    strict = {"mode": "auto", "budget": {"calls": 1}}
    async with host_of(strict) as bound, host_of(strict, budget=None) as free:
        results = [[await host.tools.process_tool_call(ToolCall("act")) for _ in range(2)] for host in (bound, free)]

    assert [[one.success for one in two] for two in results] == [[True, False], [True, True]]


@pytest.mark.parametrize(("store", "seconds"), [(None, 600), ("s.db", 24 * 3600)])
async def test_a_proposal_waits_ten_minutes_in_memory_and_a_day_in_a_durable_store(tmp_path, store, seconds):
    place = None if store is None else tmp_path / store

    assert await seconds_to_approve(host_of(store=place)) == seconds
    assert await seconds_to_approve(host_of(store=place, proposal_ttl=None)) == seconds


async def test_a_time_that_is_given_counts_in_every_store(tmp_path):
    assert await seconds_to_approve(host_of({"proposalTtl": 60}, store=tmp_path / "s.db")) == 60
    assert await seconds_to_approve(host_of({"proposalTtl": 60}, store=tmp_path / "t.db", proposal_ttl=600)) == 600


def test_all_that_is_wrong_with_settings_is_told_at_once():
    with pytest.raises(ValueError, match="the settings of the host have 5 problems") as raised:
        AgentOS(mode="loose", deny=3, budget="x", proposal_ttl=-1, pins="bad")

    told = [line.strip().partition(":")[0] for line in str(raised.value).splitlines()[1:]]
    assert told == ["mode", "deny", "budget", "proposal_ttl", "pins"]


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"mode": "loose"}, ValueError, "mode: expected one of approve, auto, unattended, got 'loose'"),
        ({"deny": 3}, TypeError, "deny: expected names or patterns of tools, got int"),
        ({"required_guardrails": 3}, TypeError, "required_guardrails: expected ids, got int"),
    ],
)
def test_one_that_is_wrong_is_told_by_its_name(wrong, error, words):
    with pytest.raises(error, match=words):
        AgentOS(**wrong)


def test_a_policy_takes_budgets_in_every_form():
    for budget, limits in (({"calls": 5}, (Budget(calls=5),)), (None, ()), ([Budget(calls=2)], (Budget(calls=2),))):
        assert Policy.of(Settings().overlaid(budget=budget), is_durable=False).budgets == limits


# -- limits ------------------------------------------------------------------------------------------------------------


@tool(effect="read", required_access=PUBLIC)
async def big(n: int) -> str:
    """Return a long text."""
    return "x" * n


async def content_of(n, **options):
    async with AgentOS(**options) as host:
        await host.tools_service().sync([big])
        return await host.tools.process_tool_call(ToolCall("big", {"n": n}))


async def test_a_model_is_given_sixty_thousand_characters_and_told_which_setting_that_is():
    result = await content_of(60_001)

    assert len(result.content) == 60_000
    assert "60000 of 60001 characters are shown (setting `limits.content`)" in result.content
    assert len(result.output) == 60_001


@pytest.mark.parametrize(
    "options",
    [
        {"limits": {"content": 100_000}},
        {"limits": ResultLimits(content=100_000)},
        {"extension_manifest": {"packs": [], "limits": {"content": 100_000}}},
        {"extension_manifest": {"packs": [], "limits": {"content": 1_000}}, "limits": {"content": 100_000}},
    ],
    ids=["mapping", "limits", "manifest", "both"],
)
async def test_limits_are_settings(options):
    assert (await content_of(60_001, **options)).content == "x" * 60_001


async def test_an_output_that_is_dropped_names_its_setting():
    result = await content_of(5_000, limits={"content": 2_000, "output": 3_000})

    assert "was too large to keep (setting `limits.output`)" in result.content


@pytest.mark.parametrize("wrong", [{"content": 5}, {"output": 1.5}, {"state": True}, {"contents": 5_000}, 7], ids=str)
def test_limits_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match="limits"):
        AgentOS(limits=wrong)
