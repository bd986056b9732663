"""`agentos doctor`: everything that may be wrong, each with its cure."""

import io
import json
import os
import resource
import shlex
import sqlite3
import subprocess
import sys
from contextlib import redirect_stdout

import pytest
from bridging import SERVERS
from terminal import AGENTOS, BAD, GIFS, GREET, environment

from agentos.checks import examination as module
from agentos.checks.faults import faults_of_store
from agentos.cli.main import main
from agentos.store.locations import place_of

NOT_A_DATABASE = "not a database at all, but long enough to be looked at"


def troubles(told):
    return [(one["level"], one["about"], one["message"], one["cure"]) for one in told.data["troubles"]]


def found(told, about):
    """Return the one trouble about something."""
    matching = [one for one in troubles(told) if one[1] == about]
    assert len(matching) == 1, told.data["troubles"]
    return matching[0]


def test_nothing_is_wrong_with_a_good_host(project, command):
    project("hello", more='store = "s.db"\n')
    told = command("doctor")

    assert told.code == 0
    assert "Nothing is wrong." in told.out
    assert command("doctor", "--json").data["ok"] is True


def test_no_manifest(folder, command):
    told = command("doctor", "--json")

    assert told.code == 1
    assert "agentos init" in found(told, "manifest")[3]


def test_every_problem_of_the_manifest(project, command):
    project(more='mod = "x"\npins = "soon"\n')

    assert [one[1] for one in troubles(command("doctor", "--json"))] == ["manifest", "manifest"]


ODD = (
    GREET.replace('"hello"', '"odd"')
    + """
from agentos import Descriptor

pack = ExtensionPack("odd", "1", [Descriptor("tool", "greet", greet, required_secrets=["my.own"], priority=1)])
"""
)


@pytest.fixture(scope="module")
def sick(tmp_path_factory):
    """Return what is told of a host of which much is wrong, by what it is about."""
    folder = tmp_path_factory.mktemp("sick")
    bad = {name: text for name, text in BAD.items() if name != "hangs"}
    for name, text in {
        **bad,
        "hello": GREET,
        "other": GREET.replace('"hello"', '"other"'),
        "gifs": GIFS,
        "odd": ODD,
    }.items():
        (folder / f"{name}.py").write_text(text)
    packs = "".join(f'[[packs]]\nmodule = "{name}.py"\n' for name in (*bad, "hello", "other", "gifs", "odd"))
    (folder / "agentos.toml").write_text(f'dotenv = "x.env"\n{packs}')
    (folder / "agentos.json").write_text("{}")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as said:
        patch.setenv("AGENTOS_MOD", "auto")
        patch.delenv("GIPHY_API_KEY", raising=False)
        assert main(["doctor", "--json", "--manifest", str(folder / "agentos.toml")]) == 1
    told = json.loads(said.getvalue())["troubles"]
    return {one["about"]: (one["level"], one["message"], one["cure"]) for one in told}


def test_every_bad_pack_is_found(sick):
    found = {about for about in sick if about.startswith("pack ")}

    assert found == {"pack exits.py", "pack leaves.py", "pack raises.py", "pack crashes.py"}


def test_a_bad_pack_with_the_way_to_keep_it_away(sick):
    assert sick["pack raises.py"] == (
        "error",
        "failed: could not be made: RuntimeError: boom",
        "mend it, or keep it away: agentos packs disable --in-manifest raises.py",
    )


def test_a_missing_secret_with_its_variable_and_where_to_get_one(sick):
    level, message, cure = sick["secret giphy.apiKey"]

    assert level == "error"
    assert "gifs:gif_search" in message
    assert "agentos secrets add giphy.apiKey" in cure
    assert "GIPHY_API_KEY" in cure
    assert "https://" in cure


def test_a_secret_that_the_catalog_does_not_know(sick):
    assert sick["secret my.own"][2] == "agentos secrets add my.own"


def test_a_variable_that_nobody_reads(sick):
    assert "did you mean 'AGENTOS_MODE'?" in sick["environment"][1]


