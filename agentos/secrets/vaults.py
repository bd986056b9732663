"""Where a person's secrets are kept between runs: in the OS keyring where one works, else in an encrypted file.

    secrets.json    which secrets are kept and where; those that no keyring takes are in it, each encrypted on its own
    secrets.key     the key of those, for the user alone

A `SecretVault` is a source of secrets like any other: `AgentOS(extension_secrets=SecretVault())`. The file keeps values
from whoever sees a backup or a screen; it keeps nothing from a program that runs as the same user.
"""

import contextlib
import json
import logging
import os
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from agentos.base.atomic_files import locked, make_file, replace_file
from agentos.base.foreign import Border, is_a
from agentos.errors import SecretError
from agentos.store.locations import data_folder

Where = Literal["keyring", "file"]

INDEX = "secrets.json"
KEY = "secrets.key"
SERVICE = "agentos"
"""Under which name values stand in a keyring; the user's name there is the secret's id."""
VALUE_LIMIT = 64 * 1024
"""How many characters a value may have."""
_SIZE_LIMIT = 16 * 1024 * 1024
_FORMAT = 1
_KEY_SIZE = 32
_NONCE_SIZE = 12
_GOOD_PRIORITY = 1
"""What keyrings say of themselves that keep values safe; those that fail, lose values or encrypt nothing say less."""
_OTHERS = 0o077
_RESTORE = "restore it, or delete it and set the secrets again"

_logger = logging.getLogger("agentos.secrets")


class SecretVault:
    """Keeps secrets for one user, and hands them out by id.

    folder: where the files are; by default the user's data folder. keyring: whether to use the OS keyring if it works.
    """

    def __init__(self, folder: str | Path | None = None, *, keyring: bool = True) -> None:
        self._folder = data_folder() if folder is None else Path(folder)
        self._uses_keyring = keyring

    @property
    def path(self) -> Path:
        """Return the file that says which secrets are kept."""
        return self._folder / INDEX

    def __repr__(self) -> str:
        return f"<SecretVault at {self.path}>"

    def __call__(self, id: str) -> str | None:
        """Return the value of *id*; None if none is kept. Raise SecretError if one is kept and can't be read."""
        kept = self._read().get(id)
        if kept is None:
            return None
        return _from_keyring(id) if kept["in"] == "keyring" else self._opened(id, kept)

    def kept(self) -> dict[str, Where]:
        """Return which secrets are kept, and where."""
        return {id: entry["in"] for id, entry in self._read().items()}

    def set(self, id: str, value: str) -> Where:
        """Keep *value*, and return where: in the keyring if it takes it and gives it back, else in the file."""
        if not isinstance(value, str) or not 0 < len(value) <= VALUE_LIMIT:
            raise SecretError(f"the secret {id!r}: expected text of 1 to {VALUE_LIMIT} characters")
        with self._changing() as entries:
            if self._uses_keyring and _kept_in_keyring(id, value):
                entries[id] = {"in": "keyring"}
                return "keyring"
            before = entries.get(id)
            entries[id] = {"in": "file", **self._sealed(id, value)}
        if before is not None and before["in"] == "keyring":
            _forgotten_by_keyring(id)
        return "file"

    def unset(self, id: str) -> bool:
        """Forget *id*; False if it is not kept."""
        with self._changing() as entries:
            kept = entries.pop(id, None)
        if kept is not None and kept["in"] == "keyring":
            _forgotten_by_keyring(id)
        return kept is not None

    # -- encryption ------------------------------------------------------------------------------------------------

    def _sealed(self, id: str, value: str) -> dict[str, str]:
        nonce = secrets.token_bytes(_NONCE_SIZE)
        sealed = _cipher(self._key(make=True)).encrypt(nonce, value.encode("utf-8", "surrogatepass"), _bound_to(id))
        return {"nonce": _text(nonce), "sealed": _text(sealed)}

    def _opened(self, id: str, entry: Mapping[str, Any]) -> str:
        from cryptography.exceptions import InvalidTag

        try:
            sealed = b64decode(entry["sealed"], validate=True)
            plain: bytes = _cipher(self._key()).decrypt(b64decode(entry["nonce"], validate=True), sealed, _bound_to(id))
        except (InvalidTag, ValueError):
            raise SecretError(
                f"the kept value of {id!r} can't be decrypted: {self.path} was changed, or {KEY} is another one",
                hint="set it again",
            ) from None
        return plain.decode("utf-8", "surrogatepass")

    def _key(self, *, make: bool = False) -> bytes:
        file = self._folder / KEY
        if make and not file.exists():
            with contextlib.suppress(FileExistsError):  # somebody else just did
                make_file(file, f"{secrets.token_hex(_KEY_SIZE)}\n".encode("ascii"), private=True)
        try:
            if os.name == "posix" and file.stat().st_mode & _OTHERS:
                _logger.warning("the key of kept secrets can be read by other users: chmod 600 %s", file)
            key = bytes.fromhex(file.read_text("ascii"))
        except FileNotFoundError:
            raise SecretError(f"{file} is gone, and with it what was kept", hint="set the secrets again") from None
        except ValueError:
            key = b""
        if len(key) != _KEY_SIZE:
            raise SecretError(f"{file} does not hold a key", hint=_RESTORE)
        return key

    # -- the file --------------------------------------------------------------------------------------------------

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            with self.path.open("rb") as stream:
                raw = stream.read(_SIZE_LIMIT + 1)
        except FileNotFoundError:
            return {}
        try:
            data = json.loads(raw.decode("utf-8"))
        except (ValueError, RecursionError):
            data = None
        if fault := _fault_of(data):
            raise SecretError(f"{self.path} can't be used: {fault}", hint=_RESTORE)
        entries: dict[str, dict[str, Any]] = data["secrets"]
        return entries

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, dict[str, Any]]]:
        """Lend what the file says to be changed; write it, whole and at once, when no error is raised meanwhile."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self._folder / f".{INDEX}.lock"):
            entries = self._read()
            before = json.dumps(entries)
            yield entries
            if json.dumps(entries) != before:
                text = json.dumps({"version": _FORMAT, "secrets": entries}, indent=2) + "\n"
                replace_file(self.path, text.encode("utf-8"), private=True)


def _bound_to(id: str) -> bytes:
    """Return what a sealed value is bound to: it can't be passed off as that of another secret."""
    return f"agentos secret {_FORMAT}\n{id}".encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ModuleNotFoundError:
        raise SecretError(
            "secrets can't be kept here: no OS keyring works, and the encrypted file needs a library: "
            "pip install cryptography"
        ) from None
    return AESGCM(key)


