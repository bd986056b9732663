"""The format in which a manifest names MCP servers."""

import json
from pathlib import Path

import pytest

from agentos import PUBLIC, AgentOS, ExtensionManifest, ManifestError, PackEntry, SecretRequirement
from agentos.mcp.client.manifest_servers import parse_servers, server_entries
from agentos.mcp.client.server_spec import MissingSecretError, header_reader, with_secrets

ROOT = Path(__file__).parents[2]


def parsed(**said):
    (server,) = parse_servers({"s": said})
    return server


def problems_of(servers, read=parse_servers):
    with pytest.raises(ManifestError) as caught:
        read(servers)
    return {problem.path: problem.message for problem in caught.value.problems}


# -- in a manifest -------------------------------------------------------------------------------------------------


def test_the_desktop_format_is_taken_as_it_is(tmp_path):
    file = tmp_path / "agentos.json"
    file.write_text(json.dumps({"mcpServers": {"files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "1"}}}}))
    (server,) = parse_servers(ExtensionManifest.from_file(file).mcp_servers)

    assert (server.command, server.args, dict(server.env)) == ("npx", ("-y", "x"), {"A": "1"})


def test_a_started_server_runs_in_the_manifests_folder(tmp_path):
    file = tmp_path / "agentos.yaml"
    file.write_text("mcpServers: {a: {command: x}, b: {command: x, cwd: sub}, c: {url: 'http://h/'}}")
    servers = ExtensionManifest.from_file(file).mcp_servers

    assert [servers[name].get("cwd") for name in "abc"] == [str(tmp_path), str(tmp_path / "sub"), None]


def test_a_mapping_has_no_folder_to_run_in():
    assert parsed(command="x").cwd is None


def test_a_manifest_does_not_show_its_servers():
    manifest = ExtensionManifest.from_dict({"mcpServers": {"a": {"command": "x", "env": {"T": "hush-hush"}}}})

    assert "hush" not in repr(manifest)


def test_a_manifest_without_servers_has_none():
    assert dict(ExtensionManifest.from_dict({}).mcp_servers) == {}
    assert server_entries(ExtensionManifest()) == []


@pytest.mark.parametrize(
    ("said", "path", "words"),
    [
        ({"comand": "x"}, "mcpServers.s.comand", "did you mean 'command'?"),
        ({"command": "x", "efects": {}}, "mcpServers.s.efects", "did you mean 'effects'?"),
        ({}, "mcpServers.s", "expected exactly one of command, url; got none"),
        ({"command": "x", "url": "http://h"}, "mcpServers.s", "got command and url"),
        ({"command": "x", "timeout": 0}, "mcpServers.s.timeout", "expected more than 0"),
        ({"command": "x", "startTimeout": 51}, "mcpServers.s.startTimeout", "expected at most 50"),
        ({"command": "x", "effects": {"a": "reed"}}, "mcpServers.s.effects.a", "did you mean 'read'?"),
        ({"command": "x", "env": {"A": 1}}, "mcpServers.s.env.A", "expected a string, got an int"),
        ({"command": "x", "type": "sse"}, "mcpServers.s.type", "expected one of"),
        ({"url": "http://h", "transport": "sse"}, "mcpServers.s.transport", "expected one of"),
        ({"command": "x", "disabled": "yes"}, "mcpServers.s.disabled", "expected true or false"),
        ({"command": "x", "trust": "yes"}, "mcpServers.s.trust", "expected true or false"),
    ],
)
def test_a_mistake_is_told_with_its_path(said, path, words):
    assert words in problems_of({"mcpServers": {"s": said}}, ExtensionManifest.from_dict)[path]


@pytest.mark.parametrize("name", ["a b", "a/b", "a:b", "", "-a", "x" * 65])
def test_a_name_that_can_not_be_part_of_a_packs_name_is_refused(name):
    (message,) = problems_of({"mcpServers": {name: {"command": "x"}}}, ExtensionManifest.from_dict).values()

    assert "at most 64 letters" in message


def test_a_manifest_made_in_python_is_checked_as_well():
    manifest = ExtensionManifest(mcp_servers={"a": {"comand": "x"}, "b b": {"command": "x"}})

    assert "mcpServers.a.comand" in problems_of(manifest, server_entries)


def test_a_name_is_checked_in_python_as_well():
    assert "at most 64 letters" in problems_of({"b b": {"command": "x"}})["mcpServers['b b']"]


def test_both_copies_of_the_schema_are_the_same():
    name = "schemas/manifest.schema.json"

    assert (ROOT / "docs" / name).read_bytes() == (ROOT / "agentos" / name).read_bytes()


# -- what a JSON Schema can't say -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "path", "words"),
    [
        ({"command": "x", "headers": {}}, "headers", "does not go with command"),
        ({"url": "http://h", "args": []}, "args", "does not go with url"),
        ({"url": "http://h", "env": {}}, "env", "does not go with url"),
        ({"url": "http://h", "type": "stdio"}, "type", "does not go with url"),
        ({"command": "x", "type": "http"}, "type", "does not go with command"),
        ({"command": "x", "transport": "http"}, "transport", "does not go with command"),
        ({"url": "http://h", "transport": "stdio"}, "transport", "does not go with url"),
        ({"command": "x", "alwaysAllow": ["a"]}, "alwaysAllow", "say with grants"),
        ({"command": "x", "autoApprove": []}, "autoApprove", "say with grants"),
        ({"command": "x\0"}, "command", "NUL"),
        ({"command": "x", "args": ["a", "${secret:k}"]}, "args[1]", "in env and headers only"),
        ({"command": "x", "cwd": "${secret:k}"}, "cwd", "in env and headers only"),
        ({"command": "x", "env": {"A": "${HOME}"}}, "env.A", "not variables of the environment"),
        ({"command": "x", "env": {"A": "${env:HOME}"}}, "env.A", "not variables of the environment"),
        ({"command": "x", "env": {"A": "${secret:}"}}, "env.A", "only ${secret:<id>} is filled in"),
        ({"command": "x", "env": {"A": "${secret:unclosed"}}, "env.A", "a reference has no end"),
        ({"command": "x", "env": {"A": "${secret:k} ${secret:unclosed"}}, "env.A", "a reference has no end"),
        ({"command": "x", "args": ["${secret:unclosed"]}, "args[0]", "in env and headers only"),
        ({"command": "x", "env": {"A=B": "c"}}, "env['A=B']", "can be sent"),
        ({"command": "x", "env": {"A": "b\0"}}, "env.A", "NUL"),
        ({"url": "http://h", "headers": {"A B": "c"}}, "headers['A B']", "can be sent"),
        ({"url": "http://h", "headers": {"A": "b\r\nC: d"}}, "headers.A", "without line ends"),
        ({"url": "http://h", "headers": {"Host": "elsewhere"}}, "headers.Host", "set by the client"),
        ({"url": "ftp://h"}, "url", "only http and https"),
        ({"url": "file:///etc/passwd"}, "url", "only http and https"),
        ({"url": "http://"}, "url", "only http and https"),
        ({"url": "http://h:0/"}, "url", "only http and https"),
        ({"url": "http://h:99999/"}, "url", "expected an address"),
        ({"url": "http://[::1"}, "url", "expected an address"),
        ({"url": "https://me:hush@h/"}, "url", "no user or password"),
        ({"url": "https://me@h/"}, "url", "no user or password"),
        ({"url": "http://h/a b"}, "url", "without white space"),
        ({"url": "http://h/${HOME}"}, "url", "nothing is filled in"),
        ({"command": "x", "requiredAccess": "public"}, "requiredAccess", 'the word "PUBLIC"'),
        ({"command": "x", "requiredAccess": []}, "requiredAccess", "at least one rule"),
        ({"command": "x", "requiredAccess": ["a", "*"]}, "requiredAccess[1]", "not '*'"),
        ({"command": "x", "requiredAccess": [" "]}, "requiredAccess[0]", "expected a name"),
    ],
)
def test_what_can_not_work_is_refused(said, path, words):
    assert words in problems_of({"s": said})[f"mcpServers.s.{path}"]


def test_a_password_in_an_address_is_not_repeated():
    assert "hush" not in str(problems_of({"s": {"url": "https://me:hush@h/"}}))


@pytest.mark.parametrize(
    "said",
    [
        {"command": "sh", "args": ["-c", "exec server --token ${TOKEN}"]},
        {"command": "x", "env": {"PEM": "line\nline"}},
        {"command": "vault", "args": ["--mount", "secret:kv/app"]},
        {"url": "http://h/secret:abc/mcp"},
        {"command": "x", "type": "stdio"},
        {"url": "http://127.0.0.1:8000/mcp?team=a", "type": "streamable-http"},
        {"url": "https://h/", "type": "http"},
        {"url": "https://h/", "transport": "streamable-http", "type": "http"},
        {"command": "x", "transport": "stdio"},
    ],
)
def test_what_can_work_is_taken(said):
    assert parsed(**said).name == "s"


# -- what follows --------------------------------------------------------------------------------------------------


def test_without_a_word_a_server_is_mistrusted():
    server = parsed(command="x")

    assert (server.trust, server.rank, server.required_access, server.timeout) == (False, -1, ("mcp:s",), 120)


@pytest.mark.parametrize(
    ("said", "rank"), [({}, -1), ({"trust": True}, 0), ({"priority": 0}, 0), ({"trust": True, "priority": 5}, 5)]
)
def test_a_server_that_nobody_vouches_for_ranks_beneath_packs(said, rank):
    assert parsed(command="x", **said).rank == rank


def test_access_is_what_the_operator_says():
    assert parsed(command="x", requiredAccess="PUBLIC").required_access is PUBLIC
    assert parsed(command="x", requiredAccess=["a", "b"]).required_access == ("a", "b")


@pytest.mark.parametrize(
    ("tools", "taken"),
    [(None, ["read_file", "write"]), (["read_*"], ["read_file"]), (["write", "x"], ["write"]), ([], [])],
)
def test_the_allow_list_is_of_names_and_patterns(tools, taken):
    server = parsed(command="x", **({} if tools is None else {"tools": tools}))

    assert [name for name in ("read_file", "write") if server.takes(name)] == taken


def test_an_effect_is_found_by_name_before_patterns_and_these_in_their_order():
    server = parsed(command="x", effects={"read_*": "read", "*": "mutate", "read_all": "destructive"})

    assert [server.effect_of(name) for name in ("read_all", "read_a", "b")] == ["destructive", "read", "mutate"]
    assert parsed(command="x").effect_of("b") is None


def test_references_are_the_secrets_of_a_server():
    server = parsed(command="x", env={"A": "${secret:github.token}", "B": "${secret:b}-${secret:github.token}"})

    assert server.secrets == (SecretRequirement("github.token"), SecretRequirement("b"))


def test_what_only_looks_like_a_reference_is_text():
    assert parsed(command="x", env={"VAULT_PATH": "kv-secret:prod/app"}).secrets == ()


def test_references_are_filled_in():
    values = {"A": "x-${secret:a}-${secret:b}", "B": "plain"}

    assert with_secrets(values, {"a": "1", "b": "2"}.get) == {"A": "x-1-2", "B": "plain"}


def test_what_is_filled_in_is_not_looked_at_again():
    assert with_secrets({"A": "${secret:a}"}, {"a": "${secret:b}"}.get) == {"A": "${secret:b}"}


@pytest.mark.parametrize("read", [{}.get, header_reader({}.get)], ids=["env", "headers"])
def test_a_missing_secret_is_named(read):
    with pytest.raises(MissingSecretError, match="'a' has no value"):
        with_secrets({"A": "${secret:a}"}, read)


@pytest.mark.parametrize(
    ("said", "left", "apart"),
    [
        ({"env": {"GITHUB_TOKEN": "ghp"}}, "${secret:mcp.s.env.GITHUB_TOKEN}", {"mcp.s.env.GITHUB_TOKEN": "ghp"}),
        ({"env": {"LEVEL": "debug"}}, "debug", {}),
        ({"env": {"AUTHOR": "me"}}, "me", {}),
        ({"env": {"API_KEY": ""}}, "", {}),
        ({"env": {"API_KEY": "${secret:k}"}}, "${secret:k}", {}),
    ],
)
def test_values_in_the_clear_that_sound_secret_are_set_apart(said, left, apart):
    server = parsed(command="x", **said)

    assert (list(server.env.values()), dict(server.own_secrets)) == ([left], apart)


def test_values_whose_names_differ_in_a_sign_are_set_apart_from_each_other():
    values = {"API/TOKEN": "one", "API-TOKEN": "two", "API TOKEN": "three"}
    server = parsed(command="x", env=values)

    assert with_secrets(server.env, server.own_secrets.get) == values


def test_of_a_header_the_scheme_is_left():
    server = parsed(url="http://h", headers={"Authorization": "Bearer abc", "X-Team": "a"})

    assert dict(server.headers) == {"Authorization": "Bearer ${secret:mcp.s.headers.Authorization}", "X-Team": "a"}
    assert dict(server.own_secrets) == {"mcp.s.headers.Authorization": "abc"}


def test_a_server_does_not_show_its_values():
    assert "hush" not in repr(parsed(command="x", args=["hush"], env={"A": "hush", "TOKEN": "hush"}))


# -- entries -------------------------------------------------------------------------------------------------------


def test_each_server_is_an_entry_after_the_packs():
    servers = {"a": {"command": "x"}, "b": {"url": "http://h", "enabled": False, "required": True, "priority": 3}}
    entries = server_entries(ExtensionManifest(packs=[PackEntry(module="m")], mcp_servers=servers))

    assert [(one.identifier, one.enabled, one.required, one.priority) for one in entries] == [
        ("mcp/a", True, False, None),
        ("mcp/b", False, True, 3),
    ]
    assert {one.permissions for one in entries} == {("tools:register",)}


@pytest.mark.parametrize(
    ("said", "enabled"),
    [
        ({"disabled": True}, False),
        ({"disabled": False}, True),
        ({"enabled": True, "disabled": True}, True),
        ({"enabled": False, "disabled": False}, False),
        ({}, True),
    ],
)
def test_disabled_is_the_opposite_of_enabled_which_counts_where_both_stand(said, enabled):
    assert parsed(command="x", **said).enabled is enabled


@pytest.mark.parametrize("said", [{"enabled": False}, {"disabled": True}])
async def test_a_disabled_server_is_skipped(said):
    entries = server_entries(ExtensionManifest(mcp_servers={"a": {"command": "x", **said}}))
    async with AgentOS(extension_manifest=ExtensionManifest(packs=entries)) as host:
        (outcome,) = host.extensions.report.outcomes

    assert (outcome.status, outcome.key, outcome.reason) == ("skipped", "mcp/a", "disabled")
