"""What people see, as text files: in a narrow terminal and in a wide one. GOLDEN=write writes them anew."""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest
from terminal import AGENTOS, GIFS, GREET, run_in_terminal, run_piped

GOLDEN = Path(__file__).with_name("golden")
WIDTHS = {"narrow": 40, "wide": 120}
MANIFEST = """# What the golden host loads.
mode = "auto"
deny = ["gif_*"]

[[packs]]
module = "hello.py"
options = { word = "Good day", api_key = "never-shown" }

[[packs]]
module = "gifs.py"
enabled = false

[[packs]]
package = "calculater"

[overrides.tools]
greeet = { enabled = false }
"""
BARE = '''
from agentos import PUBLIC, ExtensionPack, tool


@tool(effect="read", required_access=PUBLIC)
async def look(what: str) -> str:
    """Look at something."""
    return what


pack = ExtensionPack("bare", "1", [look])
'''
COMMANDS = {
    "help": ["--help"],
    "packs-help": ["packs", "--help"],
    "packs-list": ["packs", "list"],
    "packs-show": ["packs", "show", "hello", "--probe"],
    "packs-reload": ["packs", "reload"],
    "packs-add-unknown": ["packs", "add", "calculater"],
    "stacks": ["stacks"],
    "why": ["why", "greet"],
    "tools-list": ["tools", "list"],
    "tools-show": ["tools", "show", "greet"],
    "tools-call-bad": ["tools", "call", "greet", "nam=Ada"],
    "approvals-list": ["approvals", "list"],
    "secrets-list": ["secrets", "list", "--manifest", "secret/agentos.toml"],
    "config-show": ["config", "show"],
    "doctor": ["doctor"],
    "lint": ["lint", "bare.py"],
    "lock-check": ["lock", "--check", "--manifest", "locked/agentos.toml"],
    "new-pack": ["new", "pack", "my-pack", "--into", "made"],
    "init": ["init", "fresh", "--yes"],
    "no-manifest": ["packs", "list", "--manifest", "nowhere.toml"],
    "tools-call": ["tools", "call", "greet", "name=Ada"],
    "secrets-check": ["secrets", "check", "--manifest", "secret/agentos.toml"],
}
STORED = {
    "audit-list": ["audit", "list"],
    "approvals-list-rows": ["approvals", "list"],
    "approvals-show": ["approvals", "show", "PROPOSAL"],
    "grants-list": ["grants", "list"],
}
"""Commands that are run where a call waits, and something was granted."""
NOTES = '''
from typing import Annotated

from agentos import PUBLIC, ExtensionPack, tool


@tool(effect="mutate", required_access=PUBLIC)
async def write_note(text: Annotated[str, "What to note"], tags: list[str] = []) -> str:
    """Write a note."""
    return text


pack = ExtensionPack("notes", "1.0", [write_note])
'''


@pytest.fixture
def host():
    """Return a folder whose path is always as long, so that lines break at the same places."""
    folder = Path(tempfile.mkdtemp(prefix="golden-", dir="/tmp"))
    for name in ("locked", "secret", "stored"):
        (folder / name).mkdir()
    old = {"key": "old", "name": "old", "version": "1", "originKind": "module", "files": {}, "tools": {}}
    lock = json.dumps({"version": 1, "packs": [old]})
    files = {"agentos.toml": MANIFEST, "hello.py": GREET, "gifs.py": GIFS, "bare.py": BARE}
    files |= {"locked/agentos.toml": '[[packs]]\nmodule = "../hello.py"\n', "locked/agentos.lock": lock}
    files |= {"secret/agentos.toml": '[[packs]]\nmodule = "../gifs.py"\n'}
    files |= {"stored/agentos.toml": 'store = "s.db"\n[[packs]]\nmodule = "notes.py"\n', "stored/notes.py": NOTES}
    for name, text in files.items():
        (folder / name).write_text(text)
    yield folder
    shutil.rmtree(folder)


def settled(text, folder):
    """Return *text* without what differs from machine to machine and from run to run, in as many characters."""
    text = text.replace(folder.name, "golden-xxxxxxxx")
    text = re.sub(r"Python \d\.\d+\.\d+", "Python 3.x.y", text)
    text = re.sub(r"sha256:[0-9a-f]{13}|(?<=')[0-9a-f]{20}(?=')", lambda found: "x" * len(found[0]), text)
    text = re.sub(r"\b(?:[0-9a-f]{32}|[0-9a-f]{8})\b", lambda found: "x" * len(found[0]), text)
    text = re.sub(r"20\d\d-\d\d-\d\d", "2027-01-31", text)
    text = re.sub(r"\d\d:\d\d:\d\d", "12:00:00", text)
    text = text.partition("\nInstalled, and not in the")[0]  # which packs are installed besides
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def seen(words, width, folder, host):
    """Return what people see of a command, and its exit code."""
    argv, env = [*AGENTOS, "--no-color", *words], {"AGENTOS_DATA": str(host / "data")}
    told = run_in_terminal(argv, width=WIDTHS[width], cwd=folder, env=env)
    return settled(told, host) + f"[exit code {told.code}]\n"


def is_as_in(golden, text):
    """Tell whether *text* is what the golden file says, which is written anew if that is asked for."""
    if os.environ.get("GOLDEN") == "write":
        golden.write_text(text, "utf-8")
    return text == golden.read_text("utf-8")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", COMMANDS)
def test_people_see_what_the_golden_file_says(name, width, host):
    text = seen(COMMANDS[name], width, host, host)

    assert is_as_in(GOLDEN / f"{name}.{width}.txt", text), text


def test_people_see_what_is_stored_as_the_golden_files_say(host):
    """One run of all: what is stored takes its time to make."""
    env, folder = {"AGENTOS_DATA": str(host / "data")}, host / "stored"
    call = run_piped("tools", "call", "write_note", "text=Buy milk", 'tags=["shop"]', "--json", cwd=folder, env=env)
    run_piped("grants", "add", "write_note", "always", "--argument", "$.text=Buy *", cwd=folder, env=env)
    run_piped("grants", "add", "delete_*", "never", cwd=folder, env=env)
    names = {"PROPOSAL": json.loads(call.stdout)["proposal"]}
    texts = {
        f"{name}.{width}.txt": seen([names.get(word, word) for word in words], width, folder, host)
        for name, words in STORED.items()
        for width in WIDTHS
    }

    assert [text for name, text in texts.items() if not is_as_in(GOLDEN / name, text)] == []


def test_no_golden_file_is_left_over():
    expected = {f"{name}.{width}.txt" for name in (*COMMANDS, *STORED) for width in WIDTHS}

    assert {path.name for path in GOLDEN.iterdir()} == expected


@pytest.mark.parametrize("name", [*COMMANDS, *STORED])
def test_lines_fit_a_narrow_terminal(name):
    """Only words that are longer than a line may stick out."""
    lines = (GOLDEN / f"{name}.narrow.txt").read_text("utf-8").splitlines()

    assert [line for line in lines if len(line) > 40 and " " in line.strip() and not line.startswith("Usage:")] == []
