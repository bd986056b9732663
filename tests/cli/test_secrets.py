"""`agentos secrets`, and the vault behind it: which secrets there are, from where, and never what they are."""

import base64
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import keyring
import pytest
from commanding import MANIFEST, Project
from keyring.backends import fail, null
from keyring.backends.chainer import ChainerBackend
from terminal import AGENTOS, environment, run_in_terminal, run_piped

from agentos import AgentOS, ExtensionManifest
from agentos.errors import SecretError
from agentos.secrets.vaults import SERVICE, SecretVault

VALUE = "a-value-that-is-never-shown"
GATED = '''
from agentos import PUBLIC, Descriptor, ExtensionPack, SecretRequirement, ToolContext, tool

@tool(effect="read", required_access=PUBLIC)
async def gif(*, context: ToolContext) -> int:
    """Tell how long the key is."""
    return len(context.secret("giphy.apiKey"))

def create_extension_pack(context):
    needed, wanted = ["giphy.apiKey"], [SecretRequirement("openai.apiKey", optional=True)]
    return ExtensionPack("gifs", "1.0", [
        Descriptor("tool", "gif", gif, required_secrets=needed),
        Descriptor("mood", "helper", 1, required_secrets=wanted),
    ])
'''


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path, MANIFEST + '[[packs]]\nmodule = "gated.py"\n', gated=GATED)


class Ring:
    """A keyring that works, in memory. Not a KeyringBackend: the library would offer every subclass to everybody."""

    priority = 5
    breaks = ""

    def __init__(self):
        self.values = {}

    def _do(self, what):
        if what in self.breaks:
            raise RuntimeError(f"locked: {VALUE}")

    def get_password(self, service, username):
        self._do("get")
        return self.values.get((service, username))

    def set_password(self, service, username, password):
        self._do("set")
        self.values[service, username] = password

    def delete_password(self, service, username):
        self._do("delete")
        del self.values[service, username]


class Forgetful(Ring):
    def set_password(self, service, username, password):
        pass


class Plain(Ring):
    priority = 0.5


class Unreadable(Ring):
    @property
    def priority(self):
        raise RuntimeError("no D-Bus")


class Panicking(Ring):
    def set_password(self, service, username, password):
        raise BaseException("a panic of Rust")


@pytest.fixture
def ring(monkeypatch):
    """Return a function that puts a keyring in the place of the machine's own."""

    def use(backend):
        monkeypatch.setattr(keyring.core, "_keyring_backend", backend)
        return backend

    return use


@pytest.fixture
def vault(tmp_path, ring):
    ring(fail.Keyring())
    return SecretVault(tmp_path / "data")


# -- the vault ---------------------------------------------------------------------------------------------------------


def test_a_value_that_was_set_is_given_back(vault):
    assert vault.set("a.b", VALUE) == "file"
    assert (vault("a.b"), vault("other"), vault.kept()) == (VALUE, None, {"a.b": "file"})


def test_nothing_is_written_before_something_is_set(vault):
    assert (vault("a"), vault.kept(), vault.path.parent.exists()) == (None, {}, False)


def test_the_file_does_not_hold_the_value_and_is_for_the_user_alone(vault):
    vault.set("a", VALUE)
    files = [file for file in vault.path.parent.iterdir() if file.is_file()]

    assert all(VALUE.encode() not in file.read_bytes() for file in files)
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(vault.path.parent.stat().st_mode) == 0o700


def test_no_two_values_are_sealed_alike(vault):
    vault.set("a", VALUE)
    first = json.loads(vault.path.read_text())["secrets"]["a"]
    vault.set("a", VALUE)

    assert json.loads(vault.path.read_text())["secrets"]["a"]["sealed"] != first["sealed"]


def test_a_value_cannot_be_passed_off_as_that_of_another_secret(vault):
    vault.set("a", VALUE)
    data = json.loads(vault.path.read_text())
    data["secrets"]["b"] = data["secrets"]["a"]
    vault.path.write_text(json.dumps(data))

    with pytest.raises(SecretError, match="'b' can't be decrypted"):
        vault("b")


