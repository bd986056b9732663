"""What a person writes: manifests and overrides, from files and from mappings, and every mistake in them."""

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import attrs
import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kit import descriptor, pack, states

from agentos import (
    AgentOS,
    Confinement,
    Descriptor,
    DescriptorError,
    ExtensionManager,
    ExtensionManifest,
    ManifestError,
    Override,
    Overrides,
    PackEntry,
    WorkerLimits,
)

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
SUFFIXES = [".json", ".toml", ".yaml", ".yml"]
VALUE = "hunter2-hunter2"

MAPPING = {
    "packs": [
        {
            "module": "./greeter.py",
            "identifier": "greeter",
            "priority": -3,
            "required": True,
            "isolation": "process",
            "permissions": ["tools:register"],
            "options": {"limit": 5, "nested": {"deep": [1, 2.5, "three"]}, "secrets": {"demo.key": VALUE}},
        },
        {"package": "web-search", "version": ">=1.2,<2", "enabled": False},
    ],
    "overrides": {
        "tools": {"greet": {"enabled": True, "priority": 0, "options": {"tone": "warm"}}},
        "messaging-channel": {"greeter:sms": {"enabled": False}},
    },
}

YAML = """
packs:
  - module: ./greeter.py
    identifier: greeter
    priority: -3
    required: true
    isolation: process
    permissions: ["tools:register"]
    options:
      limit: 5
      nested:
        deep: [1, 2.5, three]
      secrets:
        demo.key: hunter2-hunter2
  - package: web-search
    version: ">=1.2,<2"
    enabled: false
overrides:
  tools:
    greet: {enabled: true, priority: 0, options: {tone: warm}}
  messaging-channel:
    "greeter:sms": {enabled: false}
"""

TOML = """
[[packs]]
module = "./greeter.py"
identifier = "greeter"
priority = -3
required = true
isolation = "process"
permissions = ["tools:register"]
options = { limit = 5, nested = { deep = [1, 2.5, "three"] }, secrets = { "demo.key" = "hunter2-hunter2" } }

[[packs]]
package = "web-search"
version = ">=1.2,<2"
enabled = false

[overrides.tools.greet]
enabled = true
priority = 0
options = { tone = "warm" }

[overrides.messaging-channel."greeter:sms"]
enabled = false
"""

SPELLINGS = {".json": json.dumps(MAPPING), ".toml": TOML, ".yaml": YAML, ".yml": YAML}


def write(folder, name, text):
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def unplaced(manifest):
    """Return *manifest* without the folder that its paths are relative to."""
    return attrs.evolve(manifest, packs=[attrs.evolve(entry, base_path=None) for entry in manifest.packs])


def problems_of(make, *args, **kwargs):
    """Return the mistakes that *make* reports, by path."""
    with pytest.raises(ManifestError) as caught:
        make(*args, **kwargs)
    found = {}
    for problem in caught.value.problems:
        found.setdefault(problem.path, []).append(problem.message)
    return found


# -- reading -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_file_format_gives_the_same_manifest_as_a_mapping(tmp_path, suffix):
    manifest = ExtensionManifest.from_file(write(tmp_path, f"m{suffix}", SPELLINGS[suffix]))

    assert unplaced(manifest) == ExtensionManifest.from_dict(MAPPING)


def test_files_of_one_folder_give_equal_manifests(tmp_path):
    manifests = [ExtensionManifest.from_file(write(tmp_path, f"m{suffix}", SPELLINGS[suffix])) for suffix in SUFFIXES]

    assert manifests[1:] == manifests[:-1]


def test_what_was_written_is_what_the_values_say():
    greeter, search = ExtensionManifest.from_dict(MAPPING).packs

    assert (greeter.module, greeter.identifier, greeter.priority, greeter.required, greeter.isolation) == (
        "./greeter.py",
        "greeter",
        -3,
        True,
        "process",
    )
    assert greeter.permissions == ("tools:register",)
    assert greeter.options["nested"] == {"deep": [1, 2.5, "three"]}
    assert (search.package, search.version, search.enabled) == ("web-search", ">=1.2,<2", False)


def test_a_path_may_be_text(tmp_path):
    file = write(tmp_path, "m.json", "{}")

    assert ExtensionManifest.from_file(str(file)) == ExtensionManifest.from_file(file)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_suffix_in_capitals_is_known_too(tmp_path, suffix):
    file = write(tmp_path, f"m{suffix.upper()}", SPELLINGS[suffix])

    assert len(ExtensionManifest.from_file(file).packs) == 2


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_byte_order_mark_is_skipped(tmp_path, suffix):
    file = write(tmp_path, f"m{suffix}", SPELLINGS[suffix].encode("utf-8-sig"))

    assert len(ExtensionManifest.from_file(file).packs) == 2


def test_an_empty_mapping_is_a_manifest_without_packs():
    assert ExtensionManifest.from_dict({}) == ExtensionManifest()


def test_a_manifest_may_name_its_schema_for_editors():
    said = {"$schema": "../docs/schemas/manifest.schema.json", "overrides": {"$schema": "overrides.schema.json"}}

    assert ExtensionManifest.from_dict(said) == ExtensionManifest()


def test_a_mapping_takes_callables_as_factories():
    def create():
        return pack("p")

    assert ExtensionManifest.from_dict({"packs": [{"factory": create}]}).packs == (PackEntry(factory=create),)


@pytest.mark.parametrize("suffix", SUFFIXES)
async def test_a_manager_takes_a_manifest_as_a_file(tmp_path, suffix):
    manager = ExtensionManager(write(tmp_path, f"m{suffix}", SPELLINGS[suffix]))

    assert [entry.key for entry in manager.manifest.packs] == ["greeter", "web-search"]


async def test_a_manager_takes_a_manifest_as_a_mapping():
    assert ExtensionManager(MAPPING).manifest == ExtensionManifest.from_dict(MAPPING)


def test_values_are_frozen():
    entry = ExtensionManifest.from_dict(MAPPING).packs[0]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        entry.priority = 3


def test_options_can_not_be_written_to():
    entry = ExtensionManifest.from_dict(MAPPING).packs[0]
    with pytest.raises(TypeError):
        entry.options["limit"] = 6


