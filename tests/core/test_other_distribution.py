"""The distribution `agentos` on the public index is another project's, and writes into the same folder as ours."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import agentos

PACKAGE = Path(agentos.__file__).parent
FILES = ("__init__.py", "__init__.pyi", "_version.py", "base/__init__.py", "base/lazy_exports.py")


@pytest.fixture
def site(tmp_path):
    """Return a folder with as much of our package as is imported, as an installer leaves it."""
    for name in (*FILES, "base/other_distribution.py"):
        (tmp_path / "agentos" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE / name, tmp_path / "agentos" / name)
    (tmp_path / "agentos_host-0.1.0.dist-info").mkdir()
    (tmp_path / "agentos" / "cli").mkdir()
    return tmp_path


def install_other(site):
    (site / "agentos" / "cli.py").touch()
    (site / "agentos-0.2.0.dist-info").mkdir()


def said_by_import(site):
    """Return what is said on stderr when our package is imported from *site*."""
    words = [sys.executable, "-S", "-c", "import agentos"]
    environ = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(words, env=environ, cwd=site, capture_output=True, text=True, check=True)
    return done.stderr


def test_importing_ours_alone_says_nothing(site):
    assert said_by_import(site) == ""


def test_importing_ours_beside_the_other_says_so_with_the_cure_and_where(site):
    install_other(site)
    said = said_by_import(site)

    assert "another project's distribution, agentos 0.2.0, is installed in the same folder as agentos-host" in said
    assert "pip uninstall agentos, then install agentos-host again" in said
    assert said.startswith("<string>:1: ")


def test_what_the_other_left_behind_is_not_the_other(site):
    (site / "agentos" / "cli.py").touch()

    assert said_by_import(site) == ""


def test_ours_has_no_file_that_the_other_is_known_by():
    assert not (PACKAGE / "cli.py").exists()


def test_nothing_is_imported_to_find_out(site):
    code = "import agentos, sys; print([name for name in sys.modules if name.startswith('agentos')])"
    words = [sys.executable, "-S", "-c", code]
    environ = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(words, env=environ, cwd=site, capture_output=True, text=True, check=True)

    assert "other_distribution" not in done.stdout
