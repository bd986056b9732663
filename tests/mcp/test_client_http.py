"""Servers at an address: streamable HTTP on loopback, in both eras, and what a bad one can't do."""

import asyncio
import contextlib
import gzip
import json
import logging
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import attrs
import pytest
from bridging import (
    DEADLINE,
    FAST,
    SERVERS,
    bridge_of,
    bridged,
    call,
    descriptors,
    eventually,
    plain,
    state_of,
    tasks,
    until,
)

from agentos.mcp.client.http_transport import readable_events

SLOW = attrs.evolve(FAST, first_delay=30.0)


# -- a server made with the SDK ------------------------------------------------------------------------------------


class Program:
    """The SDK's server as a program that can be stopped and started again on its port."""

    def __init__(self, *args):
        self._args = args
        self.port = 0
        self.start()

    def start(self):
        command = [sys.executable, str(SERVERS / "sdk.py"), str(self.port), *self._args]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(self._process.stdout.readline())

    def stop(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    @property
    def spec(self):
        return {"url": f"http://127.0.0.1:{self.port}/mcp", "effects": {"*": "read"}}


@contextlib.contextmanager
def running(*args):
    program = Program(*args)
    try:
        yield program
    finally:
        program.stop()


@pytest.fixture(scope="module")
def sdk():
    with running() as program:
        yield program


async def adds(spec):
    async with bridged({"plain": spec}) as host:
        result = await call(host, "add", {"a": 1, "b": 2})

        assert bridge_of(host).protocol == "2026-07-28"
        assert (result.success, result.output, result.content) == (True, {"result": 3}, "3")


async def test_a_tool_at_an_address_is_called_like_any_other(sdk):
    await adds(sdk.spec)


async def test_a_tool_at_an_address_that_answers_in_plain_json_is_called():
    with running("--json") as program:
        await adds(program.spec)


async def test_a_new_tool_at_an_address_is_offered():
    with running() as program:
        async with bridged({"plain": program.spec}) as host:
            await call(host, "grow")
            await until(host, lambda: state_of(host, "grown") is not None)

            assert (await call(host, "grown")).content == "grown"


async def test_an_error_at_an_address_is_a_failure(sdk):
    async with bridged({"plain": sdk.spec}) as host:
        result = await call(host, "fail")

        assert result.error.type == "ToolRaised"
        assert "Error executing tool fail" in result.error.message


async def test_cancelling_a_call_reaches_the_address(sdk, tmp_path):
    mark = tmp_path / "mark"
    async with bridged({"plain": sdk.spec}) as host:
        under_way = asyncio.create_task(call(host, "wait", {"mark": str(mark)}, id="c"))
        await eventually(mark.exists)
        await host.tools.cancel("c")
        result = await under_way
        await eventually(lambda: mark.read_text() == "cancelled")

        assert result.error.type == "Cancelled"


async def test_a_trusted_server_at_an_address_is_believed(sdk):
    async with bridged({"plain": {"url": sdk.spec["url"], "trust": True}}) as host:
        assert {one.name: one.effect for one in host.tools.list_available_tools()}["add"] == "read"
        assert host.tools.system_prompt() == "Count carefully."


async def test_after_shutdown_no_connection_and_no_task_is_left(sdk):
    async with bridged({"plain": sdk.spec}):
        pass  # what is made once for the whole program is made now
    before = descriptors()
    async with bridged({"plain": sdk.spec}) as host:
        await call(host, "add", {"a": 1, "b": 2})

    assert tasks() == set()
    assert descriptors().keys() == before.keys()


async def test_a_server_that_is_stopped_and_started_again_is_connected_again():
    with running() as program:
        async with bridged({"plain": program.spec}) as host:
            first = await call(host, "pid")
            program.stop()
            lost = await call(host, "pid")
            await until(host, lambda: state_of(host, "pid")[0] == "gated")
            reason = state_of(host, "pid")[1]
            program.start()
            await until(host, lambda: state_of(host, "pid")[0] == "active")
            second = await call(host, "pid")

            assert lost.error.type == "WorkerDied"
            assert reason.startswith("mcp/plain is not connected: ")
            assert first.content != second.content


async def test_a_call_under_way_when_a_server_goes_has_one_result(tmp_path):
    mark = tmp_path / "mark"
    with running() as program:
        async with bridged({"plain": program.spec}, limits=SLOW) as host:
            under_way = asyncio.create_task(call(host, "wait", {"mark": str(mark)}))
            await eventually(mark.exists)
            program.stop()

            assert (await under_way).error.type == "WorkerDied"


async def test_nobody_at_an_address_is_told_and_tried_again():
    async with bridged({"plain": {"url": "http://127.0.0.1:9/mcp"}}, limits=SLOW) as host:
        assert bridge_of(host).status.startswith("mcp/plain is not connected: ConnectError: All connection attempts")


# -- a server made by hand -----------------------------------------------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    """The handshake era over HTTP with sessions, answered in JSON; each test's server adds its own ways."""

    wbufsize = -1
    disable_nagle_algorithm = True
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append((request.get("method"), dict(self.headers.items())))
        way = self.server.ways.get(request.get("method"))
        if way is not None:
            way(self, request)
        elif "id" not in request:
            self.reply(202, b"")
        else:
            self.answer(request)

    def do_GET(self):
        self.server.seen.append(("GET", dict(self.headers.items())))
        self.reply(405, b"")

    def do_DELETE(self):
        self.server.seen.append(("DELETE", dict(self.headers.items())))
        way = self.server.ways.get("DELETE")
        if way is None:
            self.reply(200, b"")
        else:
            way(self, None)

    def answer(self, request):
        results = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "by hand", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "go", "inputSchema": {"type": "object", "properties": {}}}]},
            "tools/call": {"content": [{"type": "text", "text": "went"}]},
        }
        result = results.get(request["method"])
        body = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
        self.reply(200, json.dumps({"jsonrpc": "2.0", "id": request["id"], **body}).encode())

    def reply(self, status, body, **headers):
        self.send_response(status)
        self.send_header("mcp-session-id", "s1")
        self.send_header("content-type", headers.pop("content_type", "application/json"))
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def by_hand(**ways):
    """Run a server in a thread; *ways* say how it answers a method, by the method's last word."""
    names = {"initialize": "initialize", "list": "tools/list", "call": "tools/call", "DELETE": "DELETE"}
    names["cancelled"] = "notifications/cancelled"
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.ways = {names[name]: way for name, way in ways.items()}
    server.seen = []
    server.spec = {"url": f"http://127.0.0.1:{server.server_port}/mcp", "effects": {"*": "read"}}
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def methods(server):
    return [method for method, _ in server.seen]


