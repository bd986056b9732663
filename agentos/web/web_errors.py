"""What goes wrong on the way to a server, and what a policy can't say."""

from typing import Literal

from agentos.errors import AgentOSError

Kind = Literal["refused", "too_large", "timeout", "unreachable", "bad_response"]


class WebError(AgentOSError):
    """A request that got no answer. The message names the host, never a query, a credential or a header.

    refused: the policy, or the request itself, forbids it; too_large: more came than was allowed; timeout: the whole
    exchange took too long; unreachable: no connection; bad_response: an answer that can't be used.
    `is_sent` says whether anything of the request had left; if not, it is certain that nobody acted on it.
    """

    def __init__(self, kind: Kind, message: str, host: str = "") -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.host = host
        self.is_sent = False


class PolicyError(AgentOSError, ValueError):
    """A policy that can't be used as it is written."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"WebPolicy.{field}: {message}")
        self.field = field


def refused(host: str, why: str) -> WebError:
    """Return the refusal of a request to *host*, which is empty if it could not be read."""
    return WebError("refused", f"{host_name(host)} is refused: {why}", host)


def host_name(host: str) -> str:
    """Name a host in a message: what is foreign stays on one line, and short."""
    if not host:
        return "the address"
    name = host if host.isprintable() else ascii(host)[1:-1]
    return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."


_SHOWN = 100
