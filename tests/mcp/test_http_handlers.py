"""What packs answer over HTTP: for whom, within which bounds, and as long as it is in force."""

import asyncio
import contextlib
import logging
import os
import sys
from contextlib import asynccontextmanager

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from worker_children import placed
from working import PACKS

from agentos import AgentOS, Descriptor, DescriptorError, ExtensionPack, Principal
from agentos.mcp.auth import Verified
from agentos.mcp.http.serving import HTTPLimits, http_app, serve_http

sys.path.append(str(PACKS))

import http_handlers

ANN = Principal("ann", access={"mail"})
PLACES = ("inline", "process")
DEADLINE = 60.0


class Tokens:
    """Knows one token, as long as it is valid."""

    is_valid = True

    async def verify(self, token):
        return Verified(ANN, "client", frozenset({"*"}), None, "1") if token == "good" and self.is_valid else None


GOOD = {"authorization": "Bearer good"}


@asynccontextmanager
async def serving(host, **options):
    """Serve a host on loopback; yield a client of it."""
    ready = asyncio.get_running_loop().create_future()
    server = asyncio.create_task(serve_http(host, port=0, ready=ready.set_result, **options))
    try:
        async with asyncio.timeout(DEADLINE):
            await asyncio.wait([ready, server], return_when=asyncio.FIRST_COMPLETED)
            address = ready.result().removesuffix("/mcp")
        async with httpx2.AsyncClient(base_url=address, trust_env=False, timeout=DEADLINE) as client:
            yield client
    finally:
        server.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await server


@asynccontextmanager
async def web(place="inline", *, permissions=(), **options):
    """Serve the pack `web` from the host itself or from a process of its own."""
    fields = {"options": {"word": "tea"}, "permissions": permissions}
    async with (
        placed(place, "http_handlers", **fields) as entry,
        AgentOS(extension_manifest=[entry]) as host,
        serving(host, **options) as client,
    ):
        yield host, client


async def until(condition):
    async with asyncio.timeout(DEADLINE):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("place", PLACES)
async def test_handlers_of_every_form_answer(place):
    async with web(place, verifier=Tokens()) as (_, client):
        said = (await client.post("/packs/web/hello/x", content=b"12345", headers=GOOD | {"x-mine": "1"})).json()
        pid = said.pop("pid")
        answered = await client.post("/packs/web/raw", content=b"abc", headers=GOOD)
        within = await client.get("/packs/web/site/a/b", headers=GOOD)
        large = await client.post("/packs/web/hello/", content=b"x" * 3_000_000, headers=GOOD)

    assert said == {"who": "ann", "option": "tea", "size": 5, "path": "/packs/web/hello/x", "headers": ["x-mine"]}
    assert (answered.status_code, answered.content, answered.headers["x-root"]) == (201, b"cba.", "/packs/web/raw")
    assert within.text == "inner b /packs/web/site/a/x"
    assert large.json()["size"] == 3_000_000
    assert pid == large.json()["pid"]
    assert (pid == os.getpid()) is (place == "inline")


async def test_callers_need_the_token_that_they_need_for_mcp():
    async with web(verifier=Tokens()) as (_, client):
        for path in ("/packs/web/hello/", "/packs/web/open/", "/packs/web/absent/", "/packs/"):
            assert (await client.get(path)).status_code == 401
            assert (await client.get(path, headers={"authorization": "Bearer bad"})).status_code == 401
        assert (await client.get("/packs/web/absent/", headers=GOOD)).status_code == 404
        assert (await client.get("/packs/web/hell", headers=GOOD)).status_code == 404
        assert (await client.get("/packs/web/hello/?access_token=good", headers=GOOD)).status_code == 400
        assert (await client.request("BREW", "/packs/web/hello/", headers=GOOD)).status_code == 405


