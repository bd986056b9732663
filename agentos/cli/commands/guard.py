"""`agentos guard`: ask the guardrails about a text, as a host would."""

import sys
from typing import TYPE_CHECKING, Any

import click

from agentos.cli.app import App, examples, run_async
from agentos.cli.host_session import REFUSED, working_host

if TYPE_CHECKING:
    from agentos.model.guarding import GuardOutcome, GuardRow

_STYLES = {"allow": "green", "flag": "yellow", "sanitize": "yellow", "block": "bold red"}


@click.group(epilog=examples('agentos guard check --stage input "my card is 4111 1111 1111 1111"'))
def guard() -> None:
    """Ask the guardrails in force."""


@guard.command(
    epilog=examples(
        'agentos guard check --stage input "hello"',
        "agentos guard check --stage output - < answer.txt",
        'agentos guard check "hello" --json',
    )
)
@click.option(
    "--stage",
    type=click.Choice(("input", "output")),
    default="input",
    show_default=True,
    help="Whether a user says it, or a model.",
)
@click.argument("text")
@run_async
async def check(app: App, *, stage: str, text: str) -> None:
    """Ask the guardrails about TEXT, or about stdin for `-`: print what passes, and exit 4 if they block it."""
    text = sys.stdin.read() if text == "-" else text
    async with working_host(app) as host:
        checks = {"input": host.guardrails.check_input, "output": host.guardrails.check_output}
        outcome = await checks[stage](text, app.principal)
    _print_outcome(app, outcome, stage)
    if outcome.action == "block":
        raise click.exceptions.Exit(REFUSED)


def _print_outcome(app: App, outcome: "GuardOutcome", stage: str) -> None:
    rows = [_data(row) for row in outcome.verdicts]
    app.out.data({"stage": stage, "action": str(outcome.action), "value": outcome.value, "verdicts": rows})
    if outcome.action != "block":
        app.out.say(outcome.value)
    shown = [((one["action"], _STYLES[one["action"]]), one["guard"], one["code"] or "", one["reason"]) for one in rows]
    if shown:
        app.out.table(("answer", "guardrail", "code", "reason"), shown)
    else:
        app.out.warn(f"no guardrail on {stage} is in force")


def _data(row: "GuardRow") -> dict[str, Any]:
    verdict = row.verdict
    guard = f"{row.pack}:{row.id}" if row.pack else row.id
    return {
        "guard": guard,
        "action": str(verdict.action),
        "code": verdict.code,
        "reason": verdict.reason,
        "seconds": round(row.seconds, 6),
    }
