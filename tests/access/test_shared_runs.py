"""Work that is done once for all who ask for it at the same time."""

import asyncio

import pytest

from agentos.access.shared_runs import SharedRun


class Work:
    """Counts its runs; each ends when it is let go."""

    def __init__(self):
        self.runs = 0
        self.release = asyncio.Event()
        self.error = None

    async def __call__(self):
        self.runs += 1
        await self.release.wait()
        if self.error is not None:
            raise self.error


async def turns(count=5):
    for _ in range(count):
        await asyncio.sleep(0)


async def test_who_asks_alone_has_it_done():
    work = Work()
    work.release.set()
    await SharedRun(work)()

    assert work.runs == 1


async def test_who_asks_while_it_runs_shares_the_next_run():
    work = Work()
    shared = SharedRun(work)
    asking = [asyncio.create_task(shared()) for _ in range(5)]
    await turns()
    before = work.runs
    work.release.set()
    await asyncio.gather(*asking)

    assert (before, work.runs) == (1, 2)


async def test_what_it_raises_is_raised_to_all_whom_it_ran_for():
    work = Work()
    work.error = LookupError()
    shared = SharedRun(work)
    asking = [asyncio.create_task(shared()) for _ in range(4)]
    await turns()
    work.release.set()
    results = await asyncio.gather(*asking, return_exceptions=True)

    assert ([type(one) for one in results], work.runs) == ([LookupError] * 4, 2)


async def test_after_an_error_it_can_be_done_again():
    work = Work()
    work.release.set()
    work.error = LookupError()
    shared = SharedRun(work)
    with pytest.raises(LookupError):
        await shared()
    work.error = None
    await shared()

    assert work.runs == 2


@pytest.mark.parametrize("cancelled", [[0], [1], [0, 1], [1, 2], [0, 1, 2]])
async def test_those_who_are_cancelled_leave_it_to_the_others(cancelled):
    work = Work()
    shared = SharedRun(work)
    asking = [asyncio.create_task(shared()) for _ in range(4)]
    await turns()
    for number in cancelled:
        asking[number].cancel()
    await turns()
    work.release.set()
    results = await asyncio.gather(*asking, return_exceptions=True)

    assert [number for number, one in enumerate(results) if isinstance(one, asyncio.CancelledError)] == cancelled
    assert [one for one in results if one is not None and not isinstance(one, asyncio.CancelledError)] == []


async def test_one_that_is_cancelled_when_it_is_to_do_the_work_passes_it_on():
    work = Work()
    shared = SharedRun(work)

    async def ask_first():
        await shared()
        asking[1].cancel()  # it was told that it is its turn, and did not hear it yet

    asking = [asyncio.create_task(one) for one in (ask_first(), shared(), shared())]
    await turns()
    work.release.set()
    results = await asyncio.gather(*asking, return_exceptions=True)

    assert [type(one) for one in results] == [type(None), asyncio.CancelledError, type(None)]


async def test_when_all_who_waited_are_gone_the_next_one_has_it_done():
    work = Work()
    shared = SharedRun(work)
    asking = [asyncio.create_task(shared()) for _ in range(3)]
    await turns()
    for one in asking:
        one.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    work.release.set()
    await shared()

    assert work.runs == 2
