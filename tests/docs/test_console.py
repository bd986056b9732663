"""What stands behind a `$` on the pages that show the command is run, in order, and says what stands there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {"README.md": 3, "docs/first-pack.md": 10, "docs/for-operators.md": 10, "docs/cli.md": 30}
"""The pages, and how many commands they show at least."""
FILES_OF_OTHERS = {"README.md"}
"""Where the files that are shown belong to an example of their own."""
ELSEWHERE = re.compile(r"make (run|test)\b")
"""What is run by a test of its own, or is how this one is run."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"# ([\w./-]+\.\w+)\n")


def steps(page):
    """Yield every file that a page shows, and every command with what it says."""
    for language, body in BLOCK.findall((ROOT / page).read_text("utf-8")):
        named = NAME.match(body)
        if language == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                line, _, said = part.partition("\n")
                if not ELSEWHERE.match(line):
                    yield "command", line, said
        elif named is not None and page not in FILES_OF_OTHERS:
            yield "file", named[1], body


def fits(said, expected):
    """Tell whether a text is what the page says; `...` stands for anything, spaces between columns do not count."""
    pattern = ".*".join(re.escape(" ".join(part.split(" "))) for part in expected.split("..."))
    return re.fullmatch(re.sub(r"(\\ )+", r"\\ +", pattern), said, re.DOTALL) is not None


@pytest.mark.proof
@pytest.mark.parametrize("page", PAGES)
def test_the_page_says_what_happens(page, shell):
    here, run = shell
    wrong = []
    for kind, name, body in steps(page):
        if kind == "file":
            (here / name).write_text(body, "utf-8")
        elif not fits(said := run(name), body):
            wrong.append(f"$ {name}\n{said}--- but the page says:\n{body}")

    assert "\n".join(wrong) == ""


@pytest.mark.parametrize("page", PAGES)
def test_the_page_shows_a_good_deal(page):
    assert sum(kind == "command" for kind, *_ in steps(page)) >= PAGES[page]
