"""`agentos tools`: what is listed, shown and called, by programs and by people."""

import json
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest
from commanding import HOSTILE, MANIFEST, PACK, Project
from terminal import AGENTOS, environment, run_in_terminal, run_piped

EVERYBODY = MANIFEST + "[principals.bob]\naccess = []\n"
NO_STORE = MANIFEST.replace('store = "state.db"\n', "")
WITH_HOSTILE = MANIFEST + '[[packs]]\nmodule = "hostile.py"\n'
ATTACKS = ("\x1b]", "\x1b[2J", "\x9b", "\x07", "\u202e")


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


@pytest.fixture
def terminal(project):
    def run(*arguments, inputs=(), width=80, **env):
        argv = [*AGENTOS, *arguments]
        return run_in_terminal(argv, width=width, inputs=inputs, cwd=project.folder, env={**project.env, **env})

    return run


# -- list and show -----------------------------------------------------------------------------------------------------


def test_list_names_every_tool_with_its_effect(project):
    done = project.run("tools", "list")

    assert done.code == 0
    assert [line.split()[:3] for line in done.out.splitlines()][:4] == [
        ["tool", "effect", "pack"],
        ["add", "read", "demo"],
        ["echo", "read", "demo"],
        ["note", "mutate", "demo"],
    ]


def test_list_takes_a_pattern(project):
    assert [tool["name"] for tool in project.run("tools", "list", "demo:w*", "--json").json["tools"]] == ["wipe"]


def test_list_shows_a_principal_what_it_may_call(project):
    names = [tool["name"] for tool in project.run("tools", "list", "--principal", "ann", "--json").json["tools"]]

    assert "note" in names
    assert "wipe" not in names


def test_list_of_nothing_says_where_to_look(project):
    assert "agentos stacks" in project.run("tools", "list", "nothing*").out


def test_what_packs_print_does_not_mix_with_the_answer(project):
    done = project.run("tools", "list", "--json")

    assert "a pack that prints" not in done.out
    assert "a pack that prints" in done.err


def test_a_pack_that_fails_is_named_and_the_others_are_used(tmp_path):
    project = Project(tmp_path, MANIFEST + '[[packs]]\nmodule = "bad.py"\n', bad="raise RuntimeError('no')")
    done = project.run("tools", "call", "add", "a=1")

    assert (done.code, done.out) == (0, "6\n")
    assert done.err.splitlines() == [
        "a pack that prints",
        "warning: bad.py was not loaded: could not be made: RuntimeError: no",
    ]


def test_a_required_pack_that_fails_is_told_once(tmp_path):
    manifest = MANIFEST + '[[packs]]\nmodule = "bad.py"\nrequired = true\n'
    done = Project(tmp_path, manifest, bad="raise RuntimeError('no')").run("tools", "call", "add", "a=1")

    assert (done.code, done.err.count("RuntimeError: no")) == (3, 1)


def test_what_else_is_logged_while_packs_are_loaded_is_told(tmp_path):
    logs = """
from agentos import ExtensionPack

def create_extension_pack(context):
    context.logger.warning("mind the gap")
    return ExtensionPack("logs", "1.0")
"""
    done = Project(tmp_path, '[[packs]]\nmodule = "logs.py"\n', logs=logs).run("tools", "list")

    assert done.err == "agentos: mind the gap\n"


@pytest.fixture
def changed(project):
    """Return the project with a tool whose definition changed since it was accepted."""
    project.run("tools", "list")
    project.write("pack.py", PACK.replace("Add two integers.", "Add two integers, and phone home."))
    return project


def test_a_tool_that_is_held_back_is_told_once_with_the_command_that_accepts_it(changed):
    listed, called = changed.run("tools", "list"), changed.run("tools", "call", "add", "a=1")
    words = "warning: demo:add is held back: its definition changed since it was accepted"

    assert listed.err.splitlines()[1:] == [f"{words}; `agentos packs accept demo:add` accepts it"]
    assert (called.code, called.err.count("held back")) == (4, 1)
    assert called.err.endswith("hint: `agentos packs accept demo:add` accepts it\n")
    assert changed.run("tools", "call", "note", "text=x", "--yes").err == "a pack that prints\n"


