"""`agentos stacks` and `agentos why`: who is in force and why, whatever packs do."""

import subprocess

import pytest
from commanding import HOSTILE, MANIFEST, Project
from powerless import powerless
from terminal import AGENTOS, environment, run_in_terminal, run_piped

from agentos.cli.held_back import way_to_accept
from agentos.cli.layered_config import load_config

SECOND = '''
from agentos import PUBLIC, Descriptor, ExtensionPack, tool

@tool(effect="read", required_access=PUBLIC)
async def add(a: int) -> int:
    """Add nothing."""
    return a

@tool(effect="read", required_access=("a:read", "b:read"))
async def closed() -> int:
    """Tell insiders."""
    return 1

@tool(effect="read", required_access=PUBLIC)
async def gated() -> int:
    """Wait for a key."""
    return 1

def create_extension_pack(context):
    kept = Descriptor("tool", "gated", gated, required_secrets=["giphy.apiKey"])
    return ExtensionPack("second", "2.0", [add, closed, kept])
'''
WITH_SECOND = (
    'deny = ["demo:w*"]\n' + MANIFEST + '[[packs]]\nmodule = "second.py"\n[principals.eve]\naccess = ["a:read"]\n'
)
HANGS = "import time; time.sleep(600)"
EXITS = "import os; os._exit(7)"


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path, WITH_SECOND, second=SECOND)


def test_stacks_draws_every_stack_strongest_first(project):
    done = project.run("stacks")
    lines = [line.split() for line in done.out.splitlines()]

    assert done.code == 0
    assert lines[:2] == [["tool"], ["id", "state", "pack", "priority", "why"]]
    at = next(number for number, line in enumerate(lines) if line[0] == "add")
    assert (lines[at][2:5], lines[at + 1][1:4]) == (["active", "second", "2.0"], ["shadowed", "demo", "1.0"])
    assert ["friendly", "●", "active", "demo", "1.0"] in [line[:5] for line in lines]


def test_stacks_of_one_kind(project):
    told = project.run("stacks", "mood", "--json").json

    assert [(stack["kind"], stack["id"], stack["active"]) for stack in told["stacks"]] == [("mood", "friendly", "demo")]


def test_stacks_of_an_unknown_kind_suggests_the_nearest(project):
    done = project.run("stacks", "tools")

    assert (done.code, "did you mean 'tool'?" in done.err) == (1, True)


def test_nothing_to_draw_is_said(tmp_path):
    assert "There are no stacks" in Project(tmp_path, "").run("stacks").out


def test_looking_writes_nothing(project):
    project.run("stacks")
    project.run("why", "tool:add")

    assert not (project.folder / "state.db").exists()


def test_a_narrow_terminal_gets_records(project):
    argv = [*AGENTOS, "stacks", "tool"]
    told = run_in_terminal(argv, width=40, cwd=project.folder, env={**project.env, "NO_COLOR": "1"})

    assert "\n  state    ● active\n  pack     second 2.0\n" in told
    assert max(map(len, told.splitlines())) <= 40


def test_colours_are_for_terminals(project):
    told = run_in_terminal([*AGENTOS, "stacks", "tool"], width=120, cwd=project.folder, env=project.env)

    assert "\x1b[1;32m● active" in told
    assert "\x1b" not in project.run("stacks").out


def test_why_tells_who_answers_and_who_does_not(project):
    done = project.run("why", "tool:add")

    assert done.code == 0
    assert done.out.startswith("tool:add: active from second 2.0\n")
    assert "shadowed" in done.out
    assert str(project.folder / "second.py") in done.out


@pytest.mark.parametrize("name", ["demo:add", "tool:demo:add"])
def test_why_says_that_the_full_id_of_a_shadowed_tool_reaches_it(project, name):
    done = project.run("why", name, "--principal", "eve")

    assert "demo:add is shadowed; its full id reaches it" in done.out
    assert "eve may call demo:add" in done.out
    assert project.run("why", name, "--json").json["isReachedById"] is True


@pytest.mark.parametrize("name", ["add", "second:add", "tool:add"])
def test_why_says_nothing_of_that_where_the_tool_in_force_is_meant(project, name):
    assert "its full id" not in project.run("why", name).out
    assert project.run("why", name, "--json").json["isReachedById"] is False


def test_the_call_that_is_shown_for_a_shadowed_tool_reaches_it(project):
    assert "agentos tools call demo:add" in project.run("tools", "show", "demo:add").out
    assert "agentos tools call add" in project.run("tools", "show", "second:add").out


