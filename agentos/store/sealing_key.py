"""The key that seals what is stored: given, from the environment, or from a file that is made once."""

import contextlib
import hashlib
import logging
import os
import secrets
from pathlib import Path

from agentos.base.atomic_files import make_file
from agentos.errors import StoreError
from agentos.store.locations import StorePlace, data_folder

VARIABLE = "AGENTOS_STORE_KEY"
SHORTEST = 16
"""How many bytes a key has at least."""
_SIZE = 32
_OTHERS = 0o077

_logger = logging.getLogger("agentos.store")


def load_key(given: bytes | str | None, place: StorePlace) -> bytes:
    """Return the key for the store at *place*: the given one, else the environment's, else its file's."""
    if given is not None:
        return _long_enough(given, "the key given to the store")
    if named := os.environ.get(VARIABLE):
        return _long_enough(named, f"the key in {VARIABLE}")
    if not place.is_durable:
        return secrets.token_bytes(_SIZE)
    file = key_file(place)
    try:
        return _from_file(file)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StoreError(
            f"the store's key at {file} can't be read or made: {reason}. Make that folder writable, or set {VARIABLE}"
        ) from None


def key_file(place: StorePlace) -> Path:
    """Return where the key of a store is: beside its file, or for a server in the user's data folder."""
    if place.path is not None:
        return place.path.with_name(place.path.name + ".key")
    server = place.shown.partition("://")[2]
    return data_folder() / "keys" / f"{hashlib.sha256(server.encode()).hexdigest()[:16]}.key"


def _long_enough(key: bytes | str, what: str) -> bytes:
    key = key.encode("utf-8", "surrogatepass") if isinstance(key, str) else bytes(key)
    if len(key) < SHORTEST:
        raise StoreError(f"{what} is too short: it has {len(key)} bytes and needs at least {SHORTEST}")
    return key


def _from_file(file: Path) -> bytes:
    with contextlib.suppress(FileNotFoundError):
        return _read(file)
    _make(file)
    return _read(file)


def _read(file: Path) -> bytes:
    with file.open("rb") as stream:
        if os.name == "posix" and os.fstat(stream.fileno()).st_mode & _OTHERS:
            _logger.warning("the store's key can be read by other users of this machine: chmod 600 %s", file)
        text = stream.read(_SIZE * 2 + 2)
    try:
        key = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != _SIZE:
        raise StoreError(
            f"{file} does not hold a store's key ({_SIZE} bytes in hex). Restore it from a backup, or set {VARIABLE}; "
            "without the old key, what is stored counts as changed by others"
        )
    return key


def _make(file: Path) -> None:
    """Make *file* with a new key in it. Where two processes do so at once, one key stays, and it is always whole."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        make_file(file, f"{secrets.token_hex(_SIZE)}\n".encode("ascii"), private=True)
