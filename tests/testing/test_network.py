"""Only loopback is reachable, and what was tried is known."""

import asyncio
import socket
import threading

import pytest

from agentos.testing import Attempt, NetworkRefusedError, network, offline


@pytest.fixture(autouse=True)
def traced(monkeypatch):
    """Let coverage see into the hook; Python hides audit hooks from tracing otherwise."""
    monkeypatch.setattr(network._hook, "__cantrace__", True, raising=False)


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()


def test_a_connection_elsewhere_is_refused():
    with offline() as attempts, socket.socket() as one, pytest.raises(NetworkRefusedError, match="only loopback"):
        one.connect(("192.0.2.1", 80))

    assert attempts == [Attempt("connect", "192.0.2.1", 80)]
    assert str(attempts[0]) == "connect 192.0.2.1 port 80"


def test_a_refusal_is_an_outage_like_any_other():
    assert issubclass(NetworkRefusedError, ConnectionError)


def test_loopback_is_reachable(listener):
    with offline() as attempts, socket.create_connection(listener):
        pass

    assert Attempt("connect", *listener) in attempts


def test_loopback_has_a_name():
    with offline() as attempts:
        socket.getaddrinfo("localhost", 80)

    assert attempts[0] == Attempt("resolve", "localhost")


@pytest.mark.parametrize("host", ["::1", "::ffff:127.0.0.1"])
def test_loopback_has_many_addresses(host):
    with offline(), socket.socket(socket.AF_INET6) as one, pytest.raises(ConnectionRefusedError) as caught:
        one.connect((host, 1))

    assert not isinstance(caught.value, NetworkRefusedError)


def test_a_datagram_elsewhere_is_refused():
    with offline(), socket.socket(type=socket.SOCK_DGRAM) as one, pytest.raises(NetworkRefusedError):
        one.sendto(b"", ("192.0.2.1", 53))


def test_a_name_is_not_looked_up():
    with offline() as attempts, pytest.raises(socket.gaierror, match="refuses to resolve"):
        socket.getaddrinfo("example.org", 80)

    assert attempts == [Attempt("resolve", "example.org")]


def test_a_name_in_bytes_is_not_looked_up():
    with offline(), pytest.raises(socket.gaierror):
        socket.getaddrinfo(b"example.org", 80)


def test_no_name_is_this_machine():
    with offline():
        assert socket.getaddrinfo(None, 80)


def test_an_address_is_no_name():
    with offline():
        assert socket.getaddrinfo("192.0.2.1", 80)


def test_a_mapped_address_is_what_it_is_mapped_to():
    with offline(), socket.socket(socket.AF_INET6) as one, pytest.raises(NetworkRefusedError):
        one.connect(("::ffff:192.0.2.1", 80))


def test_a_local_socket_is_no_network(tmp_path):
    with offline(), socket.socket(socket.AF_UNIX) as one, pytest.raises(FileNotFoundError):
        one.connect(str(tmp_path / "nobody"))


def test_other_threads_are_refused_too():
    raised = []

    def connect():
        try:
            socket.create_connection(("192.0.2.1", 80), timeout=5)
        except OSError as error:
            raised.append(type(error))

    with offline():
        thread = threading.Thread(target=connect)
        thread.start()
        thread.join()

    assert raised == [NetworkRefusedError]


async def test_an_event_loop_is_refused_too():
    with offline(), pytest.raises(NetworkRefusedError):
        await asyncio.open_connection("192.0.2.1", 80)


def test_afterwards_nothing_is_noted_or_refused(listener):
    with offline() as attempts:
        pass
    with socket.create_connection(listener):
        pass

    assert attempts == []


def test_a_file_that_is_opened_is_no_attempt_unless_asked_for(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    with offline(files=True) as everything, offline() as attempts:
        (tmp_path / "a.txt").read_text()

    assert (attempts, Attempt("open", str(tmp_path / "a.txt")) in everything) == ([], True)


def test_one_block_may_be_inside_another():
    with offline() as outer:
        with offline() as inner, pytest.raises(OSError, match="refuses"):
            socket.create_connection(("192.0.2.1", 80))
        with pytest.raises(OSError, match="refuses"):
            socket.create_connection(("192.0.2.2", 80))

    connects = [[one.target for one in noted if one.what == "connect"] for noted in (outer, inner)]
    assert connects == [["192.0.2.1", "192.0.2.2"], ["192.0.2.1"]]
