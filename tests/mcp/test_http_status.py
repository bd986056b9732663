"""Whether a server lives and takes requests, and figures about its work: who may read what, and what they say."""

import asyncio
import re

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agentos import PUBLIC, AgentOS, Principal, ToolCall, tool
from agentos.mcp.auth import TokenFile
from agentos.mcp.http.serving import http_app, serve_http

ALICE = Principal("alice", access={"mail.read"})
SECRET = "the-word-nobody-may-see"


@tool(effect="read", required_access=PUBLIC)
async def whisper(word: str) -> str:
    """Say a word."""
    return word


@tool(effect="read", required_access=PUBLIC)
async def stumble() -> str:
    """Fail."""
    raise ValueError(SECRET)


@pytest.fixture
async def host(anyio_backend):
    async with AgentOS(mode="auto", budget=None) as host:
        await host.tools_service().sync([whisper, stumble])
        yield host


def client_of(app, base="http://127.0.0.1"):
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app, client=("127.0.0.1", 1)), base_url=base)


@pytest.fixture
def tokens(tmp_path):
    return TokenFile(tmp_path / "tokens.json")


def figures_of(text):
    """Return the samples of a text in the format of Prometheus, each with its type told before."""
    assert set(re.findall(r"^(\w+?)(?:_sum|_count)?[{ ]", text, re.MULTILINE)) <= set(
        re.findall(r"^# TYPE (\w+) (?:counter|gauge|summary)$", text, re.MULTILINE)
    )
    return {name: float(value) for name, value in re.findall(r"^([a-z][^ ]*) (\S+)$", text, re.MULTILINE)}


@pytest.mark.parametrize("path", ["/health", "/ready"])
@pytest.mark.parametrize("base", ["http://127.0.0.1", "http://10.1.2.3:8000"])
async def test_probes_need_no_token_and_no_name(host, tokens, path, base):
    app = http_app(host, verifier=tokens, resource_url="https://tools.example/mcp")
    async with app.router.lifespan_context(app), client_of(app, base) as client:
        answer = await client.get(path)

    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert answer.json()["status"] in ("ok", "ready")


async def test_an_app_that_does_not_run_lives_and_is_not_ready(host, tokens):
    app = http_app(host, verifier=tokens)
    async with client_of(app) as client:
        before = [(await client.get(path)).status_code for path in ("/health", "/ready")]
        async with app.router.lifespan_context(app):
            during = [(await client.get(path)).status_code for path in ("/health", "/ready")]
            await app.state.end_streams()
            ending = [(await client.get(path)).status_code for path in ("/health", "/ready")]

    assert (before, during, ending) == ([200, 503], [200, 200], [200, 503])


async def test_probes_only_read(host, tokens):
    app = http_app(host, verifier=tokens)
    async with client_of(app) as client:
        assert [(await client.post(path)).status_code for path in ("/health", "/ready", "/metrics")] == [405] * 3


async def test_figures_are_for_those_with_a_token(host, tokens):
    app = http_app(host, verifier=tokens)
    token = {"authorization": f"Bearer {tokens.issue(ALICE)}"}
    async with app.router.lifespan_context(app), client_of(app) as client:
        refused, told = await client.get("/metrics"), await client.get("/metrics", headers=token)

    assert (refused.status_code, "agentos_" in refused.text) == (401, False)
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert (told.status_code, told.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")


async def test_without_tokens_figures_are_for_this_machine(host):
    app = http_app(host, verifier=None)
    async with app.router.lifespan_context(app), client_of(app) as client:
        codes = [(await client.get("/metrics")).status_code]
        codes.append((await client.get("/metrics", headers={"x-forwarded-for": "10.0.0.1"})).status_code)

    assert codes == [200, 403]


@pytest.mark.parametrize(("readers", "status"), [("anybody", 200), ("off", 404)])
async def test_who_may_read_figures_can_be_set(host, tokens, readers, status):
    app = http_app(host, verifier=tokens, metrics=readers)
    async with client_of(app) as client:
        assert (await client.get("/metrics")).status_code == status


def test_other_readers_are_unknown(tokens):
    with pytest.raises(ValueError, match="metrics: expected 'callers', 'anybody', 'off', got 'all'"):
        http_app(AgentOS(), verifier=tokens, metrics="all")


async def test_figures_of_another_host_name_are_refused(host, tokens):
    app = http_app(host, verifier=tokens, metrics="anybody")
    async with client_of(app, "http://evil.example") as client:
        assert (await client.get("/metrics")).status_code == 421


async def test_figures_count_calls_requests_and_sessions_and_name_nobody(host, tokens):
    ready = asyncio.get_running_loop().create_future()
    server = asyncio.create_task(serve_http(host, port=0, verifier=tokens, ready=ready.set_result))
    address, token = await ready, tokens.issue(ALICE)
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, trust_env=False) as http:
        async with Client(streamable_http_client(address, http_client=http), mode="legacy") as client:
            await client.call_tool("whisper", {"word": SECRET})
            await client.call_tool("stumble", {})
            during = (await http.get(address.removesuffix("/mcp") + "/metrics")).text
        async with httpx2.AsyncClient(trust_env=False) as nobody:
            await nobody.post(address, headers={"content-type": "application/json"})
        after = figures_of((await http.get(address.removesuffix("/mcp") + "/metrics")).text)
    server.cancel()
    await asyncio.gather(server, return_exceptions=True)
    told = figures_of(during)

    assert told['agentos_tool_calls_total{outcome="success"}'] == 1
    assert told['agentos_tool_calls_total{outcome="ToolRaised"}'] == 1
    assert told["agentos_tool_call_seconds_count"] == 2
    assert (told["agentos_tools"], told["agentos_mcp_sessions"]) == (2, 1)
    assert told['agentos_http_requests_total{status="200"}'] >= 3
    assert after['agentos_http_requests_total{status="401"}'] == 1
    assert [word for word in (SECRET, "whisper", "stumble", "alice", token) if word in during] == []


async def test_an_app_that_has_ended_does_not_listen_any_more(host, tokens):
    app = http_app(host, verifier=tokens, metrics="anybody")
    async with app.router.lifespan_context(app):
        await host.tools.process_tool_call(ToolCall("whisper", {"word": "one"}))
    await host.tools.process_tool_call(ToolCall("whisper", {"word": "two"}))
    async with client_of(app) as client:
        told = figures_of((await client.get("/metrics")).text)

    assert told["agentos_tool_call_seconds_count"] == 1


async def test_an_endpoint_may_have_the_path_of_a_probe(host):
    app = http_app(host, verifier=None, path="/health")
    async with app.router.lifespan_context(app), client_of(app) as client:
        assert (await client.get("/health", headers={"host": "evil.example"})).status_code == 421
        assert (await client.put("/health")).status_code == 405
        assert (await client.post("/health", headers={"content-type": "text/plain"})).status_code == 415
