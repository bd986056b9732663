"""Every curated pack: the catalog is right about it, it is packaged like the others, and it passes the checks."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

from agentos import SecretCatalog
from agentos.loading.curated_packs import CURATED
from agentos.testing import check_pack, make_host
from agentos.tools.lint.display_fit import faults_of_display
from agentos.tools.tool import as_tool

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {file.parent.name: file.parent for file in sorted(ROOT.glob("packs/*/pyproject.toml"))}
LIBRARIES = {"common"}
NAMES = sorted(set(FOLDERS) - LIBRARIES)
KNOWN = {pack.name: pack for pack in CURATED}

for folder in FOLDERS.values():
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def project_of(name):
    return tomllib.loads((FOLDERS[name] / "pyproject.toml").read_text())


def test_the_catalog_has_every_pack_that_is_here():
    assert sorted(KNOWN) == NAMES


@pytest.mark.parametrize("name", NAMES)
class TestCatalog:
    async def test_the_secrets_are_those_that_the_pack_declares(self, name):
        declared = {True: set(), False: set()}
        for requirement in await requirements_of(name):
            declared[requirement.optional].add(requirement.id)

        assert (set(KNOWN[name].secrets), set(KNOWN[name].optional_secrets)) == (
            declared[False],
            declared[True] - declared[False],
        )

    async def test_every_secret_is_in_the_catalog_of_secrets(self, name):
        catalog = SecretCatalog.shipped()

        assert [one.id for one in await requirements_of(name) if catalog.get(one.id) is None] == []

    async def test_it_loads_without_options(self, name):
        async with make_host(FOLDERS[name]) as host:
            assert [pack.name for pack in host.extensions.packs()] == [name]

    async def test_every_tool_says_how_people_are_shown_its_calls_and_names_what_is_there(self, name):
        async with make_host(FOLDERS[name]) as host:
            (pack,) = host.extensions.packs()
            stacks = [host.extensions.registry(kind).stack(id) for kind, id in pack.descriptors if kind == "tool"]
        tools = [as_tool(entry.payload) for stack in stacks for entry in stack]

        assert [tool.name for tool in tools if tool.display is None] == []
        assert [(tool.name, fault) for tool in tools for fault in faults_of_display(tool)] == []


async def test_sql_query_needs_no_secret_if_it_is_given_files(tmp_path):
    (tmp_path / "sales.csv").write_text("amount\n1\n")
    options = {KNOWN["sql-query"].secrets_unless: {"sales": str(tmp_path / "sales.csv")}}

    assert await requirements_of("sql-query", options) == []


async def requirements_of(name, options=None):
    async with make_host(FOLDERS[name], options=options) as host:
        (pack,) = host.extensions.packs()
        return [
            requirement
            for kind, id in pack.descriptors
            for entry in host.extensions.registry(kind).stack(id)
            for requirement in entry.descriptor.required_secrets
        ]


@pytest.mark.parametrize("name", sorted(FOLDERS))
class TestPackaging:
    def test_it_is_a_distribution_of_its_own(self, name):
        project = project_of(name)["project"]

        assert (project["name"], project["license"], project["readme"]) == (
            f"agentos-pack-{name}",
            "Apache-2.0",
            "README.md",
        )

    def test_its_module_says_the_same_version(self, name):
        module = FOLDERS[name] / f"agentos_pack_{name.replace('-', '_')}" / "__init__.py"

        assert f'__version__ = "{project_of(name)["project"]["version"]}"' in module.read_text()

    def test_only_packs_have_an_entry_point(self, name):
        points = project_of(name)["project"].get("entry-points", {})
        wanted = {} if name in LIBRARIES else {"agentos.packs": {name: f"agentos_pack_{name.replace('-', '_')}"}}

        assert points == wanted

    def test_every_import_is_declared(self, name):
        declared = {
            re.split(r"[\[<>=!~; ]", text)[0].lower().replace("_", "-")
            for project in [project_of(name)["project"]]
            for part in (project["dependencies"], *project.get("optional-dependencies", {}).values())
            for text in part
        }

        assert {
            use for use in imports_of(name) if DISTRIBUTIONS.get(use, use.replace("_", "-")) not in declared
        } == set()


DISTRIBUTIONS = {"agentos": "agentos-host", "agentos_pack_common": "agentos-pack-common", "re2": "google-re2"}


def imports_of(name):
    """Return the foreign packages that a pack's modules import."""
    found = set()
    for file in (FOLDERS[name] / f"agentos_pack_{name.replace('-', '_')}").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {f"agentos_pack_{name.replace('-', '_')}"}


NEEDED = {"cache": {"tools": {"*": {"seconds": 60}}}, "retry": {"tools": ["*"], "breaker": ["*"]}}
"""Options without which a pack offers nothing."""


@pytest.mark.parametrize("name", NAMES)
async def test_its_readme_names_what_it_offers(name):
    async with make_host(FOLDERS[name], options=NEEDED.get(name)) as host:
        (pack,) = host.extensions.packs()
        offers = [id for _, id in pack.descriptors]

    readme = (FOLDERS[name] / "README.md").read_text()

    assert offers
    assert [id for id in offers if f"`{id}`" not in readme] == []


@pytest.mark.proof
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("isolation", "more"), [("inline", {}), ("process", {"cases": 10})])
def test_it_passes_the_conformance_checks(name, isolation, more):
    """By its own `conformance.toml` and `conformance.py`: every tool succeeds, and what changes something is run.

    What its tools take, they are asked inline; in a process of its own a part of that shows that nothing differs.
    """
    if (name, isolation) == ("recipes", "process"):
        pytest.skip("workflows that are functions run in the host's own process")
    check_pack(FOLDERS[name], strict=True, isolation=isolation, **more)
