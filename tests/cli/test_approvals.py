"""`agentos approvals`: what waits for a person, and the person's answer."""

import re

import pytest
from commanding import HOSTILE, MANIFEST, PACK, Project
from terminal import AGENTOS, run_in_terminal


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


@pytest.fixture
def terminal(project):
    def run(*arguments, inputs=(), **env):
        return run_in_terminal(
            [*AGENTOS, *arguments], inputs=inputs, cwd=project.folder, env={**project.env, "NO_COLOR": "1", **env}
        )

    return run


def propose(project, *arguments):
    done = project.run("tools", "call", *(arguments or ("note", "text=hi")), "--json")
    assert done.code == 4
    return done.json["proposal"]


# -- list and show -----------------------------------------------------------------------------------------------------


def test_list_shows_what_waits(project):
    id = propose(project)
    done = project.run("approvals", "list")

    heads, line = done.out.splitlines()
    assert re.split("  +", heads) == ["id", "tool", "effect", "with", "for", "expires in", "why it asks"]
    assert re.split("  +", line)[:6] == [id[:8], "demo:note", "mutate", 'text="hi" tags=[]', "system", "23 h"]


def test_list_shows_long_arguments_in_short(project):
    propose(project, "note", f"text={'long ' * 100}\nnext")
    line = project.run("approvals", "list").out.splitlines()[1]

    assert re.split("  +", line)[3] == 'text="' + "long " * 10 + "lon…"


def test_list_is_empty_before_anything_was_stored(project):
    assert project.run("approvals", "list").out == "Nothing waits for approval.\n"
    assert not (project.folder / "state.db").exists()


def test_list_of_one_principal(project):
    propose(project)
    id = propose(project, "note", "text=hi", "--principal", "ann")
    told = project.run("approvals", "list", "--principal", "ann", "--json").json

    assert [one["id"] for one in told["proposals"]] == [id]


def test_without_a_store_nothing_can_wait(tmp_path):
    done = Project(tmp_path, "").run("approvals", "list")

    assert (done.code, "names no store" in done.err) == (3, True)


def test_show_tells_what_exactly_would_run(project):
    id = propose(project)
    done = project.run("approvals", "show", id[:6])

    for words in ("demo:note 1.0  mutate", 'text = "hi"', "would note 'hi'", id, "waits until"):
        assert words in done.out


def test_show_tells_what_became_of_it(project):
    id = propose(project)
    project.run("approvals", "approve", id, "--yes")
    done = project.run("approvals", "show", id)

    assert "applied by system" in done.out
    assert 'result   {"text": "hi"' in done.out
    assert project.run("approvals", "show", id, "--json").json["result"]["success"] is True


@pytest.mark.parametrize("how", [("approve", "--yes"), ("reject",)])
def test_a_short_id_means_what_was_decided_on_too(project, how):
    id = propose(project)
    project.run("approvals", how[0], id, *how[1:])
    done = project.run("approvals", "show", id[:6], "--json")

    assert (done.code, done.json["id"]) == (0, id)


@pytest.mark.parametrize(("id", "code", "said"), [("0123abcd", 1, "there is no proposal"), ("a", 2, "too short")])
def test_an_id_that_means_nothing_is_refused(project, id, code, said):
    propose(project)
    done = project.run("approvals", "show", id)

    assert (done.code, said in done.err) == (code, True)


def test_an_id_in_an_empty_store_is_unknown(project):
    assert project.run("approvals", "show", "0123abcd").code == 1


def test_an_id_that_may_mean_two_is_refused(project, monkeypatch):
    ids = iter(["abcd1" + "0" * 27, "abcd2" + "0" * 27])
    monkeypatch.setattr("agentos.calls.approvals.new_id", lambda: next(ids))
    for text in ("text=hi", "text=ho"):
        propose(project, "note", text)
    done = project.run("approvals", "show", "abcd")

    assert (done.code, "may mean" in done.err) == (2, True)


# -- approve, edit, reject ---------------------------------------------------------------------------------------------


def test_approve_runs_what_was_proposed_once(project):
    id = propose(project)
    done = project.run("approvals", "approve", id, "--yes", "--json")

    assert (done.code, done.json["output"], done.json["proposal"]) == (0, {"text": "hi", "tags": []}, id)
    again = project.run("approvals", "approve", id, "--yes")
    assert (again.code, "was used already" in again.err) == (4, True)


def test_without_a_terminal_approving_takes_a_flag(project):
    done = project.run("approvals", "approve", propose(project))

    assert (done.code, "--yes" in done.err) == (4, True)


def test_yes_is_not_enough_for_destruction(project):
    id = propose(project, "wipe", "what=all")
    done = project.run("approvals", "approve", id, "--yes")

    assert (done.code, "--approve-destructive" in done.err) == (4, True)
    assert project.run("approvals", "approve", id, "--approve-destructive").out == "wiped all False\n"


