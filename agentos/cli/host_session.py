"""A host at work in a command: who could not be loaded, how a call ended, and which exit code says so."""

import contextlib
import json
import shlex
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

if TYPE_CHECKING:
    from agentos.access.proposals import Proposal
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
save_media_option = click.option(
    "--save-media",
    "media_folder",
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    help="Save images, sound and files of the result there. Nothing is overwritten.",
)
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
    from agentos.cli.known_names import remember_host

    out, began = app.out, time.time()  # made before a host redirects what is printed
    async with app.host(**overrides) as host:
        remember_host(app.config, host, began)
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
    if result.media:
        told["media"] = [one.reference() for one in result.media]
    if result.error is None:
        return told
    details = {key: value for key, value in result.error.details.items() if key != "token"}
    return {**told, "error": {"type": result.error.type, "message": result.error.message, "details": details}}


def print_result(
    out: "Out", result: "ToolResult", *, hint: str | None = None, media_folder: str | None = None, **more: Any
) -> int:
    """Tell how a call ended: what came out of it on stdout, why it failed on stderr. Return the exit code.

    Its media are saved in *media_folder*, if one is named.
    """
    told = data_of(result)
    saved = save_result_media(out, result, media_folder)
    for one, file in zip(told.get("media", ()), saved, strict=False):
        one["saved"] = None if file is None else str(file)
    out.data({**more, **told, **({} if hint is None else {"hint": hint})})
    if result.success:
        out.say(_result_text(out, result))
    elif not out.is_json:
        out.fail(result.content, hint)
    for file in () if out.is_json else filter(None, saved):
        out.note(f"saved {file}")
    missing = _missing_part(result)
    if missing is not None:
        out.warn(missing)
    return FAILED if missing is not None else code_of(result)


def save_result_media(out: "Out", result: "ToolResult", folder: str | None) -> "list[Path | None]":
    """Save the media of a result, if *folder* is named; what keeps them from being saved is told."""
    from agentos.cli.saved_media import MediaNotSavedError, save_media

    if not result.media:
        return []
    if folder is None:
        if any(one.data is not None for one in result.media):
            out.note("with --save-media FOLDER, what the result has beside its text is saved there")
        return []
    try:
        return save_media(result, Path(folder))
    except MediaNotSavedError as error:
        out.warn(error)
        return []


def _missing_part(result: "ToolResult") -> str | None:
    """Say what is missing of the result of a call that succeeded: whoever reads it must not take it for all of it."""
    for place, setting in (("output_dropped", "limits.output"), ("content_clamped", "limits.content")):
        if result.success and place in result.meta:
            return (
                f"the call succeeded, but its result of {result.meta[place]} characters was cut; "
                f"`{setting}` in the manifest is the limit"
            )
    return None


def whole_results(app: "App") -> dict[str, int]:
    """Return limits for a host whose results are read by programs and people: as much content as is kept of output."""
    from agentos.model.settings import ResultLimits

    limits = attrs.asdict(ResultLimits.of(app.config.manifest.settings.limits))
    return {**limits, "content": max(limits["content"], limits["output"])}


async def way_out(app: "App", host: "AgentOS", name: str, result: "ToolResult") -> str | None:
    """Return the command that lets a call of *name* run, or says why there is no such tool; None for other failures."""
    kind = None if result.error is None else result.error.type
    if result.error is None or kind not in _ABSENT:
        return None
    from agentos.cli.held_back import held_tool, way_to_accept

    held = held_tool(host, await host.pins.pending(), name) if kind == "DefinitionChanged" else None
    return _where_to_look(host, name) if held is None else f"`{way_to_accept(app.config, held)}` accepts it"


def ways_to_approve(app: "App", proposal: "Proposal") -> str:
    """Return the commands that show what waits and run it, as they can be typed where this one was."""
    from agentos.cli.terminal.line_input import can_ask

    flag = "--approve-destructive" if proposal.effect == DESTRUCTIVE else "--yes"
    agreed = () if can_ask(app.out) else (flag,)
    show = app.same_place("approvals", "show", proposal.id)
    approve = app.same_place("approvals", "approve", proposal.id, *agreed)
    return f"`{show}` says what would run, `{approve}` runs it"


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
