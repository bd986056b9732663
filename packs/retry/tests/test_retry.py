"""What is tried again, how often, and what is left alone."""

import pytest
from agentos_pack_retry._retry import create_descriptors

from agentos import PUBLIC, AgentOS, ExtensionPack, ToolCall, ToolResult, tool


class Flaky:
    """Tools that fail as often as they are told, a clock, and waits that take no time."""

    def __init__(self):
        self.failures = 0
        self.calls = 0
        self.now = 0.0
        self.waits = []

    async def sleep(self, seconds):
        self.waits.append(seconds)

    def clock(self):
        return self.now

    def answer(self):
        self.calls += 1
        if self.failures:
            self.failures -= 1
            raise OSError("no route")
        return self.calls

    def tools(self):
        @tool(effect="read", required_access=PUBLIC)
        def look() -> int:
            """Look."""
            return self.answer()

        @tool(effect="mutate", required_access=PUBLIC)
        def change() -> int:
            """Change."""
            return self.answer()

        @tool(effect="mutate", required_access=PUBLIC, idempotent=True)
        def put() -> int:
            """Put."""
            return self.answer()

        @tool(effect="read", required_access=PUBLIC)
        def deny() -> ToolResult:
            """Deny."""
            self.calls += 1
            return ToolResult.fail("NotFound", "it is not there")

        return [look, change, put, deny]


@pytest.fixture
def flaky():
    return Flaky()


@pytest.fixture
async def hosts(flaky):
    opened = []

    async def make(**options):
        host = AgentOS(mode="auto")
        opened.append(host)
        await host.initialize()
        made = create_descriptors(options, clock=flaky.clock, sleep=flaky.sleep)
        await host.extensions.load_pack(ExtensionPack("ours", "1.0", flaky.tools()))
        await host.extensions.load_pack(ExtensionPack("retry", "1.0", made))
        return host

    yield make
    for host in opened:
        await host.shutdown()


async def call(host, name="look", **arguments):
    return await host.tools.process_tool_call(ToolCall(name, arguments))


@pytest.mark.parametrize(
    ("failures", "output", "calls", "attempts"), [(0, 1, 1, None), (1, 2, 2, 2), (2, 3, 3, 3), (3, None, 3, 3)]
)
async def test_a_read_is_tried_again_as_often_as_is_said(hosts, flaky, failures, output, calls, attempts):
    host = await hosts(tools=["ours:*"])
    flaky.failures = failures
    result = await call(host)

    assert (result.output, flaky.calls, result.meta.get("attempts")) == (output, calls, attempts)
    assert len(flaky.waits) == calls - 1
    assert all(0 <= wait <= limit for wait, limit in zip(flaky.waits, (0.5, 1.0), strict=False))


@pytest.mark.parametrize(("name", "calls"), [("look", 3), ("put", 3), ("change", 1)])
async def test_nothing_is_done_twice_that_may_not_be(hosts, flaky, name, calls):
    host = await hosts(tools=["*"])
    flaky.failures = 9
    result = await call(host, name)

    assert (result.error.type, flaky.calls) == ("ToolRaised", calls)


async def test_only_errors_that_may_pass_are_tried_again(hosts, flaky):
    host, eager = await hosts(tools=["*"]), await hosts(tools=["*"], errors=["*"])
    wrong = [await call(one, unknown=1) for one in (host, eager)]
    plain = flaky.calls
    await call(host, "deny")
    once = flaky.calls
    await call(eager, "deny")

    assert [one.error.type for one in wrong] == ["InvalidArguments"] * 2
    assert (plain, once, flaky.calls) == (0, 1, 4)


async def test_a_tool_that_goes_on_failing_is_left_alone_and_then_tried_once(hosts, flaky):
    host = await hosts(breaker=["ours:look"], breakerFailures=3, breakerSeconds=30)
    flaky.failures = 4
    failed = [(await call(host)).error.type for _ in range(3)]
    left_alone = await call(host)
    other = await call(host, "deny")
    flaky.now = 31.0
    trial, again = await call(host), await call(host)
    flaky.now = 62.0
    works, still = await call(host), await call(host)

    assert failed == ["ToolRaised"] * 3
    assert (left_alone.error.type, left_alone.error.details["retry_after"]) == ("CircuitOpen", 30.0)
    assert "failed 3 times in a row" in left_alone.error.message
    assert other.error.type == "NotFound"
    assert (trial.error.type, again.error.type) == ("ToolRaised", "CircuitOpen")
    assert (works.success, still.success) == (True, True)


async def test_the_breaker_counts_calls_and_not_attempts(hosts, flaky):
    host = await hosts(tools=["*"], breaker=["*"], breakerFailures=2)
    flaky.failures = 3
    failed, works = await call(host), await call(host)

    assert (failed.error.type, works.success, flaky.calls) == ("ToolRaised", True, 4)


async def test_the_callers_faults_count_neither_way(hosts, flaky):
    host = await hosts(breaker=["*"], breakerFailures=2)
    flaky.failures = 2
    types = [(await call(host)).error.type, (await call(host, unknown=1)).error.type, (await call(host)).error.type]

    assert types == ["ToolRaised", "InvalidArguments", "ToolRaised"]
    assert (await call(host)).error.type == "CircuitOpen"


@pytest.mark.parametrize("options", [{"attempts": 1}, {"tool": ["x"]}, {"backoff": -1}])
async def test_wrong_options_fail_the_load(options):
    host = AgentOS(extension_manifest={"packs": [{"package": "retry", "options": options}]})
    report = await host.initialize()
    await host.shutdown()

    assert ["options." in str(one) for one in report.failed] == [True]


@pytest.mark.parametrize(("options", "count"), [({}, 1), ({"tools": ["*"]}, 0), ({"breaker": ["*"]}, 0)])
async def test_that_it_does_nothing_is_told(flaky, options, count):
    entries = [
        {"factory": lambda: ExtensionPack("ours", "1.0", flaky.tools())},
        {"package": "retry", "options": options},
    ]
    async with AgentOS(extension_manifest=entries) as host:
        told, found = host.extensions.report.troubles, (await host.check()).troubles

    assert [(one.level, one.about) for one in told] == [("warning", "pack retry")] * count
    assert all("neither `tools` nor `breaker`" in one.message for one in told)
    assert found == told