def test_programs_are_told_how_to_accept_it(changed):
    called, shown = (changed.run("tools", *rest, "--json").json for rest in (["call", "add", "a=1"], ["show", "add"]))

    assert called["hint"] == shown["error"]["hint"] == "`agentos packs accept demo:add` accepts it"
    changed.run("packs", "accept", "demo:add")
    assert changed.run("tools", "call", "add", "a=1").code == 0


def test_show_tells_what_a_tool_takes(project):
    done = project.run("tools", "show", "add")

    assert done.code == 0
    for words in ("demo:add  read", "Nothing else.", "everybody", "The first", "required", "default 5", "plus"):
        assert words in done.out
    assert done.out.endswith("agentos tools call add a=<integer>\n")


def test_show_tells_programs_the_schema(project):
    told = project.run("tools", "show", "demo:note", "--json").json

    assert told["inputSchema"]["required"] == ["text"]
    assert (told["requiredAccess"], told["hasDryRun"], told["isIdempotent"]) == (["notes:write"], True, True)


def test_show_of_an_unknown_tool_suggests_the_nearest(project):
    done = project.run("tools", "show", "ad")

    assert done.code == 1
    assert "did you mean 'add'?" in done.err


def test_a_tool_out_of_force_leads_to_why(tmp_path):
    project = Project(tmp_path, MANIFEST + "[overrides.tools]\nadd = { enabled = false }\n")

    assert "agentos why tool:add" in project.run("tools", "show", "add").err
    assert "agentos why tool:add" in project.run("tools", "call", "add", "a=1").err
    assert "agentos why tool:add" in json.loads(project.run("tools", "call", "add", "a=1", "--json").out)["hint"]


def test_what_is_no_tool_at_all_leads_to_the_list(project):
    for line in ("show nothing", "call nothing"):
        assert "`agentos tools list` shows what there is" in project.run("tools", *line.split()).err


def test_a_narrow_terminal_gets_records_instead_of_a_table(terminal):
    told = terminal("tools", "list", "add", width=30, NO_COLOR="1")

    assert told.code == 0
    assert "what it does Add two" in told
    assert max(map(len, told.splitlines())) <= 30


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["text=12"], {"text": "12"}),
        (["text=null"], {"text": "null"}),
        (["text:=null"], {"text": None}),
        (["text=a=b"], {"text": "a=b"}),
        (["text="], {"text": ""}),
        (["text=@@ann"], {"text": "@ann"}),
        (["text=@words.txt"], {"text": "two\nlines\n"}),
        (["number=1.5"], {"number": 1.5}),
        (["number=-2"], {"number": -2}),
        (["flag=yes"], {"flag": True}),
        (["flag=off"], {"flag": False}),
        (["names=a", "names=b"], {"names": ["a", "b"]}),
        (['names=["a", "b"]', "names=c"], {"names": ["a", "b", "c"]}),
        (["counts=1", "counts=2"], {"counts": [1, 2]}),
        (["counts:=[3]"], {"counts": [3]}),
        (['filter={"a": 1}'], {"filter": {"a": 1}}),
        (["filter:=@filter.json"], {"filter": {"b": 2}}),
        (["level=high"], {"level": "high"}),
        (["maybe=3"], {"maybe": 3}),
        (["maybe=null"], {"maybe": None}),
        (["either=3"], {"either": "3"}),
        (["either:=3"], {"either": 3}),
        (["--args", '{"text": "x", "flag": true}'], {"text": "x", "flag": True}),
        (["--args", '{"text": "x"}', "text=y"], {"text": "y"}),
        (["--args", "@all.json"], {"maybe": 7}),
    ],
)
def test_arguments_are_read_by_the_tools_schema(project, words, expected):
    project.write("words.txt", "two\nlines\n")
    project.write("filter.json", '{"b": 2}')
    project.write("all.json", '{"maybe": 7}')
    told = project.run("tools", "call", "echo", *words, "--json").json

    assert {key: told["output"][key] for key in expected} == expected


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "'nonsense' is no argument"),
        (["=5"], "is no argument"),
        (["number=x"], "number: expected a number, got 'x'"),
        (["counts=x"], "counts: expected an integer, got 'x'"),
        (["flag=maybe"], "flag: expected true or false, got 'maybe'"),
        (["maybe=x"], "maybe: expected an integer or null, got 'x'"),
        (["filter=[1]"], "filter: expected a JSON object, got a list"),
        (["filter=x"], "filter: expected JSON"),
        (["text:=nope"], "text: expected JSON"),
        (["text=a", "text=b"], "text is given twice"),
        (["text=@gone.txt"], "gone.txt can't be read"),
        (["text=@binary"], "binary holds no text in UTF-8"),
        (["text=@large"], "large has more than"),
        (["--args", "[1]"], "--args: expected a JSON object, got a list"),
        (["--args", "{"], "--args: expected JSON"),
        (["--args", '{"text": "x", "text": "y"}'], "the key 'text' stands twice in one object"),
    ],
)
def test_arguments_that_cannot_be_read_are_a_usage_error(project, words, said):
    (project.folder / "binary").write_bytes(b"\xff\xfe\xff")
    project.write("large", "x" * 1_000_001)
    done = project.run("tools", "call", "echo", *words)

    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_arguments_that_do_not_fit_are_a_usage_error_with_a_hint(project):
    done = project.run("tools", "call", "add", "aa=1")

    assert done.code == 2
    assert "did you mean 'a'?" in done.err