# -- mistakes ------------------------------------------------------------------------------------------------------

WRONG = {
    "pakcs": [],
    "packs": [
        {"module": "good"},
        {"module": "a", "package": "b"},
        {"module": "m", "piority": 3, "enabled": "yes", "isolation": "proces"},
        {"package": "p", "options": {"secrets": {"demo.key": 5}}},
    ],
    "overrides": {"tools": {"search": {"enabeld": False, "priority": "high"}}},
}
WRONG_PATHS = {
    "pakcs",
    "packs[1]",
    "packs[2].piority",
    "packs[2].enabled",
    "packs[2].isolation",
    "packs[3].options.secrets['demo.key']",
    "overrides.tools.search.enabeld",
    "overrides.tools.search.priority",
}


def test_every_mistake_in_a_mapping_is_reported_at_once_with_its_path():
    assert problems_of(ExtensionManifest.from_dict, WRONG).keys() == WRONG_PATHS


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.json", json.dumps(WRONG)),
        ("m.yaml", json.dumps(WRONG)),
        (
            "m.toml",
            """
            pakcs = []
            packs = [
              {module = "good"},
              {module = "a", package = "b"},
              {module = "m", piority = 3, enabled = "yes", isolation = "proces"},
              {package = "p", options = {secrets = {"demo.key" = 5}}},
            ]
            [overrides.tools.search]
            enabeld = false
            priority = "high"
            """,
        ),
    ],
)
def test_every_mistake_in_a_file_is_reported_at_once_with_its_path(tmp_path, name, text):
    assert problems_of(ExtensionManifest.from_file, write(tmp_path, name, text)).keys() == WRONG_PATHS


def test_the_error_names_the_file_and_every_mistake(tmp_path):
    file = write(tmp_path, "m.json", json.dumps(WRONG))
    with pytest.raises(ManifestError) as caught:
        ExtensionManifest.from_file(file)

    assert all(text in str(caught.value) for text in (str(file), "8 problems", *WRONG_PATHS))


@pytest.mark.parametrize(
    ("said", "path", "meant"),
    [
        ({"packs": [{"module": "a"}, {"module": "b"}, {"module": "m", "piority": 3}]}, "packs[2].piority", "priority"),
        ({"packs": [{"module": "m", "Options": {}}]}, "packs[0].Options", "options"),
        ({"packs": [{"modul": "m"}]}, "packs[0].modul", "module"),
        ({"pack": []}, "pack", "packs"),
        ({"overides": {}}, "overides", "overrides"),
        ({"overrides": {"tools": {"x": {"enabld": True}}}}, "overrides.tools.x.enabld", "enabled"),
    ],
)
def test_an_unknown_key_is_told_the_nearest_known_one(said, path, meant):
    assert f"did you mean '{meant}'?" in problems_of(ExtensionManifest.from_dict, said)[path][0]


def test_an_unknown_key_that_is_near_to_nothing_is_told_every_known_key():
    message = problems_of(ExtensionManifest.from_dict, {"zzz": 1})["zzz"][0]

    assert "did you mean" not in message
    assert all(key in message for key in ("packs", "overrides"))


@pytest.mark.parametrize(
    ("entry", "path", "expected"),
    [
        ({"module": 5}, "packs[0].module", "expected a string, got an int"),
        ({"module": None}, "packs[0].module", "expected a string, got null"),
        ({"module": ""}, "packs[0].module", "not empty"),
        ({"module": "m", "enabled": "yes"}, "packs[0].enabled", "expected true or false, got a string"),
        ({"module": "m", "enabled": 1}, "packs[0].enabled", "expected true or false, got an int"),
        ({"module": "m", "required": None}, "packs[0].required", "expected true or false, got null"),
        ({"module": "m", "options": []}, "packs[0].options", "expected a mapping, got a list"),
        ({"module": "m", "options": {"secrets": []}}, "packs[0].options.secrets", "expected a mapping, got a list"),
        ({"module": "m", "isolation": "proces"}, "packs[0].isolation", "did you mean 'process'?"),
        ({"module": "m", "permissions": "tools:register"}, "packs[0].permissions", "expected a list, got a string"),
        ({"module": "m", "permissions": ["tools:regster"]}, "packs[0].permissions[0]", "'tools:register'"),
        ({"module": "m", "permissions": ["tools:register"] * 2}, "packs[0].permissions", "twice"),
        ({"module": "m", "identifier": "a b"}, "packs[0].identifier", "expected"),
        ({"module": "m", "identifier": "a:b"}, "packs[0].identifier", "without colon"),
        ({"module": "m", "version": 1}, "packs[0].version", "expected a string, got an int"),
        ({"factory": "myhost.create"}, "packs[0].factory", "expected a callable, got str"),
    ],
)
def test_a_wrong_value_is_told_with_its_path_and_what_was_expected(entry, path, expected):
    found = problems_of(ExtensionManifest.from_dict, {"packs": [entry]})

    assert list(found) == [path]
    assert expected in found[path][0]


@pytest.mark.parametrize(
    ("entry", "got"),
    [(5, "an int"), (None, "null"), (True, "a boolean"), ([], "a list"), ("./my_module.py", "a string")],
)
def test_an_entry_that_is_no_mapping_is_told_that_and_nothing_else(entry, got):
    found = problems_of(ExtensionManifest.from_dict, {"packs": [entry]})

    assert found == {"packs[0]": [f"expected a mapping, got {got}"]}


@pytest.mark.parametrize("data", [5, None, [], "text", True])
def test_a_manifest_that_is_no_mapping_is_refused(data):
    assert list(problems_of(ExtensionManifest.from_dict, data)) == [""]


def test_mistakes_come_in_the_order_of_the_file():
    said = {"packs": [{"module": "m", f"key{n}": 1} for n in range(12)]}
    with pytest.raises(ManifestError) as caught:
        ExtensionManifest.from_dict(said)

    assert [problem.path for problem in caught.value.problems] == [f"packs[{n}].key{n}" for n in range(12)]


