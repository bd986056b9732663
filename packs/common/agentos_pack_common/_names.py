"""How paths are written, and what is said when one can't be used."""

import errno
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import attrs

from agentos import AgentOSError
from agentos_pack_common.texts import quoted

PATH_LIMIT = 4_096
NAME_LIMIT = 255
_DRIVE = re.compile(r"[A-Za-z]:")

Kind = Literal["bad", "outside", "hidden", "missing", "exists", "not_a_file", "not_a_folder", "read_only", "failed"]


class PathError(AgentOSError, ValueError):
    """A path that can't be used. The message names it as it was given, or from the root, never where the root is.

    bad: written so that it can't be one; outside: it leaves the root; hidden: secrets are kept there; missing, exists,
    not_a_file, not_a_folder: what is there is not what was expected; read_only: nothing is written here; failed: the
    system refuses, or the tree changed under way.
    """

    def __init__(self, kind: Kind, path: str, message: str) -> None:
        super().__init__(f"{quoted(path, 200)} {message}")
        self.kind: Kind = kind


@attrs.frozen
class Written:
    """A path as it is written: its names, and whether it must be a folder."""

    parts: tuple[str, ...]
    is_absolute: bool
    is_folder: bool


def read_path(path: str | os.PathLike[str]) -> Written:
    """Take a path apart; refuse what no file system of ours can hold."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(text, str):
        raise PathError("bad", type(text).__name__, "is no path; expected text")
    if not text:
        raise PathError("bad", text, "is empty; write . for the folder itself")
    if "\0" in text:
        raise PathError("bad", text, "has a NUL character in it")
    written = split(text)
    if encoded_length(text) > PATH_LIMIT or any(encoded_length(part) > NAME_LIMIT for part in written.parts):
        raise PathError("bad", text, f"is too long; a path has {PATH_LIMIT} bytes at most, a name {NAME_LIMIT}")
    return written


def split(text: str) -> Written:
    """Take a path apart, as the kernel would."""
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    is_folder = text.endswith(("/", "/.", "/..")) or text in (".", "..")
    return Written(parts, text.startswith("/"), is_folder)


def encoded_length(text: str) -> int:
    """Return the bytes of *text*."""
    if not is_text(text):
        raise PathError("bad", text, "is not valid text; names must be UTF-8")
    return len(text.encode())


def is_text(name: str) -> bool:
    """Tell whether a name is UTF-8; Python shows other bytes as half surrogate pairs."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_new(name: str, parts: Sequence[str]) -> None:
    """Refuse a name that would mislead whoever reads it, here or on another system."""
    where = "/".join(parts)
    if not name.isprintable() or any(unicodedata.category(char) == "Cf" for char in name):
        raise PathError("bad", where, "has control or invisible characters in its name; leave them out")
    if "\\" in name:
        raise PathError("bad", where, "has a backslash in its name; write / between folders")
    if _DRIVE.fullmatch(name):
        raise PathError("bad", where, "has a drive letter; write the path from the root folder, with /")
    if name != name.strip() or name.endswith("."):
        raise PathError("bad", where, "has a name that begins or ends with a blank, or ends with a dot")


_WORDS: dict[int, tuple[Kind, str]] = {
    errno.ENOENT: ("missing", "does not exist; list the folder to see what does"),
    errno.EEXIST: ("exists", "exists already; choose another name, or say that it may be replaced"),
    errno.ENOTEMPTY: ("exists", "is not empty"),
    errno.EISDIR: ("not_a_file", "is a folder"),
    errno.ENOTDIR: ("not_a_folder", "is not a folder, or lies beneath something that is not a folder"),
    errno.EACCES: ("failed", "may not be used: permission denied"),
    errno.EPERM: ("failed", "may not be used: permission denied"),
    errno.EROFS: ("read_only", "can't be changed: the file system is read-only"),
    errno.ENOSPC: ("failed", "was not written: there is no room left"),
    errno.EDQUOT: ("failed", "was not written: the quota is used up"),
    errno.EFBIG: ("failed", "was not written: it is larger than a file may be here"),
    errno.ELOOP: ("failed", "changed while it was used; try again"),
    errno.ENAMETOOLONG: ("bad", "has a name that is too long"),
    errno.EINVAL: ("bad", "can't be used for this"),
    errno.EXDEV: ("failed", "lies on another file system; copy it instead"),
    errno.EMFILE: ("failed", "can't be opened now: too many files are open; try again later"),
    errno.ENFILE: ("failed", "can't be opened now: too many files are open; try again later"),
}


@contextmanager
def telling(path: str) -> Iterator[None]:
    """Turn what the system says of *path* into a PathError; its own words would tell where the root is."""
    try:
        yield
    except OSError as error:
        number = error.errno or 0
        kind, message = _WORDS.get(number, ("failed", f"can't be used: {os.strerror(number)}"))
    else:
        return
    raise PathError(kind, path, message)
