"""What a client may reach, and how much of it."""

from collections.abc import Callable, Iterable
from ipaddress import ip_address, ip_network
from typing import Any

import attrs

from agentos._version import __version__
from agentos.web._addresses import Address, Network, is_metadata, nature_of
from agentos.web._urls import DEFAULT_PORTS, Target, split_authority
from agentos.web.web_errors import PolicyError, WebError, refused

_MAX_TIMEOUT = 3_600
_MAX_REDIRECTS = 50


@attrs.frozen
class _Pattern:
    """Hosts by name: one, or all beneath it."""

    scheme: str | None
    host: str
    is_wild: bool
    port: int | None

    def fits_host(self, host: str) -> bool:
        return host.endswith(f".{self.host}") if self.is_wild else host == self.host

    def fits(self, target: Target) -> bool:
        return self.fits_host(target.host) and self.scheme in (None, target.scheme) and self.port in (None, target.port)


@attrs.frozen
class _Permit:
    """A private place that may be reached: a network, or hosts by name; an address is both."""

    network: Network | None
    hosts: _Pattern | None = None

    def names(self, host: str) -> bool:
        return self.hosts is not None and self.hosts.fits_host(host)

    @property
    def port(self) -> int | None:
        return None if self.hosts is None else self.hosts.port

    def allows(self, address: Address, host: str, port: int, *, is_local: bool) -> bool:
        if self.port not in (None, port):
            return False
        return address in self.network if self.network is not None else is_local and self.names(host)


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


@attrs.frozen
class WebPolicy:
    """Which servers may be asked, and how much is taken from them.

    allow: hosts, such as `api.example.org`, `*.example.org` (all beneath it, not itself), `https://example.org:8443`;
    nothing means any public host. allow_private: hosts, addresses and networks (`10.1.0.0/16`) that may be reached
    although they are not public. A host there may be loopback or private, never link-local or the like, for which its
    network has to be named. The metadata services of clouds are never reached.
    ports: those that may be used beside the ones that `allow` or `allow_private` name.
    max_bytes: of a body, as it comes and unpacked. timeout: seconds for the whole exchange, redirects included.
    """

    allow: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    allow_private: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    max_bytes: int = 10_000_000
    timeout: float = 30.0
    max_redirects: int = 5
    schemes: tuple[str, ...] = attrs.field(default=("https", "http"), converter=_texts)
    ports: tuple[int, ...] = attrs.field(default=(80, 443, 8080, 8443), converter=tuple[int, ...])
    user_agent: str = f"agentos/{__version__}"
    _patterns: tuple[_Pattern, ...] = attrs.field(init=False, repr=False, eq=False)
    _permits: tuple[_Permit, ...] = attrs.field(init=False, repr=False, eq=False)

    @_patterns.default
    def _read_patterns(self) -> tuple[_Pattern, ...]:
        return tuple(_read(text, "allow", _pattern) for text in self.allow)

    @_permits.default
    def _read_permits(self) -> tuple[_Permit, ...]:
        return tuple(_read(text, "allow_private", _permit) for text in self.allow_private)

    def __attrs_post_init__(self) -> None:
        for field, fault in _faults(self):
            raise PolicyError(field, fault)

    def check(self, target: Target) -> None:
        """Raise WebError if *target* may not be asked, as far as its name shows."""
        host = target.host
        if is_metadata(host):
            raise refused(host, "it is the metadata service of a cloud machine")
        if target.scheme not in self.schemes:
            raise refused(host, f"{target.scheme} is not spoken here; use {' or '.join(self.schemes)}")
        fitting = [pattern for pattern in self._patterns if pattern.fits(target)]
        if self._patterns and not fitting:
            raise refused(
                host, f"it is not among the hosts that may be asked ({_joined(self.allow)}); add it to `allow`"
            )
        named = {pattern.port for pattern in fitting}
        named |= {permit.port for permit in self._permits if permit.names(host)}
        if target.port not in {*self.ports, *named}:
            raise refused(
                host, f"the port {target.port} may not be used; name {target.authority} in `allow` or `allow_private`"
            )

    def check_address(self, address: Address, host: str, port: int) -> None:
        """Raise WebError if the *address* that *host* was found to have may not be connected to."""
        subject = "it" if host == str(address) else str(address)
        if is_metadata(address):
            raise refused(host, f"{subject} is the metadata service of a cloud machine")
        nature = nature_of(address)
        if nature is None or any(
            permit.allows(address, host, port, is_local=nature.is_local) for permit in self._permits
        ):
            return
        way_out = "name the host or its network" if nature.is_local else "name its network"
        raise refused(host, f"{subject} is {nature.description}; {way_out} in `allow_private` if it may be reached")


def _read(text: Any, field: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text if isinstance(text, str) else "")
    except (WebError, ValueError) as error:
        raise PolicyError(field, f"{text!r}: {error}") from None


def _pattern(text: str) -> _Pattern:
    scheme, separator, rest = text.rpartition("://")
    if separator and scheme not in DEFAULT_PORTS:
        raise ValueError(f"expected one of {', '.join(DEFAULT_PORTS)} before ://")
    rest = rest.removesuffix("/")
    is_wild = rest.startswith("*.")
    host, port = split_authority(rest.removeprefix("*.") if is_wild else rest)
    if separator and port is None:
        port = DEFAULT_PORTS[scheme]
    return _Pattern(scheme or None, host, is_wild, port)


def _permit(text: str) -> _Permit:
    if "/" in text:
        return _Permit(ip_network(text))
    pattern = _pattern(text)
    try:
        return _Permit(ip_network(ip_address(pattern.host)), pattern)
    except ValueError:
        return _Permit(None, pattern)


def _joined(words: tuple[str, ...]) -> str:
    shown = ", ".join(words[:_LISTED])
    return shown if len(words) <= _LISTED else f"{shown}, ..."


_LISTED = 5


def _faults(policy: WebPolicy) -> Iterable[tuple[str, str]]:
    if not _is_whole(policy.max_bytes) or policy.max_bytes < 1:
        yield "max_bytes", f"expected a number of bytes, got {policy.max_bytes!r}"
    is_number = isinstance(policy.timeout, int | float) and not isinstance(policy.timeout, bool)
    if not is_number or not 0 < policy.timeout <= _MAX_TIMEOUT:
        yield "timeout", f"expected seconds, more than 0 and at most {_MAX_TIMEOUT}, got {policy.timeout!r}"
    if not _is_whole(policy.max_redirects) or not 0 <= policy.max_redirects <= _MAX_REDIRECTS:
        yield "max_redirects", f"expected 0 to {_MAX_REDIRECTS}, got {policy.max_redirects!r}"
    if not policy.schemes or not set(policy.schemes) <= set(DEFAULT_PORTS):
        yield "schemes", f"expected some of {', '.join(DEFAULT_PORTS)}"
    if not all(_is_whole(port) for port in policy.ports):
        yield "ports", "expected whole numbers"
    if not policy.user_agent.isascii() or not policy.user_agent.isprintable() or not policy.user_agent.strip():
        yield "user_agent", "expected one line of ASCII"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
