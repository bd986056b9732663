"""Names, owners, lists: who offers what to whom, and what happens when that changes."""

import asyncio

import pytest
from kit import Boom, Recorder

from agentos import (
    PUBLIC,
    AgentOS,
    Descriptor,
    DescriptorError,
    ExtensionPack,
    NotPermittedError,
    PackEntry,
    PackLoadError,
    Principal,
    Tool,
    ToolCall,
    ToolDefinitionError,
    Toolset,
    tool,
)


def make(name, answer=None, *, access=PUBLIC, **fields):
    @tool(effect="read", required_access=access, name=name, **fields)
    async def run() -> str:
        """Answer with a fixed text, for tests."""
        return answer or name

    return run


def declared(name, **fields):
    return Tool.from_schema(
        name=name,
        description="Declared without a handler.",
        input_schema={"type": "object", "properties": {"n": {"type": "integer"}}},
        effect="read",
        required_access=PUBLIC,
        **fields,
    )


@pytest.fixture
async def host(anyio_backend):
    async with AgentOS() as host:
        yield host


async def load(host, name, *tools, **fields):
    outcome = await host.extensions.load_pack(ExtensionPack(name, "1.0", tools, **fields))
    assert outcome.status == "loaded", outcome.reason


async def output(host, name, arguments=None, principal=None):
    result = await host.tools.process_tool_call(ToolCall(name, arguments), principal)
    return result.output if result.success else result.error.type


def names(host, principal=None):
    return [info.name for info in host.tools.list_available_tools(principal)]


# -- names -------------------------------------------------------------------------------------------------------


async def test_a_tool_becomes_a_descriptor_of_its_name():
    pack = ExtensionPack("p", descriptors=[make("a")])

    assert [(one.kind, one.id) for one in pack.descriptors] == [("tool", "a")]


async def test_a_descriptor_whose_id_differs_from_its_tools_name_is_refused(host):
    with pytest.raises(DescriptorError, match="differs from its tool's name"):
        await host.extensions.registry("tool").register(Descriptor("tool", "b", make("a")))
    outcome = await host.extensions.load_pack(ExtensionPack("p", descriptors=[Descriptor("tool", "b", make("a"))]))

    assert outcome.status == "failed"
    assert names(host) == []


async def test_a_call_finds_a_tool_by_its_name_and_by_its_qualified_id(host):
    await load(host, "p", make("a", "from p"))
    await load(host, "q", make("a", "from q"))

    assert await output(host, "a") == "from q"
    assert await output(host, "q:a") == "from q"
    assert await output(host, "p:a") == "from p"
    assert await output(host, "p:b") == "UnknownTool"


async def test_an_alias_resolves_is_never_offered_and_warns_once(host, caplog):
    await load(host, "p", make("new", aliases=("old",)))

    assert await output(host, "old") == "new"
    assert await output(host, "old") == "new"
    assert names(host) == ["new"]
    assert caplog.text.count("'old' is an alias of 'new'") == 1


async def test_an_alias_can_not_take_a_live_name(host):
    await load(host, "p", make("taken", "the real one"))
    await load(host, "q", make("thief", aliases=("taken",)))

    assert await output(host, "taken") == "the real one"
    await host.extensions.unload("p")
    assert await output(host, "taken") == "thief"
    await host.extensions.unload("q")
    assert await output(host, "taken") == "UnknownTool"


@pytest.mark.parametrize("name", ["a:b", "", "x\ny", 5, "x" * 300])
def test_a_name_that_can_not_be_one_is_refused(name):
    with pytest.raises(ToolDefinitionError, match="name"):
        declared(name)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"effect": "writes"}, "effect"),
        ({"required_access": ()}, "required_access"),
        ({"required_access": ("*",)}, "required_access"),
        ({"timeout": -1}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"timeout": True}, "timeout"),
        ({"placement": "moon"}, "placement"),
        ({"intervention": "sometimes"}, "intervention"),
        ({"input_schema": []}, "input_schema"),
        ({"execute": 5}, "execute"),
        ({"aliases": ("x:y",)}, "aliases"),
    ],
)
def test_a_field_that_makes_no_sense_is_refused_at_definition(fields, place):
    given = {
        "name": "x",
        "description": "A tool.",
        "input_schema": {"type": "object"},
        "effect": "read",
        "required_access": PUBLIC,
    }
    with pytest.raises(ToolDefinitionError, match=place):
        Tool(**{**given, **fields})


def test_effect_and_access_must_be_said():
    with pytest.raises(ToolDefinitionError, match="neither is guessed"):

        @tool
        def silent() -> None:
            """Say nothing of its effect."""

    with pytest.raises(ToolDefinitionError, match="neither is guessed"):
        tool(effect="read")


