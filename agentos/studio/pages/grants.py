"""What was decided in advance about calls: grants, made and revoked."""

import json
from typing import Final

from starlette.responses import Response

from agentos.access.grants import Grant, GrantError
from agentos.studio.page import Page
from agentos.studio.row_table import Cell, RowForm, TableChoice, TableRow, table
from agentos.studio.view import PageView

_DECISIONS: Final = ("always", "once", "never")


async def show(view: PageView) -> Response:
    """Show all grants."""
    tools = [info.fully_qualified_id for info in view.host.tools.list_available_tools(view.principal)]
    return table(
        view,
        ("tool", "decision", "for", "where", "made", "by"),
        map(_row, await view.host.grants.list()),
        empty="Nothing was decided in advance: every call is looked at when it is made.",
        choices=(TableChoice(name="decision", label="Decision"),),
        template="grants.html",
        tools=tools,
        decisions=_DECISIONS,
    )


def _row(grant: Grant) -> TableRow:
    where = "; ".join(
        [
            *([] if grant.arguments is None else [str(grant.arguments)]),
            *([] if grant.session is None else [f"in session {grant.session}"]),
        ]
    )
    return TableRow(
        cells=(
            Cell(grant.tool),
            Cell(grant.decision, "state"),
            Cell(grant.principal or "everybody"),
            Cell(where or "anywhere", "wide"),
            Cell(grant.created_at, "time"),
            Cell(grant.created_by),
        ),
        forms=(RowForm(path="/grants/revoke", label="Revoke", fields={"id": grant.id}),),
        traits={"decision": grant.decision},
    )


async def add(view: PageView) -> Response:
    """Decide in advance about calls of a tool."""
    form = await view.form()
    decision = form.get("decision", "")
    if decision not in _DECISIONS:
        raise GrantError(f"decision: expected {', '.join(_DECISIONS)}")
    pattern = form.get("arguments", "").strip()
    try:
        arguments = json.loads(pattern) if pattern else None
    except ValueError as error:
        raise GrantError(f'arguments: expected JSON such as {{"$.path": "notes/*"}}; {error}') from None
    grant = await view.host.grants.add(
        form.get("tool", "").strip(),
        decision,  # type: ignore[arg-type]  # one of the words above
        principal=form.get("principal", "").strip() or None,
        arguments=arguments,
        by=view.by,
    )
    return await view.changed(f"{grant.tool}: {grant.decision}.")


async def revoke(view: PageView) -> Response:
    """Take a grant back."""
    if not await view.host.grants.revoke((await view.form()).get("id", ""), by=view.by):
        raise GrantError("there is no such grant any more")
    return await view.changed("The grant is revoked.")


GRANTS = Page(
    id="grants",
    title="Grants",
    question="What was decided in advance?",
    group="Who may",
    show=show,
    changes={"add": add, "revoke": revoke},
)
