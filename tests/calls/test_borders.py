"""The border to foreign code: whatever it raises becomes a record, but the caller's own cancellation and Ctrl-C."""

import asyncio
import os
import signal
import threading
from collections.abc import Mapping

import pytest

from agentos import (
    PUBLIC,
    AgentOS,
    Answer,
    Descriptor,
    ExtensionPack,
    Principal,
    SecretRequirement,
    ServiceError,
    ToolCall,
    tool,
)
from agentos.base.foreign import Border
from agentos.testing import capture_events


class PanicException(BaseException):
    """As a panic in an extension that is written in Rust arrives."""


class Unspeakable(BaseException):
    """Can't be shown, and says so in the worst way."""

    def __str__(self):
        raise SystemExit("no text")

    __repr__ = __str__


class Disguised(BaseException):
    """Does not tell what it is."""

    @property
    def __class__(self):
        raise PanicException("no class")


ERRORS = {
    "panic": lambda: PanicException("index out of range"),
    "memory": MemoryError,
    "exit": lambda: SystemExit(3),
    "stop iteration": StopIteration,
    "made-up cancellation": asyncio.CancelledError,
    "stop async iteration": StopAsyncIteration,
    "recursion": RecursionError,
    "generator exit": GeneratorExit,
    "disguised": Disguised,
    "group": lambda: ExceptionGroup("two", [ValueError("one"), StopIteration()]),
    "base group": lambda: BaseExceptionGroup("all", [SystemExit(1), asyncio.CancelledError(), PanicException()]),
    "unspeakable": Unspeakable,
}
every_error = pytest.mark.parametrize("make", ERRORS.values(), ids=ERRORS)
mutate = tool(effect="mutate", required_access=PUBLIC)


def raiser(make):
    def raises(*_, **__):
        raise make()

    return raises


def later(make):
    async def raises(*_, **__):
        await asyncio.sleep(0)
        raise make()

    return raises


class Treacherous:
    """Can't be made JSON of."""

    def __init__(self, make):
        self.model_dump = raiser(make)


class TreacherousMapping(Mapping):
    def __init__(self, make):
        self._make = make

    def __len__(self):
        raise self._make()

    __iter__ = __getitem__ = items = __len__


def bad_tools(make):
    """Return tools that all raise, each in its own way."""

    @mutate
    async def on_loop() -> str:
        """Raise on the loop."""
        raise make()

    @tool(effect="mutate", required_access=PUBLIC, timeout=60)
    async def in_task() -> str:
        """Raise in a task of its own."""
        raise make()

    @mutate
    def in_thread() -> str:
        """Raise in a thread."""
        raise make()

    @mutate
    async def yields() -> list:
        """Raise after the first item."""
        yield 1
        raise make()

    @mutate
    def yields_in_thread() -> list:
        """Raise after the first item, in a thread."""
        yield 1
        raise make()

    @mutate
    def awaited_from_thread() -> dict:
        """Return something to await, which raises."""
        return later(make)()

    @mutate
    async def returns_object() -> dict:
        """Return what can't be made JSON of."""
        return Treacherous(make)

    @mutate
    def returns_mapping() -> dict:
        """Return a mapping that can't be read."""
        return TreacherousMapping(make)

    @mutate
    async def makes_service(context) -> str:
        """Ask for a service whose factory raises."""
        return await context.services.get_or_create("broken", raiser(make))

    @mutate
    async def passes_mapping(context) -> str:
        """Call another tool with what can't be read."""
        result = await context.call("good", TreacherousMapping(make))
        raise ValueError(result.content)

    @mutate
    def passes_mapping_in_thread(context) -> str:
        """Call another tool from a thread with what can't be read."""
        raise ValueError(context.call("good", TreacherousMapping(make)).content)

    return [one for one in locals().values() if one is not make]


@mutate
async def good() -> str:
    """Do it."""
    return "done"


def hosted(**options):
    return AgentOS(budget=None, **{"mode": "auto", **options})


async def load(host, *descriptors, name="p", **fields):
    outcome = await host.extensions.load_pack(ExtensionPack(name, "1.0", descriptors, **fields))
    assert outcome.status == "loaded", outcome


