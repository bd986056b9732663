"""`agentos mcp`: servers in and out of the manifest, tried out, and this host in the settings of MCP clients."""

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from bridging import SERVERS
from mcp import Client, StdioServerParameters

from agentos.cli.mcp_clients import CLIENTS
from agentos.model.manifest import ExtensionManifest
from agentos.model.parsing import read_file

PLAIN = [sys.executable, "-S", "-E", str(SERVERS / "plain.py")]
MANIFESTS = {
    "agentos.toml": '# ours\nmode = "auto" # the mode\n\n[mcpServers.old]\ncommand = "old" # keep\n',
    "agentos.yaml": "# ours\nmode: auto # the mode\nmcpServers:\n  old:\n    command: old # keep\n",
    "agentos.json": '{\n  "mode": "auto",\n  "mcpServers": {"old": {"command": "old"}}\n}\n',
}
BARE = {"agentos.toml": "# ours\n", "agentos.yaml": "mode: auto # ours\n", "agentos.json": "{}\n"}


@pytest.fixture
def write(folder):
    """Return a function that writes the manifest."""

    def write(text, name="agentos.toml"):
        (folder / name).write_text(text)
        return folder / name

    return write


def servers_of(path):
    return dict(ExtensionManifest.from_dict(read_file(path)).mcp_servers)


# -- add, list, remove -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [MANIFESTS, BARE], ids=["beside another", "alone"])
@pytest.mark.parametrize("name", MANIFESTS)
def test_a_server_is_added_and_removed_and_all_else_stays_as_it_was_written(write, command, texts, name):
    path = write(texts[name], name)
    before = servers_of(path)
    added = command("mcp", "add", "files", "--no-test", "--env", "A=b=c", "--", "npx", "-y", "server", "--root", ".")
    during, text = servers_of(path), path.read_text()
    removed = command("mcp", "remove", "files")

    assert (added.code, removed.code) == (0, 0), added.err + removed.err
    assert during == {
        **before,
        "files": {"command": "npx", "args": ["-y", "server", "--root", "."], "env": {"A": "b=c"}},
    }
    assert [line for line in texts[name].splitlines() if "#" in line and line not in text] == []
    assert servers_of(path) == before


def test_an_address_is_added_with_what_is_said_of_it(write, command):
    path = write("")
    words = ["--header", "Authorization=Bearer ${secret:notes.token}", "--trust", "--tool", "read_*"]
    done = command(
        *("mcp", "add", "notes", "https://example.com/mcp", *words, "--option", "timeout=30", "--no-test", "--json")
    )

    assert (done.code, json.loads(done.out)["added"]) == (0, "notes")
    assert servers_of(path)["notes"] == {
        "url": "https://example.com/mcp",
        "headers": {"Authorization": "Bearer ${secret:notes.token}"},
        "tools": ["read_*"],
        "trust": True,
        "timeout": 30,
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["x"], "say how the server is reached"),
        (["x", "https://example.com/mcp", "more"], "an address stands alone"),
        (["bad name", "--", "npx"], "expected a name"),
        (["x", "--env", "A", "--", "npx"], "--env: expected NAME=VALUE"),
        (["x", "https://example.com/mcp", "--env", "A=b"], "does not go with url"),
        (["x", "--option", "tiemout=3", "--", "npx"], "tiemout"),
        (["x", "https://user:pass@example.com/mcp"], "expected no user or password"),
    ],
)
def test_what_no_server_can_be_is_a_usage_error_and_nothing_is_written(write, command, words, said):
    path = write("# ours\n")
    done = command("mcp", "add", "--no-test", *words)

    assert (done.code, said in done.err, path.read_text()) == (2, True, "# ours\n"), done.err


def test_a_name_is_not_taken_twice_unless_that_is_said(write, command):
    path = write(MANIFESTS["agentos.toml"].replace(" # keep", "") + "\n[principals.ann]\naccess = []\n")
    refused = command("mcp", "add", "old", "--no-test", "--", "new")
    done = command("mcp", "add", "old", "--no-test", "--replace", "--", "new")

    assert (refused.code, "has an MCP server 'old' already" in refused.err) == (1, True)
    assert (done.code, servers_of(path)["old"]) == (0, {"command": "new"}), done.err


