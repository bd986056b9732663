"""The keys that tokens are checked with: a shared secret, a key set, or what an issuer publishes."""

import asyncio
import json
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

import attrs

from agentos.mcp.auth.verifier import KeysUnavailableError, is_loopback
from agentos.model.parsing import read_file

SECRET_SIZES = {"HS256": 32, "HS384": 48, "HS512": 64}
"""How many bytes a shared secret must have for each algorithm."""
_RSA = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_FITTING: Mapping[tuple[str, str | None], frozenset[str]] = {
    ("RSA", None): _RSA,
    ("EC", "P-256"): frozenset({"ES256"}),
    ("EC", "P-384"): frozenset({"ES384"}),
    ("EC", "P-521"): frozenset({"ES512"}),
    ("OKP", "Ed25519"): frozenset({"EdDSA"}),
}
PUBLISHED = frozenset[str]().union(*_FITTING.values())
"""The algorithms that published keys may have."""
LIST_LIMIT = 1000
"""How many of the texts in one claim count."""

_TEXT_LIMIT = 200
_RSA_BITS = 2048
_KEY_LIMIT = 100
_DOCUMENT_LIMIT = 256 * 1024

_logger = logging.getLogger("agentos.mcp.auth")


def short_text(value: object) -> str:
    """Return *value* if it is printable text of a sane length, else nothing."""
    return value if isinstance(value, str) and len(value) <= _TEXT_LIMIT and value.isprintable() else ""


def texts(value: object) -> list[str]:
    """Return the texts in a claim that is one or a list of them."""
    many = value if isinstance(value, list) else [value]
    return [one for one in many[:LIST_LIMIT] if isinstance(one, str)]


class KeySource(Protocol):
    """Where a token's key is found."""

    async def find(self, kid: str | None, algorithm: str) -> Any:
        """Return the key of that id for that algorithm; None if it is unknown."""
        ...


class SharedSecret:
    """The one secret that the issuer and we have."""

    def __init__(self, secret: str | bytes, algorithms: Iterable[str]) -> None:
        self._secret = secret.encode() if isinstance(secret, str) else bytes(secret)
        least = max(SECRET_SIZES[algorithm] for algorithm in algorithms)
        if len(self._secret) < least:
            raise ValueError(f"JWTVerifier: secret: expected at least {least} bytes, got {len(self._secret)}")
        if b"-----BEGIN" in self._secret or self._secret.startswith(b"ssh-"):
            raise ValueError("JWTVerifier: secret: this is a key in PEM or SSH form; give published keys as jwks")

    async def find(self, kid: str | None, algorithm: str) -> bytes:  # noqa: ARG002 - the same for all
        """Return the shared secret."""
        return self._secret


@attrs.frozen
class _SigningKey:
    kid: str | None
    fits: frozenset[str]
    key: Any = attrs.field(repr=False)


@attrs.frozen
class KeySet:
    """The usable keys of a JSON Web Key Set."""

    keys: tuple[_SigningKey, ...]

    @classmethod
    def given(cls, jwks: Mapping[str, Any] | str | Path) -> "KeySet":
        """Return the keys that a host gave; there must be one that can be used."""
        made = cls.of(jwks if isinstance(jwks, Mapping) else read_file(Path(jwks)))
        if not made.keys:
            raise ValueError('JWTVerifier: jwks: expected {"keys": [...]} with a public RSA, EC or Ed25519 key in it')
        return made

    @classmethod
    def of(cls, document: Any) -> "KeySet":
        """Return the keys in *document* that can be used. Others are left out, as the standard says."""
        listed = document.get("keys") if isinstance(document, Mapping) else None
        if not isinstance(listed, list):
            return cls(())
        return cls(tuple(key for jwk in listed[:_KEY_LIMIT] if (key := _signing_key(jwk)) is not None))

    async def find(self, kid: str | None, algorithm: str) -> Any:
        """Return the key of that kid. A token without one is checked only if there is no choice."""
        fitting = [one for one in self.keys if algorithm in one.fits and kid in (None, one.kid)]
        if not fitting or (kid is None and len(fitting) > 1):
            return None
        return fitting[0].key


