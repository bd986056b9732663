"""`agentos packs`: what is there, switched and changed, whatever packs do when they are imported."""

import json
import sqlite3
import subprocess

import pytest
from powerless import powerless
from terminal import AGENTOS, BAD, GREET, environment, run_in_terminal, run_piped

SENTINEL = "from pathlib import Path\nPath('imported').write_text('oh no')\n"


def keys(told):
    return [row["key"] for row in told.data["packs"]]


def state(told, key):
    return next(row["state"] for row in told.data["packs"] if row["key"] == key)


# -- bad packs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["list", "info bad", "disable bad", "enable bad", "remove bad"])
def test_nothing_is_imported_by(project, command, line):
    folder = project("bad", files={"bad.py": SENTINEL})

    assert command("packs", *line.split()).code == 0
    assert not (folder / "imported").exists()


def test_no_pack_can_stop_the_list(project):
    project(*BAD, "hello")
    listed = json.loads(run_piped("packs", "list", "--json").stdout)

    assert [row["state"] for row in listed["packs"]] == ["enabled"] * (len(BAD) + 1)


@pytest.mark.parametrize("bad", BAD)
def test_every_bad_pack_can_be_looked_at_switched_off_and_removed(project, command, bad):
    project(bad, "hello")
    info = command("packs", "info", bad, "--json").data
    disabled = command("packs", "disable", bad, "--json").data
    removed = command("packs", "remove", bad, "--json").data

    assert (info["key"], disabled["pack"], removed["removed"]) == (f"{bad}.py",) * 3


# -- list --------------------------------------------------------------------------------------------------------------


def test_the_list_has_the_packs_of_the_manifest_in_order(project, command):
    project("hello", "gifs")

    assert keys(command("packs", "list", "--json")) == ["hello.py", "gifs.py"]


def test_the_list_has_installed_packs_that_are_not_in_the_manifest(project, command):
    project("hello")
    told = command("packs", "list", "--json")

    assert "calculator" in [one["name"] for one in told.data["available"]]
    assert "calculator" in command("packs", "list").out


def test_what_is_in_the_manifest_is_not_available_too(project, command):
    folder = project()
    (folder / "agentos.toml").write_text('[[packs]]\npackage = "calculator"\n')
    told = command("packs", "list", "--json")

    assert told.data["packs"][0]["version"] == "0.1.0"
    assert "calculator" not in [one["name"] for one in told.data["available"]]


def test_a_pack_that_is_nowhere_is_missing_and_the_nearest_is_named(project, command):
    folder = project()
    (folder / "agentos.toml").write_text('[[packs]]\npackage = "calculater"\n')
    told = command("packs", "list", "--json")

    assert state(told, "calculater") == "missing"
    assert "did you mean 'calculator'?" in told.data["packs"][0]["reason"]


def test_a_pack_that_the_manifest_switches_off_is_disabled(project, command):
    folder = project()
    (folder / "agentos.toml").write_text('[[packs]]\nmodule = "hello.py"\nenabled = false\n')

    assert state(command("packs", "list", "--json"), "hello.py") == "disabled"


def test_servers_are_in_the_list(project, command):
    project(more='[mcpServers.files]\ncommand = "serve"\n')
    told = command("packs", "list", "--json")

    assert told.data["packs"][0]["source"] == "server serve"


def test_an_empty_manifest(project, command):
    project()

    assert command("packs", "list", "--json").data["packs"] == []


def test_a_store_that_cant_be_read_does_not_stop_the_list(project, command):
    folder = project("hello", more='store = "s.db"\n')
    (folder / "s.db").write_text("not a database at all, but long enough to be looked at")
    told = command("packs", "list", "--json")

    assert keys(told) == ["hello.py"]
    assert "warning" in told.err


# -- info --------------------------------------------------------------------------------------------------------------


