"""Secrets that a pack describes itself: found, told of and checked without an entry in any catalog."""

import re

import attrs
import pytest

import agentos.loading.curated as curated_module
from agentos import (
    PUBLIC,
    AgentOS,
    Descriptor,
    DescriptorError,
    ExtensionManager,
    ExtensionPack,
    PackEntry,
    SecretRequirement,
    create_curated_manifest,
    tool,
)
from agentos.loading.curated_packs import CuratedPack
from agentos.testing import assert_pack_ok
from agentos.tools.lint.findings import lint_pack

GEO = SecretRequirement("geo.apiKey", env="GEO_API_KEY", url="https://geo.example/keys", description="Finds places.")


@tool(effect="read", required_access=PUBLIC)
def locate(place: str) -> str:
    """Find where on earth a place with this name is."""
    return place


def geo_pack(name="geo", need=GEO, id="locate"):
    return ExtensionPack(name, "1.0", [Descriptor("mood", id, 1, required_secrets=[need])])


def state(manager, id="locate"):
    return manager.explain("mood", id).entries[0].state


@pytest.fixture(autouse=True)
def without_the_variable(monkeypatch):
    monkeypatch.delenv("GEO_API_KEY", raising=False)


# -- where it is found ---------------------------------------------------------------------------------------------


async def test_it_is_found_in_its_variable(monkeypatch):
    monkeypatch.setenv("GEO_API_KEY", "a-real-value")
    async with ExtensionManager() as manager:
        await manager.load_pack(geo_pack())

        assert state(manager) == "active"


async def test_it_is_found_in_a_dotenv_file(tmp_path):
    (tmp_path / ".env").write_text("GEO_API_KEY=a-real-value\n")
    async with ExtensionManager(dotenv=tmp_path / ".env") as manager:
        await manager.load_pack(geo_pack())

        assert state(manager) == "active"


async def test_a_change_of_the_dotenv_file_counts(tmp_path):
    async with ExtensionManager(dotenv=tmp_path / ".env") as manager:
        await manager.load_pack(geo_pack())
        (tmp_path / ".env").write_text("GEO_API_KEY=a-real-value\n")

        assert await manager.refresh_secrets() == ["geo.apiKey"]
        assert state(manager) == "active"


async def test_why_names_its_variable():
    async with ExtensionManager() as manager:
        await manager.load_pack(geo_pack())

        said = manager.explain("mood", "locate").entries[0].reason

    assert said == "missing secret 'geo.apiKey' (set GEO_API_KEY in the environment or .env)"


async def test_a_factory_reads_it_from_the_variable_that_only_the_pack_names(monkeypatch):
    monkeypatch.setenv("GEO_API_KEY", "a-real-value")
    seen = []

    def create_extension_pack(context):
        seen.append(context.secret("geo.apiKey"))
        return geo_pack()

    async with ExtensionManager() as manager:
        await manager.load(PackEntry(factory=create_extension_pack))

    assert seen[-1] == "a-real-value"


async def test_what_a_running_pack_registers_is_found_too(monkeypatch):
    monkeypatch.setenv("GEO_API_KEY", "a-real-value")
    async with ExtensionManager() as manager:
        await manager.register(Descriptor("mood", "locate", 1, required_secrets=[GEO]))

        assert state(manager) == "active"


async def test_the_catalogs_variable_counts_first_and_the_packs_own_is_added(monkeypatch):
    own = SecretRequirement("openai.apiKey", env="GEO_API_KEY")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("GEO_API_KEY", "value of the pack's")
    read = []
    pack = ExtensionPack("geo", "1", [Descriptor("mood", "locate", 1, required_secrets=[own])])
    pack = attrs.evolve(pack, on_activate=lambda context: read.append(context.secret))
    async with ExtensionManager() as manager:
        await manager.load_pack(pack)
        first = read[0]("openai.apiKey")
        monkeypatch.setenv("OPENAI_API_KEY", "value of the catalog's")

        assert (first, read[0]("openai.apiKey")) == ("value of the pack's", "value of the catalog's")


