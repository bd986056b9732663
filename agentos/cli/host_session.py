"""A host at work in a command: who could not be loaded, how a call ended, and which exit code says so."""

import contextlib
import json
import shlex
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentos.cli.app import App
    from agentos.cli.terminal.output import Out
    from agentos.host import AgentOS
    from agentos.model.report import PackOutcome
    from agentos.model.tool_call import ToolResult

FAILED, USAGE, UNUSABLE, REFUSED = 1, 2, 3, 4
SHORT_ID, SHORTEST_ID = 8, 4
"""How many characters of an id are shown to people, enough to name it, and how many they have to give."""
DESTRUCTIVE = "destructive"
EFFECTS = {"read": "green", "mutate": "yellow", DESTRUCTIVE: "bold red"}
"""In which style the effect of a tool is shown."""
_CODES = {
    "InvalidArguments": USAGE,
    "AccessDenied": REFUSED,
    "Refused": REFUSED,
    "ApprovalRequired": REFUSED,
    "BudgetExceeded": REFUSED,
    "GuardrailBlocked": REFUSED,
    "DefinitionChanged": REFUSED,
    "ProposalInvalid": REFUSED,
}

_ABSENT = ("UnknownTool", "HandlerMissing", "WorkerDied", "DefinitionChanged")
"""How a call fails for which no tool is in force."""


@contextlib.asynccontextmanager
async def working_host(app: "App", *, tells_held_back: bool = True, **overrides: Any) -> "AsyncIterator[AgentOS]":
    """Give a host of the configuration, and say what it had to do without: packs, and definitions held back."""
    from agentos.cli.held_back import words_of

    out = app.out  # made before a host redirects what is printed
    async with app.host(**overrides) as host:
        report = host.extensions.report
        for outcome in report.failed if report is not None else ():
            out.warn(f"{outcome.key} was not loaded: {reason_of(outcome)}")
        for pin in await host.pins.pending() if tells_held_back else ():
            out.warn(words_of(app.config, pin.tool, pin.state))
        yield host


def reason_of(outcome: "PackOutcome") -> str | None:
    """Return why a pack was not loaded, without its name: that is said already."""
    return getattr(outcome.error, "message", outcome.reason)


def code_of(result: "ToolResult") -> int:
    """Return the exit code that says how a call ended."""
    return 0 if result.error is None else _CODES.get(result.error.type, FAILED)


def data_of(result: "ToolResult") -> dict[str, Any]:
    """Return a result as JSON shows it; the token of a proposal stays out: who has it can approve."""
    told = {name: getattr(result, name) for name in ("success", "output", "content", "state", "meta")}
    if result.error is None:
        return told
    details = {key: value for key, value in result.error.details.items() if key != "token"}
    return {**told, "error": {"type": result.error.type, "message": result.error.message, "details": details}}


def print_result(out: "Out", result: "ToolResult", *, hint: str | None = None, **more: Any) -> int:
    """Tell how a call ended: what came out of it on stdout, why it failed on stderr. Return the exit code."""
    out.data({**more, **data_of(result), **({} if hint is None else {"hint": hint})})
    if result.success:
        out.say(_result_text(out, result))
    elif not out.is_json:
        out.fail(result.content, hint)
    return code_of(result)


async def way_out(app: "App", host: "AgentOS", name: str, result: "ToolResult") -> str | None:
    """Return the command that lets a call of *name* run, or says why there is no such tool; None for other failures."""
    kind = None if result.error is None else result.error.type
    if result.error is None or kind not in _ABSENT:
        return None
    from agentos.cli.held_back import held_tool, way_to_accept

    held = held_tool(host, await host.pins.pending(), name) if kind == "DefinitionChanged" else None
    return _where_to_look(host, name) if held is None else f"`{way_to_accept(app.config, held)}` accepts it"


def _where_to_look(host: "AgentOS", name: str) -> str:
    id = name.rpartition(":")[2]
    if host.extensions.registry("tool").stack(id):
        return f"`agentos why {shlex.quote(f'tool:{id}')}` says more"
    return "`agentos tools list` shows what there is"


def _result_text(out: "Out", result: "ToolResult") -> str:
    """Return the content; JSON that nobody put into words is laid out for whoever reads it at a terminal."""
    if not isinstance(result.output, dict | list) or not out.console.is_terminal:
        return result.content
    try:
        is_plain = json.loads(result.content) == result.output
    except ValueError:
        is_plain = False
    return json.dumps(result.output, indent=2, ensure_ascii=False) if is_plain else result.content


def held_in_memory(app: "App") -> bool:
    """Tell whether what waits for approval ends with the process, since the manifest names no store."""
    from agentos.store.locations import place_of

    return not place_of(app.config.manifest.store).is_durable
