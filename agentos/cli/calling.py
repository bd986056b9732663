"""One call from the command line: arguments read, progress shown, approval asked, one result told."""

import asyncio
from typing import TYPE_CHECKING

import attrs

from agentos.access.proposals import ProposalError
from agentos.cli.app import App
from agentos.cli.call_arguments import read_arguments
from agentos.cli.host_session import (
    code_of,
    data_of,
    held_in_memory,
    print_result,
    way_out,
    ways_to_approve,
    whole_results,
    working_host,
)
from agentos.cli.terminal.approval_dialog import Approver
from agentos.cli.terminal.line_input import can_ask
from agentos.model.tool_call import ToolCall, ToolResult

if TYPE_CHECKING:
    from agentos.host import AgentOS
    from agentos.tools.ready import ReadyTool

_CALL_ID = "command-line"
_LOST = (
    "the manifest names no store, so the proposal ended with this command; call again at a terminal or with --yes "
    "(--approve-destructive for what may destroy something), or set `store` in the manifest"
)


@attrs.frozen(kw_only=True)
class CallRequest:
    """What was asked for on the command line."""

    name: str
    words: tuple[str, ...] = ()
    text: str | None = None
    dry_run: bool = False
    key: str | None = None
    yes: bool = False
    destructive: bool = False
    media_folder: str | None = None


async def run_call(app: App, request: CallRequest) -> int:
    """Make the call that is wished for, tell how it ended, and return the exit code."""
    limits = whole_results(app)
    async with working_host(app, tells_held_back=False, starts_servers=False, limits=limits) as host:
        ready = await find_tool(host, request.name)
        if ready is not None and not app.principal.may_call(ready.tool):
            ready = None  # it does not exist for this principal: the answer is that of an unknown name
        schema = {} if ready is None else ready.tool.input_schema
        arguments = read_arguments(schema, request.words, request.text)
        call = ToolCall(request.name, arguments, _CALL_ID, request.key)
        if request.dry_run:
            return await _report(app, host, request, await host.tools.preview(call, app.principal))
        return await _call(app, host, request, call, ready)


async def find_tool(host: "AgentOS", name: str) -> "ReadyTool | None":
    """Return the tool of a name; servers that were not started are, if nothing that is known has that name."""
    if (ready := host.tools.catalog.find(name)) is not None:
        return ready
    bridges = [entry.payload for entry in host.extensions.registry("mcp-server").list_active()]
    await asyncio.gather(*(bridge.wake() for bridge in bridges if bridge.is_asleep))
    return host.tools.catalog.find(name)


async def _call(app: App, host: "AgentOS", request: CallRequest, call: ToolCall, ready: "ReadyTool | None") -> int:
    named = ready.qualified_id if ready is not None and request.destructive else None
    approver = Approver(app, host, yes=request.yes, destructive=named)
    try:
        async with approver:
            result = await host.tools.process_tool_call(call, app.principal, rejoin=True)
    except asyncio.CancelledError:
        end = "it may have taken effect or not" if approver.progress.has_begun else "it did not run"
        app.out.note(f"the call of {request.name} was cancelled; {end}")
        raise
    return await _report(app, host, request, result)


async def _report(app: App, host: "AgentOS", request: CallRequest, result: ToolResult) -> int:
    if result.error is not None and result.error.type == "ApprovalRequired":
        return await _report_waiting(app, host, request, result)
    hint = await way_out(app, host, request.name, result)
    return print_result(app.out, result, hint=hint, media_folder=request.media_folder, tool=request.name)


async def _report_waiting(app: App, host: "AgentOS", request: CallRequest, result: ToolResult) -> int:
    """Say that a call waits, as what, and who can let it run: a proposal in memory ends with this command."""
    proposal = "" if result.error is None else str(result.error.details.get("proposal_id"))
    is_lost = held_in_memory(app)
    way = _LOST if is_lost else await _ways(app, host, proposal)
    app.out.data({"tool": request.name, **data_of(result), "proposal": None if is_lost else proposal, "hint": way})
    if not app.out.is_json:
        details = {} if result.error is None else result.error.details
        _print_waiting(app, f"{details.get('reason')}; it waits for approval as proposal {proposal}", way)
    return code_of(result)


async def _ways(app: App, host: "AgentOS", id: str) -> str:
    try:
        return ways_to_approve(app, await host.approvals.describe(id))
    except ProposalError:  # a tool said so by itself
        return f"`{app.same_place('approvals', 'list')}` shows what waits"


def _print_waiting(app: App, said: str, way: str) -> None:
    """Tell whoever could not be asked that the call did not run; who was asked and put it off knows that."""
    if can_ask(app.out):
        app.out.note(f"{said}\n{way}")
    else:
        app.out.fail(said, way)