async def test_what_one_pack_says_changes_nothing_for_another(monkeypatch):
    monkeypatch.setenv("GEO_API_KEY", "a-real-value")
    async with ExtensionManager() as manager:
        await manager.load_pack(geo_pack("other", SecretRequirement("geo.apiKey"), "other"))
        await manager.load_pack(geo_pack())

        assert (state(manager, "other"), state(manager)) == ("gated", "active")


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"env": "GEO-API-KEY"}, "env"),
        ({"env": ""}, "env"),
        ({"env": "A\n"}, "env"),
        ({"env": 5}, "env"),
        ({"url": "geo.example"}, "url"),
    ],
)
def test_a_wrong_description_is_refused(wrong, where):
    with pytest.raises(DescriptorError, match=re.escape(f"SecretRequirement('geo.apiKey').{where}: expected")):
        SecretRequirement("geo.apiKey", **wrong)


# -- who is told ---------------------------------------------------------------------------------------------------


async def test_two_packs_that_take_one_variable_for_two_secrets_are_told(caplog):
    async with ExtensionManager() as manager:
        first = await manager.load_pack(geo_pack())
        second = await manager.load_pack(geo_pack("maps", attrs.evolve(GEO, id="maps.key"), "draw"))

    (told,) = second.warnings
    assert first.warnings == ()
    assert told.startswith("it takes the variable GEO_API_KEY for 'maps.key', and the pack 'geo' for 'geo.apiKey'")
    assert f"pack 'maps': {told}" in [record.getMessage() for record in caplog.records]
    assert told in str(second)


async def test_two_packs_that_take_one_variable_for_one_secret_are_not_told():
    async with ExtensionManager() as manager:
        await manager.load_pack(geo_pack())

        assert (await manager.load_pack(geo_pack("maps", id="draw"))).warnings == ()


async def test_a_pack_that_takes_a_variable_of_the_catalog_for_its_own_is_told():
    async with ExtensionManager() as manager:
        outcome = await manager.load_pack(geo_pack(need=attrs.evolve(GEO, env="OPENAI_API_KEY")))

    assert "and the catalog for 'openai.apiKey'" in outcome.warnings[0]


async def test_a_pack_that_is_gone_claims_nothing():
    async with ExtensionManager() as manager:
        await manager.load_pack(geo_pack())
        await manager.unload("geo")

        assert (await manager.load_pack(geo_pack("maps", attrs.evolve(GEO, id="maps.key"), "draw"))).warnings == ()


# -- lint, conformance, the curated report -------------------------------------------------------------------------


def secret_findings(need):
    pack = ExtensionPack("geo", "1.0", [Descriptor("tool", "locate", locate, required_secrets=[need])])
    return [finding.message for finding in lint_pack(pack) if finding.rule == "secrets"]


def test_lint_asks_for_a_variable_that_nothing_names():
    (message,) = secret_findings(SecretRequirement("geo.apiKey"))

    assert message.startswith("nothing says in which variable the tool's secret 'geo.apiKey' is found")


def test_lint_is_content_with_a_described_secret():
    assert secret_findings(GEO) == []


def test_lint_tells_of_a_variable_of_the_catalog():
    (message,) = secret_findings(attrs.evolve(GEO, env="OPENAI_API_KEY"))

    assert message == "the variable OPENAI_API_KEY of the secret 'geo.apiKey' is that of 'openai.apiKey' as well"


async def test_strict_conformance_is_content_with_a_described_secret(monkeypatch):
    monkeypatch.setenv("GEO_API_KEY", "a-value-of-this-machine")
    pack = ExtensionPack("geo", "1.0", [Descriptor("tool", "locate", locate, required_secrets=[GEO])])

    found = await assert_pack_ok(pack, strict=True, only=["lints", "gate", "secrets"])

    assert [one for one in found if one.rule == "secrets"] == []


def test_the_curated_report_knows_a_described_secret(monkeypatch):
    packs = (CuratedPack("geo", "places", "places", secrets=(GEO,)),)
    monkeypatch.setattr(curated_module, "CURATED", packs)

    (secret,) = create_curated_manifest().report["geo"].secrets

    assert str(secret) == "geo.apiKey: missing; set GEO_API_KEY (see https://geo.example/keys)"


async def test_a_host_can_take_a_curated_result_as_it_is(monkeypatch):
    monkeypatch.setattr(curated_module, "CURATED", ())
    curated = create_curated_manifest(overrides={"tools": {"locate": {"priority": 5}}})

    async with AgentOS(extension_manifest=curated) as host:
        assert host.extensions.manifest is curated.manifest