@pytest.mark.parametrize("place", PLACES)
async def test_what_is_public_by_pack_and_manifest_answers_everybody_as_nobody(place):
    async with web(place, permissions=("http:public",), verifier=Tokens()) as (host, client):
        said = (await client.get("/packs/web/open/", headers=GOOD)).json()
        kept = (await client.get("/packs/web/hello/")).status_code
        troubles = host.extensions.explain("http-handler", "open").troubles

    assert (said["who"], said["headers"], kept, troubles) == ("service:nobody", [], 401, [])


async def test_a_permission_that_is_lacking_is_told():
    async with web() as (host, _):
        explained = str(host.extensions.explain("http-handler", "open"))
        report = await host.check()

    assert "agentos serve --http" in explained
    assert "permission 'http:public', which web lacks" in explained
    assert any("http:public" in one.cure for one in report.troubles)


async def test_without_tokens_this_machine_is_served_for_one_principal():
    async with web(principal=lambda _: ANN) as (_, client):
        assert (await client.get("/packs/web/hello/")).json()["who"] == "ann"
        assert (await client.get("/packs/web/hello/", headers={"x-forwarded-for": "1.2.3.4"})).status_code == 403
    async with web(principal=lambda _: None) as (_, client):
        assert (await client.get("/packs/web/hello/")).status_code == 403
    async with web() as (_, client):
        assert (await client.get("/packs/web/hello/")).json()["who"] == "system"


async def test_pages_of_others_are_refused_and_those_of_the_server_are_not():
    async with web() as (_, client):
        own = f"http://{client.base_url.netloc.decode()}"

        async def status(**headers):
            said = {name.replace("_", "-"): value for name, value in headers.items()}
            return (await client.post("/packs/web/hello/", headers=said)).status_code

        assert await status(origin=own) == 200
        assert await status(origin="http://evil.example") == 403
        assert await status(origin="null") == 403
        assert await status(sec_fetch_site="cross-site", sec_fetch_mode="no-cors") == 403
        assert await status(sec_fetch_site="same-origin", sec_fetch_mode="cors") == 200
        assert await status(host="evil.example") == 421
    async with web(allowed_origins=["https://app.example"]) as (_, client):
        answer = await client.get("/packs/web/hello/", headers={"origin": "https://app.example"})
        assert answer.headers["access-control-allow-origin"] == "https://app.example"


@pytest.mark.parametrize("place", PLACES)
async def test_a_handler_that_fails_leaks_nothing_and_the_server_goes_on(place, caplog):
    caplog.set_level(logging.WARNING)
    async with web(place) as (_, client):
        for name in ("fails", "exits", "nothing", *http_handlers.GARBAGE):
            answer = await client.get(f"/packs/web/{name}/")
            assert answer.status_code == 500, name
            assert answer.json() == {"error": "handler_failed", "error_description": "The handler failed"}
        for name in ("half", *http_handlers.CUT):
            with pytest.raises(httpx2.RemoteProtocolError):
                await client.get(f"/packs/web/{name}/")
        assert (await client.get("/packs/web/hello/")).status_code == 200

    assert "http-handler web:fails: it raised RuntimeError" in caplog.text


@pytest.mark.parametrize("place", PLACES)
async def test_a_handler_that_hangs_is_ended(place):
    async with web(place, limits=HTTPLimits(answer=0.2)) as (host, client):
        answer = await client.get("/packs/web/hangs/")
        entry = host.extensions.registry("http-handler").get_active("hangs")
        await until(lambda: entry._slot.users.count == 0)

    assert (answer.status_code, answer.json()["error"]) == (504, "handler_timeout")


@pytest.mark.parametrize("place", PLACES)
async def test_an_answer_without_end_is_ended(place):
    async with web(place, limits=HTTPLimits(stream=0.5)) as (host, client):
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.get("/packs/web/endless/")
        stream = await client.get("/packs/web/events/")
        assert stream.text == "data: first\n\n"
        entries = [host.extensions.registry("http-handler").get_active(id) for id in ("endless", "events")]
        await until(lambda: not any(one._slot.users.count for one in entries))


