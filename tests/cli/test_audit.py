"""`agentos audit`: the log shown, verified and exported, without loading any pack."""

import itertools
import json
import os
import shutil
import sqlite3
import subprocess

import pytest
from commanding import MANIFEST, Project
from powerless import powerless
from terminal import AGENTOS, environment, run_in_terminal, run_piped


@pytest.fixture(scope="module")
def past(tmp_path_factory):
    """Return the folder of a project in which some calls were made."""
    project = Project(tmp_path_factory.mktemp("past"))
    project.run("tools", "call", "add", "a=1")
    project.run("tools", "call", "note", "text=hi", "--principal", "ann", "--yes")
    project.run("tools", "call", "broken")
    return project.folder


@pytest.fixture
def project(past, tmp_path):
    """Return a copy of that project, with a pack that nobody may load."""
    shutil.copytree(past, tmp_path, dirs_exist_ok=True)
    project = Project(tmp_path)
    project.write("pack.py", "import os; os._exit(3)")
    return project


def shown(project, *options):
    return project.run("audit", "show", *options, "--json").json["records"]


def tamper(project, statement):
    with sqlite3.connect(project.folder / "state.db") as connection:
        connection.execute(statement)
    connection.close()


def test_show_tells_what_happened(project):
    done = project.run("audit", "show")

    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0] == ["nr", "time", "event", "tool", "for", "how", "it", "went"]
    assert ["demo:add", "system", "run"] in [line[4:] for line in lines]
    assert ["demo:broken", "system", "ToolRaised", "run"] in [line[4:] for line in lines]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--tool", "demo:add", "--event", "call"], ["demo:add"]),
        (["--tool", "add", "--event", "call"], ["demo:add"]),
        (["--tool", "*:b*", "--event", "call"], ["demo:broken"]),
        (["--principal", "ann"], ["demo:note"] * 3),
        (["--event", "call"], ["demo:add", "demo:broken"]),
        (["--event", "call", "--limit", "1"], ["demo:broken"]),
        (["--event", "call", "--since", "1h"], ["demo:add", "demo:broken"]),
        (["--since", "2020-01-01", "--event", "call"], ["demo:add", "demo:broken"]),
        (["--since", "2999-01-01T00:00:00Z"], []),
        (["--principal", "nobody"], []),
    ],
)
def test_filters_pick_records(project, options, expected):
    assert [record["tool"] for record in shown(project, *options)] == expected


@pytest.mark.parametrize("since", ["yesterday", "5y", "999999w"])
def test_a_time_that_is_none_is_a_usage_error(project, since):
    done = project.run("audit", "show", "--since", since)

    assert (done.code, "is no time" in done.err) == (2, True)


def test_long_logs_are_read_from_the_end(project, monkeypatch):
    monkeypatch.setattr("agentos.cli.commands.audit._PAGE", 2)
    everything = shown(project)

    assert [record["seq"] for record in everything] == list(range(1, len(everything) + 1))
    assert shown(project, "--limit", "3") == everything[-3:]
    assert [record["tool"] for record in shown(project, "--tool", "add", "--event", "call")] == ["demo:add"]


def test_an_empty_log_is_said_to_be_empty(tmp_path):
    project = Project(tmp_path)

    assert project.run("audit", "show").out == "There are no such records.\n"
    assert project.run("audit", "verify").code == 0
    assert project.run("audit", "export").out == ""
    assert not (project.folder / "state.db").exists()


def test_without_a_store_there_is_no_log(tmp_path):
    assert Project(tmp_path, "").run("audit", "show").code == 3


def test_a_whole_chain_is_verified_and_its_end_told(project):
    done = project.run("audit", "verify")
    told = project.run("audit", "verify", "--json").json

    assert done.out == f"The chain is whole: {told['records']} records. It ends at {told['head']}\n"
    assert project.run("audit", "verify", "--known", told["head"]).code == 0


@pytest.mark.parametrize(
    ("statement", "broken_at"),
    [
        ("UPDATE audit SET body = replace(body, 'demo', 'other') WHERE seq = 3", 3),
        ("DELETE FROM audit WHERE seq = 2", 2),
        ("DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)", None),
    ],
)
def test_a_broken_link_is_named(project, statement, broken_at):
    table = _audit_table(project)
    count = len(shown(project))
    tamper(project, statement.replace("audit", table))
    done = project.run("audit", "verify", "--json")

    assert (done.code, done.json["ok"], done.json["brokenAt"]) == (1, False, broken_at or count)
    assert f"broken at record {broken_at or count}" in project.run("audit", "verify").err


def _audit_table(project):
    with sqlite3.connect(project.folder / "state.db") as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    connection.close()
    return min((name for name in names if "audit" in name), key=len)


def test_a_log_that_was_rolled_back_is_noticed_by_what_is_known(project):
    head = project.run("audit", "verify", "--json").json["head"]
    for file in project.folder.glob("state.db*"):
        if file.is_file() and file.suffix != ".key":
            file.unlink()

    assert project.run("audit", "verify", "--known", head).code == 1


@pytest.mark.parametrize("known", ["5", "x:y", "5:abc"])
def test_what_is_known_has_a_form(project, known):
    assert project.run("audit", "verify", "--known", known).code == 2


