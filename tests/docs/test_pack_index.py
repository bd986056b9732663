"""The index of curated packs says of each what is true of it: the packs in `packs/` are loaded and compared."""

import logging
import re
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agentos import PUBLIC
from agentos.loading.curated_packs import CURATED
from agentos.testing import make_host

ROOT = Path(__file__).parents[2]
FOLDERS = {file.parent.name: file.parent for file in sorted(ROOT.glob("packs/*/pyproject.toml"))}
PROJECTS = {name: tomllib.loads((folder / "pyproject.toml").read_text())["project"] for name, folder in FOLDERS.items()}
NAMES = [name for name, project in PROJECTS.items() if "agentos.packs" in project.get("entry-points", {})]
CATEGORIES = {pack.name: pack.category for pack in CURATED}


@pytest.fixture(scope="session")
def index(reference):
    return reference["packs/index.md"]


@pytest.fixture(scope="session")
def pack_facts(generate):
    """Return the module that finds out what is true of packs."""
    return sys.modules["_generate.pack_facts"]


def section_of(index, name):
    """Return what the index says of one pack."""
    return re.search(rf"^### {name}\n(.*?)(?=^##|^```)", index, re.MULTILINE | re.DOTALL)[1]


# -- what is in packs/ -------------------------------------------------------------------------------------------------


def test_every_pack_can_be_loaded(pack_facts):
    assert {one.name: one.fault for one in pack_facts.all_facts() if one.fault} == {}


def test_every_pack_is_in_the_table(index):
    assert sorted(re.findall(r"^\| \[([\w-]+)\]\(#\1\) \|", index, re.MULTILINE)) == NAMES


def test_a_library_is_no_pack_and_is_named(index):
    assert [name for name in FOLDERS if name not in NAMES and f"[`agentos-pack-{name}`]({name}.md)" not in index] == []


@pytest.fixture
async def entries(name, pack_facts, anyio_backend):
    """Return what a pack puts on stacks when it is loaded."""
    with TemporaryDirectory() as folder:
        async with make_host(FOLDERS[name], options=pack_facts.options_of(FOLDERS[name], folder)) as host:
            (pack,) = host.extensions.packs()
            return [entry for kind, id in pack.descriptors for entry in host.extensions.registry(kind).stack(id)]


@pytest.mark.parametrize("name", NAMES)
class TestPack:
    def test_it_stands_beneath_its_category(self, index, name):
        before = index[: index.index(f"\n### {name}\n")]

        assert re.findall(r"^## (.+)$", before, re.MULTILINE)[-1] == CATEGORIES[name]

    def test_every_tool_is_there_with_effect_and_access(self, index, name, entries):
        tools = [entry.payload for entry in entries if entry.kind == "tool"]

        assert entries or name in ("cache", "retry")  # which offer nothing without options
        assert [tool.name for tool in tools if row_of(tool) not in section_of(index, name)] == []

    def test_every_secret_is_there(self, index, name, entries):
        needs = {one.id: one.optional for entry in entries for one in entry.descriptor.required_secrets}
        told = re.findall(r"^- secret `(\S+)`, (\w+)", section_of(index, name), re.MULTILINE)

        assert {id: need == "optional" for id, need in told} == needs

    def test_secrets_that_options_name_are_told(self, index, name):
        places = [
            ".".join(pack.secrets_in_options) for pack in CURATED if pack.name == name and pack.secrets_in_options
        ]
        told = re.findall(r"^- secrets: those that the option `(\S+)` names", section_of(index, name), re.MULTILINE)

        assert told == places

    def test_every_dependency_is_there(self, index, name):
        extras = PROJECTS[name].get("optional-dependencies", {}).values()
        wanted = [*PROJECTS[name]["dependencies"], *(one for extra in extras for one in extra)]

        assert [one for one in wanted if f"`{one}`" not in section_of(index, name)] == []

    def test_its_size_is_there(self, index, name):
        assert re.search(r"^- size: \d+ kB of its own", section_of(index, name), re.MULTILINE)

    async def test_every_option_is_there(self, index, name):
        rows = re.findall(r"^\|((?: *`\w+`,?)+) *\|", section_of(index, name), re.MULTILINE)
        told = {word for row in rows for word in re.findall(r"`(\w+)`", row)}

        assert await options_of(name) - told == set()


def row_of(tool):
    access = "public" if tool.required_access is PUBLIC else ", ".join(f"`{rule}`" for rule in tool.required_access)
    return f"| `{tool.name}` | {tool.effect} | {access} |"


