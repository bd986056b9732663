"""The bus of one host: who hears what, in which order, and until when."""

import asyncio
import threading

import pytest
from bussing import Ears, Wire, channel_pack, listening_pack, until

from agentos import (
    PUBLIC,
    AgentOS,
    BusError,
    Descriptor,
    DescriptorError,
    ExtensionManager,
    ExtensionPack,
    ToolCall,
    ToolContext,
    tool,
)
from agentos.bus import message_bus


async def test_messages_are_heard_in_the_order_of_their_sender_on_their_topic_alone():
    ears, others = Ears(), Ears()
    async with AgentOS() as host:
        await host.bus.subscribe("news", ears)
        await host.bus.subscribe("weather", others)
        for number in range(500):
            await host.bus.publish("news", {"number": number})
        await host.bus.publish("weather", "rain")

        assert await ears.until(500) == [{"number": number} for number in range(500)]
        assert await others.until(1) == ["rain"]


async def test_what_one_listener_does_to_a_message_no_other_sees():
    ears, message = Ears(), {"words": ["a"]}

    async def spoil(heard):
        heard["words"].append("b")

    async with AgentOS() as host:
        await host.bus.subscribe("news", spoil)
        await host.bus.subscribe("news", ears)
        await host.bus.publish("news", message)
        await host.bus.publish("news", message)

        assert await ears.until(2) == [{"words": ["a"]}] * 2
    assert message == {"words": ["a"]}


async def test_nothing_is_heard_after_a_subscription_ended():
    ears, others = Ears(), Ears()
    async with AgentOS() as host:
        unsubscribe = await host.bus.subscribe("news", ears)
        await host.bus.subscribe("news", others)
        await host.bus.publish("news", 1)
        await ears.until(1)
        await unsubscribe()
        await host.bus.publish("news", 2)
        unsubscribe()  # once more does no harm, awaited or not

        assert await others.until(2) == [1, 2]
    assert ears.heard == [1]


async def test_what_waits_is_not_heard_once_a_subscription_ended_and_its_listener_is_waited_for():
    begun, may_end, heard = asyncio.Event(), asyncio.Event(), []

    async def slow(message):
        begun.set()
        await may_end.wait()
        heard.append(message)

    async with AgentOS() as host:
        unsubscribe = await host.bus.subscribe("news", slow)
        await host.bus.publish("news", 1)
        await host.bus.publish("news", 2)
        await begun.wait()
        ending = unsubscribe()
        may_end.set()
        await ending

        assert heard == [1]


@pytest.mark.parametrize("is_sync", [False, True])
async def test_a_listener_may_end_its_own_subscription(is_sync):
    ears, other, ends = [], Ears(), []

    async def once(message):
        ears.append(message)
        await ends[0]()

    def once_in_a_thread(message):
        ears.append((message, threading.current_thread() is not threading.main_thread()))
        ends[0]()

    async with AgentOS() as host:
        ends.append(await host.bus.subscribe("news", once_in_a_thread if is_sync else once))
        await host.bus.subscribe("news", other)
        for number in range(3):
            await host.bus.publish("news", number)
        await other.until(3)
        await ends[0]()

    assert ears == [(0, True) if is_sync else 0]


@pytest.mark.parametrize("error", [ValueError("sk-very-secret"), SystemExit(1), asyncio.CancelledError()])
async def test_a_listener_that_raises_hears_the_next_message(error, caplog):
    ears = Ears()

    async def fails(message):
        await ears(message)
        raise error

    async with AgentOS() as host:
        host.extensions.masker.learn("sk-very-secret")
        await host.bus.subscribe("news", fails)
        await host.bus.publish("news", 1)
        await host.bus.publish("news", 2)

        assert await ears.until(2) == [1, 2]
    assert "a listener of host on topic news failed" in caplog.text
    assert "sk-very-secret" not in caplog.text


async def test_a_slow_listener_delays_itself_alone_and_what_is_too_much_is_dropped_and_told(caplog):
    quick, may_end, heard, told = Ears(), asyncio.Event(), [], []

    async def slow(message):
        await may_end.wait()
        heard.append(message)

    async with AgentOS() as host:
        host.extensions.on(lambda event: told.append(event) if event.type == "bus:dropped" else None)
        await host.bus.subscribe("news", slow)
        await host.bus.subscribe("news", quick)
        for number in range(1_010):
            await host.bus.publish("news", number)
            await quick.until(number + 1)
        may_end.set()
        await until(lambda: len(told) == 2)

    # One is being heard, a thousand wait: nine are too many. The first is told at once, the rest when it came after.
    assert heard == list(range(1_001))
    assert [(one.topic, one.pack, one.count) for one in told] == [("news", "host", 1), ("news", "host", 8)]
    assert "messages dropped on topic news: 1; a listener of host is too slow" in caplog.text


