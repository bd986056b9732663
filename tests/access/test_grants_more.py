"""Grants that forbid: by patterns, from another host on the same store, and in what is offered; and what names whom."""

import contextlib
import sqlite3

import pytest
import store_fixtures

from agentos import PUBLIC, AgentOS, ExtensionPack, GrantError, Principal, Tool, ToolCall
from agentos.access import grants as grants_module
from agentos.calls.steps import decide as decide_module

postgres_server = store_fixtures.postgres_server
data_folder = store_fixtures.data_folder
postgres_url = store_fixtures.postgres_url
sqlite_url = store_fixtures.sqlite_url
store_url = store_fixtures.store_url

ANN = Principal("ann")
BOB = Principal("bob")


async def nothing(args, context):
    return "done"


def acting(name="act", effect="mutate", **fields):
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    fields.setdefault("execute", nothing)
    return Tool.from_schema(
        name=name, description="Do it.", input_schema=schema, effect=effect, required_access=PUBLIC, **fields
    )


READ = acting("rd", "read")


@contextlib.asynccontextmanager
async def hosted(*tools, store=None, **options):
    async with AgentOS(store=store, budget=None, **options) as host:
        outcome = await host.extensions.load_pack(ExtensionPack("p", "1.0", tools))
        assert outcome.status == "loaded", outcome
        yield host


async def call(host, name="act", principal=None, arguments=None, session=None):
    return await host.tools.process_tool_call(ToolCall(name, arguments), principal, session=session)


def kind(result):
    return "ok" if result.success else result.error.type


def names(host, principal=None):
    return [one.name for one in host.tools.list_available_tools(principal)]


# -- patterns ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["*", "p:*", "a*", "p:ac?", "[ab]ct", "*:act", "do_*"])
async def test_a_never_grant_with_a_pattern_denies_what_deny_denies(pattern):
    one = acting(aliases=("do_it",))
    async with hosted(one) as host, hosted(one, deny=[pattern]) as denying:
        await host.grants.add(pattern, "never")

        assert [kind(await call(each)) for each in (host, denying)] == ["Refused", "Refused"]


async def test_a_never_grant_with_a_pattern_denies_a_read_that_ran_before():
    async with hosted(READ) as host:
        before = kind(await call(host, "rd"))
        await host.grants.add("r*", "never")

        assert (before, kind(await call(host, "rd"))) == ("ok", "Refused")


@pytest.mark.parametrize("pattern", ["b*", "q:*", "a", "ac", "p:"])
async def test_a_never_grant_with_a_pattern_denies_nothing_else(pattern):
    async with hosted(acting()) as host:
        await host.grants.add(pattern, "never")

        assert kind(await call(host)) == "ApprovalRequired"


@pytest.mark.parametrize("decision", ["once", "session", "always"])
@pytest.mark.parametrize("pattern", ["*", "p:*", "ac?", "[a]ct"])
async def test_a_grant_that_allows_takes_no_pattern(decision, pattern):
    async with hosted(acting()) as host:
        with pytest.raises(GrantError, match=r"is a pattern; add one for each tool\. Only `never` takes a pattern"):
            await host.grants.add(pattern, decision, session="s")


# -- another host ------------------------------------------------------------------------------------------------------


@pytest.fixture
def later(monkeypatch):
    """Return what lets a moment pass in the eyes of a host: what it knows of others is old then."""
    return lambda: monkeypatch.setattr(decide_module, "monotonic", lambda: float("inf"))


async def test_a_never_grant_of_another_host_stops_the_next_read(store_url, later):
    async with hosted(READ, store=store_url) as one, hosted(READ, store=store_url) as other:
        before = kind(await call(one, "rd"))
        await other.grants.add("p:rd", "never")
        later()

        assert (before, kind(await call(one, "rd"))) == ("ok", "Refused")


async def test_a_grant_that_another_host_revoked_stops_no_read(store_url, later):
    async with hosted(READ, store=store_url) as one, hosted(READ, store=store_url) as other:
        grant = await one.grants.add("p:rd", "never")
        await other.grants.revoke(grant.id)
        later()

        assert kind(await call(one, "rd")) == "ok"


async def test_a_read_that_looked_at_the_store_is_recorded_as_any_other(sqlite_url, later):
    async with hosted(READ, store=sqlite_url) as host:
        await call(host, "rd")
        later()
        await call(host, "rd")
        told = [one.data for one in await host.audit.records() if one.event == "call"]

    assert len(told) == 2
    assert told[0] == told[1]


