"""What proposals promise beyond one run: who they run for, what is told of them, and that none is taken twice."""

import asyncio
import contextlib
import json
import sqlite3

import pytest

from agentos import AgentOS, ExtensionPack, Principal, ProposalError, Tool, ToolCall
from agentos.errors import StoreError

RULE = "mail.write"
ANN = Principal("ann", access={RULE, "mail.read"})
BOT = Principal("bot", "service", {RULE})
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}


def acting(log, **fields):
    """Return a tool that writes down for whom it ran, and with what."""

    async def execute(args, context):
        log.append((context.principal.key, context.principal.held, args["n"]))
        return f"run {len(log)}"

    said = {"name": "act", "description": "Do it.", "effect": "mutate", "required_access": RULE, "execute": execute}
    return Tool.from_schema(**{"input_schema": SCHEMA, **said, **fields})


@contextlib.asynccontextmanager
async def hosted(store, log, principals=None, *, fields=None, **options):
    async with AgentOS(store=store, budget=None, principals=principals, **options) as host:
        await host.extensions.load_pack(ExtensionPack("p", "1.0", [acting(log, **(fields or {}))]))
        yield host


async def proposed(host, principal=ANN, arguments=None, **fields):
    result = await host.tools.process_tool_call(ToolCall("act", arguments, **fields), principal)
    assert result.error.type == "ApprovalRequired", result
    return result.error.details["proposal_id"]


def kind(result):
    return "ok" if result.success else result.error.type


async def events(host, event):
    return [one.data for one in await host.audit.records() if one.event == event]


@pytest.fixture
def log():
    return []


@pytest.fixture
def store(tmp_path):
    return tmp_path / "agentos.db"


def by_hand(store, sql, *values):
    """Do to a database what whoever can write it can do without the key."""
    with contextlib.closing(sqlite3.connect(store)) as database, database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(sql, values)]


def write_back(store, row):
    by_hand(store, "UPDATE proposals SET " + ", ".join(f"{name} = ?" for name in row), *row.values())


# -- who it is now -----------------------------------------------------------------------------------------------------


def as_mapping(**principals):
    return principals


def as_function(**principals):
    return lambda stored: principals.get(stored.id)


def as_coroutine(**principals):
    async def find(stored):
        await asyncio.sleep(0)
        return principals.get(stored.id)

    return find


WAYS = pytest.mark.parametrize("told", [as_mapping, as_function, as_coroutine])
LESSER = Principal("ann", access={"mail.read"})
OTHERS = pytest.mark.parametrize("by", [None, "ann", "bob", Principal("bob")], ids=str)


@WAYS
@OTHERS
async def test_a_rule_that_was_taken_from_the_proposer_is_missed_whoever_approves(log, told, by):
    async with hosted(None, log, told(ann=LESSER), allow_other_approver=True) as host:
        result = await host.approvals.approve(await proposed(host), by=by)

    assert (kind(result), RULE in result.error.message, log) == ("ProposalInvalid", True, [])


@WAYS
async def test_a_proposer_that_is_nobody_any_more_is_refused_in_words_of_its_own(log, told):
    async with hosted(None, log, told(bob=Principal("bob"))) as host:
        result = await host.approvals.approve(await proposed(host))

    assert (kind(result), "is unknown to the host now" in result.error.message, log) == ("ProposalInvalid", True, [])


@WAYS
async def test_a_proposer_that_is_who_it_was_is_applied(log, told):
    async with hosted(None, log, told(ann=ANN)) as host:
        assert kind(await host.approvals.approve(await proposed(host))) == "ok"
    assert log == [("ann", ANN.held, 1)]


async def test_rules_that_were_added_since_do_not_count(log):
    async with hosted(None, log, {"ann": Principal("ann", access={"*"})}) as host:
        await host.approvals.approve(await proposed(host))

    assert log == [("ann", ANN.held, 1)]


async def test_an_approver_can_not_add_what_was_taken_from_the_proposer(log):
    async with hosted(None, log, {"ann": LESSER}) as host:
        assert kind(await host.approvals.approve(await proposed(host), by=ANN)) == "ProposalInvalid"
    assert log == []


async def test_a_mapping_by_id_tells_a_service_from_a_user_of_that_name(log):
    async with hosted(None, log, {"bot": Principal("bot", access={RULE})}) as host:
        result = await host.approvals.approve(await proposed(host, BOT))

    assert (kind(result), "unknown to the host" in result.error.message) == ("ProposalInvalid", True)


@pytest.mark.parametrize("key", ["bot", "service:bot"])
async def test_a_service_is_found_by_its_id_or_its_key(log, key):
    async with hosted(None, log, {key: BOT}) as host:
        assert kind(await host.approvals.approve(await proposed(host, BOT))) == "ok"


async def test_the_host_itself_is_not_asked_about(log):
    async with hosted(None, log, {}) as host:
        assert kind(await host.approvals.approve(await proposed(host, None))) == "ok"