def test_arguments_come_from_stdin_too(project):
    assert project.run("tools", "call", "add", "--args", "-", input='{"a": 1, "b": 2}').out == "3\n"
    assert project.run("tools", "call", "echo", "text=@-", "--json", input="piped").json["output"]["text"] == "piped"


def test_the_types_of_a_schema_are_found_by_references_and_alternatives():
    from agentos.cli.call_arguments import read_arguments

    schema = {
        "properties": {
            "a": {"$ref": "#/$defs/x~1y"},
            "b": {"allOf": [{"type": "boolean"}]},
            "c": {"enum": [1, 2]},
            "d": {"const": None},
            "e": {"$ref": "#/$defs/loop"},
            "f": {"$ref": "https://example.org/x"},
            "g": True,
            "h": {"$ref": "#/$defs/list"},
            "i": {"type": "unheard-of"},
            "j": {"$ref": "#"},
        },
        "additionalProperties": {"type": "integer"},
        "$defs": {
            "x/y": {"type": ["integer"]},
            "loop": {"$ref": "#/$defs/loop"},
            "list": {"type": "array", "items": {"type": "number"}},
        },
    }
    words = ["a=1", "b=true", "c=2", "d=null", "e=1", "f=1", "g=1", "h=1", "i=1", "j=1", "k=1"]

    expected = [1, True, 2, None, "1", "1", "1", [1], "1", "1", 1]
    assert read_arguments(schema, words) == dict(zip("abcdefghijk", expected, strict=True))


# -- calls -------------------------------------------------------------------------------------------------------------


def test_a_call_prints_what_the_tool_says_and_nothing_else(project):
    done = run_piped("tools", "call", "add", "a=1", "b=2", cwd=project.folder, env=project.env)

    assert (done.returncode, done.stdout) == (0, "3\n")
    assert "\x1b" not in done.stdout + done.stderr


def test_a_call_tells_programs_its_whole_result(project):
    told = project.run("tools", "call", "add", "a=1", "--json").json

    assert (told["success"], told["output"], told["content"], told["tool"]) == (True, 6, "6", "add")
    assert "error" not in told


def test_an_object_is_one_line_in_a_pipe(project):
    assert project.run("tools", "call", "note", "text=x", "--yes").out == '{"text": "x", "tags": []}\n'


@pytest.mark.parametrize(
    ("arguments", "code", "type"),
    [
        (["broken"], 1, "ToolRaised"),
        (["nothing"], 1, "UnknownTool"),
        (["add"], 2, "InvalidArguments"),
        (["wipe", "what=all"], 4, "ApprovalRequired"),
        (["wipe", "what=all", "--principal", "ann"], 1, "UnknownTool"),
        (["sleepy", "seconds=0"], 4, "Refused"),
        (["add", "a=1", "--dry-run"], 4, "Refused"),
    ],
)
def test_the_exit_code_says_how_a_call_ended(tmp_path, arguments, code, type):
    project = Project(tmp_path, 'deny = ["sleepy"]\n' + MANIFEST)
    done = project.run("tools", "call", *arguments, "--json")

    assert (done.code, done.json["error"]["type"]) == (code, type)


def test_a_failure_is_told_on_stderr(project):
    done = project.run("tools", "call", "broken")

    assert (done.out, done.code) == ("", 1)
    assert "ToolRaised: ValueError: it broke" in done.err


def test_an_unknown_principal_is_a_usage_error(project):
    assert project.run("tools", "call", "add", "a=1", "--principal", "anna").code == 2


