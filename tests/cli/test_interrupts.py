"""Whatever ends a command in the middle, files are as they were or as they were to be, and nothing lies around."""

import functools
import json
import logging
import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from powerless import powerless
from terminal import AGENTOS, GIFS, GREET, PATIENCE, environment

from agentos.cli.app import App
from agentos.cli.layered_config import load_config
from agentos.cli.store_records import opened, records
from agentos.store import Store

pytestmark = pytest.mark.proof

SCRIPT = Path(__file__).with_name("interruptions.py")
_script = runpy.run_path(str(SCRIPT))
contents, meaning = _script["contents"], _script["meaning"]
MANIFEST = '# ours\nmode = "auto" # keep\n\n[[packs]]\nmodule = "hello.py"\n'
COMMANDS = {
    "packs add": ["packs", "add", "gifs.py", "--no-probe"],
    "packs remove": ["packs", "remove", "hello"],
    "packs disable": ["packs", "disable", "hello"],
    "init": ["init", "sub", "--yes"],
    "new pack": ["new", "pack", "my-pack", "--flavour", "bridge"],
    "lock": ["lock"],
}
WITH_STORE = {"audit export": ["audit", "export", "log.jsonl", "--force"]}
"""Commands that are run where something was stored."""
DECIDING = {
    "packs enable": ["packs", "enable", "gifs"],
    "packs disable in the store": ["packs", "disable", "notes"],
    "packs accept": ["packs", "accept", "notes:look"],
    "tokens add": ["serve", "tokens", "issue", "--token-file", "tokens.json", "--principal", "ann"],
    "tokens remove": ["serve", "tokens", "revoke", "TOKEN", "--token-file", "tokens.json"],
    "approvals edit": ["approvals", "edit", "PROPOSAL", "text=bye"],
    "approvals reject": ["approvals", "reject", "PROPOSAL", "--reason", "no"],
    "grants add": ["grants", "add", "note", "never"],
}
"""Commands whose effect is in the store, or in a file whose bytes are never the same twice."""
NOTES = '''
from agentos import PUBLIC, ExtensionPack, tool


@tool(effect="mutate", required_access=PUBLIC)
async def note(text: str) -> str:
    """Write a note."""
    return text


@tool(effect="read", required_access=PUBLIC)
async def look() -> str:
    """Look at notes."""
    return ""


pack = ExtensionPack("notes", "1", [note, look])
'''


