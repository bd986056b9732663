"""Clients of both eras over HTTP, an app within another, and a server from its start to its end."""

import asyncio
import datetime as dt
import gc
import ipaddress
import logging
import re
import socket
import ssl
from contextlib import ExitStack, asynccontextmanager, suppress

import httpx2
import pytest
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types import ToolListChangedNotification
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from agentos import PUBLIC, AgentOS, Budget, Principal, ToolCall, tool
from agentos.mcp.auth import TokenFile
from agentos.mcp.http.gateway import verified_of
from agentos.mcp.http.serving import HTTPLimits, http_app, root_routes, serve_http
from agentos.mcp.http.web_server import listening_socket

ERAS = {"handshake": "legacy", "2026-07-28": "2026-07-28", "auto": "auto"}
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
ALICE = Principal("alice", access={"mail.read"})


@tool(effect="read", required_access=PUBLIC)
async def ping() -> str:
    """Answer."""
    return "pong"


@tool(effect="read", required_access=PUBLIC)
async def later() -> str:
    """Come later."""
    return "here"


@tool(effect="read", required_access=["mail.read"])
async def read_mail(*, context) -> str:
    """Read the mail."""
    return f"for {context.principal.id}"


@pytest.fixture
async def host(anyio_backend):
    async with AgentOS(mode="auto") as host:
        await host.tools_service().sync([ping, read_mail])
        yield host


@pytest.fixture
def tokens(tmp_path):
    return TokenFile(tmp_path / "tokens.json")


class Address(str):
    """Where a server is, and how to stop it."""

    __slots__ = ("stop",)


@asynccontextmanager
async def serving(host, **options):
    """Serve on a free port; yield the address."""
    address = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve_http(host, port=0, ready=address.set_result, **options))
    await asyncio.wait([task, address], return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    try:
        where = Address(address.result())
        where.stop = task.cancel
        yield where
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def connected(address, mode, token=None, verify=False, **options):
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=20, trust_env=False, verify=verify) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode, **options) as client,
    ):
        yield client


async def names_of(client):
    return {item.name for item in (await client.list_tools()).tools} & {"ping", "later", "read_mail"}


async def text_of(client, name):
    result = await client.call_tool(name, {})
    return result.content[0].text


# -- Clients of both eras


@pytest.mark.parametrize("mode", ERAS.values(), ids=ERAS)
async def test_a_client_lists_and_calls(mode, host):
    async with serving(host) as address, connected(address, mode) as client:
        assert await names_of(client) == {"ping", "read_mail"}
        assert await text_of(client, "ping") == "pong"


@pytest.mark.parametrize("mode", ERAS.values(), ids=ERAS)
async def test_a_client_calls_as_whom_its_token_says(mode, host, tokens):
    token = tokens.issue(ALICE)
    async with serving(host, verifier=tokens) as address, connected(address, mode, token) as client:
        assert await text_of(client, "read_mail") == "for alice"


@pytest.mark.parametrize("mode", ERAS.values(), ids=ERAS)
async def test_a_client_is_offered_what_its_token_leaves(mode, host, tokens):
    token = tokens.issue(ALICE, scopes=[])
    async with serving(host, verifier=tokens) as address, connected(address, mode, token) as client:
        assert await names_of(client) == {"ping"}


async def test_clients_at_once_are_each_their_own(host, tokens):
    people = [Principal(name, access={"mail.read"}) for name in ("alice", "bob", "carol")]

    async def ask(address, who, mode):
        async with connected(address, mode, tokens.issue(who)) as client:
            return [await text_of(client, "read_mail") for _ in range(5)]

    async with serving(host, verifier=tokens) as address:
        asked = [(who, mode) for who in people for mode in ("legacy", "2026-07-28")]
        answers = await asyncio.gather(*(ask(address, who, mode) for who, mode in asked))

    assert answers == [[f"for {who.id}"] * 5 for who, _ in asked]


async def test_a_client_of_the_handshake_era_hears_of_changes(host):
    heard = asyncio.Event()

    async def hear(message):
        if isinstance(message, ToolListChangedNotification):
            heard.set()

    async with serving(host) as address, connected(address, "legacy", message_handler=hear) as client:
        assert client.server_capabilities.tools.list_changed
        await names_of(client)
        while not heard.is_set():  # the client opens its stream in its own time
            await host.tools_service().sync([ping, later])
            await host.tools_service().sync([ping])
            with suppress(TimeoutError):
                await asyncio.wait_for(heard.wait(), 0.1)


