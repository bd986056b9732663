"""Serve what the workflows use on loopback: a search engine, pages, and a server that takes mail."""

import importlib.util
import json
from pathlib import Path

import pytest
from loopback import Site, serving

from agentos import AgentOS

PACKS = Path(__file__).parents[2]


def _of_tests(pack, name):
    spec = importlib.util.spec_from_file_location(f"{pack}_{name}", PACKS / pack / "tests" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RULES = ["incidents:read", "incidents:write", "email:send", "files:read"]
SmtpServer = _of_tests("email", "smtp_server").SmtpServer


@pytest.fixture
async def smtp(anyio_backend):
    async with SmtpServer().serving() as server:
        yield server


@pytest.fixture
def site():
    """Serve pages."""
    with serving(Site()) as made:
        yield made


@pytest.fixture
def search():
    """Serve a search that finds what is in `found`. Its address is a secret, so pages are elsewhere."""
    with serving(Site()) as made:
        made.found = []

        def answer(_):
            results = [{"title": title, "url": url, "content": "", "engine": "x"} for title, url in made.found]
            said = {"query": "q", "number_of_results": 0, "results": results, "unresponsive_engines": []}
            return 200, {"Content-Type": "application/json"}, json.dumps(said).encode()

        made.pages["/search"] = answer
        yield made


@pytest.fixture
def hosting(tmp_path):
    """Return what makes a host with the pack and *packs* beside it, on a store in a file."""

    def host(*packs, options=None, **settings):
        entries = [*packs, {"module": "agentos_pack_recipes", "options": options or {}, "required": True}]
        principals = {"runner": {"kind": "service", "access": RULES}}
        manifest = {"packs": entries, "principals": principals}
        return AgentOS(extension_manifest=manifest, store=tmp_path / "store.db", **{"mode": "auto", **settings})

    return host
