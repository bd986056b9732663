"""The tool. A model names a channel as the operator does, never by its id."""

from collections.abc import Mapping
from typing import Annotated, Any

import attrs
from agentos_pack_common import PartlySentError, WebError, plain

from agentos import ChannelMessage, NotSentError, Schema, Tool, ToolContext, tool
from agentos_pack_slack.slack_api import SlackApiError
from agentos_pack_slack.slack_channel import SlackChannel
from agentos_pack_slack.slack_options import SlackOptions

MAX_TEXT = 20_000


@attrs.frozen(kw_only=True)
class SlackSent:
    """A text that Slack took, in so many messages."""

    channel: str
    messages: int
    characters: int


@attrs.frozen
class SlackTools:
    """The tool on the channel's own way out."""

    options: SlackOptions
    slack: SlackChannel

    async def slack_send(
        self,
        channel: Annotated[
            str, "The name of a channel, as the operator has named it", Schema(minLength=1, maxLength=64)
        ],
        text: Annotated[str, "The message, as plain text", Schema(minLength=1, maxLength=MAX_TEXT, pattern=r"\S")],
    ) -> SlackSent:
        """Send a text now to one of the channels on Slack that the operator has named.

        Success means that Slack took it, not that somebody read it. It can't be taken back. To answer whoever
        wrote to you, answer: what you say is sent to them without this tool.
        """
        place = self._place(channel)
        try:
            sent = await self.slack.send(ChannelMessage(channel="slack", conversation=place, text=text))
        except NotSentError as error:
            raise ValueError(f"not sent: {error}") from None
        except (WebError, SlackApiError, PartlySentError) as error:
            raise ValueError(f"perhaps it was sent, so do not send it again: {error}") from None
        return SlackSent(channel=channel, messages=len(sent.split()), characters=len(text))

    async def preview(self, args: Mapping[str, Any], _: ToolContext) -> dict[str, Any]:
        """Say what would be sent where."""
        self._place(args["channel"])
        return {"would": f"send to {args['channel']} by Slack now", "text": args["text"]}

    def _place(self, channel: str) -> str:
        if channel not in self.options.channels:
            known = ", ".join(self.options.channels) or "none"
            raise ValueError(f"channel: {plain(channel)[:64]!r} is not known; channels are {known}")
        return self.options.channels[channel]


def slack_tool(options: SlackOptions, channel: SlackChannel) -> Tool:
    """Return the pack's tool."""
    made = SlackTools(options, channel)
    sends = tool(
        effect="mutate",
        required_access=("slack:send",),
        timeout=60 + options.timeout,
        dry_run=made.preview,
        category="channels",
    )
    return sends(made.slack_send)