def test_info_of_an_installed_pack(project, command):
    folder = project()
    (folder / "agentos.toml").write_text('[[packs]]\npackage = "calculator"\npriority = 3\n')
    told = command("packs", "info", "calculator", "--json").data

    assert told["distribution"] == "agentos-pack-calculator 0.1.0"
    assert told["entryPoint"] == "agentos_pack_calculator"
    assert "Arithmetic" in told["summary"]
    assert any(name.endswith("__init__.py") for name in told["files"])
    assert "priority" in command("packs", "info", "calculator").out


def test_info_hides_secrets(project, command):
    folder = project()
    (folder / "agentos.toml").write_text(
        '[[packs]]\nmodule = "hello.py"\n[packs.options]\nword = "hi"\n[packs.options.secrets]\n"a.b" = "hunter2"\n'
    )
    told = command("packs", "info", "hello", "--json")

    assert "hunter2" not in told.out + command("packs", "info", "hello").out


def test_info_says_what_a_pack_offers_if_asked_to_load_it(project, command):
    project("gifs")
    told = command("packs", "info", "gifs", "--probe", "--json").data["probe"]

    assert [(one["kind"], one["id"], one["effect"]) for one in told["offers"]] == [("tool", "gif_search", "read")]
    assert "tool:gif_search" in command("packs", "info", "gifs", "--probe").out


def test_info_says_which_options_a_curated_pack_takes(project, command):
    folder = project()
    (folder / "agentos.toml").write_text('[[packs]]\npackage = "files"\n')
    options = {one["name"]: one for one in command("packs", "info", "files", "--json").data["options"]}

    assert (options["maxFileBytes"]["type"], options["maxFileBytes"]["default"]) == ("integer", 10_000_000)
    assert "maxFileBytes" in command("packs", "info", "files").out


GEO = """
import attrs
from typing import Annotated
from agentos import ExtensionPack

@attrs.frozen
class GeoOptions:
    limit: Annotated[int, "How many places are found."] = 5

def create_extension_pack(context):
    return ExtensionPack("geo", "1.0", options=GeoOptions)
"""


def test_info_says_which_options_any_pack_takes_if_asked_to_load_it(project, command):
    folder = project()
    (folder / "geo.py").write_text(GEO)
    (folder / "agentos.toml").write_text('[[packs]]\nmodule = "geo.py"\n')
    (option,) = command("packs", "info", "geo", "--probe", "--json").data["options"]

    assert option == {
        "name": "limit",
        "type": "integer",
        "required": False,
        "default": 5,
        "description": "How many places are found.",
    }
    assert "How many places are found." in command("packs", "info", "geo", "--probe").out


def test_doctor_names_a_misspelt_option(project, command):
    folder = project()
    (folder / "geo.py").write_text(GEO)
    (folder / "agentos.toml").write_text('[[packs]]\nmodule = "geo.py"\noptions = { limt = 3 }\n')

    assert "options.limt: is not known; did you mean `limit`?" in " ".join(command("doctor").out.split())


def test_info_of_a_bad_pack_says_how_it_failed(project, command):
    project("raises")

    assert "RuntimeError: boom" in command("packs", "info", "raises", "--probe").out


def test_an_unknown_name_is_told_with_the_nearest(project, command):
    project("hello")
    told = command("packs", "info", "helo")

    assert told.code == 1
    assert "did you mean 'hello'?" in told.err
    assert "hello.py" in told.err


def test_a_short_name_that_may_mean_two_is_refused(project, command):
    folder = project(files={"a/hello.py": "", "b/hello.py": ""})
    (folder / "agentos.toml").write_text('[[packs]]\nmodule = "a/hello.py"\n[[packs]]\nmodule = "b/hello.py"\n')
    told = command("packs", "info", "hello")

    assert told.code == 2
    assert "a/hello.py or b/hello.py" in told.err


# -- add ---------------------------------------------------------------------------------------------------------------


def entries(folder):
    import tomllib

    return tomllib.loads((folder / "agentos.toml").read_text())["packs"]


def test_adding_a_file(project, command):
    folder = project()
    told = command("packs", "add", "./hello.py")

    assert told.code == 0
    assert "It offers tool:greet." in told.out
    assert entries(folder) == [{"module": "hello.py"}]