def test_a_secret_in_the_clear_is_warned_of_and_not_shown(write, command):
    write("")
    done = command("mcp", "add", "x", "--no-test", "--env", "API_TOKEN=hush-hush-1", "--json", "--", "npx")
    listed = command("mcp", "list", "--json")

    assert "agentos secrets add mcp.x.env.API_TOKEN" in done.err
    assert "hush" not in done.out + done.err + listed.out


def test_servers_are_listed(write, command):
    write(MANIFESTS["agentos.toml"] + '\n[mcpServers.far]\nurl = "https://example.com/mcp?key=1"\nenabled = false\n')
    told = json.loads(command("mcp", "list", "--json").out)
    shown = command("mcp", "list").out

    assert [(one["name"], one["enabled"], one["trust"]) for one in told["servers"]] == [
        ("old", True, False),
        ("far", False, False),
    ]
    assert ("https://example.com/mcp" in shown, "key=1" in shown, "disabled" in shown) == (True, False, True)


@pytest.mark.parametrize("verb", ["remove", "test"])
def test_a_server_that_is_not_there_is_named_with_the_nearest(write, command, verb):
    write(MANIFESTS["agentos.toml"])
    done = command("mcp", verb, "odl")

    assert (done.code, "no MCP server 'odl' in agentos.toml; did you mean 'old'?" in done.err) == (1, True)


# -- test --------------------------------------------------------------------------------------------------------------


def test_a_server_that_answers_is_shown_with_its_tools(write, command):
    write("")
    done = command("mcp", "add", "plain", "--tool", "ec*", "--", *PLAIN)
    told = json.loads(command("mcp", "test", "plain", "--json").out)
    (one,) = told["servers"]

    assert done.code == 0, done.err
    assert "plain answers (protocol " in done.out
    assert (told["ok"], one["ok"], one["reason"]) == (True, True, None)
    assert {each["name"]: each["taken"] for each in one["tools"]}["echo"] is True
    assert not all(each["taken"] for each in one["tools"])


def test_a_server_that_does_not_answer_ends_with_1_and_says_why(write, command):
    write(f'[mcpServers.dead]\ncommand = "{sys.executable}"\nargs = ["-c", "import sys; sys.exit(3)"]\n')
    done, told = command("mcp", "test"), command("mcp", "test", "--json")

    assert (done.code, told.code) == (1, 1)
    assert "mcp/dead is not connected" in done.err
    assert json.loads(told.out)["ok"] is False


def test_adding_a_server_that_does_not_answer_tells_so_and_keeps_it(write, command):
    path = write("")
    done = command("mcp", "add", "ghost", "--", "/no/such/program")

    assert (done.code, "it does not answer yet: " in done.err) == (0, True), done.err
    assert servers_of(path)["ghost"] == {"command": "/no/such/program"}


def test_only_servers_that_are_enabled_or_named_are_tested(write, command):
    write('[mcpServers.off]\ncommand = "/no/such/program"\nenabled = false\n')

    assert [command("mcp", "test").code, command("mcp", "test", "off").code] == [0, 1]


# -- config ------------------------------------------------------------------------------------------------------------

HELLO = '[[packs]]\nmodule = "hello.py"\n\n[principals.ann]\naccess = []\n'


@pytest.fixture
def hosted(project, folder):
    project("hello")
    return folder


def test_what_is_printed_starts_a_server_that_a_client_can_use(hosted, command):
    told = json.loads(command("mcp", "config", "--client", "json", "--name", "mine").out)
    entry = told["mcpServers"]["mine"]

    async def use():
        # As clients do: hardly any variable, a PATH without us, and another folder.
        bare = {"PATH": "/usr/bin:/bin", "HOME": str(hosted), **entry.get("env", {})}
        server = StdioServerParameters(command=entry["command"], args=entry["args"], env=bare, cwd="/")
        async with Client(server) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    import asyncio

    assert Path(entry["command"]).is_absolute()
    assert os.access(entry["command"], os.X_OK)
    assert "greet" in asyncio.run(use())