def write_template(folder):
    folder.mkdir()
    for name, text in {"agentos.toml": MANIFEST, "hello.py": GREET, "gifs.py": GIFS, "agentos.lock": "old"}.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def template(tmp_path):
    return write_template(tmp_path / "template")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Return a function that interrupts every command at each of its steps, and tells of one how its runs ended."""
    top = tmp_path_factory.mktemp("interrupts")
    env = environment({"AGENTOS_DATA": str(top / "data")})
    template, stored = write_template(top / "template"), write_template(top / "stored")
    (stored / "agentos.toml").write_text(f'store = "s.db"\n{MANIFEST}')
    (stored / "log.jsonl").write_text("old")
    subprocess.run([*AGENTOS, "tools", "call", "greet", "name=Ada"], cwd=stored, env=env, check=True, timeout=PATIENCE)

    @functools.cache
    def told(how, folder, commands):
        argv = [sys.executable, str(SCRIPT), how, str(folder), commands]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def of(how, command):
        folder, commands = (stored, WITH_STORE) if command in WITH_STORE else (template, COMMANDS)
        found = told(how, folder, json.dumps(commands))[command]
        assert found["code"] == 0
        return found["cut"], contents(folder), found["after"]

    return of


HEARD = {"SIGINT": 130, "SIGTERM": 143}


@pytest.fixture(scope="module")
def decided(tmp_path_factory):
    """Return a function that interrupts commands which decide something, and tells what was decided by then."""
    top = tmp_path_factory.mktemp("decisions")
    env, folder = environment({"AGENTOS_DATA": str(top / "data")}), top / "here"
    folder.mkdir()
    packs = '[[packs]]\nmodule = "notes.py"\n[[packs]]\nmodule = "gifs.py"\nenabled = false\n'
    files = {"agentos.toml": f'store = "s.db"\n{packs}[principals.ann]\n', "gifs.py": GIFS, "notes.py": NOTES}
    for name, text in files.items():
        (folder / name).write_text(text)

    def run(*arguments):
        told = subprocess.run([*AGENTOS, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False)
        return json.loads(told.stdout)

    names = {
        "PROPOSAL": run("tools", "call", "note", "text=hi", "--json")["proposal"],
        "TOKEN": run(*DECIDING["tokens add"], "--json")["id"],
    }
    (folder / "notes.py").write_text(NOTES.replace("Look at notes", "Look at all notes"))
    commands = {name: [names.get(word, word) for word in words] for name, words in DECIDING.items()}

    def told(how):
        argv = [sys.executable, str(SCRIPT), how, str(folder), json.dumps(commands), "7"]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), json.loads(json.dumps(meaning(folder)))

    return told


@pytest.mark.timeout(500)
@pytest.mark.parametrize("how", [*HEARD, "SIGKILL"])
def test_a_signal_at_any_step_leaves_a_decision_made_or_not_made(decided, how):
    """What can be heard is said by the exit code, too, and leaves no litter. One run of all: it takes its time."""
    ends, before = decided(how)

    for command, told in ends.items():
        cut = told["cut"]
        assert (told["code"], len(cut) > 2) == (0, True), command
        assert [run["says"] for run in cut if run["says"] not in (before, told["said"])] == [], command
        if how in HEARD:
            assert {run["code"] for run in cut} == {HEARD[how]}, command
            assert [name for run in cut for name in run["files"] if ".tmp" in name] == [], command


@pytest.mark.parametrize("how", [*HEARD, "SIGKILL"])
@pytest.mark.parametrize("command", [*COMMANDS, *WITH_STORE])
def test_a_signal_at_any_step_leaves_files_whole(outcomes, how, command):
    cut, before, after = outcomes(how, command)

    assert len(cut) > 2
    for run in cut:
        for name, text in run["files"].items():
            if ".tmp" not in name:
                assert text in (before.get(name), after.get(name)), name


@pytest.mark.parametrize("how", HEARD)
@pytest.mark.parametrize("command", [*COMMANDS, *WITH_STORE])
def test_a_signal_that_can_be_heard_leaves_no_litter(outcomes, how, command):
    cut, _, _ = outcomes(how, command)

    assert {run["code"] for run in cut} == {HEARD[how]}
    assert [name for run in cut for name in run["files"] if ".tmp" in name] == []


@pytest.mark.parametrize("command", [*COMMANDS, *WITH_STORE])
def test_a_disk_that_is_full_leaves_files_whole_and_no_litter(outcomes, command):
    cut, before, after = outcomes("limit", command)

    assert cut[0]["code"] != 0
    for run in cut:
        odd = [name for name, text in run["files"].items() if text not in (before.get(name), after.get(name))]
        assert odd == []


def test_a_pack_is_there_whole_or_not_at_all(outcomes):
    cut, _, after = outcomes("SIGKILL", "new pack")
    whole = {name for name in after if name.startswith("my-pack/")}
    seen = [{name for name in run["files"] if name.startswith("my-pack/")} for run in cut]

    assert [found for found in seen if found not in (set(), whole)] == []


def test_the_manifest_of_init_comes_last(outcomes):
    cut, _, after = outcomes("SIGKILL", "init")
    made = {name for name in after if name.startswith("sub/")}

    assert [run for run in cut if "sub/agentos.toml" in run["files"] and not made <= run["files"].keys()] == []


# -- a folder that can't be written ------------------------------------------------------------------------------------


@pytest.fixture
def locked(template):
    """Return the folder as one that nobody can write to."""
    template.chmod(0o555)
    yield template
    template.chmod(0o755)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_that_cant_be_written_is_told_and_left_alone(locked, command):
    before = {path.name: path.read_bytes() for path in locked.iterdir()}
    done = subprocess.run(
        [*AGENTOS, *COMMANDS[command]],
        cwd=locked,
        env=environment({"PYTHONDONTWRITEBYTECODE": "1"}),
        preexec_fn=powerless,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode in (1, 3)
    assert "Permission denied" in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name: path.read_bytes() for path in locked.iterdir()} == before


def test_a_home_that_cant_be_written_is_told(template, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o555)
    (template / "agentos.toml").write_text(f'store = "default"\n{MANIFEST}')
    env = environment({"HOME": str(home), "XDG_DATA_HOME": str(home / "share"), "PYTHONDONTWRITEBYTECODE": "1"})
    done = subprocess.run(
        [*AGENTOS, "packs", "disable", "hello"],
        cwd=template,
        env=env,
        preexec_fn=powerless,
        capture_output=True,
        text=True,
        check=False,
    )
    home.chmod(0o755)

    assert done.returncode == 0  # written into the manifest instead
    assert "can't be opened" in done.stderr
    assert "enabled = false" in (template / "agentos.toml").read_text()


FULL = """
mount -t tmpfs -o size=64k none "$1" && cp -r "$2"/. "$1" && cd "$1" || exit 9
dd if=/dev/zero of=filler 2>/dev/null
shift 2
"$@"
"""


def test_a_real_disk_that_is_full(template, tmp_path):
    """On a file system of 64 kB that is full to the brim."""
    mount = tmp_path / "mount"
    mount.mkdir()
    arguments = ["unshare", "-m", "sh", "-c", FULL, "sh", str(mount), str(template)]
    report = [*arguments, "sh", "-c", '"$@"; echo "code $?"; cat agentos.toml; ls -A', "sh"]
    try:
        subprocess.run([*arguments, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    done = subprocess.run(
        [*report, *AGENTOS, "packs", "disable", "hello"],
        env=environment({"PYTHONDONTWRITEBYTECODE": "1"}),
        capture_output=True,
        text=True,
        check=False,
    )

    assert "No space left on device" in done.stderr
    assert done.stdout.startswith(f"code 1\n{MANIFEST}")
    assert ".tmp" not in done.stdout
    assert list(mount.iterdir()) == []


def test_doctor_names_a_disk_that_is_full(template, tmp_path):
    """A store that was begun and can't be written any more."""
    mount = tmp_path / "mount"
    mount.mkdir()
    (template / "agentos.toml").write_text(f'store = "s.db"\n{MANIFEST}')
    env = environment({"PYTHONDONTWRITEBYTECODE": "1", "AGENTOS_DATA": str(tmp_path / "data")})
    subprocess.run([*AGENTOS, "packs", "disable", "hello"], cwd=template, env=env, check=True, capture_output=True)
    arguments = ["unshare", "-m", "sh", "-c", FULL.replace("64k", "2m"), "sh", str(mount), str(template)]
    try:
        subprocess.run([*arguments, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    done = subprocess.run(
        [*arguments, *AGENTOS, "doctor", "--json"], env=env, capture_output=True, text=True, check=False
    )

    about = [one["message"] for one in json.loads(done.stdout)["troubles"] if one["about"] == "store"]
    assert about == [f"nothing can be written in {mount}: the disk is full (No space left on device)"]


# -- a store that is being closed --------------------------------------------------------------------------------------


async def remember(path):
    async with opened(str(path)) as memory:
        await memory.disabled()


async def look_up(path):
    async with records(load_config(path.with_name("agentos.toml"), {"AGENTOS_STORE": str(path)})) as found:
        await found.proposals_like("x")


@pytest.mark.parametrize("use", [remember, look_up])
def test_ctrl_c_while_a_store_is_closed_lets_it_be_closed(template, capsys, monkeypatch, use):
    store, close, closed = template / "s.db", Store.close, []
    store.touch()

    async def interrupted(self):
        os.kill(os.getpid(), signal.SIGINT)
        await close(self)
        closed.append(self)

    monkeypatch.setattr(Store, "close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        App().run(use(store))

    assert (len(closed), capsys.readouterr().err) == (1, "")


def test_what_the_library_of_the_store_logs_is_one_line(capsys):
    async def fail():
        try:
            raise OSError("gone")
        except OSError:
            logging.getLogger("sqlalchemy.pool").exception("Exception closing connection")

    App().run(fail())

    (line,) = capsys.readouterr().err.splitlines()
    assert (line.startswith("agentos: Exception closing connection at "), line.endswith("-v shows the traceback")) == (
        True,
        True,
    )
