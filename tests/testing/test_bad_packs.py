"""Every check can fail: for each there are packs that fail it, and nothing else."""

import importlib
from pathlib import Path

import pytest
from testing import parts

from agentos.testing import CHECKS, examine_pack


@pytest.fixture(autouse=True)
def tidied():
    yield
    while parts.undo:
        parts.undo.pop(0)()


FOLDER = Path(__file__).parent / "bad_packs"


def factories():
    for file in sorted(FOLDER.glob("*.py")):
        module = importlib.import_module(f"testing.bad_packs.{file.stem}")
        for name, made in vars(module).items():
            is_own = getattr(made, "__module__", None) == module.__name__ and name not in _HELPERS
            if is_own and callable(made) and not name.startswith("_"):
                check = file.stem.replace("_", "-")
                yield pytest.param(check, made, getattr(module, "SAMPLES", None), id=f"{check}-{name}")


_HELPERS = ("answer", "made", "with_parameter", "calling", "with_tool", "with_preview")


@pytest.mark.parametrize(("check", "factory", "samples"), list(factories()))
async def test_a_bad_pack_fails_the_check_that_is_about_it_and_no_other(check, factory, samples):
    """It fails for the reason that is told of it."""
    limit = {"hostile": 0.5, "parallel": 2.0}.get(check, 5.0)
    found = await examine_pack(factory, samples=samples, limit=limit, grace=0.5, cases=60)

    severity = "warning" if check in REMARKED else "error"
    counted = {(finding.rule, finding.severity) for finding in found if finding.severity in ("error", severity)}
    assert counted == {(check, severity)}
    assert any(TOLD.get(f"{check}-{factory.__name__}", "") in finding.message for finding in found)


REMARKED = ("succeeds", "runs")
"""Checks that say what an examination is not worth, rather than what is wrong with a pack."""

TOLD = {
    "cancel-never_lets_go": "after a call was cancelled it went on for more than 0.5 s",
    "cancel-never_lets_go_of_what_it_waits_for": "after a call was cancelled it went on for more than 0.5 s",
    "leaks-umask": "the umask was changed",
    "leaks-process_in_the_background": "that it sent into the background still runs",
    "quiet-writes_to_the_descriptor": "it printed 'counting'",
    "quiet-has_a_child_that_prints": "it printed 'counting",
    "secrets-tells_it_whole": "is in what a call of count_letters told the host, which masked it",
    "secrets-tells_it_in_base64": "is in what a call of count_letters told the host, which masked it",
    "secrets-raises_it": "is in what a call of count_letters told the host, which masked it",
    "secrets-logs_it_through_its_context": "is in what a call of count_letters told the host, which masked it",
    "secrets-logs_it_when_it_comes": "is in what its hooks told the host, which masked it",
    "succeeds-always_refuses": "no call of it succeeded, so little is known of it: ToolRaised: ValueError: no such",
    "runs-changes_things": "it was never run",
    "leaks-task": "the task 'poller' (sleep) still runs",
    "leaks-thread": "the thread 'poller' still runs",
    "leaks-thread_of_the_whole_process": "the thread 'poller' still runs",
    "leaks-work_in_a_thread_of_the_loop": "Event.wait still runs in a thread of the event loop",
    "leaks-work_that_begins_with_it": "Event.wait still runs in a thread of the event loop",
    "leaks-descriptor": "/dev/null is still open",
    "leaks-lost_file": "unclosed file",
    "leaks-lost_coroutine": "was never awaited",
    "leaks-lost_exception": "nobody looks at this",
    "leaks-child": "the child process",
    "leaks-temporary_file": "the file tmp/",
    "leaks-file_in_the_working_folder": "the file cwd/notes.txt was left behind",
    "leaks-log_handler": "the log handlers of example was changed",
    "leaks-log_level": "the level of the root logger was changed",
    "leaks-signal_handler": "the handler of SIGUSR1 was changed",
    "leaks-environment": "the environment variable EXAMPLE_MODE was changed",
    "leaks-working_folder": "the working folder was changed",
    "leaks-working_folder_that_is_gone": "the working folder was changed",
    "leaks-import_path": "sys.path was changed",
    "leaks-hook": "sys.excepthook was changed",
    "hostile-slips": "it raised KeyError",
    "hostile-slips_in_a_thread": "it raised IndexError",
    "hostile-exits": "it raised SystemExit",
    "hostile-returns_what_is_no_json": "ResultNotSerialisable",
    "hostile-returns_what_does_not_fit": "InvalidOutput",
    "hostile-shows_its_traceback": "a traceback is in the result",
    "hostile-never_ends": "the call did not end within 0.5 s",
    "hostile-keeps_the_loop_to_itself": "the call kept the event loop to itself",
    "reach-connects": "it tried to connect 169.254.169.254 port 80, an inner address",
    "reach-opens": "it opened a file that only an argument named",
    "reach-runs": "a text was run as a command",
    "reach-runs_in_its_dry_run": "a text was run as a command",
    "secrets-logs_it": "is in the log",
    "secrets-tells_the_beginning": "is in a result of count_letters",
    "secrets-tells_the_first_characters": "is in a result of count_letters",
    "secrets-tells_the_last_characters": "is in a result of count_letters",
    "secrets-tells_it_with_something_between": "is in a result of count_letters",
    "secrets-warns_with_it": "is in a warning",
    "secrets-tells_it_backwards": "is in a result of count_letters",
    "secrets-complains_with_it": "is in what it prints",
    "secrets-describes_itself_with_it": "is in the definition of count_letters",
    "secrets-shows_it_in_a_payload": "is in the repr of the payload of search-engine example",
    "secrets-writes_it_down": "is in the file key.txt",
    "dry-run-writes": "outbox.txt",
    "dry-run-counts": "after the dry run list_drafts answers differently",
    "twice-made_only_once": "it can't be loaded a second time",
    "twice-works_on_from_the_second_time": "Event.wait still runs in a thread of the event loop",
    "twice-only_once": "it can't be switched off and on",
    "twice-raises_when_it_goes": "unloading raised",
    "cancel-goes_on": "after a call was cancelled it went on for more than",
    "cancel-takes_it_for_a_failure": "after a call was cancelled it ended as ToolRaised",
    "cancel-can_not_be_called_again": "it can't be called any more: ToolRaised: ValueError: it is busy",
    "timeout-can_not_be_called_again": "it can't be called any more: ToolRaised: ValueError: it is busy",
    "timeout-leaves_the_rest_to_a_task_when_time_is_short": "after its time was up the task",
    "timeout-goes_on": "after its time was up it went on",
    "timeout-goes_on_in_a_thread_of_the_loop": "after its time was up Event.wait still runs in a thread",
    "cancel-goes_on_in_a_thread_of_the_loop": "after a call was cancelled Event.wait still runs in a thread",
    "sabotage-leaves_ending_work_to_a_part": "Event.wait still runs in a thread of the event loop",
    "gate-brings_its_own": "is active without the secrets that it requires",
    "restores-changes_what_is_beneath": "the tool count_letters that was there before is changed",
}
"""What is said about a bad pack, where the name of the check does not say it all."""


def test_every_check_has_bad_packs():
    assert {param.values[0] for param in factories()} == set(CHECKS)
