"""What `host.check()` and the doctor find wrong with packs in processes of their own."""

import stat
from datetime import UTC, datetime

import pytest

from agentos import ExtensionManifest, WorkerInfo, WorkerState
from agentos.checks.examination import CHECKS, Inspected, examine
from agentos.workers.confinement import missing_for


@pytest.fixture(autouse=True)
def own_data(monkeypatch, tmp_path):
    monkeypatch.setenv("AGENTOS_DATA", str(tmp_path / "data"))


def found(entry, folder=None, workers=()):
    manifest = ExtensionManifest.from_dict(
        {"packs": [{"package": "calculator", "isolation": "process", **entry}]}, folder=folder
    )
    report = examine(Inspected(environ={}, manifest=manifest, workers=workers), {"workers": CHECKS["workers"]})
    return report.troubles


def test_nothing_is_wrong_with_a_worker_in_the_hosts_python():
    assert found({}) == []


def test_an_interpreter_that_is_nowhere_is_an_error_with_the_cure(tmp_path):
    [trouble] = found({"python": "nowhere/bin/python"}, tmp_path)

    assert (trouble.level, trouble.about) == ("error", "worker calculator")
    assert "nowhere/bin/python is no program that may be run" in trouble.message
    assert "correct python" in trouble.cure


def test_an_interpreter_that_is_no_python_is_an_error(tmp_path):
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    [trouble] = found({"python": "./python"}, tmp_path)

    assert "does not answer as a Python would" in trouble.message


def test_an_interpreter_of_a_pack_that_is_switched_off_is_not_asked_about(tmp_path):
    assert found({"python": "nowhere/bin/python", "enabled": False}, tmp_path) == []


def test_an_environment_that_is_not_made_yet_is_a_warning():
    [trouble] = found({"requirements": ["httpx<0.28"]})

    assert trouble.level == "warning"
    assert trouble.message == "its environment for httpx<0.28 is not made yet"


def test_confinement_that_the_system_lacks_is_an_error():
    lack = missing_for(network=False, limits_writing=True)
    messages = [one.message for one in found({"worker": {"confine": {"network": False, "write": ["data"]}}})]

    assert messages == ([] if lack is None else [f"it can't be confined here: {lack}"])


@pytest.mark.parametrize(
    ("state", "strikes", "expected"),
    [
        (WorkerState.DEGRADED, 3, ("error", "it is degraded: it exited with code 3")),
        (WorkerState.READY, 1, ("warning", "it died: it exited with code 3")),
        (WorkerState.DORMANT, 2, ("warning", "it died 2 times of late: it exited with code 3")),
    ],
)
def test_a_worker_that_dies_is_told_of(state, strikes, expected):
    since = datetime(2026, 1, 1, tzinfo=UTC)
    worker = WorkerInfo(pack="calculator", state=state, since=since, strikes=strikes, reason="it exited with code 3")
    [trouble] = found({}, workers=[worker])

    assert (trouble.level, trouble.message) == expected
    assert "agentos workers logs calculator" in trouble.cure


def test_a_worker_that_runs_is_no_trouble():
    assert found({}, workers=[WorkerInfo(pack="calculator", state=WorkerState.READY, pid=1)]) == []