@pytest.mark.parametrize("name", ["endless", "events"])
@pytest.mark.parametrize("place", PLACES)
async def test_a_client_that_goes_away_ends_its_handler(place, name):
    async with web(place) as (host, client):
        entry = host.extensions.registry("http-handler").get_active(name)
        async with client.stream("GET", f"/packs/web/{name}/") as answer:
            await anext(answer.aiter_raw())
            assert entry._slot.users.count == 1
        await until(lambda: entry._slot.users.count == 0)
        async with asyncio.timeout(DEADLINE):
            while (await client.get("/packs/web/notes/")).json() != [f"{name} ended"]:
                await asyncio.sleep(0.01)


async def test_a_handler_that_ignores_its_end_is_left_and_counts_until_it_has_ended():
    limits = HTTPLimits(answer=0.1, requests_per_handler=1)
    async with web(limits=limits) as (host, client):
        entry = host.extensions.registry("http-handler").get_active("stubborn")
        assert (await client.get("/packs/web/stubborn/")).status_code == 504
        assert (await client.get("/packs/web/stubborn/")).status_code == 503
        assert entry._slot.users.count == 1
        for task in asyncio.all_tasks():
            if "_carried" in repr(task.get_coro()):
                task.cancel()
        await until(lambda: entry._slot.users.count == 0)


async def test_a_handler_that_only_reads_does_not_keep_others_from_running():
    async with web(limits=HTTPLimits(answer=3)) as (_, client):
        assert (await client.get("/packs/web/greedy/")).status_code == 504
        assert (await client.get("/packs/web/hello/")).status_code == 200


@pytest.mark.parametrize("place", PLACES)
async def test_what_a_handler_does_after_its_answer_is_done(place):
    async with web(place) as (_, client):
        assert (await client.get("/packs/web/later/", headers={"connection": "close"})).text == "now"
        async with asyncio.timeout(DEADLINE):
            while (await client.get("/packs/web/notes/")).json() != ["later"]:
                await asyncio.sleep(0.01)


async def test_a_request_for_headers_gets_no_body():
    async with web() as (_, client):
        answer = await client.head("/packs/web/hello/")
        assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, b"", "application/json")


async def test_a_handler_within_the_app_of_a_parent_knows_its_address():
    async with placed("inline", "http_handlers") as entry, AgentOS(extension_manifest=[entry]) as host:
        app = http_app(host, verifier=None, allowed_hosts=["127.0.0.1"])
        parent = Starlette(routes=[Mount("/tools", app)])
        transport = httpx2.ASGITransport(parent, client=("127.0.0.1", 1))
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
        ):
            assert (await client.get("/tools/packs/web/site/a/b")).text == "inner b /tools/packs/web/site/a/x"


async def test_a_body_that_is_too_large_never_reaches_a_handler():
    async with web(limits=HTTPLimits(body=100)) as (_, client):
        assert (await client.post("/packs/web/hello/", content=b"x" * 100)).json()["size"] == 100
        assert (await client.post("/packs/web/hello/", content=b"x" * 101)).status_code == 413


async def test_one_handler_gets_its_share_of_the_requests():
    async with web(limits=HTTPLimits(requests_per_handler=2)) as (host, client):
        entry = host.extensions.registry("http-handler").get_active("hangs")
        waiting = [asyncio.create_task(client.get("/packs/web/hangs/")) for _ in range(2)]
        await until(lambda: entry._slot.users.count == 2)
        assert (await client.get("/packs/web/hangs/")).status_code == 503
        assert (await client.get("/packs/web/hello/")).status_code == 200
        for one in waiting:
            one.cancel()
        await until(lambda: entry._slot.users.count == 0)


async def test_a_stream_ends_with_its_token():
    tokens = Tokens()
    async with (
        web(verifier=tokens, limits=HTTPLimits(recheck=0.1)) as (_, client),
        client.stream("GET", "/packs/web/events/", headers=GOOD) as answer,
    ):
        tokens.is_valid = False
        assert await answer.aread() == b"data: first\n\n"


