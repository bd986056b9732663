"""Which of a repository's own settings count.

More than thirty settings name a program that git then runs, and every release adds some. So it is the other way round:
a few that only describe the repository are taken over, by name and by value, and git never sees the rest.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from agentos_pack_git_repo.places import GitError

_BOOLEAN: Final = re.compile(r"true|false|yes|no|on|off|1|0|", re.IGNORECASE)
_REFERENCE: Final = re.compile(r"\+?refs/[^\s~^:?\[\\]+(:refs/[^\s~^:?\[\\]+)?")
_NAME: Final = re.compile(r"[^\s-][^\s]*")

_OURS: Final = {
    "core": {
        # what would run a program, or read a file of the user's
        "hooksPath": "/dev/null",
        "fsmonitor": "false",
        "attributesFile": "/dev/null",
        "excludesFile": "/dev/null",
        "pager": "cat",
        "editor": "false",
        "sshCommand": "false",
        "askPass": "false",
        # what says something else than the objects and files themselves
        "commitGraph": "false",
        "untrackedCache": "false",
        # what takes memory
        "bigFileThreshold": "20m",
        "packedGitWindowSize": "32m",
        "packedGitLimit": "256m",
        "deltaBaseCacheLimit": "64m",
        "quotePath": "false",
        "logAllRefUpdates": "true",
        # how many milliseconds to wait for a reference that another process has locked
        "filesRefLockTimeout": "2000",
        "packedRefsTimeout": "2000",
        # names that mean .git on other systems
        "protectHFS": "true",
        "protectNTFS": "true",
    },
    "advice": {"graftFileDeprecated": "false"},
    "commit": {"gpgSign": "false"},
    "log": {"showSignature": "false"},
    "gc": {"auto": "0"},
    "maintenance": {"auto": "false"},
    "pack": {"threads": "1"},
    "index": {"threads": "1"},
    "diff": {"renames": "false", "ignoreSubmodules": "dirty", "submodule": "short"},
    "status": {"renames": "false", "submoduleSummary": "false"},
    "submodule": {"recurse": "false"},
}


def _one_of(*values: str) -> Callable[[str], bool]:
    return lambda value: value.lower() in values


_TAKEN: Final[Mapping[str, Callable[[str], bool]]] = {
    "core.repositoryformatversion": _one_of("0", "1"),
    "core.filemode": lambda value: bool(_BOOLEAN.fullmatch(value)),
    "core.symlinks": lambda value: bool(_BOOLEAN.fullmatch(value)),
    "core.ignorecase": lambda value: bool(_BOOLEAN.fullmatch(value)),
    "core.precomposeunicode": lambda value: bool(_BOOLEAN.fullmatch(value)),
    "core.autocrlf": _one_of("true", "false", "input"),
    "core.eol": _one_of("lf", "crlf", "native"),
    "extensions.objectformat": _one_of("sha1", "sha256"),
    "branch.remote": lambda value: bool(_NAME.fullmatch(value)),
    "branch.merge": lambda value: bool(_REFERENCE.fullmatch(value)),
    "remote.fetch": lambda value: bool(_REFERENCE.fullmatch(value)),
}
_HARMLESS_EXTENSIONS: Final = {
    "noop",
    "noop-v1",
    "partialclone",
    "worktreeconfig",
    "preciousobjects",
    "relativeworktrees",
}


def settings_of(listed: bytes) -> str:
    """Return the settings that git is given, from what `git config --list --null` says of the repository's own."""
    taken = [_written(*setting) for setting in _used_settings(listed)]
    ours = [_written(section, None, name, value) for section, names in _OURS.items() for name, value in names.items()]
    return "".join([*taken, *ours])


def _used_settings(listed: bytes) -> Iterator[tuple[str, str | None, str, str]]:
    for entry in listed.decode("utf-8", "replace").split("\0"):
        key, _, value = entry.partition("\n")
        section, _, rest = key.partition(".")
        middle, dot, name = rest.rpartition(".")
        subsection = middle if dot else None
        if section == "extensions":
            _check_extension(name, value)
        fits = _TAKEN.get(f"{section}.{name}")
        if fits is not None and fits(value) and (subsection or "").isprintable() and value.isprintable():
            yield section, subsection, name, value


def _check_extension(name: str, value: str) -> None:
    if name in _HARMLESS_EXTENSIONS or name == "objectformat" or (name, value) == ("refstorage", "files"):
        return
    raise GitError(f"repo: it uses the extension {name[:60]!r}, which this pack does not know")


def _written(section: str, subsection: str | None, name: str, value: str) -> str:
    head = f"[{section}]" if subsection is None else f'[{section} "{_escaped(subsection)}"]'
    return f'{head}\n\t{name} = "{_escaped(value)}"\n'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
