"""What foreign code tells the guard: a tool's own check, and a handler that answers for a person."""

import asyncio
import contextlib
import threading

import pytest

from agentos import PUBLIC, AgentOS, Answer, Descriptor, ExtensionPack, Tool, ToolCall

PATIENCE = 10.0


async def nothing(args, context):
    return "done"


def acting(**fields):
    return Tool.from_schema(
        name="act",
        description="Do it.",
        input_schema={"type": "object"},
        effect="mutate",
        required_access=PUBLIC,
        **{"execute": nothing, **fields},
    )


@contextlib.asynccontextmanager
async def hosted(*offered, **options):
    async with AgentOS(budget=None, **options) as host:
        outcome = await host.extensions.load_pack(ExtensionPack("p", "1.0", offered))
        assert outcome.status == "loaded", outcome
        yield host


async def call(host, **fields):
    return await host.tools.process_tool_call(ToolCall("act", **fields))


def kind(result):
    return "ok" if result.success else result.error.type


# -- a tool's own check ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", ["", "Never", True, 0, b"never", ["never"]], ids=repr)
async def test_a_check_that_gives_none_of_the_three_words_counts_as_always(said):
    async with hosted(acting(intervention=lambda args, context: said), mode="auto") as host:
        await host.grants.add("act", "always")
        result = await call(host)

    assert (kind(result), "always asks" in result.error.message) == ("ApprovalRequired", True)


# -- handlers ----------------------------------------------------------------------------------------------------------


async def until(event):
    """Wait for a thread's event without keeping the loop."""
    async with asyncio.timeout(PATIENCE):
        while not event.is_set():
            await asyncio.sleep(0.001)


class Asked:
    """A sync handler that waits until it is let go."""

    def __init__(self):
        self.begun, self.go = threading.Event(), threading.Event()
        self.thread = None

    def on_proposal(self, proposal):
        self.thread = threading.current_thread()
        self.begun.set()
        return Answer.approve() if self.go.wait(PATIENCE) else Answer.reject("nobody let it go")


async def test_a_sync_handler_does_not_keep_the_loop():
    person = Asked()
    async with hosted(acting(), Descriptor("hitl-handler", "person", person)) as host:
        calling = asyncio.ensure_future(call(host))
        await until(person.begun)
        person.go.set()

        assert kind(await calling) == "ok"
    assert person.thread is not threading.current_thread()


async def test_a_call_that_waits_for_a_sync_handler_can_be_cancelled():
    person = Asked()
    async with hosted(acting(), Descriptor("hitl-handler", "person", person)) as host:
        calling = asyncio.ensure_future(call(host, id="c"))
        await until(person.begun)
        await host.tools.cancel("c")

        assert kind(await calling) == "Cancelled"
        assert await host.approvals.pending() == []
    person.go.set()


class Later:
    """A handler whose call is async without its being a function."""

    async def __call__(self, proposal):
        self.thread = threading.current_thread()
        return Answer.approve()


async def test_an_async_handler_runs_on_the_loop():
    person = Later()
    async with hosted(acting(), Descriptor("hitl-handler", "person", person)) as host:
        assert kind(await call(host)) == "ok"
    assert person.thread is threading.current_thread()


async def test_what_a_sync_handler_returns_is_awaited():
    async def answer():
        return Answer.approve()

    async with hosted(acting(), Descriptor("hitl-handler", "person", lambda proposal: answer())) as host:
        assert kind(await call(host)) == "ok"


class Approving:
    """A handler that decides by the host's own door and answers nothing."""

    def __init__(self, decide):
        self.decide = decide
        self.host = None

    async def on_proposal(self, proposal):
        await self.decide(self.host.approvals, proposal.id)


@pytest.mark.parametrize(
    ("decide", "expected"),
    [
        (lambda approvals, id: approvals.approve(id), ("ok", "done")),
        (lambda approvals, id: approvals.reject(id, "not today"), ("Refused", None)),
        (lambda approvals, id: approvals.describe(id), ("ApprovalRequired", None)),
    ],
    ids=["approve", "reject", "neither"],
)
async def test_what_a_handler_decides_at_the_hosts_door_is_what_the_caller_hears(decide, expected):
    handler = Approving(decide)
    async with hosted(acting(), Descriptor("hitl-handler", "person", handler)) as host:
        handler.host = host
        result = await call(host)

    assert (kind(result), result.output) == expected


# -- cancelling by id --------------------------------------------------------------------------------------------------


class Gate:
    """Something that waits until it is let go."""

    def __init__(self):
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def passed(self, *_):
        self.begun.set()
        await self.go.wait()
        return "never"


async def test_a_call_whose_own_check_thinks_can_be_cancelled():
    gate = Gate()
    async with hosted(acting(intervention=gate.passed)) as host:
        calling = asyncio.ensure_future(call(host, id="c"))
        await gate.begun.wait()

        assert await host.tools.cancel("c")
        result = await calling
        records = [one.data for one in await host.audit.records() if one.event == "call"]

    assert (kind(result), "before it ran" in result.content) == ("Cancelled", True)
    assert [one.get("error") for one in records] == ["Cancelled"]


async def test_a_repeat_that_waits_for_its_key_can_be_cancelled_and_the_first_call_goes_on():
    gate = Gate()
    async with hosted(acting(execute=gate.passed), mode="auto") as host:
        first = asyncio.ensure_future(call(host, id="one", idempotency_key="k"))
        await gate.begun.wait()
        second = asyncio.ensure_future(call(host, id="two", idempotency_key="k"))
        while not await host.tools.cancel("two"):
            await asyncio.sleep(0)

        assert kind(await second) == "Cancelled"
        gate.go.set()
        assert kind(await first) == "ok"


async def test_a_call_that_runs_is_cancelled_once_and_says_so():
    gate = Gate()
    async with hosted(acting(execute=gate.passed), mode="auto") as host:
        calling = asyncio.ensure_future(call(host, id="c"))
        await gate.begun.wait()

        assert await host.tools.cancel("c")
        assert kind(await calling) == "Cancelled"
        assert not await host.tools.cancel("c")
        ended = [one for one in await host.audit.records() if one.event == "call"]

    assert len(ended) == 1
