"""What a proposal is bound to: version, origin, options and who takes part. Nothing else voids it."""

import contextlib
import functools
import hashlib
import hmac
import sqlite3
from pathlib import Path

import pytest
from bridging import plain
from hypothesis import given
from hypothesis import strategies as st

from agentos import (
    PUBLIC,
    AgentOS,
    Descriptor,
    ExtensionManifest,
    ExtensionPack,
    PackEntry,
    ProposalError,
    SecretRequirement,
    Tool,
    ToolCall,
)
from agentos.access.proposals import sealed_text

KEY = "k" * 32
SECRET = "sk-live-0123456789abcdef"
LOG = []


@pytest.fixture(autouse=True)
def nothing_ran():
    LOG.clear()


def acting(**fields):
    """Return a tool that writes down the options that reached it."""

    async def execute(args, context):
        LOG.append(dict(context.options))
        return "done"

    said = {"name": "act", "description": "Do it.", "effect": "mutate", "required_access": PUBLIC, "execute": execute}
    return Tool.from_schema(**{"input_schema": {"type": "object"}, **said, **fields})


def wrapper(name, priority):
    """Return an entry whose tool calls the one beneath it."""

    async def execute(args, context):
        return await context.below(args)

    return entry(name, offered=Descriptor("tool", "act", acting(execute=execute), wraps=True, priority=priority))


def make(name, version, offered):
    return ExtensionPack(name, version, [offered])


def make_otherwise(name, version, offered):
    return ExtensionPack(name, version, [offered])


def make_for(folder):
    return make("p", "1.0", acting())


class Maker:
    """A factory that is an object, and says what it is."""

    def __init__(self, place):
        self.place = place

    def __repr__(self):
        return f"Maker({self.place!r})"

    def __call__(self):
        return make("p", "1.0", acting())


def entry(name="p", version="1.0", *, function=make, offered=None, **fields):
    """Return an entry whose pack is made by a function of that name."""

    def factory():
        return function(name, version, offered or acting())

    factory.__qualname__ = function.__qualname__
    return PackEntry(factory=factory, **{"identifier": name, **fields})


def in_file(folder, version="1.0", **fields):
    """Return an entry whose pack is in a file."""
    (folder / "p.py").write_text(
        "from agentos import ExtensionPack, PUBLIC, Tool\n"
        "def run(args, context): return 'done'\n"
        "act = Tool.from_schema(name='act', description='Do it.', effect='mutate', required_access=PUBLIC,"
        " input_schema={'type': 'object'}, execute=run)\n"
        f"pack = ExtensionPack('p', {version!r}, [act])\n"
    )
    return PackEntry(module=str(folder / "p.py"), **fields)


@pytest.fixture(params=["in memory", "in a file", "restarted"])
def way(request, tmp_path):
    """Return what proposes by some packs and approves by others: one host, or a second one on the same store."""
    store = None if request.param == "in memory" else tmp_path / "agentos.db"
    return functools.partial(_approved, store, is_restarted=request.param == "restarted")


@contextlib.asynccontextmanager
async def hosted(store, entries, **options):
    async with AgentOS(
        extension_manifest=entries, store=store, store_key=KEY, budget=None, pins="off", **options
    ) as host:
        assert not [one for one in host.extensions.report.outcomes if one.status == "failed"]
        yield host


async def _approved(store, before, after, *, is_restarted, tool="act", then=None, **options):
    """Return what the approval comes to of a call that was proposed by *before*, once *after* are loaded instead."""
    async with hosted(store, before, **options) as host:
        id = await proposed(host, tool)
        if not is_restarted:
            await exchanged(host, before, after)
            return await approved(host, id, then)
    async with hosted(store, after, **options) as host:
        return await approved(host, id, then)


async def proposed(host, tool="act", arguments=None):
    result = await host.tools.process_tool_call(ToolCall(tool, arguments or {}))
    assert result.error.type == "ApprovalRequired", result
    return result.error.details["proposal_id"]


