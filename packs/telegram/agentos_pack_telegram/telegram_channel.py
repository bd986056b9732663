"""The channel: messages come in by long polling, and answers go out."""

import asyncio
import mimetypes
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import attrs
from agentos_pack_common import WebError, send_parts, split_text

from agentos import ChannelMessage, Media, NotSentError
from agentos.model.pack_context import PackLogger
from agentos_pack_telegram.bot_api import OK, BotApi, BotApiError, BotTokenError
from agentos_pack_telegram.received_files import fetch, instead_of
from agentos_pack_telegram.telegram_options import POLL_MARGIN, ChatPlace, TelegramOptions
from agentos_pack_telegram.updates import ReceivedMessage, read_update, update_number

Deliver = Callable[[ChannelMessage], Awaitable[bool]]

TEXT_UNITS = 4_096
"""How much a message of Telegram holds, in units of UTF-16."""
MAX_PARTS = 25
_AT_ONCE = 100
_LONGEST_PAUSE = 60.0
_FETCHES = 2
"""How often it is tried to fetch a file, before its message goes on without it."""
_LOOK_FOR_TOKEN = 2.0
_FINAL = (400, 403, 413)
"""Refusals that stay: a chat that is not there, or somebody who blocked the bot."""
_PHOTOS = ("image/jpeg", "image/png", "image/webp")


@attrs.frozen
class _Part:
    """One call that sends a part of a message."""

    method: str
    parameters: Mapping[str, Any]
    files: Mapping[str, tuple[str, bytes]] | None = None


