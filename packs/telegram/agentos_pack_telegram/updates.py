"""What Telegram says of a message, read without trust. Whatever is not a person's message is left out."""

from collections.abc import Mapping
from typing import Any

import attrs

from agentos_pack_telegram.telegram_options import ChatPlace

_FILES = {
    "document": "application/octet-stream",
    "audio": "audio/mpeg",
    "voice": "audio/ogg",
    "video": "video/mp4",
}
"""What a message may carry, and what it is if it does not say."""
_ID_LIMIT = 300


@attrs.frozen(kw_only=True)
class ReceivedFile:
    """A file of a message, before it is fetched."""

    id: str
    label: str
    """What people call it: photo, document, ..."""
    mime: str
    name: str | None = None
    size: int | None = None


@attrs.frozen(kw_only=True)
class ReceivedMessage:
    """A message that a person wrote to the bot."""

    place: ChatPlace
    number: int
    sender: int
    text: str = attrs.field(repr=False)
    file: ReceivedFile | None = None
    reply_to: int | None = None

    @property
    def id(self) -> str:
        """Return what it is known by: its number within its chat."""
        return f"{self.place.chat}/{self.number}"


def update_number(update: Any) -> int | None:
    """Return the number by which an update is confirmed; None for what is no update."""
    return _whole(update.get("update_id")) if isinstance(update, dict) else None


def read_update(update: Mapping[str, Any], max_file_bytes: int) -> ReceivedMessage | None:
    """Return the message of an update; None for edits, for messages of bots and on behalf of chats, and for the rest.

    A person is known by number. A user's name is not read at all: it can be given up, and taken by somebody else.
    """
    message = _inside(update, "message")
    sender = _inside(message, "from")
    if sender.get("is_bot") is not False or "sender_chat" in message:
        return None
    chat, number = _whole(_inside(message, "chat").get("id")), _whole(message.get("message_id"))
    who = _whole(sender.get("id"))
    if chat is None or number is None or who is None:
        return None
    file = _file(message, max_file_bytes)
    text = next((message[name] for name in ("text", "caption") if isinstance(message.get(name), str)), "")
    if not text and file is None:
        return None
    thread = _whole(message.get("message_thread_id")) if message.get("is_topic_message") is True else None
    return ReceivedMessage(
        place=ChatPlace(chat, thread),
        number=number,
        sender=who,
        text=text,
        file=file,
        reply_to=_whole(_inside(message, "reply_to_message").get("message_id")),
    )


def _file(message: Mapping[str, Any], max_bytes: int) -> ReceivedFile | None:
    """Return what a message carries: of a photo, the largest size that is small enough."""
    for label, mime in _FILES.items():
        if (found := _one_file(_inside(message, label), label, mime)) is not None:
            return found
    sizes = message.get("photo")
    read = [_one_file(one, "photo", "image/jpeg") for one in sizes] if isinstance(sizes, list) else []
    photos = sorted((one for one in read if one is not None), key=lambda one: one.size or 0)
    fitting = [one for one in photos if (one.size or 0) <= max_bytes]
    return next(iter(fitting[-1:] or photos[:1]), None)


def _one_file(said: Any, label: str, mime: str) -> ReceivedFile | None:
    id = said.get("file_id") if isinstance(said, dict) else None
    if not isinstance(id, str) or not 0 < len(id) <= _ID_LIMIT:
        return None
    name, kind = said.get("file_name"), said.get("mime_type")
    return ReceivedFile(
        id=id,
        label=label,
        mime=kind if isinstance(kind, str) else mime,
        name=name if isinstance(name, str) else None,
        size=_whole(said.get("file_size")),
    )


def _inside(value: Any, key: str) -> Mapping[str, Any]:
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _whole(value: Any) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and abs(value) < _LARGEST else None


_LARGEST = 2**63
