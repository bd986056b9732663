"""list_changed: told to clients of both eras when what is offered changes, and to nobody else."""

import asyncio
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.server.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged

import agentos.mcp.server.list_changed as changes
from agentos import PUBLIC, AgentOS, Descriptor, ExtensionPack, Override, SecretRequirement, Tool, Toolset
from agentos.mcp import MCPServer

sys.path.append(str(Path(__file__).parent))
import fixture_pack as pack

ERAS = ("legacy", "2026-07-28")
TOOLS, PROMPTS, RESOURCES = "tools", "prompts", "resources"
_KINDS = {
    types.ToolListChangedNotification: TOOLS,
    types.PromptListChangedNotification: PROMPTS,
    types.ResourceListChangedNotification: RESOURCES,
    ToolsListChanged: TOOLS,
    PromptsListChanged: PROMPTS,
    ResourcesListChanged: RESOURCES,
}


@pytest.fixture(params=ERAS)
def era(request):
    return request.param


@pytest.fixture
async def host(anyio_backend):
    async with pack.hosted() as host:
        yield host


@pytest.fixture
def server(host):
    return MCPServer(host)


def named(name="new", **fields):
    schema = {"type": "object", "properties": {}}
    made = {"description": name, "input_schema": schema, "effect": "read", "required_access": PUBLIC, **fields}
    return Tool.from_schema(name=name, execute=lambda args, context: name, **made)


class Told:
    """What a client heard, and a way to wait for it."""

    def __init__(self):
        self.kinds = []
        self.client = None

    def add(self, message):
        kind = _KINDS.get(type(message))
        if kind is not None:
            self.kinds.append(kind)

    async def until(self, *kinds):
        with anyio.fail_after(5):
            while self.kinds != list(kinds):
                await asyncio.sleep(0)

    async def settle(self):
        """Return when whatever is on its way has come."""
        await self.client.list_tools()
        for _ in range(20):
            await asyncio.sleep(0)


@asynccontextmanager
async def hearing(server, era, **options):
    """Connect a client that writes down what it hears, in the way of its era."""
    told = Told()

    async def handle(message):
        if era == "legacy":
            told.add(message)

    before = len(server._notifier._sessions)
    async with Client(server.server, mode=era, message_handler=handle, **options) as client:
        told.client = client
        if era == "legacy":
            with anyio.fail_after(5):
                while len(server._notifier._sessions) == before:
                    await asyncio.sleep(0)
            yield told
            return
        everything = {"tools_list_changed": True, "prompts_list_changed": True, "resources_list_changed": True}
        async with client.listen(**everything) as stream, anyio.create_task_group() as group:

            async def listen():
                async for event in stream:
                    told.add(event)

            group.start_soon(listen)
            yield told
            group.cancel_scope.cancel()


# -- what is told ----------------------------------------------------------------------------------------------------


async def test_a_pack_that_comes_and_goes_is_told(host, server, era):
    async with hearing(server, era) as told:
        await host.extensions.load_pack(ExtensionPack("new", "1", [named()]))
        await told.until(TOOLS, RESOURCES)
        assert "new" in {tool.name for tool in (await told.client.list_tools()).tools}
        await host.extensions.unload("new")
        await told.until(TOOLS, RESOURCES, TOOLS, RESOURCES)


async def test_an_override_is_told(host, server, era):
    async with hearing(server, era) as told:
        await host.extensions.set_override("tool", "add", Override(enabled=False))
        await told.until(TOOLS)


async def test_a_secret_that_arrives_is_told(host, server, era):
    gated = Descriptor("tool", "new", named(), required_secrets=(SecretRequirement("api.key"),))
    await host.extensions.load_pack(ExtensionPack("gated", "1", [gated]))
    async with hearing(server, era) as told:
        await host.extensions.set_secret("api.key", "a-value-that-is-not-told")
        await told.until(TOOLS, RESOURCES)