def test_a_path_is_relative_to_the_manifest(project, command, monkeypatch):
    folder = project(files={"deep/inner.py": "", "deep/wide/__init__.py": ""})
    monkeypatch.chdir(folder / "deep")
    command("packs", "add", "inner.py", "--no-probe")
    command("packs", "add", "wide", "--no-probe")

    assert entries(folder) == [{"module": "deep/inner.py"}, {"module": "deep/wide"}]


def test_a_folder_beside_the_manifest_is_told_from_a_module(project, command):
    folder = project(files={"wide/__init__.py": ""})
    command("packs", "add", "wide", "--no-probe")

    assert entries(folder) == [{"module": "./wide"}]


def test_adding_an_entry_point(project, command):
    folder = project()
    command("packs", "add", "calculator")

    assert entries(folder) == [{"package": "calculator"}]


def test_adding_a_pack_in_a_process_of_its_own(project, command):
    folder = project()
    more = ("--python", "python3", "--requirement", "httpx<0.28", "--requirement", "idna")
    told = command("packs", "add", "calculator", "--isolation", "process", *more, "--no-probe")

    assert told.code == 0
    assert entries(folder) == [
        {
            "package": "calculator",
            "isolation": "process",
            "python": "python3",
            "requirements": ["httpx<0.28", "idna"],
        }
    ]


def test_what_counts_for_a_process_is_not_added_without_one(project, command):
    folder = project()
    told = command("packs", "add", "calculator", "--python", "python3", "--no-probe")

    assert told.code == 2
    assert "counts only with isolation = 'process'" in told.err
    assert "calculator" not in (folder / "agentos.toml").read_text()


def test_adding_a_dotted_module(project, command):
    folder = project()
    command("packs", "add", "agentos_pack_calculator.units", "--no-probe")

    assert entries(folder) == [{"module": "agentos_pack_calculator.units"}]


def test_adding_with_everything(project, command):
    folder = project()
    told = command(
        *("packs", "add", "calculator", "--identifier", "calc", "--priority", "7", "--version", ">=0.1", "--required"),
        *("--option", "a=1", "--option", "b=two words", "--option", 'c={"d": [true]}', "--json"),
    )

    assert told.data["added"] == "calc"
    assert entries(folder) == [
        {
            "package": "calculator",
            "identifier": "calc",
            "priority": 7,
            "version": ">=0.1",
            "required": True,
            "options": {"a": 1, "b": "two words", "c": {"d": [True]}},
        }
    ]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("calculater", "did you mean 'calculator'?"),
        ("./helo.py", "did you mean 'hello.py'?"),
        ("nowhere/at/all.py", "expected a .py file"),
        ("no.such.module", "no module named"),
    ],
)
def test_what_is_nowhere_is_not_added(project, command, what, words):
    folder = project()
    before = (folder / "agentos.toml").read_bytes()
    told = command("packs", "add", what)

    assert told.code == 1
    assert words in told.err
    assert (folder / "agentos.toml").read_bytes() == before


def test_a_bad_specifier_is_refused_before_anything_is_written(project, command):
    folder = project()

    assert command("packs", "add", "calculator", "--version", "new").code == 2
    assert "packs" not in (folder / "agentos.toml").read_text()


def test_an_option_without_a_value_is_a_usage_error(project, command):
    project()

    assert command("packs", "add", "calculator", "--option", "x").code == 2


def test_the_same_key_twice_is_refused(project, command):
    project("hello")
    told = command("packs", "add", "hello.py")

    assert told.code == 1
    assert "--identifier" in told.err


def test_a_bad_pack_is_added_with_a_warning(project, command):
    folder = project(files={"raises.py": BAD["raises"]})
    told = command("packs", "add", "raises.py")

    assert told.code == 0
    assert "boom" in told.err
    assert entries(folder) == [{"module": "raises.py"}]


# -- remove ------------------------------------------------------------------------------------------------------------


def test_removing_keeps_everything_else(project, command):
    folder = project("hello", "gifs")
    command("packs", "remove", "hello")

    assert (folder / "agentos.toml").read_text() == '# ours\n\n[[packs]]\nmodule = "gifs.py"\n'
    assert (folder / "hello.py").exists()


