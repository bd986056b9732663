"""A list of tools belongs to the principal it was made for: its calls are made for that one, and for nobody else."""

import copy
import json
import logging
import pickle

import pytest

from agentos import AgentOSError, Principal, WrongPrincipalError
from agentos.interop import anthropic, as_langchain_tools, as_toolset, gemini, openai
from agentos.turn.chat import run_turn

ANN = Principal("ann")
BOSS = Principal("boss", access={"vault:read"})
CALLS = {
    "chat": lambda name: {
        "role": "assistant",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": name, "arguments": "{}"}}],
    },
    "responses": lambda name: {"output": [{"type": "function_call", "call_id": "1", "name": name, "arguments": "{}"}]},
    "anthropic": lambda name: {"content": [{"type": "tool_use", "id": "1", "name": name, "input": {}}]},
    "gemini": lambda name: {"parts": [{"function_call": {"name": name, "args": {}}}]},
}
ADAPTERS = {
    "chat": (openai.tools, openai.run),
    "responses": (lambda host, who=None: openai.tools(host, who, api="responses"), openai.run),
    "anthropic": (anthropic.tools, anthropic.run),
    "gemini": (gemini.tools, gemini.run),
}
adapters = pytest.mark.parametrize("adapter", ADAPTERS)
SELECTIONS = {
    "a copy": lambda tools: tools.copy(),
    "a plain copy": list,
    "a slice": lambda tools: tools[1:],
    "a selection": lambda tools: [one for one in tools if "fail" not in str(one)],
    "more tools": lambda tools: [*tools, {"type": "web_search"}],
    "a deep copy": copy.deepcopy,
    "a pickle": lambda tools: pickle.loads(pickle.dumps(tools)),
}


async def said(adapter, host, tools, name, *principal):
    _, run = ADAPTERS[adapter]
    return json.dumps(await run(host, CALLS[adapter](name), tools, *principal))


@adapters
async def test_calls_are_made_for_whom_the_list_was_made(host, adapter):
    tools, _ = ADAPTERS[adapter]

    assert '\\"principal\\": \\"ann\\"' in await said(adapter, host, tools(host, ANN), "whoami")
    assert "there is no tool called 'open_vault'" in await said(adapter, host, tools(host, ANN), "open_vault")
    assert "gold" in await said(adapter, host, tools(host, BOSS), "open_vault")


@adapters
@pytest.mark.parametrize("selected", SELECTIONS.values(), ids=SELECTIONS)
async def test_what_is_taken_from_a_list_belongs_to_the_same(host, adapter, selected):
    tools, _ = ADAPTERS[adapter]

    assert '\\"principal\\": \\"ann\\"' in await said(adapter, host, selected(tools(host, ANN)), "whoami")


@adapters
async def test_another_principal_is_refused(host, adapter):
    tools, _ = ADAPTERS[adapter]
    with pytest.raises(WrongPrincipalError, match="made for 'ann', not for 'boss'; make one for 'boss'") as refused:
        await said(adapter, host, tools(host, ANN), "whoami", BOSS)

    assert (refused.value.owner, refused.value.given) == ("ann", "boss")
    assert isinstance(refused.value, AgentOSError)
    assert isinstance(refused.value, ValueError)


@adapters
@pytest.mark.parametrize("given", [Principal.system(), Principal("ann", "service")], ids=["host", "service"])
async def test_neither_the_host_itself_nor_a_namesake_of_another_kind_may_use_a_list_of_somebody(host, adapter, given):
    tools, _ = ADAPTERS[adapter]
    with pytest.raises(WrongPrincipalError):
        await said(adapter, host, tools(host, ANN), "whoami", given)


async def test_tools_of_two_principals_in_one_list_are_refused(host):
    with pytest.raises(WrongPrincipalError):
        await openai.run(host, CALLS["chat"]("whoami"), [*openai.tools(host, ANN), *openai.tools(host, BOSS)])


