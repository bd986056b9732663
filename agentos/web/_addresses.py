"""Which addresses are of the public internet, and what the others are.

The tables are our own: what `ipaddress` says of an address differs from one Python to the next, and it takes
multicast and addresses that carry another one for public.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import attrs

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


@attrs.frozen
class Nature:
    """What an address is that is not public; `is_local` if a private deployment has its servers at such."""

    description: str
    is_local: bool = False


_V4 = [
    (IPv4Network(network), nature)
    for network, nature in (
        ("0.0.0.0/8", Nature("an unspecified address")),
        ("10.0.0.0/8", Nature("a private address", is_local=True)),
        ("100.64.0.0/10", Nature("an address behind a provider's NAT", is_local=True)),
        ("127.0.0.0/8", Nature("a loopback address", is_local=True)),
        ("169.254.0.0/16", Nature("a link-local address")),
        ("172.16.0.0/12", Nature("a private address", is_local=True)),
        ("192.0.0.0/24", Nature("a reserved address")),
        ("192.0.2.0/24", Nature("an address for documentation")),
        ("192.88.99.0/24", Nature("a 6to4 relay")),
        ("192.168.0.0/16", Nature("a private address", is_local=True)),
        ("198.18.0.0/15", Nature("an address for benchmarks")),
        ("198.51.100.0/24", Nature("an address for documentation")),
        ("203.0.113.0/24", Nature("an address for documentation")),
        ("224.0.0.0/4", Nature("a multicast address")),
        ("240.0.0.0/4", Nature("a reserved address")),
    )
]
_V6 = [
    (IPv6Network(network), nature)
    for network, nature in (
        ("::/128", Nature("an unspecified address")),
        ("::1/128", Nature("a loopback address", is_local=True)),
        ("::/96", Nature("an IPv4-compatible address")),
        ("::ffff:0:0/96", Nature("an IPv4-mapped address")),
        ("fc00::/7", Nature("a unique local address", is_local=True)),
        ("fe80::/10", Nature("a link-local address")),
        ("ff00::/8", Nature("a multicast address")),
        ("2001::/32", Nature("a Teredo address")),
        ("2001::/23", Nature("a reserved address")),
        ("2001:db8::/32", Nature("an address for documentation")),
        ("2002::/16", Nature("a 6to4 address")),
        ("3fff::/20", Nature("an address for documentation")),
    )
]
_NAT64 = IPv6Network("64:ff9b::/96")
_GLOBAL = IPv6Network("2000::/3")
_LAST_32_BITS = 0xFFFF_FFFF

_METADATA = frozenset(
    ip_address(text)
    for text in (
        *("169.254.169.254", "169.254.169.253", "169.254.170.2", "169.254.170.23", "fd00:ec2::254", "fd00:ec2::23"),
        *("168.63.129.16", "100.100.100.200", "192.0.0.192", "fd20:ce::254"),
    )
)
_METADATA_HOSTS = frozenset(
    {
        *(
            "metadata",
            "metadata.goog",
            "metadata.google.internal",
            "metadata.azure.internal",
            "metadata.tencentyun.com",
        ),
        *("instance-data", "instance-data.ec2.internal"),
    }
)


def is_metadata(place: Address | str) -> bool:
    """Tell whether an address or a host serves a cloud machine's own credentials: it is never reached."""
    return place in _METADATA_HOSTS if isinstance(place, str) else _unpacked(place) in _METADATA


def nature_of(address: Address) -> Nature | None:
    """Say what an address is; None if it is of the public internet."""
    if isinstance(address, IPv4Address):
        return next((nature for network, nature in _V4 if address in network), None)
    if address.scope_id is not None:
        return Nature("an address of one interface")
    if address in _NAT64:
        return _carried(_unpacked(address))
    unknown = None if address in _GLOBAL else Nature("a reserved address")
    return next((nature for network, nature in _V6 if address in network), unknown)


def _carried(address: Address) -> Nature | None:
    """Say what an address is that another one carries: to allow the inner one is not to allow this way to it."""
    inner = nature_of(address)
    return None if inner is None else Nature(f"a NAT64 address of {address}, {inner.description}")


def _unpacked(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address carries, else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    return IPv4Address(int(address) & _LAST_32_BITS) if address in _NAT64 else address.ipv4_mapped or address