async def test_a_definition_that_a_person_accepts_is_told(anyio_backend, era, tmp_path):
    store = f"sqlite:///{tmp_path / 'store.db'}"
    async with AgentOS(store=store) as first:
        await first.extensions.load_pack(ExtensionPack("new", "1", [named()]))
    async with AgentOS(store=store) as host:
        await host.extensions.load_pack(ExtensionPack("new", "2", [named(description="something else now")]))
        async with hearing(MCPServer(host), era) as told:
            assert "new" not in {tool.name for tool in (await told.client.list_tools()).tools}
            await host.pins.accept("new:new")
            await told.until(TOOLS, RESOURCES)


async def test_prompts_that_come_are_told(host, server, era):
    async with hearing(server, era) as told:
        tools = Toolset("set", [named()], system_prompt="Mind the gap.")
        await host.extensions.load_pack(ExtensionPack("new", "1", [tools]))
        await told.until(TOOLS, PROMPTS, RESOURCES)


@asynccontextmanager
async def reading(server, *uris):
    """Subscribe to documents; give what is told of them, in a list that grows."""
    told = []
    async with Client(server.server, mode="2026-07-28") as client:
        listening = client.listen(tools_list_changed=True, resource_subscriptions=uris)
        async with listening as stream, anyio.create_task_group() as group:

            async def listen():
                async for event in stream:
                    told.append(getattr(event, "uri", TOOLS))

            group.start_soon(listen)
            yield told
            group.cancel_scope.cancel()


async def heard(told, count):
    with anyio.fail_after(5):
        while len(told) < count:
            await asyncio.sleep(0)
    return told


async def test_a_document_that_changes_is_told_to_who_subscribed_to_it(host, server):
    uris = ["agentos://packs/fixture", "agentos://tools/add", "agentos://tools/words", "agentos://packs/other", "x:y"]
    async with reading(server, *uris) as told:
        await host.extensions.set_override("tool", "add", Override(enabled=False))

        assert await heard(told, 3) == [TOOLS, *uris[:2]]


async def test_a_document_is_told_when_its_pack_comes(host, server):
    async with reading(server, "agentos://packs/new%2Fone") as told:
        await host.extensions.load_pack(ExtensionPack("new/one", "1", [named()]))

        assert await heard(told, 2) == [TOOLS, "agentos://packs/new%2Fone"]


async def test_what_somebody_may_not_call_changes_none_of_their_documents(host):
    server = MCPServer(host, principal=pack.USER)
    async with reading(server, "agentos://packs/secret", "agentos://tools/hidden", "agentos://packs/open") as told:
        await host.extensions.load_pack(ExtensionPack("secret", "1", [named("hidden", required_access="nobody")]))
        await host.extensions.load_pack(ExtensionPack("open", "1", [named()]))

        assert await heard(told, 3) == [TOOLS, TOOLS, "agentos://packs/open"]


async def test_many_tools_at_once_are_one_change(host, server, era):
    async with hearing(server, era) as told:
        await host.extensions.load_pack(pack.many(50))
        await told.settle()

        assert told.kinds == [TOOLS, RESOURCES]


async def test_a_tool_that_stays_in_the_shadow_is_no_change(host, server, era):
    async with hearing(server, era) as told:
        await host.extensions.load_pack(ExtensionPack("below", "1", [named("add")]), priority=-5)
        await told.settle()

        assert told.kinds == []


async def test_another_tool_of_the_same_name_is_a_change(host, server, era):
    async with hearing(server, era) as told:
        await host.extensions.load_pack(ExtensionPack("above", "1", [named("add")]))
        await told.until(TOOLS, RESOURCES)


async def test_what_is_no_tool_is_no_change(host, server, era):
    async with hearing(server, era) as told:
        others = [Descriptor("mood", "x", object()), Descriptor("tool", "thing", object())]
        await host.extensions.load_pack(ExtensionPack("other", "1", others))
        await told.settle()

        assert told.kinds == []


async def test_a_client_hears_only_of_what_it_subscribed_to(host, server):
    async with Client(server.server, mode="2026-07-28") as client, client.listen(prompts_list_changed=True) as stream:
        await host.extensions.load_pack(ExtensionPack("new", "1", [named()]))
        await host.extensions.load_pack(ExtensionPack("p", "1", [named("p", system_prompt="Hello.")]))

        assert await anext(stream) == PromptsListChanged()


