"""What a tool says of its own descriptor: the secrets it requires, and that it wraps."""

import pytest

from agentos import (
    PUBLIC,
    AgentOS,
    Descriptor,
    ExtensionManager,
    ExtensionPack,
    PackEntry,
    SecretRequirement,
    Tool,
    ToolDefinitionError,
    Toolset,
    tool,
)

KEY = SecretRequirement("geo.apiKey", env="GEO_API_KEY")


@tool(effect="read", required_access=("geo:read",), required_secrets=[KEY])
async def locate(place: str) -> str:
    """Find where on earth a place with this name is."""
    return place


def needs(offered):
    (descriptor,) = ExtensionPack("geo", descriptors=[offered]).descriptors
    return [need.id for need in descriptor.required_secrets], descriptor.wraps


class Locator:
    name = "locate"
    description = "Find where on earth a place with this name is."
    input_schema = {"type": "object"}
    effect = "read"
    required_access = PUBLIC
    required_secrets = ("geo.apiKey",)
    wraps = True

    def execute(self, args, context):
        return args


@pytest.mark.parametrize(
    ("offered", "said"),
    [
        (locate, (["geo.apiKey"], False)),
        (Toolset("geo", [locate]), (["geo.apiKey"], False)),
        (Descriptor("tool", "locate", locate), (["geo.apiKey"], False)),
        (Descriptor("tool", "locate", locate, required_secrets=["more"], wraps=True), (["more", "geo.apiKey"], True)),
        (Descriptor("tool", "locate", locate, required_secrets=[KEY]), (["geo.apiKey"], False)),
        (Locator(), (["geo.apiKey"], True)),
        (Descriptor("tool", "locate", Locator()), (["geo.apiKey"], True)),
    ],
)
def test_its_descriptor_says_so(offered, said):
    assert needs(offered) == said


async def test_it_is_gated_without_its_secret(monkeypatch):
    monkeypatch.delenv("GEO_API_KEY", raising=False)
    async with ExtensionManager() as manager:
        await manager.load_pack(ExtensionPack("geo", descriptors=[locate]))

        assert "set GEO_API_KEY" in manager.explain("tool", "locate").entries[0].reason


async def test_one_that_running_code_registers_is_gated_too(monkeypatch):
    monkeypatch.delenv("GEO_API_KEY", raising=False)
    async with AgentOS() as host:
        registered = await host.tools_service("geo").register_tool(locate)
        (synced,) = await host.tools_service("more").sync([locate])

    assert (registered.state, synced.state) == ("gated", "gated")


async def test_binding_a_handler_keeps_what_was_declared(monkeypatch):
    monkeypatch.delenv("GEO_API_KEY", raising=False)
    declared = Tool.from_schema(
        name="locate", description="Find it.", input_schema={"type": "object"}, effect="read", required_access=PUBLIC
    )

    def create_extension_pack():
        return ExtensionPack("geo", descriptors=[Descriptor("tool", "locate", declared, required_secrets=[KEY])])

    async with AgentOS() as host:
        permitted = PackEntry(factory=create_extension_pack, permissions=["tools:register"])
        await host.extensions.load(permitted)
        bound = await host.tools_service("geo").register_tool("locate", lambda args, context: "x")

    assert bound.state == "gated"


@pytest.mark.parametrize("wrong", [{"wraps": "yes"}, {"wraps": 1}])
def test_a_wrong_word_is_refused(wrong):
    with pytest.raises(ToolDefinitionError, match="expected True or False"):
        tool(effect="read", required_access=PUBLIC, **wrong)(lambda: None)


async def test_a_list_of_tools_says_what_access_each_requires():
    async with AgentOS(extension_secrets={"geo.apiKey": "a-real-value"}) as host:
        await host.extensions.load_pack(ExtensionPack("geo", descriptors=[locate]))
        (info,) = host.tools.list_available_tools()

    assert info.required_access == ("geo:read",)
