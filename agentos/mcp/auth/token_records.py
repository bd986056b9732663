"""The file of static tokens: what stands in it, how a secret is hashed, and how the file is written.

A token is `agentos_<id>_<secret>`. The id finds the entry, so that one hash is enough; the file holds hashes only.
"""

import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import attrs

from agentos.base.atomic_files import locked, replace_file
from agentos.errors import ManifestError, Problem
from agentos.model.field_checks import did_you_mean, fault_of_name
from agentos.model.parsing import read_file
from agentos.model.principal import Principal

RESERVED = Principal.system().id
"""The host's own id, which no token may speak for: approvals and the audit log go by ids."""

_PREFIX = "agentos"
_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
_HEX = re.compile(r"(?:[0-9a-f]{2})+")
_ENTRY_LIMIT = 10_000
_SALT_SIZES = range(8, 65)
_DIGEST_SIZES = range(16, 65)
_SCRYPT_MEMORY = 64 * 1024 * 1024
_SCRYPT_LANES = 16
_WRITABLE_BY_OTHERS = 0o022


@attrs.frozen
class SecretHash:
    """A salted hash of a secret. `cost` is scrypt's (n, r, p).

    Without a cost it is SHA-256, which is enough for the 256 random bits of an issued token; scrypt is for secrets that
    a person chose.
    """

    salt: bytes = attrs.field(repr=False)
    digest: bytes = attrs.field(repr=False)
    cost: tuple[int, int, int] | None = None

    @classmethod
    def make(cls, secret: str) -> "SecretHash":
        """Hash *secret* under a new salt."""
        salt = secrets.token_bytes(16)
        return cls(salt, hashlib.sha256(salt + secret.encode()).digest())

    @classmethod
    def parse(cls, text: str) -> "SecretHash":
        """Read `sha256$<salt>$<digest>` or `scrypt$<n>$<r>$<p>$<salt>$<digest>`, salt and digest in hex."""
        kind, *parts = text.split("$")
        if kind == "sha256" and len(parts) == 2:  # noqa: PLR2004 - salt and digest
            return cls(_hex(parts[0], _SALT_SIZES), _hex(parts[1], range(32, 33)))
        if kind == "scrypt" and len(parts) == 5:  # noqa: PLR2004 - n, r, p, salt and digest
            return cls(_hex(parts[3], _SALT_SIZES), _hex(parts[4], _DIGEST_SIZES), _cost(parts[:3]))
        raise ValueError("expected sha256$<salt>$<digest> or scrypt$<n>$<r>$<p>$<salt>$<digest>")

    def __str__(self) -> str:
        kind = ["sha256"] if self.cost is None else ["scrypt", *map(str, self.cost)]
        return "$".join([*kind, self.salt.hex(), self.digest.hex()])

    def matches(self, secret: str) -> bool:
        """Tell whether this is the hash of *secret*, in a time that does not depend on where they differ."""
        return hmac.compare_digest(self._digest_of(secret.encode()), self.digest)

    def _digest_of(self, secret: bytes) -> bytes:
        if self.cost is None:
            return hashlib.sha256(self.salt + secret).digest()
        n, r, p = self.cost
        return hashlib.scrypt(secret, salt=self.salt, n=n, r=r, p=p, maxmem=2 * _SCRYPT_MEMORY, dklen=len(self.digest))


def _hex(text: str, sizes: range) -> bytes:
    if not _HEX.fullmatch(text) or len(text) // 2 not in sizes:
        raise ValueError(f"expected {sizes.start} to {sizes.stop - 1} bytes in lower-case hex")
    return bytes.fromhex(text)


def _cost(parts: Iterable[str]) -> tuple[int, int, int]:
    """Return scrypt's parameters, within what one request may cost."""
    n, r, p = (int(part) if re.fullmatch(r"[1-9][0-9]{0,9}", part) else 0 for part in parts)
    is_power = n > 1 and n & (n - 1) == 0
    if not is_power or not 0 < r * p <= _SCRYPT_LANES or 128 * n * r > _SCRYPT_MEMORY:
        limits = f"n a power of two, r times p at most {_SCRYPT_LANES}, 128*n*r at most {_SCRYPT_MEMORY} bytes"
        raise ValueError(f"scrypt: expected {limits}")
    return n, r, p


