"""The first hour: init, new pack, and what counts afterwards."""

import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from terminal import AGENTOS, environment, run_in_terminal, run_piped

import agentos
from agentos.cli.layered_config import VARIABLES
from agentos.cli.scaffolding import FLAVOURS, fault_of_pack_name
from agentos.model.parsing import read_file

# -- init --------------------------------------------------------------------------------------------------------------


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_init_makes_a_working_manifest_and_a_first_pack(folder, command):
    told = command("init", "--yes")

    assert told.code == 0
    assert names(folder) == [".agentos/.gitignore", "agentos.toml", "packs/hello.py"]
    assert "agentos tools call greet name=Ada" in told.out


@pytest.mark.parametrize("format_", ["toml", "yaml", "json"])
def test_what_init_made_is_loaded_and_called(folder, command, format_):
    command("init", "--yes", "--format", format_)

    assert [one["name"] for one in command("tools", "list", "--json").data["tools"]] == ["greet"]
    assert "Hello, Ada!" in command("tools", "call", "greet", "name=Ada").out


def test_nothing_is_wrong_with_what_init_made(folder, command):
    command("init", "--yes")

    assert command("doctor", "--strict").code == 0
    assert command("lint", "--fail-on", "info").code == 0


def test_init_takes_flags(folder, command):
    command("init", "sub", "--name", "my-pack", "--mode", "auto", "--store", "default", "--yes")
    data = tomllib.loads((folder / "sub" / "agentos.toml").read_text())

    assert data == {"mode": "auto", "store": "default", "pins": "off", "packs": [{"module": "packs/my_pack.py"}]}
    assert names(folder / "sub") == ["agentos.toml", "packs/my_pack.py"]


def test_init_without_a_pack(folder, command):
    told = command("init", "--yes", "--no-pack", "--json")

    assert [Path(path).name for path in told.data["made"]] == ["agentos.toml", ".gitignore"]
    assert "packs" not in tomllib.loads((folder / "agentos.toml").read_text())


@pytest.mark.parametrize("ending", ["toml", "yaml", "yml", "json"])
def test_init_overwrites_no_manifest(folder, command, ending):
    path = folder / f"agentos.{ending}"
    path.write_text("mine")
    told = command("init", "--yes")

    assert told.code == 1
    assert path.read_text() == "mine"
    assert names(folder) == [path.name]


def test_init_overwrites_no_pack(folder, command):
    (folder / "packs").mkdir()
    (folder / "packs" / "hello.py").write_text("mine")
    told = command("init", "--yes")

    assert told.code == 1
    assert "--name" in told.err
    assert names(folder) == ["packs/hello.py"]


def test_init_goes_on_where_it_was_interrupted(folder, command):
    command("init", "--yes")
    (folder / "agentos.toml").unlink()

    assert command("init", "--yes").code == 0


def test_init_tells_of_a_manifest_above(folder, command):
    command("init", "--yes")

    assert "the new one will count" in command("init", "inner", "--yes").err


@pytest.mark.parametrize("name", ["My Pack", "../x", "a--b", "x" * 41, "1st", "ä"])
def test_a_name_that_cant_be_is_refused(folder, command, name):
    assert command("init", "--yes", "--name", name).code == 2
    assert command("new", "pack", name).code == 2
    assert names(folder) == []


def test_a_better_name_is_suggested():
    assert fault_of_pack_name("My Pack!").endswith("how about 'my-pack'?")
    assert fault_of_pack_name("my-pack") is None


def test_init_asks_at_a_terminal(folder):
    told = run_in_terminal(
        [*AGENTOS, "init"],
        inputs=[("first pack [hello]: ", "greeter\n"), ("[toml]: ", "yaml\n"), ("[approve]: ", "\n")],
        cwd=folder,
    )

    assert told.code == 0
    assert read_file(folder / "agentos.yaml")["packs"] == [{"module": "packs/greeter.py"}]


def test_init_asks_again_until_an_answer_can_be_used(folder):
    inputs = [("[hello]: ", "My Pack\n"), ("how about 'my-pack'?", ""), ("[hello]: ", "\n")]
    inputs += [("[toml]: ", "tomml\n"), ("did you mean 'toml'?", ""), ("[toml]: ", "toml\n"), ("[approve]: ", "\n")]
    told = run_in_terminal([*AGENTOS, "init"], width=200, inputs=inputs, cwd=folder)

    assert told.code == 0
    assert names(folder) == [".agentos/.gitignore", "agentos.toml", "packs/hello.py"]


