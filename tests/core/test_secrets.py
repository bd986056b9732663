"""Where values come from, who may read them, and what happens when they come and go."""

import asyncio
import functools
import json
import os
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit import Recorder, descriptor, pack, states

from agentos import (
    AgentOS,
    ExtensionManager,
    ExtensionPack,
    ManifestError,
    PackEntry,
    SecretCatalog,
    SecretDefinition,
    SecretError,
    SecretNotDeclaredError,
    SecretRequirement,
)
from agentos.secrets.sources import Fallback

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
ID = "demo.key"
OTHER = "demo.other"
CATALOG = {
    ID: {"envVar": "AGENTOS_DEMO_KEY", "aliases": ["AGENTOS_DEMO_ALIAS"]},
    OTHER: "AGENTOS_DEMO_OTHER",
}


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in ("AGENTOS_DEMO_KEY", "AGENTOS_DEMO_ALIAS", "AGENTOS_DEMO_OTHER"):
        monkeypatch.delenv(name, raising=False)


class Reader:
    """A pack that needs secrets and keeps its contexts, so that a test can read what the pack could."""

    def __init__(self, *ids, name="reader", optional=False):
        self.name = name
        self.needs = [SecretRequirement(id, optional=optional) for id in ids or (ID,)]
        self.log = []

    def create(self, context):
        self.made_with = context
        return ExtensionPack(
            self.name,
            "1.0",
            [
                descriptor(
                    self.name, required_secrets=self.needs, on_activate=self.activated, on_deactivate=self.deactivated
                )
            ],
            on_activate=self.began,
        )

    def began(self, context):
        self.context = context

    def activated(self, context):
        self.log.append("+")
        self.lifecycle = context

    def deactivated(self, context):
        self.log.append("-")

    def entry(self, **fields):
        return PackEntry(factory=self.create, **fields)

    def state(self, manager):
        return states(manager, self.name)[self.name]


def vault_of(values, style="mapping"):
    """Return *values* the way a host can give them."""

    async def fetch(id):
        await asyncio.sleep(0)
        return values.get(id)

    class Client:
        async def __call__(self, id):
            return await fetch(id)

        async def get(self, prefix, id):
            return await fetch(id)

    return {
        "mapping": values,
        "sync": values.get,
        "async": fetch,
        "async object": Client(),
        "async partial": functools.partial(Client().get, "prefix"),
        "lambda that returns a coroutine": lambda id: fetch(id),
        "lambda that returns a future": lambda id: asyncio.ensure_future(fetch(id)),
    }[style]


VAULTS = [
    "sync",
    "async",
    "async object",
    "async partial",
    "lambda that returns a coroutine",
    "lambda that returns a future",
]
STYLES = ["mapping", *VAULTS]


# -- the order of the sources --------------------------------------------------------------------------------------

SOURCES = ["run time", "host", "own", "environment", "alias", ".env", ".env alias"]


async def read_with(values, folder, style="mapping", wrap=lambda source: source):
    """Return what a pack reads when each source named in *values* holds that value."""
    env = folder / ".env"
    names = {".env": "AGENTOS_DEMO_KEY", ".env alias": "AGENTOS_DEMO_ALIAS"}
    env.write_text("".join(f"{name}='{values[source]}'\n" for source, name in names.items() if source in values))
    exported = {
        name: values[source]
        for source, name in {"environment": "AGENTOS_DEMO_KEY", "alias": "AGENTOS_DEMO_ALIAS"}.items()
        if source in values
    }
    reader = Reader(optional=True)
    own = {"secrets": {ID: values["own"]}} if "own" in values else {}
    host = wrap(vault_of({ID: values["host"]} if "host" in values else {}, style))
    with mock.patch.dict(os.environ, exported):
        async with ExtensionManager(secrets=host, catalog=CATALOG, dotenv=env) as manager:
            await manager.load(reader.entry(options=own))
            if "run time" in values:
                await manager.set_secret(ID, values["run time"])
            return reader.context.secret(ID)


@pytest.mark.parametrize("style", ["mapping", "sync", "async"])
@pytest.mark.parametrize("strongest", range(len(SOURCES)))
async def test_a_source_wins_over_every_source_after_it(tmp_path, strongest, style):
    values = {source: f"value of {source}" for source in SOURCES[strongest:]}

    assert await read_with(values, tmp_path, style) == f"value of {SOURCES[strongest]}"


@pytest.mark.parametrize("style", VAULTS)
@pytest.mark.parametrize("nearer", ["own", "environment", ".env"])
async def test_a_fallback_counts_after_every_other_source(tmp_path, nearer, style):
    values = {"host": "value of the fallback", nearer: "value that is nearer"}

    assert await read_with(values, tmp_path, style, wrap=Fallback) == "value that is nearer"
    assert await read_with({"host": "kept"}, tmp_path, style, wrap=Fallback) == "kept"


