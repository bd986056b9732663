"""What people switched off stays off after a restart; and where a host keeps what must last."""

import asyncio
import contextlib
import itertools
import json
import sqlite3

import pytest
from cancelling import cancelled_at
from kit import states

from agentos import PUBLIC, AgentOS, ExtensionPack, PackEntry, StoreError, Tool, ToolCall, UnknownPackError

NOW = 1_800_000_000.0


async def done(args, context):
    return "done"


def acting(name="act"):
    return Tool.from_schema(
        name=name,
        description="Do it.",
        input_schema={"type": "object", "properties": {}},
        effect="read",
        required_access=PUBLIC,
        execute=done,
    )


class Maker:
    """Makes a pack anew for every host and notes what its hooks are told."""

    def __init__(self, name="p", *, fails=False):
        self.name = name
        self.fails = fails
        self.log = []

    def __call__(self):
        def on_activate(context):
            self.log.append("+")
            if self.fails:
                raise ValueError("broken")

        return ExtensionPack(
            self.name, "1.0", [acting()], on_activate=on_activate, on_deactivate=lambda context: self.log.append("-")
        )


@contextlib.asynccontextmanager
async def hosted(store, *makers, **options):
    async with AgentOS(store=store, extension_manifest=list(makers), **options) as host:
        yield host


async def call(host, name="act"):
    result = await host.tools.process_tool_call(ToolCall(name, {}))
    return "ok" if result.success else result.error.type


def enabled(host):
    return {record.key: record.enabled for record in host.extensions.packs()}


def bug(reason):
    """Mark what the code does not keep yet."""
    return pytest.mark.xfail(strict=True, reason=reason)


@pytest.fixture
def store(tmp_path):
    return tmp_path / "agentos.db"


# -- flags -------------------------------------------------------------------------------------------------------------


async def test_a_disabled_pack_stays_disabled_after_a_restart(store):
    maker = Maker()
    async with hosted(store, maker) as host:
        await host.extensions.disable("p")
    maker.log.clear()
    for _ in range(2):
        async with hosted(store, maker) as host:
            assert enabled(host) == {"p": False}
            assert states(host.extensions, "act") == {"p": "disabled"}
            assert await call(host) == "UnknownTool"
            assert host.tools.list_available_tools() == []

    assert maker.log == [], "the hooks of a pack that is disabled do not run"


async def test_it_is_said_since_when_a_pack_is_disabled(store):
    async with hosted(store, Maker(), clock=lambda: NOW) as host:
        await host.extensions.disable("p")
    async with hosted(store, Maker()) as host:
        (entry,) = host.extensions.explain("tool", "act").entries

    assert "2027-01-15" in entry.reason
    assert "enable" in entry.reason


async def test_an_enabled_pack_stays_enabled_after_a_restart(store):
    maker = Maker()
    async with hosted(store, maker) as host:
        await host.extensions.disable("p")
    async with hosted(store, maker) as host:
        await host.extensions.enable("p")
        assert await call(host) == "ok"
    async with hosted(store, maker) as host:
        assert enabled(host) == {"p": True}
        assert await call(host) == "ok"


async def test_other_packs_are_not_disabled_with_it(store):
    async with hosted(store, Maker("p"), Maker("q")) as host:
        await host.extensions.disable("q")
    async with hosted(store, Maker("p"), Maker("q")) as host:
        assert enabled(host) == {"p": True, "q": False}
        assert states(host.extensions, "act") == {"p": "active", "q": "disabled"}


async def test_a_flag_belongs_to_the_key_of_a_pack(store):
    entry = PackEntry(factory=Maker("p"), identifier="mine")
    async with hosted(store, entry) as host:
        await host.extensions.disable("mine")
    async with hosted(store, PackEntry(factory=Maker("p"), identifier="mine")) as host:
        assert enabled(host) == {"mine": False}


async def test_a_pack_that_comes_back_later_is_still_disabled(store):
    async with hosted(store, Maker()) as host:
        await host.extensions.disable("p")
    async with hosted(store):
        pass
    async with hosted(store, Maker()) as host:
        assert enabled(host) == {"p": False}