async def call(host, name="good", arguments=None, **fields):
    return await host.tools.process_tool_call(ToolCall(name, arguments, **fields))


async def ended(host, tool):
    """Return the errors that calls of a tool ended with, as the audit log has it."""
    records = await host.audit.records()
    return [one.data.get("error") for one in records if one.event == "call" and one.data.get("tool") == f"p:{tool}"]


# -- calls -------------------------------------------------------------------------------------------------------------

WHAT_CAME = {"returns_object": "ResultNotSerialisable", "returns_mapping": "ResultNotSerialisable"}


@every_error
async def test_a_tool_that_raises_anything_has_a_result_and_an_end_record(make):
    bad = bad_tools(make)
    async with hosted() as host:
        await load(host, good, *bad)
        for one in bad:
            result = await call(host, one.name, id="a")
            expected = WHAT_CAME.get(one.name, "ToolRaised")

            assert (one.name, result.error.type) == (one.name, expected)
            assert (one.name, await ended(host, one.name)) == (one.name, [expected])


@every_error
async def test_in_a_batch_the_others_have_their_results(make):
    bad = bad_tools(make)
    async with hosted() as host:
        await load(host, good, *bad)
        calls = [ToolCall(name) for one in bad for name in (one.name, "good")]
        results = await host.tools.process_tool_calls(calls)

        assert [result.success for result in results] == [False, True] * len(bad)


@every_error
async def test_an_approved_call_that_raises_anything_ends_as_failed(make):
    bad = bad_tools(make)
    async with hosted(mode="approve") as host:
        await load(host, good, *bad)
        await host.grants.add("good", "always")
        for one in bad:
            proposal = (await call(host, one.name)).error.details["proposal_id"]
            result = await host.approvals.approve(proposal)

            assert (one.name, result.success) == (one.name, False)
            assert (one.name, (await host.approvals.describe(proposal)).state) == (one.name, "failed")


@every_error
@pytest.mark.parametrize("way", [raiser, later])
async def test_an_intervention_that_raises_anything_asks(make, way):
    asking = tool(effect="read", required_access=PUBLIC, intervention=way(make))(good.function)
    async with hosted() as host:
        await load(host, asking)

        assert (await call(host)).error.type == "ApprovalRequired"


@every_error
@pytest.mark.parametrize("way", [raiser, later])
async def test_a_dry_run_that_raises_anything_is_part_of_the_proposal(make, way):
    rehearsed = tool(effect="mutate", required_access=PUBLIC, dry_run=way(make))(good.function)
    async with hosted(mode="approve") as host:
        await load(host, rehearsed)
        proposal = (await call(host)).error.details["proposal_id"]

        assert "dry_run_failed" in (await host.approvals.describe(proposal)).preview
        assert (await host.approvals.approve(proposal)).output == "done"


@every_error
@pytest.mark.parametrize("way", [raiser, later])
async def test_a_handler_that_raises_anything_has_not_answered(make, way):
    handlers = [Descriptor("hitl-handler", "a", way(make)), Descriptor("hitl-handler", "b", lambda _: Answer.approve())]
    async with hosted(mode="approve") as host:
        await load(host, good, *handlers)

        assert (await call(host)).output == "done"


@every_error
@pytest.mark.parametrize("way", [raiser, later])
async def test_when_it_can_not_be_told_who_asked_an_approval_is_invalid(make, way):
    async with hosted(mode="approve", principals=way(make)) as host:
        await load(host, good)
        result = await host.tools.process_tool_call(ToolCall("good"), Principal("ada"))
        proposal = result.error.details["proposal_id"]

        assert (await host.approvals.approve(proposal)).error.type == "ProposalInvalid"
        assert (await host.approvals.describe(proposal)).state == "proposed"


@every_error
@pytest.mark.parametrize("way", [raiser, later])
async def test_a_listener_that_raises_anything_has_no_vote(make, way, caplog):
    async with hosted() as host:
        host.extensions.on(way(make))
        with capture_events(host) as events:
            await load(host, good)
            result = await call(host, id="a")

        assert result.output == "done"
        assert events.types[-2:] == ["tool:started", "tool:finished"]
        assert await ended(host, "good") == [None]
    assert "a listener raised on tool:started" in caplog.text


