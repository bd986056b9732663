"""What `init` and `new pack` write: templates filled in, in folders that appear whole or not at all."""

import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from agentos._version import __version__
from agentos.cli.atomic_folders import new_folder, write_new

FLAVOURS: Mapping[str, str] = {
    "tool": "Counts the words of a text.",
    "toolset": "Writes notes down and reads them again.",
    "wrapper": "Remembers the answers of the tool beneath it.",
    "bridge": "Offers functions of a library as tools.",
}
"""Kinds of packs to begin with, and what each does as long as nothing else is written."""

LONGEST = 40
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def fault_of_pack_name(name: str) -> str | None:
    """Say what keeps *name* from naming a pack that is to be made; None if nothing does."""
    if _NAME.fullmatch(name) and len(name) <= LONGEST:
        return None
    near = re.sub(r"-+", "-", re.sub(r"[^a-z0-9]+", "-", name.lower())).strip("-0123456789")[:LONGEST].strip("-")
    hint = f"; how about {near!r}?" if near and near != name else ""
    return f"expected at most {LONGEST} small letters, digits and single dashes, a letter first, got {name!r}{hint}"


def filled(template: str, values: Mapping[str, str]) -> bytes:
    """Return a template with *values* in their places."""
    text = resources.files("agentos.cli").joinpath("scaffold", f"{template}.txt").read_text("utf-8")
    for name, value in values.items():
        text = text.replace(f"@@{name}@@", value)
    return text.encode("utf-8")


def make_distribution(folder: Path, name: str, flavour: str, tool: str | None = None) -> list[str]:
    """Make the distribution of a pack at *folder*, which must not be there yet; return its files."""
    module = f"agentos_pack_{name.replace('-', '_')}"
    values = {
        "name": name,
        "module": module,
        "distribution": f"agentos-pack-{name}",
        "description": FLAVOURS[flavour],
        "tool": tool or ("web_search" if flavour == "wrapper" else name.replace("-", "_")),
        "agentos": ".".join(__version__.split(".")[:2]),
    }
    files = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        ".gitignore": "gitignore",
        ".github/workflows/ci.yml": "ci.yml",
        "conformance.toml": f"conformance_{flavour}.toml",
        f"{module}/__init__.py": f"{flavour}.py",
        f"tests/test_{module.removeprefix('agentos_pack_')}.py": f"test_{flavour}.py",
        **({f"{module}/library.py": "library.py"} if flavour == "bridge" else {}),
        **({"tests/beneath.py": "beneath.py"} if flavour == "wrapper" else {}),
    }
    with new_folder(folder) as draft:
        for path, template in files.items():
            write_new(draft / path, filled(template, values))
        write_new(draft / module / "py.typed", b"")
    return sorted([*files, f"{module}/py.typed"])