async def test_an_unusable_schema_is_refused_when_it_is_registered(host):
    bad = Tool(
        name="bad",
        description="A tool.",
        input_schema={"type": "objct"},
        effect="read",
        required_access=PUBLIC,
        execute=lambda args, context: None,
    )
    outcome = await host.extensions.load_pack(ExtensionPack("p", descriptors=[bad]))

    assert outcome.status == "failed"
    assert "input schema of tool 'bad'" in outcome.reason


@pytest.mark.parametrize(
    "schemas",
    [
        {"input_schema": {"type": "objct"}},
        {"input_schema": {"$ref": "https://example.com/schema"}},
        {"input_schema": {"type": "string"}},
        {"input_schema": {"type": "object"}, "output_schema": {"type": 5}},
    ],
)
def test_an_unusable_schema_is_refused_at_definition(schemas):
    with pytest.raises(ToolDefinitionError, match="bad"):
        Tool.from_schema(name="bad", description="A tool.", effect="read", required_access=PUBLIC, **schemas)


def test_an_unknown_keyword_of_the_decorator_suggests_the_nearest():
    with pytest.raises(ToolDefinitionError, match="did you mean 'timeout'"):
        tool(effect="read", required_access=PUBLIC, timout=3)


def test_one_alias_may_be_given_as_text():
    assert make("a", aliases="old").aliases == ("old",)


async def test_a_principal_that_is_none_is_told_so(host):
    with pytest.raises(TypeError, match="expected a Principal, got str"):
        await host.tools.process_tool_call(ToolCall("x"), "ada")


# -- lists -------------------------------------------------------------------------------------------------------


async def test_a_list_has_all_three_sources_and_says_which(host):
    await host.extensions.registry("tool").register(Descriptor("tool", "mine", make("mine")))
    await load(host, "p", make("theirs"))
    await host.tools_service("mcp/files").register_tool(make("read_file"))
    infos = {info.name: info for info in host.tools.list_available_tools()}

    assert {name: info.source for name, info in infos.items()} == {
        "mine": "builtin",
        "theirs": "extension",
        "read_file": "mcp",
    }
    assert infos["read_file"].fully_qualified_id == "mcp/files:read_file"
    assert infos["mine"].fully_qualified_id == "builtin:mine"
    assert infos["mine"].state == "active"


async def test_a_list_shows_what_calling_allows_and_nothing_else(host):
    await load(host, "p", make("open"), make("admin", access=("admin",)), make("both", access=("admin", "audit")))
    admin = Principal("ada", access={"admin"})

    assert names(host, Principal("guest")) == ["open"]
    assert names(host, admin) == ["open", "admin"]
    assert names(host) == ["open", "admin", "both"]
    for principal in (Principal("guest"), admin, admin.narrow({"audit"}), Principal.system()):
        for name in ("open", "admin", "both"):
            may = await output(host, name, principal=principal) != "UnknownTool"
            assert may == (name in names(host, principal))


async def test_the_list_is_kept_until_what_is_offered_changes(host):
    await load(host, "p", make("a"))
    first = host.tools.listed()
    assert host.tools.listed() is first
    await load(host, "q", make("b"))

    assert host.tools.listed() is not first
    assert names(host) == ["a", "b"]


async def test_a_caller_can_not_spoil_the_kept_list(host):
    await load(host, "p", make("a"))
    host.tools.list_available_tools().clear()

    assert names(host) == ["a"]


async def test_a_change_of_what_is_offered_is_told_once_with_the_whole_difference(host):
    recorder = Recorder()
    await load(host, "p", make("a"), make("b"))
    host.extensions.on(recorder)
    await load(host, "q", make("b"), make("c"))
    await host.extensions.unload("p")
    await host.extensions.set_override("tools", "q:c", {"priority": 7})
    await host.extensions.set_override("tools", "c", {"enabled": False})

    told = [(event.added, event.removed, event.changed) for event in recorder.of("tools:changed")]
    assert told == [(("c",), (), ("b",)), ((), ("a",), ()), ((), ("c",), ())]


async def test_payloads_that_are_no_tools_are_neither_offered_nor_callable(host):
    await host.extensions.registry("tool").register(Descriptor("tool", "thing", payload="just text"))

    assert names(host) == []
    assert await output(host, "thing") == "UnknownTool"


async def test_the_system_prompt_joins_those_of_what_is_offered_each_once(host):
    crm = Toolset("crm", [make("list_contacts"), make("view_contact")], system_prompt="Contacts are people.")
    await load(
        host, "p", crm, make("alone", system_prompt="Alone."), make("hidden", access=("x",), system_prompt="No.")
    )

    assert host.tools.system_prompt(Principal("guest")) == "Contacts are people.\n\nAlone."
    assert names(host, Principal("guest")) == ["list_contacts", "view_contact", "alone"]