def _fault_of(data: Any) -> str | None:
    if not isinstance(data, dict) or not isinstance(data.get("secrets"), dict):
        return "it is not what was written there"
    if data.get("version") != _FORMAT:
        return f"it is of version {data.get('version')!r}, and this agentos knows {_FORMAT}"
    for id, entry in data["secrets"].items():
        fields = {"file": {"in", "nonce", "sealed"}, "keyring": {"in"}}.get(str(_place_of(entry)))
        if fields is None or set(entry) != fields or not all(isinstance(value, str) for value in entry.values()):
            return f"what it says of {id!r} makes no sense"
    return None


def _place_of(entry: Any) -> Any:
    return entry.get("in") if isinstance(entry, dict) else None


# -- the keyring -------------------------------------------------------------------------------------------------------


def keyring_fault() -> str | None:
    """Say why the OS keyring can't be used; None if nothing speaks against it."""
    with Border() as border:  # backends are foreign code, and some raise when they are looked at
        import keyring

        backend = keyring.get_keyring()
        priority = max((one.priority for one in getattr(backend, "backends", ())), default=backend.priority)
        return None if priority >= _GOOD_PRIORITY else "this machine has none that works"
    if is_a(border.raised, ModuleNotFoundError):
        return "the library keyring is not installed"
    return f"it fails ({_said(border.raised)})"


def _kept_in_keyring(id: str, value: str) -> bool:
    """Put a value into the keyring and read it back: some keyrings lose what they are given, and say nothing."""
    if keyring_fault() is not None:
        return False
    import keyring

    with Border() as border:  # a keyring is foreign code; there is another place
        keyring.set_password(SERVICE, id, value)
        if keyring.get_password(SERVICE, id) == value:
            return True
    if border.error is not None:
        said = _said(border.error)
        _logger.warning("the OS keyring does not take %r (%s); it goes into the encrypted file", id, said)
        return False
    _logger.warning("the OS keyring did not give %r back as it was; it goes into the encrypted file", id)
    return False


def _from_keyring(id: str) -> str:
    if (fault := keyring_fault()) is not None:
        raise SecretError(f"{id!r} is kept in the OS keyring, which can't be used now: {fault}")
    import keyring

    with Border() as border:  # a keyring is foreign code
        value = keyring.get_password(SERVICE, id)
    if border.error is not None:
        raise SecretError(f"{id!r} is kept in the OS keyring, which can't be read: {_said(border.error)}")
    if value is None:
        raise SecretError(f"{id!r} was kept in the OS keyring and is not there any more", hint="set it again")
    return str(value)


def _forgotten_by_keyring(id: str) -> None:
    with Border() as border:  # a keyring is foreign code
        import keyring

        keyring.delete_password(SERVICE, id)
    if border.error is not None:
        _logger.warning("the OS keyring may still hold %r: %s", id, _said(border.error))


def _said(error: BaseException) -> str:
    """Name what a keyring raised without its words: a value may be among them."""
    return type(error).__name__