def _signing_key(jwk: Any) -> _SigningKey | None:
    """Return a public key for signatures, with the algorithms that suit it; None for anything else."""
    from jwt import PyJWK, PyJWTError

    if not isinstance(jwk, Mapping) or jwk.get("use", "sig") != "sig":
        return None
    if "verify" not in texts(jwk.get("key_ops", "verify")):
        return None
    type = jwk.get("kty")
    fits = _FITTING.get((str(type), None if type == "RSA" else str(jwk.get("crv"))), frozenset())
    if "alg" in jwk:
        fits &= {str(jwk["alg"])}
    if not fits or "d" in jwk:  # a private key among public ones is a mishap of the issuer: not ours to use
        return None
    try:
        key = cast("Any", PyJWK(dict(jwk), min(fits)).key)
    except (PyJWTError, ValueError, TypeError):
        return None
    if type == "RSA" and key.key_size < _RSA_BITS:
        return None
    return _SigningKey(short_text(jwk.get("kid")) or None, fits, key)


def checked_key_url(url: str) -> str:
    """Return *url* if keys may be fetched from it: by https, or from this machine."""
    parts = urlsplit(url)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    if not is_safe or not parts.hostname or parts.username is not None:
        raise ValueError(f"JWTVerifier: jwks_url: expected an https address (http on loopback only), got {url!r}")
    return url


_UNKNOWN_PAUSE = 60.0
"""How many seconds lie between two fetches, however many tokens name keys that nobody knows."""
_EMPTY_PAUSE = 5.0
"""The same as long as there are no keys at all."""


class RemoteKeys:
    """The keys that an issuer publishes: fetched when needed, kept, and fetched again when they change.

    One fetch at a time serves all who wait. Keys of a certain age are renewed in the background; if that fails the last
    ones count for a while, and then none.
    """

    def __init__(self, url: str, *, max_age: float, keep: float, timeout: float, clock: Callable[[], float]) -> None:
        self._url = url
        self._max_age = max_age
        self._keep = max(keep, max_age)
        self._timeout = timeout
        self._clock = clock
        self._set = KeySet(())
        self._fetched_at = -math.inf
        self._tried_at = -math.inf
        self._task: asyncio.Task[None] | None = None

    async def find(self, kid: str | None, algorithm: str) -> Any:
        """Return the key of *kid* for *algorithm*, fetched anew if the kept ones are old or do not have it."""
        if self._age() > self._keep:
            await self._wait_for_fetch()
            if self._age() > self._keep:
                raise KeysUnavailableError(f"no keys could be fetched from {self._url}; see the log for the reason")
        elif self._age() > self._max_age:
            self._start_fetch()
        key = await self._set.find(kid, algorithm)
        if key is None:
            await self._wait_for_fetch()
            key = await self._set.find(kid, algorithm)
        return key

    def _age(self) -> float:
        age = self._clock() - self._fetched_at
        return age if age >= 0 else math.inf  # a clock that was set back tells nothing

    async def _wait_for_fetch(self) -> None:
        """Wait for a fetch, unless the last one was a moment ago. Who stops waiting does not stop it for others."""
        if (task := self._start_fetch()) is not None:
            await asyncio.shield(task)

    def _start_fetch(self) -> asyncio.Task[None] | None:
        """Return the fetch under way, or start one if it is time; None if it is not."""
        if self._task is not None and not self._task.done():
            return self._task
        pause = _UNKNOWN_PAUSE if self._set.keys else _EMPTY_PAUSE
        if 0 <= self._clock() - self._tried_at < pause:
            return None
        self._tried_at = self._clock()
        self._task = asyncio.create_task(self._fetch())
        return self._task

    async def _fetch(self) -> None:
        try:
            found = KeySet.of(json.loads(await _download(self._url, self._timeout)))
            if not found.keys:
                raise ValueError("there is no key in it that can be used")
        except Exception as error:  # noqa: BLE001 - whatever the network does, the last keys count on
            _logger.warning("keys could not be fetched from %s: %s: %s", self._url, type(error).__name__, error)
            return
        self._set, self._fetched_at = found, self._clock()


async def _download(url: str, seconds: float) -> bytes:
    """Fetch a small document: no redirects, no compression, bounded in time and size."""
    import httpx2

    async with (
        asyncio.timeout(seconds),
        httpx2.AsyncClient(timeout=seconds, trust_env=url.startswith("https:")) as client,
        client.stream("GET", url, headers={"Accept": "application/json", "Accept-Encoding": "identity"}) as response,
    ):
        if response.status_code != 200:  # noqa: PLR2004 - OK
            raise ValueError(f"the answer has status {response.status_code}")
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > _DOCUMENT_LIMIT:
                raise ValueError(f"the answer is larger than {_DOCUMENT_LIMIT} bytes")
    return bytes(body)
