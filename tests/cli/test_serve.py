"""`agentos serve`: real clients over stdio and HTTP, a clean end, and the tokens that let clients in."""

import json
import re
import signal
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import jwt
import pytest
from commanding import MANIFEST, PACK, Project
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import get_default_algorithms
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from terminal import AGENTOS, PATIENCE, environment, run_in_terminal

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
LOUD = PACK + "\nimport os, subprocess\nos.write(1, b'raw noise\\n')\nsubprocess.run(['echo', 'noise of a child'])\n"


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


@pytest.fixture
def serving(project, started):
    """Return a function that starts a server."""
    return lambda *arguments: started("serve", *arguments, cwd=project.folder, env=project.env)


def end(child, number=signal.SIGTERM):
    return child.end(number)[:2]


# -- stdio -------------------------------------------------------------------------------------------------------------


async def test_a_client_lists_and_calls_tools_over_stdio(project):
    argv = [*AGENTOS, "serve", "--principal", "ann"]
    server = StdioServerParameters(command=argv[0], args=argv[1:], cwd=project.folder, env=environment(project.env))
    async with Client(server) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        result = await client.call_tool("add", {"a": 1, "b": 2})

    assert "add" in names
    assert "wipe" not in names
    assert result.content[0].text == "3"


async def test_the_tools_that_decide_on_proposals_may_be_left_out_over_stdio(project):
    argv = [*AGENTOS, "serve", "--no-approvals-tools"]
    server = StdioServerParameters(command=argv[0], args=argv[1:], cwd=project.folder, env=environment(project.env))
    async with Client(server) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}

    assert "note" in names
    assert not {name for name in names if name.startswith("proposals_")}


def test_stdout_belongs_to_the_protocol(project, serving):
    project.write("pack.py", LOUD)
    child = serving()
    out, err = child.communicate(json.dumps(INITIALIZE) + "\n", timeout=PATIENCE)

    assert [json.loads(line)["id"] for line in out.splitlines()] == [1]
    assert {"raw noise", "noise of a child", "a pack that prints"} <= set(err.splitlines())
    assert child.returncode == 0


def test_stdin_and_stdout_may_be_files(project):
    (project.folder / "requests").write_text(json.dumps(INITIALIZE) + "\n")
    with (project.folder / "requests").open() as requests, (project.folder / "answers").open("w") as answers:
        done = subprocess.run(
            [*AGENTOS, "serve"],
            stdin=requests,
            stdout=answers,
            stderr=subprocess.PIPE,
            cwd=project.folder,
            env=environment(project.env),
            text=True,
            check=False,
        )

    assert done.returncode == 0, done.stderr
    assert json.loads((project.folder / "answers").read_text())["id"] == INITIALIZE["id"]


def test_sigterm_ends_the_server_over_stdio_in_good_order(serving):
    child = serving("--stdio")
    child.stdin.write(json.dumps(INITIALIZE) + "\n")
    child.stdin.flush()
    assert json.loads(child.stdout.readline())["id"] == 1

    assert end(child) == (0, "")


def test_a_person_who_starts_it_is_told_that_it_is_for_clients(project):
    inputs = [("for an MCP client to start", "\x03")]
    told = run_in_terminal([*AGENTOS, "serve"], cwd=project.folder, env=project.env, inputs=inputs)

    assert told.code == 130


def test_ctrl_c_ends_the_server_over_stdio_as_it_does_over_http(serving):
    child = serving()
    child.stdin.write(json.dumps(INITIALIZE) + "\n")
    child.stdin.flush()
    assert json.loads(child.stdout.readline())["id"] == 1

    assert end(child, signal.SIGINT) == (130, "")


async def test_how_many_tools_are_listed_is_the_operators_choice(project):
    found = {}
    for above in ("0", "never"):
        argv = [*AGENTOS, "serve", "--no-approvals-tools", "--search-above", above]
        server = StdioServerParameters(command=argv[0], args=argv[1:], cwd=project.folder, env=environment(project.env))
        async with Client(server) as client:
            found[above] = {tool.name for tool in (await client.list_tools()).tools}

    assert found["0"] == {"search_tools", "load_tools", "call_tool"}
    assert "add" in found["never"]


def test_a_manifest_that_cannot_be_used_is_said_on_stderr(project):
    project.write("agentos.toml", "pakcs = []")
    done = project.run("serve")

    assert (done.code, done.out) == (3, "")
    assert "did you mean 'packs'?" in done.err


