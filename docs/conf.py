"""How the site is built: offline, from these pages and from the code. Warnings are errors (`make docs`)."""

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import _generate  # noqa: E402 - it stands beside this file

from agentos import __version__  # noqa: E402 - of this tree, whatever is installed

project = "agentos"
author = "The agentos authors"
project_copyright = "The agentos authors, Apache-2.0"
version = release = __version__

extensions = ["myst_parser"]
exclude_patterns = ["_generate", "schemas", "reference/names"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = [
    "misc.highlighting_failure",  # READMEs of packs show outputs that no lexer knows
    "myst.header",  # and begin where they like
    "ref.python",  # one name may be public in two packages, such as Finding
]

add_module_names = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"

smartquotes = False  # --json is no dash

html_theme = "furo"
html_title = f"agentos {release}"
html_copy_source = False
html_show_sphinx = False


CONTENTS: dict[str, dict[str, str]] = {
    "index": {
        "Start": "why installing first-pack first-hour",
        "Host developers": "for-hosts hosts curated access interop turns mcp-server mcp-http projection",
        "Pack authors": (
            "for-authors packs tools kinds memory personas channels bus workflows validation workers testing"
        ),
        "Operators": "for-operators operators studio curated cli cli-tools mcp-servers openapi",
        "Understand": "stacks architecture security comparison benchmarks glossary",
        "Look up": "reference changelog contributing",
    },
    "curated": {"": "packs-index"},
    "reference": {
        "": "reference/api/index reference/cli reference/files/index reference/variables reference/events "
        "reference/errors reference/kinds reference/exit-codes reference/limits reference/secrets reference/packs/index"
    },
    "reference/files/index": {"": "manifest overrides secrets lock"},
}
"""What stands beneath a page, by captions. The pages do not say it: elsewhere than on the site it would be litter."""
INCLUDED = {
    "benchmarks": "../benchmarks/README.md",
    "changelog": "../CHANGELOG.md",
    "contributing": "../CONTRIBUTING.md",
}
"""Pages that are another file on the site, and lead to it elsewhere."""


def _for_site(app: Any, page: str, source: list[str]) -> None:  # noqa: ARG001 - as Sphinx calls it
    """Give a page what only the site understands; public names are described there with what can be linked to."""
    if page in INCLUDED:
        source[0] = f"```{{include}} {INCLUDED[page]}\n```\n"
        return
    for caption, names in CONTENTS.get(page, {}).items():
        said = f":caption: {caption}\n" if caption else ""
        listed = "\n".join(name.removeprefix(f"{page.rpartition('/')[0]}/") for name in names.split())
        source[0] += f"\n```{{toctree}}\n{said}:hidden:\n\n{listed}\n```\n"
    if not page.startswith("reference/api/"):
        source[0] = re.sub(r"\]\((reference/)?names/([\w-]+\.md)\)", r"](\1api/\2)", source[0])


def setup(app: Any) -> None:
    """Make the reference before anything is read."""
    app.connect("builder-inited", lambda app: _generate.write(Path(app.srcdir) / "reference"))
    app.connect("source-read", _for_site)
