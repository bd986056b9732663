"""`agentos approvals` and `agentos audit`, when the manifest or the store changed since a call was proposed."""

import contextlib
import sqlite3

import pytest
from commanding import MANIFEST, Project

MANIFEST_OF_ALL = "allowOtherApprover = true\n" + MANIFEST
WITHOUT_RULE = MANIFEST_OF_ALL.replace('access = ["notes:write"]', "access = []")
WITHOUT_ANN = MANIFEST_OF_ALL.partition("[principals.ann]")[0]


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path, MANIFEST_OF_ALL)


@pytest.fixture
def proposal(project):
    """Return a call that ann made, and that waits."""
    done = project.run("tools", "call", "note", "text=hi", "--principal", "ann", "--json")
    assert done.code == 4, done
    return done.json["proposal"]


@pytest.mark.parametrize(
    ("manifest", "said"),
    [(WITHOUT_RULE, "'ann' does not hold the access any more"), (WITHOUT_ANN, "'ann', for whom this was proposed")],
    ids=["the rule is gone", "the principal is gone"],
)
@pytest.mark.parametrize("command", [("approve", "--yes"), ("edit", "text=other")], ids=["approve", "edit"])
def test_what_the_manifest_took_from_a_principal_counts_for_what_it_proposed(
    project, proposal, command, manifest, said
):
    project.write("agentos.toml", manifest)
    verb, *more = command
    done = project.run("approvals", verb, proposal, *more)

    assert (done.code, said in done.err + done.out) == (4, True)


def test_what_a_principal_that_is_gone_proposed_can_be_rejected(project, proposal):
    project.write("agentos.toml", WITHOUT_ANN)

    assert project.run("approvals", "reject", proposal, "--reason", "ann left").code == 0


def test_show_does_not_tell_what_somebody_changed(project, proposal):
    project.run("approvals", "approve", proposal, "--yes")
    with contextlib.closing(sqlite3.connect(project.folder / "state.db")) as database, database:
        database.execute("UPDATE proposals SET decided_by = 'carol', result = replace(result, 'hi', 'bye')")
    done = project.run("approvals", "show", proposal)

    assert ("changed after it was made" in done.out, "carol" in done.out, "bye" in done.out) == (True, False, False)


@pytest.mark.parametrize("how", ["emptied", "removed"])
def test_a_log_that_is_gone_is_told_by_verify(project, proposal, how):
    if how == "emptied":
        with contextlib.closing(sqlite3.connect(project.folder / "state.db")) as database, database:
            database.execute("DELETE FROM audit")
            database.execute("DELETE FROM audit_head")
    else:
        for file in project.folder.glob("state.db*"):
            if file.suffix not in (".key", ".begun", ".hosts"):
                file.unlink()
    done = project.run("audit", "verify")

    assert (done.code, "the log that was begun here is not in this database" in done.err) == (1, True)
    assert "state.db.begun" in done.err
