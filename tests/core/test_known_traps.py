"""Each test is something that is known to go wrong in systems of this kind."""

import asyncio

import pytest
from kit import Boom, Recorder, descriptor, noting, pack, states

from agentos import (
    Descriptor,
    DescriptorError,
    ExtensionManager,
    ExtensionPack,
    HookError,
    ManagerClosedError,
    PackEntry,
    PackLoadError,
    SecretNotDeclaredError,
    UnknownPackError,
)


def raises(context):
    raise Boom("in a hook")


# -- hooks that raise --------------------------------------------------------------------------------------------


async def test_a_first_activation_that_raises_leaves_nothing(manager):
    outcome = await manager.load_pack(pack("p", descriptor("x", on_activate=raises)))

    assert outcome.status == "failed"
    assert "Boom: in a hook" in outcome.reason
    assert manager.registry("tool").get_active("x") is None
    assert manager.registry("tool").stack("x") == []
    assert manager.packs() == []


async def test_a_register_whose_activation_raises_raises_hook_error_and_leaves_nothing(manager):
    with pytest.raises(HookError, match="Boom"):
        await manager.registry("tool").register(descriptor("x", on_activate=raises))

    assert manager.explain("tool", "x").entries == []


async def test_a_superseded_entry_whose_deactivation_raises_changes_nothing_else(manager):
    recorder = Recorder()
    manager.on(recorder)
    await manager.load_pack(pack("old", descriptor("x", "old", on_deactivate=raises)))
    outcome = await manager.load_pack(pack("new", descriptor("x", "new")))

    assert outcome.status == "loaded"
    assert manager.registry("tool").get_active("x").payload == "new"
    assert states(manager, "x") == {"new": "active", "old": "shadowed"}
    assert isinstance(recorder.of("descriptor:deactivated")[0].error, HookError)


async def test_a_removal_whose_hook_raises_removes_all_the_same(manager):
    entry = await manager.registry("tool").register(descriptor("x", on_deactivate=raises))

    assert await manager.registry("tool").remove(entry)
    assert manager.registry("tool").stack("x") == []


async def test_unload_returns_what_its_hooks_raised(manager):
    await manager.load_pack(pack("p", descriptor("x", on_deactivate=raises), on_deactivate=raises))

    raised = await manager.unload("p")

    assert [type(error) for error in raised] == [HookError, HookError]
    assert manager.packs() == []


async def test_clear_with_a_raising_hook_in_the_middle_clears_everything(manager):
    log = []
    registry = manager.registry("tool")
    for name in ("a", "b", "c"):
        await registry.register(descriptor(name, log=log, bad_off="b" if name == "b" else ""))
    log.clear()
    await registry.clear()

    assert log == [("-", "c"), ("-", "b"), ("-", "a")]
    assert registry.list_active() == []
    assert len(registry) == 0


async def test_clear_activates_nothing_beneath(manager):
    log = []
    await manager.load_pack(pack("a", descriptor("x", "a", log=log)))
    await manager.load_pack(pack("b", descriptor("x", "b", log=log)))
    log.clear()
    await manager.registry("tool").clear()

    assert log == [("-", "b")]


async def test_shutdown_with_a_raising_hook_in_the_middle_runs_every_hook_in_reverse():
    log = []
    manager = ExtensionManager()
    for name in ("a", "b", "c"):
        bad = "yes" if name == "b" else ""
        await manager.load_pack(pack(name, descriptor(name, log=log, bad_off=bad), log=log))
    log.clear()
    raised = await manager.shutdown()

    assert log == [("-", "c"), ("-", "pack c"), ("-", "b"), ("-", "pack b"), ("-", "a"), ("-", "pack a")]
    assert [type(error) for error in raised] == [HookError]
    assert manager.registry("tool").list_active() == []


async def test_shutdown_activates_no_fallback():
    log = []
    manager = ExtensionManager()
    await manager.load_pack(pack("a", descriptor("x", "a", log=log)))
    await manager.load_pack(pack("b", descriptor("x", "b", log=log)))
    log.clear()
    await manager.shutdown()

    assert log == [("-", "b")]


async def test_shutdown_twice_is_harmless_and_changes_are_refused_after_it():
    manager = ExtensionManager()
    await manager.shutdown()

    assert await manager.shutdown() == []
    with pytest.raises(ManagerClosedError):
        await manager.load_pack(pack("p"))


