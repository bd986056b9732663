"""Personas narrow what their principal may call, in lists and in calls, and never widen it."""

import json

import pytest
from commanding import Project
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import examples

from agentos import (
    PUBLIC,
    AgentOS,
    Descriptor,
    DescriptorError,
    ExtensionManifest,
    ExtensionPack,
    ManifestError,
    Persona,
    PersonaError,
    Principal,
    ToolCall,
    tool,
)
from agentos.interop import openai

ANN = Principal("ann", access={"notes"})


@tool(effect="read", required_access=PUBLIC)
async def look(where: str = "") -> str:
    """Look."""
    return f"saw {where}"


@tool(effect="read", required_access="notes", aliases=["read_it"])
async def read_note() -> str:
    """Read a note."""
    return "a note"


@tool(effect="mutate", required_access="notes")
async def write_note() -> str:
    """Write a note."""
    return "written"


@tool(effect="read", required_access="admin")
async def secrets_of_all() -> str:
    """Tell all."""
    return "all"


@tool(effect="read", required_access=PUBLIC)
async def anything(name: str, *, context) -> str:
    """Call another tool."""
    return (await context.call(name, {})).content


NOTES = ExtensionPack("notes", "1", [look, read_note, write_note, secrets_of_all, anything])


def host_with(*personas, **fields):
    pack = ExtensionPack("people", "1", list(personas))
    return AgentOS(extension_manifest=[NOTES, pack], mode="auto", **fields)


def names(host, principal):
    return [info.name for info in host.tools.list_available_tools(principal)]


async def call(host, called, principal, **arguments):
    return await host.tools.process_tool_call(ToolCall(called, arguments), principal)


@pytest.mark.parametrize(
    ("persona", "left"),
    [
        (Persona("p"), ["look", "read_note", "write_note", "anything"]),
        (Persona("p", tools="look"), ["look"]),
        (Persona("p", tools=["notes:read_*", "look"]), ["look", "read_note"]),
        (Persona("p", deny=["notes:*"]), []),
        (Persona("p", tools=["*"], deny=["*_note"]), ["look", "anything"]),
        (Persona("p", tools=["read_it"]), ["read_note"]),
        (Persona("p", tools=[]), []),
        (Persona("p", tools=["secrets_of_all"]), []),
    ],
)
async def test_lists_and_calls_are_narrowed_alike(persona, left):
    async with host_with(persona) as host:
        narrowed = host.personas.narrow("p", ANN)
        assert names(host, narrowed) == left
        assert [one["function"]["name"] for one in openai.tools(host, narrowed)] == left
        for info in host.tools.list_available_tools(Principal.system()):
            result = await call(host, info.name, narrowed, **({"name": "none"} if info.name == "anything" else {}))
            assert (result.error is None or result.error.type != "UnknownTool") == (info.name in left)
            assert (host.tools.get_tool(info.name, narrowed) is not None) == (info.name in left)
        assert names(host, ANN) == ["look", "read_note", "write_note", "anything"]


async def test_what_is_left_out_is_as_unknown_as_what_is_not_there():
    async with host_with(Persona("p", tools=["read_note"])) as host:
        narrowed = host.personas.narrow("p", ANN)
        for name in ("look", "notes:look"):
            left_out = await call(host, name, narrowed)
            assert left_out.content == f"UnknownTool: there is no tool called {name!r}"
            assert (await host.tools.preview(ToolCall(name, {}), narrowed)).content == left_out.content
        assert not host.tools.explain("look", narrowed).is_allowed


async def test_calls_that_tools_make_are_narrowed_too():
    async with host_with(Persona("p", tools=["anything", "look"])) as host:
        narrowed = host.personas.narrow("p", ANN)
        assert (await call(host, "anything", narrowed, name="look")).content == "saw "
        assert "there is no tool" in (await call(host, "anything", narrowed, name="read_note")).content


async def test_what_stands_beneath_an_allowed_tool_runs_unless_it_is_denied():
    @tool(effect="read", required_access="notes", wraps=True, name="read_note")
    async def careful(*, context) -> str:
        """Read with care."""
        return f"carefully {(await context.below()).content}"

    personas = [Persona("open", tools=["careful:read_note"]), Persona("shut", deny=["notes:read_note"])]
    async with host_with(*personas) as host:
        await host.extensions.load_pack(ExtensionPack("careful", "1", [careful]), priority=5)
        texts = [(await call(host, "read_note", host.personas.narrow(id, ANN))).content for id in ("open", "shut")]

    assert texts[0] == "carefully a note"
    assert "a note" not in texts[1]


async def test_two_personas_leave_what_both_leave_and_the_host_itself_is_narrowed():
    async with host_with(Persona("a", tools=["look", "read_note"]), Persona("b", deny=["look"])) as host:
        both = host.personas.narrow("b", host.personas.narrow("a"))
        assert names(host, both) == ["read_note"]
        assert both.key == "system"
        assert host.personas.narrow("a", both) == both


async def test_a_proposal_is_applied_with_the_persona_s_bounds(tmp_path):
    @tool(effect="mutate", required_access=PUBLIC)
    async def act(*, context) -> str:
        """Act."""
        return (await context.call("look", {})).content

    pack = ExtensionPack("acts", "1", [act])
    manifest = [NOTES, ExtensionPack("people", "1", [Persona("p", tools=["act"])]), pack]
    async with AgentOS(extension_manifest=manifest, store=tmp_path / "s.db") as host:
        result = await call(host, "act", host.personas.narrow("p", ANN))
        token = result.error.details["token"]
    async with AgentOS(extension_manifest=manifest, store=tmp_path / "s.db") as host:
        applied = await host.approvals.approve(token, by=ANN)

    assert "there is no tool called 'look'" in applied.content