@every_error
async def test_what_listeners_make_of_progress_reaches_no_tool(make):
    @mutate
    async def tells(context) -> str:
        """Tell."""
        await context.report_progress(1)
        return "told"

    @mutate
    def tells_in_thread(context) -> str:
        """Tell, from a thread."""
        context.report_progress(1)
        return "told"

    async with hosted() as host:
        host.extensions.on(later(make))
        await load(host, tells, tells_in_thread)

        assert [(await call(host, name)).output for name in ("tells", "tells_in_thread")] == ["told", "told"]


# -- packs -------------------------------------------------------------------------------------------------------------


@every_error
@pytest.mark.parametrize("way", [raiser, later])
async def test_a_factory_or_hook_that_raises_anything_is_an_outcome(make, way):
    packs = [
        {"factory": way(make)},
        {"factory": lambda: ExtensionPack("a", "1.0", [good], on_activate=way(make))},
        {"factory": lambda: ExtensionPack("b", "1.0", [Descriptor("x", "y", 1, on_activate=way(make))])},
    ]
    async with hosted() as host:
        outcomes = [await host.extensions.load(entry) for entry in packs]
        await load(host, good)

        assert [outcome.status for outcome in outcomes] == ["failed"] * 3
        assert [record.key for record in host.extensions.packs()] == ["p"]
        assert (await call(host)).output == "done"


@every_error
async def test_a_gate_that_raises_anything_is_shut(make):
    async with hosted() as host:
        await load(host, Descriptor("x", "y", 1, gate=raiser(make)))
        explained = host.extensions.explain("x", "y")

        assert explained.active is None
        assert "its gate raised" in explained.entries[0].reason


@every_error
@pytest.mark.parametrize("way", [raiser, later])
async def test_a_source_of_secrets_that_raises_anything_has_none(make, way):
    descriptor = Descriptor("x", "y", 1, required_secrets=[SecretRequirement("key")])
    async with hosted(extension_secrets=way(make)) as host:
        await load(host, good, descriptor)
        await host.extensions.refresh_secrets()

        assert host.extensions.registry("x").get_active("y") is None
        assert (await call(host)).output == "done"


@every_error
@pytest.mark.parametrize("way", [raiser, later])
async def test_a_factory_of_a_service_that_raises_an_exit_or_a_panic_tells_the_host_in_an_error(make, way):
    async with hosted() as host:
        with pytest.raises(Exception) as told:
            await host.extensions.services.get_or_create("broken", way(make))
        made = await host.extensions.services.get_or_create("broken", dict)

    assert made == {}
    assert issubclass(type(make()), Exception) or isinstance(told.value, ServiceError)


@every_error
@pytest.mark.parametrize("way", [raiser, later])
async def test_a_shutdown_goes_to_its_end_whatever_is_raised_on_the_way(make, way):
    log = []
    host = hosted()
    await host.initialize()
    for name in ("a", "bad", "z"):
        fails = way(make) if name == "bad" else None

        async def start(context, name=name, fails=fails):
            dispose = fails or (lambda _, name=name: log.append(f"{name} disposed"))
            await context.services.get_or_create(f"of {name}", object, dispose=dispose)

        descriptor = Descriptor("x", name, 1, on_deactivate=fails or (lambda name=name: log.append(f"{name} x")))
        stop = fails or (lambda name=name: log.append(f"{name} stopped"))
        await load(host, descriptor, name=name, on_activate=start, on_deactivate=stop)
    host.extensions.on(way(make))
    raised = await host.shutdown()

    assert log == [f"{name} {what}" for name in "za" for what in ("x", "stopped", "disposed")]
    assert len(raised) == 3
    assert all(isinstance(error, Exception) for error in raised)


# -- what comes from outside -------------------------------------------------------------------------------------------