async def test_a_fallback_is_not_asked_for_what_everybody_sees_elsewhere(monkeypatch):
    asked = []
    reader = Reader()
    monkeypatch.setenv("AGENTOS_DEMO_KEY", "exported")
    async with ExtensionManager(secrets=Fallback(asked.append), catalog=CATALOG) as manager:
        await manager.load(reader.entry())

        assert reader.context.secret(ID) == "exported"
    assert asked == []


async def test_without_any_source_a_secret_is_missing(tmp_path):
    assert await read_with({}, tmp_path) is None


@given(
    values=st.dictionaries(
        st.sampled_from(SOURCES), st.sampled_from(["", "  ", "changeme", "<your key>", "real"]), max_size=len(SOURCES)
    ),
    style=st.sampled_from(["mapping", "sync", "async"]),
)
def test_the_first_real_value_counts_and_blanks_and_placeholders_fall_through(tmp_path_factory, values, style):
    values = {source: f"real {source}" if value == "real" else value for source, value in values.items()}
    real = [values[source] for source in SOURCES if values.get(source, "").startswith("real")]

    found = asyncio.run(read_with(values, tmp_path_factory.getbasetemp(), style))

    assert found == (real[0] if real else None)


@pytest.mark.parametrize("style", STYLES)
async def test_a_hosts_value_can_come_from_a_mapping_or_any_callable(style):
    reader = Reader()
    async with ExtensionManager(secrets=vault_of({ID: "from the host"}, style)) as manager:
        await manager.load(reader.entry())

        assert reader.state(manager) == "active"
        assert reader.context.secret(ID) == "from the host"


async def test_the_facade_hands_the_hosts_secrets_on():
    reader = Reader()
    manifest = {"packs": [{"factory": reader.create}]}
    async with AgentOS(extension_manifest=manifest, extension_secrets={ID: "from the host"}):
        assert reader.context.secret(ID) == "from the host"


async def test_a_secret_that_the_catalog_does_not_know_can_come_from_the_host():
    reader = Reader("unheard.of")
    async with ExtensionManager(secrets={"unheard.of": "from the host"}) as manager:
        await manager.load(reader.entry())

        assert reader.context.secret("unheard.of") == "from the host"


def test_a_hosts_value_that_is_no_text_is_refused_without_quoting_it():
    with pytest.raises(SecretError, match="must be a string, got int") as caught:
        ExtensionManager(secrets={ID: 123456})

    assert "123456" not in str(caught.value)


async def test_a_run_time_value_that_is_no_text_is_refused(manager):
    with pytest.raises(SecretError, match="must be a string, got bytes"):
        await manager.set_secret(ID, b"value")


async def test_a_hosts_mapping_may_say_that_it_has_no_value(monkeypatch):
    monkeypatch.setenv("AGENTOS_DEMO_KEY", "from the environment")
    reader = Reader()
    async with ExtensionManager(secrets={ID: None}, catalog=CATALOG) as manager:
        await manager.load(reader.entry())

        assert reader.context.secret(ID) == "from the environment"


# -- .env ----------------------------------------------------------------------------------------------------------


async def read_dotenv(folder, text):
    file = folder / ".env"
    file.write_text(text)
    reader = Reader(optional=True)
    async with ExtensionManager(catalog=CATALOG, dotenv=file) as manager:
        await manager.load(reader.entry())
        return reader.context.secret(ID)


async def test_a_dotenv_file_never_enters_the_process_environment(tmp_path):
    before = dict(os.environ)

    assert await read_dotenv(tmp_path, "AGENTOS_DEMO_KEY=from-the-file\nUNRELATED_TO_AGENTOS=1\n") == "from-the-file"
    assert dict(os.environ) == before


@pytest.mark.parametrize("text", ["a$HOME-b", "a${HOME}b", "a${AGENTOS_DEMO_OTHER:-x}b", "p$$w"])
async def test_a_value_in_a_dotenv_file_is_taken_as_it_is_written(tmp_path, text):
    assert await read_dotenv(tmp_path, f"AGENTOS_DEMO_OTHER=other\nAGENTOS_DEMO_KEY={text}\n") == text


@pytest.mark.parametrize(
    "line",
    ["AGENTOS_DEMO_KEY=the value", "export AGENTOS_DEMO_KEY='the value'", 'AGENTOS_DEMO_KEY = "the value" # note'],
)
async def test_the_usual_spellings_of_a_dotenv_file_are_known(tmp_path, line):
    assert await read_dotenv(tmp_path, f"# a comment\n\n{line}\nAGENTOS_WITHOUT_VALUE\n") == "the value"


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()], ids=["no file", "a folder"])
async def test_a_dotenv_file_that_is_not_there_counts_as_empty(tmp_path, make):
    make(tmp_path / ".env")
    reader = Reader()
    async with ExtensionManager(catalog=CATALOG, dotenv=tmp_path / ".env") as manager:
        await manager.load(reader.entry())

        assert reader.state(manager) == "gated"