async def test_a_hook_that_raises_cancelled_error_by_itself_counts_as_failing(manager):
    def cancels(context):
        raise asyncio.CancelledError

    outcome = await manager.load_pack(pack("p", descriptor("x", on_activate=cancels)))

    assert outcome.status == "failed"


async def test_a_hook_that_calls_sys_exit_counts_as_failing(manager):
    def leaves(context):
        raise SystemExit(3)

    outcome = await manager.load_pack(pack("p", descriptor("x", on_activate=leaves)))

    assert outcome.status == "failed"


async def test_a_hook_that_hangs_is_given_up():
    async def hangs(context):
        await asyncio.Event().wait()

    manager = ExtensionManager(hook_timeout=0.01)
    outcome = await manager.load_pack(pack("p", descriptor("x", on_activate=hangs)))

    assert "took longer than 0.01 s" in outcome.reason
    await manager.shutdown()


# -- packs are whole ---------------------------------------------------------------------------------------------


async def test_a_partly_failing_pack_is_taken_off_and_what_it_displaced_is_in_force_throughout(manager):
    log = []
    await manager.load_pack(pack("base", descriptor("x", "base", log=log)))
    log.clear()
    bad = pack("p", descriptor("x", "p", log=log), descriptor("y", on_activate=raises), log=log)
    outcome = await manager.load_pack(bad)

    assert outcome.status == "failed"
    assert states(manager, "x") == {"base": "active"}
    assert log == [("+", "pack p"), ("+", "p"), ("-", "p"), ("-", "pack p")]


async def test_a_pack_that_failed_can_be_loaded_again_when_its_cause_is_gone(manager):
    broken = [True]

    def sometimes(context):
        if broken[0]:
            raise Boom

    entry = PackEntry(factory=lambda: pack("p", descriptor("x"), descriptor("y", on_activate=sometimes)))
    assert (await manager.load(entry)).status == "failed"
    broken[0] = False

    assert (await manager.load(entry)).status == "loaded"
    assert states(manager, "y") == {"p": "active"}


async def test_a_packs_on_deactivate_does_not_run_if_its_on_activate_had_not_finished(manager):
    log = []
    await manager.load_pack(pack("p", on_activate=raises, on_deactivate=noting(log, "-", "p")))

    assert log == []


async def test_two_descriptors_of_one_pack_on_one_stack_fail_the_pack(manager):
    outcome = await manager.load_pack(pack("p", descriptor("x", "one"), descriptor("x", "two")))

    assert outcome.status == "failed"
    assert "two descriptors for tool:x" in outcome.reason


async def test_readers_never_see_half_of_a_pack(manager):
    seen = []

    async def look(context):
        await asyncio.sleep(0)
        seen.append([entry.id for entry in manager.registry("tool").list_active()])

    await manager.load_pack(pack("p", *(descriptor(str(n), on_activate=look) for n in range(5))))

    assert seen == [[]] * 5
    assert len(manager.registry("tool").list_active()) == 5


async def test_a_cancelled_load_leaves_nothing_behind(manager):
    log = []
    reached = asyncio.Event()

    async def waits(context):
        reached.set()
        await asyncio.Event().wait()

    slow = pack("p", descriptor("x", "x", log=log), descriptor("y", on_activate=waits), log=log)
    task = asyncio.create_task(manager.load_pack(slow))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert log == [("+", "pack p"), ("+", "x"), ("-", "x"), ("-", "pack p")]
    assert manager.packs() == []
    assert len(manager.registry("tool")) == 0


async def test_a_load_cancelled_while_the_old_entry_retires_puts_the_old_one_back(manager):
    log = []
    reached = asyncio.Event()
    go_on = asyncio.Event()

    async def slow(context):
        reached.set()
        await go_on.wait()
        log.append("old off")

    await manager.load_pack(
        pack("old", descriptor("x", "old", on_activate=lambda c: log.append("old on"), on_deactivate=slow))
    )
    task = asyncio.create_task(manager.load_pack(pack("new", descriptor("x", "new", log=log))))
    await reached.wait()
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert states(manager, "x") == {"old": "active"}
    assert log == ["old on", ("+", "new"), "old off", "old on", ("-", "new")]


# -- changes from inside hooks -----------------------------------------------------------------------------------


async def test_registering_on_another_stack_from_inside_a_hook_is_done_at_once(manager):
    seen = []

    async def hook(context):
        await manager.registry("tool").register(descriptor("y"))
        seen.append(manager.registry("tool").get_active("y").payload)

    await asyncio.wait_for(manager.load_pack(pack("p", descriptor("x", on_activate=hook))), 5)

    assert seen == ["y"]