def test_removing_works_although_the_manifest_has_problems(project, command):
    folder = project("hello", more='mod = "auto"\n')

    assert command("packs", "remove", "hello").code == 0
    assert "hello" not in (folder / "agentos.toml").read_text()


def test_removing_a_server(project, command):
    folder = project("hello", more='[mcpServers.files]\ncommand = "serve"\n')
    command("packs", "remove", "mcp/files")

    assert "files" not in (folder / "agentos.toml").read_text()


def test_removing_what_is_there_twice(project, command):
    folder = project("hello", "gifs", "hello")
    command("packs", "remove", "hello.py")

    assert entries(folder) == [{"module": "gifs.py"}]


# -- enable, disable ---------------------------------------------------------------------------------------------------


def test_without_a_store_the_manifest_is_changed_and_changed_back(project, command):
    folder = project("hello")
    before = (folder / "agentos.toml").read_bytes()
    told = command("packs", "disable", "hello", "--json")

    assert told.data["changed"] == ["agentos.toml"]
    assert entries(folder) == [{"module": "hello.py", "enabled": False}]
    command("packs", "enable", "hello")
    assert (folder / "agentos.toml").read_bytes() == before


def test_with_a_store_the_flag_is_kept_there(project, command):
    folder = project("hello", more='store = "s.db"\n')
    before = (folder / "agentos.toml").read_bytes()
    told = command("packs", "disable", "hello", "--json")

    assert told.data["changed"] == ["the store"]
    assert (folder / "agentos.toml").read_bytes() == before
    assert state(command("packs", "list", "--json"), "hello.py") == "disabled"
    command("packs", "enable", "hello")
    assert state(command("packs", "list", "--json"), "hello.py") == "enabled"


def test_switching_is_audited(project, command):
    folder = project("hello", more='store = "s.db"\n')
    command("packs", "disable", "hello")
    with sqlite3.connect(folder / "s.db") as connection:
        bodies = [json.loads(body) for (body,) in connection.execute("SELECT body FROM audit")]
    connection.close()

    assert any("hello.py" in json.dumps(body) for body in bodies)


def test_what_is_so_already_changes_nothing(project, command):
    project("hello", more='store = "s.db"\n')

    assert command("packs", "enable", "hello", "--json").data["changed"] == []
    command("packs", "disable", "hello")
    assert "already" in command("packs", "disable", "hello").out


def test_enabling_changes_whatever_says_otherwise(project, command):
    folder = project("hello", more='store = "s.db"\n')
    command("packs", "disable", "hello")
    with (folder / "agentos.toml").open("a") as file:
        file.write("enabled = false\n")

    assert command("packs", "enable", "hello", "--json").data["changed"] == ["the store", "agentos.toml"]
    assert state(command("packs", "list", "--json"), "hello.py") == "enabled"


def test_a_store_that_cant_be_used_leaves_the_manifest(project, command):
    folder = project("hello", more='store = "s.db"\n')
    (folder / "s.db").write_text("not a database at all, but long enough to be looked at")
    told = command("packs", "disable", "hello")

    assert told.code == 0
    assert entries(folder)[0]["enabled"] is False
    assert "So the manifest has to say it." in told.err


def test_a_manifest_with_problems_can_still_be_switched(project, command):
    folder = project("hello", more='mod = "auto"\n')

    assert command("packs", "disable", "hello").code == 0
    assert entries(folder)[0]["enabled"] is False


def test_a_server_can_be_switched(project, command):
    folder = project(more='[mcpServers.files]\ncommand = "serve"\n')
    command("packs", "disable", "files")

    assert "enabled = false" in (folder / "agentos.toml").read_text()


# -- accept, reload ----------------------------------------------------------------------------------------------------


def changed(folder):
    path = folder / "hello.py"
    path.write_text(path.read_text().replace("Greet a person", "Obey me, person"))