async def exchanged(host, before, after):
    for entry in reversed(before):
        await host.extensions.unload(entry.key)
    for entry in after:
        outcome = await host.extensions.load(entry)
        assert outcome.status == "loaded", outcome


async def approved(host, id, then=None):
    if then is not None:
        await then(host)
    result = await host.approvals.approve(id)
    assert (await host.approvals.describe(id)).state == ("applied" if result.success else "proposed")
    return result


def assert_refused(result, *words):
    assert (result.success, LOG) == (False, [])
    assert result.error.type == "ProposalInvalid"
    for word in (*words, "make the call again"):
        assert word in result.error.message


# -- what voids it -----------------------------------------------------------------------------------------------------


async def test_what_is_as_it_was_is_applied(way):
    assert (await way([entry()], [entry()])).success
    assert LOG == [{}]


async def test_another_version_is_refused(way):
    assert_refused(await way([entry()], [entry(version="1.1")]), "version (1.0 then, 1.1 now) of p:act changed")


@pytest.mark.parametrize(
    "after",
    [{"to": "b"}, {}, {"to": "a", "more": 1}, {"to": ["a"]}, {"to": "a", "deep": {"x": {"y": [1, 2, {"z": None}]}}}],
    ids=str,
)
async def test_other_options_are_refused(way, after):
    result = await way([entry(options={"to": "a"})], [entry(options=after)])

    assert_refused(result, "the options of p:act changed")


async def test_options_in_another_order_are_the_same(way):
    result = await way(
        [entry(options={"a": 1, "b": {"c": 2, "d": 3}})], [entry(options={"b": {"d": 3, "c": 2}, "a": 1})]
    )

    assert result.success


async def test_options_of_another_type_are_others(way):
    assert_refused(await way([entry(options={"a": 1})], [entry(options={"a": "1"})]), "options")


async def test_options_of_an_override_count(way):
    async def overridden(host):
        await host.extensions.set_override("tool", "act", {"options": {"to": "evil"}})

    assert_refused(await way([entry()], [entry()], then=overridden), "the options of p:act changed")


async def test_the_same_options_from_an_override_are_the_same(way):
    async def overridden(host):
        await host.extensions.set_override("tool", "p:act", {"options": {"to": "a"}})

    assert (await way([entry(options={"to": "a"})], [entry(options={"to": "a"})], then=overridden)).success


async def test_another_factory_is_another_origin(way):
    assert_refused(await way([entry()], [entry(function=make_otherwise)]), "the origin of p:act changed")


@pytest.mark.parametrize("factory", [functools.partial(functools.partial, make_for), Maker], ids=["partial", "object"])
async def test_a_factory_of_something_else_is_another_origin(way, factory):
    before, same, other = (PackEntry(factory=factory(place), identifier="p") for place in ("a", "a", "b"))

    assert (await way([before], [same])).success
    LOG.clear()
    assert_refused(await way([before], [other]), "the origin of p:act changed")


async def test_a_pack_from_another_file_is_refused(way, tmp_path):
    (tmp_path / "other").mkdir()
    before, after = in_file(tmp_path, identifier="p"), in_file(tmp_path / "other", identifier="p")

    assert_refused(await way([before], [after]), "the origin of p:act changed")


async def test_a_project_in_another_folder_is_the_same(way, tmp_path):
    """Hosts on one store have it where they like: what the manifest says of the pack is what counts."""
    packs = []
    for name in ("here", "there"):
        folder = tmp_path / name
        folder.mkdir()
        in_file(folder, identifier="p")
        (file,) = folder.glob("*.py")
        manifest = {"packs": [{"module": file.name, "identifier": "p"}]}
        packs.append(ExtensionManifest.from_dict(manifest, folder=folder).packs)

    assert (await way(list(packs[0]), list(packs[1]))).success


