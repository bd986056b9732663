"""Give tests a tree, its tools and a host."""

import pytest


@pytest.fixture
def tree(tmp_path):
    """Return a folder with a few files, and beside it one that must not be reached."""
    root = tmp_path / "root"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "src" / "main.py").write_text("import os\n\nprint('hello')\n")
    (root / "src" / "deep" / "notes.md").write_text("# Notes\nhello there\n")
    (root / ".env").write_text("TOKEN=top-secret\n")
    (tmp_path / "outside.txt").write_text("outside secret\n")
    return root


@pytest.fixture
def tools(tree):
    """Return a function that makes the tools over the tree: by name, callable without a host."""
    from agentos_pack_files._tools import create_tools
    from agentos_pack_files.options import FilesOptions

    def make(**options):
        made = FilesOptions(root=tree, **options)
        return {tool.name: tool for tool in create_tools(made.open_root(), made)}

    return make
