"""stdin and stdout as a transport: one message a line, bounded, and in good order to the end."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import tty
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import pytest

from agentos.mcp import MCPServer, serve_stdio
from agentos.mcp.server import stdio

sys.path.append(str(Path(__file__).parent))
import fixture_pack as pack

PROGRAM = [sys.executable, str(Path(__file__).with_name("fixture_pack.py")), "--user"]
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
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def call(name, arguments=None, id=2, **params):
    return {
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments or {}, **params},
    }


@pytest.fixture
async def host(anyio_backend):
    async with pack.hosted() as host:
        yield host


class Wire:
    """The client's ends of two pipes."""

    def __init__(self, to_server, from_server):
        self.to_server = to_server
        self.from_server = from_server
        self._rest = b""

    async def send(self, *messages):
        for message in messages:
            data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            await asyncio.to_thread(self._write, data)

    def _write(self, data):
        while data:
            data = data[os.write(self.to_server, data) :]

    async def receive(self):
        with anyio.fail_after(10):
            while b"\n" not in self._rest:
                data = await asyncio.to_thread(os.read, self.from_server, 65_536)
                if not data:
                    raise EOFError
                self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def hang_up(self):
        os.close(self.to_server)
        self.to_server = -1

    def close(self):
        for fd in (self.to_server, self.from_server):
            if fd >= 0:
                os.close(fd)


@contextmanager
def pipes():
    read_from, to_server = os.pipe()
    from_server, write_to = os.pipe()
    wire = Wire(to_server, from_server)
    try:
        yield wire, read_from, write_to
    finally:
        wire.close()
        os.close(read_from)
        os.close(write_to)


@asynccontextmanager
async def served(host, *, hangs_up=True):
    """Serve over two pipes until the client hangs up; where it does not, something else has to end it."""
    with pipes() as (wire, read_from, write_to), anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(stdio.run, MCPServer(host).server, read_from, write_to)
            yield wire
            if hangs_up:
                wire.hang_up()


def open_descriptors():
    return sorted(Path("/proc/self/fd").iterdir())


# -- messages --------------------------------------------------------------------------------------------------------


async def test_a_client_of_the_handshake_era_is_answered(host):
    async with served(host) as wire:
        await wire.send(INITIALIZE)
        hello = await wire.receive()
        await wire.send(INITIALIZED, call("add", {"a": 1}))
        answer = await wire.receive()

    assert hello["result"]["capabilities"]["tools"] == {"listChanged": True}
    assert answer["result"]["structuredContent"] == {"sum": 11}


async def test_a_client_of_the_new_era_is_answered(host):
    async with served(host) as wire:
        await wire.send(call("add", {"a": 1}, _meta=META))
        answer = await wire.receive()

    assert answer["result"]["structuredContent"] == {"sum": 11}
    assert answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "agentos"


async def test_a_cancelled_call_is_never_answered(host):
    async with served(host) as wire:
        await wire.send(call("wait", id=7, _meta=META))
        with anyio.fail_after(5):
            while "waiting" not in pack.seen:
                await asyncio.sleep(0)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        await wire.send(cancel, call("add", {"a": 1}, id=8, _meta=META))
        answer = await wire.receive()

    assert answer["id"] == 8
    assert pack.seen == ["waiting", "cleaned up"]


async def test_a_message_that_is_too_long_is_refused_and_the_next_one_answered(host, monkeypatch):
    monkeypatch.setattr(stdio, "MESSAGE_LIMIT", 1_000)
    async with served(host) as wire:
        await wire.send(call("maybe", {"value": "x" * 5_000_000}, _meta=META), call("add", {"a": 1}, id=3, _meta=META))
        refused, answer = await wire.receive(), await wire.receive()

    assert refused == {
        "jsonrpc": "2.0",
        "id": 2,
        "error": {"code": -32600, "message": "a message has at most 1000 bytes"},
    }
    assert answer["id"] == 3


async def test_a_long_message_within_the_limit_is_read(host):
    async with served(host) as wire:
        await wire.send(call("maybe", {"value": "x" * 3_000_000}, _meta=META))
        answer = await wire.receive()

    assert "\nxxx" in answer["result"]["content"][0]["text"]


