"""What README and docs show is run: files are written, programs are run, their output is what is printed there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"# ([\w.-]+\.(?:py|toml|yaml|json))\n")


def programs(page):
    """Yield (files, program, expected output) for every block of text that follows a program."""
    files, program = {}, None
    for language, body in BLOCK.findall(page.read_text("utf-8")):
        named = NAME.match(body)
        if named:
            files[named[1]] = body
        if language == "python" and (named is None or named[1] == "host.py"):
            program = body
        if language == "text":
            yield dict(files), program, body
            files, program = {}, None


CASES = [
    pytest.param(files, program, expected, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, (files, program, expected) in enumerate(programs(page))
]


@pytest.mark.parametrize(("files", "program", "expected"), CASES)
def test_a_program_of_the_docs_prints_what_the_docs_say(files, program, expected, tmp_path):
    for name, body in files.items():
        (tmp_path / name).write_text(body, "utf-8")
    clean = {name: value for name, value in os.environ.items() if not name.endswith(("_KEY", "_TOKEN"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        env=clean,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.stderr == ""
    assert done.stdout == expected


def test_every_python_block_of_the_docs_is_followed_by_its_output():
    """A block that nobody runs can't be trusted."""
    for page in PAGES:
        blocks = BLOCK.findall(page.read_text("utf-8"))
        runnable = [
            body
            for language, body in blocks
            if language == "python" and not (NAME.match(body) and "host.py" not in body[:10])
        ]
        assert len(runnable) == len(list(programs(page))), page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.proof
def test_make_run_shows_the_stacks():
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "run.py")],
        env={**os.environ, "COLUMNS": "160", "GIPHY_API_KEY": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stdout
    for words in (
        *("active", "wrapped", "gated", "disabled", "GIPHY_API_KEY", "did you mean 'calculator'?"),
        *("How do you do?", "InvalidArguments", "is denied by", "UnknownTool", "waits for approval", "noted"),
        *('["Buy milk"]', "The chain is whole"),
    ):
        assert words in done.stdout