def waiting_tools(reached, release):
    """Return tools and what else foreign code may wait in; each tells when it is reached."""

    async def wait(*_):
        reached.set()
        await asyncio.Event().wait()

    @mutate
    async def on_loop() -> str:
        """Wait on the loop."""
        await wait()

    @tool(effect="mutate", required_access=PUBLIC, timeout=60)
    async def in_task() -> str:
        """Wait in a task."""
        await wait()

    @mutate
    def in_thread() -> str:
        """Wait in a thread."""
        asyncio.run_coroutine_threadsafe(_set(reached), LOOP[0]).result()
        release.wait()

    @mutate
    async def grouped() -> str:
        """Hand the cancellation on in a group."""
        try:
            await wait()
        except asyncio.CancelledError as error:
            raise BaseExceptionGroup("cancelled", [error, PanicException()]) from None

    @tool(effect="mutate", required_access=PUBLIC, intervention=wait)
    async def checked() -> str:
        """Wait in its own check."""

    return on_loop, in_task, in_thread, grouped, checked


LOOP = []


async def _set(event):
    event.set()


@pytest.mark.parametrize("name", ["on_loop", "in_task", "in_thread", "grouped", "checked"])
async def test_the_callers_own_cancellation_cancels_and_is_on_record(name):
    reached, release = asyncio.Event(), threading.Event()
    LOOP[:] = [asyncio.get_running_loop()]
    async with hosted() as host:
        await load(host, *waiting_tools(reached, release))
        task = asyncio.create_task(call(host, name))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()

        assert task.cancelled()
        assert await ended(host, name) == ["Cancelled"]


@pytest.mark.parametrize("where", ["listener", "handler", "hook", "factory of a service"])
async def test_the_callers_own_cancellation_cancels_wherever_foreign_code_waits(where):
    reached = asyncio.Event()

    async def wait(*_):
        reached.set()
        await asyncio.Event().wait()

    async with hosted(mode="approve") as host:
        await load(host, good, *([Descriptor("hitl-handler", "h", wait)] if where == "handler" else []))
        work = {
            "listener": lambda: load(host, name="q"),
            "handler": lambda: call(host),
            "hook": lambda: load(host, name="q", on_activate=wait),
            "factory of a service": lambda: host.extensions.services.get_or_create("s", wait),
        }
        if where == "listener":
            host.extensions.on(wait)
        task = asyncio.create_task(work[where]())
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        host.extensions.off(wait)


async def test_a_coroutine_that_its_task_does_not_run_any_more_ends_without_a_word():
    reached, went_on = asyncio.Event(), []

    async def work():
        with Border():
            reached.set()
            await asyncio.Event().wait()
        went_on.append(True)

    task = asyncio.create_task(work())
    await reached.wait()
    task.get_coro().close()  # as when a pending task is forgotten
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert went_on == []


def test_ctrl_c_ends_the_program_in_the_midst_of_a_tool():
    @mutate
    async def interrupted() -> str:
        """Be there when the user presses Ctrl-C."""
        os.kill(os.getpid(), signal.SIGINT)
        return "not heard"

    async def main():
        async with hosted() as host:
            await load(host, interrupted)
            return await call(host, "interrupted")

    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(main())
    finally:
        loop.close()


def test_beside_the_main_thread_nobody_presses_ctrl_c():
    async def main():
        async with hosted() as host:
            await load(host, *bad_tools(KeyboardInterrupt), good)
            return await host.tools.process_tool_calls([ToolCall("on_loop"), ToolCall("in_task"), ToolCall("good")])

    results = []
    thread = threading.Thread(target=lambda: results.extend(asyncio.run(main())))
    thread.start()
    thread.join()

    assert [result.success for result in results] == [False, False, True]


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), BaseExceptionGroup("both", [ValueError(), KeyboardInterrupt()])]
)
def test_what_may_be_ctrl_c_passes_the_border_also_in_a_group(error):
    with pytest.raises(KeyboardInterrupt), Border():
        raise error


@every_error
def test_the_border_needs_no_event_loop(make):
    with Border() as border:
        raise make()

    assert issubclass(type(border.raised), type(make()))


async def test_an_approved_call_is_as_deep_as_the_one_that_asked():
    depths = []

    @tool(effect="mutate", required_access=PUBLIC)
    async def dig(context) -> str:
        """Call itself."""
        depths.append(context.depth)
        return (await context.call("dig")).content

    async with hosted(mode="approve") as host:
        await load(host, dig, Descriptor("hitl-handler", "yes", lambda _: Answer.approve()))
        result = await call(host, "dig")

    assert depths == list(range(9))
    assert "tools call tools 8 deep" in result.content
