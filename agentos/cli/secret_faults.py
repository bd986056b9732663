"""What may be wrong with the secrets that `agentos secrets set` keeps. No value is told."""

import os
import stat
from collections.abc import Iterator
from shlex import quote

from agentos.errors import SecretError
from agentos.secrets.vaults import KEY, SecretVault

_OTHERS = 0o077


def faults_of_kept() -> Iterator[tuple[str, str]]:
    """Yield what is wrong with what is kept, each with the cure: files that can't be read, or that others can use."""
    vault = SecretVault()
    yield from dict.fromkeys(_faults_of_values(vault))
    for file in (vault.path, vault.path.with_name(KEY)):
        if os.name == "posix" and file.is_file() and stat.S_IMODE(file.stat().st_mode) & _OTHERS:
            yield f"{file} is open to other users", f"chmod 600 {quote(str(file))}"


def _faults_of_values(vault: SecretVault) -> Iterator[tuple[str, str]]:
    try:
        kept = list(vault.kept())
    except (SecretError, OSError) as error:
        yield _fault(error)
        return
    for id in kept:
        try:
            vault(id)
        except (SecretError, OSError) as error:
            yield _fault(error, id)


def _fault(error: SecretError | OSError, id: str | None = None) -> tuple[str, str]:
    """Return what is wrong, and the cure."""
    if isinstance(error, OSError):
        return f"{error.filename} can't be read: {error.strerror}", "give this user the right to"
    if error.hint is None:
        return error.message, f"agentos secrets unset {quote(str(id))}, and set it again"
    return error.message, f"agentos secrets set {quote(str(id))}" if error.hint == "set it again" else error.hint
