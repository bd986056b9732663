"""What the bus tells whoever runs the host."""

from typing import ClassVar

import attrs

from agentos.extensions.event import Event


@attrs.frozen(kw_only=True)
class BusMessagesDropped(Event):
    """A listener is slower than what is published: messages were dropped, so many since this was told last."""

    type: ClassVar[str] = "bus:dropped"
    topic: str
    pack: str
    """The pack whose listener it is; `host` for one of the host's own."""
    count: int