@pytest.mark.parametrize("answer", [Principal("bob", access={"*"}), "ann", 5])
async def test_somebody_else_in_place_of_the_proposer_lets_nothing_run(log, answer):
    async with hosted(None, log, lambda stored: answer) as host:
        result = await host.approvals.approve(await proposed(host))

    assert (kind(result), "could not be told" in result.error.message, log) == ("ProposalInvalid", True, [])


async def test_a_function_that_raises_lets_nothing_run(log):
    async with hosted(None, log, lambda stored: 1 / 0) as host:
        result = await host.approvals.approve(await proposed(host))

    assert (kind(result), "could not be told" in result.error.message, log) == ("ProposalInvalid", True, [])


async def test_an_edit_asks_who_the_proposer_is_now(log):
    async with hosted(None, log, {"ann": LESSER}) as host:
        id = await proposed(host)
        with pytest.raises(ProposalError, match=RULE):
            await host.approvals.edit(id, {"n": 2})


async def test_an_edit_for_nobody_is_refused(log):
    async with hosted(None, log, {}) as host:
        id = await proposed(host)
        with pytest.raises(ProposalError, match="is unknown to the host now"):
            await host.approvals.edit(id, {"n": 2})


@pytest.mark.parametrize("principals", [5, "ann", [ANN]])
def test_principals_that_are_none_are_refused(principals):
    with pytest.raises(TypeError, match="principals: expected a mapping or a function"):
        AgentOS(principals=principals)


# -- taken once --------------------------------------------------------------------------------------------------------


async def applied(host, id):
    await host.approvals.approve(id)


async def rejected(host, id):
    await host.approvals.reject(id, "no")


async def edited(host, id):
    await host.approvals.edit(id, {"n": 2})


@pytest.mark.parametrize("use", [applied, rejected, edited])
@pytest.mark.parametrize("restarts", [False, True])
async def test_a_row_from_before_it_was_used_does_not_run_again(store, log, use, restarts):
    async with hosted(store, log) as host:
        id = await proposed(host)
        [row] = by_hand(store, "SELECT * FROM proposals")
        await use(host, id)
        by_hand(store, "DELETE FROM proposals WHERE id <> ?", id)
        write_back(store, row)
        before = len(log)
        result = None if restarts else await host.approvals.approve(id)
    if restarts:
        async with hosted(store, log) as host:
            result = await host.approvals.approve(id)

    assert (kind(result), "used already" in result.error.message, len(log)) == ("ProposalInvalid", True, before)


# -- what is told of it ------------------------------------------------------------------------------------------------

FORGED = {
    "result": "replace(result, 'run 1', 'run 7')",
    "decided_by": "'carol'",
    "decided_at": "decided_at - 5",
    "reason": "'harmless'",
    "note": "'fine'",
    "owner": "'me'",
}


@pytest.mark.parametrize(("column", "value"), FORGED.items(), ids=FORGED)
async def test_a_result_that_somebody_changed_is_not_told(store, log, column, value):
    async with hosted(store, log) as host:
        id = await proposed(host)
        await host.approvals.approve(id)
        by_hand(store, f"UPDATE proposals SET {column} = {value}")

        assert kind(await host.approvals.result(id)) == "ProposalInvalid"
        with pytest.raises(ProposalError, match="changed after it was made"):
            await host.approvals.describe(id)


async def test_a_proposal_that_somebody_changed_is_not_listed(store, log):
    async with hosted(store, log) as host:
        await proposed(host)
        by_hand(store, "UPDATE proposals SET reason = 'harmless'")

        assert await host.approvals.pending() == []


# -- previews ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "note"),
    [("x" * 2_000_001, "too much to keep"), (["x" * 2_000_001], "too much to keep")],
    ids=["text", "list"],
)
async def test_a_dry_run_that_is_too_long_leaves_the_arguments_and_a_note(log, said, note):
    async with hosted(None, log, fields={"dry_run": lambda args, context: said}) as host:
        preview = (await host.approvals.describe(await proposed(host, ANN, {"n": 3}))).preview

    assert (preview["arguments"], note in preview["note"]) == ({"n": 3}, True)


async def test_a_dry_run_that_says_nothing_leaves_the_arguments(log):
    async with hosted(None, log, fields={"dry_run": lambda args, context: None}) as host:
        preview = (await host.approvals.describe(await proposed(host, ANN, {"n": 3}))).preview

    assert preview == {"n": 3}


# -- reasons and names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["", " \n", None, 5, b"no"])
async def test_to_reject_one_has_to_say_why(log, reason):
    async with hosted(None, log) as host:
        id = await proposed(host)
        with pytest.raises(ProposalError, match="reason: say in words"):
            await host.approvals.reject(id, reason)

        assert (await host.approvals.describe(id)).state == "proposed"