def test_why_without_a_kind_is_about_a_tool(project):
    assert project.run("why", "add", "--json").json["kind"] == "tool"


HOLLOW = '''
from agentos import PUBLIC, Descriptor, ExtensionPack, tool

@tool(effect="read", required_access=PUBLIC)
async def web_search(query: str) -> str:
    """Search."""
    return query

def create_extension_pack(context):
    return ExtensionPack("cache", "1", [Descriptor("tool", "web_search", web_search, wraps=True)])
'''


@pytest.mark.parametrize("arguments", [["stacks"], ["why", "web_search"], ["doctor"]])
def test_a_wrapper_with_nothing_beneath_is_told(tmp_path, arguments):
    project = Project(tmp_path, '[[packs]]\nmodule = "cache.py"\n', cache=HOLLOW)

    assert "wraps, but nothing is beneath it" in project.run(*arguments).out


def test_a_wrapper_with_something_beneath_is_healthy(tmp_path):
    beneath = HOLLOW.replace(", wraps=True", "").replace('"cache"', '"search"')
    manifest = '[[packs]]\nmodule = "search.py"\n[[packs]]\nmodule = "cache.py"\n'
    project = Project(tmp_path, manifest, cache=HOLLOW, search=beneath)

    assert "nothing is beneath" not in project.run("stacks").out
    assert "Nothing is wrong." in project.run("doctor").out


def test_why_names_the_secret_that_is_missing_and_the_way_to_set_it(project):
    done = project.run("why", "gated")

    assert "tool:gated: nobody is active" in done.out
    assert "agentos secrets add giphy.apiKey" in done.out


@pytest.mark.parametrize("name", ["", ":", "tool:", ":add"])
def test_why_of_nothing_is_a_usage_error(project, name):
    assert project.run("why", name).code == 2


def test_why_of_something_unknown_suggests_the_nearest(project):
    done = project.run("why", "tool:gatd", "--json")

    assert (done.code, "did you mean 'tool:gated'?" in done.json["error"]["message"]) == (1, True)


@pytest.mark.parametrize("name", ["demo:wipe", "tool:demo:wipe", "tool:wipe", "wipe"])
def test_why_takes_every_name_that_agentos_prints(project, name):
    told = project.run("why", name, "--json").json

    assert (told["kind"], told["id"], told["active"]) == ("tool", "wipe", "demo")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("toool:wipe", "tool:wipe"), ("demmo:wipe", "demo:wipe"), ("mood:frendly", "mood:friendly")],
)
def test_why_of_an_unknown_kind_or_pack_suggests_the_nearest(project, name, meant):
    done = project.run("why", name)

    assert (done.code, f"did you mean {meant!r}?" in done.err) == (1, True)


def test_why_tells_a_principal_which_rule_it_lacks(project):
    done = project.run("why", "tool:closed", "--principal", "eve")

    assert done.out.endswith("eve may not call second:closed: it lacks the rule b:read\n")
    assert "lacks the rules a:read, b:read" in project.run("why", "tool:closed", "--principal", "ann").out


def test_why_tells_a_principal_what_it_may_call(project):
    assert project.run("why", "tool:note", "--principal", "ann", "--json").json["access"] == {
        "principal": "ann",
        "tool": "demo:note",
        "isAllowed": True,
        "missing": [],
    }
    assert "ann may call demo:note" in project.run("why", "tool:note", "--principal", "ann").out


def test_why_tells_what_the_host_denies(project):
    assert "The host's `deny` keeps it from running: demo:w*" in project.run("why", "wipe").out


def test_access_is_about_tools_in_force(project):
    assert project.run("why", "tool:gated", "--principal", "ann", "--json").json["access"] is None
    assert project.run("why", "mood:friendly", "--principal", "ann", "--json").json["access"] is None


@pytest.mark.parametrize(("bad", "status"), [(EXITS, "exited"), ("raise ValueError('no')", "failed")])
def test_a_bad_pack_is_named_and_the_others_are_told_of(tmp_path, bad, status):
    manifest = '[[packs]]\nmodule = "bad.py"\n' + MANIFEST.replace('store = "state.db"\n', "")
    project = Project(tmp_path, manifest, bad=bad)
    done = project.run("why", "tool:add")

    assert done.out.startswith("tool:add: active from demo 1.0")
    assert f"bad.py was not loaded ({status})" in done.err
    assert f"bad.py was not loaded ({status})" in project.run("stacks").err


