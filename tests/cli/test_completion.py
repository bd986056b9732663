"""Completion: the scripts load, and what is completed is what there is."""

import shutil
import subprocess
import sys

import pytest
from terminal import environment

from agentos.cli.command_list import COMMANDS


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
    asked = 'eval "$SCRIPT"; COMP_WORDS=(agentos packs inf); COMP_CWORD=2; '
    asked += '_agentos_completion agentos inf packs; echo "${COMPREPLY[@]}"'
    env = environment({"SCRIPT": script, "PATH": f"{program.parent}:/usr/bin:/bin"})
    done = subprocess.run(["bash", "-c", asked], env=env, cwd=folder, capture_output=True, text=True, check=False)

    assert done.stdout == "info\n"


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

    assert completed("agentos packs info ") == ["exits.py", "hello.py"]
    assert completed("agentos packs info he") == ["hello.py"]


def test_where_there_is_no_manifest_no_pack_is_completed(folder, completed):
    assert completed("agentos packs info ") == []
    (folder / "agentos.toml").write_text("= broken")
    assert completed("agentos packs info ") == []
    assert completed("agentos --principal a") == []


def test_completion_follows_a_named_manifest(project, completed, tmp_path, monkeypatch):
    folder = project("hello")
    monkeypatch.chdir(tmp_path)

    assert completed(f"agentos --manifest {folder}/agentos.toml packs info ") == ["hello.py"]


def test_principals_are_completed(project, completed):
    project("hello", more="[principals.ada]\n[principals.bob]\n")

    assert completed("agentos --principal a") == ["ada"]