def test_approve_shows_what_will_run_and_asks(project, terminal):
    id = propose(project)
    told = terminal("approvals", "approve", id, inputs=[("would note 'hi'", ""), ("Run it? [y/N] ", "y\n")])

    assert (told.code, '"text": "hi"' in told.rpartition("Run it?")[2]) == (0, True)


def test_approving_destruction_takes_the_whole_word(project, terminal):
    id = propose(project, "wipe", "what=all")
    told = terminal("approvals", "approve", id, inputs=[("Type approve to run it: ", "y\n")])

    assert (told.code, "waits on" in told) == (4, True)
    assert len(project.run("approvals", "list", "--json").json["proposals"]) == 1


def test_ctrl_c_while_it_runs_says_that_it_may_have_taken_effect(project, terminal):
    project.write(
        "pack.py",
        PACK.replace(
            'effect="read", required_access=PUBLIC)\nasync def slow',
            'effect="mutate", required_access=PUBLIC)\nasync def slow',
        ),
    )
    id = propose(project, "slow", "steps=1000", "seconds=0.1")
    told = terminal("approvals", "approve", id, "--yes", inputs=[("step 2", "\x03")])

    assert (told.code, "it may have taken effect" in told) == (130, True)


def test_a_proposal_of_somebody_else_is_decided_on_in_its_name(project):
    id = propose(project, "note", "text=hi", "--principal", "ann")
    done = project.run("approvals", "approve", id, "--yes")

    assert (done.code, "--principal ann" in done.err) == (4, True)
    assert project.run("approvals", "reject", id).code == 4
    assert project.run("approvals", "approve", id, "--yes", "--principal", "ann").code == 0


def test_a_proposal_of_the_host_is_decided_on_without_a_principal(project):
    id = propose(project)
    done = project.run("approvals", "approve", id, "--yes", "--principal", "ann")

    assert (done.code, "leave out --principal" in done.err, "--principal system" in done.err) == (4, True, False)
    assert project.run("approvals", "approve", id, "--yes").code == 0


def test_other_approvers_may_be_allowed(tmp_path):
    project = Project(tmp_path, "allowOtherApprover = true\n" + MANIFEST)
    id = propose(project, "note", "text=hi", "--principal", "ann")

    assert project.run("approvals", "approve", id, "--yes").code == 0


def test_edit_makes_a_new_proposal_and_closes_the_old_one(project):
    id = propose(project, "note", "text=hi", "tags=a")
    told = project.run("approvals", "edit", id, "text=other", "--json").json

    assert (told["arguments"], told["parent"]) == ({"text": "other", "tags": ["a"]}, id)
    assert [one["id"] for one in project.run("approvals", "list", "--json").json["proposals"]] == [told["id"]]


def test_edit_takes_all_arguments_anew(project):
    id = propose(project, "note", "text=hi", "tags=a")
    done = project.run("approvals", "edit", id, "--args", '{"text": "new"}')

    assert done.code == 0
    assert 'text = "new"\n           tags = []' in done.out
    assert "agentos approvals approve" in done.out


@pytest.mark.parametrize(("words", "code"), [([], 2), (["txt=x"], 2), (["tags=1", "text:=5"], 2)])
def test_an_edit_that_does_not_fit_is_refused(project, words, code):
    id = propose(project)

    assert project.run("approvals", "edit", id, *words).code == code
    assert [one["id"] for one in project.run("approvals", "list", "--json").json["proposals"]] == [id]


def test_reject_closes_a_proposal_with_the_reason(project):
    id = propose(project)
    done = project.run("approvals", "reject", id, "--reason", "not today")

    assert (done.code, done.out) == (0, f"proposal {id} is rejected\n")
    assert "rejected by system: not today" in project.run("approvals", "show", id).out


def test_foreign_text_does_nothing_to_a_terminal(project):
    project.write("agentos.toml", MANIFEST + '[[packs]]\nmodule = "hostile.py"\n')
    project.write("hostile.py", HOSTILE)
    id = propose(project, "change", "text=\x1b[2Jx")
    told = [project.run("approvals", *rest) for rest in (["list"], ["show", id], ["approve", id, "--yes"])]

    text = "".join(done.out + done.err for done in told)
    assert not {"\x1b", "\x9b", "\x07", "\u202e"} & set(text)
    assert "[bold red]loud[/bold red]" in text


# -- what guardrails found strange -------------------------------------------------------------------------------------

WARY = """
from agentos import ExtensionPack, GuardVerdict, guardrail

@guardrail(stage="tool_call")
async def wary(call, context):
    return GuardVerdict.flag("the address is not the user's", "TAINT")

pack = ExtensionPack("wary", "1", [wary])
"""


@pytest.mark.parametrize("show", [("list",), ("show",)], ids=["list", "show"])
def test_whoever_decides_sees_what_guardrails_flagged(tmp_path, show):
    project = Project(tmp_path, f'{MANIFEST}[[packs]]\nmodule = "wary.py"\n', wary=WARY)
    id = propose(project)
    done = project.run("approvals", *show, *([id] if show == ("show",) else []))

    assert "flagged" in done.out
    assert "wary: the address is not the user's" in done.out