async def test_large_messages_wait_within_a_limit_too():
    may_end, heard, told = asyncio.Event(), [], []

    async def slow(message):
        await may_end.wait()
        heard.append(message[0])

    async with AgentOS() as host:
        host.extensions.on(lambda event: told.append(event) if event.type == "bus:dropped" else None)
        await host.bus.subscribe("news", slow)
        for number in range(12):
            await host.bus.publish("news", f"{number:x}" + "x" * 900_000)
        may_end.set()
        await until(lambda: told and len(heard) == 8)


@pytest.mark.parametrize(
    ("topic", "message", "says"),
    [
        ("", 1, "topic: expected a name"),
        ("a\nb", 1, "topic: expected printable"),
        ("x" * 201, 1, "topic: expected at most 200"),
        (7, 1, "topic: expected a string, got int"),
        ("key-abcdef", 1, "topic: it has a known secret"),
        ("news", {1: 2}, "expected keys that are strings, got int"),
        ("news", [{"at": object()}], r"message \$\[0\].at: expected a JSON value, got object"),
        ("news", float("nan"), "expected a number of JSON, got nan"),
        ("news", 10**400, "a number of more than 1,000 bits"),
        ("news", "x" * 999_999, "at most 1,000,000 characters"),
        ("news", "é" * 200_000, "at most 1,000,000 characters"),
        ("news", [[]] * 1_000_001, "at most 1,000,000 characters"),
    ],
)
async def test_what_is_no_topic_or_message_is_refused(topic, message, says):
    async with AgentOS() as host:
        host.extensions.masker.learn("key-abcdef")
        with pytest.raises(ValueError, match=says):
            await host.bus.publish(topic, message)


async def test_a_message_without_end_is_refused():
    endless = []
    endless.append(endless)
    wide = "x"
    for _ in range(30):
        wide = [wide] * 10
    async with AgentOS() as host:
        with pytest.raises(ValueError, match="nested deeper than 32 levels"):
            await host.bus.publish("news", endless)
        with pytest.raises(ValueError, match="at most 1,000,000 characters"):
            await host.bus.publish("news", wide)


async def test_what_is_no_listener_or_topic_can_not_be_subscribed_with():
    async with AgentOS() as host:
        with pytest.raises(TypeError, match="listener: expected a function, got str"):
            await host.bus.subscribe("news", "me")
        with pytest.raises(TypeError, match="listener: expected a function of 1 arguments"):
            await host.bus.subscribe("news", lambda: None)
        with pytest.raises(ValueError, match="topic: expected a name"):
            await host.bus.subscribe(" ", print)


async def test_a_message_may_be_as_large_as_it_says():
    ears, largest = Ears(), "x" * 999_998
    async with AgentOS() as host:
        await host.bus.subscribe("news", ears)
        await host.bus.publish("news", largest)
        await host.bus.publish("news", [1] * 499_999)

        assert await ears.until(2) == [largest, [1] * 499_999]


async def test_known_secrets_are_masked():
    ears = Ears()
    async with AgentOS() as host:
        host.extensions.masker.learn("key-abcdef")
        await host.bus.subscribe("news", ears)
        await host.bus.publish("news", {"key-abcdef": ["it is key-abcdef", 1]})

        assert await ears.until(1) == [{"***": ["it is ***", 1]}]


# -- packs -----------------------------------------------------------------------------------------------------


async def test_packs_hear_one_another_and_the_host():
    ears, host_ears, contexts = Ears(), Ears(), []
    writer = ExtensionPack("writer", "1.0", [], on_activate=contexts.append)
    async with AgentOS() as host:
        await host.extensions.load_pack(listening_pack(ears))
        await host.extensions.load_pack(writer)
        await host.bus.subscribe("news", host_ears)
        await contexts[0].bus.publish("news", "hello")

        assert await ears.until(1) == await host_ears.until(1) == ["hello"]


@pytest.mark.parametrize("change", ["unload", "disable"])
async def test_a_pack_that_goes_hears_nothing_more(change):
    ears, others, contexts = Ears(), Ears(), []
    pack = listening_pack(ears)
    async with AgentOS() as host:
        await host.extensions.load_pack(pack)
        await host.bus.subscribe("news", others)
        await getattr(host.extensions, change)("reader")
        await host.bus.publish("news", 1)
        await others.until(1)
        assert (ears.heard, contexts) == ([], [])
        if change == "disable":
            await host.extensions.enable("reader")
            await host.bus.publish("news", 2)
            assert await ears.until(1) == [2]


