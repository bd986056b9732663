"""The address by which clients know a server, and the metadata that is served for it."""

import re
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

from mcp.server.auth.routes import cors_middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from agentos.mcp.auth import JWTVerifier, Verifier

WELL_KNOWN = "/.well-known/oauth-protected-resource"
"""Where the metadata of a resource stands."""
HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?")
"""A name or address, and perhaps a port."""
QUOTED = re.compile(r"[\x21\x23-\x5B\x5D-\x7E]+")
"""What may stand in quotes in a header."""


def as_list(given: Sequence[str]) -> list[str]:
    """Return *given* as a list; one text in place of several is a slip."""
    if isinstance(given, str):
        raise TypeError(f"expected a list, got the string {given!r}; write [{given!r}]")
    return list(given)


def parse_resource_url(url: str) -> SplitResult:
    """Take the address of a resource apart; one with user, query or fragment is invalid."""
    parts = urlsplit(url if QUOTED.fullmatch(url) else "")
    is_bare = not (parts.query or parts.fragment or "@" in parts.netloc)
    if parts.scheme not in ("http", "https") or not HOST.fullmatch(parts.netloc.lower()) or not is_bare:
        raise ValueError(f"resource_url: expected an address such as https://example.com/mcp, got {url!r}")
    return parts


def comparable_url(url: str) -> tuple[str, str, str] | None:
    """Return an address in the form that two are compared in; None if it is invalid."""
    try:
        parts = parse_resource_url(url)
    except ValueError:
        return None
    usual = ":443" if parts.scheme == "https" else ":80"
    return parts.scheme, parts.netloc.lower().removesuffix(usual), parts.path.rstrip("/")


def metadata_url(resource_url: str) -> str:
    """Return where RFC 9728 wants the metadata of a resource: at the root, with the resource's path behind it."""
    parts = parse_resource_url(resource_url)
    return f"{parts.scheme}://{parts.netloc}{_metadata_path(parts.path)}"


def _metadata_path(path: str) -> str:
    return WELL_KNOWN + ("" if path == "/" else path)


def metadata_routes(
    verifier: Verifier | None, resource_url: str | None, servers: Sequence[str], scopes: Sequence[str]
) -> list[Route]:
    """Return the route of the metadata, if tokens are asked for and the address is known."""
    if verifier is None or resource_url is None:
        return []
    issuers = as_list(servers) or ([verifier.issuer] if isinstance(verifier, JWTVerifier) else [])
    document = {
        "resource": resource_url,
        "authorization_servers": [url for url in issuers if urlsplit(url).scheme in ("http", "https")],
        "scopes_supported": list(scopes),
        "bearer_methods_supported": ["header"],
    }
    filled = {key: value for key, value in document.items() if value}

    async def send_metadata(_: Request) -> JSONResponse:
        return JSONResponse(filled, headers={"Cache-Control": "public, max-age=3600"})

    path = _metadata_path(parse_resource_url(resource_url).path)
    # Public, and read by pages before they have a token: any origin may.
    return [Route(path, cors_middleware(send_metadata, ["GET", "OPTIONS"]), methods=["GET", "OPTIONS"])]