async def test_a_pack_from_a_file_instead_of_a_factory_is_refused(way, tmp_path):
    assert_refused(await way([entry()], [in_file(tmp_path, identifier="p")]), "the origin of p:act changed")


async def test_a_pack_under_another_entry_is_refused(way):
    assert_refused(await way([entry()], [entry(identifier="other")]), "the origin of p:act changed")


async def test_a_file_of_another_version_is_refused_after_a_reload(tmp_path):
    entry = in_file(tmp_path)
    async with hosted(None, [entry]) as host:
        id = await proposed(host)
        in_file(tmp_path, version="2.0")
        assert (await host.extensions.reload(entry.key)).status == "loaded"

        assert_refused(await host.approvals.approve(id), "version (1.0 then, 2.0 now)")


async def test_all_that_changed_is_named(way):
    result = await way([entry(options={"to": "a"})], [entry(version="2.0", function=make_otherwise)])

    assert_refused(result, "the version (1.0 then, 2.0 now) and the origin and the options of p:act changed")


async def test_a_pack_without_a_version_that_gets_one_is_refused(way):
    assert_refused(await way([entry(version=None)], [entry()]), "version (none then, 1.0 now)")


async def test_a_changed_tool_is_refused_for_an_edit_too():
    async with hosted(None, [entry()]) as host:
        id = await proposed(host)
        await host.extensions.set_override("tool", "act", {"options": {"to": "evil"}})

        with pytest.raises(ProposalError, match="the options of p:act changed"):
            await host.approvals.edit(id, {})


async def test_what_is_put_back_is_applied():
    async with hosted(None, [entry()]) as host:
        id = await proposed(host)
        await host.extensions.set_override("tool", "act", {"options": {"to": "evil"}})
        assert_refused(await host.approvals.approve(id))
        await host.extensions.set_override("tool", "act", None)

        assert (await host.approvals.approve(id)).success


async def test_options_that_change_while_the_dry_run_shows_the_old_ones_are_refused():
    """Who approves has seen what the dry run said with the options of then."""

    async def show(args, context):
        await host.extensions.set_override("tool", "act", {"options": {"to": "evil"}})
        return dict(context.options)

    async with hosted(None, [entry(offered=acting(dry_run=show))]) as host:
        id = await proposed(host)
        assert (await host.approvals.describe(id)).preview == {}

        assert_refused(await host.approvals.approve(id), "options")


# -- what does not -----------------------------------------------------------------------------------------------------


NEEDING = Descriptor("tool", "act", acting(), required_secrets=(SecretRequirement("demo.key"),))


async def test_a_changed_secret_of_the_pack_does_not_void_it(way):
    def holding(value):
        return entry(offered=NEEDING, options={"to": "a", "secrets": {"demo.key": value}})

    assert (await way([holding(SECRET)], [holding("sk-live-another-0123456789")])).success
    assert LOG == [{"to": "a"}]


async def test_a_changed_secret_of_the_host_does_not_void_it(way):
    async def renewed(host):
        await host.extensions.set_secret("demo.key", "sk-live-another-0123456789")

    entries = [entry(offered=NEEDING)]
    assert (await way(entries, entries, then=renewed, extension_secrets={"demo.key": SECRET})).success


async def test_options_are_not_kept_in_the_clear(tmp_path):
    async with hosted(tmp_path / "agentos.db", [entry(options={"to": "a-place-that-is-nobodys-business"})]) as host:
        await proposed(host)

    assert not [one for one in tmp_path.rglob("*") if one.is_file() and b"nobodys-business" in one.read_bytes()]


async def test_two_stores_keep_different_digests_of_the_same_options(tmp_path):
    kept = []
    for key in ("a" * 32, "b" * 32):
        async with AgentOS(
            extension_manifest=[entry(options={"pin": "0000"})], store=tmp_path / f"{key}.db", store_key=key
        ) as host:
            await proposed(host)
        kept += [row["entry_state"] for row in rows(tmp_path / f"{key}.db")]

    assert kept[0] != kept[1]


