"""The site is built as `make docs` builds it: from what is there, without the network, and warnings are errors."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = ("sphinx", "furo", "myst_parser")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (the dependency group docs)"),
]

# A build that asked for the network would fail at once, and say so.
OFFLINE = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    makefile = (ROOT / "Makefile").read_text("utf-8")
    line = re.search(r"^docs:.*\n\t\S+ (-m sphinx .+)$", makefile, re.MULTILINE)[1]
    words = line.replace("build/docs", str(folder / "html")).replace("build/doctrees", str(folder / "trees")).split()
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, **OFFLINE},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return folder / "html"


def test_warnings_are_errors():
    assert re.search(r"^\t.*sphinx -W ", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def test_every_page_is_built(site):
    pages = [file.stem for file in (ROOT / "docs").glob("*.md")]

    assert [name for name in pages if not (site / f"{name}.html").is_file()] == []


def test_every_page_can_be_reached_from_the_first(site):
    seen, waiting = set(), [site / "index.html"]
    while waiting:
        page = waiting.pop()
        if page in seen or not page.is_file():
            continue
        seen.add(page)
        targets = re.findall(r'<a class="reference internal" href="([^"#]+)', page.read_text("utf-8"))
        waiting += [(page.parent / target).resolve() for target in targets]
    built = {file.resolve() for file in site.rglob("*.html") if file.stem not in ("genindex", "search", "py-modindex")}

    assert sorted(str(file.relative_to(site)) for file in built - seen) == []


def test_nothing_is_fetched_by_a_page(site):
    loaded = [
        (file.name, address)
        for file in site.rglob("*.html")
        for address in re.findall(
            r'<(?:link|script|img)\b[^>]*(?:href|src)="(https?://[^"]+)"', file.read_text("utf-8")
        )
    ]

    assert loaded == []


def test_every_public_name_can_be_linked_to(site):
    from sphinx.util.inventory import InventoryFile

    import agentos

    found = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    names = {name for kind in found.data if kind.startswith("py:") for name in found.data[kind]}

    assert [name for name in agentos.__all__ if f"agentos.{name}" not in names] == []


def test_the_changelog_is_on_the_site(site):
    assert "What a user will see" in (site / "changelog.html").read_text("utf-8")
