"""Addresses of requests, read strictly: what two programs could read in two ways is refused."""

import re
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import quote, urljoin

import attrs

from agentos.web.web_errors import refused

DEFAULT_PORTS = {"https": 443, "http": 80}

_URL_LIMIT = 8_192
_HOST_LIMIT = 253
_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<query>\?[^#]*)?(#.*)?"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^\[\]:]*)(:(?P<port>[0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_SAFE = "%/:=&?~+!$,;'@()*[]"
_LAST_PORT = 65_535


@attrs.frozen
class Target:
    """What a request goes to: a server, and what is asked for there."""

    scheme: str
    host: str
    """A name in ASCII and lower case, or an address as it is usually written."""
    port: int
    path: str = attrs.field(default="/", repr=False)
    """Path and query, encoded."""

    @property
    def origin(self) -> tuple[str, str, int]:
        """Return what credentials are meant for."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """Return the value of the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def parse_url(url: str) -> Target:
    """Read an address; raise WebError if it is not written plainly."""
    if not isinstance(url, str):
        raise refused("", f"expected text, got {type(url).__name__}")
    if len(url) > _URL_LIMIT:
        raise refused("", f"it has more than {_URL_LIMIT} characters")
    if not url.isprintable() or " " in url or "\\" in url:
        raise refused("", "it has blanks, backslashes or hidden characters; encode them as %20, %5C, ...")
    parts = _URL.fullmatch(url)
    scheme = parts["scheme"].lower() if parts else ""
    if parts is None or scheme not in DEFAULT_PORTS:
        raise refused("", "expected http://host/path or https://host/path")
    host, port = split_authority(parts["authority"])
    path = quote((parts["path"] or "/") + (parts["query"] or ""), safe=_SAFE)
    return Target(scheme, host, DEFAULT_PORTS[scheme] if port is None else port, path)


def redirect_target(base: Target, location: str) -> Target:
    """Read where a redirect leads, seen from *base*."""
    if not location.isprintable() or " " in location or "\\" in location:
        raise refused(base.host, "it redirects to an address with blanks, backslashes or hidden characters")
    if _SCHEME.match(location):
        return parse_url(location)  # as it is: joining would forgive what is missing in it
    try:
        return parse_url(urljoin(str(base), location))
    except ValueError:
        raise refused(base.host, "it redirects to something that is not an address") from None


def split_authority(authority: str) -> tuple[str, int | None]:
    """Return host and port of `host`, `host:port` or `[address]:port`."""
    if "@" in authority:
        raise refused("", "it has a user or a password in it; send credentials as a header")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise refused("", "expected a host, and perhaps a port, such as example.org:8443")
    port = None if parts["port"] is None else int(parts["port"])
    if port is not None and not 0 < port <= _LAST_PORT:
        raise refused("", f"{port} is not a port; expected 1 to {_LAST_PORT}")
    return read_host(parts["host"]), port


def read_host(given: str) -> str:
    """Return a host in its one spelling; refuse what others may read as another one."""
    if given.startswith("["):
        return _read_v6(given[1:-1])
    host = given.lower() if given.isascii() else _to_ascii(given)
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _read_v4(host)
    if host.endswith("."):
        raise refused(host, "it ends in a dot; leave it out")
    if len(host) > _HOST_LIMIT or not all(_LABEL.fullmatch(label) for label in labels):
        raise refused(host, "expected the name of a host, such as example.org")
    return host


def _read_v4(host: str) -> str:
    try:
        return str(IPv4Address(host))
    except ValueError:
        raise refused(host, "write the address as four decimal numbers, such as 192.0.2.1") from None


def _read_v6(text: str) -> str:
    if "%" in text:
        raise refused(f"[{text}]", "an address of one interface can't be reached; leave the zone out")
    try:
        return str(IPv6Address(text))
    except ValueError:
        raise refused(f"[{text}]", "expected an IPv6 address such as [2001:db8::1]") from None


def _to_ascii(host: str) -> str:
    """Return a name of other scripts as DNS has it. Nothing is mapped: letters that only look alike are refused."""
    import idna

    try:
        return idna.encode(host, strict=True, std3_rules=True).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError):
        pass
    raise refused(host, "it can't be the name of a host; write it in lower case, or in its ASCII form (xn--...)")
