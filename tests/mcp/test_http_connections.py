"""Connections that never become requests, and the places that they must not take from others."""

import http.client
import json
import resource
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agentos import Principal
from agentos.mcp.auth import TokenFile
from agentos.mcp.http.connection_table import ConnectionTable, address_group, descriptor_limit
from agentos.mcp.http.gateway import HTTPLimits

NEVER = 3600
"""Seconds that no test lasts."""

SERVER = """
import asyncio, json, os, resource, sys

descriptors, held, tokens, limits = json.loads(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

from agentos import AgentOS
from agentos.mcp.auth import TokenFile
from agentos.mcp.http.serving import HTTPLimits, serve_http


async def main():
    async with AgentOS(mode="auto", budget=None) as host:
        for _ in range(held):
            os.open(os.devnull, os.O_RDONLY)
        ready = lambda address: print(address, flush=True)
        await serve_http(host, port=0, verifier=TokenFile(tokens), ready=ready, limits=HTTPLimits(**limits))


asyncio.run(main())
"""


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Served:
    """A server in a process of its own, and the connections to it."""

    def __init__(self, process, token):
        parts = urlsplit(process.stdout.readline().strip())
        self.process, self.token, self.place = process, token, (parts.hostname, parts.port)
        self.stack = ExitStack()

    def connect(self, said=b"", source="127.0.0.1", buffer=None):
        connection = self.stack.enter_context(socket.socket())
        connection.settimeout(60)
        if buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        connection.bind((source, 0))
        connection.connect(self.place)
        connection.sendall(said)
        return connection

    def crowd(self, count, said=b"", source="127.0.0.1"):
        for _ in range(count):
            self.connect(said, source)

    def request(self, method="tools/list", **params):
        text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}).encode()
        lines = [
            "POST /mcp HTTP/1.1",
            "Host: 127.0.0.1",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Authorization: Bearer {self.token}",
            "Mcp-Protocol-Version: 2026-07-28",
            f"Mcp-Method: {method}",
            f"Content-Length: {len(text)}",
        ]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + text

    def status(self, source="127.0.0.1"):
        """Send a good request on a connection of its own, and return the status of the answer."""
        return status_of(self.connect(self.request(), source))

    def descriptors(self):
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


HALF = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


def status_of(connection):
    """Read an answer and return its status; None if the connection was ended instead."""
    response = http.client.HTTPResponse(connection)
    try:
        response.begin()
        response.read()
    except (http.client.RemoteDisconnected, ConnectionResetError):
        return None
    return response.status


@pytest.fixture
def serving(tmp_path):
    tokens = TokenFile(tmp_path / "tokens.json")
    token = tokens.issue(Principal("alice", access={"mail.read"}))

    @contextmanager
    def serve(descriptors=1024, held=0, path=(), **limits):
        said = json.dumps([descriptors, held, str(tmp_path / "tokens.json"), {"headers": NEVER, **limits}])
        code = "".join(f"import sys; sys.path.insert(0, {str(folder)!r})\n" for folder in path) + SERVER
        strictly = () if path else ("-W", "error")  # with a path it matters what is imported when
        argv = [sys.executable, *strictly, "-c", code, said]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            served = Served(process, token)
            try:
                with served.stack:
                    yield served
            finally:
                process.kill()

    return serve


