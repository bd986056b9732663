"""`agentos approvals`: what waits for a person, and the person's answer."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from agentos.cli.app import App, Fail, completing, examples, run_async
from agentos.cli.host_session import (
    DESTRUCTIVE,
    EFFECTS,
    REFUSED,
    SHORT_ID,
    SHORTEST_ID,
    data_of,
    print_result,
    save_media_option,
    ways_to_approve,
    whole_results,
    working_host,
)
from agentos.cli.terminal.output import plain

if TYPE_CHECKING:
    from agentos.access.proposals import Proposal, Stored
    from agentos.cli.store_records import Records

_BRIEF = 60
"""How many characters of a call's arguments stand in the list."""


@click.group(
    epilog=examples("agentos approvals list", "agentos approvals show 3f2a91c0", "agentos approvals approve 3f2a91c0"),
)
def approvals() -> None:
    """Decide on calls that wait for a person.

    An id may be cut short as long as it is clear which is meant. Who decides is --principal, else the host itself: a
    proposal is decided on by whoever made it, unless the manifest says `allowOtherApprover`.
    """


def _ids(app: App) -> list[str]:
    return app.run(_waiting_ids(app), logs=False)


async def _waiting_ids(app: App) -> list[str]:
    from agentos.cli.store_records import records

    async with records(app.config) as found:
        return [] if found is None else [one.id[:SHORT_ID] for one in await found.proposals.pending(None)]


_id_argument = click.argument("id", shell_complete=completing(_ids))


# -- list, show --------------------------------------------------------------------------------------------------------


@approvals.command("list", epilog=examples("agentos approvals list", "agentos approvals list --principal ann --json"))
@run_async
async def list_(app: App) -> None:
    """List the calls that wait, oldest first; with --principal, those of one principal."""
    from agentos.cli.store_records import records

    out = app.out
    async with records(app.config) as found:
        waiting = [] if found is None else await found.proposals.pending(app.named_principal)
    out.data({"proposals": [_data(one) for one in waiting]})
    rows = [
        (
            (one.id[:SHORT_ID], "bold"),
            one.tool,
            (one.effect, EFFECTS.get(one.effect, "bold red")),
            _arguments(one),
            one.principal.key,
            _time_left(one),
            "\n".join((one.reason, *(f"flagged: {warning}" for warning in one.flagged))),
        )
        for one in waiting
    ]
    heads = ("id", "tool", "effect", "with", "for", "expires in", "why it asks")
    out.table(heads, rows, empty="Nothing waits for approval.")


def _arguments(proposal: "Proposal") -> str:
    """Return the arguments in short: enough to tell calls of one tool apart. `show` has them whole."""
    from agentos.cli.terminal.approval_dialog import NOT_KEPT
    from agentos.cli.terminal.call_progress import arguments_text

    return NOT_KEPT if proposal.arguments is None else arguments_text(proposal.arguments, _BRIEF)


def _time_left(proposal: "Proposal") -> str:
    """Say for how long a proposal waits yet."""
    seconds = max(0, int((proposal.expires_at - datetime.now(UTC)).total_seconds()))
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _data(proposal: "Proposal") -> dict[str, Any]:
    whole = {"arguments": proposal.arguments, "preview": proposal.preview, "principal": proposal.principal.key}
    return {**plain(proposal), **whole}


@approvals.command(epilog=examples("agentos approvals show 3f2a91c0", "agentos approvals show 3f2a91c0 --json"))
@_id_argument
@run_async
async def show(app: App, id: str) -> None:
    """Show what exactly would run, or what became of it."""
    from agentos.access.proposals import stored_result
    from agentos.cli.store_records import records
    from agentos.cli.terminal.approval_dialog import INDENT, describe

    out = app.out
    async with records(app.config) as found:
        stored = await _stored_proposal(found, id)
    proposal, result = stored.proposal, stored_result(stored)
    out.data({**_data(proposal), "result": None if result is None else data_of(result)})
    if not out.is_json:
        fits = len(proposal.id) + INDENT <= out.console.width  # a piece of it does, too, and can be copied
        more = [("id", proposal.id if fits else proposal.id[:SHORT_ID]), ("state", _state_text(proposal))]
        more += [] if result is None else [("result", result.content)]
        out.say(describe(proposal, out.console, *more))


