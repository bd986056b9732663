"""The tool, the options and the distribution."""

import tomllib
from pathlib import Path

import agentos_pack_slack
import pytest
from agentos_pack_slack.slack_options import BASE_URL, SlackOptions

from agentos import AgentOS, PackEntry, SecretCatalog, ToolCall

from .conftest import TOKEN, refusal

CHANNELS = {"ops": "C024BE91L", "topic": "C024BE91L/1600000000.000001"}


async def send(host, **arguments):
    call = ToolCall("slack_send", {"channel": "ops", "text": "hello", **arguments})
    return await host.tools.process_tool_call(call)


async def test_the_tool_writes_to_a_channel_that_has_a_name(hosting, slack):
    async with hosting(running=False, serves=False, channels=CHANNELS) as (host, _):
        result = await send(host, channel="topic")

    assert result.output == {"channel": "topic", "messages": 1, "characters": 5}
    [said] = slack.sent
    assert (said["channel"], said["thread_ts"], said["text"]) == ("C024BE91L", "1600000000.000001", "hello")


async def test_the_tool_writes_to_nobody_else(hosting, slack):
    async with hosting(running=False, serves=False, channels=CHANNELS) as (host, _):
        results = [await send(host, channel=id) for id in ("C024BE91L", "#general", "@ann")]

    assert slack.asked == []
    assert all("is not known; channels are ops, topic" in one.content for one in results)


async def test_the_tool_asks_first(hosting, slack):
    async with hosting(running=False, serves=False, channels=CHANNELS, mode="approve") as (host, _):
        result = await send(host)
        (proposal,) = await host.approvals.pending()

    assert (result.error.type, slack.asked) == ("ApprovalRequired", [])
    assert proposal.preview == {"would": "send to ops by Slack now", "text": "hello"}


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (refusal("is_archived"), "not sent: Slack answered chat.postMessage with status 200: is_archived"),
        (refusal(TOKEN, 500), "perhaps it was sent, so do not send it again"),
        ((200, {}, b"{}"), "perhaps it was sent, so do not send it again"),
    ],
)
async def test_a_failure_of_the_tool_says_whether_it_may_have_been_sent(hosting, slack, trouble, words):
    slack.troubles = [trouble]
    async with hosting(running=False, serves=False, channels=CHANNELS) as (host, _):
        result = await send(host)

    assert result.error.type == "ToolRaised"
    assert words in result.content
    assert TOKEN not in str(result)


async def test_without_channels_the_tool_is_gated_and_the_channel_is_there(hosting):
    async with hosting(running=False, serves=False) as (host, _):
        (entry,) = host.extensions.explain("tool", "slack_send").entries
        channel = host.extensions.registry("messaging-channel").get_active("slack")

    assert (str(entry.state), "the option `channels`" in entry.reason) == ("gated", True)
    assert channel is not None


async def test_without_its_secrets_nothing_is_offered(monkeypatch):
    monkeypatch.delenv("SLACK_BOT_TOKEN", raising=False)
    monkeypatch.delenv("SLACK_SIGNING_SECRET", raising=False)
    manifest = {"packs": [{"module": "agentos_pack_slack", "options": {"channels": CHANNELS}}]}
    offered = {
        ("messaging-channel", "slack"): {"slack.botToken", "slack.signingSecret"},
        ("http-handler", "events"): {"slack.signingSecret"},
        ("tool", "slack_send"): {"slack.botToken"},
    }
    async with AgentOS(extension_manifest=manifest) as host:
        found = {key: host.extensions.explain(*key).entries[0] for key in offered}

    ids = {"slack.botToken", "slack.signingSecret"}
    assert {key: {id for id in ids if id in entry.reason} for key, entry in found.items()} == offered
    assert {str(entry.state) for entry in found.values()} == {"gated"}
    assert ids <= set(SecretCatalog.shipped().definitions)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"baseurl": "x"}, "options.baseurl: is not known; did you mean `baseUrl`?"),
        ({"baseUrl": "ftp://x"}, "options.baseUrl: the address is refused"),
        ({"channels": {"ops": "#ops"}}, "'ops': expected the id of a channel"),
        ({"timeout": 61}, "options.timeout"),
    ],
)
async def test_a_wrong_option_fails_the_load_and_is_named(options, words):
    async with AgentOS() as host:
        outcome = await host.extensions.load(PackEntry(module="agentos_pack_slack", options=options))

    assert outcome.status == "failed"
    assert words in str(outcome.error)


def test_only_an_address_of_the_operator_may_be_private():
    ours, theirs = SlackOptions().policy(), SlackOptions(base_url="http://10.0.0.7:8081").policy()

    assert (ours.allow, ours.allow_private) == ((BASE_URL.removesuffix("/api"),), ())
    assert theirs.allow_private == ("10.0.0.7:8081",)


def test_the_manifest_of_the_readme_can_be_read():
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")

    manifest = tomllib.loads(readme.split("```toml\n")[1].split("```")[0])

    assert manifest["packs"][0]["options"]["channels"] == {"ops": "C024BE91L"}
    assert manifest["packs"][0]["permissions"] == ["http:public"]


def test_loading_it_imports_nothing_heavy(run_python):
    code = (
        "import sys\n"
        "import agentos_pack_slack\n"
        "light = set(sys.modules)\n"
        "import agentos_pack_slack.slack_tool\n"
        "print({'attrs', 'agentos_pack_common'} & light, {'httpx', 'httpcore'} & set(sys.modules))"
    )

    assert (run_python(code), agentos_pack_slack.__version__) == ("set() set()", "0.1.0")
