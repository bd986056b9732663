"""What a bearer token stands for, as a verifier says it."""

import ipaddress
import logging
from typing import Protocol

import attrs

from agentos.errors import AgentOSError
from agentos.model.principal import Principal

TOKEN_LIMIT = 8 * 1024
"""How many characters a token may have."""

_logger = logging.getLogger("agentos.mcp.auth")


@attrs.frozen
class Verified:
    """A valid token: whom it stands for, narrowed by its scopes, and through which client.

    `audience` is the resource that the token is bound to, for the server to compare with its own address; None if the
    verifier has checked that itself or the token is bound to none.
    """

    principal: Principal
    client: str
    scopes: frozenset[str]
    expires_at: float | None
    token_id: str
    audience: str | None = None


class Verifier(Protocol):
    """Finds out whom a token stands for."""

    async def verify(self, token: str) -> Verified | None:
        """Return what *token* stands for; None if it is invalid. Raise only if that can't be found out now."""
        ...


class KeysUnavailableError(AgentOSError):
    """No key to check signatures with could be fetched, so no token can be checked."""


def is_loopback(host: str) -> bool:
    """Tell whether *host* (a name or an address, without brackets) is this machine and reachable from it alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def log_refusal(why: str) -> None:
    """Log why a token was refused; the sender does not learn it."""
    _logger.info("a request was refused: %s", why)