def test_a_value_that_was_changed_is_refused(vault):
    vault.set("a", VALUE)
    data = json.loads(vault.path.read_text())
    data["secrets"]["a"]["sealed"] = "not base64!"
    vault.path.write_text(json.dumps(data))

    with pytest.raises(SecretError, match="set it again"):
        vault("a")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"version": 2, "secrets": {}}',
        '{"version": 1, "secrets": {"a": 1}}',
        '{"version": 1, "secrets": {"a": {"in": "elsewhere"}}}',
        '{"version": 1, "secrets": {"a": {"in": "file", "nonce": 1, "sealed": ""}}}',
        "[" * 100_000,
    ],
)
def test_a_file_that_makes_no_sense_is_named(vault, text):
    vault.set("a", VALUE)
    vault.path.write_text(text)

    with pytest.raises(SecretError, match=r"secrets\.json can't be used"):
        vault("a")


def test_a_lost_key_is_said_to_be_lost(vault):
    vault.set("a", VALUE)
    (vault.path.parent / "secrets.key").unlink()

    with pytest.raises(SecretError, match="is gone"):
        vault("a")


@pytest.mark.parametrize("text", ["", "zz", "00"])
def test_a_key_file_without_a_key_is_named(vault, text):
    vault.set("a", VALUE)
    (vault.path.parent / "secrets.key").write_text(text)

    with pytest.raises(SecretError, match="does not hold a key"):
        vault("a")


def test_a_key_that_others_can_read_is_complained_about(vault, caplog):
    vault.set("a", VALUE)
    (vault.path.parent / "secrets.key").chmod(0o644)

    assert vault("a") == VALUE
    assert "chmod 600" in caplog.text


@pytest.mark.parametrize("value", ["", "x" * 70_000, None])
def test_what_can_be_no_value_is_refused(vault, value):
    with pytest.raises(SecretError, match="expected text"):
        vault.set("a", value)


def test_a_write_that_fails_leaves_the_file_as_it_was(vault, monkeypatch):
    vault.set("a", VALUE)
    before = sorted((file.name, file.read_bytes()) for file in vault.path.parent.iterdir())

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        vault.set("b", VALUE)

    assert sorted((file.name, file.read_bytes()) for file in vault.path.parent.iterdir()) == before


def test_unset_forgets_a_value(vault):
    vault.set("a", VALUE)

    assert (vault.unset("a"), vault.unset("a"), vault("a")) == (True, False, None)


def test_a_vault_shows_where_it_is_and_nothing_else(vault):
    assert repr(vault) == f"<SecretVault at {vault.path}>"


