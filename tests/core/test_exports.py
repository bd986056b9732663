"""Public names stand once, in the stub of their package, and are imported when they are asked for."""

import importlib
import re
from pathlib import Path

import pytest

import agentos
from agentos.base.lazy_exports import homes_of

PACKAGES = ["agentos", "agentos.interop", "agentos.mcp", "agentos.testing"]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_line_of_a_stub_exports_one_name_under_its_own_name(package):
    stub = Path(importlib.import_module(package).__file__).with_suffix(".pyi")

    assert [
        line for line in stub.read_text().splitlines() if not re.fullmatch(r"from [\w.]+ import (\w+) as \1", line)
    ] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_the_one_that_its_home_has(package):
    module = importlib.import_module(package)
    homes = {name: home for name, home in homes_of(module).items() if home != package}

    assert sorted(module.__all__) == sorted(homes)
    assert {name: getattr(importlib.import_module(home), name) for name, home in homes.items()} == {
        name: getattr(module, name) for name in homes
    }


def test_dir_lists_what_is_public():
    assert set(agentos.__all__) <= set(dir(agentos))


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_an_attribute_error_that_says_so(package):
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = importlib.import_module(package).nothing
