"""The kit costs nothing until it is used."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import agentos.testing

HOME = Path(agentos.testing.__file__).parent


def loaded_by(statement):
    lines = ["import json, sys", "before = set(sys.modules)", statement]
    script = "\n".join([*lines, "print(json.dumps(sorted(set(sys.modules) - before)))"])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


FACADE = ["agentos", "agentos._version", "agentos.base", "agentos.base.lazy_exports"]


def test_importing_the_kit_imports_no_host_and_no_test_runner():
    loaded = loaded_by("import agentos.testing")

    assert [name for name in loaded if name.startswith("agentos")] == [*FACADE, "agentos.testing"]
    assert {name.partition(".")[0] for name in loaded} & {"pytest", "_pytest", "hypothesis", "attrs"} == set()


def test_using_the_kit_imports_no_test_runner():
    loaded = loaded_by("from agentos.testing import *")

    assert {name.partition(".")[0] for name in loaded} & {"pytest", "_pytest", "hypothesis"} == set()


def test_the_plugin_imports_nothing_of_agentos_but_itself():
    loaded = loaded_by("import pytest; before |= set(sys.modules)\nimport agentos.testing.plugin")

    assert loaded == [*FACADE, "agentos.testing", "agentos.testing.plugin"]


def test_every_public_name_is_there():
    assert [name for name in agentos.testing.__all__ if not hasattr(agentos.testing, name)] == []
    assert set(agentos.testing.__all__) <= set(dir(agentos.testing))


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = agentos.testing.nothing


@pytest.mark.parametrize("file", ["__init__.py", "_version.py", "testing/__init__.py", "testing/plugin.py"])
def test_a_module_that_is_loaded_early_only_defines_things(file):
    """A test runner imports these before it measures coverage: here they are executed once more."""
    spec = importlib.util.spec_from_file_location("agentos.testing.copy", HOME.parent / file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    assert module.__doc__