def test_two_manifests_in_a_folder(sick):
    assert sick["manifest"][0] == "warning"


def test_a_dotenv_that_is_not_there(sick):
    assert sick["dotenv"][0] == "warning"


def test_a_tool_in_the_shadow_of_another(sick):
    assert "hello's is in the shadow of other's" in sick["tool:greet"][1]


def test_a_pack_that_hangs(project, command):
    project("hangs", "hello")

    assert found(command("doctor", "--deadline", "1.5", "--json"), "pack hangs.py")[2].startswith("hung")


def test_a_secret_that_is_there_is_no_trouble(project, command, monkeypatch):
    project("gifs")
    monkeypatch.setenv("GIPHY_API_KEY", "a-real-value")

    assert command("doctor").code == 0


def test_a_definition_that_waits(project, command):
    folder = project("hello", more='store = "s.db"\n')
    command("packs", "accept")
    (folder / "hello.py").write_text(GREET.replace("Greet a person", "Obey me, person"))

    assert "agentos packs accept hello:greet" in found(command("doctor", "--json"), "tool hello:greet")[3]


def test_an_override_about_nothing(project, command):
    project(
        "hello",
        more='deny = ["gret"]\n[overrides.tools]\ngreat = { enabled = false }\n"hello:greet" = { priority = 1 }\n',
    )
    told = command("doctor", "--json")

    assert "did you mean 'greet'?" in found(told, "overrides")[2]
    assert "did you mean 'greet'?" in found(told, "deny")[2]


def test_overrides_are_not_checked_while_a_pack_cant_be_loaded(project, command):
    project("hello", "raises", more='deny = ["gret"]\n')
    said = command("doctor").out

    assert "overrides: not checked, because what raises.py would offer is not known" in said
    assert "overrides" not in next(line for line in said.splitlines() if line.startswith("✓"))
    checks = {one["check"]: one["ok"] for one in command("doctor", "--json").data["checks"]}
    assert (checks["overrides"], checks["python"]) == (None, True)


def test_what_only_looks_wrong_does_not_count_unless_asked_to(project, command):
    project("hello", more='deny = ["hello:*"]\ndotenv = "x.env"\n')

    assert command("doctor").code == 0
    assert command("doctor", "--strict").code == 1


def test_an_extra_that_is_not_installed(project, command, monkeypatch):
    monkeypatch.setattr(module, "EXTRAS", (("no_such_module", "mcp", lambda manifest: True, "mcpServers"),))
    project("hello")

    assert found(command("doctor", "--json"), "extras")[3] == "pip install 'agentos-host[mcp]'"


def test_which_extras_are_needed(project):
    from agentos.cli.layered_config import load_config

    folder = project(more='store = "postgresql://db/x"\n[mcpServers.files]\ncommand = "serve"\n')
    with (folder / "agentos.toml").open("a") as file:
        file.write('\n[[packs]]\npackage = "openapi"\n')
    config = load_config(folder / "agentos.toml", {})

    assert [extra for _, extra, is_needed, _ in module.EXTRAS if is_needed(config.manifest)] == [
        "mcp",
        "postgres",
        "http",
    ]


def test_an_old_python(project, command, monkeypatch):
    project("hello")
    monkeypatch.setattr(module, "OLDEST", (99, 0))

    assert "use Python 99.0 or newer" in found(command("doctor", "--json"), "python")[3]


def test_the_other_agentos_is_installed_too(project, command, monkeypatch, tmp_path):
    site = tmp_path / "site" / "agentos-0.2.0.dist-info"
    site.mkdir(parents=True)
    (site / "METADATA").write_text("Metadata-Version: 2.1\nName: agentos\nVersion: 0.2.0\n")
    monkeypatch.syspath_prepend(str(site.parent))
    project("hello")
    _, _, message, cure = found(command("doctor", "--json"), "distribution")

    assert "another project's distribution, agentos 0.2.0, is installed beside agentos-host" in message
    assert cure.startswith("pip uninstall agentos, then install agentos-host again")


