"""The tool, the options and the distribution."""

import tomllib
from pathlib import Path

import agentos_pack_telegram
import pytest
from agentos_pack_telegram.telegram_options import BASE_URL, TelegramOptions

from agentos import AgentOS, PackEntry, SecretCatalog, ToolCall

from .conftest import TOKEN, refusal

CHATS = {"ops": "-1001234", "topic": "-1001234/5"}


async def send(host, **arguments):
    call = ToolCall("telegram_send", {"chat": "ops", "text": "hello", **arguments})
    return await host.tools.process_tool_call(call)


async def test_the_tool_writes_to_a_chat_that_has_a_name(hosting, bot):
    async with hosting(channels=False, chats=CHATS) as host:
        result = await send(host, chat="topic")

    assert result.output == {"chat": "topic", "messages": 1, "characters": 5}
    assert (bot.sent[0]["chat_id"], bot.sent[0]["message_thread_id"], bot.sent[0]["text"]) == (-1001234, 5, "hello")


async def test_the_tool_writes_to_nobody_else(hosting, bot):
    async with hosting(channels=False, chats=CHATS) as host:
        results = [await send(host, chat=chat) for chat in ("4242", "-1001234", "@ann")]

    assert bot.asked == []
    assert all("is not known; chats are ops, topic" in one.content for one in results)


async def test_the_tool_asks_first(hosting, bot):
    async with hosting(channels=False, chats=CHATS, mode="approve") as host:
        result = await send(host)
        (proposal,) = await host.approvals.pending()

    assert (result.error.type, bot.asked) == ("ApprovalRequired", [])
    assert proposal.preview == {"would": "send to ops by Telegram now", "text": "hello"}


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (refusal(403, f"Forbidden {TOKEN}"), "not sent: Telegram answered sendMessage with status 403: Forbidden ***"),
        (refusal(500), "perhaps it was sent, so do not send it again"),
        ((200, {}, b"{}"), "perhaps it was sent, so do not send it again"),
    ],
)
async def test_a_failure_of_the_tool_says_whether_it_may_have_been_sent(hosting, bot, trouble, words):
    bot.troubles["sendMessage"] = [trouble]
    async with hosting(channels=False, chats=CHATS) as host:
        result = await send(host)

    assert result.error.type == "ToolRaised"
    assert words in result.content
    assert TOKEN not in str(result)


async def test_without_chats_the_tool_is_gated_and_the_channel_is_there(hosting):
    async with hosting(channels=False) as host:
        (entry,) = host.extensions.explain("tool", "telegram_send").entries
        channel = host.extensions.registry("messaging-channel").get_active("telegram")

    assert (str(entry.state), "the option `chats`" in entry.reason) == ("gated", True)
    assert channel is not None


async def test_without_its_token_nothing_is_offered(monkeypatch):
    monkeypatch.delenv("TELEGRAM_BOT_TOKEN", raising=False)
    manifest = {"packs": [{"module": "agentos_pack_telegram", "options": {"chats": CHATS}}]}
    async with AgentOS(extension_manifest=manifest) as host:
        found = [
            host.extensions.explain(kind, id).entries[0].reason
            for kind, id in (("messaging-channel", "telegram"), ("tool", "telegram_send"))
        ]

    assert all("telegram.botToken" in reason for reason in found)
    assert "telegram.botToken" in SecretCatalog.shipped().definitions


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"baseurl": "x"}, "options.baseurl: is not known; did you mean `baseUrl`?"),
        ({"baseUrl": "ftp://x"}, "options.baseUrl: the address is refused"),
        ({"chats": {"ann": "@ann"}}, "'ann': expected the number of a chat"),
        ({"poll": 51}, "options.poll"),
        ({"maxFileBytes": 8_000_001}, "options.maxFileBytes"),
    ],
)
async def test_a_wrong_option_fails_the_load_and_is_named(options, words):
    async with AgentOS() as host:
        outcome = await host.extensions.load(PackEntry(module="agentos_pack_telegram", options=options))

    assert outcome.status == "failed"
    assert words in str(outcome.error)


def test_only_an_address_of_the_operator_may_be_private():
    ours, theirs = TelegramOptions().policy(), TelegramOptions(base_url="http://10.0.0.7:8081").policy()

    assert (ours.allow, ours.allow_private) == ((BASE_URL,), ())
    assert theirs.allow_private == ("10.0.0.7:8081",)


def test_the_manifest_of_the_readme_can_be_read():
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")

    manifest = tomllib.loads(readme.split("```toml\n")[1].split("```")[0])

    assert manifest["packs"][0]["options"]["chats"] == {"ops": "-1001234567890"}


def test_loading_it_imports_nothing_heavy(run_python):
    code = (
        "import sys\n"
        "import agentos_pack_telegram\n"
        "light = set(sys.modules)\n"
        "import agentos_pack_telegram.telegram_tool\n"
        "print({'attrs', 'agentos_pack_common'} & light, {'httpx', 'httpcore'} & set(sys.modules))"
    )

    assert (run_python(code), agentos_pack_telegram.__version__) == ("set() set()", "0.1.0")