async def test_no_dotenv_file_is_read_unless_it_is_named(tmp_path, monkeypatch):
    (tmp_path / ".env").write_text("AGENTOS_DEMO_KEY=from-the-file\n")
    monkeypatch.chdir(tmp_path)
    reader = Reader()
    async with ExtensionManager(catalog=CATALOG) as manager:
        await manager.load(reader.entry())

        assert reader.state(manager) == "gated"


# -- placeholders --------------------------------------------------------------------------------------------------


async def state_with(value):
    reader = Reader()
    async with ExtensionManager(secrets={ID: value}) as manager:
        await manager.load(reader.entry())
        return reader.state(manager)


placeholders = st.builds(
    lambda words, separator, left, right: left + separator.join(words) + right,
    st.sampled_from(
        [
            ["change", "me"],
            ["your", "api", "key"],
            ["your", "token"],
            ["your", "secret", "key"],
            ["your", "api", "key", "here"],
            ["replace", "me"],
            ["placeholder"],
            ["todo"],
            ["none"],
            ["null"],
        ]
    ),
    st.sampled_from(["", "-", "_", " "]),
    st.sampled_from(["", " ", "\t"]),
    st.sampled_from(["", " ", "\n"]),
).flatmap(lambda text: st.tuples(*[st.sampled_from([letter.lower(), letter.upper()]) for letter in text]).map("".join))
brackets = st.text(max_size=20).map(lambda inside: f"<{inside}>")


@given(value=placeholders | brackets | st.text(alphabet=" \t\n\r", max_size=5))
def test_blanks_and_placeholders_count_as_missing_however_they_are_written(value):
    assert asyncio.run(state_with(value)) == "gated"


@given(value=st.text(alphabet="0123456789abcdefghjkABCDEFGHJK-_/+=.", min_size=12).filter(lambda v: v.strip("._-=/+")))
def test_what_looks_like_a_key_counts_as_a_value(value):
    assert asyncio.run(state_with(value)) == "active"


# -- who may read what ---------------------------------------------------------------------------------------------


async def test_a_pack_reads_what_its_descriptors_declare():
    reader = Reader(ID, OTHER)
    async with ExtensionManager(secrets={ID: "value one", OTHER: "value two"}) as manager:
        await manager.load(reader.entry())

        assert [reader.context.secret(id) for id in (ID, OTHER)] == ["value one", "value two"]


async def test_a_descriptors_hook_reads_what_its_pack_declares():
    reader = Reader(ID)
    async with ExtensionManager(secrets={ID: "value one"}) as manager:
        await manager.load(reader.entry())

        assert reader.lifecycle.secret(ID) == "value one"


@pytest.mark.parametrize("where", ["made_with", "context", "lifecycle"])
async def test_a_secret_that_no_descriptor_declares_can_not_be_read(where):
    reader = Reader(ID)
    async with ExtensionManager(secrets={ID: "value one", OTHER: "value two"}) as manager:
        await manager.load(reader.entry())
        with pytest.raises(SecretNotDeclaredError) as caught:
            getattr(reader, where).secret(OTHER)

    assert (caught.value.pack, caught.value.id) == ("reader", OTHER)
    assert "value two" not in str(caught.value)


async def test_a_packs_own_value_can_not_be_read_by_another_pack_that_declares_it():
    owner, other = Reader(name="owner"), Reader(name="other", optional=True)
    async with ExtensionManager() as manager:
        await manager.load(owner.entry(options={"secrets": {ID: "owners value"}}))
        await manager.load(other.entry())

        assert owner.context.secret(ID) == "owners value"
        assert other.context.secret(ID) is None


async def test_a_packs_own_value_does_not_open_the_gate_of_another_pack():
    owner, other = Reader(name="owner"), Reader(name="other")
    async with ExtensionManager() as manager:
        await manager.load(owner.entry(options={"secrets": {ID: "owners value"}}))
        await manager.load(other.entry())

        assert (owner.state(manager), other.state(manager)) == ("active", "gated")


@pytest.mark.parametrize("where", ["made_with", "context", "lifecycle"])
async def test_a_packs_own_values_are_not_among_the_options_it_sees(where):
    reader = Reader()
    async with ExtensionManager() as manager:
        await manager.load(reader.entry(options={"secrets": {ID: "own value"}, "limit": 5}))
        context = getattr(reader, where)

        assert dict(context.options) == dict(context.manifest_entry.options) == {"limit": 5}


