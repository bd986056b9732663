"""How the site is built: offline, from these pages and from the code. Warnings are errors (`make docs`)."""

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
exclude_patterns = ["_generate", "schemas"]
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


def setup(app: Any) -> None:
    """Make the reference before anything is read."""
    app.connect("builder-inited", lambda app: _generate.write(Path(app.srcdir) / "reference"))
