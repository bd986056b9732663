"""What is kept, for whom, and for how long."""

import itertools

import pytest
from agentos_pack_cache._cache import create_descriptors

from agentos import PUBLIC, AgentOS, ExtensionPack, Principal, ToolCall, tool

ANN, BOB = Principal("ann"), Principal("bob")


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def numbers():
    return itertools.count(1)


@pytest.fixture
async def hosts(numbers):
    opened = []

    @tool(effect="read", required_access=PUBLIC)
    def look(what: str, size: int = 1) -> dict:
        """Look."""
        if what == "nothing":
            raise ValueError("nothing there")
        return {"number": next(numbers), "text": "x" * size}

    @tool(effect="mutate", required_access=PUBLIC)
    def change() -> int:
        """Change."""
        return next(numbers)

    async def make(clock=None, **options):
        host = AgentOS(mode="auto")
        opened.append(host)
        await host.initialize()
        await host.extensions.load_pack(ExtensionPack("ours", "1.0", [look, change]))
        await host.extensions.load_pack(ExtensionPack("cache", "1.0", create_descriptors(options, clock or Clock())))
        return host

    yield make
    for host in opened:
        await host.shutdown()


async def look(host, what="x", principal=ANN, session=None, **more):
    call = ToolCall("look", {"what": what, **more}, "c1")
    return await host.tools.process_tool_call(call, principal, session=session)


async def number(*arguments, **more):
    return (await look(*arguments, **more)).output["number"]


async def test_the_same_question_is_answered_once_until_its_time_is_over(hosts):
    clock = Clock()
    host = await hosts(clock, tools={"ours:look": {"seconds": 10}})
    first = [await number(host), await number(host), await number(host, "y")]
    clock.now = 10.0

    assert first == [1, 1, 2]
    assert await number(host) == 3


async def test_a_kept_answer_says_so_and_belongs_to_its_own_call(hosts):
    host = await hosts(tools={"look": {"seconds": 10}})
    fresh, kept = await look(host), await look(host)

    assert (fresh.meta.get("cached"), kept.meta["cached"]) == (None, True)
    assert (fresh.call_id, kept.call_id) == ("c1", "c1")


@pytest.mark.parametrize(
    ("scope", "seen"), [("session", [1, 2, 3, 1]), ("principal", [1, 1, 2, 1]), ("all", [1, 1, 1, 1])]
)
async def test_answers_are_for_those_they_were_given_to_unless_it_is_said(hosts, scope, seen):
    host = await hosts(tools={"*": {"seconds": 10, "scope": scope}})

    assert [
        await number(host, session={"id": "1"}),
        await number(host, session={"id": "2"}),
        await number(host, session={"id": "1"}, principal=BOB),
        await number(host, session={"id": "1"}),
    ] == seen


async def test_what_changes_something_and_what_fails_is_never_kept(hosts):
    host = await hosts(tools={"*": {"seconds": 10}})
    changed = [(await host.tools.process_tool_call(ToolCall("change"), Principal.system())).output for _ in range(2)]
    failed = [await look(host, "nothing") for _ in range(2)]

    assert changed == [1, 2]
    assert [one.meta.get("cached") for one in failed] == [None, None]


async def test_the_oldest_go_when_there_are_too_many_or_too_large_ones(hosts):
    few, small = (
        await hosts(tools={"*": {"seconds": 9}}, maxEntries=2),
        await hosts(tools={"*": {"seconds": 9}}, maxBytes=5_000),
    )
    for host, size in ((few, 1), (small, 1_000)):
        kept = [await number(host, one, size=size) for one in "abc"]

        assert await number(host, "c", size=size) == kept[2]
        assert await number(host, "a", size=size) != kept[0]
    assert await number(small, "large", size=9_000) != await number(small, "large", size=9_000)


async def test_without_a_pattern_there_is_nothing(hosts):
    host = await hosts()

    assert [await number(host), await number(host)] == [1, 2]


@pytest.mark.parametrize(
    "options", [{"tools": {"x": {"seconds": 0}}}, {"tools": {"x": {}}}, {"size": 1}, {"maxEntries": 0}]
)
async def test_wrong_options_fail_the_load(options):
    host = AgentOS(extension_manifest={"packs": [{"package": "cache", "options": options}]})
    report = await host.initialize()
    await host.shutdown()

    assert ["options." in str(one) for one in report.failed] == [True]


@pytest.mark.parametrize(("options", "count"), [({}, 1), ({"tools": {}}, 1), ({"tools": {"*": {"seconds": 1}}}, 0)])
async def test_that_it_does_nothing_is_told(options, count):
    @tool(effect="read", required_access=PUBLIC)
    def look() -> int:
        """Look."""
        return 1

    entries = [{"factory": lambda: ExtensionPack("ours", "1.0", [look])}, {"package": "cache", "options": options}]
    async with AgentOS(extension_manifest=entries) as host:
        told, found = host.extensions.report.troubles, (await host.check()).troubles

    assert [(one.level, one.about) for one in told] == [("warning", "pack cache")] * count
    assert all("name no `tools`" in one.message for one in told)
    assert found == told