async def test_a_read_does_not_look_again_while_what_is_known_is_fresh(sqlite_url, monkeypatch):
    async with hosted(READ, store=sqlite_url) as host:
        host.grants.fresh_until = float("inf")
        looked = []
        monkeypatch.setattr(host.grants, "look", lambda: looked.append(1))
        await call(host, "rd")

    assert looked == []


async def test_a_read_runs_with_what_was_known_when_the_store_can_not_be_read(tmp_path, later, caplog):
    store = tmp_path / "agentos.db"
    async with hosted(READ, acting("other", "read"), store=store) as host:
        await host.grants.add("other", "never")
        change(store, "ALTER TABLE grants RENAME TO away")
        later()
        results = [kind(await call(host, name)) for name in ("rd", "other")]
        change(store, "ALTER TABLE away RENAME TO grants")

    assert results == ["ok", "Refused"]
    assert "what other hosts granted is not known" in caplog.text


async def test_a_read_does_not_wait_long_for_a_store_that_hangs(tmp_path, later, monkeypatch):
    monkeypatch.setattr(grants_module, "_PATIENCE", 0.01)
    async with hosted(READ, store=tmp_path / "agentos.db") as host:
        later()
        async with host.grants._turn:  # somebody reads, and does not come to an end
            assert kind(await call(host, "rd")) == "ok"


# -- what is offered ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["act", "p:act", "a*"])
async def test_a_tool_that_is_forbidden_to_everybody_is_not_offered(tool):
    async with hosted(acting(), READ) as host:
        before = names(host, ANN)
        grant = await host.grants.add(tool, "never")
        during = names(host, ANN)
        await host.grants.revoke(grant.id)

        assert (before, during, names(host, ANN)) == (["act", "rd"], ["rd"], ["act", "rd"])


async def test_a_tool_that_is_forbidden_to_one_is_offered_to_the_others():
    async with hosted(acting(), READ) as host:
        await host.grants.add("act", "never", principal=ANN)

        assert (names(host, ANN), names(host, BOB)) == (["rd"], ["act", "rd"])


@pytest.mark.parametrize("scope", [{"arguments": {"$.path": "/etc/*"}}, {"session": "s"}], ids=str)
async def test_a_tool_of_which_some_calls_are_forbidden_is_offered(scope):
    async with hosted(acting()) as host:
        await host.grants.add("act", "never", **scope)

        assert names(host) == ["act"]


async def test_a_tool_that_is_forbidden_is_not_found_nor_prompted():
    async with hosted(acting(system_prompt="Act with care."), READ) as host:
        await host.grants.add("act", "never", principal=ANN)

        assert (host.tools.get_tool("act", ANN), host.tools.system_prompt(ANN)) == (None, "")
        assert host.tools.get_tool("act", BOB) is not None


async def test_a_list_is_the_same_object_as_long_as_no_grant_changes_it():
    async with hosted(acting()) as host:
        kept = host.tools.listed(ANN)
        await host.grants.add("act", "always")

        assert host.tools.listed(ANN) is kept


# -- what names whom ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["", "  ", 0, False, 5, [], ["ann"], {}, "a\nb", "x" * 500], ids=repr)
@pytest.mark.parametrize("place", ["principal", "by"])
async def test_a_grant_names_a_principal_or_everybody_and_nothing_else(place, bad):
    async with hosted(acting()) as host:
        with pytest.raises(GrantError, match=f"{place}: expected .*; give a Principal, its key, or None"):
            await host.grants.add("act", "always", **{place: bad})

        assert await host.grants.list() == []


@pytest.mark.parametrize("bad", ["", 0, 5, []], ids=repr)
async def test_a_list_of_grants_is_asked_for_a_principal_and_nothing_else(bad):
    async with hosted(acting()) as host:
        with pytest.raises(GrantError, match="principal: expected"):
            await host.grants.list(bad)


@pytest.mark.parametrize("bad", [5, None, [], "\ud800"], ids=repr)
async def test_what_is_no_id_of_a_grant_revokes_nothing(bad, tmp_path):
    async with hosted(acting(), store=tmp_path / "agentos.db") as host:
        await host.grants.add("act", "never")

        assert await host.grants.revoke(bad) is False


@pytest.mark.parametrize("bad", [5, ["s"], True], ids=repr)
async def test_a_session_of_a_grant_is_a_mapping_or_an_id(bad):
    async with hosted(acting()) as host:
        with pytest.raises(GrantError, match="session: expected a session or its id, got"):
            await host.grants.add("act", "session", session=bad)