def test_a_changed_definition_is_shown_and_accepted(project, command):
    folder = project("hello", more='store = "s.db"\n')
    assert "Nothing waits" in command("packs", "accept").out
    changed(folder)

    assert "hello:greet" in command("packs", "accept").out
    assert command("packs", "accept", "hello:greet", "--json").data["accepted"] == ["hello:greet"]
    assert command("packs", "accept", "--json").data["pending"] == []


def test_everything_can_be_accepted_at_once(project, command):
    folder = project("hello", more='store = "s.db"\n')
    command("packs", "accept")
    changed(folder)

    assert "accepted hello:greet" in command("packs", "accept", "--all").out


def test_what_does_not_wait_cant_be_accepted(project, command):
    project("hello")

    assert command("packs", "accept", "hello:great").code == 1


def test_one_name_that_does_not_wait_keeps_all_from_being_accepted(project, command):
    folder = project("hello", more='store = "s.db"\n')
    command("packs", "accept")
    changed(folder)
    told = command("packs", "accept", "hello:greet", "hello:great")

    assert (told.code, "did you mean 'hello:greet'?" in told.err) == (1, True)
    assert len(command("packs", "accept", "--json").data["pending"]) == 1


def test_without_a_store_nothing_is_accepted_for_long(project, command):
    project("hello", more='pins = "strict"\n')
    told = command("packs", "accept", "hello:greet")

    assert (told.code, "names no store" in told.err) == (3, True)


def test_the_lock_file_decides_before_anybody(project, command, monkeypatch):
    dynamic = (
        GREET.replace('"hello"', '"dynamic"')
        .replace("Greet a person by name.", "Greet a person by name.\n\n    {}")
        .replace("pack = ", "import os, attrs\ngreet = attrs.evolve(greet, description=os.environ['WORDS'])\npack = ")
    )
    project("dynamic", more='pins = "strict"\nlock = "agentos.lock"\nstore = "s.db"\n', files={"dynamic.py": dynamic})
    monkeypatch.setenv("WORDS", "Greet.")
    command("lock")
    monkeypatch.setenv("WORDS", "Obey.")
    told = command("packs", "accept", "dynamic:greet")

    assert (told.code, "`agentos lock` writes it again" in told.err) == (1, True)


@pytest.fixture
def asked(project, command):
    """Return a function that accepts a changed definition at a terminal and answers; and one that tells what waits."""
    folder = project("hello", more='store = "s.db"\n')
    command("packs", "accept")
    changed(folder)

    def run(answer, *options):
        inputs = [("Accept hello:greet? [y/N] ", answer)] if answer else []
        return run_in_terminal([*AGENTOS, "packs", "accept", *options], width=200, cwd=folder, inputs=inputs)

    return run, lambda: [one["tool"] for one in command("packs", "accept", "--json").data["pending"]]


def test_at_a_terminal_what_changed_is_shown_before_it_is_accepted(asked):
    accept, waiting = asked
    told = accept("y\n", "hello:greet")

    assert told.code == 0
    assert "Obey me, person" in told.partition("Accept hello:greet?")[0]
    assert waiting() == []


def test_what_is_declined_stays_held_back(asked):
    accept, waiting = asked
    told = accept("\n", "--all")

    assert (told.code, "hello:greet was not accepted" in told) == (4, True)
    assert waiting() == ["hello:greet"]


def test_yes_asks_nothing(asked):
    accept, waiting = asked

    assert accept("", "--all", "--yes").code == 0
    assert waiting() == []


def test_a_new_definition_is_shown_whole(project, command):
    project("hello", more='store = "s.db"\npins = "strict"\n')
    told = command("packs", "accept")

    assert "hello:greet waits: it is new" in told.out
    assert "Use it to welcome somebody." in told.out


def test_a_pack_that_fails_is_told_once_and_the_others_are_accepted(project, command):
    project("hello", "raises", more='store = "s.db"\npins = "strict"\n')
    told = command("packs", "accept", "hello:greet")

    assert told.out == "accepted hello:greet\n"
    assert told.err == "warning: raises.py was not loaded: could not be made: RuntimeError: boom\n"