@pytest.mark.parametrize(
    "noise",
    [b"\n", b"not JSON\n", b"\xff\xfe\xfd\n", b"[" * 100_000 + b"\n", b'{"jsonrpc": "2.0"}\n', b"\x00" * 100 + b"\n"],
    ids=["empty", "words", "bytes", "depth", "nothing", "zeros"],
)
async def test_noise_on_the_line_ends_nothing(host, noise):
    async with served(host) as wire:
        await wire.send(noise, call("add", {"a": 1}, _meta=META))
        while (answer := await wire.receive()).get("id") != 2:
            pass

    assert answer["result"]["structuredContent"] == {"sum": 11}


def asking(value, id=b"5"):
    """Return a call whose argument is written out by hand."""
    return (
        b'{"jsonrpc": "2.0", "id": %s, "method": "tools/call", "params": {"name": "maybe", "arguments": '
        b'{"id": 77, "value": %s}}}\n' % (id, value)
    )


@pytest.mark.parametrize(
    ("line", "id", "code", "words"),
    [
        (asking(b'"\\ud800"'), 5, -32700, "surrogates not allowed"),
        (asking(b"9" * 5_000), 5, -32700, "Exceeds the limit (4300 digits)"),
        (asking(b"[" * 500 + b"]" * 500), 5, -32700, "nested deeper than 100 levels"),
        (asking(b"[" * 100_000 + b"]" * 100_000), 5, -32700, "nested too deep"),
        (asking(b"NaN"), 5, -32700, "NaN is not JSON"),
        (asking(b'"\xff"', b'"a-5"'), "a-5", -32700, "can't decode byte 0xff"),
        (b"\xef\xbb\xbf" + asking(b"1"), 5, -32700, "BOM"),
        (asking(b"1")[:-3] + b"\n", 5, -32700, "can't be read"),
        (b'{"method": "ping", "params": {"id": 1, "x": [}, "id": 5}\n', 5, -32700, "can't be read"),
        (b"hello\n", None, -32700, "can't be read"),
        (b"\x00" * 100 + b"\n", None, -32700, "can't be read"),
        (b"[" + asking(b"1")[:-1] + b"]\n", None, -32600, "batches are not taken"),
        (b"[]\n", None, -32600, "batches are not taken"),
        (b"5\n", None, -32600, "not a message"),
        (b'{"jsonrpc": "2.0", "id": 5}\n', 5, -32600, "not a message"),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}\n', None, -32600, "not a message"),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}\n', None, -32600, "not a message"),
    ],
    ids=[
        *("half a pair", "digits", "levels", "depth", "constant", "bytes", "mark", "cut", "id at the end", "words"),
        *("zeros", "batch", "empty batch", "number", "nothing asked", "fraction", "null"),
    ],
)
async def test_what_can_not_be_read_is_answered_under_its_own_id(host, line, id, code, words):
    async with served(host) as wire:
        await wire.send(line)
        answer = await wire.receive()

    assert (answer["id"], answer["error"]["code"]) == (id, code)
    assert words in answer["error"]["message"]


async def test_an_answer_that_can_not_be_read_ends_the_question_it_was_for(host):
    """The client's own request of the same number is not answered by that."""
    hello = {**INITIALIZE, "params": {**INITIALIZE["params"], "capabilities": {"elicitation": {}}}}
    async with served(host) as wire:
        await wire.send(hello)
        await wire.receive()
        await wire.send(INITIALIZED, call("write", {"path": "x"}, id=2))
        while (asked := await wire.receive()).get("method") != "elicitation/create":
            pass
        await wire.send(b'{"jsonrpc": "2.0", "id": %d, "result": {"action": "\\ud800"}}\n' % asked["id"])
        told, answer = await wire.receive(), await wire.receive()

    assert (told["id"], told["error"]["code"]) == (None, -32700)
    assert (answer["id"], answer["result"]["isError"]) == (2, False)
    assert "waits" in answer["result"]["content"][0]["text"]


async def test_what_a_tool_prints_is_not_on_the_line(host):
    async with served(host) as wire:
        await wire.send(call("chatty", id=1, _meta=META))

        assert (await wire.receive())["result"]["content"][0]["text"] == "printed"


async def test_a_last_message_without_its_end_is_read(host):
    with pipes() as (wire, read_from, write_to):
        os.write(wire.to_server, json.dumps(INITIALIZE).encode())
        wire.hang_up()
        await stdio.run(MCPServer(host).server, read_from, write_to)
        answer = await wire.receive()

    assert answer["id"] == 1


