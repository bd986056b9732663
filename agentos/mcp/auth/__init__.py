"""Who a bearer token stands for: JSON Web Tokens and the file of static tokens.

A verifier answers a token with `Verified` or None. None says nothing about why: the reason goes to the log, never to
the sender of the token. Scopes only ever take away from what the principal holds.
"""

from agentos.mcp.auth.jwt_verifier import JWTVerifier
from agentos.mcp.auth.token_file import TokenFile
from agentos.mcp.auth.token_records import TokenEntry
from agentos.mcp.auth.verifier import TOKEN_LIMIT, KeysUnavailableError, Verified, Verifier, is_loopback

__all__ = [
    "TOKEN_LIMIT",
    "JWTVerifier",
    "KeysUnavailableError",
    "TokenEntry",
    "TokenFile",
    "Verified",
    "Verifier",
    "is_loopback",
]