def test_a_bad_version_is_reported_together_with_an_unknown_key():
    found = problems_of(ExtensionManifest.from_dict, {"packs": [{"module": "m", "version": "new", "piority": 3}]})

    assert found.keys() == {"packs[0].version", "packs[0].piority"}


def test_bad_versions_of_several_entries_are_reported_together():
    said = {"packs": [{"module": "m", "version": "new"}, {"module": "m"}, {"module": "m", "version": "old"}]}

    assert problems_of(ExtensionManifest.from_dict, said).keys() == {"packs[0].version", "packs[2].version"}


def test_keys_that_are_no_strings_are_all_reported_at_once():
    found = problems_of(ExtensionManifest.from_dict, {"packs": [{"module": "m", "options": {1: "a"}}], True: 2})

    assert found.keys() == {"packs[0].options", ""}


@pytest.mark.parametrize("key", ["1", "true", "1.5", "null", "2024-01-01"])
def test_a_key_in_yaml_that_is_no_string_is_told_to_be_quoted(tmp_path, key):
    file = write(tmp_path, "m.yaml", f"packs:\n  - module: m\n    options:\n      {key}: a\n")
    found = problems_of(ExtensionManifest.from_file, file)

    assert "expected a string as key" in found["packs[0].options"][0]
    assert "in quotes" in found["packs[0].options"][0]


def test_a_list_of_entries_made_in_python_names_the_place_of_the_bad_one():
    packs = [PackEntry(module="a"), {"module": "b"}, {"module": "m", "piority": 3}]

    assert list(problems_of(ExtensionManifest, packs=packs)) == ["packs[2].piority"]


def test_packs_that_are_no_list_are_refused():
    assert list(problems_of(ExtensionManifest, packs={"module": "m"})) == ["packs"]


# -- files that can't be read --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("m.json", '{"packs": [\n  {"module": "m",}\n]}', "line 2"),
        ("m.json", "", "line 1"),
        ("m.toml", 'packs = [\n  {module = "m"\n', "line"),
        ("m.toml", "packs = []\nx =\n", "line 2"),
        ("m.yaml", "packs:\n  - module: m\n   enabled: true\n", "line 3"),
        ("m.yml", "packs: [a, b\n", "line 2"),
    ],
)
def test_a_syntax_error_is_told_with_its_place(tmp_path, name, text, place):
    message = problems_of(ExtensionManifest.from_file, write(tmp_path, name, text))[""][0]

    assert "can't be parsed" in message
    assert place in message


@pytest.mark.parametrize(
    ("name", "text", "twice"),
    [
        ("m.json", '{"packs": [{"module": "a", "module": "b"}]}', "module"),
        ("m.json", '{"overrides": {"tools": {"x": {}, "x": {}}}}', "x"),
        ("m.yaml", "packs:\n  - {module: a, module: b}\n", "module"),
        ("m.toml", '[[packs]]\nmodule = "a"\nmodule = "b"\n', "line 3"),
    ],
)
def test_a_key_that_stands_twice_is_refused(tmp_path, name, text, twice):
    message = problems_of(ExtensionManifest.from_file, write(tmp_path, name, text))[""][0]

    assert "can't be parsed" in message
    assert twice in message


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_constant_that_json_does_not_have_is_refused_anywhere(tmp_path, constant):
    file = write(tmp_path, "m.json", f'{{"packs": [{{"module": "m", "options": {{"x": {constant}}}}}]}}')

    assert f"{constant} is not JSON" in problems_of(ExtensionManifest.from_file, file)[""][0]


@pytest.mark.parametrize("name", ["m.txt", "m", "m.json5", "m.py", ".json"])
def test_a_file_of_an_unknown_format_is_told_the_known_ones(tmp_path, name):
    message = problems_of(ExtensionManifest.from_file, write(tmp_path, name, "{}"))[""][0]

    assert all(suffix in message for suffix in SUFFIXES)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_file_is_a_manifest_error_that_names_it(tmp_path, suffix):
    file = tmp_path / f"nowhere{suffix}"
    with pytest.raises(ManifestError, match="No such file") as caught:
        ExtensionManifest.from_file(file)

    assert caught.value.origin == str(file)


def test_a_folder_is_a_manifest_error(tmp_path):
    folder = tmp_path / "m.json"
    folder.mkdir()

    assert "can't be read" in problems_of(ExtensionManifest.from_file, folder)[""][0]


def test_a_file_that_is_not_utf_8_is_a_manifest_error(tmp_path):
    file = write(tmp_path, "m.json", '{"packs": "ü"}'.encode("latin-1"))

    assert "can't be parsed" in problems_of(ExtensionManifest.from_file, file)[""][0]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_is_too_large_is_refused_before_it_is_parsed(tmp_path, suffix):
    file = write(tmp_path, f"m{suffix}", "")
    os.truncate(file, 2**33)

    assert "larger than" in problems_of(ExtensionManifest.from_file, file)[""][0]


def nested_lists(depth):
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.json", '{"packs": ' + nested_lists(100_000) + "}"),
        ("m.toml", "packs = " + nested_lists(100_000)),
        ("m.yaml", "packs: " + nested_lists(3_000)),
        ("m.json", '{"packs": [{"module": "m", "options": {"x": ' + nested_lists(100) + "}}]}"),
    ],
)
def test_a_file_that_nests_too_deep_is_refused(tmp_path, name, text):
    assert len(problems_of(ExtensionManifest.from_file, write(tmp_path, name, text))) == 1


def bomb(line, first):
    """Return YAML in which each of nine lines has nine of the one before: 9^9 values in a few hundred bytes."""
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{n}: &a{n} {line % ', '.join([f'*a{n - 1}'] * 9)}" for n in range(1, 10)]
    return "\n".join(lines)


def test_yaml_whose_aliases_multiply_is_refused(tmp_path):
    file = write(tmp_path, "m.yaml", bomb("[%s]", "[x, x, x, x, x, x, x, x, x]"))

    assert "too large" in str(problems_of(ExtensionManifest.from_file, file))


def test_yaml_that_contains_itself_is_refused(tmp_path):
    file = write(tmp_path, "m.yaml", "packs: &a\n  - *a\n")

    assert "too large" in str(problems_of(ExtensionManifest.from_file, file))


