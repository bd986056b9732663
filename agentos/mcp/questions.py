"""Questions that a bridged server puts to the person for whom its tool is called, on their way to the client."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar

from mcp_types import ElicitRequestFormParams, ElicitResult

Ask = Callable[[ElicitRequestFormParams], Awaitable[ElicitResult | None]]
"""Put a form before the person at a client; None if that could not be done."""

asking: ContextVar[Ask | None] = ContextVar("agentos_mcp_asking", default=None)
"""How the person is asked for whom a call is under way; None where nobody can be."""
