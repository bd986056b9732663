"""Messages as rows of the store, sealed: whoever can write the database can't speak for somebody."""

import base64
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentos.model.channels import ChannelMessage
from agentos.model.media import Media
from agentos.secrets.masking import Masker
from agentos.store.rows import PlainSql

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

KEPT = 30 * 24 * 3600.0
"""For how many seconds it is remembered that a message was taken or sent."""


def message_data(message: ChannelMessage, masker: Masker) -> str:
    """Return what a message says as JSON; known secrets are masked in it."""
    attachments = [
        {
            "mime": one.mime if masker.mask(one.mime) == one.mime else "application/octet-stream",
            "name": one.name and masker.mask(one.name),
            "url": one.url and masker.mask(one.url),
            "data": _encoded(one.data),
        }
        for one in message.attachments
    ]
    said = {"id": message.id, "sender": message.sender, "reply_to": message.reply_to}
    return json.dumps({**said, "text": masker.mask(message.text), "attachments": attachments})


def _encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def message_of(row: Mapping[str, Any]) -> ChannelMessage:
    """Return the message of a row."""
    data = json.loads(row["data"])
    data["attachments"] = [Media(**{**one, "data": _decoded(one["data"])}) for one in data["attachments"]]
    return ChannelMessage(channel=row["channel"], conversation=row["conversation"], **data)


def _decoded(data: str | None) -> bytes | None:
    return None if data is None else base64.b64decode(data)


def sealed_text(table: str, row: Mapping[str, Any]) -> str:
    """Return what the seal of a row stands for: what was said, by whom and where."""
    return json.dumps([table, *(row[name] for name in ("id", "channel", "conversation", "data"))])


def next_position(connection: "Connection", newest: PlainSql) -> int:
    """Return the place behind all others."""
    row = newest.one(connection)
    return 1 + int((row or {}).get("position") or 0)
