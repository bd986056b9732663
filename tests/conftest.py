import pytest

from agentos import ExtensionManager


@pytest.fixture
async def manager(anyio_backend):
    manager = ExtensionManager(drain_timeout=5)
    yield manager
    await manager.shutdown()
