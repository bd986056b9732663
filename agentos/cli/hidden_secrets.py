"""Values of a manifest as they may be shown to anybody: what may be a secret is hidden."""

import re
from collections.abc import Mapping
from typing import Any

from agentos.errors import StoreError

HIDDEN = "(hidden)"
_SOUNDS_SECRET = re.compile(
    r"token|secret|passw|pwd|credential|cookie|api[-_]?key|authoriz|auth(?!or)|private"
    r"|(?<![a-z])key$|(?-i:(?<=[a-z])Key$)|(?<![a-z])pin(?![a-z])",
    re.IGNORECASE,
)
_LOOKS_SECRET = re.compile(
    r"(?<=://)[^/@\s:]*:[^/\s]+(?=@)|\b(?:sk|pk|rk|ghp|gho|ghs|glpat|xox[abprs]|hf)[-_][A-Za-z0-9_-]{8,}"
    r"|\bAKIA[A-Z0-9]{12,}|(?<=\bBearer )[A-Za-z0-9._~+/=-]{8,}"
)
"""What is a secret wherever it stands: a password in an address, and keys in the forms that are in use."""
_BEHIND_NAME = re.compile(r"=|:\s*")
"""What stands between a name and its value in an argument: `--key=value`, `Name: value`."""
_REFERENCE = re.compile(r"\$\{secret:[^}]*\}")


def shown_tree(value: Any, at: tuple[str | int, ...]) -> Any:
    """Return a part of the manifest as it may be shown to anybody: what may be a secret is hidden, however deep."""
    if isinstance(value, Mapping) and not is_hidden(at):
        return {key: shown_tree(item, (*at, key)) for key, item in value.items()}
    if isinstance(value, list) and not is_hidden(at) and at[-1:] != ("args",):
        return [shown_tree(item, (*at, index)) for index, item in enumerate(value)]
    return shown_value(value, at)


def shown_value(value: Any, at: tuple[str | int, ...]) -> Any:
    """Return one value of the manifest as it may be shown to anybody: what may be a secret is hidden."""
    if at == ("store",) and isinstance(value, str):
        return shown_store(value)
    if is_hidden(at) and not (isinstance(value, str) and _REFERENCE.search(value)):
        return HIDDEN if not isinstance(value, Mapping) else dict.fromkeys(value, HIDDEN)
    if isinstance(value, str):
        text = value.partition("?")[0] if at[-1:] == ("url",) else value
        return _LOOKS_SECRET.sub(HIDDEN, text)
    if at[-1:] == ("args",) and isinstance(value, list):
        return [_argument(value, index) for index in range(len(value))]
    return value


def is_hidden(at: tuple[str | int, ...]) -> bool:
    """Tell whether what stands at a path may be a secret: its own name or that of what is around it says so."""
    if "options" in at:
        return any(_SOUNDS_SECRET.search(str(part)) for part in at[at.index("options") + 1 :])
    return at[:1] == ("mcpServers",) and at[2:3] in (("env",), ("headers",)) and len(at) > 3  # noqa: PLR2004


def _argument(arguments: list[Any], index: int) -> Any:
    """Hide the argument of a command that sounds secret or looks so, or that follows one which sounds secret."""
    before, said = str(arguments[index - 1]) if index else "", arguments[index]
    if before.startswith("-") and not _BEHIND_NAME.search(before) and _SOUNDS_SECRET.search(before):
        return HIDDEN
    return _LOOKS_SECRET.sub(HIDDEN, _without_value(said)) if isinstance(said, str) else said


def _without_value(argument: str) -> str:
    """Hide what stands behind a name that sounds secret."""
    for found in _BEHIND_NAME.finditer(argument):
        if _SOUNDS_SECRET.search(argument[: found.start()]):
            return argument[: found.end()] + HIDDEN
    return argument


def shown_store(location: str | None) -> str | None:
    """Return where a store is, without the password in its URL."""
    from agentos.store.locations import place_of

    try:
        return None if location is None else location if "://" not in location else place_of(location).shown
    except StoreError:
        return HIDDEN
