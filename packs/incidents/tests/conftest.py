"""Hand out hosts with the pack and people who use them."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from agentos import AgentOS, Principal, ToolCall


@pytest.fixture
def people():
    """Return who may read, who may also write, and who may do everything with incidents."""
    return SimpleNamespace(
        ria=Principal("ria", access={"incidents:read"}),
        wim=Principal("wim", access={"incidents:read", "incidents:write"}),
        ada=Principal("ada", access={"incidents:read", "incidents:write", "incidents:admin"}),
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "incidents.db"


@pytest.fixture
def hosting(path):
    """Return a context manager for a host with the pack on one file."""

    @asynccontextmanager
    async def host(**settings):
        entry = {"module": "agentos_pack_incidents", "options": {"path": str(path)}, "required": True}
        async with AgentOS(extension_manifest={"packs": [entry]}, **settings) as made:
            yield made

    return host


@pytest.fixture
def call():
    """Return a function that calls a tool of a host for a principal."""

    async def calling(host, name, principal=None, **arguments):
        return await host.tools.process_tool_call(ToolCall(name, arguments), principal)

    return calling


@pytest.fixture
def opened(call):
    """Return a function that opens an incident and returns its output, in a host that does not ask."""

    async def opening(host, title="Login fails", severity="high", **more):
        result = await call(host, "incident_open", title=title, severity=severity, **more)
        assert result.success, result.content
        return result.output

    return opening