async def test_a_stream_ends_when_the_server_stops():
    async with web() as (host, client):
        ready = asyncio.get_running_loop().create_future()
        server = asyncio.create_task(serve_http(host, port=0, ready=ready.set_result))
        url = (await ready).replace("/mcp", "/packs/web/events/")
        async with client.stream("GET", url) as answer:
            parts = answer.aiter_raw()
            await anext(parts)
            server.cancel()
            assert [part async for part in parts] == []
        with pytest.raises(asyncio.CancelledError):
            await server


def page(text, **fields):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": text})

    return Descriptor("http-handler", "page", app, **fields)


async def test_a_handler_comes_and_goes_with_its_entry():
    closed = []
    gated = page(b"low", gate=lambda: closed[0] if closed else None)
    async with AgentOS() as host, serving(host) as client:

        async def seen():
            answers = [await client.get(f"/packs/{pack}/page/") for pack in ("low", "high")]
            return [one.text if one.status_code == 200 else one.status_code for one in answers]

        assert await seen() == [404, 404]
        await host.extensions.load_pack(ExtensionPack("low", "1", [gated]))
        assert await seen() == ["low", 404]
        await host.extensions.load_pack(ExtensionPack("high", "1", [page(b"high", priority=50)]))
        assert await seen() == [404, "high"]
        await host.extensions.set_override("http-handler", "high:page", {"enabled": False})
        assert await seen() == ["low", 404]
        closed.append("not now")
        await host.extensions.reconsider("http-handler", "page")
        assert await seen() == [404, 404]
        await host.extensions.unload("low")
        assert await seen() == [404, 404]


async def test_a_stream_ends_when_its_handler_leaves():
    async with web() as (host, client), client.stream("GET", "/packs/web/events/") as answer:
        await host.extensions.set_override("http-handler", "events", {"enabled": False})
        assert await answer.aread() == b"data: first\n\n"


async def _asgi_or_request(request):
    """Answer nothing."""


@pytest.mark.parametrize(
    ("payload", "id", "metadata", "fault"),
    [
        (5, "x", {}, "expected a function, got int"),
        (ExtensionPack, "x", {}, "got a class"),
        (lambda request: None, "x", {}, "not async"),
        (lambda scope, receive, send: None, "x", {}, "not async"),
        (lambda one, two: None, "x", {}, "expected a function of 1 arguments"),
        (_asgi_or_request, "a/b", {}, "its id is part of an address"),
        (_asgi_or_request, "..", {}, "its id is part of an address"),
        (_asgi_or_request, "x", {"public": "yes"}, "expected True or False"),
    ],
)
async def test_what_is_no_handler_is_refused(payload, id, metadata, fault):
    async with AgentOS() as host:
        with pytest.raises(DescriptorError, match=fault):
            await host.extensions.register(Descriptor("http-handler", id, payload, metadata=metadata))


class Unreadable:
    """An application that can't be looked at once it is loaded."""

    is_closed = False

    @property
    def __signature__(self):
        if self.is_closed:
            raise SystemExit("no parameters")

    async def __call__(self, scope, receive, send):
        raise SystemExit("no answer")


class Shy(ValueError):
    """Does not let its class be asked for."""

    @property
    def __class__(self):
        raise SystemExit("no class")


async def shy(request):
    raise Shy


@pytest.mark.parametrize("is_closed", [False, True])
async def test_a_handler_that_can_not_be_looked_at_costs_its_answer_alone(is_closed):
    bad = Unreadable()
    pack = ExtensionPack("web", "1", [Descriptor("http-handler", "bad", bad), Descriptor("http-handler", "shy", shy)])
    async with AgentOS() as host:
        await host.extensions.load_pack(pack)
        bad.is_closed = is_closed
        async with serving(host) as client:
            answers = [(await client.get(f"/packs/web/{name}/")).status_code for name in ("bad", "shy", "bad")]

    assert answers == [500, 500, 500]