@pytest.mark.parametrize("durable", [False, True])
async def test_unloading_and_loading_again_does_not_enable(store, durable):
    async with hosted(store if durable else None) as host:
        await host.extensions.load(PackEntry(factory=Maker()))
        await host.extensions.disable("p")
        await host.extensions.unload("p")
        await host.extensions.load(PackEntry(factory=Maker()))

        assert enabled(host) == {"p": False}


@pytest.mark.parametrize("durable", [False, True])
async def test_reloading_does_not_enable(store, durable):
    async with hosted(store if durable else None, Maker()) as host:
        await host.extensions.disable("p")
        await host.extensions.reload("p")

        assert enabled(host) == {"p": False}
        assert await call(host) == "UnknownTool"


async def test_no_override_brings_a_disabled_pack_back_after_a_restart(store):
    overrides = {"tools": {"act": {"enabled": True, "priority": 100}}}
    async with hosted(store, Maker(), extension_overrides=overrides) as host:
        await host.extensions.disable("p")
    async with hosted(store, Maker(), extension_overrides=overrides) as host:
        await host.extensions.set_override("tool", "p:act", {"enabled": True})

        assert states(host.extensions, "act") == {"p": "disabled"}


async def test_in_memory_nothing_is_remembered_beyond_the_host():
    maker = Maker()
    async with hosted(None, maker) as host:
        await host.extensions.disable("p")
    async with hosted(None, maker) as host:
        assert enabled(host) == {"p": True}


async def test_switching_an_unknown_pack_leaves_no_flag(store):
    async with hosted(store, Maker()) as host:
        with pytest.raises(UnknownPackError):
            await host.extensions.disable("q")
    async with hosted(store, Maker("q")) as host:
        assert enabled(host) == {"q": True}


async def test_a_pack_that_can_not_be_enabled_stays_disabled(store):
    maker = Maker()
    async with hosted(store, maker) as host:
        await host.extensions.disable("p")
    maker.fails = True
    async with hosted(store, maker) as host:
        with pytest.raises(Exception, match="broken"):
            await host.extensions.enable("p")
        assert enabled(host) == {"p": False}
    maker.fails = False
    async with hosted(store, maker) as host:
        assert enabled(host) == {"p": False}


async def test_switching_is_on_record_once_for_each_change(store):
    async with hosted(store, Maker()) as host:
        for _ in range(2):
            await host.extensions.disable("p")
        for _ in range(2):
            await host.extensions.enable("p")
        switched = [one.data["enabled"] for one in await host.audit.records() if one.event == "pack"]

    assert switched == [False, True]


async def test_switching_to_and_fro_at_once_ends_as_it_is_remembered(store):
    async with hosted(store, Maker()) as host:
        changes = [host.extensions.disable("p"), host.extensions.enable("p")] * 5
        await asyncio.gather(*changes)
        now = enabled(host)
    async with hosted(store, Maker()) as host:
        assert enabled(host) == now


async def test_what_can_not_be_written_down_is_not_switched(store):
    async with hosted(store, Maker()) as host:
        with contextlib.closing(sqlite3.connect(store)) as database, database:
            database.execute("ALTER TABLE flags RENAME TO elsewhere")
        with pytest.raises(StoreError):
            await host.extensions.disable("p")

        assert enabled(host) == {"p": True}
        assert await call(host) == "ok"


@pytest.mark.parametrize("switch", ["disable", "enable"])
async def test_a_cancelled_switch_ends_as_it_is_remembered(store, switch):
    """Wherever switching is cancelled, what this host does and what the next one will do are the same."""
    differing = []
    async with hosted(store, Maker()) as host:
        other = host.extensions.enable if switch == "disable" else host.extensions.disable
        for turn in itertools.count(1):
            await other("p")
            was_cancelled = await cancelled_at(turn, getattr(host.extensions, switch)("p"))
            with contextlib.closing(sqlite3.connect(store)) as database:
                rows = database.execute("SELECT enabled FROM flags").fetchall()
            if enabled(host) != {"p": not rows or bool(rows[0][0])}:
                differing.append(turn)
            if not was_cancelled:
                break

    assert differing == []


# -- where the store is ------------------------------------------------------------------------------------------------