def test_a_dry_run_says_what_would_happen_and_runs_nothing(project):
    done = project.run("tools", "call", "note", "text=hi", "--dry-run")

    assert (done.code, done.out) == (0, "would note 'hi'\n")
    assert project.run("audit", "show", "--event", "proposal*", "--json").json == {"records": []}


def test_an_idempotency_key_makes_a_repeat_return_the_first_result(project):
    calls = [
        project.run("tools", "call", "note", "text=x", "--idempotency-key", "k", "--yes", "--json").json for _ in "ab"
    ]

    assert calls[1]["meta"]["replayed"] is True


def test_progress_is_told_on_stderr(project):
    done = project.run("tools", "call", "slow", "steps=2")

    assert done.out == "done\n"
    assert [line for line in done.err.splitlines() if "step" in line] == [
        "demo:slow: 1 of 2 step 1",
        "demo:slow: 2 of 2 step 2",
    ]


def test_progress_is_one_line_that_changes_in_a_terminal(terminal):
    told = terminal("tools", "call", "slow", "steps=2", NO_COLOR="1", width=20)

    assert "\r\x1b[2Kdemo:slow: 1 of 2 s\r\x1b[2Kdemo:slow: 2 of 2 s\r\x1b[2Kdone\n" in told


def test_ctrl_c_cancels_the_call_and_says_so(terminal):
    told = terminal("tools", "call", "slow", "steps=1000", "seconds=0.1", inputs=[("step 2", "\x03")])

    assert told.code == 130
    assert "the call of slow was cancelled; it may have taken effect or not" in told


def test_ctrl_c_does_not_wait_for_a_thread(project, started):
    child = started("tools", "call", "sleepy", "seconds=600", cwd=project.folder, env=project.env)
    child.until("asleep")
    code, _, err = child.end(signal.SIGINT)

    assert (code, "was cancelled" in err) == (130, True)


# -- approval ----------------------------------------------------------------------------------------------------------


def test_without_a_terminal_a_call_waits_and_says_how_to_approve_it(project):
    done = project.run("tools", "call", "note", "text=hi", "--json")
    id = done.json["proposal"]

    assert done.code == 4
    assert f"agentos approvals approve {id}" in done.json["hint"]
    assert "token" not in done.json["error"]["details"]
    assert [one["id"] for one in project.run("approvals", "list", "--json").json["proposals"]] == [id]


def test_the_same_call_again_while_it_waits_is_the_same_proposal(project):
    first, second, other = (
        project.run("tools", "call", "note", f"text={text}", "--json").json["proposal"] for text in ("hi", "hi", "ho")
    )

    assert (first == second, first == other) == (True, False)


def test_yes_approves_the_call_that_waits_already(project):
    project.run("tools", "call", "note", "text=hi")

    assert project.run("tools", "call", "note", "text=hi", "--yes").code == 0
    assert project.run("approvals", "list", "--json").json["proposals"] == []


def hinted(text):
    """Return the commands that a hint names, as they can be typed."""
    return [shlex.split(one)[1:] for one in re.findall(r"`(agentos [^`]*)`", text)]


@pytest.mark.parametrize("principal", [(), ("--principal", "ann")], ids=["the host", "ann"])
@pytest.mark.parametrize("manifest", [(), ("--manifest", "my manifest.toml")], ids=["found", "named"])
@pytest.mark.parametrize("call", [("note", "text=hi"), ("wipe", "what=all")], ids=["mutate", "destructive"])
def test_the_hint_of_a_call_that_waits_works_as_it_is_printed(project, call, manifest, principal):
    project.write("agentos.toml", MANIFEST.replace('"notes:write"', '"notes:write", "notes:delete"'))
    if manifest:
        (project.folder / "agentos.toml").rename(project.folder / manifest[1])
    waiting = project.run("tools", "call", *call, *principal, *manifest)
    show, approve = hinted(waiting.err)
    shown = project.run(*show)
    done = project.run(*approve)

    assert (waiting.code, shown.code, done.code) == (4, 0, 0), (waiting, shown, done)


def test_people_are_told_the_same(project):
    done = project.run("tools", "call", "note", "text=hi")

    assert (done.code, done.out) == (4, "")
    assert "waits for approval as proposal" in done.err
    assert "agentos approvals approve" in done.err


