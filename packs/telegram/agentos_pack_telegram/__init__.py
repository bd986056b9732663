"""Telegram for agents: a channel by long polling, and a tool that writes to the chats that the operator names.

telegram_options  what a manifest may say
bot_api           calls of the Bot API; the token stands in their addresses and leaves by nothing else
updates           what Telegram says of a message, read
received_files    photos and files of messages, fetched within bounds
telegram_channel  the channel: what comes in, and answers
telegram_tool     telegram_send

The token is a secret, `telegram.botToken`; without it neither is offered.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `telegram` with its channel and its tool, gated by the secret telegram.botToken."""
    from agentos_pack_common import WebClient, read_options

    from agentos import Descriptor, ExtensionPack, SecretRequirement, with_displays
    from agentos_pack_telegram._displays import DISPLAYS
    from agentos_pack_telegram.bot_api import TOKEN, BotApi
    from agentos_pack_telegram.telegram_channel import TelegramChannel
    from agentos_pack_telegram.telegram_options import TelegramOptions
    from agentos_pack_telegram.telegram_tool import telegram_tool

    options = read_options(TelegramOptions, context.options)
    client = WebClient(options.policy())
    api = BotApi(options, client, lambda: context.secret(TOKEN))
    channel = TelegramChannel(api, options, context.logger)
    sends = telegram_tool(options, channel)
    needed = [SecretRequirement(TOKEN)]
    return ExtensionPack(
        name="telegram",
        version=__version__,
        description="A channel and a tool for Telegram, as a bot.",
        options=TelegramOptions,
        descriptors=with_displays(
            [
                Descriptor("messaging-channel", "telegram", channel, required_secrets=needed),
                Descriptor("tool", sends.name, sends, required_secrets=needed, gate=options.fault_of_chats),
            ],
            DISPLAYS,
        ),
        on_deactivate=client.aclose,
    )