class TelegramChannel:
    """What people write to a bot, and what the bot writes to them."""

    timeout = 180.0
    """For all parts of a message, and the pauses between them that Telegram asks for."""

    def __init__(self, api: BotApi, options: TelegramOptions, logger: PackLogger) -> None:
        self._api = api
        self._options = options
        self._logger = logger
        self._offset: int | None = None
        self._fetches = 0
        self._told = ""
        self._task: asyncio.Task[None] | None = None

    async def start(self, deliver: Deliver) -> None:
        """Begin to ask for messages."""
        await self.stop()
        self._task = asyncio.create_task(self._poll(deliver), name="telegram polling")

    async def stop(self) -> None:
        """End it; what was not delivered is brought again."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    # -- coming in -------------------------------------------------------------------------------------------------

    async def _poll(self, deliver: Deliver) -> None:
        failures = 0
        while True:
            try:
                await self._take_in(deliver)
                failures, self._told = 0, ""
            except BotTokenError as error:
                await self._wait_for_another_token(error)
            except Exception as error:  # noqa: BLE001 - the service and the host's store: both come back
                failures += 1
                self._tell(error)
                asked = getattr(error, "retry_after", None) or 0.0
                await asyncio.sleep(max(asked, min(2.0 ** (failures - 1), _LONGEST_PAUSE)))

    def _tell(self, error: Exception) -> None:
        """Log a trouble once, as long as it is the same."""
        words = f"{type(error).__name__}: {error}"
        if words != self._told:
            self._told = words
            self._logger.warning("telegram: messages have to wait: %s", words)

    async def _wait_for_another_token(self, error: BotTokenError) -> None:
        refused = self._api.token()
        self._logger.error("telegram: no messages come in: %s", error)
        while self._api.token() == refused:  # noqa: ASYNC110 - nobody tells of a secret that changed
            await asyncio.sleep(_LOOK_FOR_TOKEN)

    async def _take_in(self, deliver: Deliver) -> None:
        """Ask once, and deliver what there is. An update is confirmed by the next poll, so after it is delivered."""
        asked: dict[str, Any] = {"timeout": self._options.poll, "limit": _AT_ONCE, "allowed_updates": ["message"]}
        if self._offset is not None:
            asked["offset"] = self._offset
        updates = await self._api.call("getUpdates", asked, seconds=self._options.poll + POLL_MARGIN)
        if not isinstance(updates, list):
            raise BotApiError("getUpdates", OK, "it is not a list of updates")
        for update in updates:
            number = update_number(update)
            if number is None:
                continue
            received = read_update(update, self._options.max_file_bytes)
            if received is not None:
                await deliver(await self._message(received))
            self._offset, self._fetches = number + 1, 0

    async def _message(self, received: ReceivedMessage) -> ChannelMessage:
        media, text = await self._attached(received), received.text
        if received.file is not None and media is None:
            text = f"{text}\n{instead_of(received.file)}".lstrip("\n")
        chat = received.place.chat
        return ChannelMessage(
            channel="telegram",
            conversation=str(received.place),
            sender=str(received.sender),
            text=text,
            attachments=() if media is None else (media,),
            id=received.id,
            reply_to=None if received.reply_to is None else f"{chat}/{received.reply_to}",
        )

    async def _attached(self, received: ReceivedMessage) -> Media | None:
        """Fetch what a message carries. What fails again and again does not hold up the messages behind it."""
        if received.file is None or self._fetches >= _FETCHES:
            return None
        self._fetches += 1
        return await fetch(self._api, received.file, self._options.max_file_bytes)

    # -- going out -------------------------------------------------------------------------------------------------

    async def send(self, message: ChannelMessage) -> str:
        """Send a message, in several if it is long; return what Telegram knows them by."""
        place = ChatPlace.read(message.conversation)
        if place is None:
            raise NotSentError("the conversation is not the number of a chat", is_final=True)
        parts = [*_texts(place, message), *(_upload(place, one) for one in message.attachments if one.data is not None)]
        if not parts:
            raise NotSentError("there is nothing to send in it", is_final=True)
        if len(parts) > MAX_PARTS:
            why = f"it takes {len(parts)} messages of Telegram, and at most {MAX_PARTS} are sent"
            raise NotSentError(why, is_final=True)
        return " ".join(await send_parts([partial(self._send_part, part) for part in parts]))

    async def _send_part(self, part: _Part) -> str:
        try:
            sent = await self._api.call(part.method, part.parameters, files=part.files)
        except WebError as error:
            if error.is_sent:
                raise
            refusal = NotSentError(str(error))
        except BotApiError as error:
            if not error.is_refusal:
                raise
            refusal = NotSentError(str(error), retry_after=error.retry_after, is_final=error.status in _FINAL)
        else:
            number = sent.get("message_id") if isinstance(sent, dict) else None
            if not isinstance(number, int):
                raise BotApiError(part.method, OK, "it is not a message")
            return f"{part.parameters['chat_id']}/{number}"
        raise refusal


def _units(char: str) -> int:
    """Return how much a character counts for Telegram, which counts as UTF-16 does."""
    return 2 if ord(char) > _LAST_OF_ONE_UNIT else 1


_LAST_OF_ONE_UNIT = 0xFFFF


def _texts(place: ChatPlace, message: ChannelMessage) -> list[_Part]:
    """Return the text in parts, with previews off: for one, Telegram would ask the address that stands in the text."""
    addresses = [f"{one.name or one.type}: {one.url}" for one in message.attachments if one.url is not None]
    texts = split_text("\n".join(filter(None, [message.text, *addresses])), TEXT_UNITS, _units)
    common = {**place.parameters(), "link_preview_options": {"is_disabled": True}}
    answered = _answered(place, message.reply_to)
    return [
        _Part("sendMessage", {**common, "text": text, **(answered if number == 0 else {})})
        for number, text in enumerate(texts)
    ]


def _answered(place: ChatPlace, reply_to: str | None) -> dict[str, Any]:
    chat, _, number = (reply_to or "").partition("/")
    if chat != str(place.chat) or not number.isascii() or not number.isdecimal():
        return {}
    return {"reply_parameters": {"message_id": int(number), "allow_sending_without_reply": True}}


def _upload(place: ChatPlace, media: Media) -> _Part:
    kind = "photo" if media.type in _PHOTOS else "document"
    name = media.name or f"file{mimetypes.guess_extension(media.type) or ''}"
    return _Part(f"send{kind.capitalize()}", place.parameters(), {kind: (name, media.data or b"")})