# -- HTTP --------------------------------------------------------------------------------------------------------------


def address_of(child):
    return re.search(r"http://\S+", child.until("serving"))[0]


async def test_a_client_of_this_machine_calls_tools_over_http_without_a_token(serving):
    child = serving("--http", "--port", "0", "--path", "/tools")
    address = address_of(child)
    async with Client(address) as client:
        result = await client.call_tool("add", {"a": 2, "b": 2})

    assert address.endswith("/tools")
    assert result.content[0].text == "4"
    assert end(child) == (0, "")


async def test_the_tools_that_decide_on_proposals_may_be_left_out_over_http(serving):
    child = serving("--http", "--port", "0", "--no-approvals-tools")
    async with Client(address_of(child)) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}

    assert "note" in names
    assert not {name for name in names if name.startswith("proposals_")}
    assert end(child) == (0, "")


async def test_a_token_says_for_whom_a_request_is_made(project, serving):
    token = project.run("serve", "tokens", "issue", "--token-file", "tokens.json", "--principal", "ann").out.strip()
    child = serving("--http", "--port", "0", "--token-file", "tokens.json")
    address = address_of(child)
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        names = {tool.name for tool in (await client.list_tools()).tools}
        project.run("serve", "tokens", "revoke", token.split("_")[1], "--token-file", "tokens.json")
        refused = await http.post(address, json={})

    assert ("note" in names, "wipe" in names) == (True, False)
    assert refused.status_code == 401
    assert end(child, signal.SIGINT)[0] == 130


