"""Calls that end at bad moments: while their host shuts down, while the store fails, while another host decides."""

import asyncio
import contextlib
import sqlite3

import pytest
import store_fixtures

from agentos import (
    PUBLIC,
    AgentOS,
    Answer,
    Budget,
    Descriptor,
    ExtensionPack,
    InterventionRule,
    Principal,
    Tool,
    ToolCall,
)
from agentos.access import budgets as accounts
from agentos.access import proposals as waiting

postgres_server = store_fixtures.postgres_server
data_folder = store_fixtures.data_folder
postgres_url = store_fixtures.postgres_url
sqlite_url = store_fixtures.sqlite_url
store_url = store_fixtures.store_url

NOW = 1_800_000_000.0


class Clock:
    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


class Body:
    """A tool's body that remembers its calls, and waits to be let go if told so."""

    def __init__(self, *, waits=False):
        self.sessions = []
        self.started = asyncio.Event()
        self.open = asyncio.Event()
        if not waits:
            self.open.set()

    async def __call__(self, args, context):
        self.sessions.append(dict(context.session))
        self.started.set()
        await self.open.wait()
        return "done"


def acting(execute, name="act", effect="mutate", access=PUBLIC, **fields):
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return Tool.from_schema(
        name=name,
        description=fields.pop("description", "Do it."),
        input_schema=schema,
        effect=effect,
        required_access=access,
        execute=execute,
        **fields,
    )


async def load(host, *offered, pack="p"):
    outcome = await host.extensions.load_pack(ExtensionPack(pack, "1.0", offered))
    assert outcome.status == "loaded", outcome


async def call(host, name="act", principal=None, session=None, **fields):
    arguments = fields.pop("arguments", {})
    return await host.tools.process_tool_call(ToolCall(name, arguments, **fields), principal, session=session)


def kind(result):
    return "ok" if result.success else result.error.type


async def sql(url, *statements):
    """Do something to a SQLite file behind its hosts' backs."""

    def work():
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    await asyncio.to_thread(work)


# -- a host that shuts down ---------------------------------------------------------------------------------------


async def test_a_shutdown_waits_for_the_record_of_an_approved_call(store_url):
    body = Body(waits=True)
    async with AgentOS(store=store_url) as host:
        await load(host, acting(body))
        asked = (await call(host)).error.details
        applying = asyncio.create_task(host.approvals.approve(asked["token"]))
        await body.started.wait()
        ending = asyncio.create_task(host.shutdown())
        body.open.set()
        await ending
    assert kind(await applying) == "ok"

    async with AgentOS(store=store_url) as host:
        assert (await host.approvals.describe(asked["proposal_id"])).state == "applied"
        assert (await host.approvals.result(asked["proposal_id"])).output == "done"


async def test_a_shutdown_waits_for_the_record_of_a_call_with_a_key(store_url):
    body = Body(waits=True)
    async with AgentOS(store=store_url, mode="auto") as host:
        await load(host, acting(body))
        calling = asyncio.create_task(call(host, idempotency_key="k"))
        await body.started.wait()
        ending = asyncio.create_task(host.shutdown())
        body.open.set()
        await ending
    assert kind(await calling) == "ok"

    async with AgentOS(store=store_url, mode="auto") as host:
        await load(host, acting(body))
        assert (await call(host, idempotency_key="k")).output == "done"
        records = [(one.event, one.data.get("success")) for one in await host.audit.records()]
        assert ("call", True) in records
    assert len(body.sessions) == 1


async def test_a_listener_that_takes_long_does_not_cost_the_record_of_a_read(sqlite_url):
    body, heard = Body(), asyncio.Event()

    async def listener(event):
        if event.type == "tool:finished":
            heard.set()
            for _ in range(20):
                await asyncio.sleep(0)

    async with AgentOS(store=sqlite_url) as host:
        await load(host, acting(body, effect="read"))
        host.extensions.on(listener)
        calling = asyncio.create_task(call(host))
        await heard.wait()
        await host.shutdown()
    await calling

    async with AgentOS(store=sqlite_url) as host:
        assert [one.data["tool"] for one in await host.audit.records() if one.event == "call"] == ["p:act"]


