"""Payloads of every kind that refuse to be looked at: what they return, raise and are stays at the border as well."""

import asyncio
import contextlib
from collections.abc import Mapping

import pytest
from channelling import MANIFEST, Post, message, not_sent, on_channels

from agentos import (
    PUBLIC,
    AgentOS,
    BusError,
    Descriptor,
    ExtensionPack,
    GuardAction,
    GuardVerdict,
    MemoryProviderError,
    Persona,
    PersonaError,
    PlanningError,
    ToolCall,
    ToolResult,
    guardrail,
    tool,
)


class Shy:
    """Does not let its class be asked for."""

    @property
    def __class__(self):
        raise SystemExit("no class")


class Mute(ValueError):
    """Says nothing of itself."""

    def __str__(self):
        raise SystemExit("no text")


class Late(TimeoutError):
    """Does not say why it is late."""

    @property
    def args(self):
        raise SystemExit("no arguments")


class NoNames(type):
    @property
    def __name__(cls):
        raise SystemExit("no name")


class Nameless(Exception, metaclass=NoNames):
    """Is of a class without a name."""


class Unreadable(Mapping):
    """Can't be read."""

    def __iter__(self):
        raise SystemExit("no keys")

    __getitem__ = __len__ = keys = items = __iter__


def fails(way):
    if way == "returns":
        return Shy()
    raise {"mute": Mute, "late": Late, "nameless": Nameless}[way]


WAYS = ("returns", "mute", "late", "nameless")
every_way = pytest.mark.parametrize("way", WAYS)


def failing(way, kind):
    """Return a function that fails, on the loop or in a thread."""

    def in_thread(*_, **__):
        return fails(way)

    async def on_loop(*_, **__):
        return fails(way)

    return on_loop if kind == "async" else in_thread


every_kind = pytest.mark.parametrize("kind", ["sync", "async"])


class Closing:
    """A payload whose attributes can be read until it is loaded; then none can."""

    is_closed = False

    def __getattribute__(self, name):
        if name[0] != "_" and name != "is_closed" and object.__getattribute__(self, "is_closed"):
            raise SystemExit(f"no {name}")
        return object.__getattribute__(self, name)


def of_methods(*names, way=None, kind="async"):
    """Return a payload with these methods; they fail in one way, or can't be had once it is loaded."""
    return type("Payload", (Closing,), {name: staticmethod(failing(way or "mute", kind)) for name in names})()


@tool(effect="read", required_access=PUBLIC)
async def look() -> str:
    """Look."""
    return "seen"


@contextlib.asynccontextmanager
async def hosted(*offered, **fields):
    async with AgentOS(budget=None, mode="auto", **fields) as host:
        outcome = await host.extensions.load_pack(ExtensionPack("p", "1", [look, *offered]))
        assert outcome.status == "loaded", outcome
        yield host


async def looked(host):
    return await host.tools.process_tool_call(ToolCall("look"))


# -- calls and texts ---------------------------------------------------------------------------------------------------


@every_way
async def test_a_tool_that_raises_what_has_no_name_or_text_has_a_result(way):
    @tool(effect="read", required_access=PUBLIC)
    async def bad() -> dict:
        """Fail."""
        return fails(way)

    async with hosted(bad) as host:
        result = await host.tools.process_tool_call(ToolCall("bad"))

    assert result.error.type in ("ToolRaised", "ResultNotSerialisable")


@every_way
@every_kind
async def test_a_guardrail_that_fails_blocks(way, kind):
    function = failing(way, kind)
    guards = [
        Descriptor("guardrail", stage, guardrail(stage)(lambda *given, function=function: function(*given)))
        for stage in ("input", "tool_call")
    ]
    async with hosted(*guards) as host:
        outcome, result = await host.guardrails.check_input("hello"), await looked(host)

    assert outcome.action is GuardAction.BLOCK
    assert result.error.type == "GuardrailBlocked"


REPLACEMENTS = (
    Unreadable,
    lambda: {"a": Unreadable()},
    Shy,
    lambda: ToolResult(True, Unreadable()),
)


