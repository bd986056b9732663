"""The reference has everything that the code has."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

import agentos
from agentos.cli.command_list import COMMANDS
from agentos.cli.layered_config import VARIABLES
from agentos.secrets.catalog import SecretCatalog

ROOT = Path(__file__).parents[2]
DIRECTIVE = re.compile(r"^:+\{py:(?:class|exception|function|data)\} (\w+).*\n:module: ([\w.]+)$", re.MULTILINE)


@pytest.fixture(scope="session")
def described(reference):
    """Return every name that is described, as module and name."""
    return {(module, name) for text in reference.values() for name, module in DIRECTIVE.findall(text)}


@pytest.mark.parametrize("module", ["agentos", "agentos.interop", "agentos.mcp", "agentos.web", "agentos.testing"])
def test_every_public_name_is_described(module, described):
    names = pytest.importorskip(module, reason=f"{module} is not there").__all__

    assert [name for name in names if (module, name) not in described] == []


def test_every_name_is_described_once(reference):
    found = [pair for text in reference.values() for pair in DIRECTIVE.findall(text)]

    assert [pair for pair in set(found) if found.count(pair) > 1] == []


def test_every_public_method_of_the_host_is_described(reference):
    text = reference["api/host.md"]
    methods = [name for name, _ in inspect.getmembers(agentos.AgentOS, inspect.isfunction) if not name.startswith("_")]

    assert [name for name in methods if f"{{py:method}} {name}(" not in text] == []


def test_every_command_is_described(generate, reference):
    names = [" ".join(("agentos", *words)) for words, _ in generate.cli.commands()]

    assert {words[0] for words, _ in generate.cli.commands()} == set(COMMANDS)
    assert [name for name in names if not re.search(f"^#+ {name}$", reference["cli.md"], re.MULTILINE)] == []


def test_every_option_is_described(generate, reference):
    options = {opt for _, one in generate.cli.commands() for param in one.params for opt in param.opts if "-" in opt}

    assert [name for name in options if name not in reference["cli.md"]] == []


def test_every_command_shows_examples(generate, reference):
    sections = re.split(r"^#+ agentos ", reference["cli.md"], flags=re.MULTILINE)[1:]

    assert [one.partition("\n")[0] for one in sections if "Examples:" not in one] == []


@pytest.mark.parametrize("file", ["manifest", "overrides", "secrets", "lock"])
def test_every_key_of_a_file_is_described(file, generate, reference):
    schema, text = generate.files.schema_of(file), reference[f"files/{file}.md"]
    keys = {key for _, part in generate.files.objects(schema) for key in part["properties"]}
    everywhere = {key for part in (schema, *schema["$defs"].values()) for key in part.get("properties", {})}

    assert everywhere <= keys
    assert [key for key in keys if f"| `{key}` |" not in text] == []


def test_every_variable_is_described(reference):
    assert [name for name in VARIABLES if f"`{name}`" not in reference["variables.md"]] == []


def test_every_known_secret_is_described(reference):
    assert [one.id for one in SecretCatalog.shipped() if f"`{one.id}`" not in reference["secrets.md"]] == []


def test_every_event_is_described(generate, reference):
    told = [getattr(agentos, name) for name in agentos.__all__ if isinstance(getattr(agentos, name), type)]
    events = [one for one in told if issubclass(one, agentos.Event) and one is not agentos.Event]

    assert set(events) == set(generate.tables.events())
    assert [one.type for one in events if f"`{one.type}`" not in reference["events.md"]] == []


def test_every_type_of_error_is_explained(generate):
    assert sorted(generate.tables.tool_errors() - set(generate.tables.explained())) == []


def test_no_type_of_error_is_explained_that_there_is_not(generate):
    assert sorted(set(generate.tables.explained()) - generate.tables.tool_errors()) == []


def test_every_kind_is_described(reference):
    assert [kind.name for kind in agentos.KINDS if f"## `{kind.name}`" not in reference["kinds.md"]] == []


def test_every_exception_is_described(reference):
    errors = [getattr(agentos, name) for name in agentos.__all__ if name.endswith("Error")]
    ours = [one for one in errors if isinstance(one, type) and issubclass(one, agentos.AgentOSError)]

    assert [one.__name__ for one in ours if f"`agentos.{one.__name__}`" not in reference["errors.md"]] == []


def test_the_pages_that_git_has_are_as_the_code_is():
    """`make reference` writes them. Python writes types in other words from one version to the next."""
    argv = [sys.executable, "-m", "_generate", "check"]
    done = subprocess.run(argv, cwd=ROOT / "docs", capture_output=True, text=True, check=False)
    is_oldest = sys.version_info[:2] == (3, 11)

    assert done.stderr == ""
    assert [line for line in done.stdout.splitlines() if is_oldest or "/names/" not in line] == []


def test_every_public_name_stands_in_the_pages_that_git_has():
    text = "\n".join(file.read_text("utf-8") for file in (ROOT / "docs" / "reference" / "names").glob("*.md"))

    assert [name for name in agentos.__all__ if f"\n## `{name}`\n" not in text] == []


@pytest.mark.parametrize(
    ("context", "column"), [(agentos.PackContext, 2), (agentos.LifecycleContext, 3)], ids=["pack", "descriptor"]
)
def test_the_guide_to_packs_says_what_a_context_has(context, column):
    guide = (ROOT / "docs" / "packs.md").read_text("utf-8")
    rows = [line.strip("| ").split(" | ") for line in re.findall(r"^\| `\w+(?:\(id\))?` \| .*", guide, re.MULTILINE)]
    told = {row[0].strip("`").removesuffix("(id)") for row in rows if len(row) == 4 and row[column] != "no"}
    fields = {field.name for field in attrs.fields(context)}

    assert told == {name for name in {*dir(context), *fields} if not name.startswith("_")}


def test_a_long_signature_has_a_parameter_in_each_line(generate):
    head = "f(" + ", ".join(f"name_{number}: dict[str, int] = (1, 2)" for number in range(4)) + ") -> list[str]"
    written = generate.markdown.plain(f":::{{py:function}} {head}\n:module: m\n:async:\n\nSay it.\n:::\n")

    assert written.startswith("## `f`\n\n```python\nasync def f(\n    name_0: dict[str, int] = (1, 2),\n")
    assert written.endswith(",\n) -> list[str]\n```\n\nSay it.\n")


def test_writing_leaves_what_did_not_change_alone(generate, reference, monkeypatch, tmp_path):
    monkeypatch.setattr(generate, "pages", lambda: reference)
    generate.write(tmp_path)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.md")}
    (tmp_path / "old.md").write_text("of an earlier build")
    generate.write(tmp_path)

    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.md")} == before


def test_limits_are_read_from_the_code(reference):
    funnel = importlib.import_module("agentos.calls.results")

    assert f"| {funnel.CONTENT_LIMIT:,} |" in reference["limits.md"]


def test_no_heading_of_a_command_is_doubled(reference):
    headings = re.findall(r"^#+ (.+)$", reference["cli.md"], re.MULTILINE)

    assert len(headings) == len(set(headings))
