"""What was said lately in each conversation, for the pages that follow it.

Everything is in memory and bounded: by age, by number in a conversation, and by bytes in all. An event has a number
that grows, and the start of this process in its id: after a restart no page takes a new event for one that it has.
"""

import asyncio
import json
import re
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
from attrs.validators import and_, ge, gt, le

from agentos import Media
from agentos_pack_webchat.chat_requests import ChatRefusedError

_EVENT_ID = re.compile(r"([0-9a-f]{16})-([0-9]{1,15})")
_LINKED = ("https://", "http://")
"""How the addresses begin that a page makes links of."""


@attrs.frozen(kw_only=True)
class WebchatOptions:
    """What a manifest may say."""

    streams: int = attrs.field(default=8, validator=and_(ge(1), le(100)))
    """How many pages of one sender may be open."""
    messages_per_minute: int = attrs.field(default=30, validator=and_(ge(1), le(10_000)))
    message_length: int = attrs.field(default=16_000, validator=and_(ge(1), le(100_000)))
    """How many characters a message may have."""
    kept_minutes: float = attrs.field(default=10.0, validator=and_(gt(0), le(1440)))
    kept_messages: int = attrs.field(default=200, validator=and_(ge(1), le(10_000)))
    """How many messages of one conversation are kept for pages that come back."""
    kept_bytes: int = attrs.field(default=64_000_000, validator=ge(1_000_000))
    """How many bytes of all conversations are kept; the newest message always is."""
    heartbeat: float = attrs.field(default=15.0, validator=and_(gt(0), le(300)))
    """After how many seconds without news a stream shows that it is alive."""


@attrs.define(eq=False)
class ChatEvent:
    """A message that pages are told of, and whether one said that it has it."""

    conversation: str
    message: str
    number: int
    data: bytes = attrs.field(repr=False)
    attachments: tuple[Media, ...] = attrs.field(repr=False)
    kept_at: float
    is_taken: bool = False
    waiter: "asyncio.Future[bool] | None" = attrs.field(default=None, repr=False)
    """Who waits for it to be taken: True once it is, False when nobody follows the conversation any more."""

    @property
    def size(self) -> int:
        """Return how many bytes it takes."""
        return len(self.data) + sum(one.size or 0 for one in self.attachments)

    @property
    def is_awaited(self) -> bool:
        """Tell whether somebody waits for it to be taken."""
        return self.waiter is not None and not self.waiter.done()

    def settle(self, *, is_taken: bool) -> None:
        """Note whether a page has it, and tell who waits for that."""
        self.is_taken = self.is_taken or is_taken
        if self.waiter is not None and self.is_awaited:
            self.waiter.set_result(is_taken)


@attrs.define(eq=False)
class ChatStream:
    """One page that follows a conversation."""

    sender: str
    conversation: str
    news: asyncio.Event = attrs.field(factory=asyncio.Event, repr=False)
    is_over: bool = False