async def test_a_listener_may_unload_the_pack_whose_calls_have_just_ended(sqlite_url):
    together = asyncio.Barrier(3)

    async def meet(args, context):
        await together.wait()

    async with AgentOS(store=sqlite_url, mode="auto") as host:
        await load(host, acting(meet))

        async def listener(event):
            if event.type == "tool:finished" and host.extensions.packs():
                await host.extensions.unload("p")

        host.extensions.on(listener)
        async with asyncio.timeout(20):  # less than calls in flight are waited for
            results = await host.tools.process_tool_calls([ToolCall("act", {})] * 3)

        assert [kind(result) for result in results] == ["ok"] * 3
        assert host.extensions.packs() == []


# -- a store that fails -------------------------------------------------------------------------------------------


async def test_a_call_whose_record_was_dropped_does_not_run(sqlite_url, monkeypatch):
    monkeypatch.setattr("agentos.access.audit._BUFFER", 50)
    monkeypatch.setattr("agentos.access.audit._BATCH", 20)
    body, reading = Body(), Body()
    path = sqlite_url.removeprefix("sqlite:///")
    async with AgentOS(store=sqlite_url, mode="auto", budget=None) as host:
        await load(host, acting(body), acting(reading, "look", "read"))
        await call(host, "look")
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            writing = asyncio.create_task(host.audit.commit())
            while host.audit._notes:  # until it waits for the database, with what was noted in hand
                await asyncio.sleep(0)
            changing = asyncio.create_task(call(host))
            while not host.audit._notes:  # until the call is noted
                await asyncio.sleep(0)
            for _ in range(200):
                host.audit.note("decision", tool="p:look")
            other.execute("ROLLBACK")
        await writing
        result = await changing

        assert kind(result) == "Refused"
        assert body.sessions == []
        assert kind(await call(host)) == "ok"


async def test_a_key_whose_claim_could_not_be_taken_back_is_free_again_when_the_store_is(sqlite_url):
    body = Body()
    async with AgentOS(store=sqlite_url, mode="auto") as host:
        await load(host, acting(body))
        await sql(
            sqlite_url,
            "CREATE TRIGGER a BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'x'); END",
            "CREATE TRIGGER b BEFORE DELETE ON idempotency BEGIN SELECT RAISE(ABORT, 'x'); END",
        )
        assert kind(await call(host, idempotency_key="k")) == "Refused"
        await sql(sqlite_url, "DROP TRIGGER a", "DROP TRIGGER b")

        async with asyncio.timeout(60):
            assert kind(await call(host, idempotency_key="k")) == "ok"
    assert len(body.sessions) == 1


async def test_a_result_that_could_not_be_written_reaches_other_hosts_when_it_can(sqlite_url):
    trigger = "CREATE TRIGGER a BEFORE UPDATE ON idempotency BEGIN SELECT RAISE(ABORT, 'x'); END"
    body = Body(waits=True)
    async with AgentOS(store=sqlite_url, mode="auto") as host, AgentOS(store=sqlite_url, mode="auto") as other:
        for one in (host, other):
            await load(one, acting(body))
        calling = asyncio.create_task(call(host, idempotency_key="k"))
        await body.started.wait()
        await sql(sqlite_url, trigger)
        body.open.set()
        assert kind(await calling) == "ok"
        assert (await call(host, idempotency_key="k")).meta["replayed"] is True
        await sql(sqlite_url, "DROP TRIGGER a")
        await call(host)  # its records are written, and what waited with them

        async with asyncio.timeout(60):
            assert (await call(other, idempotency_key="k")).meta["replayed"] is True
    assert len(body.sessions) == 2


# -- hosts that share a store -------------------------------------------------------------------------------------