def test_yaml_whose_merge_keys_multiply_is_refused(tmp_path):
    """In a process of its own with limits, because the alternative to being refused is never to end."""
    file = write(tmp_path, "m.yaml", bomb("{<<: [%s]}", "{x: 1}"))
    script = """
        import resource, sys
        resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
        resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
        from agentos import ExtensionManifest, ManifestError
        try:
            ExtensionManifest.from_file(sys.argv[1])
        except ManifestError:
            print("refused")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(file)], capture_output=True, text=True, check=False
    )

    assert (done.stdout.strip(), done.returncode) == ("refused", 0)


@pytest.mark.parametrize(
    "text",
    [
        "a: !!bool x",
        "--- !!int\n",
        "a: !!int x",
        "a: !!float x",
        "a: !!timestamp x",
        "a: 2024-13-45",
        "a: !!python/object/apply:os.system [id]",
        "a: !mine x",
        "? {a: b}\n: c",
        "a: b\n---\nc: d",
        "a: *nowhere",
        "\x00",
    ],
)
def test_yaml_that_makes_no_sense_is_a_manifest_error(tmp_path, text):
    file = write(tmp_path, "m.yaml", text)
    with pytest.raises(ManifestError):
        ExtensionManifest.from_file(file)


scraps = st.lists(
    st.sampled_from(
        [
            *("packs", "overrides", "module", "!!", "!!bool ", "!!int", "&a ", "*a", "<<", "? ", ": ", "- ", "---"),
            *("\n", "  ", "{", "}", "[", "]", ",", '"', "'", "=", "#", "1", ".5", "e", "x", "|", ">", "%YAML", "\t"),
        ]
    )
).map("".join)


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(text=st.text() | scraps)
@example(text="packs: []")
def test_whatever_is_in_a_file_it_is_a_manifest_or_a_manifest_error(tmp_path_factory, suffix, text):
    file = tmp_path_factory.getbasetemp() / f"whatever{suffix}"
    file.write_text(text, "utf-8", errors="surrogatepass")

    try:
        manifest = ExtensionManifest.from_file(file)
    except ManifestError:
        return

    assert isinstance(manifest, ExtensionManifest)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.yaml", f'packs:\n- module: m\n  options: {{secrets: {{k: "{VALUE}", k: "{VALUE}"}}}}\n'),
        ("m.yaml", f'packs:\n- module: m\n  options:\n    secrets:\n      k: "{VALUE}\n'),
        ("m.yaml", f"packs:\n- module: m\n  options:\n    secrets:\n      k: {VALUE}: x\n"),
        ("m.yaml", f"packs:\n- module: m\n  options:\n    secrets: {{k: !!int {VALUE}}}\n"),
        ("m.json", f'{{"packs": [{{"options": {{"secrets": {{"k": "{VALUE}", "k": "{VALUE}"}}}}}}]}}'),
        ("m.json", f'{{"packs": [{{"options": {{"secrets": {{"k": "{VALUE}" "l": 1}}}}}}]}}'),
        ("m.json", f'{{"packs": [{{"module": "m", "options": {{"secrets": {{"k": ["{VALUE}"]}}}}}}]}}'),
        ("m.json", f'{{"packs": [{{"module": "m", "options": {{"secrets": "{VALUE}"}}}}]}}'),
        ("m.toml", f'packs = [{{module = "m", options = {{secrets = {{k = "{VALUE}", k = "{VALUE}"}}}}}}]'),
        ("m.toml", f'packs = [{{module = "m", options = {{secrets = {{k = "{VALUE}}}}}}}]'),
    ],
    ids=[
        *("yaml key twice", "yaml open quote", "yaml stray colon", "yaml wrong tag"),
        *("json key twice", "json no comma", "json list", "json string", "toml key twice", "toml open quote"),
    ],
)
def test_a_mistake_next_to_a_secret_does_not_quote_the_secret(tmp_path, name, text):
    file = write(tmp_path, name, text)
    with pytest.raises(ManifestError) as caught:
        ExtensionManifest.from_file(file)

    assert VALUE not in str(caught.value)
    assert VALUE not in repr(caught.value)


# -- exactly one of factory, module, package -----------------------------------------------------------------------

PLACES = {"factory": lambda: pack("p"), "module": "m", "package": "p"}


@pytest.mark.parametrize("place", PLACES)
def test_one_of_factory_module_and_package_is_enough(place):
    assert getattr(PackEntry(**{place: PLACES[place]}), place) == PLACES[place]


@pytest.mark.parametrize(
    "named", [(), ("factory", "module"), ("factory", "package"), ("module", "package"), tuple(PLACES)]
)
@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda entry: PackEntry(**entry), ""),
        (lambda entry: ExtensionManifest.from_dict({"packs": [entry]}), "packs[0]"),
    ],
    ids=["PackEntry", "from_dict"],
)
def test_anything_but_exactly_one_of_factory_module_and_package_is_refused(make, path, named):
    found = problems_of(make, {place: PLACES[place] for place in named})

    assert "exactly one of factory, module, package" in found[path][0]
    assert (" and ".join(named) or "none") in found[path][0]


def test_every_mistake_in_an_entry_made_in_python_is_reported_at_once():
    found = problems_of(
        PackEntry,
        module="m",
        package="p",
        priority=1.5,
        identifier="a b",
        version="new",
        isolation="thread",
        permissions=["all"],
        options={"secrets": {"demo.key": 5}},
    )

    assert found.keys() == {
        "",
        "priority",
        "identifier",
        "version",
        "isolation",
        "permissions",
        "options.secrets.demo.key",
    }


# -- processes of their own ----------------------------------------------------------------------------------------

IN_A_PROCESS = {
    "package": "search",
    "isolation": "process",
    "python": "python3.12",
    "requirements": ["httpx<0.28"],
    "worker": {"memory": 2**29, "cpuSeconds": 60, "openFiles": 64, "confine": {"network": False, "write": ["data"]}},
    "eager": True,
    "mountTimeout": 5,
}


def test_what_is_said_of_a_packs_process_is_what_its_entry_says():
    [entry] = ExtensionManifest.from_dict({"packs": [IN_A_PROCESS]}).packs

    assert (entry.python, entry.requirements, entry.eager, entry.mount_timeout) == (
        "python3.12",
        ("httpx<0.28",),
        True,
        5.0,
    )
    confine = Confinement(network=False, write=["data"])
    assert entry.worker == WorkerLimits(memory=2**29, cpu_seconds=60, open_files=64, confine=confine)


def test_what_nobody_says_of_a_packs_process_has_a_default():
    entry = PackEntry(package="search", isolation="process")

    assert (entry.python, entry.requirements, entry.eager, entry.mount_timeout) == (None, (), False, 3.0)
    assert entry.worker == WorkerLimits(memory=None, cpu_seconds=None, open_files=256, message=2**23, confine=None)


@pytest.mark.parametrize("field", ["python", "requirements", "worker", "eager", "mountTimeout"])
def test_what_counts_for_a_process_is_refused_for_a_pack_in_the_hosts(field):
    found = problems_of(ExtensionManifest.from_dict, {"packs": [{"package": "search", field: IN_A_PROCESS[field]}]})

    assert found.keys() == {f"packs[0].{field}"}
    assert "counts only with isolation = 'process'" in found[f"packs[0].{field}"][0]


def test_every_mistake_about_a_process_is_reported_at_once():
    worker = {"cpu_seconds": 1, "memory": 1, "confine": {"network": "no", "write": [""]}}
    said = {"package": "p", "isolation": "process", "python": "", "requirements": ["-r x"], "worker": worker}

    found = problems_of(ExtensionManifest.from_dict, {"packs": [said | {"mountTimeout": 0}]})

    assert found.keys() == {
        "packs[0].python",
        "packs[0].requirements[0]",
        "packs[0].mountTimeout",
        "packs[0].worker.memory",
        "packs[0].worker.cpu_seconds",
        "packs[0].worker.confine.network",
        "packs[0].worker.confine.write[0]",
    }


def test_every_mistake_about_a_process_in_python_is_reported_at_once():
    found = problems_of(
        PackEntry, package="p", isolation="process", python=" ", requirements=["??"], worker=3, mount_timeout=0
    )

    assert found.keys() == {"python", "requirements[0]", "worker", "mount_timeout"}


@pytest.mark.parametrize(
    ("limits", "path"),
    [
        ({"memory": 1}, "memory"),
        ({"cpu_seconds": 0.5}, "cpu_seconds"),
        ({"open_files": True}, "open_files"),
        ({"message": None}, "message"),
        ({"confine": 3}, "confine"),
        ({"confine": {"network": 1}}, "network"),
        ({"confine": {"write": "data"}}, "write"),
        ({"confine": {"write": [3]}}, "write"),
        ({"confine": {"read": ["data"]}}, "confine.read"),
    ],
)
def test_limits_of_a_process_that_can_not_be_are_refused(limits, path):
    assert path in problems_of(WorkerLimits, **limits)


def test_limits_of_a_process_may_be_a_mapping_of_their_fields():
    assert PackEntry(package="p", isolation="process", worker={"message": 2**20}).worker.message == 2**20
    assert "worker.memry" in problems_of(PackEntry, package="p", isolation="process", worker={"memry": 1})


# -- priorities ----------------------------------------------------------------------------------------------------

NO_PRIORITIES = [True, False, 1.0, -0.0, float("nan"), float("inf"), "1", [1]]


@pytest.mark.parametrize("priority", NO_PRIORITIES)
def test_a_descriptors_priority_that_is_no_int_is_refused(priority):
    with pytest.raises(DescriptorError, match="priority: expected an int"):
        Descriptor("tool", "x", None, priority=priority)


@pytest.mark.parametrize("priority", NO_PRIORITIES)
def test_an_entrys_priority_that_is_no_int_is_refused(priority):
    assert "expected an int" in problems_of(PackEntry, module="m", priority=priority)["priority"][0]


@pytest.mark.parametrize("priority", NO_PRIORITIES)
def test_an_overrides_priority_that_is_no_int_is_refused(priority):
    assert "expected an int" in problems_of(Override, priority=priority)["priority"][0]


@pytest.mark.parametrize("priority", NO_PRIORITIES)
async def test_a_run_time_priority_that_is_no_int_is_refused_and_changes_nothing(manager, priority):
    await manager.load_pack(pack("p", descriptor("x", priority=7)))
    with pytest.raises(ManifestError, match="priority"):
        await manager.set_override("tool", "x", {"priority": priority})

    assert manager.registry("tool").get_active("x").priority == 7


@pytest.mark.parametrize("priority", NO_PRIORITIES)
async def test_a_pack_given_with_a_priority_that_is_no_int_is_not_loaded(manager, priority):
    outcome = await manager.load_pack(pack("p", descriptor("x")), priority=priority)

    assert outcome.status == "failed"
    assert "expected an int" in outcome.reason


@pytest.mark.parametrize("priority", NO_PRIORITIES)
def test_a_priority_in_a_mapping_that_is_no_int_is_refused(priority):
    said = {"packs": [{"module": "m", "priority": priority}], "overrides": {"tools": {"x": {"priority": priority}}}}

    assert problems_of(ExtensionManifest.from_dict, said).keys() == {
        "packs[0].priority",
        "overrides.tools.x.priority",
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.json", '{"packs": [{"module": "m", "priority": 1.0}]}'),
        ("m.json", '{"packs": [{"module": "m", "priority": 1e2}]}'),
        ("m.json", '{"packs": [{"module": "m", "priority": true}]}'),
        ("m.toml", 'packs = [{module = "m", priority = 1.0}]'),
        ("m.toml", 'packs = [{module = "m", priority = nan}]'),
        ("m.yaml", "packs: [{module: m, priority: 1.0}]"),
        ("m.yaml", "packs: [{module: m, priority: .nan}]"),
        ("m.yaml", "packs: [{module: m, priority: true}]"),
    ],
)
def test_a_priority_in_a_file_that_is_no_int_is_refused(tmp_path, name, text):
    found = problems_of(ExtensionManifest.from_file, write(tmp_path, name, text))

    assert "expected an int" in found["packs[0].priority"][0]


def test_a_date_is_refused_where_text_is_expected_and_free_in_options(tmp_path):
    file = write(tmp_path, "m.toml", "packs = [{module = 2026-01-31, options = {since = 2026-01-31}}]")

    assert problems_of(ExtensionManifest.from_file, file) == {"packs[0].module": ["expected a string, got a date"]}


def test_nan_is_no_number_of_seconds(tmp_path):
    file = write(tmp_path, "m.toml", "proposalTtl = nan")

    assert problems_of(ExtensionManifest.from_file, file) == {"proposalTtl": ["expected a number, got nan"]}


@pytest.mark.parametrize("priority", [0, -1, 2**70])
def test_any_int_is_a_priority(priority):
    assert PackEntry(module="m", priority=priority).priority == priority


# -- versions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["new", ">=", "1.0", "=>1", ">=1,,x", "^1.2", "~1.2", 5, 1.5, [">=1"]])
def test_a_version_that_is_no_specifier_is_refused(version):
    assert "version specifier" in problems_of(PackEntry, module="m", version=version)["version"][0]


@pytest.mark.parametrize("version", [">=1.2,<2", "~=1.4", "==2.0.*", "!=1.5", ">=1.0a1", "===1.0+local", " >= 1 "])
def test_a_specifier_is_taken(version):
    assert PackEntry(module="m", version=version).version == version


# -- overrides -----------------------------------------------------------------------------------------------------

GROUPS = [
    ("tools", "tool"),
    ("guardrails", "guardrail"),
    ("responses", "response-processor"),
    ("tool", "tool"),
    ("guardrail", "guardrail"),
    ("response-processor", "response-processor"),
    ("workflow", "workflow"),
    ("a kind of my own", "a kind of my own"),
]


@pytest.mark.parametrize(("group", "kind"), GROUPS)
async def test_a_manifests_override_reaches_any_kind_by_its_groups_name(group, kind):
    entry = {"factory": lambda: pack("p", descriptor("x", kind=kind))}
    manifest = {"packs": [entry], "overrides": {group: {"x": {"priority": 9}}}}
    async with ExtensionManager(manifest) as manager:
        assert manager.registry(kind).get_active("x").priority == 9


@pytest.mark.parametrize(("group", "kind"), GROUPS)
async def test_a_run_time_override_reaches_any_kind_by_its_groups_name(manager, group, kind):
    await manager.load_pack(pack("p", descriptor("x", kind=kind)))
    await manager.set_override(group, "x", {"priority": 9})

    assert manager.registry(kind).get_active("x").priority == 9


async def test_an_override_does_not_reach_the_same_id_of_another_kind():
    manifest = {"packs": [{"factory": lambda: pack("p", descriptor("x"), descriptor("x", kind="guardrail"))}]}
    async with ExtensionManager(manifest, overrides={"guardrails": {"x": {"enabled": False}}}) as manager:
        assert states(manager, "x", "tool") == {"p": "active"}
        assert states(manager, "x", "guardrail") == {"p": "disabled"}


def two_packs(**overrides):
    """Return a manager with packs a and b on the stack of the tool x; each value says whose override it is."""
    manifest = {
        "packs": [{"factory": lambda: pack("a", descriptor("x"))}, {"factory": lambda: pack("b", descriptor("x"))}],
        "overrides": {"tools": overrides.get("manifest", {})},
    }
    return ExtensionManager(manifest, overrides={"tools": overrides.get("host", {})})


def priorities(manager):
    return {entry.source.pack: entry.priority for entry in manager.registry("tool").stack("x")}


async def test_an_override_by_id_is_of_every_entry_of_the_stack():
    async with two_packs(host={"x": {"priority": 4}}) as manager:
        assert priorities(manager) == {"a": 4, "b": 4}


async def test_an_override_by_pack_and_id_is_of_that_packs_entry_alone():
    async with two_packs(host={"a:x": {"priority": 4}}) as manager:
        assert priorities(manager) == {"a": 4, "b": 0}


@pytest.mark.parametrize("layer", ["host", "manifest"])
async def test_an_override_by_pack_and_id_wins_over_one_by_id(layer):
    async with two_packs(**{layer: {"a:x": {"priority": 1}, "x": {"priority": 4}}}) as manager:
        assert priorities(manager) == {"a": 1, "b": 4}


async def test_the_hosts_override_by_id_wins_over_the_manifests_by_pack_and_id():
    async with two_packs(host={"x": {"priority": 1}}, manifest={"a:x": {"priority": 4}}) as manager:
        assert priorities(manager) == {"a": 1, "b": 1}


async def test_a_run_time_override_by_id_wins_over_every_other():
    said = {"a:x": {"priority": 4}, "x": {"priority": 5}}
    async with two_packs(host=said, manifest=said) as manager:
        await manager.set_override("tools", "x", {"priority": 1})

        assert priorities(manager) == {"a": 1, "b": 1}


async def test_a_run_time_override_by_pack_and_id_wins_over_one_by_id():
    async with two_packs() as manager:
        await manager.set_override("tools", "a:x", {"priority": 1})
        await manager.set_override("tools", "x", {"priority": 4})

        assert priorities(manager) == {"a": 1, "b": 4}


async def test_a_run_time_override_that_is_taken_away_lets_the_others_count_again():
    async with two_packs(host={"x": {"priority": 4}}) as manager:
        await manager.set_override("tools", "x", {"priority": 1})
        await manager.set_override("tools", "x", None)

        assert priorities(manager) == {"a": 4, "b": 4}


async def test_overrides_merge_field_by_field():
    async with two_packs(host={"x": {"priority": 4}}, manifest={"a:x": {"enabled": False}}) as manager:
        assert priorities(manager) == {"a": 4, "b": 4}
        assert states(manager, "x") == {"a": "disabled", "b": "active"}


async def test_an_override_set_before_its_pack_is_loaded_counts_when_it_comes(manager):
    await manager.set_override("tools", "p:x", {"enabled": False})
    await manager.load_pack(pack("p", descriptor("x")))

    assert states(manager, "x") == {"p": "disabled"}


async def test_the_reason_names_the_override_that_disables():
    async with two_packs(host={"a:x": {"enabled": False}}) as manager:
        reasons = {entry.source.pack: entry.reason for entry in manager.explain("tool", "x").entries}

    assert "host" in reasons["a"]
    assert "'a:x'" in reasons["a"]


async def test_a_bad_run_time_override_is_refused_with_its_path_and_the_nearest_key(manager):
    with pytest.raises(ManifestError, match="did you mean 'enabled'") as caught:
        await manager.set_override("tools", "x", {"enabeld": True})

    assert caught.value.problems[0].path == "tool.x.enabeld"


async def test_an_override_value_can_be_given_as_an_object(manager):
    await manager.load_pack(pack("p", descriptor("x")))
    await manager.set_override("tools", "x", Override(priority=3))

    assert manager.registry("tool").get_active("x").priority == 3


async def test_the_hosts_overrides_can_be_given_as_an_object():
    manager = ExtensionManager(overrides=Overrides({"tools": {"x": Override(priority=3)}}))
    await manager.load_pack(pack("p", descriptor("x")))

    assert manager.registry("tool").get_active("x").priority == 3
    await manager.shutdown()


@pytest.mark.parametrize(
    ("override", "own", "entry", "expected"),
    [
        (0, 5, 7, 0),
        (None, 0, 7, 0),
        (None, None, 0, 0),
        (None, None, 7, 7),
        (None, 5, 7, 5),
        (3, 5, 7, 3),
        (None, None, None, 0),
        (-2, 0, 7, -2),
    ],
)
async def test_priority_is_the_overrides_else_the_descriptors_else_the_entrys_and_zero_counts(
    override, own, entry, expected
):
    said = {} if override is None else {"tools": {"x": {"priority": override}}}
    packs = [PackEntry(factory=lambda: pack("p", descriptor("x", priority=own)), priority=entry)]
    async with ExtensionManager(ExtensionManifest(packs=packs), overrides=said) as manager:
        assert manager.registry("tool").get_active("x").priority == expected


async def test_an_override_to_zero_takes_a_pack_below_another(manager):
    await manager.load_pack(pack("weak", descriptor("x", priority=1)))
    await manager.load_pack(pack("strong", descriptor("x", priority=5)))
    await manager.set_override("tools", "strong:x", {"priority": 0})

    assert states(manager, "x") == {"weak": "active", "strong": "shadowed"}


# -- options -------------------------------------------------------------------------------------------------------


async def test_a_packs_options_reach_its_factory_and_every_hook():
    seen = {}

    def create(context):
        seen["factory"] = context.options["limit"]
        return pack(
            "p",
            descriptor("x", on_activate=lambda c: seen.update(descriptor=c.options["limit"])),
            on_activate=lambda c: seen.update(pack=c.options["limit"]),
        )

    async with ExtensionManager({"packs": [{"factory": create, "options": {"limit": 5}}]}):
        pass

    assert seen == {"factory": 5, "pack": 5, "descriptor": 5}


async def test_override_options_reach_both_hooks_of_the_descriptor():
    seen = []
    one = descriptor("x", on_activate=lambda c: seen.append(c.options), on_deactivate=lambda c: seen.append(c.options))
    manifest = {"packs": [{"factory": lambda: pack("p", one), "options": {"a": 1, "b": 1}}]}
    async with ExtensionManager(manifest, overrides={"tools": {"x": {"options": {"b": 2, "c": 2}}}}):
        pass

    assert [dict(options) for options in seen] == [{"a": 1, "b": 2, "c": 2}] * 2


async def test_a_run_time_option_reaches_the_next_activation(manager):
    seen = []
    await manager.load_pack(pack("p", descriptor("x", on_activate=lambda c: seen.append(c.options.get("limit")))))
    await manager.set_override("tools", "x", {"options": {"limit": 9}})
    await manager.disable("p")
    await manager.enable("p")

    assert seen == [None, 9]


LAYERS = ["manifest x", "manifest p:x", "host x", "host p:x", "run-time x", "run-time p:x"]

said_by_one = st.fixed_dictionaries(
    {},
    optional={
        "enabled": st.booleans(),
        "priority": st.integers(-2, 2),
        "options": st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9)),
    },
)


@given(own=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9)), said=st.tuples(*[said_by_one] * len(LAYERS)))
def test_overrides_of_all_origins_merge_like_updates_of_one_dict_from_weakest_to_strongest(own, said):
    fields, options = {"enabled": True, "priority": 0}, dict(own)
    for override in said:
        fields.update({name: value for name, value in override.items() if name != "options"})
        options.update(override.get("options", {}))

    state, priority, seen = asyncio.run(load_with(own, dict(zip(LAYERS, said, strict=True))))

    assert (state == "active", priority) == (fields["enabled"], fields["priority"])
    assert seen == ([options] if fields["enabled"] else [])


async def load_with(own, said):
    seen = []
    one = descriptor("x", on_activate=lambda context: seen.append(dict(context.options)))
    manager = ExtensionManager(
        {
            "packs": [{"factory": lambda: pack("p", one), "options": own}],
            "overrides": {"tools": {"x": said["manifest x"], "p:x": said["manifest p:x"]}},
        },
        overrides={"tools": {"x": said["host x"], "p:x": said["host p:x"]}},
    )
    await manager.set_override("tools", "x", said["run-time x"])
    await manager.set_override("tools", "p:x", said["run-time p:x"])
    async with manager:
        entry = manager.registry("tool").stack("x")[0]
        return entry.state, entry.priority, seen


# -- override files ------------------------------------------------------------------------------------------------

OVERRIDE_FILES = {
    ".json": '{"$schema": "s", "tools": {"p:x": {"priority": 6, "options": {"tone": "warm"}}}}',
    ".toml": '"$schema" = "s"\n[tools."p:x"]\npriority = 6\noptions = {tone = "warm"}\n',
    ".yaml": "$schema: s\ntools:\n  p:x:\n    priority: 6\n    options: {tone: warm}\n",
    ".yml": '{$schema: s, tools: {"p:x": {priority: 6, options: {tone: warm}}}}',
}


@pytest.mark.parametrize("as_text", [True, False])
@pytest.mark.parametrize("suffix", SUFFIXES)
async def test_the_hosts_overrides_can_be_a_file(tmp_path, suffix, as_text):
    file = write(tmp_path, f"o{suffix}", OVERRIDE_FILES[suffix])
    manager = ExtensionManager(overrides=str(file) if as_text else file)
    seen = []
    await manager.load_pack(pack("p", descriptor("x", on_activate=lambda c: seen.append(c.options["tone"]))))

    assert manager.registry("tool").get_active("x").priority == 6
    assert seen == ["warm"]
    await manager.shutdown()


async def test_the_facade_takes_an_override_file(tmp_path):
    file = write(tmp_path, "o.json", OVERRIDE_FILES[".json"])
    manifest = {"packs": [{"factory": lambda: pack("p", descriptor("x"))}]}
    async with AgentOS(extension_manifest=manifest, extension_overrides=file) as host:
        assert host.extensions.registry("tool").get_active("x").priority == 6


def test_an_override_file_is_told_every_mistake_at_once(tmp_path):
    wrong = {"tools": {"x": {"enabeld": True, "priority": 1.5}, "y": []}, "guardrails": 5}
    file = write(tmp_path, "o.json", json.dumps(wrong))
    with pytest.raises(ManifestError) as caught:
        ExtensionManager(overrides=file)

    assert caught.value.origin == str(file)
    assert {problem.path for problem in caught.value.problems} == {
        "tools.x.enabeld",
        "tools.x.priority",
        "tools.y",
        "guardrails",
    }


# -- reprs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "show", [repr, str, lambda manifest: repr(manifest.packs), lambda manifest: repr(manifest.overrides)]
)
def test_options_and_the_secrets_in_them_are_in_no_repr(show):
    said = {
        "packs": [{"module": "m", "options": {"secrets": {"demo.key": VALUE}, "header": VALUE}}],
        "overrides": {"tools": {"x": {"options": {"token": VALUE}}}},
    }

    assert VALUE not in show(ExtensionManifest.from_dict(said))


# -- schemas -------------------------------------------------------------------------------------------------------

SHIPPED = sorted((ROOT / "agentos" / "schemas").glob("*.json"))
EXAMPLES = sorted(
    file
    for suffix in SUFFIXES
    for file in (ROOT / "examples").rglob(f"*{suffix}")
    if "packs" in file.read_text("utf-8") and file.name != "pyproject.toml"
)


def schema(name):
    return json.loads((ROOT / "docs" / "schemas" / f"{name}.schema.json").read_text("utf-8"))


def test_the_published_schemas_are_those_that_the_package_ships():
    published = {file.name: file.read_bytes() for file in (ROOT / "docs" / "schemas").glob("*.json")}

    assert published == {file.name: file.read_bytes() for file in SHIPPED}
    assert published.keys() == {
        *("lock.schema.json", "manifest.schema.json", "overrides.schema.json", "secrets.schema.json"),
    }


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_a_schema_is_a_schema(file):
    jsonschema.Draft202012Validator.check_schema(json.loads(file.read_text("utf-8")))


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_the_examples_in_a_schema_fit_it(file):
    whole = json.loads(file.read_text("utf-8"))

    def check(part):
        if isinstance(part, dict):
            for sample in part.get("examples", ()):
                validator = jsonschema.Draft202012Validator({**part, "$defs": whole["$defs"]})
                assert [error.message for error in validator.iter_errors(sample)] == []
            for inner in part.values():
                check(inner)

    check(whole)


@pytest.mark.parametrize("said", schema("manifest")["examples"])
def test_the_manifest_schemas_examples_are_manifests(said):
    assert len(ExtensionManifest.from_dict(said).packs) == len(said["packs"])


@pytest.mark.parametrize("said", schema("overrides")["examples"])
def test_the_override_schemas_examples_are_overrides(said):
    assert ExtensionManifest.from_dict({"overrides": said}).overrides.of("tool")


def test_the_manifest_of_these_tests_fits_the_published_schema():
    jsonschema.validate(MAPPING, schema("manifest"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_the_example_manifests_are_manifests(file):
    assert ExtensionManifest.from_file(file).packs


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
entries = st.fixed_dictionaries(
    {},
    optional={
        "module": st.sampled_from(["m", "./m.py", "", 5]),
        "package": st.sampled_from(["p", " "]),
        "options": st.dictionaries(st.text(max_size=3), json_values, max_size=3) | json_values,
        "priority": st.sampled_from([0, -3, 2**65]) | json_values,
        "identifier": st.text(max_size=4),
        "version": st.sampled_from([">=1", "nope", ""]),
        "enabled": st.sampled_from([True, 1]),
        "isolation": st.sampled_from(["inline", "process", "thread"]),
    },
)
manifests = st.fixed_dictionaries(
    {},
    optional={
        "packs": st.lists(entries, max_size=3) | json_values,
        "overrides": st.dictionaries(
            st.sampled_from(["tools", "workflow", "$schema"]),
            st.dictionaries(st.sampled_from(["x", "p:x"]), said_by_one | json_values, max_size=2) | json_values,
            max_size=2,
        ),
    },
)


@given(said=manifests)
def test_what_is_taken_as_a_manifest_fits_the_published_schema_and_the_rest_is_a_manifest_error(said):
    try:
        ExtensionManifest.from_dict(said)
    except ManifestError:
        return

    assert [error.message for error in jsonschema.Draft202012Validator(schema("manifest")).iter_errors(said)] == []


@given(said=st.dictionaries(st.sampled_from(["tools", "workflow"]), json_values))
def test_what_is_taken_as_overrides_fits_the_published_schema_and_the_rest_is_a_manifest_error(said):
    try:
        ExtensionManager(overrides=said)
    except ManifestError:
        return

    assert [error.message for error in jsonschema.Draft202012Validator(schema("overrides")).iter_errors(said)] == []


async def test_a_manager_alone_says_that_it_leaves_servers_out(caplog):
    async with ExtensionManager({"mcpServers": {"files": {"command": "serve"}}}) as manager:
        assert manager.report.outcomes == []
    assert "mcpServers (files) become packs of an AgentOS" in caplog.text
