"""JSON Web Tokens of one issuer."""

import hashlib
import json
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agentos.base.foreign import settled
from agentos.mcp.auth.signing_keys import (
    LIST_LIMIT,
    PUBLISHED,
    SECRET_SIZES,
    KeySet,
    KeySource,
    RemoteKeys,
    SharedSecret,
    checked_key_url,
    short_text,
    texts,
)
from agentos.mcp.auth.token_records import checked_principal
from agentos.mcp.auth.verifier import TOKEN_LIMIT, Verified, log_refusal
from agentos.model.principal import EVERYTHING, Principal

Claims = Mapping[str, Any]
PrincipalOf = Callable[[Claims], Principal | Awaitable[Principal | None] | None]

_TYPES = ("jwt", "at+jwt", "application/at+jwt")


class _InvalidToken(Exception):  # noqa: N818 - not an error of ours: a token that is refused, and why
    """An invalid token. Its text names the reason and quotes nothing."""


class JWTVerifier:
    """JSON Web Tokens of one issuer, checked by its published keys or a shared secret.

    issuer, audience: what `iss` must be, and what must be among `aud`. `exp` and `sub` must be there as well.
    jwks_url, jwks, secret: one of them: where the keys are fetched, the keys (a mapping or a file), or a shared secret.
    algorithms: to allow fewer than those that suit the keys.
    principals: who a token stands for: by `sub`, or asked with all claims; None refuses. Left out, it is a principal of
        that id that holds nothing. What it holds is then narrowed by `scope` (or `scp`); without one, to nothing.
    leeway: how many seconds clocks may differ.
    keys_max_age: after how many seconds keys are fetched again; keys_keep: how long the last ones count if that fails.
    """

    def __init__(
        self,
        *,
        issuer: str,
        audience: str | Sequence[str],
        jwks_url: str | None = None,
        jwks: Mapping[str, Any] | str | Path | None = None,
        secret: str | bytes | None = None,
        algorithms: Sequence[str] | None = None,
        principals: Mapping[str, Principal] | PrincipalOf | None = None,
        leeway: float = 30.0,
        keys_max_age: float = 600.0,
        keys_keep: float = 3600.0,
        fetch_timeout: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if (jwks_url is not None) + (jwks is not None) + (secret is not None) != 1:
            raise ValueError("JWTVerifier: expected exactly one of jwks_url, jwks and secret")
        self.issuer = _required_text(issuer, "issuer")
        audiences = [audience] if isinstance(audience, str) else list(audience)
        self._audiences = frozenset(_required_text(one, "audience") for one in audiences)
        if not self._audiences:
            raise ValueError("JWTVerifier: audience: expected at least one, else any token of the issuer would do")
        if not (math.isfinite(leeway) and leeway >= 0):
            raise ValueError(f"JWTVerifier: leeway: expected seconds, got {leeway!r}")
        self._algorithms = _algorithms(algorithms, is_secret=secret is not None)
        self._principal_of = _by_subject(principals)
        self._leeway = leeway
        self._clock = clock
        self._keys: KeySource
        if secret is not None:
            self._keys = SharedSecret(secret, self._algorithms)
        elif jwks is not None:
            self._keys = KeySet.given(jwks)
        else:
            self._keys = RemoteKeys(
                checked_key_url(str(jwks_url)), max_age=keys_max_age, keep=keys_keep, timeout=fetch_timeout, clock=clock
            )

    async def verify(self, token: str) -> Verified | None:
        """Return what *token* stands for; None if it is invalid in any way."""
        try:
            claims = await self._claims(token)
            principal = await settled(self._principal_of(claims))
            if principal is None:
                raise _InvalidToken("its subject is unknown")
        except _InvalidToken as bad:
            log_refusal(f"a JSON Web Token is invalid: {bad}")
            return None
        scopes = _scopes(claims) - {EVERYTHING}
        return Verified(
            principal=principal.narrow(scopes),
            client=short_text(claims.get("client_id")) or short_text(claims.get("azp")),
            scopes=scopes,
            expires_at=float(claims["exp"]),
            token_id=short_text(claims.get("jti")) or hashlib.sha256(token.encode()).hexdigest()[:16],
        )

    async def _claims(self, token: str) -> dict[str, Any]:
        """Return the claims of a token that its issuer signed for us and that is valid now."""
        if len(token) > TOKEN_LIMIT:
            raise _InvalidToken("it is too long")
        kid, algorithm = _header(token)
        if algorithm not in self._algorithms:
            raise _InvalidToken("its algorithm is not allowed")
        key = await self._keys.find(kid, algorithm)
        if key is None:
            raise _InvalidToken("no key is known that could have signed it")
        claims = _verified_claims(token, key, algorithm)
        if fault := self._problem_with(claims):
            raise _InvalidToken(fault)
        return claims

    def _problem_with(self, claims: Claims) -> str | None:
        """Say what keeps signed *claims* from being meant for us and now; None if nothing does."""
        now = self._clock()
        expiry, starts = claims.get("exp"), [claims.get("nbf", 0), claims.get("iat", 0)]
        if not all(_is_moment(moment) for moment in (expiry, *starts)):
            return "its times are missing or can't be used"
        if claims.get("iss") != self.issuer:
            return "its issuer is another"
        if not self._audiences.intersection(texts(claims.get("aud"))):
            return "its audience is another"
        if not short_text(claims.get("sub")):
            return "it has no subject"
        if float(claims["exp"]) + self._leeway <= now:
            return "it has expired"
        if max(starts) - self._leeway > now:
            return "it is not valid yet"
        return None


def _required_text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"JWTVerifier: {name}: expected text that is not empty, got {value!r}")
    return value


