"""Who is signed in: a token is exchanged once for a cookie, and behind the cookie stands a principal.

The cookie's value is kept only as a hash. Whoever it stands for is found out anew for every request, so that a token
that expires, or a principal that the operator narrows, counts at once.
"""

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeAlias

import attrs

from agentos.mcp.auth import TOKEN_LIMIT
from agentos.mcp.http.request_checks import BearerTokens
from agentos.model.principal import EVERYTHING, Principal

OPERATE: Final = "studio:operate"
"""The rule that makes an operator of a principal that does not hold everything: what is the host's is its business."""
SESSIONS: Final = 200
"""How many are signed in at once; the one that was idle longest makes room."""
IDLE: Final = 12 * 3600.0
"""After how many seconds without a request a session ends."""

Who: TypeAlias = Principal | Callable[[], Principal | None]
"""For whom the operator's own link lets in: a principal, or what finds it as it is now."""


def is_operator(principal: Principal) -> bool:
    """Tell whether *principal* may see and change what is the host's, as whoever runs the command may."""
    return bool(principal.held & {EVERYTHING, OPERATE})


@attrs.define(eq=False)
class StudioSession:
    """One browser that is signed in."""

    key: bytes
    token: str | None = attrs.field(repr=False)
    """The token of a verifier it came with; None for the operator's own link."""
    seen: float
    secret: bytes = attrs.field(repr=False, factory=lambda: secrets.token_bytes(32))
    """What the tokens of its forms are made of."""
    streams: int = 0
    notice: str = ""
    """What the last change came to, until the next page shows it."""

    def form_token(self) -> str:
        """Return a token for a form: another one each time, so that compression does not give it away."""
        pad = secrets.token_bytes(len(self.secret))
        return (pad + bytes(one ^ other for one, other in zip(pad, self.secret, strict=True))).hex()

    def is_own(self, form_token: str | None) -> bool:
        """Tell whether a token was made for a form of this session."""
        try:
            said = bytes.fromhex(form_token or "")
        except ValueError:
            return False
        size = len(self.secret)
        if len(said) != 2 * size:
            return False
        plain = bytes(one ^ other for one, other in zip(said[:size], said[size:], strict=True))
        return hmac.compare_digest(plain, self.secret)


class SignIn:
    """Exchanges tokens for sessions, and says whom a session stands for.

    principal: for whom the link with *token* lets in. bearer: accepts bearer tokens, where the studio is served beside
    MCP to whoever has one. One of the two is given.
    """

    def __init__(self, *, principal: Who | None, bearer: BearerTokens | None, token: str | None = None) -> None:
        if (principal is None) == (bearer is None):
            raise ValueError("studio: give a principal, for whom it is opened, or a verifier that finds out who it is")
        self._principal = principal
        self._bearer = bearer
        self.token = None if principal is None else token or secrets.token_urlsafe(32)
        self._sessions: OrderedDict[bytes, StudioSession] = OrderedDict()

    @property
    def has_link(self) -> bool:
        """Tell whether a link lets in, rather than tokens that somebody issued."""
        return self.token is not None

    async def enter(self, said: str) -> str | None:
        """Return the value of a cookie for a token; None if it is invalid."""
        said = said.strip()
        if not said or len(said) > TOKEN_LIMIT:
            return None
        if self.token is None:
            return self._begin(said) if await self._verified(said) is not None else None
        is_right = hmac.compare_digest(said.encode(), self.token.encode())
        return self._begin(None) if is_right else None

    def _begin(self, token: str | None) -> str:
        value = secrets.token_urlsafe(32)
        key = _key(value)
        self._forget_idle()
        while len(self._sessions) >= SESSIONS:
            self._sessions.popitem(last=False)
        self._sessions[key] = StudioSession(key, token, time.monotonic())
        return value

    def session(self, cookie: str | None) -> StudioSession | None:
        """Return the session of a cookie; None if there is none, or it was idle too long."""
        self._forget_idle()
        found = self._sessions.get(_key(cookie)) if cookie else None
        if found is not None:
            found.seen = time.monotonic()
            self._sessions.move_to_end(found.key)
        return found

    async def principal_of(self, session: StudioSession) -> Principal | None:
        """Return whom a session stands for now; None if it is over: signed out, or nobody any more."""
        if session.key not in self._sessions:
            return None
        if session.token is not None:
            return await self._verified(session.token)
        return self._principal() if callable(self._principal) else self._principal

    async def _verified(self, token: str) -> Principal | None:
        verified = None if self._bearer is None else await self._bearer.stands_for(token)
        return None if verified is None else verified.principal

    def leave(self, session: StudioSession) -> None:
        """End a session."""
        self._sessions.pop(session.key, None)

    def _forget_idle(self) -> None:
        oldest = time.monotonic() - IDLE
        while self._sessions and (first := next(iter(self._sessions.values()))).seen < oldest:
            del self._sessions[first.key]


def _key(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode("utf-8", "replace")).digest()
