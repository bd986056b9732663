"""What a request must have to be let in, and what it is told if it is not."""

import asyncio
import itertools
import json
import re
import socket
import threading
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import httpx2
import pytest

from agentos import PUBLIC, AgentOS, Principal, tool
from agentos.mcp.auth import JWTVerifier, TokenFile, Verified
from agentos.mcp.http.request_checks import RequestRefused, check_page
from agentos.mcp.http.resource_metadata import metadata_url
from agentos.mcp.http.serving import HTTPLimits, app_for, http_app, serve_http

RESOURCE = "https://tools.example/mcp"
ALICE = Principal("alice", access={"mail.read"})
BOB = Principal("bob", access={"mail.read"})
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@tool(effect="read", required_access=PUBLIC)
async def ping() -> str:
    """Answer."""
    return "pong"


@tool(effect="read", required_access=["mail.read"])
async def read_mail() -> str:
    """Read the mail."""
    return "hello"


class Running:
    """A server in a thread of its own, on a free port."""

    def __init__(self, **options):
        self._options = options
        self._started = threading.Event()
        self._client = httpx2.Client(trust_env=False, verify=False)
        self.address = None
        self.error = None

    def __enter__(self):
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))
        self._thread.start()
        self._started.wait(20)
        if self.error is not None:
            raise self.error
        return self

    def __exit__(self, *error):
        self._client.close()
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    async def _main(self):
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        try:
            async with AgentOS(mode="auto", budget=None) as host:
                await host.tools_service().sync([ping, read_mail])
                with suppress(asyncio.CancelledError):
                    await serve_http(host, port=0, ready=self._ready, **self._options)
        except Exception as error:
            self.error = error
        finally:
            self._started.set()

    def _ready(self, address):
        self.address = address
        self._started.set()

    @property
    def place(self):
        parts = urlsplit(self.address)
        return parts.hostname, parts.port

    def request(self, method="POST", path="/mcp", *, token=None, headers=None, **options):
        """Send one request; headers are given as pairs, so that one may stand twice."""
        sent = list((JSON | {"host": "127.0.0.1"}).items()) if headers is None else list(headers)
        if token is not None:
            sent.append(("authorization", f"Bearer {token}"))
        url = self.address.removesuffix("/mcp") + path
        return self._client.request(method, url, headers=sent, **options)

    def raw(self, text):
        """Send bytes as they are and return all that comes back."""
        with socket.create_connection(self.place, timeout=10) as connection:
            connection.sendall(text)
            chunks = iter(lambda: connection.recv(65536), b"")
            return b"".join(chunks)


def with_headers(**changed):
    made = {**JSON, "host": "127.0.0.1", **{name.replace("_", "-"): value for name, value in changed.items()}}
    return [(name, value) for name, value in made.items() if value is not None]


_numbers = itertools.count(1)


def message(method, params=None, id=...):
    made = {"jsonrpc": "2.0", "method": method, "params": params or {}}
    return made if id is None else {**made, "id": next(_numbers)}


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}


def initialize(running, token=None):
    return running.request(token=token, json=message("initialize", INITIALIZE))


def in_session(running, session, token=None, method="POST", headers=(), **options):
    sent = [*with_headers(mcp_session_id=session, mcp_protocol_version="2025-11-25"), *headers]
    if method == "POST":
        options.setdefault("json", message("tools/list"))
    return running.request(method, token=token, headers=sent, **options)


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def modern_headers(method, more=()):
    return [*with_headers(mcp_protocol_version="2026-07-28", mcp_method=method), *more]


def modern_message(method, params=None):
    return message(method, {**(params or {}), "_meta": META})


def modern(running, method, params=None, *, token=None, more=()):
    return running.request(token=token, headers=modern_headers(method, more), json=modern_message(method, params))


def data_of(response):
    """Return the message in an answer, which may be a stream of one."""
    if response.headers["content-type"].startswith("application/json"):
        return response.json()
    [line] = [line for line in response.text.splitlines() if line.startswith("data: ")]
    return json.loads(line[6:])


def tools_of(response):
    offered = {item["name"] for item in data_of(response)["result"]["tools"]}
    return offered & {"ping", "read_mail"}


# -- A server that asks for tokens


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    return TokenFile(tmp_path_factory.mktemp("tokens") / "tokens.json")


@pytest.fixture(scope="module")
def running(tokens):
    options = {"required_scopes": ["mcp"], "authorization_servers": ["https://issuer.example"]}
    with Running(verifier=tokens, resource_url=RESOURCE, allowed_hosts=["127.0.0.1", "tools.example"], **options) as it:
        yield it


@pytest.fixture(scope="module")
def alice(tokens):
    return tokens.issue(ALICE, ["mcp", "mail.read"], RESOURCE)


@pytest.fixture(scope="module")
def bob(tokens):
    return tokens.issue(BOB, ["mcp", "mail.read"], RESOURCE)


HINTS = 'scope="mcp", resource_metadata="https://tools.example/.well-known/oauth-protected-resource/mcp"'


def test_a_good_token_is_let_in(running, alice):
    assert modern(running, "tools/list", token=alice).status_code == 200
    assert initialize(running, alice).status_code == 200


def test_without_a_token_the_answer_says_where_tokens_come_from(running):
    response = running.request(json=message("tools/list"))

    assert response.status_code == 401
    assert response.headers["www-authenticate"] == f"Bearer {HINTS}"
    assert response.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_every_method_needs_a_token(method, running):
    assert running.request(method).status_code == 401