@pytest.fixture
def many_descriptors():
    """Let this process have enough connections of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip("needs 4,096 descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096 if soft == resource.RLIM_INFINITY else max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_connections_that_wait_keep_nobody_out(serving):
    with serving(descriptors=128) as served:
        served.crowd(200)
        served.crowd(200, HALF)

        assert served.status() == 200
        assert served.descriptors() < 128


def test_descriptors_that_others_took_keep_nobody_out(serving):
    with serving(descriptors=256, held=150, connections_per_address=2000) as served:
        served.crowd(300, HALF)

        assert [served.status() for _ in range(3)] == [200, 200, 200]


@pytest.mark.proof
def test_half_sent_headers_keep_nobody_out(serving, many_descriptors):
    with serving(descriptors=1024) as served:
        served.crowd(1100, HALF)

        assert served.status() == 200
        assert served.descriptors() < 1024


@pytest.mark.proof
@pytest.mark.parametrize("said", [b"", HALF], ids=["silent", "half"])
def test_a_valid_request_gets_in_while_2000_wait(said, serving, many_descriptors):
    with serving(descriptors=256, connections=100_000, connections_per_address=100_000) as served:
        served.crowd(2000, said)

        assert [served.status() for _ in range(3)] == [200, 200, 200]
        assert served.descriptors() < 256


def test_a_request_under_way_keeps_its_place(serving):
    with serving(connections=10, connections_per_address=10) as served:
        stream = listening(served)
        served.crowd(100, HALF)
        stream.sendall(served.request())  # behind the stream, which goes on
        stream.setblocking(False)
        with pytest.raises(BlockingIOError):
            stream.recv(1)

        assert served.status() == 200


def listening(served, source="127.0.0.1"):
    """Open a subscription, and return its connection once it has begun."""
    asked = served.request("subscriptions/listen", notifications={"toolsListChanged": True})
    connection = served.connect(asked, source)
    seen = b""
    while b"subscriptions/acknowledged" not in seen:
        seen += connection.recv(65536)
    return connection


def test_an_address_whose_share_is_in_use_gets_no_further_connection(serving):
    with serving(connections=10, connections_per_address=2) as served:
        for _ in range(2):
            listening(served)

        assert served.status() is None
        assert served.status("127.0.0.2") == 200


def test_headers_that_do_not_come_end_the_connection(serving):
    with serving(headers=2) as served:
        silent, half, again = served.connect(), served.connect(HALF), served.connect(served.request())
        assert status_of(again) == 200
        again.sendall(HALF)

        assert [status_of(connection) for connection in (silent, half, again)] == [None, None, None]
        assert served.status() == 200


def test_headers_without_end_are_refused(serving):
    with serving() as served:
        assert status_of(served.connect(HALF + b"x" * 20_000)) == 400


def test_another_parser_that_is_installed_is_not_used(serving, tmp_path):
    (tmp_path / "httptools.py").write_text("raise SystemExit('headers would be unbounded')")
    with serving(path=[tmp_path]) as served:
        assert served.status() == 200


@pytest.mark.proof
def test_a_client_that_does_not_read_refusals_is_left(serving):
    with serving(send=1) as served, pytest.raises((ConnectionResetError, BrokenPipeError)):
        ask_without_end(served.connect(buffer=1024))


def ask_without_end(connection):
    while True:
        connection.sendall(b"GET /elsewhere HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 1000)


# -- The table alone


class Door:
    """Lets connections into a table, and notes who lost a place."""

    def __init__(self, descriptors=None, **limits):
        self.table = ConnectionTable(HTTPLimits(**limits), descriptors)
        self.dropped = []
        self.places = []

    def enter(self, name, host="10.0.0.1"):
        self.places.append(self.table.admit(host, lambda: self.dropped.append(name)))
        return self.places[-1]


async def test_the_longest_waiting_without_a_request_goes_first_then_who_rests_longest():
    door = Door(connections=4, connections_per_address=4)
    places = {name: door.enter(name) for name in "abcd"}
    for name in "ab":
        places[name].occupy()
    for name in "ba":
        places[name].rest()
    for name in "efgh":
        door.enter(name).occupy()

    assert door.dropped == ["c", "d", "b", "a"]
    assert door.enter("i") is None


async def test_a_place_that_is_given_back_twice_is_one_place():
    door = Door(connections=1, connections_per_address=1)
    place = door.enter("a")
    place.leave()
    place.leave()
    door.enter("b").occupy()

    assert door.enter("c") is None


async def test_those_who_wait_at_one_address_displace_nobody_at_another():
    door = Door(connections=10, connections_per_address=5)
    for number in range(5):
        door.enter(f"other {number}", "10.0.0.2").rest()
    for number in range(100):
        door.enter(number)

    assert door.dropped == list(range(95))


async def test_addresses_that_nobody_uses_are_forgotten():
    door = Door(headers=NEVER)
    for number in range(100):
        door.enter(number, f"10.0.0.{number}").drop()

    assert len(door.table._by_address) == 0


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_who_shares_a_share(host, group):
    assert address_group(host) == group


@pytest.mark.parametrize(
    ("descriptors", "connections", "most"), [(1024, 2000, 768), (1024, 10, 10), (None, 2000, 2000), (1, 2000, 1)]
)
async def test_a_quarter_of_the_descriptors_is_kept_free(descriptors, connections, most):
    door = Door(descriptors, connections=connections, connections_per_address=connections)
    for number in range(most):
        door.enter(number).occupy()

    assert door.enter("one too many") is None


async def test_a_table_that_shrinks_drops_those_who_wait_and_no_others():
    door = Door(connections=40, connections_per_address=40, headers=NEVER)
    for number in range(40):
        door.enter(number)
    for place in door.places[:30]:
        place.occupy()

    assert door.table.shrink()
    assert door.dropped == list(range(30, 40))
    assert door.enter("one more") is None
    assert not door.table.shrink()


async def test_a_share_shrinks_with_the_whole():
    door = Door(16, connections=24, connections_per_address=12)
    for number in range(6):
        door.enter(number).occupy()

    assert door.enter("one too many") is None
    assert door.enter("another", "10.0.0.2") is not None


def test_the_limit_of_descriptors_is_the_one_in_force():
    assert descriptor_limit() in (resource.getrlimit(resource.RLIMIT_NOFILE)[0], None)