async def test_a_definition_that_another_host_saw_first_and_otherwise_is_held_back(store_url):
    body = Body()
    async with AgentOS(store=store_url, mode="auto") as late:
        await load(late, acting(body, "other"), pack="o")
        async with AgentOS(store=store_url, mode="auto") as first:
            await load(first, acting(body))
            await load(late, acting(body, description="Do something else."))

            assert kind(await call(late)) == "DefinitionChanged"
            assert [pin.tool for pin in await late.pins.pending()] == ["p:act"]
            assert kind(await call(first)) == "ok"


async def test_what_one_host_accepts_another_lets_in(store_url):
    body = Body()
    changed = acting(body, description="Do something else.")
    async with AgentOS(store=store_url, mode="auto") as host:
        await load(host, acting(body))
    async with AgentOS(store=store_url, mode="auto") as one, AgentOS(store=store_url, mode="auto") as other:
        await load(one, changed)
        await load(other, changed)
        assert kind(await call(other)) == "DefinitionChanged"
        await one.pins.accept("p:act")
        await other.extensions.refresh_packs()

        assert kind(await call(other)) == "ok"
        assert await other.pins.pending() == []


@pytest.mark.parametrize("last", ["disable", "enable"])
async def test_the_last_word_about_a_pack_counts_whatever_other_hosts_said_before(store_url, last):
    first = "enable" if last == "disable" else "disable"
    manifest = {"packs": [{"factory": lambda: ExtensionPack("p", "1.0", [acting(Body())])}]}
    async with (
        AgentOS(store=store_url, extension_manifest=manifest) as one,
        AgentOS(store=store_url, extension_manifest=manifest) as other,
    ):
        for host, switch in ((other, last), (one, last), (one, first), (other, last)):
            await getattr(host.extensions, switch)("p")

    async with AgentOS(store=store_url, extension_manifest=manifest) as host:
        assert [pack.enabled for pack in host.extensions.packs()] == [last == "enable"]


async def test_a_host_whose_sessions_broke_says_in_the_end_what_became_of_its_call(postgres_url):
    body = Body(waits=True)
    async with AgentOS(store=postgres_url) as host:
        await load(host, acting(body))
        asked = (await call(host)).error.details
        applying = asyncio.create_task(host.approvals.approve(asked["token"]))
        await body.started.wait()
        # What another host does that takes this one for dead:
        stored = await host.approvals._proposals._in_state("applying")
        await host.approvals._proposals._give_up(stored[0])
        assert (await host.approvals.describe(asked["proposal_id"])).state == "unknown"
        body.open.set()
        assert kind(await applying) == "ok"

        assert (await host.approvals.describe(asked["proposal_id"])).state == "applied"
        assert (await host.approvals.result(asked["proposal_id"])).output == "done"


# -- what is kept, and for how long -------------------------------------------------------------------------------


async def test_no_number_of_other_principals_refills_a_budget(monkeypatch):
    monkeypatch.setattr(accounts, "_SWEPT_FROM", 10)
    monkeypatch.setattr(accounts._Book, "sweep_at", 10)
    clock = Clock()
    async with AgentOS(budget=Budget(calls=1, window=60.0), clock=clock) as host:
        await load(host, acting(Body(), effect="read"))
        eve = Principal("eve")
        assert [kind(await call(host, principal=eve)) for _ in range(2)] == ["ok", "BudgetExceeded"]
        for number in range(100):
            await call(host, principal=Principal(f"p{number}"))

        assert kind(await call(host, principal=eve)) == "BudgetExceeded"
        clock.now += 61
        for number in range(200):  # more than twice as many: those of before are closed
            await call(host, principal=Principal(f"q{number}"))
        assert kind(await call(host, principal=eve)) == "ok"
        assert len(host._access.budgets._books[0][1]) == 201


