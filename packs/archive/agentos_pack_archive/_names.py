"""Names of members: what they would be as paths, what is wrong with them, and which two are one to a file system."""

import re
import unicodedata

from agentos_pack_common import plain

PREFIX = ".agentos-part-"
"""How files and folders begin that are not there yet; listings of a `Root` leave them out."""
PATH_CHARS = 1_000
_PART_BYTES = 255
_DEPTH = 100
_SHOWN = 200
_DRIVE = re.compile(r"[A-Za-z]:")


def normal(name: str) -> str:
    """Return a member's name as a path with slashes: without `.`, empty parts and a slash at its end."""
    return "/".join(part for part in name.replace("\\", "/").split("/") if part not in ("", "."))


def is_itself(name: str) -> bool:
    """Tell whether a name is that of the folder that is packed: many a tar begins with it."""
    return name.rstrip("/") == "."


def fault_of(name: str) -> str | None:
    """Say what makes a name unfit to be unpacked; None if nothing does."""
    slashed = name.replace("\\", "/")
    parts = slashed.split("/")
    if slashed.startswith("/"):
        return "its name is an absolute path"
    if _DRIVE.match(slashed):
        return "its name begins with a drive letter"
    if ".." in parts:
        return "its name leads out of the folder by '..'"
    if not normal(name):
        return "it has no name"
    return _fault_of_characters(name) or _fault_of_parts(name, parts)


def _fault_of_characters(name: str) -> str | None:
    if any("\ud800" <= char <= "\udfff" for char in name):
        return "its name is not UTF-8"
    if not name.isprintable() or any(unicodedata.category(char) == "Cf" for char in name):
        return "its name has control or invisible characters"
    return None


def _fault_of_parts(name: str, parts: list[str]) -> str | None:
    if any(part.startswith(PREFIX) for part in parts):
        return "its name is one that is used while unpacking"
    if any(_DRIVE.fullmatch(part) for part in parts):
        return "its name has a drive letter in it"
    if any(part != part.strip() or part.endswith(".") for part in normal(name).split("/")):
        return "its name has a part that begins or ends with a blank, or ends with a dot"
    if len(name) > PATH_CHARS or max(len(part.encode()) for part in parts) > _PART_BYTES:
        return "its name is too long"
    if len(parts) > _DEPTH:
        return f"it lies beneath more than {_DEPTH} folders"
    return None


def key_of(path: str) -> str:
    """Return what two paths have in common that some file system takes for one: case and composition do not count."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def shown(name: str) -> str:
    """Return a foreign name as it may be told: without what can't be seen, on one line, and not too long."""
    text = " ".join(plain(name).split()) or "(no name)"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
