"""The web server for the tests of packs."""

import asyncio
import socket
import sys

import httpx
import pytest
from agentos_pack_common.loopback import serving

from agentos.testing.network import NetworkRefusedError

PAGES = {"/list": [1, 2], "/page.html": b"<p>x</p>", "/report.pdf": b"%PDF-", "/raw": b"\0"}


@pytest.fixture
async def client():
    async with serving(PAGES) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as made:
        yield made


@pytest.mark.parametrize(
    ("path", "type", "body"),
    [
        ("/list", "application/json", b"[1, 2]"),
        ("/page.html", "text/html; charset=utf-8", b"<p>x</p>"),
        ("/report.pdf?page=1", "application/pdf", b"%PDF-"),
        ("/raw", "application/octet-stream", b"\0"),
    ],
)
async def test_a_page_is_answered_by_its_path(client, path, type, body):
    answer = await client.get(path)

    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, type, body)


@pytest.mark.parametrize(("method", "body"), [("HEAD", b""), ("POST", b"[1, 2]"), ("DELETE", b"[1, 2]")])
async def test_every_method_is_answered(client, method, body):
    answer = await client.request(method, "/list", content=b"x" * 100_000 if method == "POST" else None)

    assert (answer.status_code, answer.content) == (200, body)


async def test_what_is_not_there_is_told(client):
    assert (await client.get("/nothing")).status_code == 404


async def test_who_says_nothing_holds_nobody_up():
    async with serving(PAGES) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "10.0.0.1", "169.254.169.254"])
def test_no_test_of_a_pack_leaves_the_machine(address):
    """What is asked here is what Python asks before it connects: were it allowed, still nothing would be sent."""
    with pytest.raises(NetworkRefusedError):
        sys.audit("socket.connect", None, (address, 80))
    with pytest.raises(socket.gaierror):
        sys.audit("socket.getaddrinfo", "pack.invalid", 80, 0, 0, 0)
