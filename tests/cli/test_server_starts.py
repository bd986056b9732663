"""Which MCP servers a command starts: those whose tools it calls, if the others are known from earlier runs."""

import json

import pytest
from bridging import program
from commanding import Project

COUNT = 8
STORE = 'store = "state.db"\n'


class Servers:
    """A project with servers, each of which notes that it was started."""

    def __init__(self, folder, count=COUNT, head=STORE, **said):
        self.project = Project(folder)
        self.folders = [folder / f"started{number}" for number in range(count)]
        for one in self.folders:
            one.mkdir()
        self.write(head, **said)

    def write(self, head=STORE, **said):
        lines = [head]
        for number, folder in enumerate(self.folders):
            server = {**program("plain.py", "--after", str(folder), "1"), "prefix": f"s{number}_", **said}
            server.setdefault("effects", {"*": "read"})
            lines += [f"[mcpServers.s{number}]", *(f"{key} = {toml(value)}" for key, value in server.items())]
        self.project.write("agentos.toml", "\n".join(lines))

    def started_by(self, *arguments):
        """Run a command; return it, and the numbers of the servers that it started."""
        for folder in self.folders:
            for mark in folder.iterdir():
                mark.unlink()
        done = self.project.run(*arguments)
        return done, [number for number, folder in enumerate(self.folders) if any(folder.iterdir())]


def toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {json.dumps(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)


@pytest.fixture
def servers(tmp_path):
    made = Servers(tmp_path)
    assert made.started_by("tools", "list")[1] == list(range(COUNT))
    return made


def test_a_call_starts_the_server_of_its_tool_alone(servers):
    done, started = servers.started_by("tools", "call", "s3_echo", "text=hello")

    assert (done.code, done.out, started) == (0, "hello\n", [3])


def test_a_call_by_the_full_id_starts_that_server_alone(servers):
    done, started = servers.started_by("tools", "call", "mcp/s5:s5_add", "a=1", "b=2", "--json")

    assert (done.json["output"], started) == ({"sum": 3}, [5])


def test_showing_a_tool_starts_nothing(servers):
    done, started = servers.started_by("tools", "show", "s1_add", "--json")

    assert (done.json["id"], started) == ("mcp/s1:s1_add", [])
    assert sorted(done.json["inputSchema"]["properties"]) == ["a", "b"]


def test_arguments_are_checked_before_anything_is_started(servers):
    done, started = servers.started_by("tools", "call", "s1_add", "a=1", "b=2", "c=3")

    assert (done.code != 0, started) == (True, [])


def test_a_name_that_nobody_knows_is_looked_for_at_all(servers):
    done, started = servers.started_by("tools", "call", "s3_nothing")

    assert (done.code != 0, started) == (True, list(range(COUNT)))
    assert "s3_nothing" in done.err


def test_listing_asks_all(servers):
    assert servers.started_by("tools", "list")[1] == list(range(COUNT))


def test_an_approved_call_starts_the_server_of_its_tool_alone(tmp_path):
    servers = Servers(tmp_path, 3, effects={"*": "destructive"})
    servers.started_by("tools", "list")
    waiting, asked = servers.started_by("tools", "call", "s1_echo", "text=hello", "--json")
    done, approved = servers.started_by("approvals", "approve", waiting.json["proposal"], "--approve-destructive")

    assert (asked, approved) == ([], [1])
    assert "hello" in done.out


def test_without_a_store_nothing_is_known_and_all_are_started(tmp_path):
    servers = Servers(tmp_path, 2, head="")
    servers.started_by("tools", "list")

    assert servers.started_by("tools", "call", "s1_echo", "text=x")[1] == [0, 1]


def test_a_server_that_was_never_seen_is_started(tmp_path):
    servers = Servers(tmp_path, 2)
    done, started = servers.started_by("tools", "call", "s1_echo", "text=x")

    assert (done.out, started) == ("x\n", [0, 1])


def test_a_server_of_whose_tools_the_operator_says_otherwise_now_is_started(tmp_path):
    """What is accepted is not what would be offered now: it is held back, as ever."""
    servers = Servers(tmp_path, 2)
    servers.started_by("tools", "list")
    servers.write(effects={"*": "mutate"})
    done, started = servers.started_by("tools", "call", "s1_echo", "text=x")

    assert (done.code != 0, started) == (True, [0, 1])
    assert "changed since it was accepted" in done.err


def test_a_server_that_is_required_is_started(tmp_path):
    servers = Servers(tmp_path, 2, required=True)
    servers.started_by("tools", "list")

    assert servers.started_by("tools", "call", "s1_echo", "text=x")[1] == [0, 1]


def test_a_definition_that_the_server_changed_meanwhile_does_not_run(tmp_path):
    """It is known only when the server is started: the call ends there."""
    servers = Servers(tmp_path, 1)
    servers.started_by("tools", "list")
    manifest = servers.project.folder / "agentos.toml"
    manifest.write_text(manifest.read_text().replace('"--after"', '"--changed", "--after"'))
    done, started = servers.started_by("tools", "call", "s0_echo", "text=x")

    assert (done.code != 0, started) == (True, [0])
    assert "changed the definition of s0_echo" in done.err


def test_a_server_that_can_not_be_reached_any_more_fails_the_call_with_the_reason(tmp_path):
    servers = Servers(tmp_path, 1)
    servers.started_by("tools", "list")
    manifest = servers.project.folder / "agentos.toml"
    manifest.write_text(manifest.read_text().replace("plain.py", "gone.py"))
    done, _ = servers.started_by("tools", "call", "s0_echo", "text=x")

    assert done.code != 0
    assert "mcp/s0 is not connected" in done.err
