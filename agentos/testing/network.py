"""Nothing but loopback is reachable: an audit hook refuses what leaves the machine, and notes what was tried.

The hook sees every connection, datagram and name look-up that goes through Python's own sockets, in every thread. It
does not see what child processes do, nor C libraries that bring sockets of their own.
"""

import ipaddress
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs


class NetworkRefusedError(ConnectionRefusedError):
    """The kit did not let a connection leave the machine."""


@attrs.frozen
class Attempt:
    """Something that code tried: to `connect`, to `resolve` a name, or to `open` a file."""

    what: str
    target: str
    port: int | None = None

    def __str__(self) -> str:
        return f"{self.what} {self.target}" + ("" if self.port is None else f" port {self.port}")


class _AuditHook:
    """What the hook asks, if anybody is watching. There is one hook in a process, and it can't be taken off."""

    def __init__(self) -> None:
        self.listeners: list[tuple[list[Attempt], bool]] = []
        self.refusing = 0
        self.is_hooked = False
        self.lock = threading.Lock()

    def see(self, event: str, args: tuple[Any, ...]) -> None:
        """Note what is tried, and refuse what leaves the machine."""
        handle = _EVENTS.get(event)
        attempt = None if handle is None else handle(args)
        if attempt is None:
            return
        for noted, with_files in self.listeners:
            if with_files or attempt.what != "open":
                noted.append(attempt)
        if self.refusing and attempt.what != "open" and not _is_local(attempt):
            refuse(attempt)


_audit = _AuditHook()


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _audit.listeners and event in _EVENTS:
        _audit.see(event, args)


def refuse(attempt: Attempt) -> None:
    """Say no as the network would, so that a tool takes it as an outage."""
    reason = f"the test kit refuses to {attempt}: only loopback is reachable"
    if attempt.what == "resolve":
        raise socket.gaierror(socket.EAI_FAIL, reason)
    raise NetworkRefusedError(111, reason)


def _connected(args: tuple[Any, ...]) -> Attempt | None:
    address = args[-1]
    if isinstance(address, tuple) and address:
        return Attempt("connect", str(address[0]), address[1] if len(address) > 1 else None)
    return None  # a local socket, or a datagram on a connection that was seen before


def _resolved(args: tuple[Any, ...]) -> Attempt | None:
    name = args[0].decode("ascii", "replace") if isinstance(args[0], bytes) else args[0]
    return None if name is None else Attempt("resolve", str(name))


def _opened(args: tuple[Any, ...]) -> Attempt | None:
    return Attempt("open", os.fsdecode(args[0])) if isinstance(args[0], str | bytes) else None


_EVENTS: dict[str, Callable[[tuple[Any, ...]], Attempt | None]] = {
    "socket.connect": _connected,
    "socket.sendto": _connected,
    "socket.sendmsg": _connected,
    "socket.getaddrinfo": _resolved,
    "socket.gethostbyname": _resolved,
    "socket.gethostbyaddr": _resolved,
    "open": _opened,
}


def _is_local(attempt: Attempt) -> bool:
    """Tell whether an attempt stays on this machine. A literal address is resolved without asking anybody."""
    if attempt.target in ("", "localhost", "localhost.localdomain"):
        return True
    address = address_of(attempt.target)
    return address is not None and (attempt.what == "resolve" or address.is_loopback)


def address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that *text* is, without a scope, and the one inside a mapped one; None if it is a name."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


@contextmanager
def offline(*, files: bool = False) -> Iterator[list[Attempt]]:
    """Refuse everything but loopback until the end of the block; give the list of what was tried.

    *files* notes the files that are opened too.
    """
    with watching(files=files) as attempts:
        _audit.refusing += 1
        try:
            yield attempts
        finally:
            _audit.refusing -= 1


@contextmanager
def watching(*, files: bool = False) -> Iterator[list[Attempt]]:
    """Note every attempt until the end of the block; with *files*, also to open one."""
    attempts: list[Attempt] = []
    with _audit.lock:
        if not _audit.is_hooked:
            sys.addaudithook(_hook)
            _audit.is_hooked = True
        _audit.listeners = [*_audit.listeners, (attempts, files)]
    try:
        yield attempts
    finally:
        with _audit.lock:
            _audit.listeners = [one for one in _audit.listeners if one[0] is not attempts]