async def test_another_principal_is_refused_before_there_are_calls(host):
    with pytest.raises(WrongPrincipalError):
        await openai.run(host, {"role": "assistant", "content": "Hi"}, openai.tools(host, ANN), BOSS)


@adapters
async def test_the_principal_may_be_said_again(host, adapter):
    tools, _ = ADAPTERS[adapter]
    again = Principal("boss", access={"vault:read"})

    assert "gold" in await said(adapter, host, tools(host, BOSS), "open_vault", again)


@pytest.mark.parametrize(("listed", "given"), [(BOSS, BOSS.narrow(())), (BOSS.narrow(()), BOSS)], ids=["run", "list"])
async def test_a_call_holds_no_more_than_the_list_and_the_caller(host, listed, given):
    answer = await said("chat", host, openai.tools(host, listed), "open_vault", given)

    assert "there is no tool called 'open_vault'" in answer


@adapters
async def test_tools_that_do_not_say_whose_they_are_reach_what_is_public(host, adapter, caplog):
    tools, _ = ADAPTERS[adapter]
    stored = json.loads(json.dumps(tools(host, BOSS)))

    assert "service:nobody" not in await said(adapter, host, stored, "whoami")
    assert "there is no tool called 'open_vault'" in await said(adapter, host, stored, "open_vault")
    assert "gold" in await said(adapter, host, stored, "open_vault", BOSS)
    assert "made for nobody, who may call what is public" in caplog.text


async def test_a_list_for_the_host_itself_is_the_hosts(host):
    assert "gold" in await said("chat", host, openai.tools(host), "open_vault")
    assert "gold" in await said("chat", host, openai.tools(host, Principal.system()), "open_vault")
    assert "gold" in await said("chat", host, openai.tools(host), "open_vault", Principal.system())


async def test_who_runs_the_calls_may_name_the_principal_that_the_list_lacks(host):
    tools = openai.tools(host)

    assert "there is no tool called 'open_vault'" in await said("chat", host, tools, "open_vault", ANN)
    assert "there is no tool called 'open_vault'" in await said("chat", host, list(tools), "open_vault", ANN)


async def test_a_list_that_was_made_for_the_host_itself_is_not_anothers(host):
    with pytest.raises(WrongPrincipalError):
        await said("chat", host, openai.tools(host, Principal.system()), "whoami", ANN)


class Scripted:
    def __init__(self, *messages):
        self.chat = self.completions = self
        self.messages = list(messages)

    async def create(self, **request):
        return {"choices": [{"message": self.messages.pop(0)}]}


async def turn(host, **more):
    return await run_turn(host, Scripted({"role": "assistant", "content": "Hi"}), [], model="m", **more)


FORGETFUL = {
    **{name: (lambda host, make=make: make(host)) for name, (make, _) in ADAPTERS.items()},
    "langchain": as_langchain_tools,
    "pydantic-ai": as_toolset,
}


@pytest.mark.parametrize("make", FORGETFUL.values(), ids=FORGETFUL)
async def test_a_forgotten_principal_is_logged_once(host, make, caplog):
    caplog.set_level(logging.WARNING, "agentos")
    make(host)
    make(host)

    [record] = caplog.records
    assert "for the host itself, which may call everything" in record.message
    assert "Principal.system()" in record.message


async def test_a_turn_without_a_principal_is_logged_once(host, caplog):
    await turn(host)
    await turn(host)

    assert len([one for one in caplog.records if "Principal.system()" in one.message]) == 1


@pytest.mark.parametrize("who", [ANN, Principal.system()], ids=["a user", "the host"])
async def test_who_is_named_needs_no_warning(host, who, caplog):
    for make, _ in ADAPTERS.values():
        make(host, who)
    as_langchain_tools(host, who)
    as_toolset(host, who)
    await turn(host, principal=who)

    assert caplog.records == []