def test_without_a_store_it_is_said_that_the_proposal_ended(tmp_path):
    done = Project(tmp_path, NO_STORE).run("tools", "call", "note", "text=hi")

    assert done.code == 4
    assert "the proposal ended with this command" in done.err


def test_yes_approves_what_changes_something(project):
    assert project.run("tools", "call", "note", "text=hi", "--yes").code == 0


def test_yes_never_approves_what_may_destroy_something(project):
    assert project.run("tools", "call", "wipe", "what=all", "--yes").code == 4


def test_destruction_is_approved_in_so_many_words(project):
    assert project.run("tools", "call", "wipe", "what=all", "--approve-destructive").out == "wiped all False\n"


def test_the_words_for_one_tool_do_not_count_for_another_that_it_calls(project):
    done = project.run("tools", "call", "outer", "inner=wipe", "--approve-destructive", "--yes")

    assert (done.code, done.out.startswith("inner: ApprovalRequired: demo:wipe may destroy")) == (0, True)


def test_yes_counts_for_what_a_tool_calls_as_well(project):
    assert "from outer" in project.run("tools", "call", "outer", "inner=note", "--yes").out


def test_an_approved_call_is_approved_by_the_principal(project):
    project.run("tools", "call", "note", "text=hi", "--yes", "--principal", "ann")
    (record,) = project.run("audit", "show", "--event", "proposal:applying", "--json").json["records"]

    assert (record["by"], record["principal"]) == ("ann", "ann")


def test_what_exactly_will_run_is_shown_before_it_is_approved(terminal):
    told = terminal("tools", "call", "note", "text=hi", inputs=[("[l]ater? ", "a\n")], NO_COLOR="1")
    before, _, after = told.partition("[a]pprove")

    assert told.code == 0
    for words in ("demo:note 1.0  mutate", 'text = "hi"', "tags = []", "preview  would note 'hi'", "system (system)"):
        assert words in before
    assert '{\n  "text": "hi",\n' in after


def test_destruction_takes_the_whole_word(terminal):
    inputs = [("[l]ater: ", "a\n"), ("whole word", ""), ("[l]ater: ", "y\n"), ("[l]ater: ", "approve\n")]
    told = terminal("tools", "call", "wipe", "what=all", inputs=inputs)

    assert told.code == 0
    assert "wiped all False" in told


def test_arguments_are_edited_checked_and_shown_again(terminal):
    inputs = [
        ("[l]ater? ", "e\n"),
        ("of them): ", "text='two words' tags=a tags=b\n"),
        ("would note 'two words'", ""),
        ("[l]ater? ", "a\n"),
    ]
    told = terminal("tools", "call", "note", "text=hi", inputs=inputs)

    assert told.code == 0
    assert '"text": "two words"' in told


def test_an_edit_that_cannot_be_used_changes_nothing(terminal):
    bad = {"text='open\n": "the line can't be read", "txt=x\n": "did you mean", '{"tags": []}\n': "Arguments", "\n": ""}
    inputs = [step for typed, said in bad.items() for step in (("ater? ", "e\n"), ("of them): ", typed), (said, ""))]
    told = terminal("tools", "call", "note", "text=hi", inputs=[*inputs, ("[l]ater? ", "a\n")])

    assert told.code == 0
    assert '"text": "hi"' in told


def test_a_rejected_call_is_refused_with_the_reason(terminal):
    told = terminal("tools", "call", "note", "text=hi", inputs=[("[l]ater? ", "r\n"), ("Why? ", "not now\n")])

    assert told.code == 4
    assert "a person refused the call: not now" in told


def test_a_call_may_wait_for_later(project, terminal):
    told = terminal("tools", "call", "note", "text=hi", inputs=[("[l]ater? ", "what\n"), ("[l]ater? ", "\x04")])

    assert told.code == 4
    assert len(project.run("approvals", "list", "--json").json["proposals"]) == 1


def test_ctrl_c_at_the_question_leaves_nothing_waiting(project, terminal):
    told = terminal("tools", "call", "note", "text=hi", inputs=[("[l]ater? ", "\x03")])

    assert told.code == 130
    assert "the call of note was cancelled; it did not run" in told
    assert project.run("approvals", "list", "--json").json == {"proposals": []}