async def options_of(name):
    """Return the options that a pack knows: it names them when it is given one that nobody could know."""
    try:
        async with make_host(FOLDERS[name], options={"qqqqqqqq": 1}):
            return set()
    except ExceptionGroup as group:
        told = str(group.exceptions[0])
        found = re.search(r"known are ((?:\w+, )*\w+)|there are no options", told)
        return set(found[1].split(", ")) if found[1] else set()


# -- the page that is kept ---------------------------------------------------------------------------------------------


def test_the_page_that_is_kept_is_current(pack_facts, generate):
    """But for the sizes, which depend on what is installed. `python -m _generate` in docs/ writes it."""
    kept = (ROOT / "docs" / "packs-index.md").read_text("utf-8")

    assert without_sizes(kept) == without_sizes(generate.packs.kept_index(pack_facts.all_facts()))


def test_the_page_that_is_kept_has_sizes():
    kept = (ROOT / "docs" / "packs-index.md").read_text("utf-8")

    assert len(re.findall(r"^- size: \d+ kB of its own", kept, re.MULTILINE)) == len(NAMES)


def without_sizes(page):
    return _SIZES.sub("", page)


_SIZES = re.compile(r"^- size: .*$|(?<=\|) [\d.]+ [kM]B(?: and more)? \|$", re.MULTILINE)


# -- how it is found out -----------------------------------------------------------------------------------------------

PROJECT = """
[project]
name = "agentos-pack-{name}"
dependencies = {dependencies}
entry-points."agentos.packs".{name} = "agentos_pack_{name}"

[tool.hatch.build.targets.wheel]
packages = ["agentos_pack_{name}"]
"""


@pytest.fixture
def made(pack_facts, tmp_path, monkeypatch):
    """Return a function that makes a pack of some code, and returns what is found out about it."""
    monkeypatch.setattr(sys, "path", [*sys.path])

    def make(name, code, dependencies=()):
        package = tmp_path / name / f"agentos_pack_{name}"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(code)
        project = PROJECT.format(name=name, dependencies=list(dependencies))
        (tmp_path / name / "pyproject.toml").write_text(project)
        return pack_facts.all_facts.__wrapped__(tmp_path)[0]

    yield make
    for name in [name for name in sys.modules if name.startswith("agentos_pack_made")]:
        del sys.modules[name]


GOOD = """
from agentos import ExtensionPack

def create_extension_pack(context):
    return ExtensionPack({name!r}, "1.0", [])
"""


def test_a_pack_that_cant_be_loaded_says_why(made):
    assert "no_such_module" in made("made_bad", "import no_such_module").fault


def test_a_pack_that_cant_be_loaded_is_told_of_on_the_page(made, generate):
    bad = made("made_worse", "raise ValueError('no')")

    assert "It could not be loaded" in section_of(generate.packs.index([bad], {}), "made_worse")


def test_a_pack_that_cant_be_loaded_is_a_warning_of_the_build(made, generate, monkeypatch, caplog):
    bad = made("made_worst", "raise ValueError('no')")
    monkeypatch.setattr(generate.packs, "all_facts", lambda: (bad,))
    caplog.clear()
    generate.packs.pages()

    assert [(record.levelno, record.name.partition(".")[0]) for record in caplog.records] == [
        (logging.WARNING, "sphinx")
    ]


def test_what_is_not_installed_is_not_measured(made, generate):
    size = made("made_one", GOOD.format(name="made_one"), ["no-such-distribution>=2"]).size

    assert size.unmeasured == ("no-such-distribution is not installed",)


def test_what_agentos_needs_is_not_counted(made):
    assert made("made_two", GOOD.format(name="made_two"), ["agentos-host", "attrs", "sqlalchemy"]).size.brought == {}


def test_what_a_pack_brings_is_measured(made):
    assert made("made_three", GOOD.format(name="made_three"), ["pytest"]).size.brought["pytest"] > 100_000


def test_a_pack_s_own_size_is_that_of_its_package(made):
    code = GOOD.format(name="made_four")

    assert made("made_four", code).size.own == len(code)


@pytest.mark.parametrize(
    ("size", "words"),
    [(1, "1 kB"), (1_499, "1 kB"), (999_499, "999 kB"), (1_000_000, "1.0 MB"), (58_249_000, "58.2 MB")],
)
def test_sizes_are_rounded(generate, size, words):
    assert generate.packs.shown(size) == words