async def test_a_descriptor_that_a_host_registers_reads_what_it_declares():
    seen = []
    one = descriptor("x", required_secrets=[ID], on_activate=lambda context: seen.append(context.secret(ID)))
    async with ExtensionManager(secrets={ID: "value one"}) as manager:
        await manager.registry("tool").register(one)

    assert seen == ["value one"]


# -- secrets in a factory ------------------------------------------------------------------------------------------


def reads_in_factory(*ids, declares):
    seen = []

    def create(context):
        seen.extend(context.secret(id) for id in ids)
        return pack("p", descriptor("x", required_secrets=declares))

    return PackEntry(factory=create), seen


async def test_a_factory_reads_what_its_pack_will_declare():
    entry, seen = reads_in_factory(ID, declares=[ID])
    async with ExtensionManager(secrets={ID: "value one"}) as manager:
        outcome = await manager.load(entry)

    assert (outcome.status, seen) == ("loaded", ["value one"])


async def test_a_factory_that_reads_what_its_pack_does_not_declare_fails_the_load_and_names_it(manager):
    entry, _ = reads_in_factory(ID, OTHER, declares=[ID])
    outcome = await manager.load(entry)

    assert outcome.status == "failed"
    assert repr(OTHER) in outcome.reason
    assert repr(ID) not in outcome.reason
    assert manager.packs() == []


@pytest.mark.parametrize("style", VAULTS)
async def test_a_vaults_value_can_be_read_in_a_factory(style):
    entry, seen = reads_in_factory(ID, declares=[ID])
    async with ExtensionManager(secrets=vault_of({ID: "value one"}, style)) as manager:
        outcome = await manager.load(entry)

        assert outcome.status == "loaded"
        assert seen[-1] == "value one"
        assert states(manager, "x") == {"p": "active"}


@pytest.mark.parametrize("style", VAULTS)
async def test_a_factory_that_can_not_do_without_a_vaults_value_gets_it(style):
    def create(context):
        return pack("p", descriptor(context.secret(ID).upper(), required_secrets=[ID]))

    async with ExtensionManager(secrets=vault_of({ID: "value"}, style)) as manager:
        outcome = await manager.load(PackEntry(factory=create))

        assert outcome.status == "loaded", outcome.reason
        assert states(manager, "VALUE") == {"p": "active"}


@pytest.mark.parametrize("style", VAULTS)
async def test_a_vault_is_asked_only_for_what_is_declared(style):
    asked = []

    class Values(dict):
        def get(self, id):
            asked.append(id)
            return "value one"

    async with ExtensionManager(secrets=vault_of(Values(), style)) as manager:
        await manager.load(Reader(ID).entry())

    assert set(asked) == {ID}


async def test_a_vault_is_not_asked_again_when_a_pack_reads():
    asked = []

    async def vault(id):
        asked.append(id)
        return "value one"

    reader = Reader()
    async with ExtensionManager(secrets=vault) as manager:
        await manager.load(reader.entry())
        for _ in range(3):
            reader.context.secret(ID)

    assert asked == [ID]


# -- secrets that come and go --------------------------------------------------------------------------------------


async def test_a_missing_secret_gates_and_the_reason_says_how_to_set_it():
    reader = Reader()
    async with ExtensionManager(catalog=CATALOG) as manager:
        await manager.load(reader.entry())
        entry = manager.explain("tool", "reader").entries[0]

    assert (entry.state, reader.log) == ("gated", [])
    assert ID in entry.reason
    assert "AGENTOS_DEMO_KEY" in entry.reason


async def test_only_the_missing_ones_of_several_secrets_are_named():
    reader = Reader(ID, OTHER)
    async with ExtensionManager(catalog=CATALOG, secrets={ID: "value one"}) as manager:
        await manager.load(reader.entry())
        reason = manager.explain("tool", "reader").entries[0].reason

    assert OTHER in reason
    assert ID not in reason


async def test_an_optional_secret_does_not_gate(manager):
    reader = Reader(optional=True)
    await manager.load(reader.entry())

    assert reader.state(manager) == "active"
    assert reader.context.secret(ID) is None


async def test_a_secret_that_arrives_opens_the_gate_at_once(manager):
    reader = Reader()
    await manager.load(reader.entry())
    await manager.set_secret(ID, "a real value")

    assert (reader.state(manager), reader.log) == ("active", ["+"])


async def test_a_secret_that_goes_away_closes_the_gate_at_once(manager):
    reader = Reader()
    await manager.set_secret(ID, "a real value")
    await manager.load(reader.entry())
    await manager.set_secret(ID, None)

    assert (reader.state(manager), reader.log) == ("gated", ["+", "-"])


