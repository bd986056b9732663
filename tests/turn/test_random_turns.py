"""Whatever happens in a turn, every call in its conversation has exactly one answer at its id, in order."""

import asyncio
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_wires import WIRES, Says, tools_of

from agentos import PUBLIC, AgentOS, Descriptor, ExtensionPack, GuardVerdict, Principal, guardrail, tool

ANN = Principal("ann")
TOOLS = {
    "add": ['{"a": 1}', '{"a": 2, "b": 3}', '{"a": "x"}', "{", ""],
    "send": ['{"to": "bob"}', '{"to": "eve"}', "{}"],
    "finish": ['{"text": "bye"}'],
    "wait": ["{}"],
    "nope": ["{}"],
}
CALL = st.sampled_from([(name, arguments) for name, all in TOOLS.items() for arguments in all])
STEP = st.tuples(
    st.sampled_from(["", "Well.", "a swordfish", "damn"]),
    st.lists(CALL, max_size=3),
    st.sampled_from(["done", "done", "done", "length", "refusal", "raise"]),
)
DECISION = st.sampled_from(["approve here", "approve elsewhere", "reject", "edit", "expire", "leave"])


class Plan:
    """What happens in one turn."""

    def __init__(self, wire, steps, streams):
        self.wire = wire
        self.steps = [self._says(number, *step) for number, step in enumerate(steps)]
        self.streams = streams
        self.faults = []

    def _says(self, number, text, calls, ended):
        ids = [(f"c{number}_{place}", name, arguments) for place, (name, arguments) in enumerate(calls)]
        return Says(text, tuple(ids), ended)

    def next(self, request):
        """Answer a request as the provider would: with what is said next, or with what is wrong."""
        plain = json.loads(json.dumps(request["contents" if "contents" in request else self.key]))
        if fault := self.wire.fault(self.wire.key(plain)):
            self.faults.append(fault)
        says = self.steps.pop(0) if self.steps else Says("The end.")
        if says.ended == "raise":
            raise ConnectionError("gone")
        return says

    @property
    def key(self):
        return "input" if self.wire.api == "responses" else "messages"


class Client:
    """A client for any provider, without a network: what it says was on the wire in test_providers.py."""

    def __init__(self, plan):
        self._plan = plan
        self.chat = self.completions = self.responses = self.messages = self.models = self

    async def create(self, **request):
        says = self._plan.next(request)
        if not request.get("stream"):
            return self._plan.wire.whole(says)
        return self._parts(says)

    async def generate_content(self, **request):
        return self._plan.wire.whole(self._plan.next(request))

    async def generate_content_stream(self, **request):
        return self._parts(self._plan.next(request))

    async def _parts(self, says):
        for part in self._plan.wire.parts(says):
            data = part.split(b"data: ", 1)[1].strip()
            if data != b"[DONE]":
                await asyncio.sleep(0)
                yield _snake(json.loads(data)) if self._plan.wire.api == "gemini" else json.loads(data)


def _snake(chunk):
    """Return a chunk as google-genai spells it."""
    names = {"finishReason": "finish_reason", "usageMetadata": "usage_metadata", "functionCall": "function_call"}
    if isinstance(chunk, dict):
        return {names.get(key, key): _snake(value) for key, value in chunk.items()}
    return [_snake(one) for one in chunk] if isinstance(chunk, list) else chunk


@guardrail(stage="output")
async def no_swordfish(text, context):
    return GuardVerdict.block("a password") if "swordfish" in text else None


@guardrail(stage="output", sanitizes=True)
async def politely(text, context):
    return GuardVerdict.sanitize(text.replace("damn", "****"), "a curse") if "damn" in text else None


@guardrail(stage="tool_call", tools="*:add")
async def no_threes(call, context):
    return GuardVerdict.block("no threes") if call.arguments.get("b") == 3 else None


def guards():
    all = {"no_swordfish": no_swordfish, "politely": politely, "no_threes": no_threes}
    descriptors = [Descriptor(kind="guardrail", id=id, payload=one) for id, one in all.items()]
    return ExtensionPack(name="guards", descriptors=descriptors)


class Clock:
    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


async def opened(path, clock, reached):
    host = AgentOS(store=path, clock=clock, budget=None)
    await host.initialize()
    await host.extensions.load_pack(guards())
    log = []

    @tool(effect="read", required_access=PUBLIC)
    async def wait() -> str:
        """Wait for a moment, or until the turn is cancelled."""
        reached.set()
        for _ in range(20):
            await asyncio.sleep(0)
        return "waited"

    await host.tools_service().sync([*tools_of(log), wait])
    return host


async def decide(hosts, clock, decision, id):
    here, elsewhere = hosts
    if decision == "approve here":
        await here.approvals.approve(id)
    elif decision == "approve elsewhere":
        await elsewhere.approvals.approve(id)
    elif decision == "reject":
        await elsewhere.approvals.reject(id, "no")
    elif decision == "edit":
        await here.approvals.approve((await elsewhere.approvals.edit(id, {"to": "eve"})).id)
    elif decision == "expire":
        clock.now += 25 * 3600


async def play(work, transcript, reached, cancels):
    """Return the turn; None if it was cancelled or its client failed."""

    async def streamed(stream):
        return [event async for event in stream][-1].turn

    task = asyncio.ensure_future(streamed(work) if hasattr(work, "__aiter__") else work)
    if cancels:
        waiter = asyncio.ensure_future(reached.wait())
        await asyncio.wait([task, waiter], return_when=asyncio.FIRST_COMPLETED)
        waiter.cancel()
        task.cancel()
    try:
        return await task
    except (asyncio.CancelledError, ConnectionError):
        return None


async def happen(path, plan, decisions, cancels):
    clock, reached = Clock(), asyncio.Event()
    hosts = [await opened(path, clock, reached) for _ in range(2)]
    asked, transcript, wire = plan.wire.asked(), [], plan.wire
    options = {"model": "m", "principal": ANN, "max_steps": 6, "stream": plan.streams}
    client, id = Client(plan), None
    try:
        work = hosts[0].turn(client, asked, transcript=transcript, api=wire.api, **options)
        turn = await play(work, transcript, reached, cancels)
        check(plan, [*asked, *transcript] if turn is None else turn.messages)
        for decision in decisions:
            if turn is None or turn.stopped_by != "approval":
                break
            id = turn.id
            for proposal in turn.pending:
                await decide(hosts, clock, decision, proposal)
            turn = await play(hosts[1].resume(id, client, stream=plan.streams), [], reached, cancels=False)
            if turn is not None:
                check(plan, turn.messages)
    finally:
        for host in hosts:
            await host.shutdown()
    assert plan.faults == []


def check(plan, messages):
    plain = json.loads(json.dumps(messages))
    assert plan.wire.fault(plan.wire.key(plain)) is None


@pytest.mark.proof
@pytest.mark.parametrize("api", WIRES)
def test_every_call_is_answered_once_at_its_id_in_order(api, tmp_path_factory):
    @settings(
        max_examples=100,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.lists(STEP, min_size=1, max_size=5),
        st.lists(DECISION, max_size=3),
        st.booleans(),
        st.sampled_from([0, 0, 1]),
    )
    def turns(steps, decisions, streams, cancels):
        path = tmp_path_factory.mktemp("turns") / "store.db"
        asyncio.run(happen(path, Plan(WIRES[api], steps, streams), decisions, cancels))

    turns()
