"""`agentos channels`: which there are, running them, and the dead letters: shown, sent again, dropped."""

import asyncio
from typing import TYPE_CHECKING, Any

import click

from agentos.cli.app import App, Fail, examples, run_async
from agentos.cli.host_session import SHORT_ID, SHORTEST_ID, UNUSABLE, working_host
from agentos.cli.started_channels import start_channels, turned_on
from agentos.cli.terminal.harmless_text import one_line
from agentos.cli.terminal.output import plain

if TYPE_CHECKING:
    from agentos.channels.channel_router import DeadLetter
    from agentos.host import AgentOS

_BRIEF = 60


@click.group(
    epilog=examples(
        "agentos channels list",
        "agentos channels run",
        "agentos channels letters",
        "agentos channels retry 3f2a91c0",
    )
)
def channels() -> None:
    """Run channels, and see to messages that were not answered or sent.

    A channel is on if the manifest names it. An id may be cut short as long as it is clear which is meant.
    """


@channels.command("list", epilog=examples("agentos channels list", "agentos channels list --json"))
@run_async
async def list_(app: App) -> None:
    """List the channels, and how much of each waits."""
    async with working_host(app, starts_servers=False) as host:
        known = await host.channels.known()
    app.out.data({"channels": [plain(one) for one in known]})
    rows = [
        (
            (one.id, "bold"),
            one.pack or "-",
            "on" if one.is_on else "off",
            one.answered_by,
            str(one.senders),
            str(one.waiting),
            str(one.to_send),
            (str(one.letters), "bold red" if one.letters else ""),
        )
        for one in known
    ]
    heads = ("channel", "pack", "", "answered by", "senders", "waiting", "to send", "dead letters")
    app.out.table(heads, rows, empty="No pack offers a channel, and the manifest names none.")


@channels.command(epilog=examples("agentos channels run"))
@run_async
async def run(app: App) -> None:
    """Run the channels that the manifest turns on, until interrupted. `agentos serve` runs them as well."""
    async with working_host(app, carry_workflows=True) as host:
        if not (on := turned_on(app)):
            raise Fail("no channel is turned on", code=UNUSABLE, hint="[channels.<id>] in the manifest turns one on")
        await start_channels(app, host)
        app.out.note(f"running {', '.join(on)}; Ctrl-C ends")
        await asyncio.Event().wait()


# -- dead letters ------------------------------------------------------------------------------------------------------


@channels.command(epilog=examples("agentos channels letters", "agentos channels letters --json"))
@run_async
async def letters(app: App) -> None:
    """List what was not answered (failed), not sent (dead), or perhaps sent (uncertain)."""
    async with working_host(app, starts_servers=False) as host:
        kept = await host.channels.letters()
    app.out.data({"letters": [_data(one) for one in kept]})
    rows = [
        (
            (one.id[:SHORT_ID], "bold"),
            one.state,
            one.message.channel,
            one_line(one.message.conversation),
            one_line(one.reason)[:_BRIEF],
            one_line(one.message.text)[:_BRIEF],
        )
        for one in kept
    ]
    app.out.table(("id", "state", "channel", "conversation", "why", "text"), rows, empty="There are no dead letters.")


def _data(letter: "DeadLetter") -> dict[str, Any]:
    message = letter.message
    said = {name: getattr(message, name) for name in ("channel", "conversation", "sender", "text", "id")}
    attached = [one.reference() for one in message.attachments]
    whole = {**said, "replyTo": message.reply_to, "attachments": attached}
    told = {name: getattr(letter, name) for name in ("id", "state", "reason", "attempts")}
    return {**told, "message": whole}


async def _letter(host: "AgentOS", id: str) -> "DeadLetter":
    if len(id) < SHORTEST_ID:
        raise Fail(f"{id!r} is too short; give at least {SHORTEST_ID} characters of an id")
    found = [one for one in await host.channels.letters() if one.id.startswith(id)]
    if len(found) != 1:
        many = "is not clear: several begin so" if found else "is unknown"
        raise Fail(f"the dead letter {id[:64]!r} {many}", hint="`agentos channels letters` shows them")
    return found[0]


@channels.command(epilog=examples("agentos channels show 3f2a91c0", "agentos channels show 3f2a91c0 --json"))
@click.argument("id")
@run_async
async def show(app: App, id: str) -> None:
    """Show a dead letter whole."""
    async with working_host(app, starts_servers=False) as host:
        letter = await _letter(host, id)
    app.out.data(_data(letter))
    message = letter.message
    facts = {
        "id": letter.id,
        "state": letter.state,
        "why": letter.reason,
        "attempts": letter.attempts,
        "channel": message.channel,
        "conversation": message.conversation,
        "sender": message.sender or "-",
    }
    for name, value in facts.items():
        app.out.say(f"{name + ':':<14}{one_line(str(value))}")
    app.out.say(message.text)


@channels.command(epilog=examples("agentos channels retry 3f2a91c0"))
@click.argument("id")
@run_async
async def retry(app: App, id: str) -> None:
    """Answer or send a dead letter again, by whichever host runs the channel. An uncertain one may arrive twice."""
    async with working_host(app, starts_servers=False) as host:
        letter = await _letter(host, id)
        await host.channels.retry(letter.id)
    app.out.data({"id": letter.id, "retried": True})
    app.out.say(f"{letter.id[:SHORT_ID]} will be {'answered' if letter.state == 'failed' else 'sent'} again")


@channels.command(epilog=examples("agentos channels drop 3f2a91c0"))
@click.argument("id")
@run_async
async def drop(app: App, id: str) -> None:
    """Give a dead letter up. There is no way back."""
    async with working_host(app, starts_servers=False) as host:
        letter = await _letter(host, id)
        await host.channels.drop(letter.id)
    app.out.data({"id": letter.id, "dropped": True})
    app.out.say(f"{letter.id[:SHORT_ID]} is dropped")
