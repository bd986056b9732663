"""What a manifest may say of Telegram, and where messages go."""

import re
from collections.abc import Mapping
from typing import Any

import attrs
from agentos_pack_common import WebPolicy, is_base_url, service_policy

BASE_URL = "https://api.telegram.org"
MAX_ANSWER = 8_000_000
"""How many bytes an answer of the Bot API has at most: a hundred messages fit in well."""
MAX_FILE = 8_000_000
POLL_MARGIN = 10.0
"""How many seconds later than it promises an answer to a poll may come."""
_PLACE = re.compile(r"(?P<chat>-?[0-9]{1,19})(/(?P<thread>[0-9]{1,19}))?")


@attrs.frozen
class ChatPlace:
    """A chat, and a topic within it if there is one. Chats are known by number: names of users can change hands."""

    chat: int
    thread: int | None = None

    @classmethod
    def read(cls, text: str) -> "ChatPlace | None":
        """Read `chat` or `chat/thread`; None for anything else."""
        match = _PLACE.fullmatch(text)
        if match is None:
            return None
        return cls(int(match["chat"]), None if match["thread"] is None else int(match["thread"]))

    def __str__(self) -> str:
        return f"{self.chat}" if self.thread is None else f"{self.chat}/{self.thread}"

    def parameters(self) -> dict[str, int]:
        """Return what says so in a call."""
        thread = {} if self.thread is None else {"message_thread_id": self.thread}
        return {"chat_id": self.chat, **thread}


def _are_chats(_: Any, __: Any, value: Mapping[str, str]) -> None:
    for name, place in value.items():
        if ChatPlace.read(place) is None:
            raise ValueError(f"{name[:64]!r}: expected the number of a chat such as '-1001234', or '-1001234/5'")


@attrs.frozen(kw_only=True)
class TelegramOptions:
    """What a manifest may say."""

    base_url: str = attrs.field(default=BASE_URL, validator=is_base_url)
    chats: Mapping[str, str] = attrs.field(factory=dict, validator=_are_chats)
    """The chats that the tool may write to, by name; the channel answers where it was written to."""
    timeout: float = attrs.field(default=20.0, validator=[attrs.validators.gt(0), attrs.validators.le(60)])
    poll: int = attrs.field(default=25, validator=[attrs.validators.ge(0), attrs.validators.le(50)])
    """For how many seconds Telegram is asked to wait for messages."""
    max_file_bytes: int = attrs.field(
        default=5_000_000, validator=[attrs.validators.ge(0), attrs.validators.le(MAX_FILE)]
    )
    """Up to which size photos and files are fetched; 0: none."""

    def policy(self) -> WebPolicy:
        """Return a policy for the Bot API alone."""
        longest = max(self.timeout, self.poll + POLL_MARGIN)
        return service_policy(self.base_url, BASE_URL, max_bytes=MAX_ANSWER, timeout=longest)

    def fault_of_chats(self) -> str | None:
        """Say why the tool can't be used."""
        return None if self.chats else "the option `chats` names no chat that it may write to"