async def test_a_proposal_that_waits_for_a_slot_keeps_its_session():
    body, clock = Body(), Clock()
    session = {"id": "s", "cart": "full"}
    async with AgentOS(budget=Budget(calls=1, window=10.0), clock=clock) as host:
        await load(host, acting(body))
        tokens = []
        for _ in range(2):
            tokens.append((await call(host, session=session)).error.details["token"])
            clock.now += 11
        assert kind(await host.approvals.approve(tokens[0])) == "ok"
        assert kind(await host.approvals.approve(tokens[1])) == "BudgetExceeded"
        clock.now += 11
        assert kind(await host.approvals.approve(tokens[1])) == "ok"

    assert body.sessions == [session, session]


async def test_arguments_with_a_secret_are_forgotten_with_the_proposal_that_was_edited_or_expired():
    clock = Clock()
    async with AgentOS(extension_secrets={"x.key": "hunter2hunter2"}, clock=clock) as host:
        await load(host, acting(Body()), Descriptor("x", "x", payload=1, required_secrets=["x.key"]))
        asked = [(await call(host, arguments={"text": "hunter2hunter2"})).error.details for _ in range(2)]
        assert len(host.approvals._proposals._unwritten) == 2
        await host.approvals.edit(asked[0]["proposal_id"], {"text": "plain"})
        assert len(host.approvals._proposals._unwritten) == 1
        clock.now += 601
        await host.approvals.result(asked[1]["proposal_id"])

        assert host.approvals._proposals._unwritten == {}


async def test_a_host_without_a_store_forgets_old_proposals(monkeypatch):
    monkeypatch.setattr(waiting, "_MEMORY", 20)
    clock = Clock()
    async with AgentOS(budget=None, clock=clock) as host:
        await load(host, acting(Body()))
        asked = []
        for _ in range(60):
            clock.now += 1
            asked.append((await call(host)).error.details["proposal_id"])
            if len(asked) < 60:
                await host.approvals.reject(asked[-1], "no")
        await call(host)
        known = [await host.approvals._found(id) is not None for id in asked]

        assert known[:30] == [False] * 30
        assert known[45:] == [True] * 15


async def test_calls_that_never_began_leave_a_record_and_nothing_else():
    body = Body(waits=True)
    async with AgentOS() as host:
        await load(host, acting(body, effect="read", ordered=True))
        calls = [ToolCall("act", {}, id=f"c{number}") for number in range(4)]
        calling = asyncio.create_task(host.tools.process_tool_calls(calls))
        await body.started.wait()
        calling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await calling

        assert [await host.tools.cancel(one.id) for one in calls] == [False] * 4
        records = [one.data.get("step") for one in await host.audit.records() if one.event in ("call", "decision")]
        assert sorted(map(str, records)) == ["cancelled"] * 3 + ["default"]


async def test_a_log_without_a_store_is_whole_while_it_forgets(monkeypatch):
    monkeypatch.setattr("agentos.access.audit._MEMORY", 200)
    monkeypatch.setattr("agentos.access.audit._BATCH", 10)
    async with AgentOS(budget=None) as host:
        for _ in range(400):
            host.audit.note("decision", tool="p:act")
        await host.audit.records()
        forgetful = host.audit._rows

        async def rows(after):
            count = 0
            async for row in forgetful(after):
                yield row
                count += 1
                if count == 20 and host.audit._rows is rows:
                    host.audit._rows = forgetful
                    for _ in range(400):
                        host.audit.note("decision", tool="p:act")
                    await host.audit._write()

        host.audit._rows = rows
        verdict = await host.audit.verify()

        assert (verdict.ok, verdict.reason) == (True, "")


# -- words and signs ----------------------------------------------------------------------------------------------


