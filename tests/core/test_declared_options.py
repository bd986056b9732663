"""Options that a pack declares: unknown and wrong ones fail its load, with path and nearest name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import attrs
import jsonschema
import pytest

from agentos import (
    PUBLIC,
    AgentOS,
    Descriptor,
    DescriptorError,
    ExtensionManager,
    ExtensionManifest,
    ExtensionPack,
    OptionsError,
    PackEntry,
    ToolCall,
    ToolContext,
    read_options,
    tool,
)
from agentos.loading.curated_packs import CURATED
from agentos.model.declared_options import as_pack_options


@attrs.frozen(kw_only=True)
class Place:
    place_name: str
    height: int = 0


@attrs.frozen(kw_only=True)
class GeoOptions:
    """What a manifest may say.

    Attributes:
        limit: How many places are found at most.
    """

    limit: int = attrs.field(default=5, validator=[attrs.validators.ge(1), attrs.validators.le(50)])
    units: Literal["metric", "imperial"] = "metric"
    cache_folder: Path = Path("cache")
    places: tuple[Place, ...] = ()
    hint: Annotated[str | None, "What to look for."] = None
    clock: Callable[[], float] | None = None


SCHEMA = {
    "type": "object",
    "properties": {
        "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 5},
        "units": {"enum": ["metric", "imperial"], "default": "metric"},
        "cacheFolder": {"type": "string", "default": "cache"},
    },
}
BOTH = pytest.mark.parametrize("declared", [GeoOptions, SCHEMA], ids=["attrs", "schema"])


@tool(effect="read", required_access=PUBLIC)
async def locate(*, context: ToolContext) -> dict[str, object]:
    """Tell which options the tool sees."""
    return {name: context.options[name] for name in ("limit", "units")}


def geo_pack(declared, seen=None):
    hooks = {} if seen is None else {"on_activate": lambda context: seen.append(context.options)}
    return ExtensionPack("geo", "1.0", [Descriptor("tool", "locate", locate)], options=declared, **hooks)


async def load(declared, options, seen=None, **manager):
    async with ExtensionManager(**manager) as made:
        return await made.load(PackEntry(factory=lambda: geo_pack(declared, seen), options=options))


# -- the pack's own options ----------------------------------------------------------------------------------------


@BOTH
async def test_good_options_load(declared):
    outcome = await load(declared, {"limit": 7, "cacheFolder": "x"})

    assert (outcome.status, outcome.reason) == ("loaded", None)


@BOTH
async def test_an_unknown_option_fails_the_load_with_its_path_and_the_nearest_name(declared):
    outcome = await load(declared, {"limt": 7})

    assert outcome.status == "failed"
    assert "options.limt" in outcome.reason
    assert "did you mean" in outcome.reason
    assert "limit" in outcome.reason


@BOTH
@pytest.mark.parametrize("options", [{"limit": "many"}, {"limit": 500}, {"units": "metrik"}, {"cacheFolder": 5}])
async def test_a_wrong_option_fails_the_load_with_its_path(declared, options):
    outcome = await load(declared, options)

    assert (outcome.status, f"options.{next(iter(options))}" in outcome.reason) == ("failed", True)


async def test_every_mistake_is_told_at_once():
    outcome = await load(GeoOptions, {"limt": 1, "units": "x", "places": [{"placeName": "a", "heigth": 1}]})

    assert {"options.limt", "options.units", "options.places[0].heigth"} == {
        word.strip(":") for word in outcome.reason.split() if word.startswith("options.")
    }


@BOTH
async def test_a_value_is_never_quoted(declared):
    outcome = await load(declared, {"limit": "hunter2-the-value"})

    assert "hunter2" not in outcome.reason


async def test_only_the_pack_whose_options_are_wrong_fails():
    wrong = PackEntry(factory=lambda: geo_pack(GeoOptions), options={"limt": 1})
    good = PackEntry(factory=lambda: ExtensionPack("good"))
    async with ExtensionManager({"packs": []}) as manager:
        outcomes = [await manager.load(wrong), await manager.load(good)]
        packs = [record.name for record in manager.packs()]

    assert ([one.status for one in outcomes], packs) == (["failed", "loaded"], ["good"])


async def test_a_pack_that_declares_no_options_takes_any():
    assert (await load(None, {"anything": 1})).status == "loaded"


async def test_secrets_are_not_among_the_options_that_a_pack_has_to_declare():
    assert (await load(GeoOptions, {"secrets": {"geo.apiKey": "x"}})).status == "loaded"


async def test_an_option_that_is_needed_is_asked_for():
    outcome = await load({"properties": {"root": {"type": "string"}}, "required": ["root"]}, {})

    assert (outcome.status, "root" in outcome.reason) == ("failed", True)


async def test_what_a_factory_reads_itself_is_told_the_same_way():
    def create_extension_pack(context):
        read_options(GeoOptions, context.options)
        return geo_pack(GeoOptions)

    async with ExtensionManager() as manager:
        outcome = await manager.load(PackEntry(factory=create_extension_pack, identifier="geo", options={"limt": 1}))

    assert outcome.reason == "pack 'geo' options.limt: is not known; did you mean `limit`?" or outcome.reason.endswith(
        "options.limt: is not known; did you mean `limit`?"
    )


@pytest.mark.parametrize("wrong", [5, "limit", int, GeoOptions()])
def test_what_declares_no_options_is_refused(wrong):
    with pytest.raises(DescriptorError, match="expected an attrs class or a JSON Schema"):
        ExtensionPack("geo", options=wrong)


async def test_a_schema_that_is_none_fails_the_load():
    outcome = await load({"properties": {"a": {"type": "nonsense"}}}, {})

    assert (outcome.status, "ExtensionPack.options" in outcome.reason) == ("failed", True)


# -- what the pack sees --------------------------------------------------------------------------------------------


async def test_a_pack_sees_every_option_by_the_name_of_its_field():
    seen = []
    await load(GeoOptions, {"cacheFolder": "x", "limit": 7}, seen)

    assert dict(seen[0]) == {
        "limit": 7,
        "units": "metric",
        "cache_folder": "x",
        "places": [],
        "hint": None,
        "clock": None,
    }
    assert read_options(GeoOptions, seen[0]) == GeoOptions(limit=7, cache_folder=Path("x"))


async def test_a_pack_sees_every_option_of_its_schema():
    seen = []
    await load(SCHEMA, {"limit": 7}, seen)

    assert dict(seen[0]) == {"limit": 7, "units": "metric", "cacheFolder": "cache"}


async def test_what_only_python_can_say_reaches_the_pack():
    seen = []
    await load(GeoOptions, {"clock": len}, seen)

    assert seen[0]["clock"] is len


# -- overrides -----------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("key", ["locate", "geo:locate"])
async def test_a_wrong_option_of_an_override_fails_the_load_with_its_path(declared, key):
    overrides = {"tools": {key: {"options": {"limt": 3}}}}
    outcome = await load(declared, {}, manifest={"packs": [], "overrides": overrides})

    place = "overrides.tools.locate.options.limt" if key == "locate" else "overrides.tools['geo:locate'].options.limt"
    assert (outcome.status, place in outcome.reason) == ("failed", True)
    assert "limit" in outcome.reason


@BOTH
async def test_a_wrong_option_of_a_hosts_override_is_told_where_it_is(declared):
    outcome = await load(declared, {}, overrides={"tools": {"locate": {"options": {"limit": 500}}}})

    assert "the host's overrides.tools.locate.options.limit" in outcome.reason


@BOTH
async def test_a_good_option_of_an_override_reaches_its_tool_and_the_rest_is_the_packs(declared):
    async with AgentOS(extension_overrides={"tools": {"locate": {"options": {"limit": 3}}}}) as host:
        await host.extensions.load_pack(geo_pack(declared), options={"units": "imperial"})
        result = await host.tools.process_tool_call(ToolCall("locate"))

    assert result.output == {"limit": 3, "units": "imperial"}


async def test_an_override_may_spell_an_option_as_files_do():
    async with ExtensionManager(overrides={"tools": {"locate": {"options": {"cacheFolder": "there"}}}}) as manager:
        await manager.load_pack(geo_pack(GeoOptions), options={"cache_folder": "here"})
        (entry,) = manager.registry("tool").stack("locate")

    assert entry.options["cache_folder"] == "there"


@BOTH
async def test_a_wrong_option_set_at_run_time_is_refused_and_changes_nothing(declared):
    async with ExtensionManager() as manager:
        await manager.load_pack(geo_pack(declared))
        with pytest.raises(OptionsError, match=r"the run-time overrides\.tools\.locate\.options\.limt"):
            await manager.set_override("tools", "locate", {"options": {"limt": 3}, "enabled": False})
        (entry,) = manager.registry("tool").stack("locate")

    assert entry.state == "active"


async def test_an_override_that_is_set_before_its_pack_is_there_is_checked_when_it_comes():
    async with ExtensionManager() as manager:
        await manager.set_override("tools", "locate", {"options": {"limt": 3}})
        outcome = await manager.load_pack(geo_pack(GeoOptions))

    assert (outcome.status, "limt" in outcome.reason) == ("failed", True)


async def test_overrides_of_other_entries_are_not_this_packs_matter():
    overrides = {"tools": {"other": {"options": {"limt": 3}}, "other:locate": {"options": {"limt": 3}}}}

    assert (await load(GeoOptions, {}, overrides=overrides)).status == "loaded"


# -- how they are shown --------------------------------------------------------------------------------------------


def test_an_attrs_class_is_shown_as_json_schema_in_the_spelling_of_files():
    schema = as_pack_options(GeoOptions).schema
    properties = schema["properties"]

    assert list(properties) == ["limit", "units", "cacheFolder", "places", "hint", "clock"]
    assert properties["limit"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 50,
        "default": 5,
        "description": "How many places are found at most.",
    }
    assert (properties["units"]["enum"], properties["cacheFolder"]["default"]) == (["metric", "imperial"], "cache")
    assert list(properties["places"]["items"]["properties"]) == ["placeName", "height"]
    assert properties["hint"]["description"] == "What to look for."
    assert schema["additionalProperties"] is False


# -- the manifest's schema, for editors ------------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]
PUBLISHED = json.loads((ROOT / "docs" / "schemas" / "manifest.schema.json").read_text("utf-8"))


def faults_for_editors(options, package="files"):
    validator = jsonschema.Draft202012Validator(PUBLISHED)
    said = {"packs": [{"package": package, "options": options}]}
    return [list(error.absolute_path) for error in validator.iter_errors(said)]


@pytest.mark.parametrize(
    ("options", "package", "places"),
    [
        ({"root": "x", "maxFileBytes": 2000, "secrets": {"a": "b"}}, "files", []),
        ({"rot": "x"}, "files", [["packs", 0, "options"]]),
        ({"maxFileBytes": "many"}, "files", [["packs", 0, "options", "maxFileBytes"]]),
        ({"allow": ["git status", {"command": "ls"}]}, "shell", []),
        ({"rot": "x"}, "somebody-elses", []),
    ],
)
def test_an_editor_checks_the_options_of_curated_packs(options, package, places):
    assert faults_for_editors(options, package) == places


def test_the_manifest_itself_leaves_options_to_the_pack():
    manifest = ExtensionManifest.from_dict({"packs": [{"package": "files", "options": {"rot": "x"}}]})

    assert manifest.packs[0].options == {"rot": "x"}


async def test_the_schema_has_the_options_that_the_curated_packs_declare(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_generate")
    import option_schemas

    for file in option_schemas.COPIES:
        made = option_schemas.with_options(file.read_text("utf-8"), await option_schemas.declared())
        assert made == file.read_text("utf-8"), "run `python docs/_generate/option_schemas.py`"


@pytest.mark.parametrize("pack", CURATED, ids=lambda pack: pack.name)
async def test_a_misspelt_option_fails_a_curated_pack(pack):
    async with ExtensionManager() as manager:
        outcome = await manager.load(PackEntry(package=pack.name, options={"tiemout": 1}))

    assert (outcome.status, "options.tiemout: is not known" in outcome.reason) == ("failed", True)


@pytest.mark.parametrize("pack", CURATED, ids=lambda pack: pack.name)
async def test_a_misspelt_option_of_an_override_fails_a_curated_pack(pack):
    async with ExtensionManager() as manager:
        await manager.load(PackEntry(package=pack.name, permissions=pack.permissions))
        offered = manager.packs()[0].descriptors
    if not offered:
        pytest.skip("without options it offers nothing that could be overridden")
    (kind, id), *_ = offered
    async with ExtensionManager(overrides={kind: {id: {"options": {"tiemout": 1}}}}) as manager:
        outcome = await manager.load(PackEntry(package=pack.name, permissions=pack.permissions))

    assert (outcome.status, "tiemout: is not known" in outcome.reason) == ("failed", True)