@pytest.mark.parametrize("stage", ["input", "tool_call", "tool_result"])
@pytest.mark.parametrize("replacement", REPLACEMENTS, ids=range(4))
async def test_a_replacement_that_can_not_be_read_blocks(stage, replacement):
    @guardrail(stage, sanitizes=True)
    async def bad(subject, context):
        return GuardVerdict.sanitize(replacement(), "worse")

    async with hosted(bad) as host:
        outcome, result = await host.guardrails.check_input("hello"), await looked(host)

    is_blocked = outcome.action is GuardAction.BLOCK if stage == "input" else result.error is not None
    assert is_blocked


@every_way
@every_kind
async def test_middleware_that_fails_has_a_result(way, kind):
    async with hosted(Descriptor("tool-middleware", "m", failing(way, kind))) as host:
        result = await looked(host)

    assert result.error.type == "MiddlewareFailed"


@every_way
@every_kind
async def test_a_response_goes_on_without_a_processor_that_fails(way, kind):
    async with hosted(Descriptor("response-processor", "r", of_methods("process", way=way, kind=kind))) as host:
        assert (await host.respond("hello")).text == "hello"


async def test_a_handler_that_answers_with_what_can_not_be_looked_at_has_not_answered():
    @tool(effect="mutate", required_access=PUBLIC)
    async def act() -> str:
        """Act."""
        return "done"

    async with AgentOS(mode="approve") as host:
        handler = Descriptor("hitl-handler", "h", failing("returns", "async"))
        await host.extensions.load_pack(ExtensionPack("p", "1", [act, handler]))
        result = await host.tools.process_tool_call(ToolCall("act"))

    assert result.error.type == "ApprovalRequired"


# -- memory, plans, personas -------------------------------------------------------------------------------------------

MEMORY = ("remember", "recall", "forget", "stats")


@every_way
@every_kind
async def test_a_memory_provider_that_fails_is_left_out_or_told_of(way, kind):
    async with hosted(Descriptor("memory-provider", "m", of_methods(*MEMORY, way=way, kind=kind))) as host:
        assert await host.memory.recall("x") == []
        assert await host.memory.stats() == {}
        with pytest.raises(MemoryProviderError):
            await host.memory.remember("x")
        with pytest.raises(MemoryProviderError):
            await host.memory.forget(["m:1"])


@every_way
@every_kind
async def test_a_strategy_that_fails_is_told_of(way, kind):
    async with hosted(Descriptor("planning-strategy", "s", of_methods("plan", "refine", way=way, kind=kind))) as host:
        with pytest.raises(PlanningError):
            await host.planning.plan("a goal")


@every_way
@every_kind
async def test_a_prompt_that_fails_is_told_of(way, kind):
    async with hosted(Persona("p", system_prompt=failing(way, kind))) as host:
        with pytest.raises(PersonaError):
            await host.personas.prompt("p")


# -- what lasts: the bus, channels, the signed log ---------------------------------------------------------------------


@every_way
async def test_a_bus_goes_on_whatever_a_channel_or_a_listener_does(way):
    heard, done = [], asyncio.Event()

    def listen(text):
        heard.append(text)
        done.set() if text == 2 else None
        return fails(way)

    async with hosted() as host:
        await host.bus.subscribe("news", listen)
        await host.bus.publish("news", 1)
        await host.bus.publish("news", 2)
        async with asyncio.timeout(30):
            await done.wait()
    async with hosted(Descriptor("communication-channel", "c", of_methods("publish", "subscribe", way=way))) as host:
        with pytest.raises(BusError):
            await host.bus.subscribe("news", listen)
        with contextlib.suppress(BusError):
            await host.bus.publish("news", 1)

    assert heard == [1, 2]


