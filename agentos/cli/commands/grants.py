"""`agentos grants`: what people decided about calls in advance, so that nobody is asked again, or nothing runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from agentos.cli.app import App, Fail, completing, examples, run_async
from agentos.cli.host_session import DESTRUCTIVE, SHORT_ID, SHORTEST_ID, USAGE, working_host
from agentos.cli.known_names import complete_tool
from agentos.cli.terminal.harmless_text import one_line
from agentos.cli.terminal.output import plain

if TYPE_CHECKING:
    from agentos.access.grants import Grant
    from agentos.host import AgentOS

_DECISIONS = ("once", "session", "always", "never")
_KINDS = ("glob", "regex", "command")
_STYLES = {"never": "bold red", "always": "green"}


@click.group(
    epilog=examples(
        "agentos grants list",
        "agentos grants add notes:write_note always --principal ann",
        "agentos grants remove 3f2a91c0",
    ),
)
def grants() -> None:
    """Decide about calls in advance: allow them once, for a session or always, or never.

    With --principal, a grant is about calls for that principal, else for everybody. No grant lets a call run unasked
    that may destroy something, or that its tool wants asked about always.
    """


# -- list --------------------------------------------------------------------------------------------------------------


@grants.command("list", epilog=examples("agentos grants list", "agentos grants list --principal ann --json"))
@run_async
async def list_(app: App) -> None:
    """List the grants in force, oldest first; with --principal, those that are about it."""
    from agentos.cli.store_records import records

    async with records(app.config) as found:
        known = [] if found is None else await found.grants.list(app.named_principal)
    app.out.data({"grants": [_data(one) for one in known]})
    rows = [
        (
            (one.id[:SHORT_ID], "bold"),
            one.tool,
            (one.decision, _STYLES.get(one.decision, "")),
            "everybody" if one.principal is None else one.principal,
            _scope_text(one),
            f"{one.created_at:%Y-%m-%d} by {one.created_by}",
        )
        for one in known
    ]
    app.out.table(("id", "tool", "decision", "for", "where", "since"), rows, empty="Nothing is decided in advance.")


def _scope_text(grant: "Grant") -> str:
    said = [] if grant.arguments is None else [str(grant.arguments)]
    return one_line("; ".join([*said, *([f"session {grant.session}"] if grant.session else [])]))


def _data(grant: "Grant") -> dict[str, Any]:
    return {**plain(grant), "arguments": None if grant.arguments is None else grant.arguments.as_json()}


# -- add ---------------------------------------------------------------------------------------------------------------


@grants.command(
    epilog=examples(
        "agentos grants add notes:write_note always --principal ann",
        "agentos grants add write_file always --argument '$.path=/tmp/*'",
        "agentos grants add shell:run always --argument '$.command=git status' --kind command",
        "agentos grants add send_mail session --session 7f3c",
        "agentos grants add delete_notes never",
    ),
)
@click.argument("tool", shell_complete=complete_tool)
@click.argument("decision", type=click.Choice(_DECISIONS))
@click.option(
    "--argument",
    "patterns",
    multiple=True,
    metavar="PATH=PATTERN",
    help="Only calls whose argument at PATH, such as $.path, fits; several must all fit.",
)
@click.option("--kind", type=click.Choice(_KINDS), default="glob", show_default=True, help="How patterns are read.")
@click.option("--session", metavar="ID", help="Only calls of that session.")
@run_async
async def add(app: App, *, tool: str, decision: Any, patterns: Sequence[str], kind: str, session: str | None) -> None:
    """Decide in advance about calls of TOOL: allow them once, for a session or always, or never.

    What allows is tied to the definition that the tool has now: when that changes, it counts no more. What forbids may
    name a tool that is not there, or several by a pattern such as 'files:*'.
    """
    from agentos.cli.store_records import require_store
    from agentos.model.principal import Principal

    if decision == "session" and session is None:
        raise Fail("a grant for a session needs to know which", code=USAGE, hint="name it with --session")
    require_store(app.config)
    given = {"arguments": _parse_patterns(patterns, kind), "session": session, "principal": app.named_principal}
    async with working_host(app, tells_held_back=False) as host:
        _warn_of_tool(app, host, tool, decision)
        grant = await host.grants.add(tool, decision, by=Principal.system(), **given)
    app.out.data(_data(grant))
    app.out.say(f"{grant}; `agentos grants remove {grant.id[:SHORT_ID]}` takes it back")


def _parse_patterns(patterns: Sequence[str], kind: str) -> Any:
    from agentos.errors import RuleError
    from agentos.rules.intervention import ArgumentPattern

    if not patterns:
        return None
    pairs = [text.partition("=") for text in patterns]
    for path, is_pair, _ in pairs:
        if not is_pair or not path.startswith("$"):
            raise Fail(f"--argument {path!r}: expected PATH=PATTERN, such as '$.path=/tmp/*'", code=USAGE)
    if len({path for path, _, _ in pairs}) < len(pairs):
        raise Fail("--argument: a path stands there twice", code=USAGE, hint="make a grant for each pattern")
    try:
        return ArgumentPattern({path: pattern for path, _, pattern in pairs}, kind)  # type: ignore[arg-type]
    except RuleError as error:
        raise Fail(f"--argument: {error}", code=USAGE) from None


def _warn_of_tool(app: App, host: "AgentOS", tool: str, decision: str) -> None:
    """Say what a grant will not do: forbid what nothing is called, or let a call run that may destroy something."""
    from agentos.model.field_checks import did_you_mean

    prepared = host.tools.catalog.find(tool)
    if prepared is None:
        infos = host.tools.list_available_tools()
        hint = did_you_mean(tool, [name for one in infos for name in (one.name, one.fully_qualified_id)])
        if decision != "never":
            raise Fail(f"there is no tool called {tool!r} now{hint}", hint="`agentos tools list` shows what there is")
        if not set(tool) & set("*?["):
            app.out.warn(f"nothing is called {tool!r} now{hint}")
    elif decision != "never" and prepared.tool.effect == DESTRUCTIVE:
        app.out.warn(f"{prepared.qualified_id} may destroy something: its calls are asked about all the same")


# -- remove ------------------------------------------------------------------------------------------------------------


def _ids(app: App) -> list[str]:
    return app.run(_grant_ids(app), logs=False)


async def _grant_ids(app: App) -> list[str]:
    from agentos.cli.store_records import records

    async with records(app.config) as found:
        return [] if found is None else [one.id[:SHORT_ID] for one in await found.grants.list()]


@grants.command(epilog=examples("agentos grants remove 3f2a91c0"))
@click.argument("id", shell_complete=completing(_ids))
@run_async
async def remove(app: App, id: str) -> None:
    """Take a grant back; its ID may be cut short."""
    from agentos.cli.store_records import records

    async with records(app.config, writes=True) as found:
        meant = [] if found is None else [one for one in await found.grants.list() if one.id.startswith(id)]
        if len(id) < SHORTEST_ID or len(meant) > 1:
            raise Fail(f"{id!r} is too short to say which grant is meant", code=USAGE)
        if found is None or not meant or not await found.grants.revoke(meant[0].id, by=app.principal):
            raise Fail(f"no grant {id[:64]!r} is in force", hint="`agentos grants list` shows those that are")
    app.out.data({"revoked": meant[0].id, "tool": meant[0].tool})
    app.out.say(f"{meant[0]} is taken back")