async def test_registering_on_the_same_stack_from_inside_a_hook_counts_before_the_outer_change_returns(manager):
    async def hook(context):
        await manager.registry("tool").register(descriptor("x", "stronger", priority=5))

    await asyncio.wait_for(manager.load_pack(pack("p", descriptor("x", "p", on_activate=hook))), 5)

    assert manager.registry("tool").get_active("x").payload == "stronger"


async def test_a_hook_can_load_another_pack(manager):
    async def hook(context):
        await manager.load_pack(pack("inner", descriptor("y")))

    await asyncio.wait_for(manager.load_pack(pack("outer", descriptor("x"), on_activate=hook)), 5)

    assert {record.name for record in manager.packs()} == {"inner", "outer"}


async def test_packs_whose_hooks_load_each_other_do_not_deadlock(manager):
    entries = {}

    def factory(name, other):
        async def hook(context):
            await asyncio.sleep(0)
            await manager.load(entries[other])

        return lambda: pack(name, descriptor(name), on_activate=hook)

    entries["a"] = PackEntry(factory=factory("a", "b"), identifier="a")
    entries["b"] = PackEntry(factory=factory("b", "a"), identifier="b")
    await asyncio.wait_for(asyncio.gather(manager.load(entries["a"]), manager.load(entries["b"])), 5)

    assert sorted(record.name for record in manager.packs()) == ["a", "b"]


async def test_hooks_on_two_stacks_that_each_change_the_other_do_not_deadlock(manager):
    both = asyncio.Barrier(2)

    def hook(other):
        async def run(context):
            await both.wait()
            await manager.registry("tool").register(descriptor(other, f"{other} from a hook", priority=1))

        return run

    await asyncio.wait_for(
        asyncio.gather(
            manager.load_pack(pack("a", descriptor("x", on_activate=hook("y")))),
            manager.load_pack(pack("b", descriptor("y", on_activate=hook("x")))),
        ),
        5,
    )

    assert manager.registry("tool").get_active("x").payload == "x from a hook"
    assert manager.registry("tool").get_active("y").payload == "y from a hook"


async def test_a_hook_that_changes_its_own_pack_is_told_so(manager):
    told = []

    async def hook(context):
        try:
            await manager.disable("p")
        except UnknownPackError as error:
            told.append(error)

    async def later(context):
        try:
            await manager.unload("p")
        except PackLoadError as error:
            told.append(error)

    await manager.load_pack(pack("p", descriptor("x", on_deactivate=later), on_activate=hook))
    await manager.unload("p")

    assert len(told) == 2
    assert "is being changed further up" in str(told[1])


async def test_shutdown_from_a_hook_is_refused_instead_of_waiting_for_ever(manager):
    outcome = await manager.load_pack(pack("p", on_activate=lambda c: manager.shutdown()))

    assert "shutdown can't be called from a hook" in outcome.reason


async def test_a_task_started_by_a_hook_can_change_things_after_the_hook_has_ended(manager):
    go = asyncio.Event()
    tasks = []

    async def background():
        await go.wait()
        await manager.load_pack(pack("late", descriptor("x", "late")))

    await manager.load_pack(
        pack("p", descriptor("x", on_activate=lambda c: tasks.append(asyncio.create_task(background()))))
    )
    go.set()
    await asyncio.wait_for(tasks[0], 5)

    assert manager.registry("tool").get_active("x").payload == "late"


# -- one pack, twice ---------------------------------------------------------------------------------------------


async def test_concurrent_loads_of_one_entry_load_it_once(manager):
    made = []

    async def factory():
        made.append(1)
        await asyncio.sleep(0)
        return pack("p", descriptor("x"))

    entry = PackEntry(factory=factory)
    outcomes = await asyncio.gather(*(manager.load(entry) for _ in range(20)))

    assert sorted(outcome.status for outcome in outcomes) == ["loaded"] + ["skipped"] * 19
    assert {outcome.reason for outcome in outcomes} == {None, "already_loaded"}
    assert made == [1]


async def test_a_different_pack_of_a_taken_name_fails_and_names_both_origins(manager, tmp_path):
    file = tmp_path / "other.py"
    file.write_text("from agentos import ExtensionPack\npack = ExtensionPack('p')\n")
    await manager.load(PackEntry(factory=lambda: pack("p")))
    outcome = await manager.load(PackEntry(module=str(file)))

    assert outcome.status == "failed"
    assert str(file) in outcome.reason
    assert "factory" in outcome.reason


