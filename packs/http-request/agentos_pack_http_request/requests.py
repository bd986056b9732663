"""What is sent: checked for what the client itself can't know, and shown before a person approves it."""

import json as json_module
from collections.abc import Mapping
from typing import Any

import attrs
from agentos_pack_common import clip, parse_url, plain

from agentos import Masker
from agentos_pack_http_request.settings import Credential, Settings, folded, is_of_connection

MAX_BODY = 200_000
MAX_HEADERS = 50
MAX_HEADER = 4_000
_PREVIEWED = 2_000

_WITHOUT_BODY = ("GET", "HEAD")
# A server that heeds these would do something else than what the gate let through.
_OVERRIDES = frozenset({"x-http-method", "x-http-method-override", "x-method-override"})


@attrs.frozen
class Request:
    """A request that may be sent, but for its secret."""

    method: str
    url: str = attrs.field(repr=False)
    headers: Mapping[str, str] = attrs.field(repr=False)
    json: Any = attrs.field(default=None, repr=False)
    body: str | None = attrs.field(default=None, repr=False)
    credential: Credential | None = None

    @property
    def text(self) -> str:
        """Return the body as it is sent."""
        if self.json is not None:
            return json_module.dumps(self.json, ensure_ascii=False)
        return self.body or ""


@attrs.frozen(kw_only=True)
class Preview:
    """What a call would send. Nothing has been sent."""

    request: str
    headers: dict[str, str]
    secret: str | None
    body: str
    body_bytes: int
    body_truncated: bool


def prepare(
    settings: Settings,
    method: str,
    url: str,
    headers: Mapping[str, str] | None,
    json: Any = None,
    body: str | None = None,
) -> Request:
    """Return the request if it may be sent; raise an error that says what to change."""
    if not settings.is_open:
        raise ValueError(
            "url: no host may be reached, since the pack http-request has no `allow`; its operator names hosts in the "
            'options, such as {"allow": ["api.example.org"]}'
        )
    target = parse_url(url)
    settings.policy.check(target)
    credential = settings.credentials.get(target.origin)
    request = Request(method, url, dict(headers or {}), json, body, credential)
    _check_headers(request)
    _check_body(request)
    return request


def _check_headers(request: Request) -> None:
    taken = folded(request.credential.header) if request.credential else None
    names = [folded(name) for name in request.headers]
    for name in request.headers:
        if names.count(folded(name)) > 1:
            raise ValueError(f"headers: {name} is said twice; say it once")
        if is_of_connection(name):
            raise ValueError(f"headers: {name} is set by the client; leave it out")
        if folded(name) in _OVERRIDES:
            raise ValueError(f"headers: {name} is not sent; say the method that is meant in `method`")
        if folded(name) == taken:
            raise ValueError(f"headers: {name} is filled in for this host; leave it out")


def _check_body(request: Request) -> None:
    if request.json is None and request.body is None:
        return
    given = "json" if request.json is not None else "body"
    if request.json is not None and request.body is not None:
        raise ValueError("json: say `json` or `body`, not both")
    if request.method in _WITHOUT_BODY:
        raise ValueError(f"{given}: a {request.method} has no body; leave it out, or use POST, PUT or PATCH")
    size = len(request.text.encode())
    if size > MAX_BODY:
        raise ValueError(f"{given}: {size:,} bytes; at most {MAX_BODY:,} are sent, so send it in parts")


def filled(request: Request, secret: str | None) -> tuple[dict[str, str], Masker]:
    """Return the headers with the secret in its place, and what masks it in everything that comes back."""
    headers, masker = dict(request.headers), Masker()
    if request.credential is None:
        return headers, masker
    if not secret or not secret.strip():
        raise ValueError(
            f"url: this host needs the secret {request.credential.secret}, which is not set; its operator has to set it"
        )
    value = request.credential.value(secret.strip())
    for known in (secret, value, request.credential.password_in(secret.strip())):
        masker.learn(known)
    headers[request.credential.header] = value
    return headers, masker


def preview(request: Request) -> Preview:
    """Say what would be sent, the secret by its name."""
    shown = clip(plain(request.text), _PREVIEWED)
    credential = request.credential
    return Preview(
        request=f"{request.method} {plain(request.url)}",
        headers={plain(name): plain(value) for name, value in request.headers.items()},
        secret=None if credential is None else f"{credential.secret} as {credential.header}",
        body=shown.text,
        body_bytes=len(request.text.encode()),
        body_truncated=shown.truncated,
    )
