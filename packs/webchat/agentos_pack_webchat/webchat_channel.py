"""The channel `webchat`: what pages post is brought in, and an answer is sent once a page says that it has it.

An answer that no page of its conversation takes waits in the host's outbox. It is also kept here for some minutes, so a
page that comes back has it at once. Pages show a message once by its id, so handing it over again does no harm.
"""

import asyncio
import contextlib
from typing import Any

from agentos import AgentOSError, ChannelMessage, NotSentError
from agentos_pack_webchat.chat_events import ChatEvent, ChatEvents
from agentos_pack_webchat.chat_requests import ChatRefusedError, Posted

CHANNEL = "webchat"
_TAKING = 4.0
"""For how many seconds it is waited until a page says that it has an answer: less than a host that ends waits."""
_AWAY = 600.0
"""After how many seconds it is tried again where no page is open; one that is opened has it at once."""
_SLOW = 30.0
"""The same where a page is open and said nothing."""


class WebchatChannel:
    """Brings in what pages post, and hands answers to the pages of the conversation they belong to."""

    timeout = 30.0

    def __init__(self, events: ChatEvents, logger: Any) -> None:
        self._events = events
        self._logger = logger
        self._deliver: Any = None

    # -- for the host ------------------------------------------------------------------------------------------

    async def start(self, deliver: Any) -> None:
        """Take messages from now on."""
        self._deliver = deliver

    async def send(self, message: ChannelMessage) -> str:
        """Hand an answer to the pages of its conversation; return when one of them has it."""
        if "/" not in message.conversation:
            raise NotSentError("a conversation of webchat is SENDER/NAME", is_final=True)
        event = self._events.add(
            message.conversation,
            message.id,
            {"from": "agent", "text": message.text, "replyTo": _own_id(message.reply_to)},
            message.attachments,
        )
        if not event.is_taken:
            await self._until_taken(event)
        return self._events.id_of(event)

    async def stop(self) -> None:
        """Take no more messages, and end what pages follow."""
        self._deliver = None
        self._events.end_streams()

    async def _until_taken(self, event: ChatEvent) -> None:
        if not self._events.is_followed(event.conversation):
            raise NotSentError("nobody has the page open", retry_after=_AWAY)
        event.waiter = asyncio.get_running_loop().create_future()
        is_taken = False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TAKING):
                is_taken = await event.waiter
        if not is_taken:
            raise NotSentError("no page said that it has it", retry_after=_SLOW)

    # -- for pages ---------------------------------------------------------------------------------------------

    @property
    def events(self) -> ChatEvents:
        """Return what was said, for those who may follow it."""
        return self._events

    def check_on(self) -> None:
        """Refuse a request while nobody would hear of it."""
        if self._deliver is None:
            raise ChatRefusedError(503, "channel_off", "The chat is not running", retry_after=5)

    async def post(self, sender: str, posted: Posted) -> bool:
        """Bring a message in; return once it is stored. False if it was known."""
        self.check_on()
        conversation = f"{sender}/{posted.conversation}"
        message = ChannelMessage(
            channel=CHANNEL,
            conversation=conversation,
            sender=sender,
            text=posted.text,
            id=f"{sender}/{posted.id}",
        )
        try:
            is_new: bool = await self._deliver(message)
        except AgentOSError:
            self._logger.warning("a message could not be stored", exc_info=True)
            raise ChatRefusedError(503, "unavailable", "The message could not be stored", retry_after=5) from None
        if is_new:
            self._events.add(conversation, posted.id, {"from": "you", "text": message.text}).settle(is_taken=True)
        return is_new

    async def take(self, conversation: str, id: str) -> None:
        """Note that a page has all up to an event."""
        if self._events.take(conversation, id):
            await self.reach(conversation)

    async def reach(self, conversation: str) -> None:
        """Have sent what waits for a conversation: a page follows it, or has taken something."""
        if self._deliver is None:
            return
        try:
            await self._deliver.resume(conversation)
        except AgentOSError:
            self._logger.warning("what waits for a page is sent later, because the store can't be used", exc_info=True)


def _own_id(reply_to: str | None) -> str | None:
    """Return the id that a page gave the message that is answered."""
    return None if reply_to is None else reply_to.rpartition("/")[2]