def _state_text(proposal: "Proposal") -> str:
    if proposal.state == "proposed":
        return f"waits until {proposal.expires_at.isoformat(timespec='seconds')} ({_time_left(proposal)})"
    by = f" by {proposal.decided_by}" if proposal.decided_by else ""
    return f"{proposal.state}{by}{f': {proposal.note}' if proposal.note else ''}"


async def _stored_proposal(found: "Records | None", id: str) -> "Stored":
    """Return the proposal that an id, or the beginning of one, means."""
    whole = id if found is None else await _full_id(found, id)
    stored = None if found is None else await found.proposals.by_id(whole)
    if stored is None:
        raise Fail(f"there is no proposal {id[:64]!r}", hint="`agentos approvals list` shows those that wait")
    return stored


async def _full_id(found: "Records", id: str) -> str:
    """Return the id that is meant: one that waits, else any."""
    if len(id) < SHORTEST_ID:
        raise Fail(f"{id!r} is too short for an id: give at least {SHORTEST_ID} characters", code=2)
    meant = [one.id for one in await found.proposals.pending(None) if one.id.startswith(id)]
    meant = meant or await found.proposals_like(id)
    if len(meant) > 1:
        raise Fail(f"{id!r} may mean {' or '.join(meant)}", code=2)
    return meant[0] if meant else id


# -- approve, edit, reject ---------------------------------------------------------------------------------------------


@approvals.command(
    epilog=examples(
        "agentos approvals approve 3f2a91c0",
        "agentos approvals approve 3f2a91c0 --yes --json",
        "agentos approvals approve 3f2a91c0 --approve-destructive",
    ),
)
@_id_argument
@click.option("--yes", "-y", is_flag=True, help="Do not ask again; never for what may destroy something.")
@click.option("--approve-destructive", is_flag=True, help="Do not ask again, even if it may destroy something.")
@save_media_option
@run_async
async def approve(app: App, id: str, yes: bool, approve_destructive: bool, media_folder: str | None) -> int:
    """Run what was proposed, once, and tell its result. What will run is shown first."""
    from agentos.cli.terminal.approval_dialog import Approver

    proposal = await _find_proposal(app, id)
    await _confirm(app, proposal, is_agreed=approve_destructive or (yes and proposal.effect != DESTRUCTIVE))
    limits = whole_results(app)
    async with working_host(app, tells_held_back=False, starts_servers=False, limits=limits) as host:
        try:
            async with Approver(app, host, yes=yes):
                result = await host.approvals.approve(proposal.id, by=app.principal)
        except asyncio.CancelledError:
            app.out.note(f"proposal {proposal.id} was being applied when it was cancelled; it may have taken effect")
            raise
        code = print_result(app.out, result, media_folder=media_folder, proposal=proposal.id)
    if result.error is not None and result.error.type == "ProposalInvalid" and (hint := _who_decides(app, proposal)):
        app.out.note(hint)
    return code


async def _find_proposal(app: App, id: str) -> "Proposal":
    from agentos.cli.store_records import records

    async with records(app.config) as found:
        return (await _stored_proposal(found, id)).proposal