def issued(tokens, **options):
    return tokens.issue(ALICE, ["mcp"], options.pop("audience", RESOURCE), **options)


BAD_TOKENS = {
    "unknown id": lambda tokens, alice: "agentos_unknown_" + alice.split("_", 2)[2],
    "wrong secret": lambda tokens, alice: f"agentos_{alice.split('_')[1]}_wrong",
    "another resource": lambda tokens, alice: issued(tokens, audience="https://other.example/mcp"),
    "the resource's host alone": lambda tokens, alice: issued(tokens, audience="https://tools.example"),
    "the resource without TLS": lambda tokens, alice: issued(tokens, audience="http://tools.example/mcp"),
    "no address as resource": lambda tokens, alice: issued(tokens, audience="tools.example/mcp"),
    "expired": lambda tokens, alice: issued(TokenFile(tokens._path, clock=lambda: 1e9), ttl=1),
    "not one of ours": lambda tokens, alice: "x" * 100,
    "huge": lambda tokens, alice: "x" * 9000,
    "two in one": lambda tokens, alice: f"{alice}, Bearer {alice}",
    "in quotes": lambda tokens, alice: f'"{alice}"',
    "latin letters": lambda tokens, alice: "t\xf6ken",
    "unicode": lambda tokens, alice: "\N{SNOWMAN}".encode().decode("latin-1"),
    "empty": lambda tokens, alice: "",
}


@pytest.mark.parametrize("make", BAD_TOKENS.values(), ids=BAD_TOKENS)
def test_a_token_that_does_not_hold_is_refused_in_words_that_tell_nothing(make, running, tokens, alice):
    headers = [*with_headers(), ("authorization", f"Bearer {make(tokens, alice)}".strip().encode("latin-1"))]
    response = running.request(headers=headers, json=message("tools/list"))

    assert response.status_code == 401
    told = 'error="invalid_token", error_description="The token is invalid"'
    assert response.headers["www-authenticate"] == f"Bearer {told}, {HINTS}"
    assert response.json() == {"error": "invalid_token", "error_description": "The token is invalid"}


@pytest.mark.parametrize("audience", [RESOURCE, "HTTPS://Tools.Example:443/mcp", RESOURCE + "/", None])
def test_a_token_for_this_resource_or_for_any_is_let_in(audience, running, tokens):
    assert modern(running, "tools/list", token=issued(tokens, audience=audience)).status_code == 200


@pytest.mark.parametrize("scheme", ["Basic", "Token", "agentos", "Bearer:"])
def test_another_scheme_is_as_good_as_none(scheme, running, alice):
    headers = with_headers(authorization=f"{scheme} {alice}")

    assert running.request(headers=headers).headers["www-authenticate"] == f"Bearer {HINTS}"


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer  "])
def test_the_scheme_is_read_as_the_standard_says(scheme, running, alice):
    sent = [("authorization", f"{scheme} {alice}")]

    assert modern(running, "tools/list", more=sent).status_code == 200


def test_two_authorization_headers_are_refused(running, alice, bob):
    sent = [("authorization", f"Bearer {alice}"), ("authorization", f"Bearer {bob}")]
    response = modern(running, "tools/list", more=sent)

    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")


@pytest.mark.parametrize("query", ["access_token={}", "x=1&access_token={}", "access%5Ftoken={}", "access_token="])
@pytest.mark.parametrize("is_sent_twice", [False, True])
def test_a_token_in_the_address_is_refused(query, is_sent_twice, running, alice):
    token = alice if is_sent_twice else None
    response = running.request(path="/mcp?" + query.format(alice), token=token, json=message("tools/list"))

    assert response.status_code == 400
    assert "never in an address" in response.text
    assert alice not in response.text


def test_a_token_in_the_address_is_refused_where_no_tokens_are_asked_for(tokens):
    with Running() as free:
        response = free.request(path="/mcp?access_token=x", json=message("initialize", INITIALIZE))

    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")


def test_a_query_without_end_is_refused(running, alice):
    response = running.request(path="/mcp?" + "a=1&" * 200, token=alice, json=message("tools/list"))

    assert response.status_code == 400


def test_a_token_that_lacks_a_required_scope_is_told_which(running, tokens):
    response = modern(running, "tools/list", token=tokens.issue(ALICE, ["mail.read"], RESOURCE))

    assert response.status_code == 403
    told = 'error="insufficient_scope", error_description="The token lacks the scope mcp"'
    assert response.headers["www-authenticate"] == f"Bearer {told}, {HINTS}"


def test_a_token_for_everything_has_every_scope(running, tokens):
    everything = tokens.issue(Principal("me", access={"*"}), None, RESOURCE)

    assert tools_of(modern(running, "tools/list", token=everything)) == {"ping", "read_mail"}


def test_scopes_narrow_what_is_offered_and_what_can_be_called(running, tokens, alice):
    narrow = tokens.issue(ALICE, ["mcp"], RESOURCE)
    call = {"name": "read_mail", "arguments": {}}
    named = [("mcp-name", "read_mail")]

    assert tools_of(modern(running, "tools/list", token=alice)) == {"ping", "read_mail"}
    assert tools_of(modern(running, "tools/list", token=narrow)) == {"ping"}
    good = data_of(modern(running, "tools/call", call, token=alice, more=named))
    bad = data_of(modern(running, "tools/call", call, token=narrow, more=named))
    assert good["result"]["content"][0]["text"] == "hello"
    assert bad["result"]["isError"]
    assert "UnknownTool" in bad["result"]["content"][0]["text"]