async def test_a_client_of_the_era_without_sessions_hears_of_changes(host):
    async with (
        serving(host) as address,
        connected(address, "2026-07-28") as client,
        client.listen(tools_list_changed=True) as changes,
    ):
        await host.tools_service().sync([ping, later])
        event = await anext(aiter(changes))
        names = await names_of(client)

    assert isinstance(event, ToolsListChanged)
    assert names == {"ping", "later"}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_client_without_a_token_does_not_get_in(mode, host, tokens):
    async with serving(host, verifier=tokens) as address:
        with pytest.raises((MCPError, httpx2.HTTPStatusError, ExceptionGroup)):
            async with connected(address, mode) as client:
                await client.list_tools()


# -- Starting and ending


async def test_the_address_is_loopback_unless_told_otherwise(host):
    async with serving(host) as address:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/mcp", address)


@pytest.mark.parametrize("bind", ["localhost", "127.0.0.1", "::1"])
async def test_every_name_of_this_machine_can_be_bound(bind, host):
    if bind == "::1" and not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    async with serving(host, bind=bind, path="/tools") as address, connected(address, "2026-07-28") as client:
        assert await text_of(client, "ping") == "pong"


async def test_an_event_tells_when_it_is_ready(host):
    ready = asyncio.Event()
    task = asyncio.create_task(serve_http(host, port=0, ready=ready))
    await ready.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_nobody_needs_to_be_told(host, monkeypatch):
    started = asyncio.Event()
    startup = uvicorn.Server.startup

    async def noted(self, sockets=None):
        await startup(self, sockets)
        started.set()

    monkeypatch.setattr(uvicorn.Server, "startup", noted)
    task = asyncio.create_task(serve_http(host, port=0))
    await started.wait()
    task.cancel()

    assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)


async def test_what_raises_when_it_is_ready_ends_the_server(host):
    def ready(address):
        raise RuntimeError("no thanks")

    with pytest.raises(RuntimeError, match="no thanks"):
        await serve_http(host, port=0, ready=ready)


async def test_being_cancelled_twice_changes_nothing(host):
    async with serving(host) as address, connected(address, "2026-07-28") as client:
        await text_of(client, "ping")
        address.stop()
        await asyncio.sleep(0)
        address.stop()


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "", "10.1.2.3", "example.com"])
async def test_an_address_that_others_reach_needs_a_verifier(bind, host):
    with pytest.raises(ValueError, match="can be reached by others; give a verifier"):
        await serve_http(host, bind=bind)


async def test_an_address_that_others_reach_needs_its_name(host, tokens):
    with pytest.raises(ValueError, match="give resource_url"):
        await serve_http(host, bind="0.0.0.0", verifier=tokens)


async def test_an_address_that_others_reach_is_served_with_both(host, tokens, caplog):
    options = {"verifier": tokens, "resource_url": "https://tools.example/mcp"}
    async with serving(host, bind="0.0.0.0", **options) as address:
        local = address.replace("0.0.0.0", "127.0.0.1")
        async with connected(local, "2026-07-28", tokens.issue(ALICE)) as client:
            assert await text_of(client, "ping") == "pong"

    assert "in the clear" not in caplog.text


async def test_tokens_in_the_clear_are_warned_of(host, tokens, caplog):
    async with serving(host, bind="0.0.0.0", verifier=tokens, resource_url="http://tools.internal/mcp"):
        pass

    assert "tokens for http://tools.internal/mcp travel in the clear" in caplog.text


async def test_a_port_that_is_taken_is_named(host):
    async with serving(host) as address:
        port = httpx2.URL(address).port
        with pytest.raises(OSError, match=rf"can't listen on 127\.0\.0\.1:{port}: "):
            await serve_http(host, port=port)


async def test_a_mistake_of_the_app_is_raised_and_the_port_is_free_again(host):
    with pytest.raises(TypeError, match="surprise"):
        await serve_http(host, port=0, surprise=1)