patterns = st.lists(
    st.sampled_from(["*", "look", "notes:*", "*note*", "read_it", "[lr]*", "careful:*", "notes:write_note"]), max_size=3
)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.tuples(patterns, patterns), max_size=3), st.sets(st.sampled_from(["notes", "admin", "*"])))
def test_a_persona_never_widens(bounds, access):
    import asyncio

    async def check():
        personas = [Persona(f"p{number}", tools=allow, deny=deny) for number, (allow, deny) in enumerate(bounds)]
        async with host_with(*personas) as host:
            who = Principal("ann", access=access)
            before = set(names(host, who))
            for persona in personas:
                who = host.personas.narrow(persona.id, who)
                after = set(names(host, who))
                assert after <= before
                before = after
            for info in host.tools.list_available_tools(Principal.system()):
                result = await call(host, info.name, who, **({"name": "none"} if info.name == "anything" else {}))
                assert (result.error is None or result.error.type != "UnknownTool") == (info.name in before)

    asyncio.run(check())


# -- where they come from ----------------------------------------------------------------------------------------------

MANIFEST = """
[personas.friendly]
description = "Kind"
systemPrompt = "Be kind."
tools = ["look"]
model = { temperature = 0.2 }
memory = ["sqlite-memory"]
planning = "checklist"
greeting = "Hello!"
"""


async def test_a_manifest_says_personas_and_they_count_before_those_of_packs(tmp_path):
    (tmp_path / "agentos.toml").write_text(MANIFEST)
    manifest = ExtensionManifest.from_file(tmp_path / "agentos.toml")
    async with AgentOS(extension_manifest=manifest) as host:
        await host.extensions.load_pack(ExtensionPack("other", "1", [Persona("plain", greeting="Yes?")]))
        friendly = host.personas.get("friendly")
        assert [one.id for one in host.personas.active()] == ["friendly", "plain"]

    expected = Persona(
        "friendly", "Kind", "Be kind.", ("look",), (), {"temperature": 0.2}, ("sqlite-memory",), "checklist", "Hello!"
    )
    assert friendly == expected


async def test_one_of_the_manifest_wins_over_one_of_a_pack():
    pack = ExtensionPack("people", "1", [Persona("p", greeting="from the pack")])
    manifest = {"packs": [{"factory": lambda: pack}], "personas": {"p": {"greeting": "from the manifest"}}}
    async with AgentOS(extension_manifest=manifest) as host:
        assert host.personas.get("p").greeting == "from the manifest"


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ({"tools": "look"}, "personas.p.tools"),
        ({"prompt": "x"}, "personas.p"),
        ({"tools": ["\n"]}, "personas.p"),
        ({"greeting": 3}, "personas.p.greeting"),
    ],
)
def test_a_wrong_persona_in_a_manifest_is_named(said, path):
    with pytest.raises(ManifestError, match=path.replace(".", r"\.")):
        ExtensionManifest.from_dict({"personas": {"p": said}})


@pytest.mark.parametrize(
    ("payload", "fault"), [({"tone": "kind"}, "expected a Persona"), (Persona("other"), "is called 'other'")]
)
async def test_a_payload_that_is_no_persona_is_refused(payload, fault):
    async with AgentOS() as host:
        with pytest.raises(DescriptorError, match=fault):
            await host.extensions.register(Descriptor("persona", "p", payload))


@pytest.mark.parametrize(
    "fields",
    [
        {"id": ""},
        {"id": "p", "tools": [""]},
        {"id": "p", "greeting": None},
        {"id": "p", "system_prompt": 3},
        {"id": "p", "system_prompt": lambda: ""},
        {"id": "p", "memory": [""]},
        {"id": "p", "model": 3},
    ],
)
def test_a_persona_is_checked_where_it_is_written(fields):
    with pytest.raises((TypeError, ValueError)):
        Persona(**fields)


async def test_a_prompt_is_a_text_or_a_function_of_a_context():
    async def asking(context):
        return f"for {context.principal.id} in {context.session['place']}"

    def failing(context):
        raise RuntimeError("no words")

    personas = [
        Persona("text", system_prompt="Be kind."),
        Persona("asks", system_prompt=asking),
        Persona("plain", system_prompt=lambda context: context.principal.id),
        Persona("fails", system_prompt=failing),
        Persona("odd", system_prompt=lambda context: 3),
    ]
    async with host_with(*personas) as host:
        prompts = [
            await host.personas.prompt(id, principal=ANN, session={"place": "Ulm"}) for id in ("text", "asks", "plain")
        ]
        for id, why in (("fails", "RuntimeError"), ("odd", "gave a int"), ("txt", "did you mean 'text'")):
            with pytest.raises(PersonaError, match=why) as caught:
                await host.personas.prompt(id)
            assert caught.value.persona == id

    assert prompts == ["Be kind.", "for ann in Ulm", "ann"]


def test_the_command_shows_a_persona_of_the_manifest(tmp_path):
    project = Project(tmp_path, '[personas.friendly]\nsystemPrompt = "Be kind."\n')
    told = project.run("why", "persona:friendly", "--json")

    assert told.code == 0
    assert "turns with a persona" in project.run("why", "persona:friendly").out
    assert json.loads(told.out)["kind"] == "persona"
