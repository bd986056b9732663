"""Serve the loopback sites that its tests ask."""

from contextlib import asynccontextmanager

import pytest
from loopback import Site, serving

from agentos import AgentOS


@pytest.fixture
def site():
    with serving(Site()) as made:
        made.pages["/"] = (200, {"Content-Type": "text/plain"}, b"hello")
        yield made


@pytest.fixture
def other():
    with serving(Site()) as made:
        made.pages["/"] = (200, {"Content-Type": "text/plain"}, b"the other")
        yield made


@pytest.fixture
def hosting():
    """Return a context manager for a host with the pack, opened to *sites*."""

    @asynccontextmanager
    async def host(*sites, secrets=None, mode="auto", **options):
        places = [f"127.0.0.1:{site.server_port}" for site in sites]
        entry = {
            "module": "agentos_pack_http_request",
            "options": {"allow": places, "allowPrivate": places, **options},
            "required": True,
        }
        async with AgentOS(extension_manifest={"packs": [entry]}, extension_secrets=secrets or {}, mode=mode) as made:
            yield made

    return host
