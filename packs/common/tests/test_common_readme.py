"""What the README shows is so, and to import the library costs little."""

import doctest
from pathlib import Path

import agentos_pack_common


def test_the_examples_of_the_readme_are_right():
    readme = Path(__file__).parents[1] / "README.md"

    assert doctest.testfile(str(readme), module_relative=False, optionflags=doctest.ELLIPSIS).failed == 0


def test_the_readme_names_every_method_of_a_root():
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    methods = [name for name in vars(agentos_pack_common.Root) if not name.startswith("_")]

    assert [name for name in methods if f"`{name}`" not in readme] == []


def test_all_names_that_are_offered_are_there():
    assert [name for name in agentos_pack_common.__all__ if not hasattr(agentos_pack_common, name)] == []


def test_to_import_it_imports_no_library_of_http(run_python):
    code = "import sys, agentos_pack_common; print([name for name in ('httpx', 'httpcore') if name in sys.modules])"

    assert run_python(code) == "[]"
