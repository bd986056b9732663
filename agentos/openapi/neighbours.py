"""The other files of a document: those in its folder that references lead to.

Every reference is written once as it counts from the document itself: `#/components/x` is in it, `models/pet.yaml#/Cat`
is in a file beneath its folder. What leads elsewhere stays as it is, and is refused where it is followed.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import attrs

from agentos.openapi.document_parts import refuse, shown
from agentos.openapi.document_text import ReadingLimits, read_file
from agentos.schema.build import Json

FILE_LIMIT = 5_000
"""How many files a document may have beside its own."""
_KINDS = (".json", ".yaml", ".yml")
_ELSEWHERE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")


@attrs.frozen(eq=False)
class Neighbours:
    """The files that were read, and why others were not, by their paths from the document's folder."""

    roots: dict[str, Any] = attrs.field(factory=dict, repr=False)
    faults: dict[str, str] = attrs.field(factory=dict)


def read_neighbours(path: Path, root: Json, limits: ReadingLimits) -> Neighbours:
    """Read every file of the document at *path* that its references lead to, and theirs."""
    found = Neighbours()
    own = path.name
    waiting = sorted(_settle(root, "", own))
    while waiting:
        name = waiting.pop()
        if name in found.roots or name in found.faults:
            continue
        if len(found.roots) + len(found.faults) == FILE_LIMIT:
            refuse(limits.name, f"it refers to more than {FILE_LIMIT} other files")
        try:
            found.roots[name] = read_file(_inside(path.parent, name), limits)
        except ValueError as error:
            found.faults[name] = str(error)
        else:
            waiting += sorted(_settle(found.roots[name], name, own))
    return found


def _inside(folder: Path, name: str) -> Path:
    """Return the file called *name*, which may be no link out of the folder, and nothing but a document."""
    if not name.lower().endswith(_KINDS):
        raise ValueError(f"expected a file ending in {', '.join(_KINDS)}")
    try:
        path = (folder / name).resolve()
        is_inside, is_file = path.is_relative_to(folder.resolve()), path.is_file()
    except (OSError, ValueError):
        raise ValueError("can't be read") from None
    if not is_inside:
        raise ValueError("leads out of the document's folder")
    if not is_file:
        raise ValueError("there is no such file")
    return path


def _settle(root: Any, here: str, own: str) -> set[str]:
    """Write every reference of the file *here* as it counts from the document, called *own*; return the files named."""
    named = set()
    for node in _mappings(root):
        if isinstance(given := node.get("$ref"), str):
            file, mark, pointer = _settled(given, here, own)
            if mark is not None:
                node["$ref"] = f"{file}{mark}{pointer}"
                named.add(file)
    return named - {""}


def _settled(given: str, here: str, own: str) -> tuple[str, str | None, str]:
    """Return file, # and pointer of a reference; without a mark of None it leads elsewhere."""
    path, mark, pointer = given.partition("#")
    if not path:
        return here, mark, pointer
    file = posixpath.normpath(posixpath.join(posixpath.dirname(here), unquote(path)))
    if _ELSEWHERE.match(path) or file.startswith("..") or not file.isprintable() or set("#?\\") & set(file):
        return "", None, ""
    if file == own:
        return "", "#", pointer
    return file, mark if pointer else "", pointer


def _mappings(root: Any) -> Iterator[Json]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def reason_to_refuse(file: str, reference: str, found: Neighbours | None) -> str:
    """Say why a reference to a file is not followed."""
    if found is None:
        return (
            f"refers to {shown(reference)}; only references inside of the document (#/...) are followed, so bundle it "
            "into one"
        )
    why = found.faults.get(file, "only references inside of the document and to files in its folder are followed")
    return f"refers to {shown(reference)}; {why}"
