import pytest
from store_fixtures import data_folder, postgres_server, postgres_url, sqlite_url, store_url

from agentos.store import Store

__all__ = ["data_folder", "postgres_server", "postgres_url", "sqlite_url", "store_url"]


@pytest.fixture
async def store(store_url):
    """Return a durable store, of each kind in turn."""
    store = Store(store_url)
    yield store
    await store.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def any_store(request):
    """Return a store of each kind in turn, in memory too."""
    where = None if request.param == "memory" else request.getfixturevalue(f"{request.param}_url")
    store = Store(where)
    yield store
    await store.close()