class ChatEvents:
    """Keeps events by conversation, and wakes the pages that follow one."""

    def __init__(self, options: WebchatOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._clock = clock
        self._run = secrets.token_hex(8)
        self._last = 0
        self._all: OrderedDict[int, ChatEvent] = OrderedDict()
        self._by_conversation: dict[str, deque[ChatEvent]] = {}
        self._bytes = 0
        self._streams: list[ChatStream] = []

    # -- events ------------------------------------------------------------------------------------------------

    def add(
        self, conversation: str, message: str, said: dict[str, Any], attachments: tuple[Media, ...] = ()
    ) -> ChatEvent:
        """Keep what was said, once by the id of its message, and wake the pages."""
        self._forget()
        known = next((one for one in self._by_conversation.get(conversation, ()) if one.message == message), None)
        if known is not None:
            return known
        self._last += 1
        told = {"id": message, **said, "attachments": [_reference(one) for one in attachments]}
        data = json.dumps(told).encode()
        event = ChatEvent(conversation, message, self._last, data, attachments, self._clock())
        self._all[event.number] = event
        kept = self._by_conversation.setdefault(conversation, deque())
        kept.append(event)
        self._bytes += event.size
        if len(kept) > self._options.kept_messages:
            self._drop(kept[0])
        while self._bytes > self._options.kept_bytes and len(self._all) > 1:
            self._drop(next(iter(self._all.values())))
        for stream in self._following(conversation):
            stream.news.set()
        return event

    def after(self, conversation: str, number: int) -> list[ChatEvent]:
        """Return what was said in a conversation after an event, oldest first."""
        self._forget()
        return [one for one in self._by_conversation.get(conversation, ()) if one.number > number]

    def id_of(self, event: ChatEvent) -> str:
        """Return the id by which pages know an event."""
        return f"{self._run}-{event.number}"

    def number_of(self, id: str) -> int:
        """Return the number of the event that a page names; 0 if it is not one of this process."""
        match = _EVENT_ID.fullmatch(id)
        return int(match[2]) if match is not None and match[1] == self._run else 0

    def attachment(self, conversation: str, id: str, index: int) -> Media | None:
        """Return an attachment of a conversation's event, if it is kept and has bytes of its own."""
        self._forget()
        event = self._all.get(self.number_of(id))
        if event is None or event.conversation != conversation or index >= len(event.attachments):
            return None
        found = event.attachments[index]
        return None if found.data is None else found

    def take(self, conversation: str, id: str) -> bool:
        """Note that a page has all up to an event; tell whether some of it waits to be handed over again."""
        number = self.number_of(id)
        taken = [one for one in self._by_conversation.get(conversation, ()) if one.number <= number]
        has_waiting = any(not one.is_taken and not one.is_awaited for one in taken)
        for event in taken:
            event.settle(is_taken=True)
        return has_waiting

    def _forget(self) -> None:
        oldest = self._clock() - self._options.kept_minutes * 60
        while self._all and (event := next(iter(self._all.values()))).kept_at < oldest:
            self._drop(event)

    def _drop(self, event: ChatEvent) -> None:
        """Drop an event, which is always the oldest of its conversation."""
        del self._all[event.number]
        kept = self._by_conversation[event.conversation]
        kept.popleft()
        if not kept:
            del self._by_conversation[event.conversation]
        self._bytes -= event.size

    # -- pages -------------------------------------------------------------------------------------------------

    @contextmanager
    def following(self, sender: str, conversation: str) -> Iterator[ChatStream]:
        """Follow a conversation for the time of the block; raise ChatRefusedError if the sender does so too often."""
        if sum(one.sender == sender for one in self._streams) >= self._options.streams:
            raise ChatRefusedError(429, "too_many_pages", "Too many pages are open", retry_after=5)
        stream = ChatStream(sender, conversation)
        self._streams.append(stream)
        try:
            yield stream
        finally:
            self._streams.remove(stream)
            if not self.is_followed(conversation):
                self._release(conversation)

    def is_followed(self, conversation: str) -> bool:
        """Tell whether a page follows a conversation."""
        return any(True for _ in self._following(conversation))

    def end_streams(self) -> None:
        """End what every page follows."""
        for stream in self._streams:
            stream.is_over = True
            stream.news.set()
        for conversation in list(self._by_conversation):
            self._release(conversation)

    def _following(self, conversation: str) -> Iterator[ChatStream]:
        return (one for one in self._streams if one.conversation == conversation and not one.is_over)

    def _release(self, conversation: str) -> None:
        for event in self._by_conversation.get(conversation, ()):
            event.settle(is_taken=False)


def _reference(media: Media) -> dict[str, Any]:
    """Return what a page is told of an attachment: an address only if it is one to follow."""
    said = {name: value for name, value in media.reference().items() if name != "url"}
    return {**said, "url": media.url} if media.url and media.url.lower().startswith(_LINKED) else said