def names_for(address, token):
    """Return the status of a list of tools and the names in it, in the era without sessions."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/list",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    answer = httpx2.post(address, json=body, headers=headers, timeout=PATIENCE)
    tools = re.findall(r'"name": ?"(\w+)"', answer.text) if answer.status_code == 200 else []
    return answer.status_code, {name for name in tools if name in ("note", "wipe", "add")}


@pytest.mark.parametrize(
    ("principals", "status", "names"),
    [
        ('[principals.ann]\naccess = ["notes:write"]\n', 200, {"add", "note"}),
        ('[principals.ann]\naccess = ["notes:write", "notes:delete"]\n', 200, {"add", "note"}),
        ("[principals.ann]\naccess = []\n", 200, {"add"}),
        ('[principals.bob]\naccess = ["notes:write"]\n', 401, set()),
        ('[principals.ann]\nkind = "service"\naccess = ["notes:write"]\n', 401, set()),
    ],
    ids=["as it was", "more", "less", "gone", "another kind"],
)
def test_a_token_lets_in_nobody_but_the_manifests_principals_with_what_they_hold_now(
    project, serving, principals, status, names
):
    token = project.run("serve", "tokens", "issue", "--token-file", "tokens.json", "--principal", "ann").out.strip()
    project.write("agentos.toml", MANIFEST.partition("[principals")[0] + principals)
    child = serving("--http", "--port", "0", "--token-file", "tokens.json")

    assert names_for(address_of(child), token) == (status, names)


class Issuer:
    """Publishes a key on loopback, and signs tokens with it."""

    def __init__(self):
        self.private = ec.generate_private_key(ec.SECP256R1())
        key = get_default_algorithms()["ES256"].to_jwk(self.private.public_key(), as_dict=True)
        document = json.dumps({"keys": [{**key, "kid": "k"}]}).encode()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(document)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/keys.json"
        threading.Thread(target=self.server.serve_forever).start()

    def token(self, **claims):
        said = {"iss": "https://login.example", "aud": "tools", "sub": "ann", "exp": time.time() + 600, **claims}
        return jwt.encode(said, self.private, "ES256", headers={"kid": "k"})

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def issuer():
    made = Issuer()
    yield made
    made.close()


def test_json_web_tokens_let_the_manifests_principals_in(serving, issuer):
    options = ["--jwks-url", issuer.url, "--issuer", "https://login.example", "--audience", "tools"]
    address = address_of(serving("--http", "--port", "0", *options, "--require-scope", "notes:write"))
    scope = "notes:write notes:delete"

    assert names_for(address, issuer.token(scope=scope)) == (200, {"add", "note"})
    assert names_for(address, issuer.token(scope="notes:delete"))[0] == 403
    assert names_for(address, issuer.token(scope=scope, sub="bob"))[0] == 401
    assert names_for(address, issuer.token(scope=scope, aud="others"))[0] == 401
    assert names_for(address, "none")[0] == 401


def test_web_pages_call_if_the_operator_names_them(serving):
    address = address_of(serving("--http", "--port", "0", "--allow-origin", "https://app.example"))
    asked = {"Access-Control-Request-Method": "POST"}
    codes = [
        httpx2.options(address, headers={"Origin": origin, **asked}, timeout=PATIENCE).status_code
        for origin in ("https://app.example", "https://other.example")
    ]

    assert codes == [200, 403]


def test_the_bounds_of_the_server_can_be_set(serving):
    address = address_of(serving("--http", "--port", "0", "--limit", "sessions=1", "--limit", "idle=60.5"))
    sent = {"headers": {"Accept": "application/json, text/event-stream"}, "json": INITIALIZE, "timeout": PATIENCE}

    assert [httpx2.post(address, **sent).status_code for _ in range(2)] == [200, 503]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--jwks-url", "https://login.example/k"], "--jwks-url is for --http"),
        (["--http", "--jwks-url", "https://login.example/k"], "give --issuer"),
        (["--http", "--jwks-url", "https://login.example/k", "--issuer", "x"], "--audience or --url"),
        (["--http", "--jwks-url", "ftp://x", "--issuer", "x", "--audience", "y"], "https"),
        (["--http", "--jwks-url", "https://x/k", "--token-file", "t.json"], "give one of them"),
        (["--http", "--issuer", "x"], "go with --jwks-url"),
        (["--http", "--require-scope", "x"], "so that there are tokens"),
        (["--http", "--allow-origin", "app.example"], "expected an origin"),
        (["--http", "--limit", "conections=5"], "'conections' is unknown; known are body, sessions"),
        (["--http", "--limit", "connections=many"], "--limit connections: expected a number, got 'many'"),
        (["--http", "--limit", "connections=5.5"], "expected a number, got '5.5'"),
        (["--http", "--limit", "connections"], "expected a number, got ''"),
        (["--http", "--limit", "headers=0"], "--limit: headers: expected a positive number"),
        (["--http", "--limit", "headers=nan"], "--limit: headers: expected a positive number"),
        (["--limit", "headers=5"], "--limit is for --http"),
        (["--search-above", "few"], "not a valid"),
        (["--stdio", "--http"], "serve one of them"),
        (["--port", "80"], "--port is for --http"),
        (["--stdio", "--token-file", "x.json"], "--token-file is for --http"),
        (["--http", "--bind", "0.0.0.0"], "give --token-file"),
        (["--http", "--bind", "0.0.0.0", "--token-file", "t.json"], "give --url"),
        (["--http", "--tls-cert", "x"], "go together"),
        (["--http", "--tls-cert", "agentos.toml", "--tls-key", "agentos.toml"], "can't be used for TLS"),
        (["--http", "--port", "0", "--path", "mcp"], "expected a path such as /mcp"),
        (["--http", "--token-file", "t.txt"], "ending in .json"),
        (["--http", "--token-file", "t.json", "--principal", "ann"], "the token says for whom"),
    ],
)
def test_what_does_not_go_together_is_a_usage_error(project, options, said):
    done = project.run("serve", *options)

    assert (done.code, said in done.err) == (2, True), done


def test_a_file_of_tokens_that_is_not_there_is_refused(project):
    done = project.run("serve", "--http", "--port", "0", "--token-file", "nope.json")

    assert (done.code, "there is no file of tokens at nope.json" in done.err) == (1, True)


def test_a_port_that_is_taken_is_named(project):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = project.run("serve", "--http", "--port", str(port))

    assert (done.code, f"can't listen on 127.0.0.1:{port}" in done.err) == (1, True)


def test_without_the_library_it_is_said_what_to_install(project, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "mcp", None)
    done = project.run("serve", "--http")

    assert (done.code, "pip install 'agentos-host[mcp]'" in done.err) == (3, True)


# -- its log, its name, its status -------------------------------------------------------------------------------------


def test_lines_have_the_time(serving):
    child = serving("--http", "--port", "0")
    line = child.until("serving")
    end(child)

    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO agentos\.cli: serving \d+ tools at http://", line)


@pytest.mark.parametrize("transport", [["--stdio"], ["--http", "--port", "0"]], ids=["stdio", "http"])
def test_with_json_every_line_is_an_object(project, serving, transport):
    (project.folder / "bad.py").write_text("raise ValueError('no luck')")
    with (project.folder / "agentos.toml").open("a") as file:
        file.write('\n[[packs]]\nmodule = "bad.py"\n')
    child = serving(*transport, "--log-format", "json", "-v")
    first = child.until("serving")
    _, _, rest = child.end(signal.SIGTERM)
    lines = [json.loads(line) for line in [first, *rest.splitlines()]]

    assert all(set(line) == {"time", "level", "logger", "message"} for line in lines)
    assert (lines[0]["level"], lines[0]["logger"]) == ("info", "agentos.cli")


def test_with_json_the_reason_of_the_end_is_an_object_too(project):
    (project.folder / "agentos.toml").write_text("packs = 3")
    done = project.run("serve", "--log-format", "json")
    line = json.loads(done.err.splitlines()[-1])

    assert (done.code, line["level"], "packs" in line["message"]) == (3, "error", True)


@pytest.mark.parametrize(("more", "name"), [("", "agentos"), ('name = "House tools"\n', "House tools")])
async def test_the_manifest_says_what_the_server_is_called(project, more, name):
    manifest = project.folder / "agentos.toml"
    manifest.write_text(more + manifest.read_text())
    argv = [*AGENTOS, "serve"]
    server = StdioServerParameters(command=argv[0], args=argv[1:], cwd=project.folder, env=environment(project.env))
    async with Client(server, mode="legacy") as client:
        assert client.server_info.name == name


@pytest.mark.parametrize(
    ("options", "status"), [([], 401), (["--metrics", "anybody"], 200), (["--metrics", "off"], 404)]
)
def test_probes_answer_everybody_and_figures_whom_the_operator_says(project, serving, options, status):
    project.run("serve", "tokens", "issue", "--token-file", "t.json", "--principal", "ann")
    address = address_of(serving("--http", "--port", "0", "--token-file", "t.json", *options)).removesuffix("/mcp")
    answers = [httpx2.get(address + path, trust_env=False) for path in ("/health", "/ready", "/metrics")]

    assert [one.status_code for one in answers] == [200, 200, status]


# -- tokens ------------------------------------------------------------------------------------------------------------


def tokens(project, command, *rest):
    return project.run("serve", "tokens", command, *rest, "--token-file", "tokens.json")


def test_a_token_is_shown_once_and_its_hash_kept(project):
    done = tokens(project, "issue", "--principal", "ann", "--scope", "notes:write", "--days", "1", "--json")
    (entry,) = tokens(project, "list", "--json").json["tokens"]

    assert done.json["token"].startswith(f"agentos_{entry['id']}_")
    assert done.json["token"].rpartition("_")[2] not in (project.folder / "tokens.json").read_text()
    assert (entry["principal"], entry["scopes"], "hash" in entry) == ("ann", ["notes:write"], False)


def test_people_get_the_token_on_stdout_and_the_rest_beside_it(project):
    done = tokens(project, "issue", "--principal", "ann", "--forever")

    assert done.out.count("\n") == 1
    assert "does not expire; it is shown now and never again" in done.err
    assert "does not expire" in tokens(project, "list").out


def test_a_token_stands_for_somebody(project):
    done = tokens(project, "issue")

    assert (done.code, "--principal" in done.err) == (2, True)


def test_a_token_that_would_outlast_time_is_refused(project):
    assert tokens(project, "issue", "--principal", "ann", "--days", "1e9").code == 2


def test_the_host_itself_gets_no_token(tmp_path):
    project = Project(tmp_path, MANIFEST + "[principals.system]\naccess = []\n")

    assert tokens(project, "issue", "--principal", "system").code in (2, 3)


def test_a_token_that_is_not_there_cannot_be_revoked(project):
    assert tokens(project, "revoke", "abc").code == 1
    tokens(project, "issue", "--principal", "ann")
    done = tokens(project, "revoke", "abc")

    assert (done.code, "there is no token 'abc'" in done.err) == (1, True)
    id = tokens(project, "list", "--json").json["tokens"][0]["id"]
    assert tokens(project, "revoke", id).out == f"token {id} is revoked\n"
    assert tokens(project, "list").out == "There are no tokens.\n"