async def test_a_manifest_says_where_the_store_is(tmp_path):
    file = tmp_path / "folder" / "manifest.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"store": "kept/agentos.db", "packs": []}))
    (tmp_path / "folder" / "kept").mkdir()
    async with AgentOS(extension_manifest=file) as host:
        await host.grants.add("p:act", "never")

    assert (tmp_path / "folder" / "kept" / "agentos.db").is_file()


async def test_what_a_manifests_store_keeps_is_there_after_a_restart(tmp_path):
    manifest = {"store": str(tmp_path / "agentos.db"), "packs": [{"factory": Maker()}]}
    async with AgentOS(extension_manifest=manifest) as host:
        await host.extensions.disable("p")
    async with AgentOS(extension_manifest=manifest) as host:
        assert enabled(host) == {"p": False}


async def test_the_hosts_store_counts_more_than_the_manifests(tmp_path):
    manifest = {"store": str(tmp_path / "other.db"), "packs": []}
    async with AgentOS(extension_manifest=manifest, store=tmp_path / "mine.db") as host:
        await host.grants.add("p:act", "never")

    assert (tmp_path / "mine.db").is_file()
    assert not (tmp_path / "other.db").exists()


async def test_the_default_store_is_in_the_users_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTOS_DATA", str(tmp_path / "data"))
    async with AgentOS(extension_manifest={"store": "default", "packs": []}) as host:
        await host.grants.add("p:act", "never")

    assert [file.suffix for file in (tmp_path / "data").iterdir() if file.suffix == ".db"] == [".db"]


@pytest.mark.parametrize("bad", [5, True, ["x"], {}, ""])
def test_a_manifests_store_is_a_path_or_url(bad):
    with pytest.raises(ValueError, match="store"):
        AgentOS(extension_manifest={"store": bad, "packs": []})


async def test_a_store_that_can_not_be_opened_is_told_in_words(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError, match="file"):
        async with AgentOS(store=tmp_path / "file" / "agentos.db", extension_manifest=[Maker()]):
            pass


async def test_a_database_of_something_else_is_not_touched(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as database, database:
        database.execute("CREATE TABLE customers (id INTEGER)")
    before = (tmp_path / "other.db").read_bytes()
    with pytest.raises(StoreError, match="customers"):
        async with AgentOS(store=tmp_path / "other.db", extension_manifest=[Maker()]):
            pass

    assert (tmp_path / "other.db").read_bytes() == before


async def test_a_store_with_another_key_trusts_nothing_that_it_finds(tmp_path):
    store = tmp_path / "agentos.db"
    async with hosted(store, Maker(), store_key="x" * 32) as host:
        await host.grants.add("act", "always")
    async with hosted(store, Maker(), store_key="y" * 32) as host:
        assert await host.grants.list() == []
        assert "key" in (await host.audit.verify()).reason


# -- several hosts -------------------------------------------------------------------------------------------------


async def test_what_another_host_switched_is_taken_over_when_it_is_asked_for(tmp_path):
    async with AgentOS(store=tmp_path / "s.db") as one, AgentOS(store=tmp_path / "s.db") as other:
        for host in (one, other):
            await host.extensions.load_pack(ExtensionPack("p", "1.0", [acting()]))
        await one.extensions.disable("p")
        switched = await other.extensions.refresh_packs()
        off = await other.tools.process_tool_call(ToolCall("act"))
        await one.extensions.enable("p")
        again = await other.extensions.refresh_packs()
        on = await other.tools.process_tool_call(ToolCall("act"))
        nothing = await other.extensions.refresh_packs()

    assert [(record.key, record.enabled) for record in switched + again] == [("p", False), ("p", True)]
    assert (off.success, on.success, nothing) == (False, True, [])


async def test_taking_over_is_written_down_by_nobody_twice(tmp_path):
    async with AgentOS(store=tmp_path / "s.db") as one, AgentOS(store=tmp_path / "s.db") as other:
        for host in (one, other):
            await host.extensions.load_pack(ExtensionPack("p", "1.0", [acting()]))
        await one.extensions.disable("p")
        await other.extensions.refresh_packs()
        written = [record for record in await one.audit.records() if record.event == "pack"]

    assert len(written) == 1


async def test_without_a_store_there_is_nothing_to_take_over():
    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", "1.0", [acting()]))
        await host.extensions.disable("p")

        assert await host.extensions.refresh_packs() == []
        assert not host.extensions.packs()[0].enabled