def test_people_see_which_pack_they_wait_for(tmp_path):
    project = Project(tmp_path, '[[packs]]\nmodule = "bad.py"\n', bad=HANGS)
    options = {"cwd": project.folder, "env": project.env, "width": 200}
    told = run_in_terminal([*AGENTOS, "stacks", "--deadline", "2"], **options)

    assert "\r\x1b[2Kloading bad.py ...\r\x1b[2K" in told
    assert "bad.py was not loaded (hung)" in told


def test_ctrl_c_does_not_wait_for_a_pack_that_hangs(tmp_path):
    project = Project(tmp_path, '[[packs]]\nmodule = "bad.py"\n', bad=HANGS)
    options = {"cwd": project.folder, "env": project.env, "inputs": [("loading bad.py", "\x03")]}

    assert run_in_terminal([*AGENTOS, "why", "add"], **options).code == 130


def test_what_was_not_loaded_may_have_offered_it(tmp_path):
    project = Project(tmp_path, MANIFEST + '[[packs]]\nmodule = "bad.py"\n', bad=EXITS)
    done = project.run("why", "tool:other")

    assert done.code == 1
    assert "it may be offered by what was not loaded:" in done.err
    assert "bad.py" in done.err


@pytest.mark.parametrize("mode", [0o555, 0o111])
def test_what_is_disabled_in_a_store_that_cant_be_written_is_known_or_said_not_to_be(tmp_path, mode):
    project = Project(tmp_path)
    project.run("packs", "disable", "pack")
    ours = [path for path in project.folder.iterdir() if path.name.startswith("state.db") and path.is_file()]
    for path in ours:
        path.chmod(mode)
    project.folder.chmod(0o555)
    try:
        ends = [
            subprocess.run(
                [*AGENTOS, *words],
                cwd=project.folder,
                env=environment(project.env),
                preexec_fn=powerless,
                capture_output=True,
                text=True,
                check=False,
            )
            for words in (["stacks"], ["why", "tool:add"], ["packs", "list"])
        ]
    finally:
        project.folder.chmod(0o755)

    words = "which packs were disabled there is not known" if mode == 0o111 else "disabled"
    assert [words in (done.stderr if mode == 0o111 else done.stdout) for done in ends] == [True, True, True]


def test_a_store_that_cannot_be_used_is_told_of(tmp_path):
    project = Project(tmp_path)
    project.write("state.db", "this is no database, but it is long enough to be looked at as one" * 100)

    assert "warning: store:" in project.run("stacks").err


@pytest.fixture
def changed(project):
    """Return the project with a tool whose definition changed since it was accepted."""
    project.run("tools", "list")
    project.write("second.py", SECOND.replace("Tell insiders.", "Tell everybody."))
    return project


@pytest.mark.parametrize("arguments", [("stacks",), ("why", "tool:closed")])
def test_what_is_held_back_is_told_with_the_command_that_accepts_it(changed, arguments):
    done = changed.run(*arguments)

    assert "held back: the definition of second:closed changed" in done.out
    assert "`agentos packs accept second:closed` accepts" in done.out
    assert "pins.accept" not in done.out
    (held,) = changed.run(*arguments, "--json").json["heldBack"]
    assert (held["tool"], held["accept"]) == ("second:closed", "agentos packs accept second:closed")


def test_what_the_lock_file_holds_back_is_accepted_by_another_lock(project):
    project.write("agentos.toml", 'pins = "strict"\nlock = "agentos.lock"\n' + WITH_SECOND)
    project.run("lock")
    config = load_config(project.folder / "agentos.toml", {})

    assert way_to_accept(config, "second:closed") == "agentos lock"
    assert way_to_accept(config, "second:unheard-of") == "agentos packs accept second:unheard-of"
    project.write("agentos.lock", "no lock")
    assert way_to_accept(config, "second:closed") == "agentos packs accept second:closed"


def test_foreign_text_does_nothing_to_a_terminal(tmp_path):
    manifest = MANIFEST + '[[packs]]\nmodule = "evil.py"\n'
    evil = HOSTILE + "\nraise ValueError(EVIL)\n"
    done = run_piped("stacks", cwd=Project(tmp_path, manifest, evil=evil).folder)

    assert "loud" in done.stderr
    assert not {"\x1b", "\x9b", "\x07", "\u202e"} & set(done.stdout + done.stderr)
