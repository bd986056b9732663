"""What a request of a page must be, and how it is refused. A refusal quotes nothing of the request."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

import attrs

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
RULE = "webchat"
"""What a token has to hold that was narrowed: who writes here speaks with all that its principal holds."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CONVERSATION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_BYTES_OF_CHARACTER = 12
"""How many bytes JSON takes for a character at most."""
_BESIDE = 1_000
"""How many bytes of a message are not its text."""


class ChatRefusedError(Exception):
    """A request that is answered with why it is refused."""

    def __init__(self, status: int, error: str, description: str, *, retry_after: int | None = None) -> None:
        super().__init__(f"{status} {error}")
        self.status = status
        self.body = {"error": error, "error_description": description}
        self.retry_after = retry_after


@attrs.frozen
class Posted:
    """A message as a page posts it."""

    id: str
    conversation: str
    text: str = attrs.field(repr=False)


def header(scope: Mapping[str, Any], name: bytes) -> list[str]:
    """Return every value of one header."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def check_page(scope: Mapping[str, Any]) -> None:
    """Refuse what a page of another origin asks. What is no browser says nothing of pages."""
    sites, origins = header(scope, b"sec-fetch-site"), header(scope, b"origin")
    hosts = [one.lower() for one in header(scope, b"host")]
    is_own = all(one == "same-origin" for one in sites) and all(
        [one.lower().partition("://")[2]] == hosts for one in origins
    )
    if not is_own:
        raise ChatRefusedError(403, "forbidden", "Only the chat's own page may ask this")


def check_principal(principal: Any) -> None:
    """Refuse a token that was narrowed, unless it was given for this."""
    if principal.scopes is not None and RULE not in principal.held:
        raise ChatRefusedError(403, "insufficient_scope", f"The token was narrowed: it needs the rule {RULE}")


def conversation_of(scope: Mapping[str, Any]) -> str:
    """Return the conversation that the query names."""
    query: bytes = scope.get("query_string", b"")
    pairs = parse_qsl(query.decode("latin-1"))  # the server has refused what has too many
    named = [value for name, value in pairs if name == "conversation"]
    if len(named) != 1 or not _CONVERSATION.fullmatch(named[0]):
        raise ChatRefusedError(400, "invalid_request", "conversation: expected 1 to 64 letters, digits, - and _")
    return named[0]


async def read_posted(scope: Mapping[str, Any], receive: Receive, length: int) -> Posted:
    """Return the message that a page posts; raise ChatRefusedError if it is none, or is too long."""
    said = await _read_object(scope, receive, length * _BYTES_OF_CHARACTER + _BESIDE, ("id", "conversation", "text"))
    if not _UUID.fullmatch(said["id"]):
        raise ChatRefusedError(400, "invalid_request", "id: expected a UUID in lower case")
    if not _CONVERSATION.fullmatch(said["conversation"]):
        raise ChatRefusedError(400, "invalid_request", "conversation: expected 1 to 64 letters, digits, - and _")
    if not said["text"].strip():
        raise ChatRefusedError(400, "invalid_request", "text: expected a text")
    if len(said["text"]) > length:
        raise ChatRefusedError(413, "too_large", f"text: expected at most {length:,} characters")
    return Posted(said["id"], said["conversation"], said["text"])


async def read_taken(scope: Mapping[str, Any], receive: Receive) -> tuple[str, str]:
    """Return the conversation and the last event that a page says it has."""
    said = await _read_object(scope, receive, _BESIDE, ("conversation", "last"))
    if not _CONVERSATION.fullmatch(said["conversation"]):
        raise ChatRefusedError(400, "invalid_request", "conversation: expected 1 to 64 letters, digits, - and _")
    return said["conversation"], said["last"]


async def _read_object(scope: Mapping[str, Any], receive: Receive, limit: int, names: Sequence[str]) -> dict[str, str]:
    """Return the JSON object of a request, whose fields are texts."""
    kinds = [one.partition(";")[0].strip().lower() for one in header(scope, b"content-type")]
    if kinds != ["application/json"]:
        raise ChatRefusedError(415, "unsupported_media_type", "Expected application/json")
    body, is_more = bytearray(), True
    while is_more:
        message = await receive()
        body += message.get("body", b"")
        is_more = bool(message.get("more_body", False))
        if len(body) > limit:
            raise ChatRefusedError(413, "too_large", "The request is too large")
    try:
        said = json.loads(bytes(body))
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or {*said} != {*names} or not all(isinstance(one, str) for one in said.values()):
        raise ChatRefusedError(400, "invalid_request", f"Expected a JSON object with the texts {', '.join(names)}")
    return said