def test_export_writes_a_line_for_each_record(project):
    count = len(shown(project))
    done = project.run("audit", "export", "log.jsonl")
    lines = [json.loads(line) for line in (project.folder / "log.jsonl").read_text().splitlines()]

    assert (done.code, done.out) == (0, f"{count} records in log.jsonl\n")
    assert [line["seq"] for line in lines] == list(range(1, count + 1))
    assert all(line["prev"] == before["hash"] for before, line in itertools.pairwise(lines))


def test_export_to_stdout_is_nothing_but_records(project):
    done = run_piped("audit", "export", "-", cwd=project.folder, env=project.env)

    assert [json.loads(line)["seq"] for line in done.stdout.splitlines()][:2] == [1, 2]


def test_export_does_not_replace_a_file_unless_told_to(project):
    project.write("log.jsonl", "mine")

    assert project.run("audit", "export", "log.jsonl").code == 1
    assert (project.folder / "log.jsonl").read_text() == "mine"
    assert project.run("audit", "export", "log.jsonl", "--force", "--json").json["file"] == "log.jsonl"


def test_an_export_takes_the_place_of_files_only(project):
    os.mkfifo(project.folder / "pipe")
    done = project.run("audit", "export", "pipe", "--force")

    assert (done.code, "pipe: is no regular file" in done.err) == (1, True)
    assert (project.folder / "pipe").is_fifo()


def test_an_export_to_a_folder_that_is_not_there_names_the_file(project):
    done = project.run("audit", "export", "nowhere/log.jsonl")

    assert (done.code, "nowhere/log.jsonl: No such file" in done.err) == (1, True)


def test_an_export_that_fails_leaves_nothing_behind(project, monkeypatch):
    project.write("log.jsonl", "mine")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    done = project.run("audit", "export", "log.jsonl", "--force")

    assert (done.code, "No space left" in done.err) == (1, True)
    assert (project.folder / "log.jsonl").read_text() == "mine"
    assert [file.name for file in project.folder.iterdir() if "log.jsonl" in file.name] == ["log.jsonl"]


def test_foreign_text_does_nothing_to_a_terminal(tmp_path):
    project = Project(tmp_path, MANIFEST)
    project.run("tools", "call", "evil\x9b31m\x1b[2J")
    env = {**project.env, "NO_COLOR": "1"}
    exported = run_in_terminal([*AGENTOS, "audit", "export"], cwd=project.folder, env=env)
    shown = project.run("audit", "show").out

    assert ("evil" in exported, "evil" in shown) == (True, True)
    assert not {"\x1b", "\x9b"} & set(exported + shown)


def test_a_store_that_cant_be_written_is_read(project):
    """Such as a backup on a read-only disk."""
    ours = [path for path in project.folder.iterdir() if path.name.startswith("state.db") and path.is_file()]
    for path in [*ours, project.folder]:
        path.chmod(path.stat().st_mode & 0o555)
    try:
        ends = {
            words: subprocess.run(
                [*AGENTOS, *words.split()],
                cwd=project.folder,
                env=environment(project.env),
                preexec_fn=powerless,
                capture_output=True,
                text=True,
                check=False,
            )
            for words in ("audit list", "audit verify", "audit export", "approvals list", "grants list")
        }
    finally:
        project.folder.chmod(0o755)

    assert [(words, done.stderr) for words, done in ends.items() if done.returncode] == []
    assert "demo:add" in ends["audit list"].stdout
    assert "The chain is whole" in ends["audit verify"].stdout


# -- bundles -----------------------------------------------------------------------------------------------------------

SIGNING = """
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentos import PUBLIC, Descriptor, ExtensionPack, tool

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))


class Signer:
    public_key = KEY.public_key().public_bytes_raw()

    async def sign(self, head):
        return KEY.sign(head)


@tool(effect="read", required_access=PUBLIC)
async def look() -> str:
    \"\"\"Look.\"\"\"
    return "seen"


def create_extension_pack():
    return ExtensionPack("signing", "1.0", [look, Descriptor("provenance", "ours", Signer())])
"""
PUBLIC_KEY = "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"


def test_a_bundle_is_written_and_verified_without_anything_else(tmp_path):
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    project = Project(tmp_path / "here", 'store = "store.db"\n[[packs]]\nmodule = "signing.py"\n', signing=SIGNING)
    project.run("tools", "call", "look")
    file = tmp_path / "log.bundle"
    done = project.run("audit", "export", "--bundle", str(file))
    elsewhere = Project(tmp_path / "there", "")
    fine = elsewhere.run("audit", "verify-bundle", str(file), "--public-key", PUBLIC_KEY)
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    cut = elsewhere.run("audit", "verify-bundle", str(file), "--public-key", PUBLIC_KEY)
    other = elsewhere.run("audit", "verify-bundle", str(file), "--public-key", "ab" * 32)
    none = elsewhere.run("audit", "verify-bundle", str(file), "--public-key", "ab")

    assert (done.code, fine.code, cut.code, other.code, none.code) == (0, 0, 1, 1, 2)
    assert "The bundle is whole and signed" in fine.out
    assert "missing at the end" in cut.err
    assert "signed with another key" in other.err


def test_a_bundle_without_a_signer_is_refused(tmp_path):
    project = Project(tmp_path, "")
    done = project.run("audit", "export", "--bundle", str(tmp_path / "log.bundle"))

    assert done.code != 0
    assert "load a pack that offers provenance" in done.err
    assert not (tmp_path / "log.bundle").exists()