def test_a_revoked_token_is_refused_at_once(running, tokens):
    token = tokens.issue(ALICE, ["mcp"], RESOURCE)
    assert modern(running, "tools/list", token=token).status_code == 200
    tokens.revoke(token.split("_")[1])

    assert modern(running, "tools/list", token=token).status_code == 401


# -- Metadata


@pytest.mark.parametrize("host", ["127.0.0.1", "tools.example"])
def test_what_the_challenge_advertises_is_there(host, running):
    told = running.request().headers["www-authenticate"]
    advertised = urlsplit(re.search(r'resource_metadata="([^"]+)"', told)[1])
    response = running.request("GET", advertised.path, headers=[("host", host)])

    assert advertised.netloc == "tools.example"
    assert response.status_code == 200
    assert response.json() == {
        "resource": RESOURCE,
        "authorization_servers": ["https://issuer.example"],
        "scopes_supported": ["mcp"],
        "bearer_methods_supported": ["header"],
    }


def test_the_metadata_is_at_the_root_as_well(running):
    at_root = running.request("GET", "/.well-known/oauth-protected-resource", headers=with_headers())
    with_path = running.request("GET", "/.well-known/oauth-protected-resource/mcp", headers=with_headers())

    assert at_root.json() == with_path.json()


def test_pages_of_any_origin_may_read_the_metadata(running):
    path = "/.well-known/oauth-protected-resource/mcp"
    asked = with_headers(
        origin="https://page.example",
        access_control_request_method="GET",
        access_control_request_headers="mcp-protocol-version",
    )

    assert running.request("OPTIONS", path, headers=asked).status_code == 200
    got = running.request("GET", path, headers=with_headers(origin="https://page.example"))
    assert got.headers["access-control-allow-origin"] == "*"


def test_the_metadata_is_only_read(running):
    path = "/.well-known/oauth-protected-resource/mcp"

    assert running.request("POST", path, headers=with_headers()).status_code == 405


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("https://a.example/mcp", "https://a.example/.well-known/oauth-protected-resource/mcp"),
        ("https://a.example:8443/x/mcp", "https://a.example:8443/.well-known/oauth-protected-resource/x/mcp"),
        ("https://a.example/", "https://a.example/.well-known/oauth-protected-resource"),
        ("https://a.example", "https://a.example/.well-known/oauth-protected-resource"),
    ],
)
def test_where_the_metadata_of_a_resource_is(resource, expected):
    assert metadata_url(resource) == expected


# -- Hosts and origins


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "evil.example#127.0.0.1",
        "localhost",
        "127.0.0.1:",
        "127.0.0.1:x",
        "127.0.0.1:99999999",
        "tools.example.",
        "",
        "127.0.0.1, evil.example",
        "t\xf6\xf6ls.example",
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/.well-known/oauth-protected-resource", "/elsewhere"])
def test_another_host_is_refused_everywhere(host, path, running, alice):
    headers = [(name, value) for name, value in with_headers() if name != "host"]
    response = running.request("GET", path, headers=[("host", host.encode("latin-1")), *headers], token=alice)

    assert response.status_code in (400, 421)
    assert "evil" not in response.text


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:1", "TOOLS.example", "tools.example:443"])
def test_a_host_of_the_list_is_served_on_any_port(host, running, alice):
    assert running.request(headers=with_headers(host=host), token=alice, json=INITIALIZE).status_code != 421