@pytest.mark.parametrize("format_", ["toml", "yaml", "json"])
@pytest.mark.parametrize("store", ["C:\\data\\x.db", 'a"b # c.db', "a: b.db", "größe.db", "postgresql://u:p@h/x"])
def test_init_writes_any_store_as_it_was_given(folder, command, format_, store):
    told = command("init", "--yes", "--format", format_, "--store", store)

    assert told.code == 0
    assert read_file(folder / f"agentos.{format_}")["store"] == store
    assert command("config", "show").code == 0


@pytest.mark.parametrize("options", [("--store", "mysql://x"), ("--store", "a\nb"), ("--name", "x", "--no-pack")])
def test_flags_that_cant_be_are_refused_before_anything_is_made(folder, command, options):
    assert command("init", "--yes", *options).code == 2
    assert names(folder) == []


def test_what_to_try_next_can_be_pasted(folder, command):
    assert "\n  cd 'my hosts'\n" in command("init", "my hosts", "--yes").out
    assert "\n  cd 'my hosts/x' && pytest\n" in command("new", "pack", "x", "--into", "my hosts").out


def test_without_a_terminal_nothing_is_asked(folder):
    assert run_piped("init", cwd=folder).returncode == 0


# -- new pack ----------------------------------------------------------------------------------------------------------


@pytest.mark.proof
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_new_pack_has_tests_that_pass(folder, command, flavour):
    told = command("new", "pack", "my-pack", "--flavour", flavour, "--into", "packs", "--json")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder / "packs" / "my-pack",
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert told.code == 0
    assert done.returncode == 0, done.stdout
    assert set(told.data["files"]) <= {
        path for path in names(folder / "packs" / "my-pack") if "__pycache__" not in path
    }


@pytest.mark.proof
def test_new_packs_have_types_that_pass(folder, command):
    pytest.importorskip("mypy")
    for flavour in FLAVOURS:
        command("new", "pack", f"my-{flavour}", "--flavour", flavour)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *(f"my-{one}/agentos_pack_my_{one}" for one in FLAVOURS)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_new_pack_is_loaded_as_a_folder(folder, command, flavour):
    command("init", "--yes", "--no-pack")
    command("new", "pack", "my-pack", "--flavour", flavour)
    told = command("packs", "add", "my-pack/agentos_pack_my_pack", "--json")

    assert told.data["probe"]["status"] == "loaded"


def test_a_new_pack_is_a_distribution_with_an_entry_point(folder, command):
    command("new", "pack", "my-pack")
    project = tomllib.loads((folder / "my-pack" / "pyproject.toml").read_text())

    assert project["project"]["name"] == "agentos-pack-my-pack"
    assert project["project"]["entry-points"]["agentos.packs"] == {"my-pack": "agentos_pack_my_pack"}
    assert read_file(folder / "my-pack" / ".github" / "workflows" / "ci.yml")["name"] == "ci"