async def test_a_pack_that_is_gone_can_neither_publish_nor_subscribe():
    contexts, goodbyes = [], Ears()

    async def on_deactivate(context):
        await context.bus.publish("news", "goodbye")

    pack = ExtensionPack("writer", "1.0", [], on_activate=contexts.append, on_deactivate=on_deactivate)
    async with AgentOS() as host:
        await host.bus.subscribe("news", goodbyes)
        await host.extensions.load_pack(pack)
        await host.extensions.unload("writer")
        assert await goodbyes.until(1) == ["goodbye"]
        with pytest.raises(BusError, match="the pack 'writer' is not loaded any more"):
            await contexts[0].bus.publish("news", 1)
        with pytest.raises(BusError, match="the pack 'writer' is not loaded any more"):
            await contexts[0].bus.subscribe("news", print)


async def test_a_listener_is_ended_with_its_pack_though_it_would_never_end():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def endless(message):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with AgentOS() as host:
        await host.extensions.load_pack(listening_pack(endless))
        await host.bus.publish("news", 1)
        await begun.wait()
        await host.extensions.unload("reader")
        await ended.wait()


async def test_a_listener_may_unload_its_own_pack():
    done = asyncio.Event()
    async with AgentOS() as host:

        async def leave(message):
            await host.extensions.unload("reader")
            done.set()

        await host.extensions.load_pack(listening_pack(leave))
        await host.bus.publish("news", 1)
        await done.wait()
        assert host.extensions.packs() == []


async def test_the_bus_is_for_hooks_and_needs_a_host():
    def factory(context):
        context.bus.subscribe("news", print)

    async with AgentOS() as host:
        outcome = await host.extensions.load({"factory": factory})
        assert "context.bus can be used from the pack's hooks on" in str(outcome.error)
    async with ExtensionManager() as manager:
        outcome = await manager.load_pack(listening_pack(print))
        assert "a manager alone has none" in str(outcome.error)


async def test_a_bus_that_is_closed_says_so_and_leaves_nothing():
    ears, before = Ears(), asyncio.all_tasks()
    host = AgentOS()
    async with host:
        unsubscribe = await host.bus.subscribe("news", ears)
        await host.bus.publish("news", 1)
    with pytest.raises(BusError, match="the host is shut down"):
        await host.bus.publish("news", 2)
    with pytest.raises(BusError, match="the host is shut down"):
        await host.bus.subscribe("news", ears)
    await unsubscribe()

    assert asyncio.all_tasks() == before


# -- a pack's channel ------------------------------------------------------------------------------------------


async def test_a_channel_of_a_pack_takes_the_place_of_the_built_in_one_while_it_is_in_force():
    ears, wire = Ears(), Wire()
    async with AgentOS() as host:
        await host.bus.subscribe("news", ears)
        await host.extensions.load_pack(channel_pack(wire))
        await host.bus.publish("news", 1)
        await ears.until(1)
        assert wire.published == [("news", 1)]
        assert [*wire.listeners] == ["news"]

        await host.extensions.unload("wires")
        await host.bus.publish("news", 2)

        assert await ears.until(2) == [1, 2]
    assert wire.published == [("news", 1)]
    assert wire.listeners == {"news": []}


async def test_of_several_channels_the_first_in_order_carries():
    ears, weak, strong = Ears(), Wire(), Wire()
    async with AgentOS() as host:
        await host.extensions.load_pack(channel_pack(weak))
        await host.bus.subscribe("news", ears)
        await host.extensions.load_pack(channel_pack(strong, "strong", priority=5))
        await host.bus.publish("news", 1)

        assert await ears.until(1) == [1]
    assert (weak.published, weak.listeners) == ([], {"news": []})
    assert strong.published == [("news", 1)]


async def test_a_channel_may_call_its_listener_from_any_thread_and_what_is_no_message_is_refused_to_it():
    ears, wire = Ears(), Wire()
    async with AgentOS() as host:
        host.extensions.masker.learn("key-abcdef")
        await host.extensions.load_pack(channel_pack(wire))
        unsubscribe = await host.bus.subscribe("news", ears)
        [listener] = wire.listeners["news"]
        await asyncio.to_thread(listener, ["key-abcdef"])
        with pytest.raises(ValueError, match="expected a JSON value, got object"):
            listener(object())
        assert await ears.until(1) == [["***"]]

        await unsubscribe()
        listener("late")
    assert ears.heard == [["***"]]