async def test_what_a_gated_entry_would_shadow_is_in_force(manager):
    await manager.load_pack(pack("base", descriptor("reader")))
    reader = Reader()
    await manager.load(reader.entry())
    assert states(manager, "reader") == {"reader": "gated", "base": "active"}
    await manager.set_secret(ID, "a real value")

    assert states(manager, "reader") == {"reader": "active", "base": "shadowed"}


async def test_a_secret_opens_the_gates_of_every_pack_that_waits_for_it(manager):
    readers = [Reader(name=name) for name in "abc"]
    for reader in readers:
        await manager.load(reader.entry())
    await manager.set_secret(ID, "a real value")

    assert [reader.state(manager) for reader in readers] == ["active"] * 3


async def test_taking_the_run_time_value_away_lets_the_sources_below_count_again(monkeypatch):
    monkeypatch.setenv("AGENTOS_DEMO_KEY", "from the environment")
    reader = Reader()
    async with ExtensionManager(catalog=CATALOG) as manager:
        await manager.load(reader.entry())
        await manager.set_secret(ID, "set at run time")
        await manager.set_secret(ID, None)

        assert reader.context.secret(ID) == "from the environment"
        assert reader.log == ["+"]


async def test_a_placeholder_set_at_run_time_counts_as_missing(manager):
    reader = Reader()
    await manager.load(reader.entry())
    await manager.set_secret(ID, "changeme")

    assert reader.state(manager) == "gated"


async def test_a_changed_value_is_read_at_once_and_re_activates_nothing(manager):
    reader = Reader()
    await manager.set_secret(ID, "the old value")
    await manager.load(reader.entry())
    await manager.set_secret(ID, "the new value")

    assert reader.context.secret(ID) == reader.lifecycle.secret(ID) == "the new value"
    assert reader.log == ["+"]


async def test_a_changed_value_is_told_without_the_value(manager):
    recorder = Recorder()
    await manager.load(Reader().entry())
    await manager.set_secret(ID, "the old value")
    manager.on(recorder)
    await manager.set_secret(ID, "the new value")

    assert [(event.type, event.id) for event in recorder.events] == [("secret:changed", ID)]
    assert "the new value" not in repr(recorder.events)


async def test_a_run_time_value_counts_for_a_pack_that_is_loaded_later(manager):
    reader = Reader()
    await manager.set_secret(ID, "a real value")
    await manager.load(reader.entry())

    assert reader.state(manager) == "active"


# -- asking again --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", VAULTS)
async def test_refreshing_asks_the_vault_again_and_opens_gates(style):
    values = {}
    reader = Reader()
    async with ExtensionManager(secrets=vault_of(values, style)) as manager:
        await manager.load(reader.entry())
        values[ID] = "a real value"
        changed = await manager.refresh_secrets()

        assert (reader.state(manager), changed) == ("active", [ID])


@pytest.mark.parametrize("style", VAULTS)
async def test_refreshing_closes_the_gate_of_what_the_vault_has_no_more(style):
    values = {ID: "a real value"}
    reader = Reader()
    async with ExtensionManager(secrets=vault_of(values, style)) as manager:
        await manager.load(reader.entry())
        values.clear()
        changed = await manager.refresh_secrets()

        assert (reader.state(manager), changed) == ("gated", [ID])


async def test_refreshing_reads_the_dotenv_file_again(tmp_path):
    file = tmp_path / ".env"
    reader = Reader()
    async with ExtensionManager(catalog=CATALOG, dotenv=file) as manager:
        await manager.load(reader.entry())
        file.write_text("AGENTOS_DEMO_KEY=from-the-file\n")
        changed = await manager.refresh_secrets()

        assert (reader.state(manager), changed) == ("active", [ID])


async def test_refreshing_sees_an_environment_variable_that_came(monkeypatch):
    reader = Reader()
    async with ExtensionManager(catalog=CATALOG) as manager:
        await manager.load(reader.entry())
        monkeypatch.setenv("AGENTOS_DEMO_KEY", "from the environment")
        await manager.refresh_secrets()

        assert reader.state(manager) == "active"


async def test_refreshing_tells_of_an_environment_variable_that_came(monkeypatch):
    recorder = Recorder()
    async with ExtensionManager(catalog=CATALOG) as manager:
        await manager.load(Reader().entry())
        manager.on(recorder)
        monkeypatch.setenv("AGENTOS_DEMO_KEY", "from the environment")
        changed = await manager.refresh_secrets()

        assert changed == [ID]
        assert [event.id for event in recorder.of("secret:changed")] == [ID]