# -- descriptors -----------------------------------------------------------------------------------------------------


async def test_descriptors_are_as_before(host):
    with pipes() as (wire, read_from, write_to):
        before = [os.fstat(fd).st_ino for fd in (read_from, write_to)], open_descriptors()
        wire.hang_up()
        await stdio.run(MCPServer(host).server, read_from, write_to)
        os.fstat(read_from)

        assert [os.fstat(fd).st_ino for fd in (read_from, write_to)] == before[0]
        assert os.get_blocking(read_from)
        assert os.get_blocking(write_to)
        assert len(open_descriptors()) == len(before[1]) - 1


async def test_while_it_is_served_nobody_else_reads_stdin(host):
    with pipes() as (wire, read_from, write_to):
        async with anyio.create_task_group() as group:
            group.start_soon(stdio.run, MCPServer(host).server, read_from, write_to)
            await wire.send(INITIALIZE)
            await wire.receive()

            assert os.read(read_from, 10) == b""
            assert os.fstat(write_to).st_ino == os.fstat(2).st_ino
            wire.hang_up()


async def test_without_stderr_what_is_printed_goes_nowhere(monkeypatch):
    monkeypatch.setattr(stdio, "_STDERR", 9_999)
    read_from, write_to = os.pipe()
    with stdio._moved_away(write_to, os.O_WRONLY):
        os.write(write_to, b"lost")
    os.close(write_to)

    assert os.read(read_from, 10) == b""
    os.close(read_from)


async def test_a_process_serves_one_client_at_a_time(host):
    with pipes() as (wire, read_from, write_to):
        async with anyio.create_task_group() as group:
            group.start_soon(stdio.run, MCPServer(host).server, read_from, write_to)
            await wire.send(INITIALIZE)
            await wire.receive()
            with pytest.raises(RuntimeError, match="is served already"):
                await stdio.run(MCPServer(host).server, read_from, write_to)
            wire.hang_up()


async def test_sockets_serve_as_well_as_pipes(host):
    """Some clients start their servers with a pair of sockets for each direction."""
    with ExitStack() as stack:
        to_server, read_from, from_server, write_to = (
            stack.enter_context(end) for _ in range(2) for end in socket.socketpair()
        )
        wire = Wire(to_server.fileno(), from_server.fileno())
        async with anyio.create_task_group() as group:
            group.start_soon(stdio.run, MCPServer(host).server, read_from.fileno(), write_to.fileno())
            await wire.send(call("add", {"a": 1}, _meta=META))
            answer = await wire.receive()
            to_server.shutdown(socket.SHUT_WR)

    assert answer["result"]["structuredContent"] == {"sum": 11}


async def test_a_terminal_serves_too(host):
    terminal, ours = os.openpty()
    tty.setraw(ours)
    read_from, write_to = os.pipe()
    wire = Wire(terminal, read_from)
    async with anyio.create_task_group() as group:
        server = MCPServer(host).server
        group.start_soon(stdio.run, server, ours, write_to)
        await wire.send(INITIALIZE)
        answer = await wire.receive()
        os.kill(os.getpid(), signal.SIGTERM)
    for fd in (terminal, ours, read_from, write_to):
        os.close(fd)

    assert answer["id"] == 1


async def test_files_serve_too(host, tmp_path):
    (tmp_path / "in").write_bytes(json.dumps(INITIALIZE).encode() + b"\n")
    read_from = os.open(tmp_path / "in", os.O_RDONLY)
    write_to = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    await stdio.run(MCPServer(host).server, read_from, write_to)
    os.close(read_from)
    os.close(write_to)

    assert json.loads((tmp_path / "out").read_text())["id"] == 1


# -- the end ---------------------------------------------------------------------------------------------------------


async def test_what_was_asked_before_the_end_of_input_is_answered(host):
    """As by `printf ... | agentos serve`."""
    with pipes() as (wire, read_from, write_to), anyio.fail_after(20):
        await wire.send(INITIALIZE, INITIALIZED, call("chatty", id=2), call("count_in_thread", {"to": 20}, id=3))
        wire.hang_up()
        await stdio.run(MCPServer(host).server, read_from, write_to)
        answers = [await wire.receive() for _ in range(3)]

    assert {answer["id"] for answer in answers if "result" in answer} == {1, 2, 3}