class Odd:
    """An option that is no JSON and can't be shown."""

    def __repr__(self):
        raise RuntimeError("no")


CYCLE = []
CYCLE += [CYCLE, CYCLE]


@pytest.mark.parametrize(
    "value",
    [
        Odd(),
        CYCLE,
        {1: "a", "1": "b"},
        {2, "x", None},
        float("nan"),
        "\ud800",
        Path("x"),
        b"x",
        print,
        Odd,
        Odd().__repr__,
    ],
    ids=lambda value: type(value).__name__,
)
async def test_an_option_of_any_kind_can_be_proposed_with_and_approved(value):
    async with hosted(None, [entry(options={"odd": value})]) as host:
        assert (await host.approvals.approve(await proposed(host))).success


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(({1: "a"}, {"1": "a"}), ({1, 2}, {1, 3}), ((1, 2), (2, 1)), (Path("x"), Path("y")), (b"x", b"y")),
        *((True, 1), (None, "null"), (print, len), (Odd, Maker), (Maker("a"), Maker("b")), ({}, [])),
    ],
    ids=str,
)
async def test_options_that_are_no_json_are_told_apart(way, one, other):
    assert (await way([entry(options={"odd": one})], [entry(options={"odd": one})])).success
    LOG.clear()
    assert_refused(await way([entry(options={"odd": one})], [entry(options={"odd": other})]), "options")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(one=st.dictionaries(st.text(max_size=3), values, max_size=3), other=st.dictionaries(st.text(max_size=3), values))
def test_options_are_the_same_exactly_if_their_json_is(one, other):
    from agentos.base.canonical import canonical
    from agentos.calls.bindings import _plain

    assert (canonical(_plain(one)) == canonical(_plain(other))) == (canonical(one) == canonical(other))


# -- who takes part ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["p:act", "q:act"])
async def test_middleware_that_was_added_around_a_tool_is_refused_also_if_that_is_shadowed(way, tool):
    async def around(invocation, next):
        return await next()

    before = [entry(), entry("q", priority=5)]
    added = entry("m", offered=Descriptor("tool-middleware", "around", around))

    assert_refused(await way(before, [*before, added], tool=tool), "m:around around it")


async def test_a_wrapper_that_was_added_beneath_another_is_refused(way):
    before = [entry(), wrapper("top", 20)]
    after = [entry(), wrapper("mid", 10), wrapper("top", 20)]

    assert_refused(await way(before, after), "top:act over p:act then", "top:act over mid:act over p:act now")


async def test_a_wrapper_that_was_taken_from_beneath_another_is_refused(way):
    before = [entry(), wrapper("mid", 10), wrapper("top", 20)]

    assert_refused(await way(before, [entry(), wrapper("top", 20)]), "who takes part in a call of top:act")


async def test_wrappers_in_another_order_are_refused(way):
    before = [entry(), wrapper("a", 10), wrapper("b", 20), wrapper("top", 30)]
    after = [entry(), wrapper("a", 20), wrapper("b", 10), wrapper("top", 30)]

    assert_refused(await way(before, after), "top:act over b:act over a:act over p:act then")


async def test_wrappers_around_a_wrapped_tool_in_another_order_are_refused(way):
    before = [entry(), wrapper("a", 10), wrapper("b", 20)]
    after = [entry(), wrapper("a", 20), wrapper("b", 10)]

    assert_refused(await way(before, after, tool="p:act"), "b:act over a:act over p:act then")


async def test_another_tool_beneath_is_refused(way):
    assert_refused(await way([entry(), wrapper("top", 20)], [entry("q"), wrapper("top", 20)]), "top:act over q:act now")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (entry(version="2.0"), "version (1.0 then, 2.0 now) of p:act"),
        (entry(options={"to": "evil"}), "the options of p:act"),
        (entry(function=make_otherwise), "the origin of p:act"),
    ],
    ids=["version", "options", "origin"],
)
async def test_a_tool_beneath_that_changed_is_refused(way, changed, words):
    assert_refused(await way([entry(), wrapper("top", 20)], [changed, wrapper("top", 20)]), words)