def test_without_the_library_it_is_said_what_to_install(vault, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(SecretError, match="pip install cryptography"):
        vault.set("a", VALUE)


async def test_a_host_takes_a_vault_as_its_source(vault, tmp_path):
    (tmp_path / "gated.py").write_text(GATED)
    vault.set("giphy.apiKey", VALUE)
    manifest = ExtensionManifest.from_dict({"packs": [{"module": str(tmp_path / "gated.py")}]})
    async with AgentOS(extension_manifest=manifest, extension_secrets=vault) as host:
        result = await host.tools.process_tool_call({"name": "gif"})

    assert result.output == len(VALUE)


# -- the keyring -------------------------------------------------------------------------------------------------------


def test_a_keyring_that_works_is_used(vault, ring):
    backend = ring(Ring())

    assert vault.set("a", VALUE) == "keyring"
    assert backend.values == {(SERVICE, "a"): VALUE}
    assert (vault("a"), vault.kept()) == (VALUE, {"a": "keyring"})
    assert not (vault.path.parent / "secrets.key").exists()


def test_a_keyring_is_left_alone_if_that_is_asked_for(vault, ring):
    ring(Ring())

    assert SecretVault(vault.path.parent, keyring=False).set("a", VALUE) == "file"


@pytest.mark.parametrize("backend", [fail.Keyring, null.Keyring, Plain, Unreadable, Forgetful, Panicking])
def test_a_keyring_that_loses_values_or_keeps_them_in_the_clear_is_not_used(vault, ring, backend):
    ring(backend())

    assert vault.set("a", VALUE) == "file"
    assert vault("a") == VALUE


def test_several_keyrings_are_as_good_as_the_best_of_them(vault, ring, monkeypatch):
    monkeypatch.setattr(ChainerBackend, "backends", [Plain()])
    ring(ChainerBackend())

    assert vault.set("a", VALUE) == "file"


def test_a_keyring_that_refuses_a_value_is_told_of_and_the_file_used(vault, ring, caplog):
    ring(Ring()).breaks = "set"

    assert vault.set("a", VALUE) == "file"
    assert "does not take 'a' (RuntimeError)" in caplog.text
    assert VALUE not in caplog.text


def test_a_keyring_that_fails_later_is_named(vault, ring):
    backend = ring(Ring())
    vault.set("a", VALUE)
    backend.breaks = "get"
    with pytest.raises(SecretError, match="can't be read: RuntimeError"):
        vault("a")

    backend.breaks = ""
    backend.values.clear()
    with pytest.raises(SecretError, match="is not there any more"):
        vault("a")

    ring(fail.Keyring())
    with pytest.raises(SecretError, match="can't be used now: this machine has none that works"):
        vault("a")


def test_without_the_keyring_library_the_file_is_used(vault, monkeypatch):
    monkeypatch.setitem(sys.modules, "keyring", None)

    assert vault.set("a", VALUE) == "file"


def test_unset_takes_a_value_out_of_the_keyring_too(vault, ring, caplog):
    backend = ring(Ring())
    vault.set("a", VALUE)
    vault.set("b", VALUE)

    assert vault.unset("a")
    assert list(backend.values) == [(SERVICE, "b")]
    backend.breaks = "delete"
    assert vault.unset("b")
    assert "may still hold 'b'" in caplog.text


def test_a_value_that_moves_to_the_file_leaves_the_keyring(vault, ring):
    backend = ring(Ring())
    vault.set("a", VALUE)
    SecretVault(vault.path.parent, keyring=False).set("a", "another-value")

    assert (backend.values, vault("a")) == ({}, "another-value")


# -- the command -------------------------------------------------------------------------------------------------------


def test_list_tells_what_is_missing_what_it_gates_and_where_to_get_one(project):
    done = project.run("secrets", "list")

    assert done.code == 0
    rows = {line.split("  ")[0]: line for line in done.out.splitlines()}
    for words in ("missing", "GIPHY_API_KEY", "tool:gif (gifs)", "https://developers.giphy.com/"):
        assert words in rows["giphy.apiKey"]
    assert "not set" in rows["openai.apiKey"]


def test_list_tells_from_where_a_secret_comes_and_not_what_it_is(project):
    done = project.run("secrets", "list", "--json", GIPHY_API_KEY=VALUE)
    gif, helper = done.json["secrets"]

    assert gif["origin"] == "the environment variable GIPHY_API_KEY"
    assert (gif["isSet"], gif["isMissing"], gif["gates"]) == (True, False, ["tool:gif (gifs)"])
    assert (helper["isSet"], helper["isMissing"], helper["optional"]) == (False, False, True)
    assert VALUE not in done.out + done.err


def test_list_knows_every_secret_of_the_catalog_if_asked(project):
    ids = {row["id"] for row in project.run("secrets", "list", "--all", "--json").json["secrets"]}

    assert {"giphy.apiKey", "serper.apiKey"} <= ids


def test_list_survives_a_pack_that_exits(tmp_path):
    packs = '[[packs]]\nmodule = "bad.py"\n[[packs]]\nmodule = "gated.py"\n'
    done = Project(tmp_path, packs, bad="import os; os._exit(3)", gated=GATED).run("secrets", "list")

    assert "giphy.apiKey" in done.out
    assert "bad.py was not loaded (exited)" in done.err


def test_check_fails_while_something_waits_for_a_secret(project):
    done = project.run("secrets", "check")

    assert (done.code, "agentos secrets add giphy.apiKey" in done.err) == (1, True)
    assert project.run("secrets", "check", GIPHY_API_KEY=VALUE).code == 0


def test_check_of_one_secret_is_about_that_one(project):
    assert project.run("secrets", "check", "serper.apiKey").code == 1
    done = project.run("secrets", "check", "serper.apiKey", "--json", SERPER_API_KEY=VALUE)
    assert (done.code, done.json) == (0, {"ok": True, "missing": []})


def test_what_check_says_of_a_secret_that_nothing_asks_for_goes_together(project):
    (told,) = project.run("secrets", "check", "nope.key", "--json").json["missing"]

    assert (told["isSet"], told["isMissing"], told["optional"], told["gates"]) == (False, True, False, [])


def test_a_secret_that_is_set_opens_what_it_gates(project):
    assert project.run("tools", "call", "gif").code == 1
    set_ = project.run("secrets", "set", "giphy.apiKey", "--stdin", input=f"{VALUE}\n")
    assert (set_.code, "the encrypted file" in set_.out) == (0, True)

    assert project.run("tools", "call", "gif").out == f"{len(VALUE)}\n"
    rows = project.run("secrets", "list", "--json").json["secrets"]
    assert [(row["origin"], row["kept"]) for row in rows if row["id"] == "giphy.apiKey"] == [
        ("the encrypted file", "file")
    ]


def test_the_environment_counts_before_what_is_kept(project):
    done = project.run("secrets", "set", "giphy.apiKey", "--stdin", input=VALUE, GIPHY_API_KEY="another")

    assert "the environment variable GIPHY_API_KEY has a value too, and that one counts" in done.err
    assert project.run("tools", "call", "gif", GIPHY_API_KEY="another").out == f"{len('another')}\n"


def test_the_dotenv_file_counts_before_what_is_kept(project):
    project.write(".env", "GIPHY_API_KEY=12345\n")
    done = project.run("secrets", "set", "giphy.apiKey", "--stdin", "--json", input=VALUE)

    assert "GIPHY_API_KEY in" in done.json["countsBefore"]
    assert project.run("tools", "call", "gif").out == "5\n"


OF_ITS_OWN = MANIFEST + '[[packs]]\nmodule = "gated.py"\noptions = {secrets = {"giphy.apiKey" = "own-value"}}\n'


def test_a_secret_in_a_packs_own_options_is_set(tmp_path):
    project = Project(tmp_path, OF_ITS_OWN, gated=GATED)

    assert project.run("secrets", "check").code == 0
    rows = project.run("secrets", "list", "--json").json["secrets"]
    assert [(row["isSet"], row["origin"]) for row in rows if row["id"] == "giphy.apiKey"] == [
        (True, "the pack entry's options")
    ]


def test_own_options_of_one_pack_are_nothing_to_another(tmp_path):
    other = GATED.replace('"gifs"', '"others"')
    project = Project(tmp_path, OF_ITS_OWN + '[[packs]]\nmodule = "other.py"\n', gated=GATED, other=other)

    assert project.run("secrets", "check").code == 1


def test_a_credential_in_a_servers_headers_is_set(tmp_path):
    server = '[mcpServers.up]\nurl = "http://127.0.0.1:9/mcp"\nheaders = {Authorization = "Bearer a-token"}\n'
    told = Project(tmp_path, server).run("secrets", "list", "--json")

    assert [(row["id"], row["origin"]) for row in told.json["secrets"]] == [
        ("mcp.up.headers.Authorization", "the pack entry's options")
    ]
    assert "a-token" not in told.out


def test_a_packs_own_options_count_before_what_is_kept(tmp_path):
    project = Project(tmp_path, OF_ITS_OWN, gated=GATED)
    set_ = project.run("secrets", "set", "giphy.apiKey", "--stdin", "--json", input=VALUE)

    assert set_.json["countsBefore"] == "the pack entry's options"
    assert project.run("tools", "call", "gif").out == f"{len('own-value')}\n"


def test_a_secret_can_be_set_without_a_manifest_that_can_be_used(project):
    project.write("agentos.toml", "pakcs = []")
    assert project.run("secrets", "set", "giphy.apiKey", "--stdin", input=VALUE).code == 0
    (project.folder / "agentos.toml").unlink()

    assert project.run("secrets", "set", "giphy.apiKey", "--stdin", input=VALUE).code == 0


@pytest.mark.parametrize("value", ["", "\n", "changeme", "<your key>"])
def test_a_blank_or_a_placeholder_is_not_kept(project, value):
    done = project.run("secrets", "set", "giphy.apiKey", "--stdin", input=value)

    assert done.code == 2
    assert not Path(project.env["AGENTOS_DATA"]).exists()


def test_without_a_terminal_it_is_said_how_to_pipe_a_value_in(project):
    done = project.run("secrets", "set", "giphy.apiKey")

    assert (done.code, "--stdin" in done.err) == (2, True)


def test_an_id_that_nothing_declares_is_refused_with_the_nearest(project):
    done = project.run("secrets", "set", "giphy.apikey", "--stdin", input=VALUE)

    assert (done.code, "did you mean 'giphy.apiKey'?" in done.err) == (2, True)
    assert project.run("secrets", "set", "giphy.apikey", "--stdin", "--force", input=VALUE).code == 0
    assert project.run("secrets", "set", "giphy.apikey", "--stdin", input=VALUE).code == 0  # it is kept already


def test_a_variable_that_the_catalog_knows_means_its_secret(project):
    done = project.run("secrets", "set", "GIPHY_API_KEY", "--stdin", "--json", input=VALUE)

    assert (done.code, done.json["id"]) == (0, "giphy.apiKey")


OWN = """
from agentos import PUBLIC, Descriptor, ExtensionPack, tool

@tool(effect="read", required_access=PUBLIC)
async def x() -> int:
    return 1

pack = ExtensionPack("own", "1", [Descriptor("tool", "x", x, required_secrets=["my.own"])])
"""


@pytest.mark.parametrize("id", ["my.own", "notes.token"])
def test_an_id_that_a_pack_or_a_server_of_the_manifest_asks_for_is_kept(project, id):
    project.write("own.py", OWN)
    server = '[mcpServers.n]\ncommand = "none"\nenabled = false\nenv = { TOKEN = "${secret:notes.token}" }\n'
    project.write("agentos.toml", f'[[packs]]\nmodule = "own.py"\n{server}')

    assert project.run("secrets", "set", id, "--stdin", input=VALUE).code == 0


def test_an_id_that_can_be_none_is_refused(project):
    assert project.run("secrets", "set", "", "--stdin", input=VALUE).code == 2


def test_what_is_typed_is_not_shown(project):
    argv = [*AGENTOS, "secrets", "set", "giphy.apiKey"]
    told = run_in_terminal(argv, cwd=project.folder, env=project.env, inputs=[("(not shown): ", f"{VALUE}\n")])

    assert told.code == 0
    assert VALUE not in told
    assert project.run("secrets", "check").code == 0


def test_ctrl_c_while_typing_keeps_nothing(project):
    argv = [*AGENTOS, "secrets", "set", "giphy.apiKey"]
    told = run_in_terminal(argv, cwd=project.folder, env=project.env, inputs=[("(not shown): ", "half\x03")])

    assert told.code == 130
    assert not Path(project.env["AGENTOS_DATA"], "secrets.json").exists()


def test_unset_forgets_and_says_what_it_does_not_know(project):
    project.run("secrets", "set", "giphy.apiKey", "--stdin", input=VALUE)

    assert project.run("secrets", "unset", "giphy.apiKey").code == 0
    done = project.run("secrets", "unset", "giphy.apiKey")
    assert (done.code, "no secret called 'giphy.apiKey' is kept" in done.err) == (1, True)


def test_unset_where_nothing_was_ever_kept_makes_nothing(project):
    done = project.run("secrets", "unset", "giphy.apiKey")

    assert (done.code, "no secret called 'giphy.apiKey' is kept" in done.err) == (1, True)
    assert not Path(project.env["AGENTOS_DATA"]).exists()


def test_a_vault_that_cannot_be_read_is_named(project):
    project.run("secrets", "set", "giphy.apiKey", "--stdin", input=VALUE)
    Path(project.env["AGENTOS_DATA"], "secrets.json").write_text("{")
    done = project.run("secrets", "list")

    assert (done.code, "can't be used" in done.err) == (1, True)


DAMAGE = {
    "no key": (lambda data: (data / "secrets.key").unlink(), "secrets.key is gone", "set the secrets again"),
    "another key": (
        lambda data: (data / "secrets.key").write_text("00" * 32),
        "can't be decrypted",
        "agentos secrets add giphy.apiKey",
    ),
    "garbage for a key": (
        lambda data: (data / "secrets.key").write_text("zz"),
        "does not hold a key",
        "restore it, or delete it and set the secrets again",
    ),
    "an open key": (lambda data: (data / "secrets.key").chmod(0o666), "open to other users", "chmod 600 "),
    "an open file": (lambda data: (data / "secrets.json").chmod(0o666), "open to other users", "chmod 600 "),
    "garbage": (
        lambda data: (data / "secrets.json").write_text("{"),
        "secrets.json can't be used: it is not what was written there",
        "restore it, or delete it and set the secrets again",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_wrong_with_kept_secrets_is_told_with_the_cure(project, damage):
    change, message, cure = DAMAGE[damage]
    project.run("secrets", "set", "giphy.apiKey", "--stdin", input=VALUE)
    change(Path(project.env["AGENTOS_DATA"]))
    troubles = project.run("doctor", "--json").json["troubles"]

    assert [(message in one["message"], cure in one["cure"]) for one in troubles if one["about"] == "kept secrets"] == [
        (True, True)
    ]
    for one in troubles:
        assert one["about"] != "secret giphy.apiKey" or one["cure"].startswith("mend the kept secrets first")
    for command in ("list", "check"):
        told = project.run("secrets", command).err
        assert (message in told, cure in told) == (True, True)


def test_a_folder_that_cannot_be_written_is_named(project):
    blocked = project.write("file", "")
    done = project.run("secrets", "set", "giphy.apiKey", "--stdin", input=VALUE, AGENTOS_DATA=str(blocked / "data"))

    assert (done.code, str(blocked) in done.err) == (1, True)


@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL"])
def test_a_change_that_is_interrupted_at_any_step_leaves_the_old_file_or_the_new_one(project, how):
    project.run("secrets", "set", "giphy.apiKey", "--stdin", input=VALUE)
    project.run("secrets", "set", "other", "--force", "--stdin", input=VALUE)
    before = Path(project.env["AGENTOS_DATA"], "secrets.json").read_bytes()
    script, command = Path(__file__).with_name("interruptions.py"), {"it": ["secrets", "unset", "other"]}
    argv = [sys.executable, str(script), how, str(project.folder), json.dumps(command)]
    env = environment({**project.env, "AGENTOS_DATA": "data"})
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    runs = json.loads(done.stdout)["it"]

    after = base64.b64decode(runs["after"]["data/secrets.json"])
    assert after != before
    assert {base64.b64decode(run["files"]["data/secrets.json"]) for run in runs["cut"]} == {before, after}
    assert how == "SIGKILL" or [name for run in runs["cut"] for name in run["files"] if ".tmp" in name] == []


def test_a_keyring_is_used_by_the_command(project, tmp_path):
    module = """
import json, os, keyring.backend

class Keyring(keyring.backend.KeyringBackend):
    priority = 9
    path = os.path.join(os.environ["AGENTOS_DATA"], "ring.json")
    def _all(self):
        return json.load(open(self.path)) if os.path.exists(self.path) else {}
    def get_password(self, service, username):
        return self._all().get(username)
    def set_password(self, service, username, password):
        values = self._all() | {username: password}
        with open(self.path, "w") as file:
            json.dump(values, file)
"""
    project.write("filering.py", module)
    env = {**project.env, "PYTHON_KEYRING_BACKEND": "filering.Keyring", "PYTHONPATH": str(tmp_path)}
    options = {"cwd": project.folder, "env": env}
    done = run_piped("secrets", "set", "giphy.apiKey", "--stdin", input=VALUE, **options, argv=LENIENT)
    called = run_piped("tools", "call", "gif", **options, argv=LENIENT)

    assert "the OS keyring" in done.stdout
    assert called.stdout == f"{len(VALUE)}\n"


LENIENT = [part for part in AGENTOS if part not in ("-W", "error")]
"""A keyring of a test may leave files open."""


def test_ids_are_completed(project):
    from click.shell_completion import ShellComplete

    from agentos.cli.commands.secrets import secrets

    complete = ShellComplete(secrets, {}, "secrets", "_X")
    assert "giphy.apiKey" in [item.value for item in complete.get_completions(["set"], "giphy")]
    assert complete.get_completions(["unset"], "giphy") == []


def test_a_piped_value_that_is_no_utf_8_is_refused(project):
    done = subprocess.run(
        [*AGENTOS, "secrets", "set", "giphy.apiKey", "--stdin"],
        cwd=project.folder,
        env=environment(project.env),
        input=b"\xff\xfe",
        capture_output=True,
        check=False,
    )

    assert (done.returncode, b"it is no text in UTF-8" in done.stderr) == (2, True), done


# -- secrets that only their pack describes ----------------------------------------------------------------------------

GEO = """
from agentos import Descriptor, ExtensionPack, SecretRequirement

def create_extension_pack(context):
    need = SecretRequirement("geo.apiKey", env="GEO_API_KEY", url="https://geo.example/keys")
    return ExtensionPack("geo", "1.0", [Descriptor("mood", "locate", 1, required_secrets=[need])])
"""


@pytest.fixture
def geo(tmp_path):
    return Project(tmp_path, MANIFEST + '[[packs]]\nmodule = "geo.py"\n', geo=GEO)


def test_a_described_secret_is_listed_with_its_variable_and_where_to_get_one(geo):
    (row,) = geo.run("secrets", "list", "--json").json["secrets"]

    assert (row["id"], row["variables"], row["docsUrl"]) == ("geo.apiKey", ["GEO_API_KEY"], "https://geo.example/keys")
    assert row["isMissing"]


def test_a_described_secret_is_found_in_its_variable(geo):
    (row,) = geo.run("secrets", "list", "--json", GEO_API_KEY=VALUE).json["secrets"]

    assert row["origin"] == "the environment variable GEO_API_KEY"


def test_doctor_and_why_name_the_variable_of_a_described_secret(geo):
    told = geo.run("doctor")

    assert "or set GEO_API_KEY; get one at https://geo.example/keys" in " ".join(told.out.split())
    assert "set GEO_API_KEY" in geo.run("why", "mood:locate").out


def test_a_described_secret_is_set_by_the_name_of_its_variable_and_told_what_counts_before(geo):
    done = geo.run("secrets", "set", "GEO_API_KEY", "--stdin", "--json", input=VALUE, GEO_API_KEY="another-value")

    assert (done.json["id"], done.json["countsBefore"]) == ("geo.apiKey", "the environment variable GEO_API_KEY")


def test_doctor_tells_of_one_variable_for_two_secrets(tmp_path):
    packs = MANIFEST + '[[packs]]\nmodule = "geo.py"\n[[packs]]\nmodule = "maps.py"\n'
    maps = GEO.replace("geo.apiKey", "maps.key").replace('"geo"', '"maps"').replace("locate", "draw")
    told = Project(tmp_path, packs, geo=GEO, maps=maps).run("doctor", "--json", GEO_API_KEY=VALUE)

    (trouble,) = told.json["troubles"]
    assert (trouble["about"], trouble["level"]) == ("pack maps.py", "warning")
    assert "the pack 'geo' for 'geo.apiKey'" in trouble["message"]
