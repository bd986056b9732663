"""Servers whose tools have the same names: told apart by a prefix, or reached by their fully-qualified ids."""

import attrs
import pytest
from bridging import FAST, bridge_of, bridged, call, eventually, hostile, plain, state_of

from agentos import PUBLIC, ExtensionPack, ManifestError, PackEntry, Principal, Tool
from agentos.mcp.client.manifest_servers import parse_servers

TWO = {"one": plain(), "two": plain()}


def names_of(host, owner):
    prefix = f"mcp/{owner}:"
    infos = host.tools.list_available_tools()
    return {one.name for one in infos if one.fully_qualified_id.startswith(prefix)}


# -- with a prefix -----------------------------------------------------------------------------------------------------


async def test_a_prefix_stands_before_the_name_of_every_tool(anyio_backend):
    async with bridged({"one": plain(prefix="one_"), "two": plain(prefix="two.")}) as host:
        results = [await call(host, name, {"text": name}) for name in ("one_echo", "two.echo", "mcp/two:two.echo")]

        assert [one.meta["tool"] for one in results] == ["mcp/one:one_echo", "mcp/two:two.echo", "mcp/two:two.echo"]
        assert [one.content for one in results] == ["one_echo", "two.echo", "mcp/two:two.echo"]
        assert all(name.startswith("one_") for name in names_of(host, "one"))


async def test_allow_list_and_effects_name_tools_as_the_server_does(anyio_backend):
    said = plain(prefix="p_", tools=["ec*", "add"], effects={"echo": "read", "a*": "mutate"})
    async with bridged({"one": said}) as host:
        effects = {one.name: one.effect for one in host.tools.list_available_tools()}

    assert effects == {"p_echo": "read", "p_add": "mutate"}


async def test_tools_with_a_prefix_follow_the_servers_list(anyio_backend):
    async with bridged({"plain": plain(prefix="p_")}) as host:
        kept = host.extensions.registry("tool").get_active("p_echo").payload
        await call(host, "p_grow")
        await eventually(lambda: "p_grown14" in names_of(host, "plain"))

        assert host.extensions.registry("tool").get_active("p_echo").payload is kept


async def test_a_name_that_is_too_long_with_the_prefix_is_left_out_with_the_reason(anyio_backend):
    async with bridged({"plain": hostile("long_name", prefix="p" * 29)}) as host:
        (skipped,) = bridge_of(host).skipped

        assert (skipped.name, "its name has more than 128 characters" in skipped.reason) == ("n" * 100, True)
        assert names_of(host, "plain") != set()


@pytest.mark.parametrize("prefix", ["", "a b", "mcp:", "x" * 65, "ü_", "a\n", 5])
def test_a_prefix_that_fits_no_name_is_refused(prefix):
    with pytest.raises(ManifestError) as caught:
        parse_servers({"s": {"command": "x", "prefix": prefix}})

    assert [problem.path for problem in caught.value.problems] == ["mcpServers.s.prefix"]


# -- without one -------------------------------------------------------------------------------------------------------


async def test_the_full_id_reaches_the_tool_of_the_server_that_is_shadowed(anyio_backend):
    async with bridged(TWO) as host:
        pids = [(await call(host, name)).content for name in ("pid", "mcp/one:pid", "mcp/two:pid")]

    assert pids[0] == pids[2] != pids[1]


async def test_the_load_report_tells_which_tools_are_in_the_shadow_of_another_servers(anyio_backend):
    async with bridged(TWO) as host:
        (trouble,) = host.extensions.report.troubles

    assert (trouble.level, trouble.about) == ("warning", "server one")
    assert trouble.message == (
        "mcp/two has tools of the same names, which are in force: add, change, die, echo, environment and 9 more"
    )
    assert trouble.cure == "set mcpServers.one.prefix, or call them as mcp/one:add"


async def test_with_a_prefix_there_is_nothing_to_tell(anyio_backend):
    async with bridged({"one": plain(prefix="one_"), "two": plain()}) as host:
        assert host.extensions.report.troubles == []


async def test_a_pack_that_takes_the_place_of_a_servers_tool_is_meant_to(anyio_backend):
    own = Tool.from_schema(
        name="echo",
        description="Say it otherwise.",
        input_schema={"type": "object"},
        effect="read",
        required_access=PUBLIC,
        execute=lambda args, context: "mine",
    )
    async with bridged({"one": plain()}, packs=[PackEntry(factory=lambda: ExtensionPack("own", "1.0", [own]))]) as host:
        assert host.extensions.report.troubles == []
        assert (await call(host, "echo")).content == "mine"
        assert (await call(host, "mcp/one:echo", {"text": "theirs"})).content == "theirs"


async def test_a_principal_of_one_server_reaches_that_one(anyio_backend):
    ann = Principal("ann", access={"mcp:one"})
    async with bridged(TWO) as host:
        reached = await host.tools.process_tool_call({"name": "mcp/one:echo", "arguments": {"text": "x"}}, ann)
        hidden = await host.tools.process_tool_call({"name": "mcp/two:echo", "arguments": {"text": "x"}}, ann)

    assert (reached.success, hidden.error.type) == (True, "UnknownTool")


async def test_a_shadowed_tool_whose_server_is_away_is_out_of_reach_with_the_reason(anyio_backend):
    async with bridged(TWO, limits=attrs.evolve(FAST, first_delay=60.0, longest_delay=60.0)) as host:
        died = await call(host, "mcp/one:die")
        state, _ = state_of(host, "echo", "mcp/one")
        gone = await call(host, "mcp/one:echo", {"text": "x"})

    assert (died.error.type, state, gone.error.type) == ("WorkerDied", "gated", "WorkerDied")
    assert "mcp/one is not connected" in gone.error.message
