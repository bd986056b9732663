"""Places for sync tools: who waits for another call has none, who works has one, and threads are bounded."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager

import attrs
import pytest

from agentos import PUBLIC, AgentOS, Answer, Descriptor, ExtensionPack, ToolCall, ToolExecutor, tool
from agentos.calls.threads import ToolThreads

read = tool(effect="read", required_access=PUBLIC)
LEVELS = 8


@attrs.define
class Stage:
    """What the tools of a test meet at, and what they count."""

    release: threading.Event = attrs.field(factory=threading.Event)
    released: asyncio.Event = attrs.field(factory=asyncio.Event)
    lock: threading.Lock = attrs.field(factory=threading.Lock)
    log: list[str] = attrs.field(factory=list)
    begun: int = 0
    working: int = 0
    most: int = 0
    threads: set[str] = attrs.field(factory=set)

    @contextmanager
    def work(self):
        with self.lock:
            self.threads.add(threading.current_thread().name)
            self.working += 1
            self.most = max(self.most, self.working)
        try:
            yield
        finally:
            with self.lock:
                self.working -= 1

    def begin(self):
        with self.lock:
            self.begun += 1

    async def until(self, is_so):
        async with asyncio.timeout(30):
            while not is_so():
                await asyncio.sleep(0.001)


def tools_on(stage):
    """Return tools, most of them sync, that call one another."""

    @read
    def down(levels: int, context) -> int:
        """Call itself until the last level; return how many there were."""
        with stage.work():
            if not levels:
                return 0
        result = context.call("down", {"levels": levels - 1})
        with stage.work():
            return result.output + 1

    @read
    def down_to_wait(levels: int, context) -> str:
        """Call itself until the last level, which waits on the loop."""
        stage.begin()
        below = ("down_to_wait", {"levels": levels - 1}) if levels else ("wait_on_loop", {})
        answer = context.call(*below).content
        stage.log.append("went on")
        return answer

    @read
    async def wait_on_loop() -> str:
        """Wait on the loop until the test says so."""
        await stage.released.wait()
        return "waited"

    @read
    def block() -> str:
        """Block a thread until the test says so."""
        stage.begin()
        stage.release.wait()
        stage.log.append("blocked no more")
        return "blocked"

    @read
    def by_own_threads(context) -> list[int]:
        """Call others from threads of its own."""
        with ThreadPoolExecutor(3) as pool:
            results = list(pool.map(lambda levels: context.call("down", {"levels": levels}), [0, 1, 2]))
        return [result.output for result in results]

    @tool(effect="read", required_access=PUBLIC, timeout=0.05)
    def wait_too_long(context) -> str:
        """Wait for another tool for longer than it may."""
        return context.call("wait_on_loop").content

    return [down, down_to_wait, wait_on_loop, block, by_own_threads, wait_too_long]


@asynccontextmanager
async def running(stage, **limits):
    """Give an executor with so many places; at the end nothing must be held or waited for."""
    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", "1.0", tools_on(stage)))
        threads = ToolThreads(**limits)
        executor = ToolExecutor(host.extensions.registry("tool"), threads=threads)
        try:
            async with asyncio.timeout(60):
                yield executor
        finally:
            stage.release.set()
            stage.released.set()
        await stage.until(lambda: not (threads.abandoned or threads._working))
        assert (+threads._under_way, any(threads._queued.values()), threads._returning) == ({}, False, {})
        threads.close()


def calls(executor, count, name, **arguments):
    return asyncio.gather(*(executor.execute_tool(ToolCall(name, arguments, id=f"{name}{n}")) for n in range(count)))


@pytest.mark.parametrize(("limit", "count", "levels"), [(32, 40, 1), (1, 3, LEVELS), (2, 25, 3), (32, 64, LEVELS)])
async def test_tools_that_call_tools_do_not_wait_for_each_others_places(limit, count, levels):
    stage = Stage()
    async with running(stage, limit=limit) as executor:
        results = await calls(executor, count, "down", levels=levels)

    assert [result.output for result in results] == [levels] * count
    assert stage.most <= limit
    assert len(stage.threads) <= 2 * limit * (levels + 1)


async def test_who_comes_back_waits_for_a_place_until_nobody_works_in_it():
    stage = Stage()
    async with running(stage, limit=1) as executor:
        waits = asyncio.ensure_future(calls(executor, 1, "down_to_wait", levels=0))
        await stage.until(lambda: stage.begun == 1)
        blocks = asyncio.ensure_future(calls(executor, 1, "block"))
        await stage.until(lambda: stage.begun == 2)  # in the place that was given back
        stage.released.set()
        await stage.until(lambda: executor.threads._returning)
        stage.release.set()
        await asyncio.gather(waits, blocks)

    assert stage.log == ["blocked no more", "went on"]


async def test_who_comes_back_is_before_who_begins():
    stage = Stage()
    async with running(stage, limit=1) as executor:
        waits = asyncio.ensure_future(calls(executor, 1, "down_to_wait", levels=0))
        await stage.until(lambda: stage.begun == 1)
        blocks = asyncio.ensure_future(calls(executor, 3, "block"))
        await stage.until(lambda: stage.begun == 2)
        stage.released.set()
        await stage.until(lambda: executor.threads._returning)
        stage.release.set()
        await asyncio.gather(waits, blocks)

    assert stage.log[:2] == ["blocked no more", "went on"]


@pytest.mark.parametrize("levels", [0, 2])
async def test_however_many_wait_at_each_depth_no_more_are_under_way_than_twice_the_places(levels):
    stage = Stage()
    async with running(stage, limit=2) as executor:
        waits = asyncio.ensure_future(calls(executor, 50, "down_to_wait", levels=levels))
        await stage.until(lambda: stage.begun >= 4 * (levels + 1))
        for _ in range(100):
            await asyncio.sleep(0)
        begun = stage.begun
        stage.released.set()
        results = await waits

    assert begun == 4 * (levels + 1)
    assert all(result.success for result in results)


async def test_a_tool_may_call_others_from_threads_of_its_own():
    stage = Stage()
    async with running(stage, limit=1) as executor:
        results = await calls(executor, 4, "by_own_threads")

    assert [result.output for result in results] == [[0, 1, 2]] * 4


@pytest.mark.parametrize("levels", [0, 3])
async def test_what_is_cancelled_while_it_waits_leaves_its_place_to_others(levels):
    stage = Stage()
    async with running(stage, limit=1) as executor:
        waits = asyncio.ensure_future(calls(executor, 1, "down_to_wait", levels=levels))
        await stage.until(lambda: stage.begun == levels + 1)
        await executor.cancel("down_to_wait0")
        cancelled = (await waits)[0]
        others = await calls(executor, 3, "down", levels=2)

    assert cancelled.error.type == "Cancelled"
    assert [result.output for result in others] == [2, 2, 2]


async def test_what_is_cancelled_while_it_waits_for_a_place_to_go_on_goes_on_without():
    stage = Stage()
    async with running(stage, limit=1) as executor:
        waits = asyncio.ensure_future(calls(executor, 1, "down_to_wait", levels=0))
        await stage.until(lambda: stage.begun == 1)
        blocks = asyncio.ensure_future(calls(executor, 1, "block"))
        await stage.until(lambda: stage.begun == 2)
        stage.released.set()
        await stage.until(lambda: executor.threads._returning)
        await executor.cancel("down_to_wait0")
        await waits
        await stage.until(lambda: not executor.threads.abandoned)
        stage.release.set()
        await blocks

    assert stage.log == ["went on", "blocked no more"]


async def test_the_callers_own_cancellation_while_it_waits_leaves_its_place_to_others():
    stage = Stage()
    async with running(stage, limit=1) as executor:
        waits = asyncio.create_task(executor.execute_tool(ToolCall("down_to_wait", {"levels": 1})))
        await stage.until(lambda: stage.begun == 2)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits

        assert (await calls(executor, 1, "down", levels=1))[0].output == 1


async def test_a_timeout_ends_who_waits_and_leaves_its_place_to_others():
    stage = Stage()
    async with running(stage, limit=1) as executor:
        late = await calls(executor, 3, "wait_too_long")
        others = await calls(executor, 2, "down", levels=2)

    assert [result.error.type for result in late] == ["TimedOut"] * 3
    assert [result.output for result in others] == [2, 2]


async def test_what_waits_for_a_place_begins_when_who_has_it_is_abandoned():
    stage = Stage()
    async with running(stage, limit=1) as executor:
        blocks = asyncio.ensure_future(calls(executor, 1, "block"))
        await stage.until(lambda: stage.begun == 1)
        waits = asyncio.ensure_future(calls(executor, 1, "down", levels=1))
        await asyncio.sleep(0)
        await executor.cancel("block0")
        await blocks

        assert (await waits)[0].output == 1


async def test_past_the_limit_of_abandoned_threads_what_waits_for_a_place_is_refused():
    stage = Stage()
    async with running(stage, limit=1, abandoned_limit=1) as executor:
        blocks = asyncio.ensure_future(calls(executor, 1, "block"))
        await stage.until(lambda: stage.begun == 1)
        waits = asyncio.ensure_future(calls(executor, 2, "down", levels=1))
        await stage.until(lambda: any(executor.threads._queued.values()))
        await executor.cancel("block0")
        await blocks

        assert [result.error.type for result in await waits] == ["BudgetExceeded"] * 2


async def test_a_job_that_is_abandoned_before_it_begins_never_runs():
    stage = Stage()
    async with running(stage, limit=1) as executor:
        blocks = asyncio.ensure_future(calls(executor, 3, "block"))
        await stage.until(lambda: stage.begun == 1)
        for n in (1, 2):
            await executor.cancel(f"block{n}")
        stage.release.set()
        results = await blocks

    assert [result.success for result in results] == [True, False, False]
    assert stage.begun == 1


async def test_nested_calls_that_a_person_approves_at_once_need_no_place_of_their_callers():
    """They run as deep as the calls that asked for them: else all places of the first depth could wait for one."""
    ran = []

    @tool(effect="mutate", required_access=PUBLIC)
    def act() -> str:
        """Act."""
        ran.append(True)
        return "done"

    @read
    def ask(context) -> str:
        """Have another tool act."""
        return context.call("act").content

    async with AgentOS(mode="approve", budget=None) as host:
        yes = Descriptor("hitl-handler", "yes", lambda proposal: Answer.approve())
        await host.extensions.load_pack(ExtensionPack("p", "1.0", [act, ask, yes]))
        async with asyncio.timeout(60):
            results = await asyncio.gather(*(host.tools.process_tool_call(ToolCall("ask")) for _ in range(40)))
        host.tools.executor.threads.close()

    assert [result.content for result in results] == ["done"] * 40
    assert len(ran) == 40