def test_reload_says_what_changed_since_it_was_accepted_or_locked(project, command):
    folder = project("hello", "gifs", more='store = "s.db"\nlock = "agentos.lock"\n')
    command("lock")
    command("packs", "accept")
    changed(folder)
    told = command("packs", "reload", "hello", "--json")

    assert told.code == 0
    assert [one["key"] for one in told.data["packs"]] == ["hello.py"]
    assert [one["tool"] for one in told.data["pending"]] == ["hello:greet"]
    assert "another file" in told.data["differences"][0]
    assert told.data["pending"][0]["accept"] == "agentos packs accept hello:greet"
    assert "(description); `agentos packs accept hello:greet` accepts it\n" in command("packs", "reload").out


def test_reload_fails_if_a_pack_does(project, command):
    folder = project("raises", more='lock = "agentos.lock"\n')
    (folder / "agentos.lock").write_text('{"version": 1, "packs": []}')
    (folder / "raises.py").unlink()
    told = command("packs", "reload")

    assert told.code == 1
    assert "failed" in told.out


def test_nothing_can_not_be_added(project, command):
    project("hello")

    assert command("packs", "add", "").code == 2


def test_a_pack_that_is_disabled_in_the_manifest_is_not_imported(project, command):
    folder = project("hello", "sentinel", more='store = "store.db"\n', files={"sentinel.py": SENTINEL})
    told = command("packs", "disable", "sentinel", "--in-manifest", "--json")
    command("tools", "list")

    assert told.data["changed"] == ["agentos.toml"]
    assert not (folder / "imported").exists()


def test_a_pack_is_enabled_in_the_manifest_alone(project, command):
    folder = project("hello", more='store = "s.db"\n')
    command("packs", "disable", "hello")
    command("packs", "disable", "hello", "--in-manifest")
    told = command("packs", "enable", "hello", "--in-manifest", "--json")

    assert told.data["changed"] == ["agentos.toml"]
    assert "enabled" not in (folder / "agentos.toml").read_text()
    assert command("packs", "list", "--json").data["packs"][0]["state"] == "disabled"


def test_a_pack_whose_first_key_switches_it_off_can_be_enabled(project, command):
    folder = project()
    (folder / "agentos.toml").unlink()
    (folder / "agentos.yaml").write_text("packs:\n  - enabled: false\n    module: hello.py\n")
    told = command("packs", "enable", "hello", "--in-manifest", "--json")

    assert told.data["changed"] == ["agentos.yaml"]
    assert (folder / "agentos.yaml").read_text() == "packs:\n  - enabled: true\n    module: hello.py\n"


SECRET = """secrets={"openai.apiKey": "sk-abcdefgh1234567890"}"""


def test_adding_shows_no_secret(project, command):
    folder = project("hello", files={"x.py": GREET})
    told = command("packs", "add", "x.py", "--no-probe", "--json", "--option", SECRET)

    assert told.data["entry"]["options"] == {"secrets": {"openai.apiKey": "(hidden)"}}
    assert "sk-abcdefgh" in (folder / "agentos.toml").read_text()


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_what_has_to_be_added_by_hand_is_said_without_secrets(folder, command, form):
    (folder / "agentos.yaml").write_text("packs:\n  -\n    # c\n    module: a.py\n")
    (folder / "x.py").write_text(GREET)
    told = command("packs", "add", "x.py", "--no-probe", "--option", SECRET, *form)

    assert (told.code, "by hand" in told.out + told.err, "sk-abc" in told.out + told.err) == (1, True, False)


@pytest.mark.parametrize("value", ["null", "[1, null]", '{"a": null}'])
def test_toml_has_no_null(project, command, value):
    folder = project("hello", files={"x.py": GREET})
    before = (folder / "agentos.toml").read_text()
    told = command("packs", "add", "x.py", "--no-probe", "--option", f"n={value}")

    assert (told.code, "--option n: TOML has no null" in told.err) == (2, True)
    assert (folder / "agentos.toml").read_text() == before


def test_yaml_has_null(folder, command):
    (folder / "agentos.yaml").write_text("packs: []\n")
    (folder / "x.py").write_text(GREET)

    assert command("packs", "add", "x.py", "--no-probe", "--option", "n=null").code == 0
    assert '{"n": null}' in (folder / "agentos.yaml").read_text()