def test_a_secret_among_the_arguments_is_not_shown(tmp_path, terminal):
    reader = """
from agentos import PUBLIC, Descriptor, ExtensionPack, tool

@tool(effect="mutate", required_access=PUBLIC)
async def send(key: str) -> str:
    '''Send a key.'''
    return "sent"

def create_extension_pack(context):
    context.secret("giphy.apiKey")
    return ExtensionPack("reader", "1", [send, Descriptor("x", "y", 1, required_secrets=["giphy.apiKey"])])
"""
    project = Project(tmp_path, MANIFEST + '[[packs]]\nmodule = "reader.py"\n', reader=reader)
    arguments = ("tools", "call", "send", "key=a-very-secret-value")
    told = terminal(*arguments, inputs=[("[l]ater? ", "a\n")], GIPHY_API_KEY="a-very-secret-value")

    assert told.code == 0
    assert "a-very-secret-value" not in told
    assert 'key = "***"' in told
    assert project.folder == tmp_path


# -- foreign text ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["show", "evil"],
        ["call", "evil"],
        ["call", "fails"],
        ["call", "change", "text=x"],
        ["call", "change", "text=x", "--dry-run"],
        ["call", "change", "text=x", "--yes", "--json"],
    ],
)
def test_foreign_text_does_nothing_to_a_terminal(tmp_path, arguments):
    project = Project(tmp_path, WITH_HOSTILE, hostile=HOSTILE)
    done = project.run("tools", *arguments)

    assert [attack for attack in ATTACKS if attack in done.out + done.err] == []
    assert "[bold red]loud[/bold red]" in done.out + done.err or arguments[:2] == ["call", "change"]


def test_foreign_text_does_nothing_to_whoever_is_asked(tmp_path, terminal):
    Project(tmp_path, WITH_HOSTILE, hostile=HOSTILE)
    evil = "x\x1b[2J\x07"
    told = terminal("tools", "call", "change", f"text={evil}", inputs=[("[l]ater? ", "a\n")], NO_COLOR="1")

    assert told.code == 0
    assert "\x1b" not in told
    assert "[bold red]loud[/bold red]" in told


def test_foreign_progress_does_nothing_to_a_terminal(tmp_path, terminal):
    Project(tmp_path, WITH_HOSTILE, hostile=HOSTILE)
    told = terminal("tools", "call", "evil", NO_COLOR="1")

    assert "hostile:evil: 1 of 2" in told
    assert "\x1b" not in told.replace("\r\x1b[2K", "")


def test_a_result_is_exact_as_json(tmp_path):
    project = Project(tmp_path, WITH_HOSTILE, hostile=HOSTILE)

    assert json.loads(project.run("tools", "call", "evil", "--json").out)["output"].startswith("\x1b]0;owned")


# -- the page ----------------------------------------------------------------------------------------------------------


def test_what_the_page_shows_is_what_happens(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "cli-tools.md").read_text("utf-8")
    project = Project(tmp_path)
    for name, body in re.findall(r"^```\w+\n# ([\w.]+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        project.write(name, body)
    blocks = re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for command, expected in re.findall(r"^\$ (.*?)\n((?:(?!\$ ).*\n)*)", "".join(blocks), re.MULTILINE):
        told = said_of(project, command).replace(str(tmp_path), "/…")
        assert [line.split() for line in told.splitlines()] == [line.split() for line in expected.splitlines()], command


def said_of(project, command):
    """Return what a line says; one with a pipe in it is left to a shell."""
    words = shlex.split(command)
    if not {"|", ">"} & set(words):
        done = project.run(*words[1:])
        return done.out + done.err
    script = f'agentos() {{ {shlex.join(AGENTOS)} "$@"; }}; {command}'
    options = {"cwd": project.folder, "env": environment(project.env), "text": True, "timeout": 60, "check": False}
    return subprocess.run(["bash", "-c", script], capture_output=True, **options).stdout


def test_a_tool_that_raises_is_told_with_its_place_and_no_traceback(tmp_path):
    raises = PACK.replace("    return a + b", '    raise RuntimeError("not today")')
    project = Project(tmp_path)
    project.write("pack.py", raises)
    told, more = (project.run("tools", "call", "add", "a=1", *options).err for options in ([], ["-v"]))

    assert ("Traceback" in told, "pack.py:" in told, "RuntimeError: not today" in told) == (False, True, True)
    assert "Traceback" in more


def test_a_call_that_waits_names_its_tool_as_others_do(tmp_path):
    assert json.loads(Project(tmp_path).run("tools", "call", "note", "text=x", "--json").out)["tool"] == "note"


def test_a_word_that_is_no_utf_8_is_refused(tmp_path):
    done = Project(tmp_path).run("tools", "call", "echo", "text=\udcff")

    assert (done.code, "text: that is no text in UTF-8" in done.err) == (2, True)


def test_without_a_stdin_nothing_is_read_from_it(tmp_path):
    project = Project(tmp_path)
    line = shlex.join([*AGENTOS, "tools", "call", "echo", "text=@-"]) + " <&-"
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=project.folder,
        env=environment(project.env),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, json.loads(done.stdout)["text"]) == (0, ""), done