@pytest.mark.parametrize(
    "hosts", [b"", b"Host: 127.0.0.1\r\nHost: 127.0.0.1\r\n", b"Host: 127.0.0.1\r\nHost: evil\r\n"]
)
def test_no_host_and_two_hosts_are_refused(hosts, running):
    answer = running.raw(b"GET /mcp HTTP/1.1\r\n" + hosts + b"Connection: close\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_host_in_http_1_0_is_asked_for_too(running):
    answer = running.raw(b"GET /.well-known/oauth-protected-resource HTTP/1.0\r\n\r\n")

    assert answer.split(b"\r\n")[0].endswith(b"400 Bad Request")


def test_what_the_target_says_does_not_replace_the_host(running):
    answer = running.raw(
        b"GET http://127.0.0.1/.well-known/oauth-protected-resource HTTP/1.1\r\n"
        b"Host: evil.example\r\nConnection: close\r\n\r\n"
    )

    assert answer.startswith(b"HTTP/1.1 421 ")


ORIGINS = [
    "null",
    "https://evil.example",
    "http://127.0.0.1",
    "http://localhost:3000",
    "https://tools.example",
    "",
    "x",
]


@pytest.mark.parametrize("origin", ORIGINS)
def test_no_page_may_call_unless_it_is_named(origin, running, alice):
    response = modern(running, "tools/list", token=alice, more=[("origin", origin)])

    assert response.status_code == 403
    assert "www-authenticate" not in response.headers
    assert "access-control-allow-origin" not in response.headers


@pytest.fixture(scope="module")
def for_pages(tokens):
    with Running(verifier=tokens, resource_url=RESOURCE, allowed_origins=["https://App.example:8443"]) as it:
        yield it


@pytest.mark.parametrize("origin", ["https://app.example:8443", "HTTPS://APP.example:8443"])
def test_a_named_page_may_call(origin, for_pages, alice):
    assert modern(for_pages, "tools/list", token=alice, more=[("origin", origin)]).status_code == 200


@pytest.mark.parametrize(
    "origins",
    [
        ["null"],
        ["https://app.example"],
        ["http://app.example:8443"],
        ["https://app.example:8443.evil.example"],
        ["https://app.example:8443/"],
        ["https://app.example:8443", "https://evil.example"],
        ["https://app.example:8443", "https://app.example:8443"],
    ],
)
def test_another_page_may_not_call(origins, for_pages, alice):
    response = modern(for_pages, "tools/list", token=alice, more=[("origin", origin) for origin in origins])

    assert response.status_code == 403


def test_a_named_page_is_told_by_its_browser_that_it_may_call(for_pages):
    asked = with_headers(
        origin="https://app.example:8443",
        access_control_request_method="POST",
        access_control_request_headers="authorization, mcp-session-id, mcp-param-x",
    )
    response = for_pages.request("OPTIONS", headers=asked)

    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == "https://app.example:8443"
    assert "mcp-param-x" in response.headers["access-control-allow-headers"]


def test_a_named_page_can_read_why_it_was_refused(for_pages):
    response = for_pages.request(headers=with_headers(origin="https://app.example:8443"))

    assert response.status_code == 401
    assert response.headers["access-control-allow-origin"] == "https://app.example:8443"
    assert "WWW-Authenticate" in response.headers["access-control-expose-headers"]


def test_the_browser_of_another_page_is_told_nothing(for_pages):
    asked = with_headers(origin="https://evil.example", access_control_request_method="POST")
    response = for_pages.request("OPTIONS", headers=asked)

    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers


# -- The protocol


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW"])
def test_another_method_is_not_allowed(method, running, alice):
    response = running.request(method, token=alice)

    assert response.status_code == 405
    assert response.headers["allow"] == "GET, POST, DELETE"


@pytest.mark.parametrize("type", [None, "text/plain", "application/jsonp", "application/x-www-form-urlencoded", ""])
def test_another_content_type_is_not_supported(type, running, alice):
    headers = with_headers(content_type=type)
    response = running.request(headers=headers, token=alice, content=json.dumps(message("tools/list")))

    assert response.status_code == 415


def test_a_content_type_may_name_its_encoding(running, alice):
    headers = with_headers(content_type="application/json; charset=utf-8")
    response = running.request(headers=headers, token=alice, json=message("initialize", INITIALIZE))

    assert response.status_code == 200


@pytest.mark.parametrize("version", [None, "2026-07-28"])
def test_a_client_accepts_both_kinds_of_answers(version, running, alice):
    headers = with_headers(accept="text/html", mcp_protocol_version=version)

    assert running.request(headers=headers, token=alice, json=message("tools/list")).status_code == 406


@pytest.mark.parametrize("path", ["/", "/mcp/", "/mcp/x", "/MCP", "/.well-known/openid-configuration", "//mcp"])
def test_what_is_not_here_is_not_found_and_leads_nowhere(path, running, alice):
    response = running.request("GET", path, token=alice)

    assert response.status_code == 404
    assert "location" not in response.headers


@pytest.mark.parametrize(
    ("method", "headers", "sent"),
    [
        ("GET", {}, {}),
        ("POST", {"accept": "text/html"}, {"json": message("initialize", INITIALIZE)}),
        ("POST", {}, {"content": b"hello"}),
        ("POST", {}, {"json": message("tools/list")}),
        ("POST", {"mcp_protocol_version": "1999-01-01"}, {"json": message("initialize", INITIALIZE)}),
        ("DELETE", {}, {}),
    ],
    ids=["stream", "accept", "words", "no session", "version", "end"],
)
def test_a_refused_request_without_a_session_is_told_of_none(method, headers, sent, running, alice):
    response = running.request(method, headers=with_headers(**headers), token=alice, **sent)

    assert response.status_code >= 400
    assert "mcp-session-id" not in response.headers


@pytest.mark.parametrize("version", [None, "2026-07-28"])
@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[]", b"7", b'{"jsonrpc": "2.0"}', b"[" * 10_000])
def test_a_body_that_is_no_message_is_a_bad_request(body, version, running, alice):
    headers = with_headers(mcp_protocol_version=version)
    response = running.request(headers=headers, token=alice, content=body)

    assert response.status_code == 400
    assert "Traceback" not in response.text


def test_a_version_that_nobody_knows_is_a_bad_request(running, alice):
    headers = with_headers(mcp_protocol_version="1999-01-01", mcp_method="tools/list")

    assert running.request(headers=headers, token=alice, json=message("tools/list")).status_code == 400


def test_a_method_that_is_not_what_the_header_says_is_a_bad_request(running, alice):
    """Streams are told by this header: it can't lie."""
    body = modern_message("subscriptions/listen", LISTEN)
    for named in ("tools/list", None):
        headers = with_headers(mcp_protocol_version="2026-07-28", mcp_method=named)
        assert running.request(headers=headers, token=alice, json=body).status_code == 400


@pytest.mark.parametrize("version", [None, "2026-07-28"])
def test_a_body_over_the_limit_is_too_large(version, running, alice):
    headers = with_headers(mcp_protocol_version=version)

    assert running.request(headers=headers, token=alice, content=b" " * (4 * 1024 * 1024 + 1)).status_code == 413


def test_a_body_without_length_is_counted(running, alice):
    chunks = (b" " * 1024 * 1024 for _ in range(5))

    assert running.request(token=alice, content=chunks).status_code == 413


def test_a_refused_request_need_not_send_its_body(running):
    answer = running.raw(
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: 1000000\r\nConnection: close\r\n\r\n"
    )

    assert answer.startswith(b"HTTP/1.1 401 ")


# -- Sessions


@pytest.fixture
def session(running, alice):
    return initialize(running, alice).headers["mcp-session-id"]


def test_a_session_serves_whoever_opened_it(running, session, alice):
    assert tools_of(in_session(running, session, alice)) == {"ping", "read_mail"}


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_nobody_else_finds_the_session(method, running, session, alice, bob):
    response = in_session(running, session, bob, method)

    assert response.status_code == 404
    assert session not in response.text
    assert in_session(running, session, alice).status_code == 200


def test_nobody_else_sees_whether_a_session_exists(running, session, bob):
    there, not_there = (in_session(running, one, bob) for one in (session, "0" * 32))

    assert (there.status_code, there.text) == (not_there.status_code, not_there.text)


def test_a_session_needs_a_token_each_time(running, session):
    assert in_session(running, session).status_code == 401


def test_another_static_token_of_the_same_principal_opens_its_own_session(running, session, tokens):
    assert in_session(running, session, tokens.issue(ALICE, ["mcp"], RESOURCE)).status_code == 404


def test_a_session_ends_with_its_token(running, tokens):
    token = tokens.issue(ALICE, ["mcp"], RESOURCE)
    session = initialize(running, token).headers["mcp-session-id"]
    tokens.revoke(token.split("_")[1])

    assert in_session(running, session, token).status_code == 401


def test_a_session_that_was_ended_is_gone(running, session, alice):
    assert in_session(running, session, alice, "DELETE").status_code == 200
    assert in_session(running, session, alice).status_code == 404


SECRET = "a secret that issuer and server share, of more than 32 bytes"


def by_jwt(subject="alice", client="desk", expires=4e9, **claims):
    import jwt

    made = {"iss": "issuer", "aud": RESOURCE, "sub": subject, "azp": client, "exp": expires, "scope": "mail.read"}
    return jwt.encode({**made, **claims}, SECRET, "HS256")


@pytest.fixture(scope="module")
def by_issuer():
    verifier = JWTVerifier(issuer="issuer", audience=RESOURCE, secret=SECRET, principals={"alice": ALICE, "bob": BOB})
    with Running(verifier=verifier, resource_url=RESOURCE) as it:
        yield it


def test_a_renewed_token_goes_on_with_the_session(by_issuer):
    session = initialize(by_issuer, by_jwt()).headers["mcp-session-id"]

    assert in_session(by_issuer, session, by_jwt(expires=4e9 + 1)).status_code == 200


def test_a_renewed_token_counts_with_its_own_scopes(by_issuer):
    session = initialize(by_issuer, by_jwt()).headers["mcp-session-id"]

    assert tools_of(in_session(by_issuer, session, by_jwt())) == {"ping", "read_mail"}
    assert tools_of(in_session(by_issuer, session, by_jwt(scope=""))) == {"ping"}


@pytest.mark.parametrize("other", [{"subject": "bob"}, {"client": "phone"}])
def test_another_subject_or_client_does_not(other, by_issuer):
    session = initialize(by_issuer, by_jwt()).headers["mcp-session-id"]

    assert in_session(by_issuer, session, by_jwt(**other)).status_code == 404


def test_whether_a_principal_exists_is_not_told(by_issuer):
    unknown = modern(by_issuer, "tools/list", token=by_jwt(subject="carol"))
    expired = modern(by_issuer, "tools/list", token=by_jwt(expires=1))

    assert unknown.status_code == 401
    assert (unknown.text, unknown.headers["www-authenticate"]) == (expired.text, expired.headers["www-authenticate"])


def test_an_issuer_that_is_no_address_is_not_advertised(by_issuer):
    told = by_issuer.request("GET", "/.well-known/oauth-protected-resource", headers=with_headers()).json()

    assert told == {"resource": RESOURCE, "bearer_methods_supported": ["header"]}


# -- Bounds


def test_too_many_sessions_are_refused(tokens, alice):
    with Running(verifier=tokens, resource_url=RESOURCE, limits=HTTPLimits(sessions=2)) as running:
        answers = [initialize(running, alice) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 503]
        in_session(running, answers[0].headers["mcp-session-id"], alice, "DELETE")
        assert initialize(running, alice).status_code == 200


def test_a_principal_has_a_share_of_the_sessions(tokens, alice, bob):
    again = tokens.issue(ALICE, ["mcp"], RESOURCE)
    with Running(verifier=tokens, resource_url=RESOURCE, limits=HTTPLimits(sessions_per_principal=2)) as running:
        answers = [initialize(running, token) for token in (alice, again, alice, again, bob)]
        in_session(running, answers[0].headers["mcp-session-id"], alice, "DELETE")
        after = initialize(running, alice)

    assert [answer.status_code for answer in answers] == [200, 200, 429, 429, 200]
    assert answers[2].json()["error"] == "too_many_sessions"
    assert after.status_code == 200


def test_a_refused_opening_takes_nothing_of_the_share(tokens, alice):
    with Running(verifier=tokens, resource_url=RESOURCE, limits=HTTPLimits(sessions_per_principal=1)) as running:
        refused = [running.request(token=alice, json=message("tools/list")) for _ in range(3)]
        answer = initialize(running, alice)

    assert [one.status_code for one in refused] == [400, 400, 400]
    assert answer.status_code == 200


def test_without_tokens_there_are_no_shares():
    limits = HTTPLimits(sessions_per_principal=1, requests_per_principal=1)
    with Running(principal=ALICE, limits=limits) as running:
        assert [initialize(running).status_code for _ in range(3)] == [200, 200, 200]


def test_a_principal_has_a_share_of_the_requests_at_once(tokens, alice, bob):
    with Running(verifier=tokens, resource_url=RESOURCE, limits=HTTPLimits(requests_per_principal=1)) as running:
        session = initialize(running, alice).headers["mcp-session-id"]
        with reading(running, session, alice):
            answers = [initialize(running, token) for token in (alice, bob)]
        while (after := initialize(running, alice)).status_code == 429:
            pass

    assert [answer.status_code for answer in answers] == [429, 200]
    assert answers[0].headers["retry-after"] == "1"
    assert after.status_code == 200


@contextmanager
def streaming(running, method, token, headers, **options):
    sent = [*headers, ("authorization", f"Bearer {token}")]
    with (
        httpx2.Client(trust_env=False, verify=False, timeout=20) as client,
        client.stream(method, running.address, headers=sent, **options) as response,
    ):
        yield response


def reading(running, session, token):
    """Hold a session's stream open."""
    named = {"mcp_session_id": session, "mcp_protocol_version": "2025-11-25"}
    return streaming(running, "GET", token, with_headers(content_type=None, **named))


LISTEN = {"notifications": {"toolsListChanged": True}}


def listening(running, token):
    """Hold a subscription open."""
    method = "subscriptions/listen"
    return streaming(running, "POST", token, modern_headers(method), json=modern_message(method, LISTEN))


def test_too_many_requests_at_once_are_refused(tokens, alice):
    with Running(verifier=tokens, resource_url=RESOURCE, limits=HTTPLimits(requests=1)) as running:
        session = initialize(running, alice).headers["mcp-session-id"]
        with reading(running, session, alice) as stream:
            refused = initialize(running, alice)
            assert stream.status_code == 200
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")


def test_an_open_stream_ends_soon_after_its_token_does(tokens):
    token = tokens.issue(ALICE, ["mcp"], RESOURCE)
    with Running(verifier=tokens, resource_url=RESOURCE, limits=HTTPLimits(recheck=0.02)) as running:
        session = initialize(running, token).headers["mcp-session-id"]
        with reading(running, session, token) as stream:
            tokens.revoke(token.split("_")[1])
            assert "".join(stream.iter_text()) == ""


def test_a_token_is_not_checked_any_more_once_its_stream_has_ended(tokens, alice):
    async def checks():
        return [one for one in asyncio.all_tasks() if "recheck_token" in repr(one.get_coro())]

    async def until_none_is_left():
        async with asyncio.timeout(20):
            while await checks():
                await asyncio.sleep(0.01)

    with Running(verifier=tokens, resource_url=RESOURCE, limits=HTTPLimits(recheck=600)) as running:
        session = initialize(running, alice).headers["mcp-session-id"]
        with reading(running, session, alice):
            assert asyncio.run_coroutine_threadsafe(checks(), running._loop).result(20)
        asyncio.run_coroutine_threadsafe(until_none_is_left(), running._loop).result(30)


def test_an_open_subscription_ends_soon_after_its_token_does(tokens):
    token = tokens.issue(ALICE, ["mcp"], RESOURCE)
    with (
        Running(verifier=tokens, resource_url=RESOURCE, limits=HTTPLimits(recheck=0.02)) as running,
        listening(running, token) as stream,
    ):
        lines = stream.iter_lines()
        first = next(line for line in lines if line.startswith("data: "))
        tokens.revoke(token.split("_")[1])
        assert not any(line.startswith("data: ") for line in lines)
    assert "notifications/subscriptions/acknowledged" in first


class Failing(TokenFile):
    """A file whose disk breaks."""

    is_broken = False

    async def verify(self, token):
        if self.is_broken:
            raise OSError("the disk is broken")
        return await super().verify(token)


def test_an_open_stream_ends_when_its_token_can_not_be_checked_any_more(tokens):
    failing = Failing(tokens._path)
    token = tokens.issue(ALICE, ["mcp"], RESOURCE)
    with Running(verifier=failing, resource_url=RESOURCE, limits=HTTPLimits(recheck=0.02)) as running:
        session = initialize(running, token).headers["mcp-session-id"]
        with reading(running, session, token) as stream:
            failing.is_broken = True
            assert "".join(stream.iter_text()) == ""


def test_a_request_that_comes_too_slowly_is_given_up(tokens, alice):
    with Running(verifier=tokens, resource_url=RESOURCE, limits=HTTPLimits(receive=0.05)) as running:
        answer = running.raw(
            b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Authorization: Bearer " + alice.encode() + b"\r\nContent-Length: 100\r\n\r\n{"
        )

    assert answer.startswith(b"HTTP/1.1 408 ")


def test_limits_are_positive():
    with pytest.raises(ValueError, match=r"HTTPLimits\.sessions: expected a positive number"):
        HTTPLimits(sessions=0)


# -- Without a verifier


@pytest.fixture(scope="module")
def open_one():
    with Running(principal=ALICE) as it:
        yield it


def test_without_a_verifier_requests_are_made_for_the_given_principal(open_one):
    assert tools_of(modern(open_one, "tools/list")) == {"ping", "read_mail"}


def test_without_a_principal_it_is_the_host_itself():
    with Running() as running:
        assert tools_of(modern(running, "tools/list")) == {"ping", "read_mail"}


def test_without_a_verifier_a_token_changes_nothing(open_one):
    assert tools_of(modern(open_one, "tools/list", token="whatever")) == {"ping", "read_mail"}


def test_without_a_verifier_there_is_no_metadata(open_one):
    path = "/.well-known/oauth-protected-resource"

    assert open_one.request("GET", path, headers=with_headers()).status_code == 404


@pytest.mark.parametrize("host", ["localhost:1234", "127.0.0.1", "[::1]:80"])
def test_without_a_verifier_this_machine_is_served_by_its_names(host, open_one):
    assert open_one.request(headers=with_headers(host=host), json=message("initialize", INITIALIZE)).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "192.168.1.5", "0.0.0.0"])
def test_without_a_verifier_no_other_name_is(host, open_one):
    assert open_one.request(headers=with_headers(host=host), json=INITIALIZE).status_code == 421


@pytest.mark.parametrize("name", ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"])
def test_without_a_verifier_what_a_proxy_passes_on_is_refused(name, open_one):
    headers = [*with_headers(), (name, "203.0.113.9")]

    assert open_one.request(headers=headers, json=message("initialize", INITIALIZE)).status_code == 403


async def ask(app, client=("127.0.0.1", 1), **options):
    transport = httpx2.ASGITransport(app, client=client)
    async with httpx2.AsyncClient(transport=transport, verify=False, base_url="http://127.0.0.1") as http:
        return await http.post("/mcp", headers=JSON, json=message("initialize", INITIALIZE), **options)


@pytest.mark.parametrize("client", [("10.0.0.9", 1), ("2001:db8::1", 1), ("example.com", 1)])
async def test_without_a_verifier_other_machines_are_refused(client):
    async with AgentOS() as host:
        app = http_app(host, verifier=None)
        async with app.router.lifespan_context(app):
            response = await ask(app, client)

    assert (response.status_code, response.json()["error"]) == (403, "forbidden")


@pytest.mark.parametrize("client", [("127.0.0.1", 1), ("::1", 1), None])
async def test_without_a_verifier_this_machine_is_served(client):
    async with AgentOS() as host:
        app = http_app(host, verifier=None)
        async with app.router.lifespan_context(app):
            assert (await ask(app, client)).status_code == 200


# -- Verifiers of others


class Foreign:
    def __init__(self, answer):
        self._answer = answer

    async def verify(self, token):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


async def ask_with(verifier, **options):
    async with AgentOS() as host:
        app = http_app(host, verifier=verifier, **options)
        async with app.router.lifespan_context(app):
            return await ask(app, auth=lambda request: _authorized(request))


def _authorized(request):
    request.headers["authorization"] = "Bearer abc"
    return request


async def test_a_verifier_that_fails_lets_nobody_in_and_its_words_stay_here(caplog):
    response = await ask_with(Foreign(RuntimeError("password of the database")))

    assert (response.status_code, response.headers["retry-after"]) == (503, "5")
    assert "password" not in response.text
    assert "the verifier failed" in caplog.text


async def test_a_verifier_of_a_host_decides(caplog):
    verified = Verified(ALICE, "desk", frozenset({"x"}), None, "t-1")

    assert (await ask_with(Foreign(verified))).status_code == 200
    assert (await ask_with(Foreign(None))).status_code == 401
    assert (await ask_with(Foreign(verified), required_scopes=["y"])).status_code == 403


async def test_a_bound_token_is_refused_where_the_resource_is_not_known():
    bound = Verified(ALICE, "desk", frozenset(), None, "t-1", audience=RESOURCE)

    assert (await ask_with(Foreign(bound))).status_code == 401
    assert (await ask_with(Foreign(bound), resource_url=RESOURCE)).status_code == 200


async def test_without_hints_the_challenge_is_bare():
    assert (await ask_with(Foreign(None))).headers["www-authenticate"] == (
        'Bearer error="invalid_token", error_description="The token is invalid"'
    )


async def test_a_bare_challenge_names_the_scheme_alone():
    async with AgentOS() as host:
        app = http_app(host, verifier=Foreign(None))
        async with app.router.lifespan_context(app):
            assert (await ask(app)).headers["www-authenticate"] == "Bearer"


# -- Setting up


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"path": "mcp"}, ValueError, "expected a path such as /mcp"),
        ({"allowed_hosts": ["https://a.example"]}, ValueError, "expected a name or name:port"),
        ({"allowed_hosts": ["*"]}, ValueError, "expected a name or name:port"),
        ({"allowed_hosts": "a.example"}, TypeError, "expected a list"),
        ({"allowed_origins": ["null"]}, ValueError, "expected an origin such as"),
        ({"allowed_origins": ["*"]}, ValueError, "expected an origin such as"),
        ({"allowed_origins": ["https://a.example/path"]}, ValueError, "expected an origin such as"),
        ({"allowed_origins": "https://a.example"}, TypeError, "expected a list"),
        ({"required_scopes": ['a"b']}, ValueError, "without spaces and quotes"),
        ({"required_scopes": ["a b"]}, ValueError, "without spaces and quotes"),
        ({"required_scopes": "a"}, TypeError, "expected a list"),
        ({"resource_url": "tools.example/mcp"}, ValueError, "expected an address such as"),
        ({"resource_url": "ftp://tools.example/mcp"}, ValueError, "expected an address such as"),
        ({"resource_url": "https://me@tools.example/mcp"}, ValueError, "expected an address such as"),
        ({"resource_url": "https://tools.example/mcp?x=1"}, ValueError, "expected an address such as"),
        ({"resource_url": "https://tools.example/mcp#x"}, ValueError, "expected an address such as"),
        ({"resource_url": 'https://tools.example/"mcp'}, ValueError, "expected an address such as"),
        ({"resource_url": "https://tools.example:port/mcp"}, ValueError, "expected an address such as"),
        ({"resource_url": "https://[::1/mcp"}, ValueError, "Invalid IPv6 URL"),
        ({"principal": ALICE}, ValueError, "leave principal out"),
    ],
)
async def test_what_makes_no_sense_is_refused_when_it_is_set_up(options, error, words):
    with pytest.raises(error, match=words):
        http_app(AgentOS(), verifier=Foreign(None), **options)


