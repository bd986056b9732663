"""`agentos grants`: what is decided about calls in advance."""

import pytest
from commanding import Project


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def add(project, *arguments):
    done = project.run("grants", "add", *arguments, "--json")
    assert done.code == 0, done.err
    return done.json["id"]


def test_what_is_granted_runs_unasked(project):
    before = project.run("tools", "call", "note", "text=hi").code
    add(project, "demo:note", "always")

    assert (before, project.run("tools", "call", "note", "text=hi").code) == (4, 0)


def test_a_grant_for_one_principal_is_not_for_others(project):
    add(project, "note", "always", "--principal", "ann")

    assert project.run("tools", "call", "note", "text=hi", "--principal", "ann").code == 0
    assert project.run("tools", "call", "note", "text=hi").code == 4


def test_a_grant_for_some_arguments_is_not_for_others(project):
    add(project, "note", "always", "--argument", "$.text=buy *")

    assert project.run("tools", "call", "note", "text=buy milk").code == 0
    assert project.run("tools", "call", "note", "text=sell milk").code == 4


def test_a_grant_for_once_is_used_up(project):
    add(project, "note", "once")
    codes = [project.run("tools", "call", "note", "text=hi").code for _ in range(2)]

    assert codes == [0, 4]


def test_what_is_never_to_run_is_refused(project):
    add(project, "add", "never")

    assert project.run("tools", "call", "add", "a=1").code != 0


def test_list_shows_what_is_in_force(project):
    id = add(project, "note", "always", "--principal", "ann", "--argument", "$.text=buy *")
    add(project, "wipe", "never")
    lines = project.run("grants", "list").out.splitlines()
    told = project.run("grants", "list", "--json").json["grants"]

    assert lines[1].split()[:4] == [id[:8], "demo:note", "always", "ann"]
    assert "$.text = 'buy *'" in lines[1]
    assert [(one["tool"], one["decision"], one["principal"]) for one in told] == [
        ("demo:note", "always", "ann"),
        ("wipe", "never", None),
    ]
    assert told[0]["arguments"] == {"match": {"$.text": "buy *"}, "kind": "glob"}
    assert {"createdAt", "createdBy"} <= told[0].keys()


def test_list_is_empty_before_anything_was_stored(project):
    assert project.run("grants", "list").out == "Nothing is decided in advance.\n"
    assert not (project.folder / "state.db").exists()


def test_revoke_takes_a_grant_back(project):
    id = add(project, "note", "always")
    done = project.run("grants", "revoke", id[:8], "--json")

    assert (done.code, done.json["revoked"]) == (0, id)
    assert project.run("tools", "call", "note", "text=hi").code == 4
    assert project.run("grants", "revoke", id).code == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["note", "sometimes"], 2, "'sometimes' is not one of"),
        (["note", "session"], 2, "--session"),
        (["note", "always", "--argument", "text=x"], 2, "PATH=PATTERN"),
        (["note", "always", "--argument", "$.text"], 2, "PATH=PATTERN"),
        (["note", "always", "--argument", "$.text=(", "--kind", "regex"], 2, "--argument"),
        (["note", "always", "--argument", "$.text=a", "--argument", "$.text=b"], 2, "twice"),
        (["nte", "always"], 1, "did you mean 'note'?"),
        (["note", "always", "--principal", "an"], 2, "did you mean 'ann'?"),
    ],
)
def test_what_cant_be_granted_is_told(project, arguments, code, words):
    done = project.run("grants", "add", *arguments)

    assert (done.code, words in done.err) == (code, True)


def test_forbidding_what_nothing_is_called_is_told(project):
    done = project.run("grants", "add", "wpe", "never")

    assert (done.code, "did you mean 'wipe'?" in done.err) == (0, True)


def test_that_destruction_is_asked_about_all_the_same_is_told(project):
    done = project.run("grants", "add", "wipe", "always")

    assert (done.code, "asked about all the same" in done.err) == (0, True)
    assert project.run("tools", "call", "wipe", "what=all").code == 4


def test_without_a_store_nothing_can_be_granted(tmp_path):
    done = Project(tmp_path, "").run("grants", "add", "note", "always")

    assert (done.code, "names no store" in done.err) == (3, True)
