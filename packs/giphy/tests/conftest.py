"""Serve a GIPHY of our own on loopback."""

import json
from contextlib import asynccontextmanager

import pytest
from loopback import Site, serving

from agentos import AgentOS


@pytest.fixture
def giphy():
    """Serve what `giphy.found` holds, in the form of GIPHY's own answers."""
    with serving(Site()) as site:
        site.found = []
        site.total = None

        def answer(request):
            total = len(site.found) if site.total is None else site.total
            page = {"total_count": total, "count": len(site.found), "offset": 0}
            body = {"data": site.found, "pagination": page, "meta": {"status": 200, "msg": "OK", "response_id": "x"}}
            return 200, {"Content-Type": "application/json"}, json.dumps(body).encode()

        site.pages["/v1/gifs/search"] = answer
        yield site


@pytest.fixture
def hosting(giphy):
    """Return a context manager for a host with the pack, on the GIPHY of ours."""

    @asynccontextmanager
    async def host(key="gk-not-for-others", **options):
        entry = {"module": "agentos_pack_giphy", "options": {"baseUrl": giphy.url, **options}, "required": True}
        secrets = {} if key is None else {"giphy.apiKey": key}
        async with AgentOS(extension_manifest={"packs": [entry]}, extension_secrets=secrets) as made:
            yield made

    return host
