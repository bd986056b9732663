"""`agentos stacks` and `agentos why`: who is in force, who is not, and why. No pack is imported in this process."""

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Any

import click

from agentos.checks.probed import ProbedEntry, ProbedStack, ProbeReport
from agentos.cli.app import App, Fail, examples, pass_app
from agentos.cli.inspection import deadline_option, inspect_packs, warn_of_bad
from agentos.cli.known_names import complete_kind, complete_name
from agentos.cli.unread_kinds import reader, unread_kinds
from agentos.model.field_checks import did_you_mean, nearest
from agentos.model.kind import UNREAD
from agentos.stacks.entry import unknown

_COLUMNS = ("id", "state", "pack", "priority", "why")
_STYLES = {
    "active": ("●", "bold green"),
    "wrapped": ("◐", "green"),
    "shadowed": ("○", "bright_black"),
    "gated": ("◇", "yellow"),
    "disabled": ("-", "bright_black"),
    "failed": ("✗", "bold red"),
    "unbound": ("…", "yellow"),
}
"""With which sign, and in which style, the state of an entry is shown."""


@click.command(epilog=examples("agentos stacks", "agentos stacks tool", "agentos stacks --json"))
@click.argument("kind", required=False, shell_complete=complete_kind)
@deadline_option
@pass_app
def stacks(app: App, kind: str | None, deadline: float) -> None:
    """Draw every stack, or those of one KIND: who is active, who is not, and why."""
    from agentos.cli.held_back import data_of_held

    report = inspect_packs(app, deadline)
    kinds = list(dict.fromkeys(stack.kind for stack in report.stacks))
    if kind is not None and kind not in kinds:
        hint = did_you_mean(kind, kinds) or f"; there are {', '.join(kinds) or 'none'}"
        raise Fail(f"nothing of the kind {kind!r} is offered{hint}")
    chosen = [stack for stack in report.stacks if kind in (None, stack.kind)]
    held = [one for stack in chosen for one in _held_back_on(report, stack)]
    told = {"failed": _failed(report), "heldBack": data_of_held(app.config, held)}
    app.out.data({"stacks": [_data(stack) for stack in chosen], **told})
    for position, one in enumerate(dict.fromkeys(stack.kind for stack in chosen)):
        if position:
            app.out.say()
        rows = [row for stack in chosen if stack.kind == one for row in _rows(stack)]
        app.out.table(_COLUMNS, rows, title=one)
    if not chosen:
        app.out.say("There are no stacks: no loaded pack offers anything.")
    for line in unread_kinds(chosen):
        app.out.say(line)
    _print_held_back(app, held)
    _print_warnings(app, report)


def _rows(stack: ProbedStack) -> Iterable[tuple[Any, ...]]:
    for position, entry in enumerate(stack.entries):
        id = (stack.id if position == 0 else "", "bold")
        yield id, _state(entry), _owner_text(entry), str(entry.priority), entry.reason


def _state(entry: ProbedEntry) -> tuple[str, str]:
    sign, style = _STYLES[entry.state]
    return f"{sign} {entry.state}", style


def _owner_text(entry: ProbedEntry) -> str:
    return f"{entry.pack} {entry.version}" if entry.version else entry.pack


def _data(stack: ProbedStack) -> dict[str, Any]:
    active = stack.active
    return {
        "kind": stack.kind,
        "id": stack.id,
        "active": None if active is None else active.pack,
        "readBy": reader(stack.kind),
        "entries": stack.entries,
        "troubles": stack.troubles,
    }


def _failed(report: ProbeReport) -> list[dict[str, Any]]:
    return [{"key": pack.key, "status": pack.status, "reason": pack.reason} for pack in report.bad]


def _held_back_on(report: ProbeReport, stack: ProbedStack) -> list[Mapping[str, Any]]:
    """Return which definitions on a stack wait for a person."""
    ids = {f"{entry.pack}:{stack.id}" for entry in stack.entries if entry.state == "gated"}
    return [one for one in report.pending if one["tool"] in ids]


def _print_held_back(app: App, held: Iterable[Mapping[str, Any]]) -> None:
    from agentos.cli.held_back import way_to_accept

    for one in held:
        app.out.say(f"`{way_to_accept(app.config, one['tool'])}` accepts the definition that is held back")


def _print_warnings(app: App, report: ProbeReport) -> None:
    warn_of_bad(app, report)
    if report.store_error is not None:
        app.out.warn(report.store_error)


# -- why ---------------------------------------------------------------------------------------------------------------


@click.command(
    epilog=examples(
        "agentos why tool:web_search",
        "agentos why web_search --principal ann",
        "agentos why notes:add",
        "agentos why persona:friendly --json",
    ),
)
@click.argument("name", metavar="KIND:ID", shell_complete=complete_name)
@deadline_option
@pass_app
def why(app: App, name: str, deadline: float) -> None:
    """Say who answers to KIND:ID, who does not, and why; without a kind it is a tool, and PACK:ID is one, too.

    With --principal, also which rules that principal lacks to call it. Exits 1 if nobody offers it.
    """
    from agentos.cli.held_back import data_of_held

    _require_name(name)
    report = inspect_packs(app, deadline)
    stack = _find_stack(report, name)
    if stack is None:
        raise _unknown_name(report, name)
    meant = _meant_entry(stack, name)
    access = _missing_access(app, stack, meant)
    denied = _denied_by(app, stack, meant)
    held = _held_back_on(report, stack)
    reached = {"isReachedById": meant is not None and meant is not stack.active}
    told = {**reached, "deniedBy": denied, "failed": _failed(report), "heldBack": data_of_held(app.config, held)}
    app.out.data({**_data(stack), "access": access, **told})
    _print_stack(app, stack, access, denied)
    if meant is not None and meant is not stack.active:
        app.out.say(f"{meant.pack}:{stack.id} is shadowed; its full id reaches it")
    _print_held_back(app, held)
    _print_warnings(app, report)


