"""The real pydantic-ai, with its function model, on a host's tools."""

import json

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")

from pydantic_ai import Agent, UnexpectedModelBehavior
from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from agentos import PUBLIC, Media, Principal, Tool, Toolset, tool
from agentos.interop import as_toolset


class Scripted:
    """A model that makes the calls it was told to, and then says done."""

    def __init__(self, *calls, before=None):
        self.calls = list(calls)
        self.offered = []
        self.instructions = []
        self.before = before

    async def play(self, messages, info):
        if self.before is not None:
            await self.before(len(self.offered))
        self.offered.append({tool.name: tool for tool in info.function_tools})
        self.instructions.append(info.instructions)
        if not self.calls:
            return ModelResponse(parts=[TextPart("done")])
        name, args = self.calls.pop(0)
        return ModelResponse(parts=[ToolCallPart(name, args, tool_call_id=f"c{len(self.offered)}")])


async def played(host, *calls, principal=None, before=None, **options):
    script = Scripted(*calls, before=before)
    agent = Agent(FunctionModel(script.play), toolsets=[as_toolset(host, principal, **options)], retries=2)
    result = await agent.run("go")
    parts = [part for message in result.all_messages() for part in message.parts]
    return script, parts


def returned(parts):
    return [part.content for part in parts if isinstance(part, ToolReturnPart)]


async def test_the_model_is_offered_the_tools(host):
    script, _ = await played(host)
    add = script.offered[0]["add"]

    assert add.description == "Add two numbers."
    assert {"a", "b"} == set(add.parameters_json_schema["properties"])
    assert add.metadata == {"tool": "builtin:add", "effect": "read"}


async def test_a_call_goes_through_the_host(host):
    _, parts = await played(host, ("add", {"a": 1}))

    assert returned(parts) == ['{"sum": 11}']


async def test_arguments_may_be_json_text(host):
    _, parts = await played(host, ("add", '{"a": 1, "b": 1}'))

    assert returned(parts) == ['{"sum": 2}']


async def test_arguments_that_do_not_fit_are_tried_again(host):
    _, parts = await played(host, ("add", {}), ("add", {"a": 1}))
    first, second = [part for part in parts if isinstance(part, ToolReturnPart | RetryPromptPart)]

    assert "InvalidArguments" in first.content
    assert second.content == '{"sum": 11}'


async def test_a_model_that_does_not_learn_is_stopped(host):
    with pytest.raises(UnexpectedModelBehavior, match="max retries"):
        await played(host, ("add", {}), ("add", {}), ("add", {}), max_retries=1)


async def test_another_failure_is_text(host):
    _, parts = await played(host, ("fail", {}))

    assert "no luck today" in returned(parts)[0]


async def test_a_change_shows_in_the_next_step(host):
    async def drop_add(step):
        if step == 0:
            await host.tools_service().unregister_tool("add")

    script, _ = await played(host, ("whoami", {}), before=drop_add)

    assert ["add" in offered for offered in script.offered] == [True, False]


async def test_the_call_is_made_for_the_principal_under_its_id(host):
    script, parts = await played(host, ("whoami", {}), principal=Principal("bob"))

    assert json.loads(returned(parts)[0]) == {"principal": "bob", "call": "c1", "session": {}}
    assert "open_vault" not in script.offered[0]


async def test_a_name_that_does_not_fit_leads_to_its_tool(host):
    wire = (await played(host))[0].offered[0].keys() - {"add", "fail", "finish", "whoami", "open_vault"}
    _, parts = await played(host, (wire.pop(), {"text": "hi"}))

    assert returned(parts) == ["HI"]


async def test_renamed_by_pydantic_ai_it_still_leads_to_its_tool(host):
    script = Scripted(("x_add", {"a": 1}))
    agent = Agent(FunctionModel(script.play), toolsets=[as_toolset(host).prefixed("x")])
    result = await agent.run("go")

    assert returned(part for message in result.all_messages() for part in message.parts) == ['{"sum": 11}']


async def test_system_prompts_are_instructions(host):
    quiet = Tool.from_schema(
        name="quiet",
        description="",
        input_schema={"type": "object"},
        effect="read",
        required_access=PUBLIC,
        execute=lambda args, context: None,
        ordered=True,
    )
    await host.tools_service().sync(Toolset("calm", [quiet], "Speak softly."))
    script, _ = await played(host)

    assert "Speak softly." in script.instructions[0]


async def test_an_ordered_tool_runs_alone(host):
    ordered = Tool.from_schema(
        name="first",
        description="",
        input_schema={"type": "object"},
        effect="read",
        required_access=PUBLIC,
        execute=lambda args, context: None,
        ordered=True,
    )
    await host.tools_service().sync([ordered])

    assert (await played(host))[0].offered[0]["first"].sequential


async def test_a_toolset_has_an_id(host):
    assert [as_toolset(host).id, as_toolset(host, id="mine").id] == ["agentos", "mine"]


@tool(effect="read", required_access=PUBLIC)
async def shoot() -> list[Media]:
    """Take a picture."""
    return [Media("image/png", b"PNG", name="shot.png"), Media("audio/wav", b"WAV", name="click.wav")]


@pytest.mark.parametrize("media", [True, False])
async def test_images_of_a_result_are_handed_on(host, media):
    await host.tools_service().sync([shoot])
    _, parts = await played(host, ("shoot", {}), media=media)
    (given,) = returned(parts)

    text, *images = given if media else [given]
    assert "[audio audio/wav click.wav, 3 bytes]" in text
    assert "shot.png" in text
    assert [(one.media_type, one.data) for one in images] == ([("image/png", b"PNG")] if media else [])
