"""Calls that nothing else ends: they are broken off, and whoever runs the loop goes on."""

import asyncio
import time

from agentos.testing._watchdog import EndlessCall, StuckError, Watchdog, break_off, tasks_ignoring_cancel


async def swallow(*kinds):
    while True:
        try:
            await asyncio.sleep(0.05)
        except kinds:
            continue


async def test_a_loop_that_goes_on_is_not_broken_into():
    with Watchdog() as watchdog, watchdog.within(0.05):
        await asyncio.sleep(0.5)


async def test_a_call_that_keeps_the_loop_to_itself_is_broken_into():
    async def spin():
        while True:
            time.monotonic()

    with Watchdog() as watchdog:
        assert "kept the event loop to itself" in await watchdog.ended(spin(), 0.1)


async def test_a_call_that_ends_when_it_is_cancelled_did_not_defy():
    with Watchdog() as watchdog:
        told = await watchdog.ended(asyncio.sleep(60), 0.05)

    assert (type(told), told) == (str, "the call did not end within 0.05 s")


async def test_a_call_that_swallows_its_cancellation_is_broken_off():
    before = asyncio.all_tasks()
    with Watchdog() as watchdog:
        told = await watchdog.ended(swallow(asyncio.CancelledError), 0.05, 0.05)

    assert isinstance(told, EndlessCall)
    assert tasks_ignoring_cancel(before) == []


def test_a_task_that_swallows_everything_keeps_no_loop_from_ending():
    async def main():
        task = asyncio.create_task(swallow(asyncio.CancelledError, StuckError))
        await asyncio.sleep(0)
        task.cancel()
        await break_off([task])
        return task.done()

    assert asyncio.run(main()) is False