async def test_the_same_key_again_is_skipped(manager):
    entry = PackEntry(factory=lambda: pack("p"), identifier="one")
    await manager.load(entry)
    outcome = await manager.load(PackEntry(factory=lambda: pack("q"), identifier="one"))

    assert (outcome.status, outcome.reason, outcome.key) == ("skipped", "already_loaded", "one")


# -- priorities --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("priority", [True, False, 1.0, float("nan"), float("inf"), "1"])
def test_a_priority_that_is_no_int_is_refused(priority):
    with pytest.raises(DescriptorError, match="priority"):
        Descriptor("tool", "x", None, priority=priority)


async def test_an_explicit_zero_counts_as_given(manager):
    entry = PackEntry(factory=lambda: pack("p", descriptor("x", priority=0)), priority=7)
    await manager.load(entry)

    assert manager.registry("tool").get_active("x").priority == 0


# -- secrets -----------------------------------------------------------------------------------------------------


async def test_a_packs_secrets_can_not_be_read_by_another_pack(manager):
    contexts = {}

    def factory(name, **fields):
        def create(context):
            return ExtensionPack(name, descriptors=[descriptor(name, **fields)], on_activate=keep(name))

        return create

    def keep(name):
        return lambda context: contexts.update({name: context})

    await manager.load(
        PackEntry(
            factory=factory("owner", required_secrets=["giphy.apiKey"]),
            options={"secrets": {"giphy.apiKey": "owners-own-value"}},
        )
    )
    await manager.load(PackEntry(factory=factory("thief")))
    await manager.load(PackEntry(factory=factory("sharer", required_secrets=["giphy.apiKey"])))

    assert contexts["owner"].secret("giphy.apiKey") == "owners-own-value"
    assert contexts["sharer"].secret("giphy.apiKey") is None
    with pytest.raises(SecretNotDeclaredError, match="thief"):
        contexts["thief"].secret("giphy.apiKey")


async def test_a_pack_reads_no_secret_after_it_was_unloaded_nor_after_shutdown():
    manager = ExtensionManager(secrets={"giphy.apiKey": "some-real-value"})
    contexts = {}
    for name in ("gone", "closed"):
        one = descriptor(name, required_secrets=["giphy.apiKey"])
        await manager.load_pack(pack(name, one, on_activate=lambda c, name=name: contexts.update({name: c})))
    await manager.unload("gone")
    with pytest.raises(SecretNotDeclaredError):
        contexts["gone"].secret("giphy.apiKey")
    await manager.shutdown()

    with pytest.raises(SecretNotDeclaredError):
        contexts["closed"].secret("giphy.apiKey")


async def test_the_last_hook_of_a_pack_can_still_read_its_secrets():
    manager = ExtensionManager(secrets={"giphy.apiKey": "some-real-value"})
    seen = []
    one = descriptor("x", required_secrets=["giphy.apiKey"])
    await manager.load_pack(pack("p", one, on_deactivate=lambda c: seen.append(c.secret("giphy.apiKey"))))
    await manager.shutdown()

    assert seen == ["some-real-value"]


# -- overrides and defaults --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        ("tools", "tool"),
        ("guardrails", "guardrail"),
        ("responses", "response-processor"),
        ("mood", "mood"),
        ("my own kind", "my own kind"),
    ],
)
async def test_an_override_reaches_every_kind(group, kind):
    manager = ExtensionManager(overrides={group: {"x": {"enabled": False}}})
    await manager.load_pack(pack("p", descriptor("x", kind=kind)))

    assert states(manager, "x", kind) == {"p": "disabled"}
    await manager.set_override(group, "x", {"enabled": True})
    assert states(manager, "x", kind) == {"p": "active"}
    await manager.shutdown()


async def test_what_is_off_by_default_is_turned_on_by_an_override(manager):
    await manager.load_pack(pack("p", descriptor("x", enabled_by_default=False)))
    assert states(manager, "x") == {"p": "disabled"}
    await manager.set_override("tool", "p:x", {"enabled": True})

    assert states(manager, "x") == {"p": "active"}


async def test_a_disabled_pack_stays_disabled_whatever_an_override_says(manager):
    await manager.load_pack(pack("p", descriptor("x")))
    await manager.disable("p")
    await manager.set_override("tool", "p:x", {"enabled": True, "priority": 100})

    assert states(manager, "x") == {"p": "disabled"}