async def test_a_channel_that_fails_says_so_to_who_publishes_or_subscribes():
    class Broken(Wire):
        async def publish(self, topic, message):
            raise OSError("no")

        async def subscribe(self, topic, listener):
            return None if topic == "odd" else await asyncio.Event().wait()

        timeout = 0.05

    async with AgentOS() as host:
        await host.extensions.load_pack(channel_pack(Broken()))
        with pytest.raises(BusError, match="wires:wire: publish raised OSError"):
            await host.bus.publish("news", 1)
        with pytest.raises(BusError, match="wires:wire: subscribe raised TimeoutError"):
            await host.bus.subscribe("news", print)
        with pytest.raises(BusError, match="subscribe returned a NoneType; expected what ends it"):
            await host.bus.subscribe("odd", print)


async def test_a_channel_that_can_not_subscribe_at_first_is_asked_again():
    ears, wire = Ears(), Wire()
    works, tries = wire.subscribe, []

    async def subscribe(topic, listener):
        tries.append(topic)
        if len(tries) < 3:
            raise OSError("not yet")
        return await works(topic, listener)

    wire.subscribe = subscribe
    async with AgentOS() as host:
        await host.bus.subscribe("news", ears)
        await host.extensions.load_pack(channel_pack(wire))
        await until(lambda: wire.listeners)
        await host.bus.publish("news", 1)

        assert await ears.until(1) == [1]


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (Wire, "expected an object, got a class"),
        (object(), "it has no method publish"),
        (type("Half", (), {"publish": Wire.publish})(), "it has no method subscribe"),
        (type("Sync", (Wire,), {"publish": lambda self, topic, message: None})(), "publish: it is not async"),
        (type("Odd", (Wire,), {"subscribe": lambda self, topic: None})(), "subscribe: expected a function of 2"),
        (type("Late", (Wire,), {"timeout": -1})(), "expected a positive number of seconds, got -1"),
    ],
)
async def test_what_is_no_channel_is_refused_when_it_is_loaded(payload, says):
    async with AgentOS() as host:
        with pytest.raises(DescriptorError, match=says):
            await host.extensions.register(Descriptor("communication-channel", "wire", payload))


async def test_explain_says_who_reads_it():
    async with AgentOS() as host:
        await host.extensions.load_pack(channel_pack(Wire()))

        assert "host.bus" in str(host.extensions.explain("communication-channel", "wire"))


async def test_tools_and_response_processors_publish_by_their_contexts():
    ears = Ears()

    @tool(effect="read", required_access=PUBLIC)
    async def shout(text: str, context: ToolContext) -> str:
        """Tell all."""
        await context.bus.publish("news", text)
        return "done"

    async def noted(response, context):
        await context.bus.publish("news", response.text)

    pack = ExtensionPack("crier", "1.0", [shout, Descriptor("response-processor", "noted", noted)])
    async with AgentOS() as host:
        await host.bus.subscribe("news", ears)
        await host.extensions.load_pack(pack)
        await host.tools.process_tool_call(ToolCall("shout", {"text": "hear"}))
        await host.respond("all")

        assert await ears.until(2) == ["hear", "all"]


async def test_there_are_so_many_subscriptions_at_the_most(monkeypatch):
    monkeypatch.setattr(message_bus, "_SUBSCRIPTIONS", 2)
    async with AgentOS() as host:
        ends = [await host.bus.subscribe("news", Ears()) for _ in range(2)]
        with pytest.raises(BusError, match="there are 2 subscriptions already"):
            await host.bus.subscribe("weather", Ears())
        await ends[0]()
        await host.bus.subscribe("weather", Ears())


async def test_what_is_done_with_a_bus_that_was_closed_ends_at_once():
    ears = Ears()
    async with AgentOS() as host:
        await host.bus.subscribe("news", ears)
        bus = host.bus
    await bus.close()

    with pytest.raises(BusError, match="the bus is closed"):
        await bus.publish("news", 1)


async def test_what_goes_wrong_beside_is_told(caplog):
    async def fails():
        raise ValueError("no way")

    async with AgentOS() as host:
        task = host.bus._begin(fails())
        await asyncio.wait([task])
        await asyncio.sleep(0)

    assert "the bus could not be brought up to date" in caplog.text
    assert "no way" in caplog.text