async def test_refreshing_tells_what_changed_and_nothing_else():
    values = {ID: "value one", OTHER: "value two"}
    recorder = Recorder()
    async with ExtensionManager(secrets=values.get) as manager:
        await manager.load(Reader(ID, OTHER).entry())
        manager.on(recorder)
        values[OTHER] = "value three"
        changed = await manager.refresh_secrets()

        assert changed == [OTHER]
        assert [(event.type, event.id) for event in recorder.events] == [("secret:changed", OTHER)]


async def test_refreshing_when_nothing_changed_does_nothing():
    recorder = Recorder()
    reader = Reader()
    async with ExtensionManager(secrets={ID: "value one"}.get) as manager:
        await manager.load(reader.entry())
        manager.on(recorder)

        assert await manager.refresh_secrets() == []
        assert (recorder.events, reader.log) == ([], ["+"])


async def test_refreshing_re_activates_nothing_whose_value_changed():
    values = {ID: "value one"}
    reader = Reader()
    async with ExtensionManager(secrets=values.get) as manager:
        await manager.load(reader.entry())
        values[ID] = "value two"
        await manager.refresh_secrets()

        assert (reader.context.secret(ID), reader.log) == ("value two", ["+"])


# -- a vault that fails --------------------------------------------------------------------------------------------


def failing_vault(style, says="no connection"):
    """Return a vault that has the other secret and raises for the first."""

    def answer(id):
        if id == ID:
            raise ConnectionError(says)
        return "the other value"

    async def later(id):
        await asyncio.sleep(0)
        return answer(id)

    return {"sync": answer, "async": later, "lambda that returns a coroutine": lambda id: later(id)}[style]


FAILING = ["sync", "async", "lambda that returns a coroutine"]


@pytest.mark.parametrize("style", FAILING)
async def test_a_vault_that_raises_gates_what_it_was_asked_for_and_nothing_else(style):
    one, two = Reader(ID, name="one"), Reader(OTHER, name="two")
    async with ExtensionManager(secrets=failing_vault(style)) as manager:
        outcomes = [await manager.load(reader.entry()) for reader in (one, two)]

        assert [outcome.status for outcome in outcomes] == ["loaded", "loaded"]
        assert (one.state(manager), two.state(manager)) == ("gated", "active")


@pytest.mark.parametrize("style", FAILING)
async def test_a_vault_that_raises_lets_the_sources_below_count(style, monkeypatch):
    monkeypatch.setenv("AGENTOS_DEMO_KEY", "from the environment")
    reader = Reader()
    async with ExtensionManager(secrets=failing_vault(style), catalog=CATALOG) as manager:
        await manager.load(reader.entry())

        assert reader.context.secret(ID) == "from the environment"


@pytest.mark.parametrize("style", FAILING)
async def test_what_a_vault_raised_is_logged_without_any_known_value(style, caplog):
    reader = Reader(OTHER, ID)
    async with ExtensionManager(secrets=failing_vault(style, says="denied for the other value")) as manager:
        await manager.set_secret(OTHER, "the other value")
        await manager.load(Reader(OTHER, name="first").entry())
        await manager.load(reader.entry())

    assert "ConnectionError: denied for ***" in caplog.text
    assert "the other value" not in caplog.text


async def test_an_outage_of_a_vault_does_not_take_away_what_is_known():
    broken = []

    def vault(id):
        if broken:
            raise ConnectionError
        return "a real value"

    reader = Reader()
    async with ExtensionManager(secrets=vault) as manager:
        await manager.load(reader.entry())
        broken.append(True)
        await manager.refresh_secrets()

        assert reader.state(manager) == "active"


# -- after the end -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["made_with", "context", "lifecycle"])
@pytest.mark.parametrize("end", ["unload", "shutdown", "reload"])
async def test_a_context_reads_nothing_after_its_pack_has_gone(end, where):
    reader = Reader()
    manager = ExtensionManager(secrets={ID: "a real value"})
    await manager.load(reader.entry())
    context = getattr(reader, where)
    await (manager.shutdown() if end == "shutdown" else getattr(manager, end)("reader"))

    with pytest.raises(SecretNotDeclaredError, match="not loaded any more"):
        context.secret(ID)
    await manager.shutdown()


async def test_a_context_reads_nothing_after_its_pack_failed_to_load():
    kept = []

    def create(context):
        kept.append(context)
        return pack("p", descriptor("x", required_secrets=[ID], on_activate=lambda context: 1 / 0))

    async with ExtensionManager(secrets={ID: "a real value"}) as manager:
        await manager.load(PackEntry(factory=create))
        with pytest.raises(SecretNotDeclaredError):
            kept[0].secret(ID)


async def test_a_disabled_pack_still_reads_its_secrets():
    reader = Reader()
    async with ExtensionManager(secrets={ID: "a real value"}) as manager:
        await manager.load(reader.entry())
        await manager.disable("reader")

        assert reader.context.secret(ID) == "a real value"


