"""Links within the repository lead somewhere: to a file that is there, and to a heading that is in it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    file
    for pattern in ("*.md", "docs/*.md", "packs/*/README.md", "benchmarks/*.md", "docs/reference/**/*.md")
    for file in ROOT.glob(pattern)
    if file.parent not in (ROOT / "docs/reference/api", ROOT / "docs/reference/packs")  # made by the site alone
)
FENCED = re.compile(r"^( *)(`{3,}|:{3,}).*?^\1\2$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
SITE_ONLY = re.compile(r"(?<![`\w/])\{[a-z:]+\}`\w|^(?:`{3,}|:{3,}) *\{.*|^\([\w-]+\)=$", re.MULTILINE)
"""A role, a directive, or a target of MyST."""
HEADING = re.compile(r"^#{1,6} (.+?)\s*$", re.MULTILINE)


def prose(text):
    """Return a page without its blocks of code."""
    return FENCED.sub("", text)


def slug(heading):
    """Return the anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").strip().lower()).replace(" ", "-")


def anchors(text):
    """Return the anchors of a page; a heading that is there twice gets a number."""
    found = []
    for heading in HEADING.findall(FENCED.sub("", text)):
        plain = slug(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading))
        found.append(plain if plain not in found else f"{plain}-{found.count(plain)}")
    return found


def links(text):
    """Return the targets of the links within the repository."""
    return [target for target in LINK.findall(INLINE.sub("``", prose(text))) if "://" not in target]


def faults(file, text, read):
    """Return what is wrong with the links of a page."""
    found = []
    for target in links(text):
        path, _, anchor = target.partition("#")
        place = (file.parent / path).resolve() if path else file.resolve()
        there = read(place)
        if there is None:
            found.append(f"{target}: there is no such file")
        elif anchor and anchor not in anchors(there):
            found.append(f"{target}: there is no such heading")
    return found


def read_file(place):
    if place.is_dir() or (place.is_file() and place.suffix == ".png"):
        return ""
    return place.read_text("utf-8") if place.is_file() else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert faults(page, page.read_text("utf-8"), read_file) == []


@pytest.mark.proof
def test_links_of_generated_pages_lead_somewhere(reference):
    made = {(ROOT / "docs" / "reference" / path).resolve(): text for path, text in reference.items()}
    wrong = [
        fault
        for file, text in made.items()
        for fault in faults(file, text, lambda one: made.get(one) or read_file(one))
    ]

    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_nothing_that_only_the_site_understands(page):
    assert SITE_ONLY.findall(page.read_text("utf-8")) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One\n[a](#one) [b](#two) [c](gone.md) [d](page.md#one) [e](https://example.org/x)\n`[f](code.md)`\n"
    )

    assert faults(page, page.read_text(), read_file) == [
        "#two: there is no such heading",
        "gone.md: there is no such file",
    ]