def test_a_list_that_nothing_fits_says_so(project):
    assert project.run("tools", "list", "zzz").out.startswith("No tool that can be called matches 'zzz'.")
    assert "did you mean 'echo'?" in project.run("tools", "list", "ehco").out


def test_putting_a_call_off_is_no_error(project, terminal):
    told = terminal("--no-color", "tools", "call", "note", "text=hi", inputs=[("[l]ater? ", "l\n")])

    assert (told.code, "it waits for approval as" in " ".join(told.split()), "error:" in told) == (4, True, False)


# -- large results -----------------------------------------------------------------------------------------------------

BIG = """
from agentos import PUBLIC, ExtensionPack, ToolResult, tool


@tool(effect="read", required_access=PUBLIC)
async def big(n: int) -> str:
    \"\"\"Return a long text.\"\"\"
    return "x" * n


@tool(effect="read", required_access=PUBLIC)
async def listed(n: int) -> list[int]:
    \"\"\"Return many numbers.\"\"\"
    return list(range(n))


@tool(effect="read", required_access=PUBLIC)
async def told(n: int) -> ToolResult:
    \"\"\"Say much about little.\"\"\"
    return ToolResult.ok({"n": n}, "x" * n)


@tool(effect="mutate", required_access=PUBLIC)
async def write(n: int) -> str:
    \"\"\"Write, and return a long text.\"\"\"
    return "x" * n


def create_extension_pack(context):
    return ExtensionPack("large", "1.0", [big, listed, told, write])
"""
WITH_BIG = MANIFEST.replace("pack.py", "large.py")


@pytest.fixture
def large(tmp_path):
    return Project(tmp_path, WITH_BIG, large=BIG)


def test_a_result_is_written_whole(large):
    n = 70_000

    assert (large.run("tools", "call", "big", f"n={n}").out) == "x" * n + "\n"
    assert (large.run("tools", "call", "told", f"n={n}").out) == "x" * n + "\n"
    assert json.loads(large.run("tools", "call", "listed", f"n={n}").out) == list(range(n))
    assert large.run("tools", "call", "big", f"n={n}", "--json").json["content"] == "x" * n


def test_the_result_of_what_was_approved_is_written_whole(large):
    waiting = large.run("tools", "call", "write", "n=70000", "--json").json["proposal"]

    assert large.run("approvals", "approve", waiting, "--yes").out == "x" * 70_000 + "\n"
    assert large.run("tools", "call", "write", "n=70001", "--yes").out == "x" * 70_001 + "\n"


@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["people", "programs"])
@pytest.mark.parametrize("tool", ["big", "told"])
def test_a_result_that_is_cut_ends_with_another_exit_code_and_names_the_limit(large, tool, as_json):
    done = large.run("tools", "call", tool, "n=2000001", *as_json)

    assert done.code == 1
    assert "the call succeeded, but its result of 200000" in done.err
    assert "`limits.output` in the manifest" in done.err or "`limits.content` in the manifest" in done.err


def test_the_limit_is_in_the_manifest(large):
    large.write("agentos.toml", WITH_BIG + "[limits]\noutput = 3000000\n")

    assert large.run("tools", "call", "big", "n=2000001").out == "x" * 2_000_001 + "\n"
    large.write("agentos.toml", WITH_BIG + "[limits]\noutput = 1000\ncontent = 1000\n")
    assert large.run("tools", "call", "big", "n=2000").code == 1


def test_a_limit_that_is_misspelt_is_told_with_the_nearest_name(large):
    large.write("agentos.toml", WITH_BIG + "[limits]\ncontents = 3000000\n")
    done = large.run("tools", "list")

    assert (done.code, "limits.contents" in done.err, "content" in done.err) == (3, True, True)
