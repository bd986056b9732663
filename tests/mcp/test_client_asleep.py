"""Servers that are started when they are called: their tools are known from earlier runs, by accepted definitions."""

import asyncio

import attrs
import pytest
from bridging import FAST, bridge_of, call, manifest_of, plain, state_of
from mcp import Client

from agentos import AgentOS
from agentos.mcp import MCPServer
from agentos.mcp.client.manifest_servers import start_when_called


@pytest.fixture
def store(tmp_path):
    return tmp_path / "state.db"


def host_of(store, *, asleep=True, limits=FAST, **said):
    manifest = manifest_of({"plain": plain(**said)}, limits=limits)
    packs = start_when_called(manifest.packs) if asleep else manifest.packs
    return AgentOS(extension_manifest=attrs.evolve(manifest, packs=packs), store=store, budget=None, mode="auto")


async def seen(store, **said):
    """Run a host once that starts the server, so that its tools are known; return them."""
    async with host_of(store, asleep=False, **said) as host:
        return host.tools.list_available_tools()


@pytest.mark.parametrize("trust", [False, True])
async def test_the_tools_are_those_of_the_earlier_run(store, trust):
    before = await seen(store, trust=trust)
    async with host_of(store, trust=trust) as host:
        assert bridge_of(host).is_asleep
        assert sorted(host.tools.list_available_tools(), key=str) == sorted(before, key=str)
        assert ("Be brief." in host.tools.system_prompt()) is trust


async def test_the_first_call_starts_the_server_and_the_next_finds_it_started(store):
    await seen(store)
    async with host_of(store) as host:
        pids = [(await call(host, "pid")).content for _ in range(2)]

        assert pids[0] == pids[1]
        assert not bridge_of(host).is_asleep


async def test_calls_at_the_same_time_start_it_once(store):
    await seen(store)
    async with host_of(store) as host:
        results = await asyncio.gather(*(call(host, "pid") for _ in range(10)))

    assert len({one.content for one in results}) == 1


async def test_starting_changes_nothing_on_the_stacks(store):
    """A tool that is as it was accepted stays the entry that it is: calls under way go on."""
    await seen(store)
    async with host_of(store) as host:
        before = host.extensions.registry("tool").get_active("echo").payload
        await bridge_of(host).wake()

        assert host.extensions.registry("tool").get_active("echo").payload is before


async def test_a_server_that_was_started_so_follows_its_list(store):
    await seen(store)
    async with host_of(store) as host:
        await bridge_of(host).wake()
        await call(host, "change")
        while state_of(host, "echo")[0] != "gated":
            await asyncio.sleep(0)

        assert (await call(host, "echo", {"text": "x"})).error.type == "DefinitionChanged"


async def test_a_server_that_dies_is_gated_as_ever(store):
    await seen(store)
    async with host_of(store, limits=attrs.evolve(FAST, first_delay=60.0, longest_delay=60.0)) as host:
        assert (await call(host, "die")).error.type == "WorkerDied"
        assert state_of(host, "echo")[0] == "gated"


async def test_what_it_has_beside_tools_starts_it_for_a_client(store):
    await seen(store)
    async with host_of(store) as host:
        async with Client(MCPServer(host).server, mode="2026-07-28") as client:
            await client.list_prompts()

        assert not bridge_of(host).is_asleep


async def test_a_tool_that_the_operator_leaves_out_now_is_left_out(store):
    await seen(store)
    async with host_of(store, tools=["echo"]) as host:
        assert [one.name for one in host.tools.list_available_tools()] == ["echo"]
        assert bridge_of(host).is_asleep


async def test_another_prefix_is_another_name_and_the_server_is_started(store):
    await seen(store)
    async with host_of(store, prefix="p_") as host:
        assert not bridge_of(host).is_asleep
        assert (await call(host, "p_echo", {"text": "x"})).content == "x"


async def test_its_status_says_that_it_is_not_started(store):
    await seen(store)
    async with host_of(store) as host:
        assert bridge_of(host).status == "mcp/plain is not started; the first call of one of its tools starts it"
        await host.extensions.disable("mcp/plain")
        assert not bridge_of(host).is_asleep
