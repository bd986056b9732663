"""Completion: the scripts load, and what is completed is what there is."""

import json
import os
import shutil
import subprocess
import sys
import time

import pytest
from bridging import plain
from commanding import Project
from terminal import GREET, environment, run_in_terminal

from agentos.cli.command_list import COMMANDS
from agentos.cli.known_names import NamesFile


@pytest.fixture
def completed(command, monkeypatch):
    """Return a function that returns what bash would be offered for a line."""

    def run(line):
        with monkeypatch.context() as patch:
            patch.setenv("_AGENTOS_COMPLETE", "bash_complete")
            patch.setenv("COMP_WORDS", line)
            patch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
            return [item.partition(",")[2] for item in command().out.splitlines() if item]

    return run


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_names_the_command(command, shell):
    told = command("completion", shell)

    assert told.code == 0
    assert "_AGENTOS_COMPLETE" in told.out
    assert command("completion", shell, "--json").data["shell"] == shell


@pytest.mark.parametrize(
    ("shell", "check"),
    [
        ("bash", 'eval "$SCRIPT" && complete -p agentos'),
        ("zsh", 'autoload -Uz compinit && compinit -u -D && eval "$SCRIPT" && print ${_comps[agentos]}'),
        ("fish", "echo $SCRIPT | source; and complete -c agentos"),
    ],
)
def test_a_script_loads(command, shell, check):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = command("completion", shell).out
    done = subprocess.run(
        [shell, "-c", check], env=environment({"SCRIPT": script}), capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "agentos" in done.stdout
    assert done.stderr == ""


def test_bash_completes_by_the_script(command, project, tmp_path):
    folder = project("hello")
    program = tmp_path / "bin" / "agentos"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m agentos.cli "$@"\n')
    program.chmod(0o755)
    script = command("completion", "bash").out
    asked = 'eval "$SCRIPT"; COMP_LINE="agentos packs sho"; COMP_POINT=17; '
    asked += '_agentos_completion agentos sho packs; echo "${COMPREPLY[@]}"'
    env = environment({"SCRIPT": script, "PATH": f"{program.parent}:/usr/bin:/bin"})
    done = subprocess.run(["bash", "-c", asked], env=env, cwd=folder, capture_output=True, text=True, check=False)

    assert done.stdout == "show\n"


def test_commands_are_completed(completed):
    assert completed("agentos pa") == ["packs"]
    assert completed("agentos ") == list(COMMANDS)


def test_commands_of_a_group_are_completed(completed):
    assert completed("agentos packs dis") == ["disable"]


def test_options_are_completed(completed):
    assert "--flavour" in completed("agentos new pack --fl")
    assert "--version" in completed("agentos --ver")


def test_options_of_every_command_are_completed_before_and_behind_its_name(completed):
    assert completed("agentos --js") == ["--json"]
    assert completed("agentos packs --js") == ["--json"]
    assert completed("agentos packs list --prin") == ["--principal"]
    assert completed("agentos tools call --no-") == ["--no-color"]


def test_packs_are_completed_without_importing_them(project, completed):
    project("exits", "hello")

    assert completed("agentos packs remove ") == ["exits.py", "hello.py"]
    assert completed("agentos packs show he") == ["hello.py"]


def test_where_there_is_no_manifest_no_pack_is_completed(folder, completed):
    assert completed("agentos packs remove ") == []
    assert completed("agentos tools call ") == []
    (folder / "agentos.toml").write_text("= broken")
    assert completed("agentos packs remove ") == []
    assert completed("agentos tools call ") == []
    assert completed("agentos --principal a") == []


def test_completion_follows_a_named_manifest(project, completed, tmp_path, monkeypatch):
    folder = project("hello")
    monkeypatch.chdir(tmp_path)

    assert completed(f"agentos --manifest {folder}/agentos.toml packs remove ") == ["hello.py"]


def test_principals_are_completed(project, completed):
    project("hello", more="[principals.ada]\n[principals.bob]\n")

    assert completed("agentos --principal a") == ["ada"]


# -- what packs offer --------------------------------------------------------------------------------------------------

COUNTED = f"""
from pathlib import Path

with Path(__file__).with_name("loads.txt").open("a") as file:
    file.write("loaded\\n")
{GREET}
"""


@pytest.fixture
def counted(project):
    """Return a folder with a pack that counts how often it is loaded, and a function that tells."""
    folder = project("counted", files={"counted.py": COUNTED})

    def loads():
        file = folder / "loads.txt"
        return len(file.read_text().splitlines()) if file.exists() else 0

    return folder, loads


def test_tools_and_names_are_completed(project, completed):
    project("hello", "gifs")

    assert completed("agentos tools call gr") == ["greet"]
    assert completed("agentos tools show gifs:") == ["gifs:gif_search"]
    assert completed("agentos grants add gr") == ["greet"]
    assert completed("agentos packs accept hel") == ["hello:greet"]
    assert completed("agentos why tool:") == ["tool:gif_search", "tool:greet"]
    assert completed("agentos why gre") == ["greet"]
    assert completed("agentos stacks ") == ["tool"]


def test_no_pack_is_loaded_for_what_a_command_found_out(counted, completed, command):
    _, loads = counted
    assert command("tools", "list").code == 0
    before = loads()

    assert completed("agentos tools call ") == ["greet", "hello:greet"]
    assert completed("agentos why tool:g") == ["tool:greet"]
    assert loads() == before


def test_a_pack_is_loaded_once_for_a_completion_and_again_when_it_changed(counted, completed):
    folder, loads = counted
    completed("agentos tools call ")
    completed("agentos tools call ")
    assert loads() == 1

    (folder / "counted.py").write_text(COUNTED.replace("greet", "welcome"))
    later = time.time() + 10
    os.utime(folder / "counted.py", (later, later))
    assert completed("agentos tools call w") == ["welcome"]


def test_a_bad_pack_keeps_no_other_from_being_completed_and_is_not_tried_again(counted, completed, project):
    _, loads = counted
    project("exits", "counted", files={"counted.py": COUNTED})
    assert completed("agentos tools call g") == ["greet"]
    tried = loads()

    assert completed("agentos tools call g") == ["greet"]
    assert loads() == tried


def test_what_is_known_may_be_damaged_or_impossible_to_keep(project, completed):
    folder = project("hello")
    file = NamesFile(folder / "agentos.toml").path
    file.parent.mkdir(parents=True)
    for text in ("not JSON", "[]", '{"hello.py": 3, "other": {"at": "x", "offers": [1]}}'):
        file.write_text(text)
        assert completed("agentos tools call g") == ["greet"]
    file.unlink()
    file.mkdir()

    assert completed("agentos tools call g") == []


def test_no_server_is_started_for_a_completion_and_its_tools_are_known_once_it_was(project, completed, command):
    folder = project("hello")
    started = folder / "started.txt"
    server = plain()
    watched = {
        "command": "sh",
        "args": ["-c", f'echo yes >> {started}; exec "$0" "$@"', server["command"], *server["args"]],
    }
    (folder / "agentos.toml").unlink()
    data = {"packs": [{"module": "hello.py"}], "mcpServers": {"plain": {**server, **watched}}}
    (folder / "agentos.json").write_text(json.dumps(data))

    assert completed("agentos tools call mcp") == []
    assert completed("agentos tools call gr") == ["greet"]
    assert not started.exists()

    assert command("tools", "list").code == 0
    times = started.read_text()
    assert "mcp/plain:echo" in completed("agentos tools call mcp")
    assert started.read_text() == times


def test_ids_of_proposals_and_grants_are_completed(tmp_path, monkeypatch, completed):
    project = Project(tmp_path)
    project.run("tools", "call", "note", "text=x")
    project.run("grants", "add", "demo:wipe", "never")
    [proposal] = project.run("approvals", "list", "--json").json["proposals"]
    [grant] = project.run("grants", "list", "--json").json["grants"]
    monkeypatch.chdir(tmp_path)

    assert completed("agentos approvals show ") == [proposal["id"][:8]]
    assert completed(f"agentos approvals approve {proposal['id'][:3]}") == [proposal["id"][:8]]
    assert completed("agentos grants remove ") == [grant["id"][:8]]


def test_packs_that_are_installed_are_completed_where_they_count(project, completed):
    pytest.importorskip("agentos_pack_calculator")
    project("hello")

    assert completed("agentos packs show calc") == ["calculator"]
    assert completed("agentos lint calc") == ["calculator"]
    assert completed("agentos packs add calc") == ["calculator"]
    assert completed("agentos packs remove calc") == []


def test_old_names_of_commands_are_not_completed_and_what_stands_behind_them_is(project, completed):
    project("hello")

    assert completed("agentos packs inf") == []
    assert completed("agentos packs info he") == ["hello.py"]


def test_bash_completes_names_with_colons_at_a_terminal(command, project, tmp_path):
    folder = project("hello", "gifs")
    program = tmp_path / "bin" / "agentos"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m agentos.cli "$@"\n')
    program.chmod(0o755)
    (tmp_path / "rc").write_text("PS1='ready> '\n" + command("completion", "bash").out)
    command("tools", "list")
    told = run_in_terminal(
        ["bash", "--noprofile", "--rcfile", str(tmp_path / "rc"), "-i"],
        inputs=[
            ("ready> ", "agentos why to\t"),
            ("ol:g", "re\t"),
            ("et ", "\n"),
            ("tool:greet: active from hello 1.0", ""),
            ("ready> ", "exit\n"),
        ],
        width=200,
        cwd=folder,
        env={"PATH": f"{program.parent}:/usr/bin:/bin", "AGENTOS_DATA": os.environ["AGENTOS_DATA"], "NO_COLOR": "1"},
    )

    assert told.code == 0
