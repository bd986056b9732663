"""Sentences of the contract that are easily read past."""

import asyncio

import pytest
from kit import Boom, Recorder, descriptor, pack, states

from agentos import (
    Descriptor,
    DescriptorError,
    ExtensionManager,
    ExtensionPack,
    HookError,
    Override,
    Overrides,
    PackEntry,
)


def raises(context):
    raise Boom


async def test_below_is_looked_up_and_not_remembered(manager):
    contexts = []
    registry = manager.registry("x")
    await registry.register(Descriptor("x", "a", "first"))
    await registry.register(Descriptor("x", "a", "wrapper", priority=9, wraps=True, on_activate=contexts.append))
    assert contexts[0].below.payload == "first"
    await registry.register(Descriptor("x", "a", "second"))

    assert contexts[0].below.payload == "second"
    await registry.unregister("a")
    assert contexts[0].below.payload == "second"
    await registry.clear()
    assert contexts[0].below is None


async def test_a_last_hook_sees_what_is_beneath(manager):
    seen = []
    registry = manager.registry("x")
    await registry.register(Descriptor("x", "a", "base"))
    wrapper = Descriptor("x", "a", "wrapper", wraps=True, on_deactivate=lambda c: seen.append(c.below.payload))
    await registry.register(wrapper)
    await registry.unregister("a")

    assert seen == ["base"]


async def test_shutdown_undoes_activations_in_reverse_whatever_the_order_of_registration():
    log = []
    manager = ExtensionManager()
    registry = manager.registry("tool")
    await registry.register(descriptor("a", "wrapper", log=log, priority=5, wraps=True))
    await registry.register(descriptor("a", "base", log=log))
    top = await registry.register(descriptor("a", "top", log=log, priority=9))
    await registry.remove(top)
    log.clear()
    await manager.shutdown()

    assert log == [("-", "wrapper"), ("-", "base")]


async def test_a_second_shutdown_waits_for_the_first():
    go_on = asyncio.Event()
    log = []

    async def slow(context):
        await go_on.wait()
        log.append("off")

    manager = ExtensionManager()
    await manager.load_pack(pack("p", on_deactivate=slow))
    first = asyncio.create_task(manager.shutdown())
    await asyncio.sleep(0)
    second = asyncio.create_task(manager.shutdown())
    await asyncio.sleep(0)
    assert not second.done()
    go_on.set()
    await asyncio.gather(first, second)

    assert log == ["off"]


async def test_a_failed_activation_is_told_whatever_asked_for_it(manager):
    recorder = Recorder()
    manager.on(recorder)
    with pytest.raises(HookError):
        await manager.registry("tool").register(descriptor("x", on_activate=raises))
    await manager.load_pack(pack("p", descriptor("y", on_activate=raises)))

    assert [(event.id, event.entry.state) for event in recorder.of("descriptor:failed")] == [
        ("x", "failed"),
        ("y", "failed"),
    ]


async def test_an_enable_that_fails_is_told(manager):
    broken = []
    recorder = Recorder()
    manager.on(recorder)
    await manager.load_pack(pack("p", descriptor("x", on_activate=lambda c: broken and raises(c))))
    await manager.disable("p")
    broken.append(1)
    with pytest.raises(HookError):
        await manager.enable("p")

    assert [event.pack for event in recorder.of("pack:failed")] == ["p"]


async def test_unregistering_at_once_takes_one_entry_each(manager):
    registry = manager.registry("tool")
    for n in range(5):
        await registry.register(descriptor("a", str(n)))
    taken = await asyncio.gather(*(registry.unregister("a") for _ in range(6)))

    assert taken == [True] * 5 + [False]
    assert registry.stack("a") == []


async def test_a_parameter_with_a_default_keeps_it(manager):
    made = [pack("a"), pack("b")]
    for one in made:
        assert (await manager.load(PackEntry(factory=lambda one=one: one))).status == "loaded"
    log = []
    await manager.load_pack(pack("c", on_activate=lambda log=log: log.append("on")))

    def create(context=None):
        return pack("d", descriptor(str(context.options["id"])))

    await manager.load(PackEntry(factory=create, options={"id": "x"}))

    assert log == ["on"]
    assert states(manager, "x") == {"d": "active"}


async def test_a_registry_takes_descriptors_of_its_own_kind_only(manager):
    with pytest.raises(DescriptorError, match="of kind 'x'"):
        await manager.registry("x").register(Descriptor("y", "a", None))


async def test_a_secret_set_to_what_it_was_is_no_change(manager):
    recorder = Recorder()
    manager.on(recorder)
    await manager.set_secret("giphy.apiKey", "some-value")
    await manager.set_secret("giphy.apiKey", "some-value")
    await manager.set_secret("giphy.apiKey", "other-value")

    assert len(recorder.of("secret:changed")) == 2


async def test_an_entry_tells_pack_version_and_origin(manager):
    await manager.load(PackEntry(factory=lambda: pack("p", descriptor("x"), version="2.0")))
    entry = manager.explain("tool", "x").entries[0]

    assert (entry.pack, entry.version, entry.origin) == ("p", "2.0", "factory")


def test_overrides_are_read_from_files_and_mappings(tmp_path):
    file = tmp_path / "overrides.toml"
    file.write_text("[tools.a]\nenabled = false\n")
    said = Overrides({"tool": {"a": Override(enabled=False)}})

    assert Overrides.from_file(file) == Overrides.from_dict({"tools": {"a": {"enabled": False}}}) == said
    assert Overrides({"tools": {"a": {"enabled": False}}}) == said


async def test_what_is_plausible_is_taken_or_refused_in_words(manager):
    assert (await manager.load(lambda: pack("p"))).status == "loaded"
    with pytest.raises(TypeError, match="load_pack takes an ExtensionPack"):
        await manager.load_pack(lambda: pack("q"))
    async with ExtensionManager([PackEntry(factory=lambda: ExtensionPack("r"))]) as other:
        assert [record.name for record in other.packs()] == ["r"]
