"""The http-handler that Slack sends events to. It is open to everybody; the signature is the check."""

import json
import time
from collections.abc import Callable
from typing import Any

from agentos import ChannelMessage
from agentos.model.pack_context import PackLogger
from agentos_pack_slack.signed_requests import is_signed
from agentos_pack_slack.slack_channel import WayIn
from agentos_pack_slack.slack_events import read_event

_MAX_BODY = 2_000_000
_MAX_CHALLENGE = 1_000
_PLAIN = (b"content-type", b"text/plain; charset=utf-8")


class EventsEndpoint:
    """Takes events in. An event is answered with 200 after its message is stored; Slack brings any other again."""

    def __init__(self, way_in: WayIn, secret: Callable[[], str | None], logger: PackLogger) -> None:
        self._way_in = way_in
        self._secret = secret
        self._logger = logger

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        status, text = await self._answer(scope, receive)
        headers = [_PLAIN, (b"content-length", str(len(text)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text})

    async def _answer(self, scope: Any, receive: Any) -> tuple[int, bytes]:
        if scope["method"] != "POST":
            return 405, b"expected POST"
        body = await _body(receive)
        if body is None:
            return 413, b"too large"
        if not is_signed(self._secret(), scope["headers"], body, time.time()):
            return 401, b"not signed by Slack, or too old"
        envelope = _envelope(body)
        if envelope is None:
            return 400, b"expected an object as JSON"
        if envelope.get("type") == "url_verification":
            return _challenge(envelope)
        return await self._taken(envelope)

    async def _taken(self, envelope: dict[str, Any]) -> tuple[int, bytes]:
        """Deliver the message of an event, if there is one."""
        deliver = self._way_in.deliver
        if deliver is None:
            return 503, b"the channel is not running"
        message = _message(envelope) if envelope.get("type") == "event_callback" else None
        if message is None:
            return 200, b""
        try:
            await deliver(message)
        except Exception as error:  # noqa: BLE001 - the host's store; Slack brings the message again
            self._logger.warning("slack: a message has to wait: %s: %s", type(error).__name__, error)
            return 503, b"try again"
        return 200, b""


async def _body(receive: Any) -> bytes | None:
    body, is_over = bytearray(), False
    while not is_over:
        part = await receive()
        body += part.get("body", b"")
        is_over = not part.get("more_body", False)
        if len(body) > _MAX_BODY:
            return None
    return bytes(body)


def _envelope(body: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _message(envelope: dict[str, Any]) -> ChannelMessage | None:
    try:
        return read_event(envelope)
    except ValueError:  # no message that can be kept, such as one that is too long
        return None


def _challenge(envelope: dict[str, Any]) -> tuple[int, bytes]:
    challenge = envelope.get("challenge")
    if not isinstance(challenge, str) or len(challenge) > _MAX_CHALLENGE:
        return 400, b"expected a challenge"
    return 200, challenge.encode("utf-8", "replace")
