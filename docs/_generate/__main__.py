"""Write the pages that git has, or say which are not as the code is: `python -m _generate [reference|packs|check]`.

`python -m _generate screenshots` takes the pictures of the studio; that needs Chromium.
"""

import asyncio
import sys
from pathlib import Path

from _generate import kept_pages
from _generate.pack_facts import all_facts
from _generate.packs import kept_index

HERE = Path(__file__).parents[1]


def main(what: str) -> int:
    """Write the reference or the index of packs; with `check`, return 1 if the reference is out of date."""
    if what == "screenshots":
        from _generate.screenshots import write

        asyncio.run(write())
        return 0
    if what == "packs":
        (HERE / "packs-index.md").write_text(kept_index(all_facts()), "utf-8")
        return 0
    made = {HERE / "reference" / path: text for path, text in kept_pages().items()}
    stale = [file for file, text in made.items() if not file.is_file() or file.read_text("utf-8") != text]
    stale += [file for file in (HERE / "reference" / "names").glob("*.md") if file not in made]
    for file in stale:
        sys.stdout.write(f"{file.relative_to(HERE)}\n")
        if what != "check":
            _put(file, made.get(file))
    return int(what == "check" and bool(stale))


def _put(file: Path, text: str | None) -> None:
    if text is None:
        file.unlink()
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "reference"))
