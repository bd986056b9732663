"""Static tokens from a file that holds their hashes."""

import asyncio
import hashlib
import hmac
import math
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agentos.access.principals import narrower
from agentos.mcp.auth.token_records import (
    SecretHash,
    TokenEntry,
    changing_entries,
    checked_principal,
    join_token,
    read_entries,
    split_token,
)
from agentos.mcp.auth.verifier import TOKEN_LIMIT, Verified, log_refusal
from agentos.model.principal import EVERYTHING, Principal


class TokenFile:
    """Static tokens from a JSON file that holds their hashes.

    The file is read again when it changes, so that revoking takes effect at once. A file that can't be used any more
    lets nobody in.

    principals: who there is now, by id. A token of anybody else is invalid, and none gives its principal more than
        it holds now. Left out, what the file says of a principal counts.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        principals: Mapping[str, Principal] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = Path(path)
        if self._path.suffix != ".json":
            raise ValueError(f"{self._path}: expected a file ending in .json")
        self._principals = principals
        self._clock = clock
        self._seen: tuple[int, ...] | None = ()
        self._entries: dict[str, TokenEntry] = {}
        self._hashes: tuple[SecretHash, ...] = ()
        self._proofs: dict[str, bytes] = {}
        self._issued: dict[str, Verified] = {}
        self._proof_key = secrets.token_bytes(32)
        self._slow = asyncio.Semaphore(2)
        self._refresh()

    def issue(
        self,
        principal: Principal,
        scopes: Iterable[str] | None = None,
        audience: str | None = None,
        ttl: float | timedelta | None = timedelta(days=90),
    ) -> str:
        """Write a new token for *principal* and return it. It is shown here and never again.

        scopes: what the token is narrowed to; None leaves all that the principal holds.
        audience: the address of the only server that takes it; None for any that reads this file.
        ttl: seconds, or a timedelta; None for a token that does not expire.
        """
        id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        entry = TokenEntry(
            id=id,
            hash=SecretHash.make(secret),
            principal=checked_principal(principal.id),
            kind="service" if principal.kind == "service" else "user",
            access=principal.held,
            scopes=None if scopes is None else _names(scopes),
            audience=audience,
            expires=self._expiry(ttl),
        )
        with changing_entries(self._path) as entries:
            entries[id] = entry
        return join_token(id, secret)

    def _expiry(self, ttl: float | timedelta | None) -> datetime | None:
        if ttl is None:
            return None
        seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
        if not (math.isfinite(seconds) and seconds > 0):
            raise ValueError(f"ttl: expected a positive number of seconds, got {ttl!r}")
        return datetime.fromtimestamp(self._clock() + seconds, UTC)

    def revoke(self, id: str) -> bool:
        """Take the token of that id (the middle part of a token) out of the file; False if it is not there."""
        with changing_entries(self._path) as entries:
            return entries.pop(id, None) is not None

    def entries(self) -> tuple[TokenEntry, ...]:
        """Return what the file says of its tokens, in its order."""
        self._refresh()
        return tuple(self._entries.values())

    async def verify(self, token: str) -> Verified | None:
        """Return what *token* stands for; None if it is unknown, wrong or expired."""
        parts = split_token(token) if len(token) <= TOKEN_LIMIT else None
        if parts is None:
            return None
        self._refresh()
        id, secret = parts
        entry = self._entries.get(id)
        # An unknown id is hashed as well: how long the answer takes does not tell which ids there are.
        if not await self._matches(id, secret, self._decoy(id) if entry is None else entry.hash) or entry is None:
            log_refusal("a static token is unknown or its secret is wrong")
            return None
        if entry.expires is not None and entry.expires.timestamp() <= self._clock():
            log_refusal("a static token has expired")
            return None
        verified = self._as_issued(entry) if self._principals is None else self._as_of_now(entry, self._principals)
        if verified is None:
            log_refusal("the principal of a static token is no longer known")
        return verified

    def _as_issued(self, entry: TokenEntry) -> Verified:
        """Return what the file says of a token; made once, until the file changes."""
        if entry.id not in self._issued:
            self._issued[entry.id] = _verified_entry(entry, _issued_to(entry))
        return self._issued[entry.id]

    def _as_of_now(self, entry: TokenEntry, principals: Mapping[str, Principal]) -> Verified | None:
        """Return what a token stands for, with no more than its principal held when it was issued and holds now."""
        issued, now = _issued_to(entry), principals.get(entry.principal)
        return None if now is None or now.key != issued.key else _verified_entry(entry, narrower(issued, now))

    def _refresh(self) -> None:
        """Read the file again if it is another one than last time."""
        try:
            stat = self._path.stat()
            seen = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino, stat.st_mode)
        except FileNotFoundError:
            seen = None
        if seen == self._seen:
            return
        try:
            entries = read_entries(self._path)
        except Exception:
            self._take({}, ())
            raise
        self._take(entries, seen)

    def _take(self, entries: dict[str, TokenEntry], seen: tuple[int, ...] | None) -> None:
        self._entries, self._seen = entries, seen
        self._hashes = tuple(entry.hash for entry in entries.values())
        self._proofs, self._issued = {}, {}

    def _decoy(self, id: str) -> SecretHash:
        """Return the hash of some entry, always the same for *id*, so that the work is what it is for the others."""
        place = int.from_bytes(hashlib.sha256(id.encode()).digest()[:8])
        return self._hashes[place % len(self._hashes)] if self._hashes else SecretHash(b"", b"")

    async def _matches(self, id: str, secret: str, hash: SecretHash) -> bool:
        if hash.cost is None:
            return hash.matches(secret)
        # scrypt takes long on purpose: once per token, in a thread, two at a time.
        proof = hmac.digest(self._proof_key, secret.encode(), "sha256")
        if hmac.compare_digest(self._proofs.get(id, b""), proof):
            return True
        proofs = self._proofs  # of the file as it is now: a later one starts anew
        async with self._slow:
            is_right = await asyncio.to_thread(hash.matches, secret)
        if is_right and id in self._entries:
            proofs[id] = proof
        return is_right


def _names(scopes: Iterable[str]) -> frozenset[str]:
    if isinstance(scopes, str):
        raise TypeError(f"scopes: expected a list of names, got the string {scopes!r}")
    return frozenset(scopes)


def _issued_to(entry: TokenEntry) -> Principal:
    return Principal(entry.principal, entry.kind, entry.access)


def _verified_entry(entry: TokenEntry, whole: Principal) -> Verified:
    return Verified(
        principal=whole if entry.scopes is None else whole.narrow(entry.scopes),
        client=entry.id,
        scopes=whole.held if entry.scopes is None else entry.scopes - {EVERYTHING},
        expires_at=None if entry.expires is None else entry.expires.timestamp(),
        token_id=entry.id,
        audience=entry.audience,
    )
