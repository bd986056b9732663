"""Wheels: what is in them, and that packs made by the scaffold work in a new environment, far from this checkout.

The environment is made once. Its dependencies come from a package index; without one, what needs it is skipped.
"""

import asyncio
import configparser
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from agentos.cli.main import main
from agentos.cli.scaffolding import FLAVOURS

pytestmark = pytest.mark.proof

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {file.parent.name: file.parent for file in sorted(ROOT.glob("packs/*/pyproject.toml"))}
MADE = {
    "my-words": "tool",
    "my-notes": "toolset",
    "my-cache": "wrapper",
    "my-units": "bridge",
    "my-guard": "guardrail",
    "my-watch": "middleware",
}
PATIENCE = 400


def run(words, **options):
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE, check=False, **options
    )


def must(words, **options):
    """Run a program that has to end well, and return what it printed."""
    done = run(words, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pip(*words):
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", *words]


class Wheel:
    """What is in a wheel."""

    def __init__(self, file):
        self.file = file
        with zipfile.ZipFile(file) as archive:
            self.names = {name for name in archive.namelist() if not name.endswith("/")}
            self.info = next(name.partition("/")[0] for name in self.names if name.endswith(".dist-info/METADATA"))
            self.metadata = Parser().parsestr(archive.read(f"{self.info}/METADATA").decode())
            points = configparser.ConfigParser(delimiters="=")
            points.optionxform = str
            if f"{self.info}/entry_points.txt" in self.names:
                points.read_string(archive.read(f"{self.info}/entry_points.txt").decode())
        self.entry_points = {group: dict(points[group]) for group in points.sections()}

    @property
    def files(self):
        """Return what is in it but the metadata."""
        return {name for name in self.names if not name.startswith(f"{self.info}/")}


def files_beneath(folder):
    """Return the files of a package, as a wheel should name them."""
    return {
        str(file.relative_to(folder.parent)) for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc"
    }


# -- what is built -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Return the folder with the distributions that the scaffold makes, one of each flavour."""
    folder = tmp_path_factory.mktemp("sources")
    for name, flavour in MADE.items():
        assert main(["new", "pack", name, "--flavour", flavour, "--into", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def wheels(sources, tmp_path_factory):
    """Return the wheels of agentos and of what the scaffold made, by the names of their distributions."""
    folder = tmp_path_factory.mktemp("wheels")
    must(pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT, *sources.iterdir()))
    found = [Wheel(file) for file in folder.glob("*.whl")]
    return {wheel.metadata["Name"]: wheel for wheel in found}


BUILD = """
import os, sys, traceback
from hatchling.build import build_sdist, build_wheel
build, out, *folders = sys.argv[1:]
for folder in folders:
    os.chdir(folder)
    target = os.path.join(out, os.path.basename(folder))
    os.makedirs(target)
    try:
        {"sdist": build_sdist, "wheel": build_wheel}[build](target)
    except Exception:
        with open(os.path.join(target, "fault.txt"), "w") as file:
            traceback.print_exc(file=file)
"""


def build(what, out, *folders):
    """Build the distributions of *folders*, all in one process, each into a folder of its name."""
    must([sys.executable, "-c", BUILD, what, out, *folders])


@pytest.fixture(scope="module")
def curated(tmp_path_factory):
    """Return a function that gives the wheel of a pack; all are built before the first is asked for."""
    out = tmp_path_factory.mktemp("curated")
    build("wheel", out, *FOLDERS.values())

    def wheel_of(name):
        fault = out / name / "fault.txt"
        assert not fault.exists(), fault.read_text()
        (file,) = (out / name).glob("*.whl")
        return Wheel(file)

    return wheel_of


class TestAgentos:
    @pytest.fixture
    def wheel(self, wheels):
        return wheels["agentos-host"]

    def test_it_holds_its_package_the_secrets_and_nothing_else(self, wheel):
        assert wheel.files == files_beneath(ROOT / "agentos") | {"agentos/extension-secrets.json"}

    @pytest.mark.parametrize(
        "names",
        [
            {"extension-secrets.json", "py.typed"},
            {f"cli/scaffold/{flavour}.py.txt" for flavour in FLAVOURS},
            {f"cli/scaffold/test_{flavour}.py.txt" for flavour in FLAVOURS},
            {f"schemas/{file}.schema.json" for file in ("lock", "manifest", "overrides", "secrets")},
        ],
        ids=["secrets", "templates", "tests", "schemas"],
    )
    def test_it_holds_what_is_read_when_it_runs(self, wheel, names):
        assert {f"agentos/{name}" for name in names} - wheel.files == set()

    def test_it_announces_its_command_its_pack_and_its_pytest_plugin(self, wheel):
        assert wheel.entry_points == {
            "console_scripts": {"agentos": "agentos.cli.main:main"},
            "agentos.packs": {"openapi": "agentos.openapi.pack"},
            "pytest11": {"agentos": "agentos.testing.plugin"},
        }

    def test_its_extras_are_those_of_the_project(self, wheel):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

        assert set(wheel.metadata.get_all("Provides-Extra")) == set(project["optional-dependencies"])

    def test_the_source_distribution_makes_the_same_wheel(self, wheel, tmp_path):
        build("sdist", tmp_path / "sdist", ROOT)
        (packed,) = (tmp_path / "sdist" / ROOT.name).glob("*.tar.gz")
        with tarfile.open(packed) as archive:
            archive.extractall(tmp_path / "unpacked", filter="data")
        (unpacked,) = (tmp_path / "unpacked").iterdir()
        build("wheel", tmp_path / "again", unpacked)
        (file,) = (tmp_path / "again").rglob("*.whl")

        assert Wheel(file).names == wheel.names


@pytest.mark.parametrize("name", sorted(FOLDERS))
class TestCurated:
    def test_its_wheel_holds_its_package_and_nothing_else(self, curated, name):
        assert curated(name).files == files_beneath(FOLDERS[name] / f"agentos_pack_{name.replace('-', '_')}")

    def test_its_wheel_announces_what_the_project_says(self, curated, name):
        project = tomllib.loads((FOLDERS[name] / "pyproject.toml").read_text())["project"]

        assert curated(name).entry_points == project.get("entry-points", {})

    def test_its_readme_is_its_description(self, curated, name):
        assert curated(name).metadata.get_payload().strip() == (FOLDERS[name] / "README.md").read_text("utf-8").strip()

    def test_its_types_can_be_used(self, curated, name):
        assert f"agentos_pack_{name.replace('-', '_')}/py.typed" in curated(name).files


# -- a new environment -------------------------------------------------------------------------------------------------


class Environment:
    """A new environment, and a folder in which its programs are run: they see nothing of this checkout."""

    def __init__(self, place):
        venv.create(place / "env", with_pip=False, symlinks=True)
        self.programs = place / "env" / "bin"
        self.python = self.programs / "python"
        self.folder = place / "host"
        self.folder.mkdir()
        (place / "home").mkdir()
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
        self.variables = {**kept, "PATH": f"{self.programs}:/usr/bin:/bin", "HOME": str(place / "home")}

    def install(self, *what):
        must(pip("--python", self.python, "install", "--no-compile", *what))

    def run(self, program, *words):
        return run([self.programs / program, *words], cwd=self.folder, env=self.variables)

    def tell(self, program, *words):
        """Return what a program that has to end well printed."""
        return must([self.programs / program, *words], cwd=self.folder, env=self.variables)


BARE = """
import asyncio, json, sys
from importlib import metadata

import agentos

async def main():
    async with agentos.AgentOS(extension_manifest={"packs": [{"package": "my-words"}]}) as host:
        return await host.tools.process_tool_call(agentos.ToolCall("my_words", {"text": "one two"}))

result = asyncio.run(main())
print(json.dumps({
    "output": result.output,
    "home": agentos.__file__,
    "installed": [found.name for found in metadata.distributions()],
    "imported": [name for name in ("click", "mcp", "rich", "httpx", "pytest") if name in sys.modules],
}))
"""


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Skip where pip reaches no package index; from here on, whatever pip can't install is a failure."""
    folder = tmp_path_factory.mktemp("index")
    done = run(pip("download", "--no-deps", "--retries", "1", "--timeout", "30", "--dest", folder, "iniconfig"))
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        pytest.skip(f"pip reaches no package index: {said}")


@pytest.fixture(scope="module")
def bare(index, wheels, tmp_path_factory):
    """Return a new environment with agentos without extras and one pack, and what was seen there."""
    place = Environment(tmp_path_factory.mktemp("new"))
    place.install(wheels["agentos-host"].file, wheels["agentos-pack-my-words"].file)
    seen = json.loads(place.tell("python", "-I", "-W", "error", "-c", BARE))
    return place, {**seen, "command": place.run("agentos", "doctor")}


@pytest.fixture(scope="module")
def environment(bare, wheels):
    """Return the same environment, with extras, pytest, a pack of each flavour, and a manifest that names them."""
    place, _ = bare
    others = [wheels[f"agentos-pack-{name}"].file for name in MADE]
    place.install(f"{wheels['agentos-host'].file}[cli,mcp]", "pytest>=8", *others)
    place.tell("agentos", "init", "--yes", "--no-pack", "--mode", "auto")
    (place.folder / "web.py").write_text(WEB)
    for name in ("./web.py", *MADE):
        place.tell("agentos", "packs", "add", name)
    return place


WEB = '''
from typing import Annotated

from agentos import PUBLIC, ExtensionPack, Schema, tool

ASKED = []


@tool(effect="read", required_access=PUBLIC)
async def web_search(query: Annotated[str, "What to look for", Schema(maxLength=200)]) -> str:
    """Search the web, and say how often that was asked for."""
    ASKED.append(query)
    return f"{query} {len(ASKED)}"


pack = ExtensionPack("web", "1.0", [web_search])
'''


def test_every_flavour_is_tried():
    assert sorted(MADE.values()) == sorted(FLAVOURS)


class TestWithoutExtras:
    def test_agentos_comes_from_its_wheel(self, bare):
        place, seen = bare

        assert Path(seen["home"]).is_relative_to(place.programs.parent)

    def test_a_pack_is_found_loaded_and_called(self, bare):
        _, seen = bare

        assert seen["output"] == {"words": 2, "characters": 7}

    def test_nothing_of_the_extras_is_there(self, bare):
        _, seen = bare

        assert ({"click", "mcp", "httpx", "pytest"} & set(seen["installed"]), seen["imported"]) == (set(), [])

    def test_the_command_says_what_it_needs(self, bare):
        _, seen = bare

        assert (seen["command"].returncode, seen["command"].stderr) == (
            3,
            "The command agentos needs its extra: pip install 'agentos-host[cli]'\n",
        )


CALLS = [
    ("my_words", {"text": "one two three"}),
    ("my_notes_write", {"title": "a", "text": "b"}),
    ("my_notes_read", {"title": "a"}),
    ("my_notes_read", {"title": "zzz"}),
    ("web_search", {"query": "tea"}),
    ("web_search", {"query": "tea"}),
    ("convert_length", {"value": 2, "source": "km", "target": "m"}),
]


@pytest.fixture(scope="module")
def served(environment):
    """Return the tools that an MCP client sees, and how the calls ended that it made of one server."""
    mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")

    async def talk():
        server = mcp.StdioServerParameters(
            command=str(environment.programs / "agentos"),
            args=["serve"],
            cwd=str(environment.folder),
            env=environment.variables,
        )
        async with mcp.Client(server) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            return tools, [await client.call_tool(name, arguments) for name, arguments in CALLS]

    return asyncio.run(talk())


class TestScaffold:
    def test_the_packs_are_found_by_their_entry_points(self, environment):
        told = json.loads(environment.tell("agentos", "packs", "list", "--json"))

        assert {pack["key"]: (pack["state"], pack["origin"]) for pack in told["packs"] if pack["key"] in MADE} == {
            name: ("enabled", f"agentos-pack-{name} 0.1.0") for name in MADE
        }

    def test_their_own_tests_pass_on_what_is_installed(self, environment, sources):
        tests = [sources / name / "tests" for name in MADE]

        environment.tell("pytest", "-W", "error", "-p", "no:cacheprovider", "-o", "pythonpath=", *tests)

    @pytest.mark.parametrize("name", MADE)
    def test_it_passes_the_conformance_checks(self, environment, sources, name):
        environment.tell("pytest", "-p", "no:cacheprovider", "--agentos-strict", "--agentos-pack", sources / name)

    @pytest.mark.parametrize("name", MADE)
    def test_the_conformance_checks_find_what_is_installed(self, environment, name):
        environment.tell("pytest", "-p", "no:cacheprovider", "--agentos-pack", name)

    def test_there_is_nothing_to_say_better(self, environment):
        environment.tell("agentos", "lint", *MADE)

    def test_a_client_sees_the_tools_of_all(self, served):
        tools, _ = served

        assert {name for name, _ in CALLS} | {"list_units"} <= set(tools)

    def test_a_client_calls_a_tool(self, served):
        _, results = served

        assert results[0].structured_content == {"words": 3, "characters": 13}

    def test_a_client_calls_tools_that_share_something(self, served):
        _, results = served

        assert [result.content[0].text for result in results[1:3]] == ["noted 'a'", "b"]

    def test_a_client_is_told_what_went_wrong(self, served):
        _, results = served

        assert results[3].is_error
        assert "no note is called 'zzz'; there are a" in results[3].content[0].text

    def test_a_client_calls_through_a_wrapper(self, served):
        _, results = served

        assert [result.content[0].text for result in results[4:6]] == ["tea 1", "tea 2"]

    def test_a_client_calls_a_function_of_a_library(self, served):
        _, results = served

        assert float(results[6].content[0].text) == 2000


@pytest.mark.parametrize("command", ["check", "format --check"])
@pytest.mark.parametrize("name", MADE)
def test_ruff_has_nothing_to_change_in_what_was_made(sources, name, command):
    ruff = Path(sys.executable).with_name("ruff")

    must([ruff, *command.split(), "--no-cache"], cwd=sources / name)
