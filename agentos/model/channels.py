"""Messages of channels, and what a manifest says of a channel."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from agentos.model.field_checks import fault_of_name, frozen_mapping
from agentos.model.media import MEDIA_COUNT, Media

TEXT_LIMIT = 1_000_000
"""How many characters a message has at most."""
ATTACHED_LIMIT = 8_000_000
"""How many bytes the attachments of a message have at most, all together."""
_ID_LIMIT = 500
_DEFAULT_KEY = "openai.apiKey"


def _check_id(_: Any, field: "attrs.Attribute[str]", value: object) -> None:
    """Refuse what no store can hold, or no row can be found by."""
    if not isinstance(value, str) or not 0 < len(value) <= _ID_LIMIT or not value.isprintable():
        raise ValueError(f"ChannelMessage.{field.name}: expected printable text of 1 to {_ID_LIMIT} characters")


def _check_text(_: Any, field: "attrs.Attribute[str]", value: object) -> None:
    if not isinstance(value, str) or len(value) > TEXT_LIMIT:
        raise ValueError(f"ChannelMessage.{field.name}: expected text of up to {TEXT_LIMIT:,} characters")


def _storable(text: Any) -> Any:
    """Return text without what no database takes: halves of surrogate pairs, and NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "?") if isinstance(text, str) else text


def _media(value: Iterable[Media]) -> tuple[Media, ...]:
    return tuple(value)


def _check_attachments(_: Any, field: "attrs.Attribute[Any]", value: tuple[Any, ...]) -> None:
    if len(value) > MEDIA_COUNT or not all(isinstance(one, Media) and one.path is None for one in value):
        raise ValueError(f"ChannelMessage.{field.name}: expected up to {MEDIA_COUNT} Media with data or a url")
    if sum(one.size or 0 for one in value) > ATTACHED_LIMIT:
        raise ValueError(f"ChannelMessage.{field.name}: expected at most {ATTACHED_LIMIT:,} bytes, all together")


def _new_id() -> str:
    return uuid.uuid4().hex


@attrs.frozen
class ChannelMessage:
    """A message that came by a channel, or is to be sent by one.

    `id` is the service's own for what came in: a message is taken once by it. Of what is sent it is agentos' own.
    `sender` is who wrote it, as the service names them; it is empty for what agentos sends.
    """

    channel: str = attrs.field(validator=_check_id)
    conversation: str = attrs.field(validator=_check_id)
    sender: str = ""
    text: str = attrs.field(default="", repr=False, converter=_storable, validator=_check_text)
    attachments: tuple[Media, ...] = attrs.field(default=(), repr=False, converter=_media, validator=_check_attachments)
    id: str = attrs.field(factory=_new_id, validator=_check_id)
    reply_to: str | None = None
    """The id of the message that this one answers, if it answers one."""

    def __attrs_post_init__(self) -> None:
        for name in ("sender", "reply_to"):
            value = getattr(self, name)
            if value not in ("", None):
                _check_id(self, getattr(attrs.fields(ChannelMessage), name), value)

    @property
    def session(self) -> dict[str, str]:
        """Return the session of this sender in this conversation, for calls and turns that are made for it."""
        return {"id": f"channel/{self.channel}/{self.conversation}/{self.sender}"}


def _check_name(_: Any, field: "attrs.Attribute[Any]", value: object) -> None:
    if value is not None and (fault := fault_of_name(value)) is not None:
        raise ValueError(f"{field.name}: {fault}")


@attrs.frozen(kw_only=True)
class ChannelSettings:
    """What a manifest says of a channel. One that it does not name is off."""

    enabled: bool = True
    senders: Mapping[str, str] = attrs.field(factory=dict, converter=frozen_mapping)
    """Which principal each sender is, as the service names senders. Whoever is not here is not answered."""
    model: str | None = None
    """The model whose turns answer; without it, the host's own handler does."""
    base_url: str | None = None
    """The OpenAI-compatible endpoint of the model; None: OpenAI's own."""
    key: str = _DEFAULT_KEY
    """The secret that is the endpoint's API key."""
    persona: str | None = attrs.field(default=None, validator=_check_name)
    """The persona of its turns."""
    approvals: bool = False
    """Whether senders may decide in the channel on the calls that wait for them."""
    attempts: int = 8
    """How often it is tried to send a message, before it is kept as a dead letter."""
    history: int = 20
    """How many earlier messages of a sender, with their answers, a turn is told."""


def unknown_principals(channels: Mapping[str, ChannelSettings], known: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return the senders that are mapped to principals nobody knows: channel, sender and principal of each."""
    there = set(known)
    rows = [(id, sender, who) for id, one in channels.items() for sender, who in one.senders.items()]
    return [row for row in rows if row[2] not in there]