async def test_a_grant_for_a_user_does_not_serve_the_service_of_that_id():
    async with hosted(acting()) as host:
        await host.grants.add("act", "always", principal=ANN)

        assert kind(await call(host, principal=Principal("ann", "service"))) == "ApprovalRequired"
        assert kind(await call(host, principal=ANN)) == "ok"


async def test_an_allowing_grant_whose_pattern_is_none_any_more_does_not_count(tmp_path):
    store = tmp_path / "agentos.db"
    async with hosted(acting(), store=store) as host:
        await host.grants.add("act", "always")
        await host.grants.refresh()
        (row,) = host.grants._rows
        changed = {**row, "arguments": '{"kind":"regex","match":{"$.path":"(?=a)"}}'}
        seal = host.grants._store.seal(grants_module._sealed_text(changed))
        change(store, "UPDATE grants SET arguments = ?, seal = ?", changed["arguments"], seal)
        await host.grants.refresh()

        assert (await host.grants.list(), kind(await call(host))) == ([], "ApprovalRequired")


# -- rows that somebody changed ----------------------------------------------------------------------------------------


def change(store, sql, *values):
    with contextlib.closing(sqlite3.connect(store)) as database, database:
        return database.execute(sql, values).fetchall()


def put_back(store, row):
    change(store, "DELETE FROM grants")
    change(store, f"INSERT INTO grants VALUES ({', '.join('?' * len(row))})", *row)


@pytest.mark.parametrize("ended_by", ["revoking", "using"])
@pytest.mark.parametrize("how", ["its state", "the row of before"])
async def test_an_allowing_grant_that_ended_does_not_come_back(tmp_path, ended_by, how):
    store = tmp_path / "agentos.db"
    async with hosted(acting(), store=store) as host:
        grant = await host.grants.add("act", "once" if ended_by == "using" else "always")
        [row] = change(store, "SELECT * FROM grants")
        if ended_by == "using":
            assert kind(await call(host)) == "ok"
        else:
            await host.grants.revoke(grant.id)
        if how == "its state":
            change(store, "UPDATE grants SET state = 'active', ended_at = NULL")
        else:
            put_back(store, row)

        assert kind(await call(host)) == "ApprovalRequired"
    async with hosted(acting(), store=store) as host:
        assert (kind(await call(host)), await host.grants.list()) == ("ApprovalRequired", [])
        assert await host.audit.verify()


async def test_a_changed_denial_denies_as_widely_as_it_can(tmp_path):
    store = tmp_path / "agentos.db"
    async with hosted(acting(), store=store) as host:
        await host.grants.add("act", "never", principal=ANN, arguments={"$.path": "a*"}, session={"id": "s"})
        change(store, "UPDATE grants SET principal = 'zed'")

        assert [kind(await call(host, principal=one)) for one in (ANN, BOB)] == ["Refused", "Refused"]


async def test_revoking_a_changed_denial_ends_it(tmp_path):
    store = tmp_path / "agentos.db"
    async with hosted(acting(), store=store) as host:
        grant = await host.grants.add("act", "never", principal=ANN)
        change(store, "UPDATE grants SET principal = 'zed'")
        await host.grants.revoke(grant.id)

        assert kind(await call(host, principal=ANN)) == "ApprovalRequired"


# -- what explain says -------------------------------------------------------------------------------------------------


async def test_explain_says_what_denies_a_tool():
    async with hosted(READ, deny=["rd"]) as host:
        explained = host.tools.explain("rd", ANN)

    assert (explained.is_allowed, explained.denial) == (False, "p:rd is denied by 'rd' in the host's deny list")
    assert explained.denial in str(explained)


@pytest.mark.parametrize("pattern", ["p:rd", "p:*"])
async def test_explain_says_to_whom_a_grant_forbids_a_tool(pattern):
    async with hosted(READ) as host:
        grant = await host.grants.add(pattern, "never", principal=ANN)
        found = [host.tools.explain("rd", one) for one in (ANN, BOB)]

    assert [one.is_allowed for one in found] == [False, True]
    assert grant.id in found[0].denial


async def test_a_grant_is_taken_back_once(sqlite_url):
    async with hosted(READ, store=sqlite_url) as one, hosted(READ, store=sqlite_url) as other:
        grant = await one.grants.add("p:rd", "never")
        taken = [await host.grants.revoke(grant.id) for host in (one, one, other)]

        assert (taken, await one.grants.revoke("f" * 32)) == ([True, False, False], False)
        told = [record.event for record in await one.audit.records()]
    assert told.count("grant:revoked") == 1
