"""The channel: what the handler of events takes in while it is at work, and answers."""

from collections.abc import Awaitable, Callable
from functools import partial

import attrs
from agentos_pack_common import WebError, send_parts, split_text

from agentos import ChannelMessage, NotSentError
from agentos_pack_slack.slack_api import RATE_LIMITS, SlackApi, SlackApiError
from agentos_pack_slack.slack_options import SlackPlace

Deliver = Callable[[ChannelMessage], Awaitable[bool]]

TEXT_LIMIT = 40_000
"""Of how many characters Slack takes a text; it cuts off what is behind them."""
MAX_PARTS = 10
_SENDS = "chat.postMessage"
_CURABLE = RATE_LIMITS | frozenset(
    {
        *("not_authed", "invalid_auth", "account_inactive", "token_revoked", "token_expired", "missing_scope"),
        *("not_in_channel", "ekm_access_denied", "team_access_not_granted", "accesslimited", "refused"),
    }
)
"""Refusals that an operator can do something about before it is tried again: the token, its scopes, an invitation."""


@attrs.define
class WayIn:
    """Where messages go that the handler of events is sent: nowhere while the channel is not at work."""

    deliver: Deliver | None = None


class SlackChannel:
    """What people write to an app, and what the app writes to them."""

    timeout = 120.0
    """For all parts of a message, and the pauses between them that Slack asks for."""

    def __init__(self, api: SlackApi, way_in: WayIn) -> None:
        self._api = api
        self._way_in = way_in

    async def start(self, deliver: Deliver) -> None:
        """Take in what the handler of events is sent."""
        self._way_in.deliver = deliver

    async def stop(self) -> None:
        """Take nothing in any more; Slack brings it again."""
        self._way_in.deliver = None

    async def send(self, message: ChannelMessage) -> str:
        """Send a message, in several if it is long; return what Slack knows them by."""
        place = SlackPlace.read(message.conversation)
        if place is None:
            raise NotSentError("the conversation is not the id of a channel", is_final=True)
        named = [one.in_words() for one in message.attachments]
        texts = split_text("\n".join(filter(None, [message.text, *named])), TEXT_LIMIT, _weight)
        if not texts:
            raise NotSentError("there is nothing to send in it", is_final=True)
        if len(texts) > MAX_PARTS:
            why = f"it takes {len(texts)} messages of Slack, and at most {MAX_PARTS} are sent"
            raise NotSentError(why, is_final=True)
        return " ".join(await send_parts([partial(self._send_part, place, text) for text in texts]))

    async def _send_part(self, place: SlackPlace, text: str) -> str:
        """Send a text as it is: nothing in it calls people, and Slack asks no address that stands in it."""
        said = {"text": "".join(_ESCAPES.get(char, char) for char in text), "parse": "none", "link_names": False}
        said |= {"unfurl_links": False, "unfurl_media": False}
        try:
            answer = await self._api.call(_SENDS, {**place.parameters(), **said})
        except WebError as error:
            if error.is_sent:
                raise
            refusal = NotSentError(str(error))
        except SlackApiError as error:
            if not error.is_refusal:
                raise
            refusal = NotSentError(str(error), retry_after=error.retry_after, is_final=error.code not in _CURABLE)
        else:
            if not isinstance(answer.get("ts"), str):
                raise SlackApiError(_SENDS, 200, "unknown")
            return f"{place.channel}/{answer['ts'][:40]}"
        raise refusal


_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def _weight(char: str) -> int:
    """Return how much of a message a character takes."""
    return len(_ESCAPES.get(char, char))
