"""The reference, made from the code when the site is built.

api.py        every public name
cli.py        every command of `agentos`
files.py      the keys of every file
tables.py     variables, events, errors, kinds, exit codes, limits, secrets
packs.py      the curated packs: an index, and their READMEs
pack_facts.py what packs offer, need and weigh, found by loading them
markdown.py   small parts of Markdown

`pages` returns everything; `write` puts it beneath `docs/reference`, where Sphinx finds it and git does not.
`python -m _generate` in `docs/` writes `docs/packs-index.md`, which git has.
"""

from pathlib import Path

from _generate import api, cli, files, packs, tables

__all__ = ["pages", "write"]


def pages() -> dict[str, str]:
    """Return the text of every generated page, by its path beneath `docs/reference`."""
    return {**api.pages(), **cli.pages(), **files.pages(), **tables.pages(), **packs.pages()}


def write(folder: Path) -> None:
    """Bring *folder* up to date: pages that did not change are left alone, those of earlier builds are removed."""
    made = {folder / path: text for path, text in pages().items()}
    for old in folder.rglob("*.md"):
        if old not in made:
            old.unlink()
    for file, text in made.items():
        if not file.exists() or file.read_text("utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