async def test_a_server_of_the_handshake_era_is_called_and_its_session_ended():
    with by_hand() as server:
        async with bridged({"plain": server.spec}) as host:
            result = await call(host, "go")
            protocol = bridge_of(host).protocol

        assert (result.content, protocol) == ("went", "2025-06-18")
        assert methods(server)[-1] == "DELETE"


async def test_headers_are_sent_with_every_request_and_secrets_are_filled_in():
    headers = {"Authorization": "Bearer ${secret:k}", "X-Team": "a"}
    with by_hand() as server:
        async with bridged({"plain": {**server.spec, "headers": headers}}, extension_secrets={"k": "abcdef"}) as host:
            await call(host, "go")

        sent = {(one.get("Authorization"), one.get("X-Team")) for _, one in server.seen}
        assert sent == {("Bearer abcdef", "a")}


KEYED = {"Authorization": "Bearer ${secret:k}"}


async def test_white_space_around_a_secret_is_not_sent():
    with by_hand() as server:
        spec = {**server.spec, "headers": KEYED}
        async with bridged({"plain": spec}, extension_secrets={"k": " token-value-777\n"}) as host:
            assert (await call(host, "go")).content == "went"

        assert {headers.get("Authorization") for _, headers in server.seen} == {"Bearer token-value-777"}


@pytest.mark.parametrize("value", ["token\nvalue-777", "token\0value-777", "token\x7fvalue-777", "tokén-value-777"])
async def test_a_secret_that_can_not_be_sent_is_told_by_its_name_and_is_in_no_log(value, caplog):
    caplog.set_level(logging.DEBUG)
    with by_hand() as server:
        spec = {**server.spec, "headers": KEYED}
        async with bridged({"plain": spec}, limits=SLOW, extension_secrets={"k": value}) as host:
            assert "the secret 'k' can't be sent in a header" in bridge_of(host).status

        assert server.seen == []
    assert "value-777" not in caplog.text


async def test_no_proxy_and_no_password_of_the_environment_is_used(monkeypatch, tmp_path):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hush\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with by_hand() as server:
        async with bridged({"plain": server.spec}) as host:
            assert (await call(host, "go")).content == "went"
        assert not any("Authorization" in headers for _, headers in server.seen)


async def test_a_server_that_refuses_us_is_told_with_its_status():
    with by_hand(initialize=lambda self, request: self.reply(401, b"", content_type="text/plain")) as server:
        async with bridged({"plain": server.spec}, limits=SLOW) as host:
            assert "Server returned an error response (HTTP 401)" in bridge_of(host).status