@attrs.frozen(kw_only=True)
class TokenEntry:
    """What the file says of one token: whom it stands for, what it is narrowed to, and how long it lasts."""

    id: str
    hash: SecretHash = attrs.field(repr=False)
    principal: str
    kind: Literal["user", "service"] = "user"
    access: frozenset[str] = frozenset()
    scopes: frozenset[str] | None = None
    audience: str | None = None
    expires: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what is written to the file: what is not set is left out."""
        made: dict[str, Any] = {
            "id": self.id,
            "hash": str(self.hash),
            "principal": self.principal,
            "kind": self.kind,
            "access": sorted(self.access),
            "scopes": None if self.scopes is None else sorted(self.scopes),
            "audience": self.audience,
            "expires": None if self.expires is None else self.expires.isoformat(timespec="seconds"),
        }
        return {key: value for key, value in made.items() if value is not None}


def join_token(id: str, secret: str) -> str:
    """Put a token together."""
    return f"{_PREFIX}_{id}_{secret}"


def split_token(token: str) -> tuple[str, str] | None:
    """Take a token apart into id and secret; None if it is not one of ours."""
    prefix, _, rest = token.partition("_")
    id, _, secret = rest.partition("_")
    return (id, secret) if prefix == _PREFIX and _ID.fullmatch(id) and secret else None


def read_entries(path: Path) -> dict[str, TokenEntry]:
    """Read the file's entries by id; none if there is no file. What can't be used raises ManifestError."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return {}
    if os.name == "posix" and mode & _WRITABLE_BY_OTHERS:
        raise _unusable(path, "", f"other users of this machine can write to it: chmod 600 {path}")
    data = read_file(path)
    if not isinstance(data, dict) or set(data) != {"tokens"} or not isinstance(data["tokens"], list):
        raise _unusable(path, "", 'expected {"tokens": [...]} and nothing else')
    if len(data["tokens"]) > _ENTRY_LIMIT:
        raise _unusable(path, "tokens", f"expected at most {_ENTRY_LIMIT} tokens")
    found: dict[str, TokenEntry] = {}
    for index, item in enumerate(data["tokens"]):
        entry = _entry(path, f"tokens[{index}]", item)
        if entry.id in found:
            raise _unusable(path, f"tokens[{index}].id", f"{entry.id!r} stands twice in the file")
        found[entry.id] = entry
    return found


def _unusable(path: Path, place: str, message: str) -> ManifestError:
    return ManifestError(str(path), [Problem(place, message)])


def _entry(path: Path, place: str, item: Any) -> TokenEntry:
    if not isinstance(item, dict):
        raise _unusable(path, place, "expected a mapping")
    if unknown := [key for key in item if key not in _READERS]:
        hint = did_you_mean(unknown[0], _READERS)
        raise _unusable(path, f"{place}.{unknown[0]}", f"unknown key{hint}")
    if missing := [key for key in ("id", "hash", "principal") if key not in item]:
        raise _unusable(path, place, f"expected the key {missing[0]!r}")
    fields = {}
    for key, value in item.items():
        try:
            fields[key] = _READERS[key](value)
        except (TypeError, ValueError) as error:
            raise _unusable(path, f"{place}.{key}", str(error)) from None
    return TokenEntry(**fields)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("expected a string")
    return value


def _id(value: Any) -> str:
    if not _ID.fullmatch(_text(value)):
        raise ValueError("expected 1 to 64 letters, digits or hyphens")
    return str(value)


def checked_principal(value: Any) -> str:
    """Return *value* if a token may stand for a principal of that id."""
    if fault := fault_of_name(value):
        raise ValueError(fault)
    if value == RESERVED:
        raise ValueError(f"{RESERVED!r} is the host itself; give the token a principal of its own")
    if str(value).startswith(("service:", "system:")):
        raise ValueError("the kind of a principal stands apart from its id; leave it out there")
    return str(value)


def _kind(value: Any) -> str:
    if value not in ("user", "service"):
        raise ValueError("expected user or service")
    return str(value)


def _rules(value: Any) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise TypeError("expected a list of strings")
    return frozenset(value)


def _moment(value: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(_text(value))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError("expected a time with its zone, such as 2027-01-31T12:00:00Z")
    return moment


_READERS: Mapping[str, Any] = {
    "id": _id,
    "hash": lambda value: SecretHash.parse(_text(value)),
    "principal": checked_principal,
    "kind": _kind,
    "access": _rules,
    "scopes": _rules,
    "audience": _text,
    "expires": _moment,
}


@contextlib.contextmanager
def changing_entries(path: Path) -> Iterator[dict[str, TokenEntry]]:
    """Lend the entries to be changed; write them, whole and at once, when no error is raised meanwhile."""
    path = path.resolve()  # a link stays a link
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(path.with_name(f".{path.name}.lock")):
        entries = read_entries(path)
        yield entries
        _write(path, entries.values())


def _write(path: Path, entries: Iterable[TokenEntry]) -> None:
    text = json.dumps({"tokens": [entry.to_json() for entry in entries]}, indent=2) + "\n"
    replace_file(path, text.encode(), private=True)