@pytest.mark.parametrize("options", [{"resource_url": RESOURCE}, {"allowed_hosts": ["tools.example"]}])
async def test_without_a_verifier_no_other_name_can_be_served(options):
    with pytest.raises(ValueError, match="give a verifier, so that they need a token"):
        http_app(AgentOS(), verifier=None, **options)


async def test_scopes_can_not_be_required_where_there_are_no_tokens():
    with pytest.raises(ValueError, match="without a verifier there are no tokens"):
        http_app(AgentOS(), verifier=None, required_scopes=["mcp"])


async def test_loopback_names_can_be_fewer_without_a_verifier():
    async with AgentOS() as host:
        app = http_app(host, verifier=None, allowed_hosts=["localhost"])
        async with app.router.lifespan_context(app):
            assert (await ask(app)).status_code == 421


# -- Clients that do not read, and that leave in the middle


def scope_of(method="POST", **more):
    headers = [(name.encode(), value.encode()) for name, value in (JSON | {"host": "localhost"} | more).items()]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": "/mcp",
        "raw_path": b"/mcp",
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }


def asks(*messages):
    """Return what a client sends, and then nothing more."""
    left = list(messages)

    async def receive():
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    return receive


def body_of(data):
    return {"type": "http.request", "body": json.dumps(data).encode(), "more_body": False}