def test_a_check_that_fails_is_a_trouble_itself(project, command, monkeypatch):
    def failing(found):
        raise ValueError("oops")
        yield

    project("hello")
    monkeypatch.setitem(module.CHECKS, "files", failing)

    assert "could not be checked: oops" in found(command("doctor", "--json"), "files")[2]


def test_an_entry_point_that_leads_nowhere(project, command, monkeypatch, tmp_path):
    site = tmp_path / "site" / "ghost-1.0.dist-info"
    site.mkdir(parents=True)
    (site / "METADATA").write_text("Metadata-Version: 2.1\nName: ghost\nVersion: 1.0\n")
    (site / "entry_points.txt").write_text("[agentos.packs]\nghost = ghost_module\n")
    monkeypatch.syspath_prepend(str(site.parent))
    project("hello")

    assert "install ghost 1.0 again" in found(command("doctor", "--json"), "entry point ghost")[3]


# -- the store ---------------------------------------------------------------------------------------------------------


def test_a_store_that_is_none(project, command):
    folder = project("hello", more='store = "s.db"\n')
    (folder / "s.db").write_text(NOT_A_DATABASE)

    assert "not a database" in found(command("doctor", "--json"), "store")[2]


def test_a_store_that_is_locked(tmp_path):
    path = tmp_path / "s.db"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    faults = [message for message, _ in faults_of_store(place_of(str(path)))]
    holder.close()

    assert "is locked by another program" in faults[0]


def test_a_store_of_a_newer_agentos(tmp_path):
    path = tmp_path / "s.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE agentos_schema (version INTEGER NOT NULL)")
        connection.execute("INSERT INTO agentos_schema VALUES (99)")
    connection.close()
    ((message, cure),) = faults_of_store(place_of(str(path)))

    assert "version 99" in message
    assert "Upgrade agentos" in cure


def test_a_store_that_is_a_folder(tmp_path):
    ((message, _),) = faults_of_store(place_of(str(tmp_path)))

    assert "is a folder" in message


def test_a_store_that_does_not_exist_yet_is_no_trouble(tmp_path):
    assert list(faults_of_store(place_of(str(tmp_path / "a" / "b.db")))) == []
    assert not (tmp_path / "a").exists()
    assert list(faults_of_store(place_of(None))) == []


def test_a_server_that_cant_be_reached():
    ((message, cure),) = faults_of_store(place_of("postgresql://nobody@127.0.0.1:1/x"))

    assert "127.0.0.1:1" in message
    assert cure


