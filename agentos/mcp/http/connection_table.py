"""Which connections are open, whose they are, and which of them make room for another."""

import asyncio
import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from typing import Final
from weakref import WeakValueDictionary

import attrs

from agentos.mcp.http.gateway import HTTPLimits

_KEPT_FREE: Final = 4
"""One descriptor in so many is left to whatever else the process opens: stores, tools, servers that it talks to."""
_SPARE: Final = 16
"""How many are freed at once where those have run out all the same."""
_RECOVERY: Final = 60.0


def descriptor_limit() -> int | None:
    """Return how many descriptors the process may have open; None where no limit is known."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def address_group(host: str) -> str:
    """Return what shares one share: an IPv4 address, or the /64 that one customer gets of IPv6."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    mapped = address.ipv4_mapped
    return str(ipaddress.ip_network((address, 64), strict=False)) if mapped is None else str(mapped)


@attrs.define(eq=False)
class _Crowd:
    """Connections that share a bound. Those that wait are in the order in which they are dropped."""

    most: int
    count: int = 0
    unheard: "OrderedDict[OpenConnection, None]" = attrs.field(factory=OrderedDict)
    resting: "OrderedDict[OpenConnection, None]" = attrs.field(factory=OrderedDict)

    def has_room(self) -> bool:
        """Tell whether one more has a place, once the first of those that wait has lost its own if need be."""
        return self.count < self.most or self.drop_one()

    def drop_one(self) -> bool:
        """Drop the first of those that wait; False if nobody does."""
        first = next(iter(self.unheard or self.resting), None)
        if first is not None:
            first.drop()
        return first is not None


class OpenConnection:
    """A connection that has a place. It may lose it while no request of it is under way.

    First to go is who never sent a whole request, then who rests between two; of each the one that waits longest.
    """

    def __init__(self, crowds: tuple[_Crowd, ...], headers: float, close: Callable[[], object]) -> None:
        self.close = close
        self._crowds = crowds
        self._headers = headers
        self._deadline: asyncio.TimerHandle | None = None
        for crowd in crowds:
            crowd.count += 1
            crowd.unheard[self] = None
        self.expect_headers()

    def expect_headers(self) -> None:
        """Drop the connection unless the headers of a request are complete in time."""
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().call_later(self._headers, self.drop)

    def occupy(self) -> None:
        """Keep the place: a request is under way."""
        self._move()

    def rest(self) -> None:
        """Wait for a further request, with a place that another may get."""
        self._move()
        for crowd in self._crowds:
            crowd.resting[self] = None

    def _move(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        for crowd in self._crowds:
            crowd.unheard.pop(self, None)
            crowd.resting.pop(self, None)

    def leave(self) -> None:
        """Give the place back."""
        self._move()
        for crowd in self._crowds:
            crowd.count -= 1
        self._crowds = ()

    def drop(self) -> None:
        """End the connection. Its place is free at once."""
        self.leave()
        self.close()


class ConnectionTable:
    """Gives places to connections: so many in all, and a share of them to each address."""

    def __init__(self, limits: HTTPLimits, descriptors: int | None) -> None:
        most = limits.connections
        if descriptors is not None:
            most = max(1, min(most, descriptors - descriptors // _KEPT_FREE))
        self._most = most
        self._all = _Crowd(most)
        self._share = max(1, limits.connections_per_address * most // limits.connections)
        self._by_address: WeakValueDictionary[str, _Crowd] = WeakValueDictionary()  # its connections keep a crowd
        self._headers = limits.headers

    def admit(self, host: str, close: Callable[[], object]) -> OpenConnection | None:
        """Give a place to a connection from *host*; None if none is left and nobody waits.

        close: called if the connection loses its place.
        """
        crowd = self._by_address.setdefault(address_group(host), _Crowd(self._share))
        if not (crowd.has_room() and self._all.has_room()):
            return None
        return OpenConnection((crowd, self._all), self._headers, close)

    def shrink(self) -> bool:
        """Have fewer places for a minute, since others took the descriptors; False if nobody could be dropped."""
        before = self._all.count
        self._all.most = max(1, before - min(_SPARE, before // 2))
        while self._all.count > self._all.most and self._all.drop_one():
            pass
        asyncio.get_running_loop().call_later(_RECOVERY, self._grow)
        return self._all.count < before

    def _grow(self) -> None:
        self._all.most = self._most
