"""The token of a request: asked for, checked, and looked at again."""

import logging
import re
from collections.abc import Sequence

import attrs
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.types import Scope

from agentos.mcp.auth import TOKEN_LIMIT, Verified, Verifier
from agentos.mcp.http.request_checks import RequestRefused, header_values
from agentos.mcp.http.resource_metadata import QUOTED, as_list, comparable_url, metadata_url
from agentos.model.principal import EVERYTHING

_TOKEN = re.compile(rb"[A-Za-z0-9._~+/-]+=*")

_logger = logging.getLogger("agentos.mcp.http.serving")


@attrs.frozen
class AdmittedToken:
    """A token that was let in."""

    token: str = attrs.field(repr=False)
    verified: Verified


class BearerTokens:
    """Asks for a token that holds, is meant for this resource, and has the scopes that are required."""

    def __init__(self, verifier: Verifier, resource_url: str | None, required_scopes: Sequence[str]) -> None:
        self._verifier = verifier
        self._resource = None if resource_url is None else comparable_url(resource_url)
        self._scopes = as_list(required_scopes)
        if bad := [scope for scope in self._scopes if not QUOTED.fullmatch(scope)]:
            raise ValueError(f"required_scopes: expected names without spaces and quotes, got {bad[0]!r}")
        self._hints = {"scope": " ".join(self._scopes)} if self._scopes else {}
        if resource_url is not None:
            self._hints["resource_metadata"] = metadata_url(resource_url)

    async def admit(self, scope: Scope) -> AdmittedToken:
        """Return who sent the request; raise Refused if its token does not say."""
        token = _token_of(scope)
        if token is None:
            raise self._challenge(401, "unauthorized", "Expected a bearer token", names_error=False)
        verified = await self._verified(token)
        if verified is None:
            raise self._challenge(401, "invalid_token", "The token does not hold")
        missing = [] if EVERYTHING in verified.scopes else [one for one in self._scopes if one not in verified.scopes]
        if missing:
            raise self._challenge(403, "insufficient_scope", f"The token lacks the scope {missing[0]}")
        return AdmittedToken(token, verified)

    async def is_still_valid(self, admitted: AdmittedToken) -> bool:
        """Tell whether a token would be let in again, as the same principal."""
        try:
            again = await self._verified(admitted.token)
        except RequestRefused:
            return False
        return again is not None and again.principal.key == admitted.verified.principal.key

    async def _verified(self, token: str) -> Verified | None:
        if len(token) > TOKEN_LIMIT or not _TOKEN.fullmatch(token.encode("latin-1")):
            return None
        try:
            verified = await self._verifier.verify(token)
        except Exception as error:
            # A verifier that can't tell is no reason to let anybody in, nor to make clients throw tokens away.
            _logger.exception("the verifier failed")
            raise RequestRefused(503, "unavailable", "Tokens can't be checked now", {"Retry-After": "5"}) from error
        if verified is not None and verified.audience is not None:
            bound = comparable_url(verified.audience)
            return verified if bound is not None and bound == self._resource else None
        return verified

    def _challenge(self, status: int, error: str, description: str, *, names_error: bool = True) -> RequestRefused:
        """Return a refusal that says where tokens come from. Where none was sent it names no error (RFC 6750)."""
        details = {"error": error, "error_description": description} if names_error else {}
        parts = ", ".join(f'{name}="{value}"' for name, value in {**details, **self._hints}.items())
        return RequestRefused(status, error, description, {"WWW-Authenticate": f"Bearer {parts}".strip()})


def _token_of(scope: Scope) -> str | None:
    """Return the one token in the one place for it; None if there is none."""
    values = header_values(scope, b"authorization")
    if len(values) > 1:
        raise RequestRefused(400, "invalid_request", "Expected one Authorization header")
    scheme, _, token = (values[0] if values else b"").partition(b" ")
    return token.strip(b" ").decode("latin-1") if scheme.lower() == b"bearer" else None


def sdk_user(verified: Verified) -> AuthenticatedUser:
    """Return the principal as the SDK knows it: sessions and sealed states are bound to client and subject."""
    token = AccessToken(
        token="",  # what handlers don't see they can't pass on
        client_id=verified.client,
        scopes=sorted(verified.scopes),
        expires_at=None if verified.expires_at is None else int(verified.expires_at),
        subject=verified.principal.key,
    )
    return AuthenticatedUser(token)