async def test_by_default_tokens_are_for_the_address_itself(host, tokens):
    async with serving(host, verifier=tokens) as address, httpx2.AsyncClient(verify=False) as http:
        refused = await http.post(address, headers=JSON, json={})
        told = await http.get(re.search(r'resource_metadata="([^"]+)"', refused.headers["www-authenticate"])[1])
        async with connected(address, "2026-07-28", tokens.issue(ALICE, audience=address)) as client:
            assert await text_of(client, "ping") == "pong"

    assert told.json()["resource"] == address


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_server_that_ends_ends_its_streams_in_good_order(mode, host, caplog):
    caplog.set_level(logging.ERROR)
    seen = []
    async with serving(host) as address, httpx2.AsyncClient(verify=False, timeout=20) as http:
        stream = await opened(http, address, mode)
        ending = asyncio.create_task(collected(stream, seen))
        while not seen and mode != "legacy":
            await asyncio.sleep(0)
        address.stop()
        await ending

    text = b"".join(seen).decode()
    assert "subscriptions/acknowledged" in text or mode == "legacy"
    assert '"result"' in text or mode == "legacy"
    assert caplog.text == ""


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_clients_without_a_token_are_counted_by_their_address(mode, anyio_backend):
    async def ask(place, address):
        transport = httpx2.AsyncHTTPTransport(local_address=place)
        async with (
            httpx2.AsyncClient(transport=transport, timeout=20) as http,
            Client(streamable_http_client(address, http_client=http), mode=mode) as client,
        ):
            return await text_of(client, "ping")

    async with AgentOS(budget=Budget(calls=1, window=3600.0)) as host:
        await host.tools_service().sync([ping])
        async with serving(host, principal=ALICE) as address:
            said = [await ask(place, address) for place in ("127.0.0.1", "127.0.0.2", "127.0.0.1")]
        at_home = await host.tools.process_tool_call(ToolCall("ping"), ALICE)

    assert said[:2] == ["pong", "pong"]
    assert said[2].startswith("BudgetExceeded")
    assert at_home.success


async def opened(http, address, mode):
    """Open a stream that has no end of its own, by hand: clients hide how it ends."""
    if mode == "legacy":
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        begun = await http.post(address, headers=JSON, json=body)
        named = {"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        request = http.build_request("GET", address, headers=JSON | named)
    else:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
        body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
        named = {"mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen"}
        request = http.build_request("POST", address, headers=JSON | named, json=body)
    return await http.send(request, stream=True)


async def collected(stream, seen):
    async for chunk in stream.aiter_raw():
        seen.append(chunk)
    await stream.aclose()


async def test_a_request_under_way_has_a_moment_to_finish(host):
    entered, go_on = asyncio.Event(), asyncio.Event()

    @tool(effect="read", required_access=PUBLIC)
    async def slow() -> str:
        """Take its time."""
        entered.set()
        await go_on.wait()
        return "done"

    await host.tools_service().sync([slow])
    async with serving(host, limits=HTTPLimits(stop=600)) as address, connected(address, "2026-07-28") as client:
        await client.list_tools()  # else the client asks for it once it has its result, and nobody is there any more
        call = asyncio.create_task(text_of(client, "slow"))
        await entered.wait()
        address.stop()
        try:
            await no_longer_listening(address)
        finally:
            go_on.set()
        assert await call == "done"


async def no_longer_listening(address):
    """Wait until a server takes no connections any more."""
    url = httpx2.URL(address)
    with suppress(ConnectionError):  # refused, or reset in the queue of a listener that is closed
        while True:
            _, writer = await asyncio.open_connection(url.host, url.port)
            writer.transport.abort()
            await asyncio.sleep(0)


async def test_connections_that_come_while_the_server_stops_are_closed(host):
    """A socket that is left over is a warning, and warnings are errors here."""
    for _ in range(10):
        async with serving(host) as address:
            address.stop()
            await no_longer_listening(address)
    gc.collect()


async def test_a_request_that_does_not_finish_is_cancelled(host, caplog):
    entered, cancelled = asyncio.Event(), asyncio.Event()

    @tool(effect="read", required_access=PUBLIC)
    async def endless() -> str:
        """Take for ever."""
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    await host.tools_service().sync([endless])
    async with serving(host, limits=HTTPLimits(stop=1)) as address, connected(address, "2026-07-28") as client:
        call = asyncio.create_task(client.call_tool("endless", {}))
        await entered.wait()
        address.stop()
        await cancelled.wait()
        await asyncio.gather(call, return_exceptions=True)


# -- TLS


@pytest.fixture
def certificate(tmp_path):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    cert, private = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"open sesame"),
        )
    )
    return {"tls_cert": cert, "tls_key": private, "tls_key_password": "open sesame"}


