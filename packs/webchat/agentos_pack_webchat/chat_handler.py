"""What a page asks: its messages in, events out, for whom the token says and nobody else.

POST messages              takes a message; 202 once it is stored
GET  events?conversation=  server-sent events: what was said after Last-Event-ID, and then what is said
POST taken                 the page has all up to an event
GET  attachments/EVENT/N?conversation=  an attachment, to be saved
"""

import asyncio
import contextlib
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from agentos import Media
from agentos_pack_webchat.chat_events import ChatEvent, ChatStream, WebchatOptions
from agentos_pack_webchat.chat_requests import (
    ChatRefusedError,
    Receive,
    check_page,
    check_principal,
    conversation_of,
    header,
    read_posted,
    read_taken,
)
from agentos_pack_webchat.page_handler import (
    PageHandler,
    Send,
    begin_answer,
    path_within,
    send_answer,
    send_json,
    send_refusal,
)
from agentos_pack_webchat.webchat_channel import WebchatChannel

_METHODS = {"messages": "POST", "taken": "POST", "events": "GET"}
_ATTACHMENT = re.compile(r"attachments/([0-9a-f-]{1,40})/([0-9]{1,3})")
_MINUTE = 60.0


class MessageRate:
    """How many messages each sender posted within the last minute."""

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._times: dict[str, deque[float]] = {}

    def count(self, sender: str) -> None:
        """Count a message; raise ChatRefusedError if there were too many."""
        now = self._clock()
        for one in [one for one, times in self._times.items() if times[-1] <= now - _MINUTE]:
            del self._times[one]
        times = self._times.setdefault(sender, deque())
        while times and times[0] <= now - _MINUTE:
            times.popleft()
        if len(times) >= self._limit:
            raise ChatRefusedError(429, "too_many_messages", "Too many messages", retry_after=5)
        times.append(now)


class ChatHandler:
    """An ASGI application that serves pages what they ask."""

    def __init__(self, channel: WebchatChannel, page: PageHandler, options: WebchatOptions) -> None:
        self._channel = channel
        self._page = page
        self._options = options
        self._rate = MessageRate(options.messages_per_minute)

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request, or say why it is refused."""
        try:
            if not await self._page.has_served(scope, send):
                await self._answer(scope, receive, send)
        except ChatRefusedError as refused:
            await send_refusal(send, refused)

    async def _answer(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        path = path_within(scope).removeprefix("/")
        attachment = _ATTACHMENT.fullmatch(path)
        method = "GET" if attachment else _METHODS.get(path)
        if method is None:
            raise ChatRefusedError(404, "not_found", "There is nothing here")
        if scope["method"] != method:
            said = ChatRefusedError(405, "method_not_allowed", f"Expected {method}").body
            await send_json(send, 405, said, {"allow": method})
            return
        check_page(scope)
        principal = scope["state"]["context"].principal
        check_principal(principal)
        if attachment:
            await self._attachment(principal.key, scope, send, attachment[1], int(attachment[2]))
        elif path == "messages":
            await self._message(principal.key, scope, receive, send)
        elif path == "taken":
            await self._taken(principal.key, scope, receive, send)
        else:
            await self._events(principal.key, scope, send)

    async def _message(self, sender: str, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        posted = await read_posted(scope, receive, self._options.message_length)
        self._rate.count(sender)
        is_new = await self._channel.post(sender, posted)
        await send_json(send, 202, {"id": posted.id, "isNew": is_new})

    async def _taken(self, sender: str, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        conversation, last = await read_taken(scope, receive)
        await self._channel.take(f"{sender}/{conversation}", last)
        await send_answer(send, 204, b"", {})

    async def _attachment(self, sender: str, scope: Mapping[str, Any], send: Send, event: str, index: int) -> None:
        conversation = f"{sender}/{conversation_of(scope)}"
        found = self._channel.events.attachment(conversation, event, index)
        if found is None or found.data is None:
            raise ChatRefusedError(404, "not_found", "It is not kept any more")
        headers = {"content-type": "application/octet-stream", "content-disposition": _disposition(found)}
        await send_answer(send, 200, found.data, headers)

    # -- the stream --------------------------------------------------------------------------------------------

    async def _events(self, sender: str, scope: Mapping[str, Any], send: Send) -> None:
        conversation = f"{sender}/{conversation_of(scope)}"
        self._channel.check_on()
        said = header(scope, b"last-event-id")
        with self._channel.events.following(sender, conversation) as stream:
            headers = {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no"}
            await begin_answer(send, 200, headers)
            await _write(send, b": here\n\n")
            await self._channel.reach(conversation)
            await self._tell(stream, send, self._channel.events.number_of(said[0]) if said else 0)
        await send({"type": "http.response.body", "body": b""})

    async def _tell(self, stream: ChatStream, send: Send, number: int) -> None:
        """Tell a page what is said, until the stream is over."""
        while not stream.is_over:
            stream.news.clear()
            for event in self._channel.events.after(stream.conversation, number):
                await _write(send, self._frame(event))
                number = event.number
            if not await _heard(stream, self._options.heartbeat):
                await _write(send, b": still here\n\n")

    def _frame(self, event: ChatEvent) -> bytes:
        return b"id: %s\nevent: message\ndata: %s\n\n" % (self._channel.events.id_of(event).encode(), event.data)


async def _heard(stream: ChatStream, seconds: float) -> bool:
    """Wait for news; tell whether there were some in time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stream.news.wait()
            return True
    return False


async def _write(send: Send, part: bytes) -> None:
    await send({"type": "http.response.body", "body": part, "more_body": True})


def _disposition(media: Media) -> str:
    name = (media.name or "attachment").replace("/", "_").replace("\\", "_")
    return f"attachment; filename*=UTF-8''{quote(name, safe='')}"