async def test_a_client_that_does_not_read_is_left():
    never = asyncio.Event()

    async def send(message):
        await never.wait()

    async with AgentOS() as host:
        app = http_app(host, verifier=None, limits=HTTPLimits(send=0.02))
        async with app.router.lifespan_context(app):
            body = modern_message("subscriptions/listen", LISTEN)
            headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen"}
            await app(scope_of(**headers), asks(body_of(body)), send)


async def test_a_client_that_leaves_in_the_middle_of_its_request_is_not_answered():
    sent = []

    async def send(message):
        sent.append(message)

    async with AgentOS() as host:
        app = http_app(host, verifier=None)
        async with app.router.lifespan_context(app):
            part = {"type": "http.request", "body": b"{", "more_body": True}
            await app(scope_of(), asks(part, {"type": "http.disconnect"}), send)

    assert sent == []


async def test_what_the_sdk_sees_carries_no_token():
    """Handlers can't pass on what they don't have."""
    import mcp_types as types
    from mcp.server.auth.middleware.auth_context import get_access_token
    from mcp.server.lowlevel import Server

    seen = []

    async def list_tools(context, params):
        seen.append((dict(context.request.headers), context.request.user.access_token, get_access_token()))
        return types.ListToolsResult(tools=[])

    verified = Verified(ALICE, "desk", frozenset({"x"}), 4e9, "t-1")
    app = app_for(Server("bare", on_list_tools=list_tools), verifier=Foreign(verified))
    async with app.router.lifespan_context(app):
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, verify=False, base_url="http://127.0.0.1") as http:
            headers = modern_headers("tools/list", [("authorization", "Bearer abc")])
            await http.post("/mcp", headers=headers, json=modern_message("tools/list"))

    [(headers, token, same)] = seen
    assert "authorization" not in headers
    assert (token.token, token.client_id, token.subject, token.expires_at) == ("", "desk", "alice", 4_000_000_000)
    assert same == token


# -- pages -------------------------------------------------------------------------------------------------------------


def asked_from(**headers):
    return {"headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]}


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "a.example", "origin": "https://b.example"},
        {"host": "a.example", "sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"},
        {"host": "a.example", "sec_fetch_site": "same-site"},
    ],
)
def test_a_page_of_another_site_may_not_ask_where_pages_are_served(headers):
    with pytest.raises(RequestRefused):
        check_page(frozenset(), asked_from(**headers))


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "a.example"},
        {"host": "a.example", "origin": "https://a.example", "sec_fetch_site": "same-site"},
        {"host": "a.example", "origin": "https://named.example", "sec_fetch_site": "cross-site"},
        {"host": "a.example", "sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"},
        {"host": "a.example", "sec_fetch_site": "none"},
    ],
)
def test_a_page_of_this_server_and_one_that_is_named_may_ask(headers):
    check_page(frozenset({"https://named.example"}), asked_from(**headers))
