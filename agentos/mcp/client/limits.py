"""How much a server may send, and how long it may take. Neither is left to the server."""

import attrs

_MIB = 1024 * 1024


@attrs.frozen(kw_only=True)
class ServerLimits:
    """The bounds of one connection. Sizes are in bytes or characters, times in seconds."""

    message: int = 8 * _MIB
    """One message. A longer one is thrown away while it arrives."""
    tools: int = 2_000
    listing: int = 32 * _MIB
    """All tools of a server together."""
    pages: int = 500
    """How many pages a list of tools may have."""
    schema: int = 100_000
    description: int = 20_000
    annotations: int = 10_000
    instructions: int = 20_000
    media: int = 1_500_000
    """How much of images, sound and resources in an answer is handed on."""
    requests: int = 32
    """How many requests of the server may wait for our answer."""
    skipped: int = 1_000
    """How many tools that were left out are listed by name."""
    noise: int = 1_000
    """How many lines of a process's standard error are logged."""
    connect: float = 30.0
    """One attempt to connect, with the first list of tools."""
    first_delay: float = 0.5
    longest_delay: float = 30.0
    steady: float = 30.0
    """A connection that lasted this long, or in which a call was answered, is a good one: after it the delays begin
    anew."""
    pause: float = 1.0
    """The least time between two lists of tools."""
    grace: float = 1.0
    """How long a process may take to end, first when its input is closed and then when it is asked to."""