async def test_the_server_says_that_it_tells_of_changes(server):
    async with Client(server.server, mode="legacy") as client:
        capabilities = client.server_capabilities

    assert capabilities.tools.list_changed
    assert capabilities.prompts.list_changed
    assert capabilities.resources.list_changed


async def test_the_server_says_so_in_the_new_era(server):
    async with Client(server.server, mode="auto") as client:
        assert client.protocol_version == "2026-07-28"
        assert client.server_capabilities.tools.list_changed


# -- who is told, and what it costs ----------------------------------------------------------------------------------


async def test_every_client_is_told(host, server, era):
    async with hearing(server, era) as one, hearing(server, era) as two:
        await host.extensions.load_pack(ExtensionPack("new", "1", [named()]))
        await one.until(TOOLS, RESOURCES)
        await two.until(TOOLS, RESOURCES)


async def test_nobody_listens_to_the_hosts_events(host, server, era):
    """A listener there would make every call dearer."""
    async with hearing(server, era):
        assert not host.extensions.events.is_heard


async def test_a_client_that_is_gone_is_forgotten(host, server, era):
    async with hearing(server, era):
        pass

    assert server._notifier._sessions == {}
    assert len(server._notifier._bus) == 0
    assert changes._relay_of(host.extensions).listeners == set()


async def test_changes_without_clients_cost_nothing(host, server):
    await host.extensions.load_pack(ExtensionPack("new", "1", [named()]))

    assert server._notifier._snapshot is None


async def test_one_manager_has_one_watcher_however_many_servers_there_were(host, era):
    before = len(host.extensions._registries._watchers)
    for _ in range(3):
        async with hearing(MCPServer(host), era):
            pass

    assert len(host.extensions._registries._watchers) <= before + 1


async def test_a_client_that_introduces_itself_twice_is_told_once(host, server):
    async with hearing(server, "legacy") as told:
        await told.client.session.send_notification(types.InitializedNotification())
        await told.settle()
        await host.extensions.load_pack(ExtensionPack("new", "1", [named()]))
        await told.settle()

        assert told.kinds == [TOOLS, RESOURCES]


class Deaf:
    """A connection to a client that does not read."""

    def __init__(self):
        self.tries = []

    async def notify(self, method, params, opts=None):
        self.tries.append(method)
        await asyncio.Event().wait()


async def test_a_client_that_does_not_read_holds_up_nobody(host, server, monkeypatch):
    monkeypatch.setattr(changes, "SEND_TIMEOUT", 0.01)
    async with hearing(server, "legacy") as told:
        (connection,) = server._notifier._sessions
        connection.outbound = deaf = Deaf()
        await host.extensions.load_pack(ExtensionPack("new", "1", [named()]))
        with anyio.fail_after(5):
            while len(deaf.tries) < 2:
                await asyncio.sleep(0.001)

        assert (await told.client.call_tool("new", {})).content[0].text == "new"


async def test_a_client_that_goes_away_while_it_is_told_leaves_nothing_behind(host, server):
    before = asyncio.all_tasks()
    async with hearing(server, "legacy"):
        (connection,) = server._notifier._sessions
        connection.outbound = deaf = Deaf()
        await host.extensions.load_pack(ExtensionPack("new", "1", [named()]))
        with anyio.fail_after(5):
            while not deaf.tries:
                await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0)

    assert asyncio.all_tasks() == before


async def test_closing_the_server_ends_streams_in_good_order(server):
    async with Client(server.server, mode="2026-07-28") as client, client.listen(tools_list_changed=True) as stream:
        await server.close()

        assert [event async for event in stream] == []


async def test_closing_the_server_forgets_its_sessions(host, server):
    async with hearing(server, "legacy") as told:
        await server.close()
        await host.extensions.load_pack(ExtensionPack("new", "1", [named()]))
        await told.settle()

        assert told.kinds == []


async def test_an_event_that_is_published_reaches_every_stream(server):
    async with Client(server.server, mode="2026-07-28") as client, client.listen(tools_list_changed=True) as stream:
        await server._notifier._bus.publish(ToolsListChanged())

        assert await anext(stream) == ToolsListChanged()