# -- the service -------------------------------------------------------------------------------------------------


async def test_the_same_owner_and_id_replaces_and_another_owner_stacks(host):
    mine, other = host.tools_service("mine"), host.tools_service("other")
    await mine.register_tool(make("a", "first"))
    await mine.register_tool(make("a", "second"))
    assert len(host.extensions.registry("tool").stack("a")) == 1
    await other.register_tool(make("a", "other"))

    assert await output(host, "a") == "other"
    assert await other.unregister_tool("a") is True
    assert await output(host, "a") == "second"
    assert await other.unregister_tool("a") is False


async def test_taking_one_tool_of_an_owner_off_leaves_its_others_whole(host):
    await host.extensions.set_secret("giphy.apiKey", "some-real-value")
    seen = []
    port = host.extensions.port("mine")
    keep = Descriptor(
        "tool",
        "keep",
        make("keep"),
        required_secrets=["giphy.apiKey"],
        on_deactivate=lambda c: seen.append(c.secret("giphy.apiKey")),
    )
    await port.exchange("tool", [keep, Descriptor("tool", "drop", make("drop"))])
    await host.extensions.registry("tool").unregister("drop")
    await host.extensions.registry("tool").unregister("keep")

    assert seen == ["some-real-value"]
    await host.tools_service("mine").register_tool(make("again"))
    assert names(host) == ["again"]


async def test_replacing_keeps_the_place_in_a_tie(host):
    mine, other = host.tools_service("mine"), host.tools_service("other")
    await mine.register_tool(make("a", "mine"))
    await other.register_tool(make("a", "other"))
    await mine.register_tool(make("a", "mine again"))

    assert await output(host, "a") == "other"


async def test_the_list_of_a_service_has_the_tools_of_all_sources_and_its_own_list_only_its_owners(host):
    mine, server = host.tools_service(), host.tools_service("mcp/files")
    await mine.register_tool(make("mine"))
    await server.sync([make("read"), make("shared", "server")])
    await load(host, "p", make("packed"), make("shared", "pack"))
    await mine.register_tool(declared("later"))
    listed = [(one.fully_qualified_id, one.source, one.state) for one in mine.list_tools()]

    assert listed == [
        ("builtin:mine", "builtin", "active"),
        ("mcp/files:read", "mcp", "active"),
        ("p:shared", "extension", "active"),
        ("mcp/files:shared", "mcp", "shadowed"),
        ("p:packed", "extension", "active"),
        ("builtin:later", "builtin", "unbound"),
    ]
    assert server.list_tools() == mine.list_tools()
    assert [one.fully_qualified_id for one in mine.own_tools()] == ["builtin:mine", "builtin:later"]
    assert [one.name for one in server.own_tools()] == ["read", "shared"]


async def test_a_declared_tool_is_listed_as_unbound_not_offered_and_a_call_says_handler_missing(host):
    service = host.tools_service()
    info = await service.register_tool(declared("later"))

    assert info.state == "unbound"
    assert [one.state for one in service.list_tools()] == ["unbound"]
    explained = host.extensions.explain("tool", "later").entries[0]
    assert (explained.state, explained.reason) == ("unbound", "declared, but no handler is bound to it yet")
    assert names(host) == []
    assert await output(host, "later") == "HandlerMissing"
    await service.register_tool("later", lambda args, context: args.get("n", 0) + 1)
    assert await output(host, "later", {"n": 1}) == 2


async def test_a_pack_can_declare_tools_and_bind_them_while_it_runs(host):
    entry = PackEntry(
        factory=lambda: ExtensionPack("p", descriptors=[declared("later")]),
        permissions=("tools:register",),
    )
    await host.extensions.load(entry)
    assert await output(host, "later") == "HandlerMissing"
    contexts = []
    second = PackEntry(
        factory=lambda: ExtensionPack(
            "q", descriptors=[declared("other")], on_activate=lambda context: contexts.append(context)
        ),
        permissions=("tools:register",),
    )
    await host.extensions.load(second)
    await contexts[0].tools.register_tool("other", lambda args, _: "bound")

    assert await output(host, "other") == "bound"
    await host.extensions.unload("q")
    assert await output(host, "other") == "UnknownTool"
    with pytest.raises(PackLoadError, match="not loaded any more"):
        await contexts[0].tools.register_tool(make("ghost"))


