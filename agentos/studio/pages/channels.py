"""Channels: which are on, what waits, and messages that could not be answered or sent."""

from starlette.responses import Response

from agentos.channels.channel_router import ChannelInfo, DeadLetter
from agentos.studio.page import Page
from agentos.studio.row_table import Cell, RowForm, TableRow, table
from agentos.studio.view import PageView

_COLUMNS = ("channel", "state", "pack", "answered by", "senders", "waiting", "to send", "letters")


async def show(view: PageView) -> Response:
    """Show the channels, and the letters beneath."""
    known = await view.host.channels.known()
    letters = [_letter(one) for one in await view.host.channels.letters()]
    return table(
        view,
        _COLUMNS,
        [*map(_row, known), *letters],
        empty="The manifest turns on no channel, and no pack brings one.",
        topic="channels",
    )


def _row(one: ChannelInfo) -> TableRow:
    state = "running" if one.is_running else "enabled" if one.is_on else "disabled"
    counts = (one.senders, one.waiting, one.to_send, one.letters)
    return TableRow(
        cells=(Cell(one.id), Cell(state, "state"), Cell(one.pack), Cell(one.answered_by), *map(Cell, counts)),
    )


def _letter(one: DeadLetter) -> TableRow:
    message = one.message
    return TableRow(
        cells=(
            Cell(message.channel),
            Cell(one.state, "state"),
            Cell(f"a letter, {one.attempts} attempts"),
            Cell(one.reason, "wide"),
            *map(Cell, ("", "", "", "")),
        ),
        forms=(
            RowForm(path="/channels/retry", label="Try again", fields={"id": one.id}),
            RowForm(path="/channels/drop", label="Drop", kind="risky", fields={"id": one.id}),
        ),
        detail=message,
    )


async def retry(view: PageView) -> Response:
    """Try a letter again."""
    await view.host.channels.retry((await view.form()).get("id", ""))
    return await view.changed("It is tried again.")


async def drop(view: PageView) -> Response:
    """Forget a letter."""
    await view.host.channels.drop((await view.form()).get("id", ""))
    return await view.changed("It is dropped.")


CHANNELS = Page(
    id="channels",
    title="Channels",
    question="Who talks to this host?",
    group="How it runs",
    show=show,
    changes={"retry": retry, "drop": drop},
)
