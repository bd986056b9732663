import pytest
from hypothesis import HealthCheck, settings

from agentos import ExtensionManager

settings.register_profile("agentos", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("agentos")


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def manager(anyio_backend):
    manager = ExtensionManager(drain_timeout=5)
    yield manager
    await manager.shutdown()