async def test_what_a_pack_binds_in_its_own_hook_has_one_place_through_reload_and_unload(host):
    async def bind(context):
        await context.tools.register_tool("later", lambda args, _: "bound")

    entry = PackEntry(
        factory=lambda: ExtensionPack("p", descriptors=[declared("later"), make("other")], on_activate=bind),
        identifier="p",
        permissions=("tools:register",),
    )
    stack = host.extensions.registry("tool").stack
    await host.extensions.load(entry)
    assert (len(stack("later")), await output(host, "later")) == (1, "bound")
    await host.extensions.reload("p")
    assert (len(stack("later")), await output(host, "later"), names(host)) == (1, "bound", ["later", "other"])
    await host.extensions.unload("p")
    assert (stack("later"), names(host)) == ([], [])


async def test_what_a_pack_takes_back_in_its_own_hook_is_not_there(host):
    async def take_back(context):
        await context.tools.unregister_tool("later")

    entry = PackEntry(
        factory=lambda: ExtensionPack("p", descriptors=[declared("later"), make("other")], on_activate=take_back),
        permissions=("tools:register",),
    )
    await host.extensions.load(entry)

    assert (host.extensions.registry("tool").stack("later"), names(host)) == ([], ["other"])


async def test_what_a_pack_bound_in_its_hook_goes_with_a_failing_load(host):
    async def bind(context):
        await context.tools.register_tool("later", lambda args, _: "bound")

    def boom(context):
        raise Boom

    entry = PackEntry(
        factory=lambda: ExtensionPack(
            "p", descriptors=[declared("later"), Descriptor("x", "y", None, on_activate=boom)], on_activate=bind
        ),
        permissions=("tools:register",),
    )
    outcome = await host.extensions.load(entry)

    assert (outcome.status, host.extensions.registry("tool").stack("later")) == ("failed", [])


async def test_a_pack_without_the_permission_can_not_register(host):
    raised = []

    async def try_it(context):
        try:
            await context.tools.register_tool(make("sneaky"))
        except NotPermittedError as error:
            raised.append(str(error))

    await load(host, "p", on_activate=try_it)

    assert "tools:register" in raised[0]
    assert names(host) == []


async def test_what_a_pack_registers_in_a_hook_goes_with_a_failing_load(host):
    async def register(context):
        await context.tools.register_tool(make("early"))

    def boom(context):
        raise Boom

    entry = PackEntry(
        factory=lambda: ExtensionPack(
            "p", descriptors=[Descriptor("x", "y", None, on_activate=boom)], on_activate=register
        ),
        permissions=("tools:register",),
    )
    outcome = await host.extensions.load(entry)

    assert outcome.status == "failed"
    assert names(host) == []


async def test_sync_replaces_an_owners_whole_set_at_once(host):
    service = host.tools_service("mcp/x")
    keep = make("keep")
    await service.sync([keep, make("drop")])
    recorder = Recorder()
    host.extensions.on(recorder)
    infos = await service.sync([keep, make("new")])

    assert [info.name for info in infos] == ["keep", "new"]
    event = recorder.of("tools:changed")[0]
    assert (event.added, event.removed, event.changed) == (("new",), ("drop",), ())
    assert len(recorder.of("tools:changed")) == 1


async def test_a_sync_that_fails_changes_nothing(host):
    service = host.tools_service("mcp/x")
    await service.sync([make("a"), make("b")])
    with pytest.raises(ToolDefinitionError):
        await service.sync([make("c"), "not a tool"])
    bad = Tool(name="d", description="x", input_schema={"type": 5}, effect="read", required_access=PUBLIC)
    with pytest.raises(ToolDefinitionError):
        await service.sync([make("c"), bad])

    assert names(host) == ["a", "b"]


async def test_a_sync_with_one_name_twice_is_refused(host):
    with pytest.raises(ToolDefinitionError, match="given twice: a"):
        await host.tools_service("mcp/x").sync([make("a"), make("a")])


async def test_readers_never_see_half_of_a_sync(host):
    service = host.tools_service("mcp/x")
    seen = set()

    async def watch(stop):
        while not stop.is_set():
            seen.add(tuple(names(host)))
            await asyncio.sleep(0)

    stop = asyncio.Event()
    task = asyncio.create_task(watch(stop))
    first, second = [make("a"), make("b")], [make("c"), make("d")]
    for _ in range(20):
        await service.sync(first)
        await service.sync(second)
    stop.set()
    await task

    assert seen <= {(), ("a", "b"), ("c", "d")}


# -- principals --------------------------------------------------------------------------------------------------


def test_narrowing_only_shrinks_and_never_yields_everything():
    system = Principal.system()
    some = system.narrow({"a", "b", "*"})

    assert some.held == some.access == {"a", "b"}
    assert some.narrow({"b", "c"}).held == {"b"}
    assert Principal("u", access={"a"}).narrow({"a", "b"}).held == {"a"}
    assert Principal("u").held == frozenset()
