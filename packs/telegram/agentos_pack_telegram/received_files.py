"""Photos and files of messages, fetched within bounds."""

from agentos_pack_common import WebError, clip, plain

from agentos import Media
from agentos_pack_telegram.bot_api import TOO_MANY, BotApi, BotApiError, BotTokenError
from agentos_pack_telegram.updates import ReceivedFile

_NAME = 120
_UNKNOWN = "application/octet-stream"


async def fetch(api: BotApi, file: ReceivedFile, max_bytes: int) -> Media | None:
    """Return a file's bytes; None if Telegram does not give them or they are too many.

    Raise what another attempt may cure.
    """
    if max_bytes == 0 or (file.size or 0) > max_bytes:
        return None
    try:
        said = await api.call("getFile", {"file_id": file.id})
        path = said.get("file_path") if isinstance(said, dict) else None
        data = await api.download(path, max_bytes) if isinstance(path, str) else None
    except BotTokenError:
        raise
    except BotApiError as error:
        if not error.is_refusal or error.status == TOO_MANY:
            raise
        data = None
    except WebError as error:
        if error.kind != "too_large":
            raise
        data = None
    return None if data is None else _media(file, data)


def _media(file: ReceivedFile, data: bytes) -> Media:
    name = printable_name(file)
    try:
        return Media(file.mime, data=data, name=name)
    except ValueError:  # its type is not one
        return Media(_UNKNOWN, data=data, name=name)


def printable_name(file: ReceivedFile) -> str | None:
    """Return what a file is called, on one short line."""
    words = " ".join(plain(file.name or "").split())
    return clip("".join(char for char in words if char.isprintable()), _NAME).text.strip() or None


def instead_of(file: ReceivedFile) -> str:
    """Return the words that stand for a file that was not fetched."""
    return f"[{' '.join(filter(None, (file.label, printable_name(file))))}: not fetched]"