@pytest.mark.parametrize(("by", "who"), [(None, "ann"), ("bob", "bob")])
async def test_who_edited_is_kept_and_recorded(log, by, who):
    async with hosted(None, log, allow_other_approver=True) as host:
        id = await proposed(host)
        new = await host.approvals.edit(id, {"n": 2}, by=by)
        old = await host.approvals.describe(id)
        [_, record] = await events(host, "proposal")

    assert (old.state, old.decided_by, old.decided_at is None) == ("rejected", who, False)
    assert (record["proposal"], record["parent"], record["by"]) == (new.id, id, who)


async def test_who_rejected_is_the_proposer_unless_said(log):
    async with hosted(None, log) as host:
        id = await proposed(host)
        await host.approvals.reject(id, "no")

        assert (await host.approvals.describe(id)).decided_by == "ann"
        assert [one["by"] for one in await events(host, "proposal:rejected")] == ["ann"]


# -- after a crash -----------------------------------------------------------------------------------------------------


async def cut_off(tmp_path, log):
    """Return the store of a host that died while it applied its one proposal, and the proposal's id."""
    started, opened = asyncio.Event(), asyncio.Event()

    async def waits(args, context):
        started.set()
        await opened.wait()

    left = tmp_path / "left.db"
    async with hosted(tmp_path / "agentos.db", log, fields={"execute": waits, "idempotent": True}) as host:
        id = await proposed(host)
        task = asyncio.ensure_future(host.approvals.approve(id))
        await started.wait()
        (tmp_path / "left.db.key").write_bytes((tmp_path / "agentos.db.key").read_bytes())
        (tmp_path / "left.db.key").chmod(0o600)
        by_hand(tmp_path / "agentos.db", "VACUUM INTO ?", str(left))
        opened.set()
        await task
    return left, id


async def test_what_was_cut_off_runs_again_when_its_pack_comes_later(tmp_path, log):
    left, id = await cut_off(tmp_path, log)
    async with hosted(left, log, fields={"idempotent": True}) as host:
        result = await host.approvals.result(id)
        found = await host.approvals.describe(id)

    assert (kind(result), found.state, found.note, len(log)) == ("ok", "applied", None, 1)


async def test_what_was_cut_off_does_not_run_again_for_who_lost_its_rule(tmp_path, log):
    left, id = await cut_off(tmp_path, log)
    async with hosted(left, log, {"ann": LESSER}, fields={"idempotent": True}) as host:
        assert await host.approvals.result(id) is None
        assert (await host.approvals.describe(id)).state == "unknown"
    assert log == []


# -- after the end -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["memory", "file"])
async def test_a_host_that_is_shut_down_says_so(store, log, where):
    async with hosted(None if where == "memory" else store, log) as host:
        id = await proposed(host)

    for use in (
        host.approvals.pending(),
        host.approvals.describe(id),
        host.grants.add("act", "never"),
        host.audit.records(),
    ):
        with pytest.raises(StoreError, match="the host is shut down"):
            await use


async def test_nothing_is_opened_again_after_a_host_was_shut_down(store, log):
    async with hosted(store, log) as host:
        id = await proposed(host)
    result = await host.approvals.approve(id)

    assert (kind(result), host._store._session.is_over) == ("Refused", True)
    assert log == []


async def test_shutting_down_twice_is_fine(store, log):
    async with hosted(store, log) as host:
        await asyncio.gather(host.shutdown(), host.shutdown())


# -- records -----------------------------------------------------------------------------------------------------------


async def test_the_record_says_whether_a_tool_or_a_rule_was_missing(log):
    async with hosted(None, log) as host:
        for name, principal in (("act", Principal("bob")), ("nothing", Principal("bob"))):
            await host.tools.process_tool_call(ToolCall(name), principal)
        reasons = [one["reason"] for one in await events(host, "decision")]

    assert reasons == [f"p:act requires {RULE}", "there is no such tool"]


@pytest.mark.parametrize("place", [5, True, 1.5, b"path", ["a"], {"path": "a"}])
def test_a_store_that_is_no_place_is_refused_in_words(place):
    with pytest.raises(StoreError, match=rf"a store can't be at a value of type {type(place).__name__}; give a path"):
        AgentOS(store=place)


async def test_a_record_of_a_proposal_names_what_it_closes(store, log):
    async with hosted(store, log) as host:
        id = await proposed(host)
        await host.approvals.approve(id)
    rows = by_hand(store, "SELECT body, closes FROM audit WHERE closes IS NOT NULL")

    assert [(json.loads(row["body"])["event"], row["closes"]) for row in rows] == [("proposal:applying", id)]


async def test_how_an_approved_call_ended_is_recorded_though_somebody_else_closed_its_proposal(tmp_path):
    place, log = tmp_path / "agentos.db", []

    async def execute(args, context):
        with contextlib.closing(sqlite3.connect(place)) as database, database:
            database.execute("UPDATE proposals SET state = 'rejected'")
        return "done"

    async with hosted(place, log, fields={"execute": execute}) as host:
        result = await host.approvals.approve(await proposed(host))
        told = [record.event for record in await host.audit.records()]

    assert (kind(result), told.count("proposal:applied")) == ("ok", 1)