# -- the catalog ---------------------------------------------------------------------------------------------------

ENTRY = {"id": "demo.key", "envVar": "AGENTOS_DEMO_KEY"}


def shipped():
    return json.loads((ROOT / "extension-secrets.json").read_text("utf-8"))


def test_the_shipped_catalog_fits_its_schema():
    import jsonschema

    jsonschema.validate(shipped(), json.loads((ROOT / "docs/schemas/secrets.schema.json").read_text("utf-8")))


def test_the_shipped_catalog_passes_the_checks_that_foreign_ones_must_pass():
    assert len(SecretCatalog.from_file(ROOT / "extension-secrets.json")) == len(shipped()["secrets"])


def test_the_shipped_catalog_is_the_one_at_the_top_level():
    assert SecretCatalog.shipped() == SecretCatalog.from_file(ROOT / "extension-secrets.json")


def test_the_shipped_catalog_has_every_id_once():
    ids = [entry["id"] for entry in shipped()["secrets"]]

    assert sorted(set(ids)) == sorted(ids)


def test_the_shipped_catalog_has_every_variable_once():
    names = [name for entry in shipped()["secrets"] for name in (entry["envVar"], *entry.get("aliases", ()))]

    assert sorted(set(names)) == sorted(names)


def test_the_shipped_catalog_holds_no_values():
    known = {"id", "label", "description", "envVar", "docsUrl", "providers", "optional", "aliases"}

    assert {key for entry in shipped()["secrets"] for key in entry} <= known