async def test_a_server_speaks_tls_if_it_has_a_certificate(host, tokens, certificate):
    trust = ssl.create_default_context(cafile=certificate["tls_cert"])
    async with serving(host, verifier=tokens, **certificate) as address:
        token = tokens.issue(ALICE, audience=address)
        async with connected(address, "2026-07-28", token, verify=trust) as client:
            assert await text_of(client, "ping") == "pong"

    assert address.startswith("https://127.0.0.1:")


@pytest.mark.parametrize("half", ["tls_cert", "tls_key"])
async def test_a_certificate_and_its_key_go_together(half, host, certificate):
    with pytest.raises(ValueError, match="give both or none"):
        await serve_http(host, **{half: certificate[half]})


@pytest.mark.parametrize("wrong", [{"tls_key_password": "wrong"}, {"tls_key": "missing.pem"}])
async def test_a_key_that_can_not_be_used_is_named(wrong, host, certificate):
    with pytest.raises(ValueError, match=r"cert\.pem and .* can't be used for TLS: "):
        await serve_http(host, port=0, **certificate | wrong)


async def test_connections_that_never_shake_hands_make_room(host, certificate):
    async with serving(host, limits=HTTPLimits(connections=20), **certificate) as address:
        url = httpx2.URL(address)
        with ExitStack() as idle:
            for _ in range(100):
                idle.enter_context(socket.create_connection((url.host, url.port)))
            async with connected(address, "2026-07-28") as client:
                assert await text_of(client, "ping") == "pong"


# -- Within another app


def parent(app, **options):
    async def index(request):
        return PlainTextResponse("the host's own page")

    routes = [Route("/", index), *root_routes(app), Mount("/agents", app=app)]
    return Starlette(routes=routes, **options)


@asynccontextmanager
async def running(app):
    """Run any app as a host would, by a server of its own."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve([listener]))
    while not server.started:
        await asyncio.sleep(0)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_mounted_app_serves_within_its_parent(mode, host, tokens):
    app = http_app(host, verifier=tokens, resource_url="http://127.0.0.1/agents/mcp")
    whole = parent(app, lifespan=lambda _: app.router.lifespan_context(app))
    async with running(whole) as address:
        async with connected(f"{address}/agents/mcp", mode, tokens.issue(ALICE)) as client:
            assert await text_of(client, "read_mail") == "for alice"
        async with httpx2.AsyncClient(verify=False) as http:
            assert (await http.get(address)).text == "the host's own page"


async def test_the_metadata_of_a_mounted_app_is_where_it_is_advertised(host, tokens):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    resource = f"http://127.0.0.1:{port}/agents/mcp"
    app = http_app(host, verifier=tokens, resource_url=resource)
    transport = httpx2.ASGITransport(parent(app))
    async with app.router.lifespan_context(app), httpx2.AsyncClient(transport=transport, verify=False) as http:
        refused = await http.post(resource, headers=JSON, json={})
        advertised = re.search(r'resource_metadata="([^"]+)"', refused.headers["www-authenticate"])[1]
        told = await http.get(advertised)

    assert advertised == f"http://127.0.0.1:{port}/.well-known/oauth-protected-resource/agents/mcp"
    assert (told.status_code, told.json()["resource"]) == (200, resource)


async def test_a_mounted_app_whose_parent_forgot_it_says_so(host, caplog):
    transport = httpx2.ASGITransport(parent(http_app(host, verifier=None)))
    async with httpx2.AsyncClient(transport=transport, verify=False, base_url="http://127.0.0.1") as http:
        response = await http.post("/agents/mcp", headers=JSON, json={})

    assert response.status_code == 503
    assert "enter app.router.lifespan_context(app) in the parent's lifespan" in caplog.text


async def test_an_app_can_be_started_again_but_not_twice_at_once(host):
    app = http_app(host, verifier=None)
    for _ in range(2):
        async with running(app) as address, connected(f"{address}/mcp", "2026-07-28") as client:
            assert await text_of(client, "ping") == "pong"
    async with app.router.lifespan_context(app):
        with pytest.raises(RuntimeError, match="running already"):
            async with app.router.lifespan_context(app):
                pass


async def test_without_a_request_nothing_is_verified():
    class Bare:
        request = None

    assert verified_of(Bare()) is None


def test_what_is_accepted_sends_at_once():
    """Otherwise an answer in two parts waits for the client's acknowledgement of the first."""
    with listening_socket("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
