"""Text of a hundred megabytes, wherever a caller or a tool can put it: what is kept, recorded and told is bounded."""

import pytest

from agentos import PUBLIC, AgentOS, Descriptor, ExtensionPack, ToolCall, ToolContext, ToolResult, tool
from agentos.calls.results import CONTENT_LIMIT, STATE_LIMIT
from agentos.model.tool_call import ToolError

SIZES = [pytest.param(3_000_000, id="3 MB"), pytest.param(100_000_000, id="100 MB", marks=pytest.mark.proof)]


class Wordy(Exception):
    """Has as much to say as it was made with."""

    def __str__(self):
        return self.args[0] * self.args[1]


def raising(error):
    raise error


ANSWERS = {
    "a text": lambda size: "x" * size,
    "texts": lambda size: ["x" * (size // 2)] * 2,
    "a key": lambda size: {"x" * size: 1},
    "bytes": lambda size: b"x" * size,
    "an error": lambda size: raising(ValueError("x" * size)),
    "an error that is asked": lambda size: raising(Wordy("x", size)),
    "a type of error": lambda size: raising(type("X" * size, (Exception,), {})("x")),
    "errors": lambda size: raising(ExceptionGroup("x" * size, [ValueError("x" * size)])),
    "content": lambda size: ToolResult.ok(1, "x" * size),
    "state": lambda size: ToolResult.ok(1, state={"x": "x" * size}),
    "meta": lambda size: ToolResult(True, 1, "one", meta={"x": "x" * size}),
    "a message": lambda size: ToolResult.fail("Bad", "x" * size),
    "a type": lambda size: ToolResult.fail("X" * size, "bad"),
    "details": lambda size: ToolResult.fail("Bad", "bad", {"x": "x" * size}),
    "an error of its own": lambda size: ToolResult(False, None, "", error=ToolError("X" * size, "x" * size, {})),
}


def hosting(answer, effect="read", **fields):
    @tool(effect=effect, required_access=PUBLIC, **fields)
    def large(text: str = "") -> object:
        """Answer with much."""
        return answer(text)

    return ExtensionPack("large", "1", [Descriptor("tool", "large", large)])


def told(result):
    """Return how many characters a result has in all that is handed on."""
    return len(repr((result.content, result.error, result.state, dict(result.meta), result.output)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
async def test_what_a_tool_answers_is_bounded_wherever_it_is(answer, size):
    async with AgentOS() as host:
        await host.extensions.load_pack(hosting(lambda _: answer(size)))
        result = await host.tools.process_tool_call(ToolCall("large", {}))
        records = await host.audit.records()

    assert len(result.content) <= CONTENT_LIMIT
    assert told(result) < STATE_LIMIT + 3 * CONTENT_LIMIT
    assert max(len(repr(record)) for record in records) < 2 * CONTENT_LIMIT


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "call",
    [
        lambda size: ToolCall("x" * size, {}),
        lambda size: ToolCall("large:" + "x" * size, {}),
        lambda size: ToolCall("large", {"x" * size: 1}),
        lambda size: ToolCall("large", {"text": ["x" * size]}),
        lambda size: ToolCall("large", '{"text": "' + "x" * size + '"}'),
        lambda size: ToolCall("large", "x" * size),
    ],
    ids=["name", "name in a pack", "key", "of another type", "as JSON", "no JSON"],
)
async def test_what_a_caller_sends_is_refused_in_few_words(call, size):
    async with AgentOS() as host:
        await host.extensions.load_pack(hosting(len))
        result = await host.tools.process_tool_call(call(size))
        records = await host.audit.records()

    assert (result.success, told(result) < 2_000) == (False, True)
    assert max((len(repr(record)) for record in records), default=0) < 10_000


@pytest.mark.parametrize("size", SIZES)
async def test_a_preview_is_bounded(size):
    async with AgentOS() as host:
        pack = hosting(len, effect="mutate", dry_run=lambda arguments, context: {"x": "x" * size})
        await host.extensions.load_pack(pack)
        result = await host.tools.process_tool_call(ToolCall("large", {}))
        (proposal,) = await host.approvals.pending()

    assert (result.error.type, len(repr(proposal.preview)) < CONTENT_LIMIT) == ("ApprovalRequired", True)


@pytest.mark.parametrize("size", SIZES)
async def test_a_tool_that_reports_much_ends_with_its_own_answer(size):
    @tool(effect="read", required_access=PUBLIC)
    async def reports(context: ToolContext) -> int:
        """Report much."""
        for done in range(3):
            await context.report_progress(done, 3, "x" * size)
        return 1

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("large", "1", [Descriptor("tool", "reports", reports)]))
        result = await host.tools.process_tool_call(ToolCall("reports", {}))
        records = await host.audit.records()

    assert (result.output, max(len(repr(record)) for record in records) < 10_000) == (1, True)