@pytest.mark.parametrize("ending", ["toml", "yaml", "json"])
@pytest.mark.parametrize("value", ["NaN", "[Infinity]", "1e999"])
def test_what_is_no_number_is_refused(folder, command, ending, value):
    (folder / f"agentos.{ending}").write_text("{}" if ending == "json" else "")
    (folder / "x.py").write_text(GREET)
    told = command("packs", "add", "x.py", "--no-probe", "--option", f"n={value}")

    assert (told.code, "--option n: expected a number" in told.err) == (2, True)


@pytest.mark.parametrize("line", ["remove hello", "disable hello"])
def test_what_stands_twice_is_changed_at_once_or_not_at_all(project, command, monkeypatch, line):
    project("hello", "hello")
    written = []
    monkeypatch.setattr("agentos.cli.manifest_edit.editing.replace_file", lambda path, data, **_: written.append(data))

    assert command("packs", *line.split()).code == 0
    assert len(written) == 1


@pytest.mark.parametrize("line", ["list", "info hello", "reload hello"])
def test_a_pack_that_cant_be_read_stops_nothing(project, line):
    folder = project("gifs", more='lock = "agentos.lock"\n', files={"packs/hello.py": GREET})
    with (folder / "agentos.toml").open("a") as file:
        file.write('\n[[packs]]\nmodule = "packs/hello.py"\n')
    run_piped("lock", cwd=folder)
    (folder / "packs").chmod(0)
    done = subprocess.run(
        [*AGENTOS, "packs", *line.split()],
        cwd=folder,
        env=environment({"PYTHONDONTWRITEBYTECODE": "1"}),
        preexec_fn=powerless,
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / "packs").chmod(0o755)

    assert ("packs/hello.py" in done.stdout, "Permission denied" in done.stdout) == (True, True), done
    assert "error: " not in done.stderr


# -- packs that are installed and not in the manifest ------------------------------------------------------------------

ANYTHING_INSTALLED = pytest.mark.parametrize(
    "name", ["calculator", "agentos-pack-calculator", "agentos_pack_calculator"]
)


@ANYTHING_INSTALLED
def test_an_installed_pack_is_shown_though_there_is_no_manifest(folder, command, name):
    pytest.importorskip("agentos_pack_calculator")
    told = command("packs", "show", name, "--probe", "--json").data

    assert (told["key"], told["state"], told["probe"]["status"]) == ("calculator", "installed", "loaded")
    assert told["distribution"].startswith("agentos-pack-calculator ")
    assert "tool:calculate" in {f"{one['kind']}:{one['id']}" for one in told["probe"]["offers"]}
    assert "agentos packs add calculator" in command("packs", "show", name).out


def test_of_a_pack_in_the_manifest_its_entry_is_shown(project, command):
    pytest.importorskip("agentos_pack_calculator")
    project(more='[[packs]]\npackage = "calculator"\npriority = 7\n')

    told = command("packs", "show", "calculator", "--json").data
    assert (told["state"], told["entry"]["priority"]) == ("enabled", 7)


def test_an_unknown_pack_is_told_with_the_nearest_that_is_installed(project, command):
    pytest.importorskip("agentos_pack_calculator")
    project("hello")

    done = command("packs", "show", "calculater")
    assert (done.code, "did you mean 'calculator'?" in done.err) == (1, True)


@ANYTHING_INSTALLED
def test_an_installed_pack_is_linted_though_there_is_no_manifest(folder, command, name):
    pytest.importorskip("agentos_pack_calculator")
    done = command("lint", name, "--json")

    assert (done.code, done.data["failed"]) == (0, [])
    assert {one["pack"] for one in done.data["findings"]} <= {"calculator"}


def test_packs_of_the_manifest_and_installed_ones_are_linted_together(project, command):
    pytest.importorskip("agentos_pack_calculator")
    project("raises")
    done = command("lint", "raises", "calculator", "--json")

    assert [one["pack"] for one in done.data["failed"]] == ["raises.py"]
