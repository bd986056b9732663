"""What is wrong with a result, and calls that do not end in one."""

import asyncio
import gc
import logging

import pytest
from testing.parts import pack

from agentos import ToolError, ToolResult
from agentos.testing import examine_pack
from agentos.testing._sandbox import enter_sandbox
from agentos.testing._transcript import faults_of, text_of
from agentos.testing._watchdog import Watchdog


def messages(result):
    return [message for message, _ in faults_of(result)]


@pytest.mark.parametrize(
    "result",
    [
        ToolResult.ok({"a": 1}),
        ToolResult.fail("ToolRaised", "ValueError: text: expected a name", {"exception": "ValueError"}),
        ToolResult.fail("ToolRaised", "OSError: no such file", {"exception": "FileNotFoundError"}),
        ToolResult.fail("ToolRaised", "MyError: no", {"exception": "MyError"}),
        ToolResult.fail("InvalidArguments", "no"),
        ToolResult.fail("TimedOut", "no"),
    ],
)
def test_an_ordinary_result_has_no_fault(result):
    assert messages(result) == []


@pytest.mark.parametrize("name", ["KeyError", "TypeError", "ZeroDivisionError", "UnicodeEncodeError", "PatternError"])
def test_a_slip_is_a_fault(name):
    assert messages(ToolResult.fail("ToolRaised", f"{name}: x", {"exception": name})) == [f"it raised {name}: x"]


def test_a_result_says_something():
    assert messages(ToolResult(success=True, content=" ")) == ["the content is empty"]


def test_a_result_is_a_success_or_a_failure():
    both = ToolResult(success=True, content="a", error=ToolError("A", "a"))

    assert messages(both) == ["the result is neither a success nor a failure"]


def test_a_result_is_json():
    result = ToolResult(success=True, content="a", output=float("nan"))

    assert [message.partition(":")[0] for message in messages(result)] == ["the result is not JSON"]
    assert "nan" in text_of(result)


def test_a_traceback_is_a_fault_wherever_it_is():
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1'
    state = ToolResult(success=True, content="a", state={"debug": trace})

    assert messages(state) == ["a traceback is in the result"]


async def test_a_call_that_raises_is_told():
    async def fail():
        raise RuntimeError("no")

    with Watchdog() as watchdog:
        assert await watchdog.ended(fail(), 1) == "the call raised RuntimeError: no"


async def test_a_call_that_ends_is_left_alone():
    with Watchdog() as watchdog:
        assert await watchdog.ended(asyncio.sleep(0, "done"), 1) == "done"


async def test_a_log_line_that_does_not_fit_its_arguments_is_read_all_the_same():
    with enter_sandbox() as sandbox:
        logging.getLogger("example").warning("%d", "no number")

    assert list(sandbox.lines()) == ["example: '%d' ('no number',)"]


async def test_an_exception_that_is_logged_is_read_too():
    with enter_sandbox() as sandbox:
        try:
            raise ValueError("of a test")
        except ValueError:
            logging.getLogger("example").exception("it failed")

    assert list(sandbox.lines()) == ["example: it failed ValueError('of a test')"]


async def test_what_somebody_froze_stays_frozen():
    gc.freeze()
    try:
        assert await examine_pack(lambda: pack(), only=["leaks"]) == []

        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
