"""The reference, made from the code.

api.py        every public name
cli.py        every command of `agentos`
files.py      the keys of every file
tables.py     variables, events, errors, kinds, exit codes, limits, secrets
packs.py      the curated packs: an index, and their READMEs
pack_facts.py what packs offer, need and weigh, found by loading them
markdown.py   small parts of Markdown

`pages` returns all of the site's; `write` puts it beneath `docs/reference`. `kept_pages` returns those that git has,
for whoever reads them where the code is: the same, but that the API stands in `names/` in plain Markdown, and not in
`api/` with the directives of Sphinx. `make reference` writes them, and a test holds them to the code.
"""

from pathlib import Path

from _generate import api, cli, files, packs, tables

__all__ = ["kept_pages", "pages", "write"]


def pages() -> dict[str, str]:
    """Return the text of every generated page, by its path beneath `docs/reference`."""
    return {**api.pages(), **cli.pages(), **files.pages(), **tables.pages(), **packs.pages()}


def kept_pages() -> dict[str, str]:
    """Return the text of every page beneath `docs/reference` that git has."""
    return {**api.kept_pages(), **cli.pages(), **files.pages(), **tables.pages()}


def write(folder: Path) -> None:
    """Bring *folder* up to date: pages that did not change are left alone, those of earlier builds are removed."""
    made = {folder / path: text for path, text in pages().items()}
    for old in folder.rglob("*.md"):
        if old not in made and old.parent.name != "names":
            old.unlink()
    for file, text in made.items():
        if not file.exists() or file.read_text("utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