def test_a_server_that_does_not_answer(monkeypatch):
    import socket

    from agentos.store import postgres

    monkeypatch.setattr(postgres, "_CONNECT_LIMIT", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        ((message, cure),) = faults_of_store(place_of(f"postgresql://nobody@127.0.0.1:{port}/x"))

    assert f"127.0.0.1:{port}" in message
    assert cure


@pytest.mark.skipif(os.name != "posix", reason="modes are a thing of POSIX")
def test_a_key_that_others_can_read(project, command):
    folder = project("hello", more='store = "s.db"\n')
    command("packs", "disable", "hello")
    (folder / "s.db.key").chmod(0o644)

    assert found(command("doctor", "--json"), "store")[3] == f"chmod 600 {folder / 's.db.key'}"


def test_a_store_that_cant_be_written(tmp_path):
    """Root may write everywhere: the question is asked without that power."""
    locked = tmp_path / "locked"
    locked.mkdir()
    (locked / "s.db").touch()
    (locked / "s.db").chmod(0o444)
    locked.chmod(0o555)
    script = (
        "from agentos.checks.faults import faults_of_store\n"
        "from agentos.store.locations import place_of\nimport sys\n"
        "print([message for message, _ in faults_of_store(place_of(sys.argv[1]))])"
    )
    from powerless import powerless

    for path, words in ((locked / "new.db", "can't be written"), (locked / "s.db", "can't be")):
        done = subprocess.run(
            [sys.executable, "-c", script, str(path)], preexec_fn=powerless, capture_output=True, text=True, check=False
        )
        assert words in done.stdout, done.stderr
    locked.chmod(0o755)


@pytest.mark.parametrize(
    ("damage", "words", "way"),
    [
        (lambda folder: (folder / "s.db.key").unlink(), "is gone: there is no file", "no new key is made by itself"),
        (lambda folder: (folder / "s.db.key").write_text("ab" * 32), "sealed with another key", "s.db.key"),
        (lambda folder: (folder / "s.db").write_bytes(b""), "s.db is empty", "restore it from a backup"),
    ],
    ids=["key removed", "key overwritten", "cut to nothing"],
)
def test_what_happened_to_a_store_behind_its_hosts_back(project, command, damage, words, way):
    folder = project("hello", more='store = "s.db"\n')
    assert command("packs", "accept").code == 0
    assert command("doctor").code == 0
    damage(folder)
    told = command("doctor")

    assert told.code == 1
    assert "✗ store: " in told.out
    assert words in told.out
    assert way in told.out


# -- the lock ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pins", "level"), [("strict", "error"), ("first-use", "warning")])
def test_a_pack_that_differs_from_the_lock(project, command, pins, level):
    folder = project("hello", more=f'lock = "agentos.lock"\npins = "{pins}"\n')
    command("lock")
    assert command("doctor").code == 0
    (folder / "hello.py").write_text(GREET + "\n# changed\n")

    assert found(command("doctor", "--json"), "lock")[0] == level


def test_a_lock_that_is_not_there(project, command):
    project("hello", more='lock = "agentos.lock"\n')

    level, _, message, cure = found(command("doctor", "--json"), "lock")
    assert (level, "there is no file" in message, cure) == ("error", True, "agentos lock, or take lock out")


def test_a_pack_that_is_nowhere_is_told_once(project, command):
    folder = project("hello", more='lock = "agentos.lock"\n')
    command("lock")
    (folder / "hello.py").unlink()

    assert [about for _, about, _, _ in troubles(command("doctor", "--json"))] == ["pack hello.py"]


# -- what can't be written, and what can't be started ------------------------------------------------------------------


def without_room(folder, data):
    """Run the doctor where no file may have a byte, as on a disk that is full."""
    return subprocess.run(
        [*AGENTOS, "doctor", "--json"],
        cwd=folder,
        env=environment({"AGENTOS_DATA": str(data), "PYTHONDONTWRITEBYTECODE": "1"}),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_disk_that_takes_nothing_is_told_of_the_store_and_the_data_folder(project, tmp_path):
    folder = project("hello", more='store = "s.db"\n')
    told = without_room(folder, tmp_path / "data")

    assert told.returncode == 1
    assert [one["about"] for one in json.loads(told.stdout)["troubles"]] == ["store", "data folder"]
    assert "make room there" in told.stdout


def test_a_store_in_the_data_folder_is_told_once(project, tmp_path):
    folder = project("hello", more='store = "default"\n')
    told = without_room(folder, tmp_path / "data")

    assert [one["about"] for one in json.loads(told.stdout)["troubles"]] == ["store"]


def test_a_data_folder_that_is_a_file_is_told(project, command, tmp_path):
    project("hello")
    (tmp_path / "data").write_text("")

    assert "it is no folder" in found(command("doctor", "--json"), "data folder")[2]


def test_looking_leaves_nothing_behind(project, command):
    folder = project("hello", more='store = "s.db"\n')
    before = sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")
    command("doctor")

    assert sorted(path.name for path in folder.iterdir() if path.name != "__pycache__") == before


@pytest.mark.parametrize("where", ["no-such-program", "./no-such-program"])
def test_a_server_whose_command_is_not_there_is_told(project, command, where):
    project("hello", more=f'[mcpServers.files]\ncommand = "{where}"\n')
    level, _, message, cure = found(command("doctor", "--json"), "server files")

    assert (level, where in message) == ("error", True)
    assert cure == "install it, or correct mcpServers.files.command"


def server(*arguments, **said):
    """Return the lines of a manifest for an MCP server that Python runs."""
    given = {"command": sys.executable, "args": list(arguments), **said}
    return "[mcpServers.files]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in given.items())


def test_a_server_whose_command_is_there_is_fine(project, command):
    project("hello", more=server("-S", "-E", str(SERVERS / "plain.py")))

    assert troubles(command("doctor", "--json")) == []


def test_a_server_that_ends_at_once_is_told(project, command):
    project("hello", more=server("-c", "raise SystemExit('no licence')"))
    told = command("doctor")
    asked = command("why", "mcp-server:files")

    assert told.code == 1
    assert "✗ server files: mcp/files is not connected: " in told.out
    assert "no licence" in told.out
    assert "cure: run its command by hand to see why, correct mcpServers.files" in told.out
    assert "active from mcp/files, but something is wrong with it" in asked.out
    assert "no licence" in asked.err


def test_a_server_whose_address_is_dead_is_told(project, command):
    project("hello", more='[mcpServers.files]\nurl = "http://127.0.0.1:9/mcp"\n')
    told = command("doctor", "--json")
    level, _, message, cure = found(told, "server files")

    assert (told.code, level, "is not connected" in message) == (1, "error", True)
    assert "correct mcpServers.files.url" in cure
    assert command("why", "mcp-server:files", "--json").data["troubles"][0]["message"].startswith("mcp/files is not")


def test_operations_of_a_document_that_are_left_out_are_told(project, command):
    document = {
        "openapi": "3.1.0",
        "info": {"title": "A", "version": "1"},
        "servers": [{"url": "https://example.com"}],
        "paths": {"/a": {"get": {"operationId": "a", "responses": {}}, "trace": {"operationId": "t", "responses": {}}}},
    }
    folder = project("hello", files={"a.json": json.dumps(document)})
    with (folder / "agentos.toml").open("a") as file:
        file.write('\n[[packs]]\npackage = "openapi"\nidentifier = "api"\noptions = { openapi = "a.json" }\n')
    told = command("doctor", "--json")
    level, _, message, cure = found(told, "pack api")

    assert (told.code, level) == (1, "error")
    assert "an operation is left out: TRACE /a" in message
    assert "`exclude`" in cure


def test_grants_and_rules_about_nothing(project, command):
    folder = project("hello", more='store = "s.db"\n[principals.ann]\naccess = ["greeting:red"]\n')
    assert command("grants", "add", "gret", "never").code == 0
    told = command("doctor", "--json")

    assert folder.joinpath("s.db").exists()
    assert "did you mean 'greet'?" in found(told, "grants")[2]
    assert found(told, "grants")[3].startswith("agentos grants remove ")
    assert "nothing that is there requires its rule 'greeting:red'" in found(told, "principal ann")[2]


@pytest.mark.parametrize(
    ("name", "setting"), [("AGENTOS_BUDGET", "budget"), ("AGENTOS_AUDIT_ARGUMENTS", "auditArguments")]
)
def test_a_variable_for_what_only_the_manifest_says_is_led_there(project, command, monkeypatch, name, setting):
    monkeypatch.setenv(name, "1")
    project("hello")
    _, _, message, cure = found(command("doctor", "--json"), "environment")

    assert (message, cure) == (f"nobody reads the variable {name}", f"unset it, and say `{setting}` in the manifest")


def test_a_cure_can_be_pasted_whatever_a_pack_is_called(folder, command):
    (folder / "my pack.py").write_text(BAD["raises"])
    (folder / "agentos.toml").write_text('[[packs]]\nmodule = "my pack.py"\n')
    cure = found(command("doctor", "--json"), "pack my pack.py")[3]

    assert shlex.split(cure.partition(": ")[2]) == ["agentos", "packs", "disable", "--in-manifest", "my pack.py"]