async def test_without_a_catalog_the_shipped_one_counts(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    reader = Reader("openai.apiKey")
    async with ExtensionManager() as manager:
        await manager.load(reader.entry())

        assert reader.context.secret("openai.apiKey") == "from-the-environment"


async def test_a_shipped_alias_counts(monkeypatch):
    entry = next(entry for entry in shipped()["secrets"] if entry.get("aliases"))
    monkeypatch.delenv(entry["envVar"], raising=False)
    monkeypatch.setenv(entry["aliases"][0], "from-the-alias")
    reader = Reader(entry["id"])
    async with ExtensionManager() as manager:
        await manager.load(reader.entry())

        assert reader.context.secret(entry["id"]) == "from-the-alias"


def catalogs(folder):
    files = {
        "json file": ("c.json", json.dumps({"$schema": "s", "secrets": [ENTRY]})),
        "toml file": ("c.toml", '[[secrets]]\nid = "demo.key"\nenvVar = "AGENTOS_DEMO_KEY"\n'),
        "yaml file": ("c.yaml", "secrets: [{id: demo.key, envVar: AGENTOS_DEMO_KEY}]"),
    }
    for name, text in files.values():
        (folder / name).write_text(text)
    return {kind: folder / name for kind, (name, _) in files.items()} | {
        "path as text": str(folder / "c.json"),
        "mapping as in a file": {"secrets": [ENTRY]},
        "mapping of ids to variables": {"demo.key": "AGENTOS_DEMO_KEY"},
        "mapping of ids to entries": {"demo.key": {"envVar": "AGENTOS_DEMO_KEY"}},
        "SecretCatalog": SecretCatalog.of([SecretDefinition("demo.key", "AGENTOS_DEMO_KEY")]),
    }


@pytest.mark.parametrize(
    "kind",
    [
        *("json file", "toml file", "yaml file", "path as text", "mapping as in a file"),
        *("mapping of ids to variables", "mapping of ids to entries", "SecretCatalog"),
    ],
)
async def test_a_catalog_can_be_given_in_many_ways(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("AGENTOS_DEMO_KEY", "from the environment")
    reader = Reader()
    async with ExtensionManager(catalog=catalogs(tmp_path)[kind]) as manager:
        await manager.load(reader.entry())

        assert reader.context.secret(ID) == "from the environment"


async def test_a_catalog_that_is_given_is_added_to_the_shipped_one(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    reader = Reader("openai.apiKey")
    async with ExtensionManager(catalog=CATALOG) as manager:
        await manager.load(reader.entry())

        assert reader.context.secret("openai.apiKey") == "from-the-environment"


async def test_an_id_of_a_catalog_that_is_given_replaces_the_shipped_one(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of the shipped variable")
    monkeypatch.setenv("AGENTOS_DEMO_KEY", "of the given one")
    reader = Reader("openai.apiKey")
    async with ExtensionManager(catalog={"openai.apiKey": "AGENTOS_DEMO_KEY"}) as manager:
        await manager.load(reader.entry())

        assert reader.context.secret("openai.apiKey") == "of the given one"


async def test_a_variable_of_the_shipped_catalog_can_be_given_to_another_id(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    reader = Reader("demo.key")
    async with ExtensionManager(catalog={"demo.key": "OPENAI_API_KEY"}) as manager:
        await manager.load(reader.entry())

        assert reader.context.secret("demo.key") == "from-the-environment"


def problems_of_catalog(catalog):
    with pytest.raises(ManifestError) as caught:
        ExtensionManager(catalog=catalog)
    return [(problem.path, problem.message) for problem in caught.value.problems]


def test_a_bad_catalog_is_told_every_mistake_at_once():
    found = problems_of_catalog(
        {
            "secrets": [
                {"id": "a", "envVar": "A B"},
                {"id": "b b", "envVar": "B"},
                {"id": "c"},
                {"id": "d", "env_var": "D"},
                {"id": "e", "envVar": "E", "aliases": "F"},
                5,
            ]
        }
    )

    assert {path for path, _ in found} == {
        "secrets[0].envVar",
        "secrets[1].id",
        "secrets[2]",
        "secrets[3]",
        "secrets[3].env_var",
        "secrets[4].aliases",
        "secrets[5]",
    }
    assert "did you mean 'envVar'?" in dict(found)["secrets[3].env_var"]


def test_a_bad_key_at_the_top_of_a_catalog_is_told_together_with_the_rest():
    found = problems_of_catalog({"secrets": [{"id": "a", "envVar": "A B"}], "secret": []})

    assert {path for path, _ in found} == {"secret", "secrets[0].envVar"}


def test_ids_and_variables_that_stand_twice_are_told_together():
    found = problems_of_catalog(
        {
            "secrets": [
                {"id": "a", "envVar": "A"},
                {"id": "a", "envVar": "B"},
                {"id": "c", "envVar": "A"},
                {"id": "d", "envVar": "D", "aliases": ["B"]},
            ]
        }
    )

    assert [path for path, _ in found] == ["a", "c", "d"]


@pytest.mark.parametrize("entry", [5, None, True, ["A"]])
def test_an_entry_of_a_catalog_that_is_neither_variable_nor_mapping_is_a_manifest_error(entry):
    assert problems_of_catalog({"demo.key": entry})


@pytest.mark.parametrize("catalog", [5, True])
def test_a_catalog_that_is_no_mapping_is_a_manifest_error(catalog):
    assert problems_of_catalog(catalog)


def test_a_bad_catalog_file_is_named(tmp_path):
    file = tmp_path / "c.json"
    file.write_text('{"secrets": [], "extra": 1}')
    with pytest.raises(ManifestError) as caught:
        ExtensionManager(catalog=file)

    assert caught.value.origin == str(file)


def test_a_missing_catalog_file_is_a_manifest_error(tmp_path):
    with pytest.raises(ManifestError, match="No such file"):
        ExtensionManager(catalog=tmp_path / "c.json")


# -- the wheel -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True, capture_output=True, cwd=folder)
    return next(folder.glob("agentos_host-*.whl"))


def test_the_wheel_has_the_catalog_and_the_schemas_as_they_are_here(wheel):
    with zipfile.ZipFile(wheel) as archive:
        inside = {name: archive.read(name) for name in archive.namelist() if name.endswith(".json")}

    expected = {"agentos/extension-secrets.json": (ROOT / "extension-secrets.json").read_bytes()}
    for file in (ROOT / "docs" / "schemas").glob("*.json"):
        expected[f"agentos/schemas/{file.name}"] = file.read_bytes()
    assert inside == expected


def test_the_wheel_has_every_module_and_the_marker_for_type_checkers(wheel):
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())

    modules = {file.relative_to(ROOT).as_posix() for file in (ROOT / "agentos").rglob("*.py")}
    assert modules | {"agentos/py.typed"} <= inside


@pytest.mark.parametrize("form", ["unpacked", "zipped"])
def test_an_installed_agentos_finds_its_own_catalog_and_schemas(wheel, tmp_path, form):
    script = """
        import asyncio, sys
        import agentos
        from agentos import Descriptor, ExtensionManager, ExtensionManifest, ExtensionPack, ManifestError

        assert agentos.__file__.startswith(sys.argv[1]), agentos.__file__
        try:
            ExtensionManifest.from_dict({"pakcs": []})
        except ManifestError as error:
            print(error)

        async def main():
            one = Descriptor("tool", "x", None, required_secrets=["openai.apiKey"])
            async with ExtensionManager() as manager:
                await manager.load_pack(ExtensionPack("p", descriptors=[one]))
                print(manager.explain("tool", "x"))

        asyncio.run(main())
    """
    home = wheel
    if form == "unpacked":
        home = tmp_path / "unpacked"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(home)
    environment = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(home)],
        env=environment | {"PYTHONPATH": str(home)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stderr == ""
    assert "did you mean 'packs'?" in done.stdout
    assert "OPENAI_API_KEY" in done.stdout
