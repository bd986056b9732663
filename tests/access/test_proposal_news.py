"""What became of a proposal is told, whoever decided, here or elsewhere; and an expired one can be asked again."""

import asyncio

import pytest

from agentos import PUBLIC, AgentOS, Principal, ProposalError, ToolCall, tool

ANN = Principal("ann")


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def log():
    return []


@pytest.fixture
def send(log):
    @tool(effect="mutate", required_access=PUBLIC)
    async def send(to: str) -> str:
        """Send a letter."""
        log.append(to)
        if to == "nobody":
            raise ValueError("unknown address")
        return f"sent to {to}"

    return send


async def opened(store, send, clock=None):
    host = AgentOS(store=store, clock=clock)
    await host.initialize()
    await host.tools_service().sync([send])
    return host


@pytest.fixture
async def hosts(anyio_backend, tmp_path, send):
    """Two hosts on one store; the first made a proposal, and is listened to."""
    clock = Clock()
    made = [await opened(tmp_path / "store.db", send, clock) for _ in range(2)]
    made[0].clock = clock
    yield made
    for host in made:
        await host.shutdown()


def told(host):
    """Return what is told of proposals, and a function that waits until so many were."""
    events, heard = [], asyncio.Condition()

    async def listen(event):
        if event.type.startswith("proposal:"):
            async with heard:
                events.append(event)
                heard.notify_all()

    async def until(count):
        async with asyncio.timeout(60), heard:
            await heard.wait_for(lambda: len(events) >= count)
        return [event.type for event in events]

    host.extensions.on(listen)
    return events, until


async def ask(host, to="bob", id="call-7"):
    result = await host.tools.process_tool_call(ToolCall("send", {"to": to}, id), ANN, session={"id": "s1", "x": 1})
    return result.pending["proposal_id"]


async def test_a_proposal_knows_its_session_and_call(hosts):
    here, elsewhere = hosts
    id = await ask(here)
    proposal = await elsewhere.approvals.describe(id)

    assert (proposal.session, proposal.call_id) == ("s1", "call-7")


@pytest.mark.parametrize("place", [0, 1], ids=["here", "elsewhere"])
async def test_an_approval_is_told(hosts, place):
    events, until = told(hosts[0])
    id = await ask(hosts[0])
    await hosts[place].approvals.approve(id)

    assert await until(2) == ["proposal:approved", "proposal:applied"]
    assert (events[0].proposal, events[0].by, events[0].session, events[0].call_id) == (id, "ann", "s1", "call-7")
    assert events[1].state == "applied"


@pytest.mark.parametrize("place", [0, 1], ids=["here", "elsewhere"])
async def test_how_an_approved_call_failed_is_told(hosts, place):
    events, until = told(hosts[0])
    await hosts[place].approvals.approve(await ask(hosts[0], "nobody"))
    await until(2)

    assert events[1].state == "failed"


@pytest.mark.parametrize("place", [0, 1], ids=["here", "elsewhere"])
async def test_a_rejection_is_told_with_its_reason(hosts, place):
    events, until = told(hosts[0])
    await hosts[place].approvals.reject(await ask(hosts[0]), "not today")

    assert await until(1) == ["proposal:rejected"]
    assert events[0].reason == "not today"


@pytest.mark.parametrize("place", [0, 1], ids=["here", "elsewhere"])
async def test_an_edit_is_told_with_what_took_its_place(hosts, place):
    events, until = told(hosts[0])
    new = await hosts[place].approvals.edit(await ask(hosts[0]), {"to": "eve"})

    assert await until(1) == ["proposal:edited"]
    assert (events[0].replaced_by, new.session, new.call_id) == (new.id, "s1", "call-7")


async def test_what_expired_is_told(hosts):
    _, until = told(hosts[0])
    await ask(hosts[0])
    hosts[0].clock.now += 25 * 3600

    assert await until(1) == ["proposal:expired"]


async def test_what_expired_in_memory_is_told(send):
    clock = Clock()
    host = await opened(None, send, clock)
    _, until = told(host)
    await ask(host)
    clock.now += 3600

    assert await until(1) == ["proposal:expired"]
    await host.shutdown()


async def test_nothing_is_told_twice(hosts):
    _, until = told(hosts[0])
    for number in range(5):
        await hosts[number % 2].approvals.approve(await ask(hosts[0], f"n{number}"))
    await until(10)
    await asyncio.gather(*(hosts[0].approvals.pending() for _ in range(5)))

    assert (await until(10)).count("proposal:approved") == 5
    assert len(await until(10)) == 10


async def test_a_listener_may_decide_on_another(hosts):
    host, other = hosts[0], None

    async def listen(event):
        if event.type == "proposal:approved":
            await host.approvals.reject(other, "one is enough")

    host.extensions.on(listen)
    first, other = await ask(host), await ask(host, "eve")
    await host.approvals.approve(first)

    assert (await host.approvals.describe(other)).state == "rejected"


async def test_a_proposal_in_a_durable_store_lasts_a_day(hosts):
    proposal = await hosts[0].approvals.describe(await ask(hosts[0]))

    assert (proposal.expires_at - proposal.created_at).total_seconds() == 24 * 3600


# -- asking again --------------------------------------------------------------------------------------------------


async def test_an_expired_proposal_is_asked_again_and_runs_once(hosts, log):
    here, elsewhere = hosts
    old = await ask(here)
    here.clock.now += 25 * 3600
    new = await elsewhere.approvals.ask_again(old)

    assert (new.parent, new.session, new.call_id, new.arguments) == (old, "s1", "call-7", {"to": "bob"})
    assert (await here.approvals.latest(old)).id == new.id
    assert (await here.approvals.approve(new.id)).success
    assert (await here.approvals.outcome(old)).content == "sent to bob"
    assert log == ["bob"]


async def test_what_waits_or_was_asked_again_is_not_asked_again(hosts):
    here, _ = hosts
    old = await ask(here)
    with pytest.raises(ProposalError, match="has not expired"):
        await here.approvals.ask_again(old)
    here.clock.now += 25 * 3600
    new = await here.approvals.ask_again(old)
    with pytest.raises(ProposalError, match=f"was asked again already, as {new.id}"):
        await here.approvals.ask_again(old)

    assert [one.id for one in await here.approvals.pending()] == [new.id]


async def test_somebody_else_does_not_ask_again(hosts):
    old = await ask(hosts[0])
    hosts[0].clock.now += 25 * 3600
    with pytest.raises(ProposalError, match="somebody else"):
        await hosts[0].approvals.ask_again(old, by=Principal("eve"))


# -- what came of it -----------------------------------------------------------------------------------------------


async def test_the_outcome_is_what_came_of_it(hosts):
    here, elsewhere = hosts
    ids = [await ask(here, to) for to in ("a", "b", "c", "d", "nobody")]
    approvals = elsewhere.approvals
    await approvals.approve(ids[0])
    await approvals.reject(ids[1], "not today")
    await approvals.approve((await approvals.edit(ids[2], {"to": "eve"})).id)
    await approvals.approve(ids[4])

    assert (await here.approvals.outcome(ids[0])).content == "sent to a"
    assert (await here.approvals.outcome(ids[1])).content == "Refused: a person refused the call: not today"
    assert (await here.approvals.outcome(ids[2])).content == "sent to eve"
    assert await here.approvals.outcome(ids[3]) is None
    assert "unknown address" in (await here.approvals.outcome(ids[4])).content
    here.clock.now += 25 * 3600
    assert "nobody decided" in (await here.approvals.outcome(ids[3])).content