async def test_a_failing_enable_leaves_the_pack_disabled_and_undoes_its_hooks(manager):
    log = []
    broken = [False]

    def sometimes(context):
        if broken[0]:
            raise Boom

    await manager.load_pack(pack("p", descriptor("x", "x", log=log), descriptor("y", on_activate=sometimes), log=log))
    await manager.disable("p")
    log.clear()
    broken[0] = True
    with pytest.raises(HookError):
        await manager.enable("p")

    assert log == [("+", "pack p"), ("+", "x"), ("-", "x"), ("-", "pack p")]
    assert manager.packs()[0].enabled is False
    assert states(manager, "x") == {"p": "disabled"}


# -- failing later -----------------------------------------------------------------------------------------------


async def test_a_fallback_that_fails_is_marked_and_the_next_best_is_in_force(manager):
    recorder = Recorder()
    manager.on(recorder)
    broken = [False]

    def sometimes(context):
        if broken[0]:
            raise Boom("late")

    await manager.load_pack(pack("third", descriptor("x", "third")))
    await manager.load_pack(pack("second", descriptor("x", "second", on_activate=sometimes)))
    await manager.load_pack(pack("first", descriptor("x", "first")))
    broken[0] = True
    await manager.unload("first")

    assert states(manager, "x") == {"second": "failed", "third": "active"}
    failed = recorder.of("descriptor:failed")[0]
    assert (failed.id, failed.pack, failed.entry.state) == ("x", "second", "failed")
    assert "Boom: late" in failed.reason


async def test_a_failed_entry_is_tried_again_when_a_fact_about_it_changes(manager):
    broken = [True]

    def sometimes(context):
        if broken[0]:
            raise Boom

    await manager.load_pack(pack("p", descriptor("x", required_secrets=["giphy.apiKey"], on_activate=sometimes)))
    await manager.set_secret("giphy.apiKey", "a-real-value")
    assert states(manager, "x") == {"p": "failed"}
    broken[0] = False
    await manager.set_override("tool", "other", {"priority": 3})
    assert states(manager, "x") == {"p": "failed"}
    await manager.enable("p")

    assert states(manager, "x") == {"p": "active"}


async def test_explain_tells_each_state_with_its_reason(manager):
    broken = [True]

    def sometimes(context):
        if broken[0]:
            raise Boom("why")

    await manager.load_pack(pack("shadowed", descriptor("x", "1")))
    await manager.load_pack(pack("wrapped", descriptor("x", "2")))
    await manager.load_pack(pack("active", descriptor("x", "3", wraps=True)))
    await manager.load_pack(pack("gated", descriptor("x", "4", required_secrets=["giphy.apiKey"])))
    await manager.load_pack(pack("disabled", descriptor("x", "5", enabled_by_default=False)))
    await manager.load_pack(pack("failed", descriptor("x", "6", enabled_by_default=False, on_activate=sometimes)))
    await manager.set_override("tool", "failed:x", {"enabled": True})
    explanation = manager.explain("tool", "x")

    assert {entry.source.pack: str(entry.state) for entry in explanation.entries} == {
        name: name for name in ("failed", "disabled", "gated", "active", "wrapped", "shadowed")
    }
    reasons = {entry.source.pack: entry.reason for entry in explanation.entries}
    assert "Boom: why" in reasons["failed"]
    assert "disabled by default" in reasons["disabled"]
    assert "GIPHY_API_KEY" in reasons["gated"]
    assert "strongest of 3" in reasons["active"]
    assert "wrapped by active" in reasons["wrapped"]
    assert "shadowed by wrapped" in reasons["shadowed"]
    text = str(explanation)
    assert all(reason in text for reason in reasons.values())


async def test_explain_of_something_unknown_has_no_entries(manager):
    explanation = manager.explain("tool", "nope")

    assert (explanation.active, list(explanation.entries)) == (None, [])
    assert "unknown" in str(explanation)


async def test_unload_of_an_unknown_key_raises(manager):
    with pytest.raises(UnknownPackError, match="Loaded packs: none"):
        await manager.unload("nope")


async def test_a_listener_that_raises_on_every_event_changes_nothing(manager, caplog):
    def bad(event):
        raise Boom

    manager.on(bad)
    outcome = await manager.load_pack(pack("p", descriptor("x")))

    assert outcome.status == "loaded"
    assert "a listener raised on pack:loaded" in caplog.text
