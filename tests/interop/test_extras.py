"""Libraries that come with an extra: imported when they are needed, and missed in words."""

import subprocess
import sys

import pytest

import agentos.interop
from agentos.base.extras import import_extra


@pytest.mark.parametrize(
    ("module", "extra"), [("langchain_core", "langchain"), ("pydantic_ai", "pydantic-ai")], ids=lambda value: value
)
async def test_a_missing_library_says_which_extra_to_install(host, monkeypatch, module, extra):
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(ImportError, match=rf"pip install 'agentos-host\[{extra}\]'"):
        import_extra(module, extra)


def test_a_library_that_is_broken_says_so_itself(tmp_path, monkeypatch):
    (tmp_path / "half_installed.py").write_text("import a_part_that_is_missing")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ModuleNotFoundError, match="a_part_that_is_missing"):
        import_extra("half_installed", "half")


def test_interop_imports_no_sdk():
    code = (
        "import sys; from agentos.interop import anthropic, gemini, langchain, mcp, openai, pydantic_ai; "
        "print(sorted({m.partition('.')[0] for m in sys.modules} "
        "& {'openai', 'anthropic', 'google', 'langchain_core', 'pydantic_ai', 'pydantic', 'mcp', 'httpx'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["openai", "anthropic", "gemini", "mcp", "langchain", "pydantic_ai"])
def test_a_module_is_an_attribute_of_interop(name):
    assert getattr(agentos.interop, name).__name__ == f"agentos.interop.{name}"


@pytest.mark.parametrize("name", ["as_langchain_tools", "as_toolset"])
def test_an_adapter_is_an_attribute_of_interop(name):
    assert callable(getattr(agentos.interop, name))


def test_something_else_is_no_attribute_of_interop():
    with pytest.raises(AttributeError, match="bedrock"):
        _ = agentos.interop.bedrock
