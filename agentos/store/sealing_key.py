"""The key that seals what is stored: given, from the environment, or from a file that is made once.

A store that was begun gets no other key: what is in it would count as changed by others.
"""

import contextlib
import hashlib
import logging
import os
import secrets
from pathlib import Path

from agentos.base.atomic_files import make_file
from agentos.base.full_disks import is_full, reason, way_out
from agentos.errors import StoreError
from agentos.store.locations import StorePlace, data_folder

VARIABLE = "AGENTOS_STORE_KEY"
MARK = ".begun"
"""How the file ends that says, beside the key, that a log was begun."""
SHORTEST = 16
"""How many bytes a key has at least."""
_SIZE = 32
_OTHERS = 0o077

_logger = logging.getLogger("agentos.store")


def load_key(given: bytes | str | None, place: StorePlace, *, is_begun: bool = False) -> bytes:
    """Return the key for the store at *place*: the given one, else the environment's, else its file's.

    The file is made if it is not there, unless the store *is_begun*: then the key is gone, and StoreError says so.
    """
    if given is not None:
        return _long_enough(given, "the key given to the store")
    if named := os.environ.get(VARIABLE):
        return _long_enough(named, f"the key in {VARIABLE}")
    if not place.is_durable:
        return secrets.token_bytes(_SIZE)
    file = key_file(place)
    try:
        return _from_file(file, place, is_begun=is_begun)
    except OSError as error:
        way = way_out(error, "Make that folder writable")
        raise StoreError(
            f"the store's key at {file} can't be read or made: {reason(error)}. {way}, or set {VARIABLE}",
            unavailable=True,
            full_disk=is_full(error),
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
        said = f"{what} is too short: it has {len(key)} bytes and needs at least {SHORTEST}"
        raise StoreError(said, hint="Give the key that the store was begun with, or for a new store a longer one")
    return key


def _from_file(file: Path, place: StorePlace, *, is_begun: bool) -> bytes:
    with contextlib.suppress(FileNotFoundError):
        return _read(file)
    if is_begun:
        raise _gone(file, place)
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
            f"{file} does not hold a store's key ({_SIZE} bytes in hex)",
            hint=f"Restore it from a backup, or set {VARIABLE}; without the old key, what is stored counts as changed "
            "by others",
        )
    return key


def _gone(file: Path, place: StorePlace) -> StoreError:
    """Say that a key is gone, and how to begin anew on purpose."""
    mark = file.with_suffix(MARK)
    anew = f"move {place.path} away" if place.path is not None else "give agentos an empty database"
    return StoreError(
        f"the key of the store at {place.shown} is gone: there is no file {file}, and what is stored is sealed with it",
        hint=f"Restore that file from a backup or from another host that uses the store, or set {VARIABLE}; no new key "
        f"is made by itself. To begin a new store with a new key, {anew} and remove {mark}",
        unavailable=True,
    )


def _make(file: Path) -> None:
    """Make *file* with a new key in it. Where two processes do so at once, one key stays, and it is always whole."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        make_file(file, f"{secrets.token_hex(_SIZE)}\n".encode("ascii"), private=True)
