"""Every line with `pip install` in README, docs and what the scaffold makes, run in an empty environment.

As docs/installing.md says: the wheels come from `make wheels` in a checkout, and pip is told where they are. All else
comes from a package index; without one, what needs it is skipped.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from agentos.cli.main import main

pytestmark = pytest.mark.timeout(500)  # the first of them builds the wheels of everything

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("packs/*/README.md"))]
SOURCES = [
    file
    for pattern in ("agentos/**/*.py", "agentos/cli/scaffold/*", "packs/*/agentos_pack_*/**/*.py", "examples/*.py")
    for file in sorted(ROOT.glob(pattern))
    if file.is_file()
]
LINE = re.compile(r"\bpip install (?!@)[^`\n#]+?(?=\s*(?:[`#]|$))", re.MULTILINE)
OURS = re.compile(r"(?<![\w./-])agentos(?:-host)?(?:\[[\w,-]+\])?(?![\w./-])|agentos-pack-[a-z0-9-]+(?:\[[\w,-]+\])?")
IGNORED = shutil.ignore_patterns(".*", "dist", "build", "__pycache__", "node_modules")
PATIENCE = 200


def lines_of(file):
    return LINE.findall(file.read_text("utf-8"))


SHOWN = sorted({line for page in PAGES for line in lines_of(page)})
"""What README and docs say, each line once."""
TEMPLATES = [ROOT / "agentos" / "cli" / "scaffold" / name for name in ("README.md.txt", "ci.yml.txt")]
MADE = sorted({line for file in TEMPLATES for line in lines_of(file)})
"""What a pack that the scaffold made says."""


# -- names -------------------------------------------------------------------------------------------------------------


def projects():
    """Return the extras of every distribution of ours, by its name."""
    files = [ROOT / "pyproject.toml", *ROOT.glob("packs/*/pyproject.toml")]
    found = [tomllib.loads(file.read_text("utf-8"))["project"] for file in files]
    return {one["name"]: set(one.get("optional-dependencies", ())) for one in found}


def test_there_are_lines_to_run():
    assert (len(SHOWN) >= 20, len(MADE) >= 3) == (True, True)


def test_whoever_is_told_to_install_us_is_told_a_name_and_extras_that_we_have():
    known = projects()
    lines = [(file.name, line) for file in (*PAGES, *SOURCES) for line in lines_of(file)]
    named = [(place, Requirement(name)) for place, line in lines for name in OURS.findall(line)]

    assert [one for one in named if one[1].name not in known or one[1].extras - known[one[1].name]] == []


def test_packs_depend_on_no_other_agentos_than_ours():
    found = [tomllib.loads(file.read_text("utf-8"))["project"] for file in ROOT.glob("packs/*/pyproject.toml")]
    wanted = {Requirement(one).name for project in found for one in project["dependencies"]}

    assert {one for one in wanted if one.startswith("agentos")} - set(projects()) == set()


def test_what_the_scaffold_makes_depends_on_nobody_but_us(tmp_path):
    assert main(["new", "pack", "my-words", "--into", str(tmp_path)]) == 0
    project = tomllib.loads((tmp_path / "my-words" / "pyproject.toml").read_text("utf-8"))

    assert [Requirement(one).name for one in project["project"]["dependencies"]] == ["agentos-host"]


# -- in empty environments ---------------------------------------------------------------------------------------------


def sh(line, folder, env):
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, f"$ {line}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Skip where pip reaches no package index; from here on, whatever pip can't install is a failure."""
    folder = tmp_path_factory.mktemp("index")
    words = f"download --no-deps --retries 1 --timeout 30 --dest {folder} iniconfig".split()
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"pip reaches no package index: {(done.stderr.strip() or 'it says nothing').splitlines()[-1]}")


@pytest.fixture(scope="module")
def checkout(index, tmp_path_factory):
    """Return a copy of this checkout in which `make wheels` was run."""
    folder = tmp_path_factory.mktemp("checkout") / "agentos"
    shutil.copytree(ROOT, folder, ignore=IGNORED)
    sh(f"make wheels PYTHON={sys.executable}", folder, os.environ)
    return folder


@pytest.fixture(scope="module")
def made(checkout, tmp_path_factory):
    """Return the folder of a pack that the scaffold made, with the wheel that its README says."""
    folder = tmp_path_factory.mktemp("made")
    assert main(["new", "pack", "my-words", "--into", str(folder)]) == 0
    readme = (folder / "my-words" / "README.md").read_text("utf-8")
    (line,) = re.findall(r"^pip wheel .*$", readme, re.MULTILINE)
    environ = {**os.environ, "PIP_FIND_LINKS": str(checkout / "dist")}
    sh(f"{sys.executable} -m {line}", folder / "my-words", environ)
    return folder / "my-words"


@pytest.fixture
def empty(tmp_path):
    """Return the variables of an empty environment whose `pip` is the one of the tests."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    programs = tmp_path / "env" / "bin"
    script = f'#!/bin/sh\nexec {sys.executable} -m pip --python {programs}/python "$@"\n'
    (programs / "pip").write_text(script)
    (programs / "pip").chmod(0o755)
    kept = {name: os.environ[name] for name in os.environ if name.startswith("PIP_") or name in {"HOME", "LANG"}}
    return {**kept, "PATH": f"{programs}:{os.environ['PATH']}", "PIP_NO_COMPILE": "1"}


def installed(folder, env):
    """Return which distributions called agentos, or like it, are in an environment where agentos can be used."""
    code = "import agentos, importlib.metadata as m; agentos.AgentOS; print(*{d.name for d in m.distributions()})"
    return {name for name in sh(f'python -I -W error -c "{code}"', folder, env).split() if name.startswith("agentos")}


PACK = re.compile(r"pip install agentos-pack-[a-z0-9-]+")


@pytest.mark.proof
def test_the_lines_of_the_packs_install_them(checkout, empty):
    """One after another into one environment: each brings little more than itself."""
    env = {**empty, "PIP_FIND_LINKS": str(checkout / "dist")}
    lines = [line for line in SHOWN if PACK.fullmatch(line)]
    for line in lines:
        sh(line, checkout, env)

    assert {name for line in lines for name in OURS.findall(line)} <= installed(checkout.parent, env)


@pytest.mark.proof
@pytest.mark.parametrize("line", [line for line in SHOWN if not PACK.fullmatch(line)])
def test_a_line_of_the_docs_installs_agentos(checkout, empty, line):
    env = {**empty, "PIP_FIND_LINKS": str(checkout / "dist")}
    sh(line, checkout, env)
    found = installed(checkout.parent, env)

    assert ("agentos-host" in found, "agentos" in found) == (True, False)
    assert {Requirement(name).name for name in OURS.findall(line)} <= found


@pytest.mark.proof
@pytest.mark.parametrize("line", MADE)
def test_a_line_of_a_made_pack_installs_it(checkout, made, empty, line):
    """Those that look into `wheels/` need not be told where agentos's wheels are: CI is not."""
    env = empty if "--find-links" in line else {**empty, "PIP_FIND_LINKS": str(checkout / "dist")}
    sh(line, made, env)

    assert installed(made, env) == {"agentos-host", "agentos-pack-my-words"}


@pytest.mark.proof
def test_an_extra_is_added_later_without_the_wheels(checkout, empty):
    sh("pip install agentos-host", checkout, {**empty, "PIP_FIND_LINKS": str(checkout / "dist")})
    sh("pip install 'agentos-host[cli]'", checkout, empty)

    assert sh("agentos --version", checkout.parent, empty).startswith("agentos ")