async def test_a_nul_is_no_name_of_anything_on_any_store(store_url):
    async with AgentOS(store=store_url, mode="auto") as host:
        await load(host, acting(Body()), acting(Body(), "ask", intervention="always"))
        asked = (await call(host, "ask")).error.details

        assert kind(await host.approvals.approve("a\0b")) == "ProposalInvalid"
        assert await host.approvals.result("a\0b") is None
        assert await host.approvals.pending("a\0b") == []
        assert await host.grants.revoke("a\0b") is False
        assert kind(await call(host, idempotency_key="a\0b")) == "InvalidArguments"
        assert kind(await call(host, session={"id": "a\0b"})) == "ok"
        await host.grants.add("p:act", "session", session={"id": "a\0b"})
        await host.approvals.reject(asked["proposal_id"], "no\0no")
        assert (await host.approvals.describe(asked["proposal_id"])).note == "no?no"


async def test_explaining_shows_nobody_a_tool_that_it_may_not_call():
    async with AgentOS() as host:
        await load(host, acting(Body(), effect="read", access="one"))
        await load(host, acting(Body(), effect="read", access="two"), pack="q")
        ann, boss = Principal("ann", access={"one"}), Principal("boss", access={"two"})

        shown = host.tools.explain("act", ann, asked_by=ann)
        assert (shown.tool, list(shown.stack.entries)) == (None, [])
        assert [one.source.pack for one in host.tools.explain("act", ann, asked_by=boss).stack.entries] == ["q"]
        assert "two" in str(host.tools.explain("act", ann))


@pytest.mark.parametrize("answer", [Answer.edit({"zz": 1}), Answer.approve(by="boss"), Answer.reject("no", by="boss")])
async def test_an_answer_that_does_not_count_leaves_the_proposal_waiting_with_its_token(answer):
    body = Body()
    async with AgentOS() as host:
        await load(host, acting(body), Descriptor("hitl-handler", "desk", payload=lambda proposal: answer))
        result = await call(host)

        assert kind(result) == "ApprovalRequired"
        assert kind(await host.approvals.approve(result.error.details["token"])) == "ok"
        refusals = [one.data["step"] for one in await host.audit.records() if one.data.get("answer") == "refuse"]
        assert refusals == ["proposal"]


async def test_what_stands_beneath_and_may_not_be_called_is_not_there():
    async def over(args, context):
        return (await context.below(args)).content

    async with AgentOS() as host:
        await load(host, acting(Body(), effect="read", access="one"))
        await load(host, Descriptor("tool", "act", acting(over, effect="read"), wraps=True), pack="q")
        said = (await call(host, principal=Principal("ann"))).output

        assert said == "UnknownTool: nothing stands beneath this tool"
        refused = [one.data["tool"] for one in await host.audit.records() if one.data.get("step") == "access"]
        assert refused == ["p:act"]


@pytest.mark.parametrize("line", ["git push", "ls && git push", "sudo git push", "git push origin"])
def test_a_rule_that_asks_takes_the_bare_command_for_a_match(line):
    assert InterventionRule("always", {"$.line": "git push *"}, "command").applies({"line": line})
    assert not InterventionRule("never", {"$.line": "git push *"}, "command").applies({"line": "git push"})


async def test_a_caller_cancelled_while_its_call_is_written_down_leaves_a_beginning_and_an_end(sqlite_url):
    body, is_asked = Body(), asyncio.Event()

    def told(arguments, context):
        is_asked.set()

    async with AgentOS(store=sqlite_url, mode="auto", budget=None) as host:
        act = acting(body, intervention=told)
        await host.extensions.load_pack(ExtensionPack("p", "1.0", [act]))
        with contextlib.closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as other:
            other.execute("BEGIN IMMEDIATE")  # nothing can be written meanwhile
            calling = asyncio.create_task(host.tools.process_tool_call(ToolCall("act")))
            await is_asked.wait()
            for _ in range(1_000):
                await asyncio.sleep(0)
            calling.cancel()
            await asyncio.sleep(0)
            other.rollback()
        with pytest.raises(asyncio.CancelledError):
            await calling
        found = [one for one in await host.audit.records() if one.data.get("tool") == "p:act" and one.event != "pin"]

    assert [(one.event, one.data.get("error")) for one in found] == [("decision", None), ("call", "Cancelled")]
    assert body.sessions == []