def _algorithms(given: Sequence[str] | None, *, is_secret: bool) -> frozenset[str]:
    """Return the algorithms that count. A published key never checks what is made with a secret, or with none."""
    if isinstance(given, str):
        raise TypeError(f"JWTVerifier: algorithms: expected a list, got the string {given!r}")
    safe = frozenset(SECRET_SIZES) if is_secret else PUBLISHED
    if given is None:
        return frozenset({"HS256"}) if is_secret else safe
    if not given or not safe.issuperset(given):
        kind = "a shared secret" if is_secret else "published keys"
        raise ValueError(f"JWTVerifier: algorithms: with {kind} expected some of {', '.join(sorted(safe))}")
    return frozenset(given)


def _by_subject(principals: Mapping[str, Principal] | PrincipalOf | None) -> PrincipalOf:
    if principals is None:
        return _holding_nothing
    if isinstance(principals, Mapping):
        known = dict(principals)
        return lambda claims: known.get(claims["sub"])
    return principals


def _holding_nothing(claims: Claims) -> Principal | None:
    try:
        return Principal(checked_principal(claims["sub"]))
    except ValueError:
        return None


def _header(token: str) -> tuple[str | None, str]:
    """Return a token's kid and algorithm. Where it says that keys are (`jku`, `x5u`, `jwk`) is nobody's business."""
    from jwt import PyJWTError

    try:
        header = _jws().get_unverified_header(token)
    except (PyJWTError, ValueError):
        raise _InvalidToken("it is not a JSON Web Token") from None
    algorithm, kid, type = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if "crit" in header:
        raise _InvalidToken("it asks for an extension")
    if not isinstance(type, str) or type.lower() not in _TYPES:
        raise _InvalidToken("it is of another type")
    if not isinstance(algorithm, str) or not (kid is None or short_text(kid)):
        raise _InvalidToken("its header can't be used")
    return kid, algorithm


def _verified_claims(token: str, key: Any, algorithm: str) -> dict[str, Any]:
    from jwt import PyJWTError

    try:
        payload = _jws().decode_complete(token, key, [algorithm])["payload"]
    except (PyJWTError, ValueError, TypeError):
        raise _InvalidToken("its signature is wrong") from None
    try:
        claims = json.loads(payload)
    except (ValueError, RecursionError):
        claims = None
    if not isinstance(claims, dict):
        raise _InvalidToken("it has no claims")
    return claims


@cache
def _jws() -> Any:
    from jwt.api_jws import PyJWS

    return PyJWS()


def _is_moment(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12  # noqa: PLR2004 - bounded


def _scopes(claims: Claims) -> frozenset[str]:
    """Return the scopes of a token, separated by spaces or listed; maybe empty."""
    granted = claims["scope"] if "scope" in claims else claims.get("scp")
    return frozenset([word for text in texts(granted) for word in text.split()][:LIST_LIMIT])