async def test_a_redirect_to_another_host_is_not_followed():
    with by_hand() as other:
        target = other.spec["url"]
        way = lambda self, request: self.reply(307, b"", location=target)  # noqa: E731
        with by_hand(initialize=way) as server:
            spec = {**server.spec, "headers": {"Authorization": "Bearer hush-hush"}}
            async with bridged({"plain": spec}, limits=SLOW) as host:
                assert "not followed" in bridge_of(host).status
        assert other.seen == []


async def test_a_redirect_within_the_host_is_followed():
    def way(self, request):
        if self.path == "/mcp":
            self.reply(307, b"", location="/mcp/")
        else:
            self.answer(request)

    with by_hand(initialize=way, list=way) as server:
        async with bridged({"plain": server.spec}) as host:
            assert (await call(host, "go")).content == "went"


async def test_a_server_that_forgot_the_session_is_connected_again():
    times = []

    def way(self, request):
        times.append(1)
        if len(times) == 1:
            self.reply(404, b"", content_type="text/plain")
        else:
            self.answer(request)

    with by_hand(call=way) as server:
        async with bridged({"plain": server.spec}) as host:
            first = await call(host, "go")
            await until(host, lambda: methods(server).count("initialize") == 2 and state_of(host, "go")[0] == "active")
            second = await call(host, "go")

        assert first.error.type == "WorkerDied"
        assert "the server forgot the session" in first.error.message
        assert second.content == "went"


def long_body(self, request):
    text = "x" * 3_000_000
    body = json.dumps(
        {"jsonrpc": "2.0", "id": request["id"], "result": {"content": [{"type": "text", "text": text}]}}
    ).encode()
    self.reply(200, body)


def long_event(self, request):
    self.reply(200, b"event: message\ndata: " + b"x" * 3_000_000 + b"\n\n", content_type="text/event-stream")


def bomb(self, request):
    self.reply(200, gzip.compress(b"x" * 30_000_000), content_encoding="gzip")


def bad_type(self, request):
    self.reply(200, b"<html>", content_type="text/html")


def bad_json(self, request):
    self.reply(200, b"{")


def long_failure(self, request):
    self.reply(400, b"x" * 3_000_000)


@pytest.mark.parametrize(
    ("way", "type", "words"),
    [
        (long_body, "ToolRaised", "it is longer than 1,048,576 bytes"),
        (long_event, "ToolRaised", "SSE stream failed"),
        (bomb, "ToolRaised", "the answer is compressed, which was not asked for"),
        (bad_type, "ToolRaised", "Unexpected content type: text/html"),
        (bad_json, "ToolRaised", "Failed to parse JSON response"),
        (long_failure, "ToolRaised", "Server returned an error response"),
    ],
)
async def test_an_answer_that_can_not_be_used_is_a_failure_and_others_go_on(way, type, words):
    limits = attrs.evolve(FAST, message=1024 * 1024)
    with by_hand(call=way) as server:
        async with bridged({"bad": server.spec, "plain": plain()}, limits=limits) as host:
            result = await call(host, "go")
            beside = await call(host, "echo", {"text": "fine"})

            assert (result.error.type, beside.content) == (type, "fine")
            assert words in result.error.message


def dropped(self, request):
    self.close_connection = True
    self.connection.shutdown(socket.SHUT_RDWR)


def broken_off(self, request):
    self.send_response(200)
    self.send_header("content-type", "application/json")
    self.send_header("content-length", "1000")
    self.end_headers()
    self.wfile.write(b'{"jsonrpc":')
    self.wfile.flush()
    dropped(self, request)


def ended_early(self, request):
    self.reply(200, b"event: message\n", content_type="text/event-stream")


@pytest.mark.parametrize("bad", [dropped, broken_off, ended_early, long_event, bomb])
async def test_an_answer_that_is_lost_costs_no_other_call(bad):
    began, over = threading.Event(), threading.Event()

    def way(self, request):
        if began.is_set():
            bad(self, request)
        else:
            began.set()
            over.wait(DEADLINE)
            self.answer(request)

    with by_hand(call=way) as server:
        async with bridged({"plain": server.spec}, limits=attrs.evolve(FAST, message=1024 * 1024)) as host:
            other = asyncio.create_task(call(host, "go"))
            await eventually(began.is_set)
            result = await call(host, "go")
            over.set()

            assert (result.error.type, (await other).content) == ("ToolRaised", "went")
            assert state_of(host, "go")[0] == "active"
        assert methods(server).count("initialize") == 1


