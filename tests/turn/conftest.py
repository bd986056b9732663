"""What the tests of turns share: a host with a few tools, and an endpoint for each provider."""

import pytest
from model_wires import WIRES, serving, tools_of

from agentos import AgentOS


@pytest.fixture(params=WIRES)
def wire(request):
    return WIRES[request.param]


@pytest.fixture
def endpoint(wire):
    with serving(wire) as endpoint:
        yield endpoint
    assert endpoint.faults == []


@pytest.fixture
async def client(wire, endpoint, anyio_backend):
    async with wire.client(endpoint, is_async=True) as client:
        yield client


@pytest.fixture
def log():
    return []


@pytest.fixture
async def host(anyio_backend, log):
    async with AgentOS() as host:
        await host.tools_service().sync(tools_of(log))
        yield host
