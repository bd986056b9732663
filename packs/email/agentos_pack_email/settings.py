"""The options of the pack, and the servers as secrets and options together say them."""

import ipaddress
import re
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import attrs

from agentos_pack_email.addresses import is_address, is_pattern

SMTP_HOST, SMTP_USER, SMTP_PASSWORD = "email.smtpHost", "email.smtpUser", "email.smtpPassword"
IMAP_HOST, IMAP_USER, IMAP_PASSWORD = "email.imapHost", "email.imapUser", "email.imapPassword"

Tls = Literal["implicit", "starttls", "none"]
Trust = Literal["nobody", "authentication-results", "any"]
Method = Literal["dmarc", "dkim", "spf"]
ReadSecret = Callable[[str], str | None]

_PORTS = {
    "smtp": {"implicit": 465, "starttls": 587, "none": 25},
    "imap": {"implicit": 993, "starttls": 143, "none": 143},
}
_SERVER_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252}[A-Za-z0-9])?")
_HOST = re.compile(r"[A-Za-z0-9._:-]{1,253}")
_TEXT_LIMIT = 200_000
_ATTACHED_LIMIT = 8_000_000


class ServerError(ValueError):
    """A mail server that can't be used, told without any secret."""


def _is_own_address(_: Any, __: Any, value: str | None) -> None:
    if value is not None and not is_address(value):
        raise ValueError("expected an address such as robot@example.org")


def _is_name(_: Any, __: Any, value: str) -> None:
    if len(value) > 100 or not value.isprintable():  # noqa: PLR2004 - said below
        raise ValueError("expected printable text of up to 100 characters")


def _are_patterns(_: Any, __: Any, value: tuple[str, ...]) -> None:
    for pattern in value:
        if not is_pattern(pattern):
            raise ValueError(f"expected addresses or *@domain, such as *@example.org, got {pattern[:80]!r}")


def _is_folder(_: Any, __: Any, value: str) -> None:
    if not 0 < len(value) <= 200 or not value.isprintable():  # noqa: PLR2004 - said below
        raise ValueError("expected the name of a folder, of 1 to 200 printable characters")


def _is_server(_: Any, __: Any, value: str | None) -> None:
    if value is not None and not _SERVER_ID.fullmatch(value):
        raise ValueError("expected the name with which the server begins its Authentication-Results")


def _within(least: float, most: float) -> list[Callable[[Any, Any, Any], Any]]:
    return [attrs.validators.ge(least), attrs.validators.le(most)]


_is_port = attrs.validators.optional(attrs.validators.and_(*_within(1, 65_535)))


@attrs.frozen(kw_only=True)
class Options:
    """What a manifest may say."""

    smtp_port: int | None = attrs.field(default=None, validator=_is_port)
    smtp_tls: Tls = "implicit"
    imap_port: int | None = attrs.field(default=None, validator=_is_port)
    imap_tls: Tls = "implicit"
    ca_file: Path | None = None
    """The certificates that servers are checked against, in place of the system's."""
    from_address: str | None = attrs.field(default=None, validator=_is_own_address)
    from_name: str = attrs.field(default="", validator=_is_name)
    recipients: tuple[str, ...] = attrs.field(default=(), validator=_are_patterns)
    """To whom `email_send` may send; nobody by default."""
    folder: str = attrs.field(default="INBOX", validator=_is_folder)
    trust: Trust = "nobody"
    """Whose word counts for who wrote a mail."""
    trust_server: str | None = attrs.field(default=None, validator=_is_server)
    trust_method: Method = "dmarc"
    poll_seconds: float = attrs.field(default=30.0, validator=_within(1, 3_600))
    max_age_days: int = attrs.field(default=3, validator=_within(1, 365))
    max_per_hour: int = attrs.field(default=60, validator=_within(1, 10_000))
    keep_quotes: bool = False
    timeout: float = attrs.field(default=20.0, validator=_within(1, 120))
    max_message_bytes: int = attrs.field(default=10_000_000, validator=_within(10_000, 50_000_000))
    max_attached_bytes: int = attrs.field(default=4_000_000, validator=_within(0, _ATTACHED_LIMIT))
    max_text: int = attrs.field(default=50_000, validator=_within(100, _TEXT_LIMIT))

    def fault_of_trust(self) -> str | None:
        """Say what is missing before a sender can count; None if nothing is."""
        if self.trust == "nobody":
            return "the option `trust` does not say whose word counts for who wrote a mail"
        if self.trust == "authentication-results" and self.trust_server is None:
            return "the option `trustServer` does not name the server whose Authentication-Results count"
        return None


@attrs.frozen
class Server:
    """A server, and who logs in there; what is secret stays out of the repr."""

    host: str = attrs.field(repr=False)
    port: int
    tls: Tls
    user: str | None = attrs.field(repr=False)
    password: str | None = attrs.field(repr=False)
    ca_file: Path | None = None

    def tls_context(self) -> ssl.SSLContext | None:
        """Return what the server's certificate is checked with; None for a connection without TLS."""
        if self.tls == "none":
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError):
            raise ServerError("caFile: can't be read as certificates in PEM form") from None


def smtp_server(options: Options, secret: ReadSecret) -> Server:
    """Return the server that takes mail, as the secrets are now; without a user nobody logs in."""
    user, password = _line(secret, SMTP_USER), _line(secret, SMTP_PASSWORD)
    if (user is None) != (password is None):
        raise ServerError(f"{SMTP_USER} and {SMTP_PASSWORD}: one of them is missing; set both or none")
    host = _host(secret, SMTP_HOST, options.smtp_tls)
    port = options.smtp_port or _PORTS["smtp"][options.smtp_tls]
    return Server(host, port, options.smtp_tls, user, password, options.ca_file)


def imap_server(options: Options, secret: ReadSecret) -> Server:
    """Return the server that has the mailbox, as the secrets are now."""
    user, password = _line(secret, IMAP_USER), _line(secret, IMAP_PASSWORD)
    if user is None or password is None:
        raise ServerError(f"{IMAP_USER} and {IMAP_PASSWORD}: one of them is missing")
    host = _host(secret, IMAP_HOST, options.imap_tls)
    port = options.imap_port or _PORTS["imap"][options.imap_tls]
    return Server(host, port, options.imap_tls, user, password, options.ca_file)


def own_address(options: Options, secret: ReadSecret) -> str:
    """Return the address that mail is sent from: the option's, or a user's that is one."""
    found = (options.from_address, _line(secret, SMTP_USER), _line(secret, IMAP_USER))
    for one in found:
        if one is not None and is_address(one):
            return one.lower()
    raise ServerError("fromAddress: no address to send from; set the option")


def _line(secret: ReadSecret, id: str) -> str | None:
    value = secret(id)
    if value is not None and (len(value) > 1_000 or any(ord(char) < 32 or ord(char) == 127 for char in value)):  # noqa: PLR2004 - controls
        raise ServerError(f"{id}: expected one line without control characters")
    return value


def _host(secret: ReadSecret, id: str, tls: Tls) -> str:
    host = (_line(secret, id) or "").strip()
    if not _HOST.fullmatch(host):
        raise ServerError(f"{id}: expected the name or the address of a server, without a scheme or a port")
    if tls == "none" and not _is_loopback(host):
        raise ServerError(f"{id}: without TLS only a server on this machine is spoken to; use implicit or starttls")
    return host


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