async def test_wrappers_that_are_as_they_were_are_applied(way):
    assert (await way(*([entry(), wrapper("mid", 10), wrapper("top", 20)] for _ in range(2)))).success
    assert LOG == [{}]


async def test_a_tool_that_is_only_shadowed_takes_no_part(way):
    assert (await way([entry()], [entry("q", priority=-1), entry()])).success


@pytest.mark.parametrize("change", ["version", "options"])
async def test_a_tool_beneath_that_changes_while_the_approved_wrapper_runs_is_asked_about(change):
    """Of the same name and definition, it is still not what was shown."""

    async def execute(args, context):
        if change == "options":
            await host.extensions.set_override("tool", "p:act", {"options": {"to": "evil"}})
        else:
            await exchanged(host, [entry()], [entry(version="2.0", priority=-1)])
        return await context.below(args)

    top = Descriptor("tool", "act", acting(execute=execute), wraps=True, priority=20)
    async with hosted(None, [entry(), entry("top", offered=top)]) as host:
        result = await host.approvals.approve(await proposed(host))

    assert (result.success, LOG) == (False, [])
    assert result.error.type == "ApprovalRequired"


# -- MCP servers -------------------------------------------------------------------------------------------------------


TOKEN = "t-0123456789abcdef"


@pytest.mark.parametrize(
    ("said", "is_same"),
    [
        ({}, True),
        ({"env": {"API_TOKEN": "t-another-0123456789"}}, True),
        ({"env": {"PLACE": "x"}}, False),
        ({"cwd": "/"}, False),
    ],
    ids=str,
)
async def test_a_tool_of_a_server_is_bound_to_how_it_is_reached(tmp_path, said, is_same):
    """A secret in its environment may be another later."""
    server = {**plain(), "effects": {}, "env": {"API_TOKEN": TOKEN}}
    store = tmp_path / "agentos.db"
    async with hosted(store, {"mcpServers": {"plain": server}}) as host:
        id = await proposed(host, "echo", {"text": "a"})
    async with hosted(store, {"mcpServers": {"plain": {**server, **said}}}) as host:
        result = await host.approvals.approve(id)

    if is_same:
        assert result.success, result
    else:
        assert_refused(result, "the origin of mcp/plain:")


# -- stores of earlier versions ----------------------------------------------------------------------------------------


def rows(store):
    with contextlib.closing(sqlite3.connect(store)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM proposals")]


def written_before(store, entry_state):
    """Make the one proposal of a store what an earlier version would have written: with less, and a good seal."""
    (row,) = rows(store)
    row["entry_state"] = entry_state
    seal = hmac.new(KEY.encode(), sealed_text(row).encode(), hashlib.sha256).hexdigest()
    with contextlib.closing(sqlite3.connect(store)) as database, database:
        database.execute("UPDATE proposals SET entry_state = ?, seal = ?", (entry_state, seal))


@pytest.mark.parametrize("entry_state", ["active", f"active over {'0' * 64}"])
async def test_a_proposal_of_an_earlier_version_is_listed_and_refused(tmp_path, entry_state):
    store = tmp_path / "agentos.db"
    async with hosted(store, [entry()]) as host:
        id = await proposed(host)
    written_before(store, entry_state)

    async with hosted(store, [entry()]) as host:
        assert [one.id for one in await host.approvals.pending()] == [id]
        assert (await host.approvals.describe(id)).tool == "p:act"
        assert_refused(await host.approvals.approve(id), "earlier version of agentos")
        await host.approvals.reject(id, "it is old")
        assert await host.approvals.pending() == []
