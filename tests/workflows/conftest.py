import asyncio

import pytest
from store_fixtures import data_folder, postgres_server, postgres_url, sqlite_url, store_url

from agentos import AgentOS, ExtensionPack

__all__ = ["data_folder", "postgres_server", "postgres_url", "sqlite_url", "store_url"]

PRINCIPALS = {"runner": {"kind": "service", "access": ["run"]}, "ann": {"access": ["run"]}, "bob": {}}


class News:
    """The events of runs, to wait for."""

    def __init__(self, host):
        self.told = []
        self._changed = asyncio.Event()
        host.extensions.on(self._hear)

    def _hear(self, event):
        if event.type.startswith("workflow:"):
            self.told.append(event)
            self._changed.set()

    async def until(self, type, run=None, count=1):
        """Return the event of that type, the *count*-th, once it is told."""
        while len(found := [one for one in self.told if one.type == type and (run is None or one.run == run)]) < count:
            self._changed.clear()
            await asyncio.wait_for(self._changed.wait(), 60)
        return found[count - 1]


@pytest.fixture
def make_host(anyio_backend):
    """Return what makes a host with a pack of given things, on a store."""

    def make(*offered, store=None, principals=PRINCIPALS, **settings):
        pack = ExtensionPack("p", "1.0.0", list(offered))
        manifest = {"packs": [{"factory": pack}], "principals": principals, **settings.pop("manifest", {})}
        host = AgentOS(extension_manifest=manifest, store=store, **settings)
        host.news = News(host)
        return host

    return make


@pytest.fixture
def news_of():
    """Return what hears the events of a host's runs, from when it is called."""
    return News