def test_a_new_pack_can_be_built(folder, command):
    command("new", "pack", "my-pack")
    build = "from hatchling.build import build_wheel; print(build_wheel('dist'))"
    done = subprocess.run(
        [sys.executable, "-c", build], cwd=folder / "my-pack", capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "agentos_pack_my_pack-0.1.0-py3-none-any.whl" in done.stdout


def test_a_wrapper_wraps_the_tool_that_is_named(folder, command):
    command("new", "pack", "my-cache", "--flavour", "wrapper", "--tool", "find_pets")

    assert '"find_pets"' in (folder / "my-cache" / "agentos_pack_my_cache" / "__init__.py").read_text()


_MAIL = '''
from agentos import ExtensionPack, tool

@tool(effect="destructive", required_access=["mail.send"])
async def send_mail(to: list[str], text: str = "") -> str:
    """Send."""
    return "sent"

def create_extension_pack():
    return ExtensionPack("mail", "1", [send_mail])
'''


def test_a_wrapper_is_written_for_the_tool_as_the_manifest_has_it(folder, command):
    (folder / "mail.py").write_text(_MAIL)
    (folder / "agentos.toml").write_text('[[packs]]\nmodule = "./mail.py"\n')
    command("new", "pack", "careful", "--flavour", "wrapper", "--tool", "send_mail")
    made = (folder / "careful" / "agentos_pack_careful" / "__init__.py").read_text()
    schema = json.loads((folder / "careful" / "tests" / "beneath.json").read_text())
    said = tomllib.loads((folder / "careful" / "conformance.toml").read_text())

    assert '@tool(effect="destructive", required_access=["mail.send"], name="send_mail", wraps=True)' in made
    assert "PUBLIC" not in made
    assert set(schema["properties"]) == {"to", "text"}
    assert list(said["samples"]["send_mail"]) == ["to"]


def test_a_wrapper_of_a_tool_that_the_manifest_lacks_says_so(folder, command):
    (folder / "agentos.toml").write_text("packs = []\n")
    told = command("new", "pack", "careful", "--flavour", "wrapper", "--tool", "send_mail")

    assert told.code == 0
    assert "no tool of this manifest is called send_mail" in told.err


def test_a_tool_that_cant_be_named_so_is_refused(folder, command):
    assert command("new", "pack", "x", "--tool", "a b").code == 2


def test_no_placeholder_is_left(folder, command):
    for flavour in FLAVOURS:
        command("new", "pack", f"p-{flavour}", "--flavour", flavour)

    assert [path for path in names(folder) if "@@" in (folder / path).read_text()] == []


def test_a_new_pack_overwrites_nothing(folder, command):
    (folder / "my-pack").mkdir()
    (folder / "my-pack" / "mine").write_text("mine")
    told = command("new", "pack", "my-pack")

    assert told.code == 1
    assert names(folder) == ["my-pack/mine"]


def test_a_pack_that_cant_be_finished_leaves_nothing(folder, command, monkeypatch):
    written = []

    def failing(path, data):
        written.append(path)
        if len(written) > 3:
            raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(agentos.cli.scaffolding, "write_file", failing)
    told = command("new", "pack", "my-pack")

    assert told.code == 1
    assert "the disk is full (No space left on device)" in told.err
    assert list(folder.iterdir()) == []


# -- config ------------------------------------------------------------------------------------------------------------


def test_config_show_says_where_each_value_comes_from(project, command, monkeypatch):
    project("hello", more='mode = "auto"\ndeny = ["x"]\n')
    monkeypatch.setenv("AGENTOS_DENY", "a,b")
    told = {one["path"]: (one["value"], one["origin"]) for one in command("config", "show", "--json").data["settings"]}

    assert told["mode"] == ("auto", "agentos.toml")
    assert told["deny"] == (["a", "b"], "AGENTOS_DENY")
    assert told["pins"] == ("first-use", "default")
    assert told["packs[0].module"] == ("hello.py", "agentos.toml")


def test_config_show_for_people(project, command):
    project("hello")
    lines = [line.split() for line in command("config", "show").out.splitlines()]

    assert ["mode", "approve", "default"] in lines
    assert ["lock", "none", "default"] in lines


def test_every_variable_that_is_read_is_known_and_every_one_that_is_known_is_read():
    """A variable that nobody lists is one that doctor calls a mistake."""
    source = "".join(path.read_text("utf-8") for path in sorted(Path(agentos.__file__).parent.rglob("*.py")))
    read = Counter(re.findall(r"(?<![A-Z_])AGENTOS_[A-Z_]*[A-Z]", source))

    assert read.keys() == VARIABLES.keys()
    assert [name for name, times in read.items() if times == 1] == []  # in the list itself, and nowhere else


def test_no_variable_that_is_known_is_a_mistake_to_doctor():
    from agentos.cli.commands.doctor import Inspected, check_environment

    assert list(check_environment(Inspected(dict.fromkeys(VARIABLES, "x")))) == []


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: path.symlink_to("nowhere.toml")])
def test_init_says_what_stands_in_the_place_of_the_manifest(folder, command, make):
    make(folder / "agentos.toml")
    told = command("init", "--yes")

    assert (told.code, "error: agentos.toml is a " in told.err) == (1, True)
    assert [path.name for path in folder.iterdir()] == ["agentos.toml"]
