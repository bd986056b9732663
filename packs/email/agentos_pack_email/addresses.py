"""Addresses: one form is understood, and whatever could be read in two ways is refused."""

import re

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DOMAIN = rf"{_LABEL}(?:\.{_LABEL})*"
_SPEC = rf"{_ATOM}(?:\.{_ATOM})*@{_DOMAIN}"
_ADDRESS = re.compile(_SPEC)
_NAMED = re.compile(rf'(?:"(?:[^"\\]|\\.)*"|[^<>",;:()@\\])*<({_SPEC})>')
_ANYBODY_AT = re.compile(rf"\*@{_DOMAIN}")
_LONGEST = 254
_LONGEST_LOCAL = 64
_LONGEST_FIELD = 2_000


def is_address(text: str) -> bool:
    """Tell whether *text* is a bare address in ASCII, without quotes or comments."""
    return len(text) <= _LONGEST and bool(_ADDRESS.fullmatch(text)) and text.index("@") <= _LONGEST_LOCAL


def is_pattern(text: str) -> bool:
    """Tell whether *text* is an address, or `*@` and a domain for everybody there."""
    return is_address(text) or (len(text) <= _LONGEST and bool(_ANYBODY_AT.fullmatch(text)))


def is_allowed(address: str, patterns: tuple[str, ...]) -> bool:
    """Tell whether one of *patterns* is *address*, or the domain that it is in."""
    anybody = f"*@{domain_of(address)}"
    return any(pattern.lower() in (address.lower(), anybody) for pattern in patterns)


def sender_of(field: str) -> str | None:
    """Return the one bare address of a From field, in lower case; None if it has none, several, or is unclear."""
    text = " ".join(field.split())
    if len(text) > _LONGEST_FIELD:
        return None
    named = _NAMED.fullmatch(text)
    bare = named[1] if named else text
    return bare.lower() if is_address(bare) else None


def domain_of(address: str) -> str:
    """Return the part of an address after the @, in lower case."""
    return address.rpartition("@")[2].lower()