@pytest.mark.parametrize("way", [*WAYS, "stops"])
@every_kind
async def test_a_handler_of_messages_that_fails_costs_one_message(way, kind):
    def on_first(message):
        if message.id != "1":
            return "good"
        if way == "stops":
            raise StopIteration
        return fails(way)

    async def on_loop(message, principal):
        return on_first(message)

    post = Post()
    async with on_channels(post) as [host]:
        host.channels.handle(on_loop if kind == "async" else lambda message, principal: on_first(message))
        await post.deliver(message(1))
        await post.deliver(message(2))
        await post.until(lambda: post.sent)
        letters = await host.channels.letters()

    assert [one.text for one in post.sent] == ["good"]
    assert [(one.state, one.message.id) for one in letters] == [("failed", "1")]


async def answer(message, principal):
    return f"{message.id} was answered"


TROUBLES = (Mute, Late, Nameless, lambda: not_sent(retry_after="soon", is_final=True))


@pytest.mark.parametrize("trouble", TROUBLES, ids=range(len(TROUBLES)))
async def test_a_channel_that_fails_to_send_costs_one_message(trouble):
    post = Post()
    post.troubles = [trouble()]
    async with on_channels(post, handler=answer) as [host]:
        await post.deliver(message(1))
        await post.until(lambda: not post.troubles)
        await post.deliver(message(2))
        await post.until(lambda: post.sent)
        letters = await host.channels.letters()

    assert [one.text for one in post.sent] == ["2 was answered"]
    assert len(letters) == 1


@pytest.mark.parametrize("receipt", [Shy, Mute])
async def test_a_receipt_that_says_nothing_is_a_receipt(receipt):
    class Vague(Post):
        async def send(self, message):
            await super().send(message)
            return receipt()

    post = Vague()
    async with on_channels(post, handler=answer):
        for id in (1, 2):
            await post.deliver(message(id))
        await post.until(lambda: len(post.sent) == 2)


class Gone(Post, Closing):
    """A channel that can't be stopped."""


async def test_a_channel_that_can_not_even_be_asked_to_stop_stops_no_other():
    gone, post = Gone(), Post()
    other = ExtensionPack("other", "1", [Descriptor("messaging-channel", "gone", gone)])
    manifest = {**MANIFEST, "channels": {**MANIFEST["channels"], "gone": {"senders": {}}}}
    async with on_channels(post, manifest=manifest, handler=answer) as [host]:
        await host.extensions.load_pack(other)
        await post.until(lambda: object.__getattribute__(gone, "deliver") is not None)
        gone.is_closed = True
        await host.extensions.unload("other")
        await post.deliver(message(1))
        await post.until(lambda: post.sent)


class Unsigning(Closing):
    every_records = 1

    @property
    def public_key(self):
        raise ValueError("there is no key yet")

    async def sign(self, head):
        return bytes(64)


@pytest.mark.parametrize("is_closed", [False, True])
async def test_a_signer_without_a_key_ends_no_shutdown(is_closed, caplog):
    signer = Unsigning()
    async with hosted(Descriptor("provenance", "ours", signer)) as host:
        signer.is_closed = is_closed
        assert (await looked(host)).output == "seen"
        await host.audit.commit()
        await host.provenance.look(now=True)

    assert "no checkpoint of the audit log was made" in caplog.text


# -- payloads that can't be read any more ------------------------------------------------------------------------------


async def test_payloads_that_can_not_be_read_any_more_have_failed():
    processor, memory = of_methods("process"), of_methods(*MEMORY)
    strategy, channel = of_methods("plan", "refine"), of_methods("publish", "subscribe")
    offered = {
        "response-processor": processor,
        "memory-provider": memory,
        "planning-strategy": strategy,
        "communication-channel": channel,
    }
    async with hosted(*(Descriptor(kind, "x", payload) for kind, payload in offered.items())) as host:
        for payload in offered.values():
            payload.is_closed = True

        assert (await host.respond("hello")).text == "hello"
        assert await host.memory.recall("x") == []
        with pytest.raises(PlanningError):
            await host.planning.plan("a goal")
        with pytest.raises(BusError):
            await host.bus.publish("news", 1)
