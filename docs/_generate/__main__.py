"""Write the pages that git has: `python -m _generate` in `docs/`."""

from pathlib import Path

from _generate.pack_facts import all_facts
from _generate.packs import kept_index

if __name__ == "__main__":
    (Path(__file__).parents[1] / "packs-index.md").write_text(kept_index(all_facts()), "utf-8")