@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_has_its_own_form(hosted, command, client, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    told = json.loads(command("mcp", "config", "--client", client, "--json").out)
    ((key, servers),) = told["config"].items()
    ((name, entry),) = servers.items()

    assert (key, name) == ("servers" if client == "vscode" else "mcpServers", "here")
    assert entry["args"][-3:] == ["--manifest", str(hosted / "agentos.toml"), "serve"]
    assert (told["installed"], told["file"] is None) == (False, client == "json")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("client", [name for name in CLIENTS if name != "json"])
def test_it_is_written_where_the_client_looks(hosted, command, client, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    told = json.loads(command("mcp", "config", "--client", client, "--install", "--json").out)

    assert json.loads(Path(told["file"]).read_text()) == told["config"]
    assert Path(told["file"]).is_relative_to(hosted if CLIENTS[client].in_folder else tmp_path / "home")
    assert told["backup"] is None


def test_what_a_client_has_already_stays_and_is_kept_beside(hosted, command):
    file = hosted / "client.json"
    text = '{\n    "theme": "dark",\n    "mcpServers": {\n        "other": {"command": "x"}\n    }\n}\n'
    file.write_text(text)
    file.chmod(0o600)
    told = json.loads(command("mcp", "config", "--client", "cursor", "--install", "--file", file, "--json").out)
    backup = Path(told["backup"])
    now = json.loads(file.read_text())

    assert (now["theme"], list(now["mcpServers"])) == ("dark", ["other", "here"])
    assert '    "theme": "dark",\n' in file.read_text()
    assert (backup.read_text(), stat.S_IMODE(backup.stat().st_mode)) == (text, 0o600)


def test_the_same_again_changes_nothing_and_another_principal_is_brought_up_to_date(hosted, command):
    (hosted / "agentos.toml").write_text(HELLO)
    words = ("mcp", "config", "--client", "cursor", "--install", "--file", hosted / "c.json", "--json")
    command(*words)
    again = json.loads(command(*words).out)
    other = json.loads(command(*words, "--principal", "ann").out)

    assert (again["backup"], other["backup"] is None) == (None, False)
    args = json.loads((hosted / "c.json").read_text())["mcpServers"]["here"]["args"]
    assert args[-3:] == ["serve", "--principal", "ann"]


def test_another_server_of_the_name_is_replaced_only_if_that_is_said(hosted, command):
    file = hosted / "c.json"
    file.write_text('{"mcpServers": {"here": {"command": "theirs"}}}')
    words = ("mcp", "config", "--client", "cursor", "--install", "--file", file)
    refused = command(*words)
    kept = file.read_text()

    assert (refused.code, "has another server 'here'" in refused.err) == (1, True)
    assert "theirs" in kept
    assert command(*words, "--replace").code == 0
    assert "theirs" not in file.read_text()


@pytest.mark.parametrize("text", ['{"mcpServers": {} // mine\n}', "[]", '{"mcpServers": []}'])
def test_a_file_that_can_not_be_merged_is_left_as_it_is(hosted, command, text):
    file = hosted / "c.json"
    file.write_text(text)
    done = command("mcp", "config", "--client", "cursor", "--install", "--file", file)

    assert (done.code, "left as it is" in done.err, file.read_text()) == (1, True, text)
    assert sorted(hosted.glob("c.json*")) == [file]


def test_a_file_without_servers_gets_them_and_an_empty_one_too(hosted, command):
    for text in ("{}", "", '{"a": 1}\n'):
        (hosted / "c.json").write_text(text)
        assert command("mcp", "config", "--client", "vscode", "--install", "--file", hosted / "c.json").code == 0
        assert "here" in json.loads((hosted / "c.json").read_text())["servers"]


def test_variables_that_count_are_handed_on_but_no_secret(hosted, command, monkeypatch):
    monkeypatch.setenv("AGENTOS_MODE", "auto")
    monkeypatch.setenv("AGENTOS_STORE_KEY", "a" * 64)
    done = command("mcp", "config", "--client", "json")
    entry = json.loads(done.out)["mcpServers"]["here"]

    assert set(entry["env"]) == {"AGENTOS_DATA", "AGENTOS_MODE"}
    assert "AGENTOS_STORE_KEY counts here and is not written" in done.err


def test_the_manifest_names_the_server(hosted, command):
    (hosted / "agentos.toml").write_text('name = "House tools"\n')

    assert list(json.loads(command("mcp", "config", "--client", "json").out)["mcpServers"]) == ["House-tools"]


def test_where_such_a_client_reads_is_asked_for(hosted, command):
    done = command("mcp", "config", "--client", "json", "--install")

    assert (done.code, "give --file" in done.err) == (2, True)
