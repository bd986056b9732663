"""The tool. A model names a chat, never a number."""

from collections.abc import Mapping
from typing import Annotated, Any

import attrs
from agentos_pack_common import PartlySentError, WebError, plain

from agentos import ChannelMessage, NotSentError, Schema, Tool, ToolContext, tool
from agentos_pack_telegram.bot_api import BotApiError
from agentos_pack_telegram.telegram_channel import TelegramChannel
from agentos_pack_telegram.telegram_options import TelegramOptions

MAX_TEXT = 20_000


@attrs.frozen(kw_only=True)
class TelegramSent:
    """A text that Telegram took, in so many messages."""

    chat: str
    messages: int
    characters: int


@attrs.frozen
class TelegramTools:
    """The tool on the channel's own way out."""

    options: TelegramOptions
    channel: TelegramChannel

    async def telegram_send(
        self,
        chat: Annotated[str, "The name of a chat, as the operator has named it", Schema(minLength=1, maxLength=64)],
        text: Annotated[str, "The message, as plain text", Schema(minLength=1, maxLength=MAX_TEXT, pattern=r"\S")],
    ) -> TelegramSent:
        """Send a text now to one of the chats on Telegram that the operator has named.

        Success means that Telegram took it, not that somebody read it. It can't be taken back. To answer whoever
        wrote to you, answer: what you say is sent to them without this tool.
        """
        place = self._place(chat)
        try:
            sent = await self.channel.send(ChannelMessage(channel="telegram", conversation=place, text=text))
        except NotSentError as error:
            raise ValueError(f"not sent: {error}") from None
        except (WebError, BotApiError, PartlySentError) as error:
            raise ValueError(f"perhaps it was sent, so do not send it again: {error}") from None
        return TelegramSent(chat=chat, messages=len(sent.split()), characters=len(text))

    async def preview(self, args: Mapping[str, Any], _: ToolContext) -> dict[str, Any]:
        """Say what would be sent where."""
        self._place(args["chat"])
        return {"would": f"send to {args['chat']} by Telegram now", "text": args["text"]}

    def _place(self, chat: str) -> str:
        if chat not in self.options.chats:
            known = ", ".join(self.options.chats) or "none"
            raise ValueError(f"chat: {plain(chat)[:64]!r} is not known; chats are {known}")
        return self.options.chats[chat]


def telegram_tool(options: TelegramOptions, channel: TelegramChannel) -> Tool:
    """Return the pack's tool."""
    made = TelegramTools(options, channel)
    sends = tool(
        effect="mutate",
        required_access=("telegram:send",),
        timeout=60 + options.timeout,
        dry_run=made.preview,
        category="channels",
    )
    return sends(made.telegram_send)