async def _confirm(app: App, proposal: "Proposal", *, is_agreed: bool) -> None:
    """Show what will run; go on if that was agreed to on the command line, or is now."""
    from agentos.cli.terminal.approval_dialog import describe
    from agentos.cli.terminal.line_input import can_ask, read_line

    if is_agreed or proposal.state != "proposed":
        return  # what can't run any more is told by whoever refuses it
    is_destructive = proposal.effect == DESTRUCTIVE
    if not can_ask(app.out):
        flag = "--approve-destructive" if is_destructive else "--yes"
        raise Fail(
            f"proposal {proposal.id} was not approved: there is no terminal to ask at",
            code=REFUSED,
            hint=f"look at it with `{app.same_place('approvals', 'show', proposal.id)}`, then say {flag}",
        )
    app.out.note(describe(proposal, app.out.errors))
    said = await read_line("Type approve to run it: " if is_destructive else "Run it? [y/N] ", afresh=True)
    if (said or "").strip().lower() not in (("approve",) if is_destructive else ("y", "yes", "approve")):
        raise Fail(f"not approved; proposal {proposal.id} waits on", code=REFUSED)


def _who_decides(app: App, proposal: "Proposal") -> str | None:
    """Say how a proposal of somebody else is decided on."""
    from agentos.model.principal import Principal

    who = proposal.principal.key
    if who == app.principal.key or app.config.manifest.settings.allow_other_approver:
        return None
    is_host = who == Principal.system().key
    way = "leave out --principal" if is_host else f"decide in its name with --principal {proposal.principal.id}"
    return f"{way}, or set `allowOtherApprover = true` in the manifest"


@contextlib.contextmanager
def _refusing(app: App, proposal: "Proposal") -> Iterator[None]:
    """End the command with what keeps a proposal from being edited or rejected."""
    from agentos.access.proposals import ProposalError

    try:
        yield
    except ProposalError as error:
        raise Fail(str(error), code=REFUSED, hint=_who_decides(app, proposal)) from None


@approvals.command(
    epilog=examples(
        "agentos approvals edit 3f2a91c0 to=bob@example.org", 'agentos approvals edit 3f2a91c0 --args \'{"to": "bob"}\''
    ),
)
@_id_argument
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--args", "text", metavar="JSON", help="All arguments anew, as a JSON object; - reads stdin, @FILE a file."
)
@run_async
async def edit(app: App, id: str, arguments: Sequence[str], text: str | None) -> None:
    """Replace a call that waits by one with other arguments. It gets an id of its own, and waits as well."""
    from agentos.cli.terminal.approval_dialog import describe, edited_arguments

    if not arguments and text is None:
        raise Fail("nothing is to be changed", code=2, hint="give name=value, or --args with a JSON object")
    old = await _find_proposal(app, id)
    async with working_host(app, tells_held_back=False) as host:
        changed = edited_arguments(host, old, arguments, text)
        with _refusing(app, old):
            new = await host.approvals.edit(old.id, changed, by=app.principal)
    app.out.data(_data(new))
    if not app.out.is_json:
        app.out.say(describe(new, app.out.console))
    app.out.say(f"It waits as proposal {new.id}: {ways_to_approve(app, new)}")


@approvals.command("ask-again", epilog=examples("agentos approvals ask-again 3f2a91c0"))
@_id_argument
@run_async
async def ask_again(app: App, id: str) -> None:
    """Propose a call once more that nobody decided on in time. It gets an id of its own."""
    old = await _find_proposal(app, id)
    async with working_host(app, tells_held_back=False) as host:
        with _refusing(app, old):
            new = await host.approvals.ask_again(old.id, by=app.principal)
    app.out.data(_data(new))
    app.out.say(f"It waits as proposal {new.id}: {ways_to_approve(app, new)}")


@approvals.command(epilog=examples('agentos approvals reject 3f2a91c0 --reason "wrong address"'))
@_id_argument
@click.option("--reason", default="no reason given", help="Why, for the record and for whoever made the call.")
@run_async
async def reject(app: App, id: str, reason: str) -> None:
    """Close a call that waits. It will not run."""
    proposal = await _find_proposal(app, id)
    async with working_host(app, tells_held_back=False) as host:
        with _refusing(app, proposal):
            await host.approvals.reject(proposal.id, reason, by=app.principal)
    app.out.data({"id": proposal.id, "state": "rejected", "reason": reason})
    app.out.say(f"proposal {proposal.id} is rejected")
