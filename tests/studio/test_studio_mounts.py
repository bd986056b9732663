"""The studio beside MCP: whoever has a token signs in with it, and is what the token stands for."""

import contextlib

import httpx
import pytest
from studios import ANN, evil_host

from agentos import Principal
from agentos.mcp import http_app
from agentos.mcp.auth import TokenFile
from agentos.studio import studio_app

BASE = "http://127.0.0.1"
OLGA = Principal("olga", access={"studio:operate", "notes:read"})


@contextlib.asynccontextmanager
async def mounted(verifier):
    """Give a client of a server that has the studio at /studio."""
    async with evil_host() as host:

        def make(bearer):
            return studio_app(host, bearer=bearer, checks_host=False)

        app = http_app(host, verifier=verifier, resource_url=f"{BASE}/mcp", mounts={"/studio": make})
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url=BASE, follow_redirects=True) as client,
        ):
            yield client


@pytest.fixture
def tokens(tmp_path):
    return TokenFile(tmp_path / "tokens.json", principals={"olga": OLGA, "ann": ANN})


async def enter(client, token):
    return await client.post("/studio/sign-in", data={"token": token}, headers={"Origin": BASE})


async def test_a_token_signs_in_as_the_principal_it_stands_for(tokens):
    async with mounted(tokens) as client:
        page = await enter(client, tokens.issue(OLGA))
        audit = await client.get("/studio/audit")

    assert "<b>olga</b>" in page.text
    assert audit.status_code == 200


async def test_a_narrowed_token_sees_no_more_than_it_leaves(tokens):
    async with mounted(tokens) as client:
        page = await enter(client, tokens.issue(OLGA, ["notes:read"]))
        audit = await client.get("/studio/audit")

    assert page.url.path == "/studio/tools"
    assert audit.status_code == 403


async def test_a_token_that_is_taken_back_is_signed_out_at_once(tokens):
    async with mounted(tokens) as client:
        await enter(client, tokens.issue(OLGA))
        tokens.revoke(tokens.entries()[0].id)
        page = await client.get("/studio/audit")

    assert page.url.path == "/studio/sign-in"


async def test_what_is_no_token_lets_nobody_in(tokens):
    async with mounted(tokens) as client:
        page = await enter(client, "guess")

    assert page.status_code == 401
    assert "That token is invalid" in page.text


async def test_everything_stays_below_the_place_where_it_is_mounted(tokens):
    async with mounted(tokens) as client:
        page = (await enter(client, tokens.issue(OLGA))).text
        style = await client.get("/studio/static/studio.css")

    assert 'href="/studio/static/studio.css"' in page
    assert 'action="/studio/sign-out"' in page
    assert style.status_code == 200