async def test_a_notification_that_is_lost_costs_no_session():
    over = threading.Event()
    answers = iter([lambda self, request: over.wait(DEADLINE), Handler.answer])
    with by_hand(call=lambda self, request: next(answers)(self, request), cancelled=dropped) as server:
        async with bridged({"plain": {**server.spec, "timeout": 0.2}}) as host:
            first = await call(host, "go")
            await eventually(lambda: "notifications/cancelled" in methods(server))
            second = await call(host, "go")
        over.set()

        assert (first.error.type, second.content) == ("TimedOut", "went")
        assert methods(server).count("initialize") == 1


async def test_an_answer_that_can_not_be_read_is_not_quoted_in_part():
    token = "tok-" + "4f9a2c7e81b3d650" * 5
    spec = {"headers": {"Authorization": "Bearer ${secret:k}"}}
    with by_hand(call=lambda self, request: self.reply(200, f'"{token}"'.encode())) as server:
        async with bridged({"plain": {**server.spec, **spec}}, extension_secrets={"k": token}) as host:
            result = await call(host, "go")

            assert "Failed to parse JSON response: " in result.error.message
            assert "tok-" not in result.error.message


GOOD = '{"name":"go","inputSchema":{"type":"object"}}'
BAD = '{"name":"bad","description":"\\ud800","inputSchema":{"type":"object"}}'


def listed_in_json(self, request):
    self.reply(200, f'{{"jsonrpc":"2.0","id":{request["id"]},"result":{{"tools":[{BAD},{GOOD}]}}}}'.encode())


def listed_in_an_event(self, request):
    said = f'{{"jsonrpc":"2.0","id":{request["id"]},"result":{{"tools":[{BAD},{GOOD}]}}}}'
    self.reply(200, f"event: message\ndata: {said}\n\n".encode(), content_type="text/event-stream")


@pytest.mark.parametrize("way", [listed_in_json, listed_in_an_event])
async def test_a_tool_that_can_not_be_read_does_not_cost_the_others_over_http_either(way):
    with by_hand(list=way) as server:
        async with bridged({"plain": server.spec}, limits=SLOW) as host:
            names = [one.name for one in host.tools.list_available_tools()]
            (skipped,) = bridge_of(host).skipped

            assert (names, skipped.name) == (["go"], "bad")
            assert "it can't be read: 'utf-8' codec can't encode" in skipped.reason


async def passed_on(body, limit, size):
    """Return what is made of the body of a list that arrives in pieces of *size* bytes."""

    async def pieces():
        for start in range(0, len(body), size):
            yield body[start : start + size]

    return b"".join([chunk async for chunk in readable_events(pieces(), limit)])


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_events_are_the_same_however_they_arrive(size):
    whole = f'data: {{"id":1,"result":{{"tools":[{BAD},{GOOD}]}}}}\n\nid: 7\ndata: rest'
    found = await passed_on(whole.encode(), 10_000, size)

    assert b"ud800" not in found.partition(b"agentos/unreadable")[0]
    assert found.endswith(GOOD.encode() + b"]}}\n\nid: 7\ndata: rest")


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_line_of_events_that_is_too_long_is_passed_on(size):
    assert await passed_on(b"data: " + b"x" * 500 + b"\n\n", 50, size) == b"data: " + b"x" * 500 + b"\n\n"


async def test_a_list_in_an_event_that_is_too_long_is_no_list():
    with by_hand(list=long_event) as server:
        async with bridged({"plain": server.spec}, limits=attrs.evolve(SLOW, message=1024 * 1024)) as host:
            assert "SSE stream failed" in bridge_of(host).status


async def test_an_error_over_http_with_the_code_of_a_closed_connection_is_the_servers():
    def way(self, request):
        error = {"code": -32000, "message": "the disk is full"}
        self.reply(200, json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode())

    with by_hand(call=way) as server:
        async with bridged({"plain": server.spec}) as host:
            result = await call(host, "go")

            assert result.error.type == "ToolRaised"
            assert "mcp/plain answers with an error: the disk is full" in result.error.message


async def test_an_answer_that_never_comes_over_http_ends_with_the_timeout():
    over = threading.Event()
    with by_hand(call=lambda self, request: over.wait(30)) as server:
        async with bridged({"plain": {**server.spec, "timeout": 0.2}}) as host:
            result = await call(host, "go")
        over.set()

        assert result.error.type == "TimedOut"


async def test_a_server_that_does_not_end_its_session_does_not_hold_up_the_end():
    over = threading.Event()
    with by_hand(DELETE=lambda self, request: over.wait(30)) as server:
        async with asyncio.timeout(10):
            async with bridged({"plain": server.spec}) as host:
                await call(host, "go")
        over.set()

    assert tasks() == set()
