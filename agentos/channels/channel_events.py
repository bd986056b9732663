"""What channels tell whoever runs the host."""

from typing import ClassVar

import attrs

from agentos.extensions.event import Event


@attrs.frozen(kw_only=True)
class ChannelSenderUnknown(Event):
    """Somebody wrote whom the manifest maps to no principal; nothing answers."""

    type: ClassVar[str] = "channel:unknown-sender"
    channel: str
    conversation: str
    sender: str
    message: str


@attrs.frozen(kw_only=True)
class ChannelLetterKept(Event):
    """A message was kept as a dead letter: `failed` to be answered, `dead` or `uncertain` in being sent."""

    type: ClassVar[str] = "channel:letter"
    channel: str
    conversation: str
    letter: str
    state: str
    reason: str
