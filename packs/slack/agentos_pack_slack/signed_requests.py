"""Whether a request is Slack's own, and of now."""

import hashlib
import hmac
import re
from collections.abc import Iterable

SIGNING_SECRET = "slack.signingSecret"  # noqa: S105 - the secret's name
WINDOW = 300
"""How many seconds old a request may be, or ahead of our clock."""
_TIMESTAMP = re.compile(rb"[0-9]{1,12}")


def signature_of(secret: str, timestamp: bytes, body: bytes) -> bytes:
    """Return what Slack signs a request with: a keyed hash of the time and the body as it came."""
    digest = hmac.new(secret.encode(), b"v0:" + timestamp + b":" + body, hashlib.sha256)
    return b"v0=" + digest.hexdigest().encode()


def is_signed(secret: str | None, headers: Iterable[tuple[bytes, bytes]], body: bytes, now: float) -> bool:
    """Tell whether a request is signed with *secret* and not older than the window.

    A header that stands twice could be read in two ways, so it does not count. The signature is compared in a time that
    says nothing of how much of it is right.
    """
    timestamps = [value for name, value in headers if name.lower() == b"x-slack-request-timestamp"]
    signatures = [value for name, value in headers if name.lower() == b"x-slack-signature"]
    if not secret or len(timestamps) != 1 or len(signatures) != 1 or not _TIMESTAMP.fullmatch(timestamps[0]):
        return False
    is_right = hmac.compare_digest(signature_of(secret, timestamps[0], body), signatures[0])
    return is_right and abs(now - int(timestamps[0])) <= WINDOW
