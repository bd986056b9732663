"""Give tests a tree and its tools."""

import pytest


@pytest.fixture
def tree(tmp_path):
    """Return a folder with a few files, and beside it one that must not be reached."""
    root = tmp_path / "root"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("one")
    (root / "src" / "a.txt").write_text("two")
    (root / "src" / "deep" / "b.txt").write_text("three")
    (root / ".env").write_text("TOKEN=top-secret")
    (tmp_path / "outside.txt").write_text("outside")
    return root


@pytest.fixture
def tools(tree):
    """Return a function that makes the tools over the tree: by name, callable without a host."""
    from agentos_pack_archive._tools import create_tools
    from agentos_pack_archive.options import ArchiveOptions

    def make(**options):
        made = ArchiveOptions(root=tree, **options)
        return {tool.name: tool for tool in create_tools(made.open_root(), made.limits)}

    return make


@pytest.fixture
def everything(tree):
    """Return a function that tells all that is in the tree and beside it: the bytes of files, None for folders."""

    def look():
        paths = sorted(tree.parent.rglob("*"))
        return {
            str(path.relative_to(tree)) if path.is_relative_to(tree) else f"../{path.name}": _bytes(path)
            for path in paths
        }

    return look


def _bytes(path):
    return path.read_bytes() if path.is_file() and not path.is_symlink() else None
