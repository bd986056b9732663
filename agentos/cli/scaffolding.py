"""What `init` and `new pack` write: templates filled in, in folders that appear whole or not at all."""

import errno
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import attrs

from agentos._version import __version__
from agentos.base.atomic_files import draft_of, sync_folder, undisturbed, write_file

FLAVOURS: Mapping[str, str] = {
    "tool": "Counts the words of a text.",
    "toolset": "Writes notes down and reads them again.",
    "wrapper": "Says in the log how the tool beneath it ended.",
    "guardrail": "Hides the numbers of tickets in what is answered.",
    "middleware": "Says in the log which calls take long.",
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


_NAMES = ("Descriptor", "ExtensionPack", "PackContext", "ToolContext", "ToolResult", "tool")
"""What a wrapper imports, whatever it wraps."""


@attrs.frozen(kw_only=True)
class WrappedTool:
    """What a wrapper has to know of the tool that it stands above: `rules` is empty if everybody may call it."""

    schema: Mapping[str, Any] = attrs.field(repr=False)
    effect: str
    rules: tuple[str, ...] = ()

    def values(self) -> dict[str, str]:
        """Return what stands in the templates."""
        public = () if self.rules else ("PUBLIC",)
        return {
            "effect": self.effect,
            "access": json.dumps(self.rules) if self.rules else "PUBLIC",
            "names": ", ".join((*public, *_NAMES)),
            "beneath_names": ", ".join((*public, "ExtensionPack", "Tool")),
            "schema": json.dumps(self.schema, indent=2),
            "sample": self.sample(),
        }

    def sample(self) -> str:
        """Return arguments that fit its schema, as TOML; empty if none can be made or written so."""
        import tomlkit

        from agentos.testing.hostile import valid_arguments

        try:
            return tomlkit.dumps(next(iter(valid_arguments(self.schema)), {})).strip()
        except ValueError:  # null
            return ""


ANSWERING = WrappedTool(
    schema={
        "type": "object",
        "properties": {"query": {"type": "string", "maxLength": 1_000, "description": "What to answer."}},
        "required": ["query"],
        "additionalProperties": False,
    },
    effect="read",
)
"""What is wrapped as long as nobody knows the real tool."""


def make_distribution(
    folder: Path, name: str, flavour: str, tool: str | None = None, wrapped: WrappedTool = ANSWERING
) -> list[str]:
    """Make the distribution of a pack at *folder*, which must not be there yet; return its files.

    *wrapped* is what a wrapper called *tool* is to stand above.
    """
    module = f"agentos_pack_{name.replace('-', '_')}"
    values = {
        "name": name,
        "module": module,
        "distribution": f"agentos-pack-{name}",
        "description": FLAVOURS[flavour],
        "tool": tool or ("web_search" if flavour == "wrapper" else name.replace("-", "_")),
        "agentos": ".".join(__version__.split(".")[:2]),
        **(wrapped.values() if flavour == "wrapper" else {}),
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
        **({f"tests/beneath.{end}": f"beneath.{end}" for end in ("py", "json")} if flavour == "wrapper" else {}),
    }
    with new_folder(folder) as draft:
        contents = {path: filled(template, values) for path, template in files.items()}
        contents[f"{module}/py.typed"] = b""
        for path, data in contents.items():
            (draft / path).parent.mkdir(parents=True, exist_ok=True)
            write_file(draft / path, data)
    return sorted(contents)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give a folder to fill, which becomes *path* at the end of the block; raise FileExistsError if that is taken."""
    if path.exists() or path.is_symlink():
        raise FileExistsError(errno.EEXIST, "is there already", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_of(path)
    try:
        draft.mkdir()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None  # nobody knows the draft by its name
    try:
        yield draft
        for folder in [draft, *(one for one in draft.rglob("*") if one.is_dir())]:
            sync_folder(folder)
        draft.rename(path)  # refused if somebody made it meanwhile, unless they made an empty folder
    except BaseException as error:  # Ctrl-C too must not leave litter
        if isinstance(error, OSError) and (error.filename is None or str(draft) in str(error.filename)):
            error.filename = str(path)  # as above
        with undisturbed():
            shutil.rmtree(draft, ignore_errors=True)
        raise
    sync_folder(path.parent)