def _require_name(name: str) -> None:
    if not all(part.strip() for part in name.split(":")):
        raise Fail(f"{name!r} names nothing: expected KIND:ID, or the name of a tool", code=2)


def _find_stack(report: ProbeReport, name: str) -> ProbedStack | None:
    """Return the stack that a name means: a kind and an id, a tool, or what a pack offers, as agentos prints it."""
    return next((stack for stack in report.stacks if name in _names(stack)), None) or next(
        (stack for stack in report.stacks if name in _names_by_pack(stack)), None
    )


def _names(stack: ProbedStack) -> list[str]:
    return [f"{stack.kind}:{stack.id}", *([stack.id] if stack.kind == "tool" else [])]


def _names_by_pack(stack: ProbedStack) -> list[str]:
    owned = [f"{entry.pack}:{stack.id}" for entry in stack.entries]
    return [*owned, *(f"{stack.kind}:{name}" for name in owned)]


def _unknown_name(report: ProbeReport, name: str) -> Fail:
    names = [one for stack in report.stacks for one in (*_names(stack), *_names_by_pack(stack))]
    lacking = [f"{pack.key} was not loaded ({pack.status}): {pack.reason}" for pack in report.absent]
    lacking += [str(one) for one in report.troubles if one.level == "error"]
    return Fail(
        unknown(name if ":" in name else f"tool:{name}", nearest(name, names), lacking),
        hint="`agentos stacks` shows what there is",
        data={"failed": _failed(report)},
    )


def _meant_entry(stack: ProbedStack, name: str) -> ProbedEntry | None:
    """Return who answers a call of *name*: who is active, or of a tool's PACK:ID the one that is shadowed."""
    if stack.kind != "tool" or name in _names(stack):
        return stack.active
    pack = name.removeprefix("tool:").partition(":")[0]
    named = (entry for entry in stack.entries if entry.pack == pack and entry.state == "shadowed")
    return next(named, stack.active)


def _denied_by(app: App, stack: ProbedStack, meant: ProbedEntry | None) -> list[str]:
    """Return the patterns of the host's `deny` that keep a tool from running though it can be reached."""
    if meant is None or stack.kind != "tool":
        return []
    names = (stack.id, f"{meant.pack}:{stack.id}")
    said = app.config.manifest.settings.deny or ()
    return [pattern for pattern in said if any(fnmatch.fnmatchcase(name, pattern) for name in names)]


def _missing_access(app: App, stack: ProbedStack, meant: ProbedEntry | None) -> dict[str, Any] | None:
    """Say what the principal that was named lacks to call a tool; None if none was, or there is nothing to call."""
    who = app.principal
    if app.given.get("principal") is None or meant is None or meant.rules is None:
        return None
    missing = who.missing(meant)
    tool = f"{meant.pack}:{stack.id}"
    return {"principal": who.id, "tool": tool, "isAllowed": not missing, "missing": missing}


def _print_stack(app: App, stack: ProbedStack, access: dict[str, Any] | None, denied: list[str]) -> None:
    from rich.text import Text

    out, active = app.out, stack.active
    verdict = "nobody is active" if active is None else f"active from {_owner_text(active)}"
    verdict += ", but something is wrong with it" if any(one.level == "error" for one in stack.troubles) else ""
    out.say(Text.assemble((f"{stack.kind}:{stack.id}", "bold"), f": {verdict}"))
    rows = [
        (_state(entry), _owner_text(entry), str(entry.priority), entry.reason, entry.origin) for entry in stack.entries
    ]
    out.table(("state", "pack", "priority", "why", "from"), rows)
    for trouble in stack.troubles:
        out.warn(str(trouble))
    if active is not None:
        who = reader(stack.kind)
        out.say(UNREAD[:1].upper() + UNREAD[1:] if who is None else f"Read by {who}")
    for secret in dict.fromkeys(_missing_secrets(stack)):
        out.say(f"`agentos secrets add {secret}` gives it the secret it waits for")
    for pattern in denied:
        out.say(f"The host's `deny` keeps it from running: {pattern}")
    if access is not None:
        out.say(_access_text(access))


def _missing_secrets(stack: ProbedStack) -> Iterable[str]:
    for entry in stack.entries:
        if entry.state == "gated":
            yield from (one["id"] for one in entry.secrets if one["origin"] is None and not one["optional"])


def _access_text(access: dict[str, Any]) -> str:
    who, tool, missing = access["principal"], access["tool"], access["missing"]
    if not missing:
        return f"{who} may call {tool}"
    noun = "rule" if len(missing) == 1 else "rules"
    return f"{who} may not call {tool}: it lacks the {noun} {', '.join(missing)}"