async def test_a_call_that_runs_on_after_the_end_of_input_is_cancelled(host, monkeypatch):
    monkeypatch.setattr(stdio, "ANSWER_TIMEOUT", 0.01)
    async with served(host) as wire:
        await wire.send(call("wait", _meta=META))
        with anyio.fail_after(5):
            while "waiting" not in pack.seen:
                await asyncio.sleep(0)

    assert pack.seen == ["waiting", "cleaned up"]


LISTEN = {"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": {"_meta": META}}
CANCEL = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
NEVER_ANSWERED = {
    "a cancelled call": [call("wait", _meta=META), CANCEL],
    "a subscription": [LISTEN],
    "a notification": [INITIALIZED],
    "an answer": [{"jsonrpc": "2.0", "id": 9, "result": {}}],
}


@pytest.mark.parametrize("messages", NEVER_ANSWERED.values(), ids=NEVER_ANSWERED)
async def test_the_end_does_not_wait_for_what_gets_no_answer(host, monkeypatch, messages):
    monkeypatch.setattr(stdio, "ANSWER_TIMEOUT", 3_600.0)
    async with served(host) as wire:
        await wire.send(*messages)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_serving_although_the_client_stays(host, number):
    async with served(host, hangs_up=False) as wire:
        await wire.send(INITIALIZE)
        await wire.receive()
        os.kill(os.getpid(), number)

    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)


async def test_a_signal_cancels_what_runs(host):
    async with served(host, hangs_up=False) as wire:
        await wire.send(call("wait", _meta=META))
        with anyio.fail_after(5):
            while "waiting" not in pack.seen:
                await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGTERM)

    assert pack.seen == ["waiting", "cleaned up"]


async def test_a_client_that_reads_no_more_ends_serving(host):
    async with served(host, hangs_up=False) as wire:
        await wire.send(INITIALIZE)
        await wire.receive()
        os.close(wire.from_server)
        wire.from_server = -1
        await wire.send(*(call("add", {"a": 1}, id=number) for number in range(10)))


async def test_a_client_that_does_not_read_can_not_hold_up_the_end(host, monkeypatch):
    monkeypatch.setattr(stdio, "FLUSH_TIMEOUT", 0.05)
    monkeypatch.setattr(stdio, "ANSWER_TIMEOUT", 0.05)
    async with served(host) as wire:
        await wire.send(*(call("huge", {"size": 500_000}, id=number, _meta=META) for number in range(5)))
        while (await asyncio.to_thread(os.read, wire.from_server, 1)) != b"{":
            pass


async def test_nothing_is_left_when_serving_ends(host):
    before = asyncio.all_tasks()
    async with served(host) as wire:
        await wire.send(call("count", {"to": 3}, _meta={**META, "progressToken": 1}))
        while "result" not in await wire.receive():
            pass

    assert asyncio.all_tasks() == before
    assert not host.extensions.events.is_heard


async def test_beside_the_main_thread_there_are_no_signals_to_hear():
    done = []

    async def main():
        async with pack.hosted() as host:
            with pipes() as (wire, read_from, write_to):
                wire.hang_up()
                await stdio.run(MCPServer(host).server, read_from, write_to)
        done.append(True)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    await asyncio.to_thread(thread.join, 10)

    assert done == [True]


async def test_serving_the_process_itself_restores_it(host, capfd, monkeypatch):
    """stdin is empty here, so it ends at once."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    kept = os.dup(0)
    os.dup2(nothing, 0)
    try:
        await serve_stdio(host, principal=pack.USER)
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(nothing)
    os.write(1, b"still stdout")

    assert capfd.readouterr().out == "still stdout"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_ends_cleanly_by_a_signal_while_its_client_waits(number):
    with subprocess.Popen(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        process.stdin.flush()
        hello = json.loads(process.stdout.readline())
        process.send_signal(number)
        code = process.wait(timeout=20)
        errors = process.stderr.read().decode()

    assert hello["id"] == 1
    assert (code, errors) == (0, "ended in good order\n")


def test_a_process_ends_cleanly_when_its_client_hangs_up():
    lines = [INITIALIZE, INITIALIZED, call("chatty")]
    with subprocess.Popen(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write("".join(json.dumps(line) + "\n" for line in lines).encode())
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
        code = process.wait(timeout=20)
        errors = process.stderr.read().decode()

    assert [answer["id"] for answer in answers] == [1, 2]
    assert (code, errors) == (0, "this is not JSON\nended in good order\n")
