"""`agentos workflows`: start them, see how their runs are, and decide on them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentos.cli.app import App, Fail, completing, examples, run_async
from agentos.cli.host_session import SHORT_ID, SHORTEST_ID, UNUSABLE, USAGE, held_in_memory, working_host
from agentos.cli.terminal.harmless_text import one_line

if TYPE_CHECKING:
    from agentos.host import AgentOS
    from agentos.model.workflow import WorkflowRun
    from agentos.model.workflow_definition import WorkflowDefinition
    from agentos.workflows.graphs import WorkflowGraph

_BRIEF = 60
_KNOWN_RUNS = 1_000
_STATES = {
    "queued": "",
    "running": "bold cyan",
    "waiting": "yellow",
    "paused": "yellow",
    "held": "yellow",
    "unknown": "bold magenta",
    "cancelling": "yellow",
    "finished": "green",
    "failed": "bold red",
    "cancelled": "bright_black",
}
_FACTS = {"carry_workflows": False, "starts_servers": False, "tells_held_back": False}


@click.group(
    epilog=examples(
        "agentos workflows list",
        "agentos workflows start onboard customer=Ada",
        "agentos workflows show 3f2a91c0",
        "agentos workflows graph onboard",
    )
)
def workflows() -> None:
    """Start workflows, see how their runs are, and decide on them.

    Runs are carried by every host that stays: `agentos serve`, `agentos channels run`, and here `start` and `follow`
    while they wait. An id of a run may be cut short as long as it is clear which is meant.
    """


# -- names -------------------------------------------------------------------------------------------------------------


def _known_workflows(app: App) -> list[str]:
    return app.run(_names(app), logs=False)


async def _names(app: App) -> list[str]:
    async with app.host(carry_workflows=False, starts_servers=False) as host:
        return [entry.id for entry in host.extensions.registry("workflow").list_active()]


def _known_runs(app: App) -> list[str]:
    return app.run(_run_ids(app), logs=False)


async def _run_ids(app: App) -> list[str]:
    async with app.host(carry_workflows=False, starts_servers=False) as host:
        return [run.id[:SHORT_ID] for run in await host.workflows.list()]


_workflow_argument = click.argument("workflow", shell_complete=completing(_known_workflows))
_run_argument = click.argument("run", shell_complete=completing(_known_runs))
_inputs_argument = click.argument("inputs", nargs=-1, type=click.UNPROCESSED)
_args_option = click.option(
    "--args", "text", metavar="JSON", help="All inputs as a JSON object; - reads stdin, @FILE a file."
)


async def _run(host: "AgentOS", id: str) -> "WorkflowRun":
    """Return the run that an id, or the beginning of one, means, with its steps."""
    if len(id) < SHORTEST_ID:
        raise Fail(f"{id!r} is too short for an id: give at least {SHORTEST_ID} characters", code=USAGE)
    meant = [run.id for run in await host.workflows.list(limit=_KNOWN_RUNS) if run.id.startswith(id)]
    if len(meant) > 1:
        raise Fail(f"{id[:64]!r} is not clear: several begin so", code=USAGE)
    if not meant:
        raise Fail(f"there is no run {id[:64]!r}", hint="`agentos workflows list` shows them")
    return await host.workflows.get(meant[0])


def _payload(host: "AgentOS", workflow: str) -> Any:
    from agentos.model.field_checks import did_you_mean

    registry = host.extensions.registry("workflow")
    entry = registry.get_active(workflow)
    if entry is None:
        known = registry.ids()
        hint = "`agentos workflows list` shows those that are" if known else "no pack and no manifest offers one"
        raise Fail(f"no workflow {workflow[:64]!r} is in force{did_you_mean(workflow, known)}", hint=hint)
    return entry.payload


def _definition(payload: Any) -> "WorkflowDefinition | None":
    from agentos.model.workflow_definition import WorkflowDefinition

    return payload if isinstance(payload, WorkflowDefinition) else None


# -- list, show, graph -------------------------------------------------------------------------------------------------


@workflows.command(
    "list",
    epilog=examples(
        "agentos workflows list",
        "agentos workflows list --state waiting",
        "agentos workflows list --workflow onboard --json",
    ),
)
@click.option("--workflow", shell_complete=completing(_known_workflows), help="Only runs of this workflow.")
@click.option("--state", type=click.Choice(list(_STATES)), help="Only runs in this state.")
@click.option("--limit", type=click.IntRange(1, _KNOWN_RUNS), default=20, show_default=True, help="How many runs.")
@run_async
async def list_(app: App, workflow: str | None, state: str | None, limit: int) -> None:
    """List the workflows in force, and their runs, the newest first."""
    async with working_host(app, **_FACTS) as host:
        active = host.extensions.registry("workflow").list_active()
        known = [_workflow_data(host, entry) for entry in active if workflow in (None, entry.id)]
        runs = await host.workflows.list(workflow=workflow, state=state, limit=limit)
    app.out.data({"workflows": known, "runs": [_brief(run) for run in runs]})
    rows = [
        (
            (one["id"], "bold"),
            one["version"],
            one["pack"],
            one["principal"] or "-",
            one_line(one["description"])[:_BRIEF],
        )
        for one in known
    ]
    heads = ("workflow", "version", "pack", "as", "what it does")
    app.out.table(heads, rows, empty="No pack and no manifest offers a workflow.")
    if runs or known:
        app.out.say()
        app.out.table(("run", "workflow", "state", "why", "began"), list(map(_row, runs)), empty="There are no runs.")


def _workflow_data(host: "AgentOS", entry: Any) -> dict[str, Any]:
    from agentos.kinds.workflow import settings_of_workflow

    settings = settings_of_workflow(entry.payload)
    definition = _definition(entry.payload)
    text = (entry.payload.__doc__ or "") if definition is None else definition.description
    found = {"id": entry.id, "version": None if settings is None else settings.version, "pack": entry.source.pack}
    described = {"principal": None if settings is None else settings.principal, "isData": definition is not None}
    problems = [str(one) for one in host.workflows.check(entry.id)]
    return {**found, **described, "description": text.strip().partition("\n")[0], "problems": problems}


def _brief(run: "WorkflowRun") -> dict[str, Any]:
    from agentos.cli.followed_runs import run_data

    return {key: value for key, value in run_data(run).items() if key != "steps"}


def _row(run: "WorkflowRun") -> tuple[Any, ...]:
    error = run.error or {}
    began = "" if run.created_at is None else run.created_at.isoformat(sep=" ", timespec="seconds")
    why = one_line(error.get("message") or run.reason or "")[:_BRIEF]
    state = (str(run.state), _STATES.get(run.state, ""))
    return (run.id[:SHORT_ID], "bold"), f"{run.workflow} {run.version}", state, why, began


@workflows.command(epilog=examples("agentos workflows show 3f2a91c0", "agentos workflows show 3f2a91c0 --json"))
@_run_argument
@run_async
async def show(app: App, run: str) -> None:
    """Show a run: its inputs, its steps, what it waits for, and what came of it."""
    from agentos.cli.followed_runs import run_data

    async with working_host(app, **_FACTS) as host:
        found = await _run(host, run)
        app.out.data(run_data(found))
        if not app.out.is_json:
            _print_graph(app, _graph_of_run(host, found))
            _print_facts(app, found)


def _print_facts(app: App, run: "WorkflowRun") -> None:
    error = run.error or {}
    facts = {
        "id": run.id,
        "for": run.principal,
        "started by": run.started_by,
        "key": run.key,
        "part of": run.parent,
        "inputs": _json(run.inputs) if run.inputs else None,
        "why": run.reason,
        "error": f"{error.get('type')}: {error.get('message')}" if error else None,
        "output": _json(run.output) if run.output is not None else None,
    }
    app.out.say()
    for name, value in facts.items():
        if value:
            app.out.say(f"{name + ':':<12}{one_line(value)}")


def _json(value: Any) -> str:
    return json.dumps(dict(value) if isinstance(value, Mapping) else value, ensure_ascii=False)


@workflows.command(
    epilog=examples(
        "agentos workflows graph onboard",
        "agentos workflows graph 3f2a91c0",
        "agentos workflows graph onboard --format svg --output onboard.svg",
    )
)
@click.argument("which", shell_complete=completing(_known_workflows))
@click.option("--format", "form", type=click.Choice(["text", "mermaid", "svg"]), default="text", show_default=True)
@click.option("--output", "file", type=click.Path(dir_okay=False), help="Write it to this file.")
@run_async
async def graph(app: App, which: str, form: str, file: str | None) -> None:
    """Draw a workflow, or a run with the state of each step."""
    async with working_host(app, **_FACTS) as host:
        drawn = await _graph_of(host, which)
    text = _drawing(drawn, form)
    app.out.data({"title": drawn.title, "format": form, "graph": text})
    if file is not None:
        _write(Path(file), text)
        app.out.note(f"written to {file}")
    elif form == "text":
        _print_graph(app, drawn)
    else:
        app.out.raw(text)


async def _graph_of(host: "AgentOS", which: str) -> "WorkflowGraph":
    from agentos.workflows.graphs import graph_of_definition

    if host.extensions.registry("workflow").get_active(which) is None:
        try:
            return _graph_of_run(host, await _run(host, which))
        except Fail:
            _payload(host, which)  # which says what there is
            raise
    definition = _definition(_payload(host, which))
    if definition is None:
        hint = f"`agentos workflows list --workflow {which}` shows its runs, and each can be drawn"
        raise Fail(f"the workflow {which!r} is a function: only its runs have a graph", hint=hint)
    return graph_of_definition(definition)


def _graph_of_run(host: "AgentOS", run: "WorkflowRun") -> "WorkflowGraph":
    from agentos.workflows.graphs import graph_of_run

    entry = host.extensions.registry("workflow").get_active(run.workflow)
    return graph_of_run(run, None if entry is None else _definition(entry.payload))


def _write(file: Path, text: str) -> None:
    file.write_text(text, "utf-8")


def _drawing(graph: "WorkflowGraph", form: str) -> str:
    if form == "text":
        from agentos.workflows.graph_text import graph_text

        return graph_text(graph) + "\n"
    from agentos.workflows.graph_pictures import graph_mermaid, graph_svg

    return graph_svg(graph) if form == "svg" else graph_mermaid(graph)


def _print_graph(app: App, graph: "WorkflowGraph") -> None:
    from rich.text import Text

    from agentos.workflows.graph_text import graph_lines

    if app.out.is_json:
        return
    encoding = (app.out.console.encoding or "ascii").lower()
    for line in graph_lines(graph, ascii_only=not encoding.startswith("utf")):
        app.out.say(Text.assemble(*line))


# -- check -------------------------------------------------------------------------------------------------------------


@workflows.command(epilog=examples("agentos workflows check", "agentos workflows check onboard --json"))
@click.argument("workflow", required=False, shell_complete=completing(_known_workflows))
@run_async
async def check(app: App, workflow: str | None) -> int:
    """Find what keeps workflows that are data from being started, all of it. Exit code 1: something does."""
    async with working_host(app, **_FACTS) as host:
        if workflow is not None:
            _payload(host, workflow)
        ids = [entry.id for entry in host.extensions.registry("workflow").list_active()]
        by = app.principal if app.named_principal else None
        found = {id: host.workflows.check(id, principal=by) for id in ids if workflow in (None, id)}
    app.out.data(
        {"problems": {id: [{"path": one.path, "message": one.message} for one in of] for id, of in found.items()}}
    )
    for id, problems in found.items():
        for one in problems:
            app.out.say(f"{one_line(id)}: {one_line(one)}")
    if not any(found.values()):
        app.out.say("Nothing is wrong.")
    return 1 if any(found.values()) else 0


# -- start, follow -----------------------------------------------------------------------------------------------------


@workflows.command(
    epilog=examples(
        "agentos workflows start onboard customer=Ada",
        'agentos workflows start onboard --args \'{"customer": "Ada"}\' --key ada-2026',
        "agentos workflows start digest --principal ann --no-wait --json",
    )
)
@_workflow_argument
@_inputs_argument
@_args_option
@click.option("--key", metavar="KEY", help="Started again with the same key, it is the run that there is already.")
@click.option("--no-wait", is_flag=True, help="Only start it; a host that stays carries it.")
@run_async
async def start(
    app: App, workflow: str, inputs: Sequence[str], text: str | None, key: str | None, no_wait: bool
) -> int:
    """Start a workflow and wait for it. INPUTS are name=value, name:=JSON or name=@FILE, as of `tools call`.

    It calls its tools as the principal that it declares; one that declares none needs --principal.

    Ctrl-C ends the waiting, not the run. A run that waits for a person is waited for at a terminal; where there is
    none, the exit code is 4, and `agentos approvals` decides.
    """
    from agentos.cli.followed_runs import follow, run_data, ways_to_look

    if no_wait and held_in_memory(app):
        hint = "set `store` in the manifest, or leave out --no-wait"
        raise Fail("the manifest names no store, and the run would end with this command", code=UNUSABLE, hint=hint)
    async with working_host(app, tells_held_back=False, carry_workflows=not no_wait) as host:
        run = await _started(app, host, workflow, _inputs(_payload(host, workflow), inputs, text), key)
        if no_wait:
            app.out.data(run_data(run))
            app.out.say(f"run {run.id[:SHORT_ID]} of {workflow} is {run.state}; {ways_to_look(app, run.id)}")
            return 0
        app.out.note(f"run {run.id[:SHORT_ID]} of {one_line(workflow)}, version {run.version}")
        return await follow(app, host, run.id)


async def _started(
    app: App, host: "AgentOS", workflow: str, inputs: Mapping[str, Any], key: str | None
) -> "WorkflowRun":
    from agentos.errors import WorkflowError

    who = app.principal if app.named_principal else None
    try:
        return await host.workflows.start(workflow, inputs, principal=who, key=key)
    except WorkflowError as error:
        raise _not_started(error) from None


def _not_started(error: Any) -> Fail:
    """Return what ends a command: inputs are its user's business, all else the configuration's."""
    problems = [{"path": one.path, "message": one.message} for one in error.problems]
    only_inputs = problems and all(one["path"].partition(".")[0] == "inputs" for one in problems)
    code = USAGE if only_inputs else UNUSABLE
    return Fail(str(error), code=code, data={"problems": problems} if problems else None)


def _inputs(payload: Any, words: Sequence[str], text: str | None) -> dict[str, Any]:
    from agentos.cli.call_arguments import read_arguments

    definition = _definition(payload)
    return read_arguments({} if definition is None else definition.inputs, words, text)


@workflows.command(epilog=examples("agentos workflows follow 3f2a91c0"))
@_run_argument
@run_async
async def follow(app: App, run: str) -> int:
    """Wait for a run, and carry it here if no other host does. Ctrl-C ends the waiting, not the run."""
    from agentos.cli.followed_runs import follow as follow_run

    async with working_host(app, tells_held_back=False, carry_workflows=True) as host:
        return await follow_run(app, host, (await _run(host, run)).id)


# -- decide ------------------------------------------------------------------------------------------------------------


def _by(app: App) -> Any:
    return app.principal if app.named_principal else None


def _tell_changed(app: App, run: "WorkflowRun", what: str) -> None:
    from agentos.cli.followed_runs import run_data, ways_to_look

    app.out.data(run_data(run))
    app.out.say(f"run {run.id[:SHORT_ID]} {what}")
    if not run.state.is_over:
        app.out.note(ways_to_look(app, run.id))


@workflows.command(epilog=examples('agentos workflows cancel 3f2a91c0 --reason "wrong customer"'))
@_run_argument
@click.option("--reason", help="Why, for the record.")
@run_async
async def cancel(app: App, run: str, reason: str | None) -> int:
    """Stop a run and undo what it did, as far as its steps say how. It waits until that is done."""
    from agentos.cli.followed_runs import tell_end, watched

    async with working_host(app, tells_held_back=False, carry_workflows=True) as host:
        found = await _run(host, run)
        await host.workflows.cancel(found.id, reason or "", by=_by(app))
        over = await watched(app, host, found.id)
    if over.state != "cancelled":
        return tell_end(app, over)
    _tell_changed(app, over, "is cancelled")
    return 0


@workflows.command(epilog=examples("agentos workflows pause 3f2a91c0"))
@_run_argument
@run_async
async def pause(app: App, run: str) -> None:
    """Let no further step of a run begin, until `resume`. A step under way ends first."""
    async with working_host(app, **_FACTS) as host:
        found = await _run(host, run)
        paused = await host.workflows.pause(found.id, by=_by(app))
    _tell_changed(app, paused, "is paused" if paused.state == "paused" else "pauses once the step under way has ended")


@workflows.command(
    epilog=examples(
        "agentos workflows resume 3f2a91c0",
        "agentos workflows resume 3f2a91c0 --unknown retry",
        "agentos workflows resume 3f2a91c0 --unknown done --output '{\"id\": 7}'",
    )
)
@_run_argument
@click.option(
    "--unknown", type=click.Choice(["retry", "done", "fail"]), help="What is decided of steps whose end is unknown."
)
@click.option("--output", metavar="JSON", help="With --unknown done: what the step gave.")
@run_async
async def resume(app: App, run: str, unknown: Any, output: str | None) -> None:
    """Go on with a run that is paused, held, or unknown."""
    given = None if output is None else _parsed(output, "--output")
    async with working_host(app, **_FACTS) as host:
        found = await _run(host, run)
        resumed = await host.workflows.resume(found.id, unknown=unknown, output=given, by=_by(app))
    _tell_changed(app, resumed, f"is {resumed.state}")


def _parsed(text: str, option: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise Fail(f"{option}: expected JSON, got {text[:_BRIEF]!r} ({error})", code=USAGE) from None


@workflows.command(
    epilog=examples(
        "agentos workflows signal 3f2a91c0 paid",
        "agentos workflows signal 3f2a91c0 reply 'come at ten'",
        "agentos workflows signal 3f2a91c0 paid --value '{\"amount\": 12}'",
    )
)
@_run_argument
@click.argument("name")
@click.argument("text", required=False)
@click.option("--value", metavar="JSON", help="A value that is no text.")
@run_async
async def signal(app: App, run: str, name: str, text: str | None, value: str | None) -> None:
    """Give a run a value that it waits for, or will wait for: TEXT, or the JSON of --value."""
    if text is not None and value is not None:
        raise Fail("a signal has one value: leave out TEXT or --value", code=USAGE)
    given = text if value is None else _parsed(value, "--value")
    async with working_host(app, **_FACTS) as host:
        found = await _run(host, run)
        await host.workflows.signal(found.id, name, given)
    app.out.data({"run": found.id, "signal": name, "value": given})
    app.out.say(f"run {found.id[:SHORT_ID]} has the signal {one_line(name)}")


# -- schedules ---------------------------------------------------------------------------------------------------------


def _known_schedules(app: App) -> list[str]:
    return app.run(_schedule_ids(app), logs=False)


async def _schedule_ids(app: App) -> list[str]:
    async with app.host(carry_workflows=False, starts_servers=False) as host:
        return [one.id for one in await host.workflows.schedules()]


@workflows.command(
    epilog=examples(
        "agentos workflows schedule nightly digest '0 22 * * *' --timezone Europe/Zurich",
        "agentos workflows schedule weekly report '0 7 * * 1' --missed skip to=ann@example.org",
    )
)
@click.argument("id")
@_workflow_argument
@click.argument("cron")
@_inputs_argument
@_args_option
@click.option("--timezone", default="UTC", show_default=True, help="In which time zone the times are, by its name.")
@click.option(
    "--missed",
    type=click.Choice(["skip", "once", "all"]),
    default="once",
    show_default=True,
    help="What becomes of times at which no host was there.",
)
@run_async
async def schedule(
    app: App, id: str, workflow: str, cron: str, inputs: Sequence[str], text: str | None, **settings: Any
) -> None:
    """Start a workflow by the clock: CRON has five fields. A schedule of the same ID is replaced.

    A host that stays starts it, such as `agentos serve`.
    """
    from agentos.errors import WorkflowError

    if held_in_memory(app):
        raise Fail("the manifest names no store, and the schedule would end with this command", code=UNUSABLE)
    async with working_host(app, **_FACTS) as host:
        given = _inputs(_payload(host, workflow), inputs, text)
        try:
            made = await host.workflows.schedule(id, workflow, cron, inputs=given, principal=_by(app), **settings)
        except WorkflowError as error:
            raise _not_started(error) from None
    app.out.data(_schedule_data(made))
    app.out.say(f"schedule {one_line(id)} starts {one_line(workflow)} next at {_time(made.next_at)}")


def _schedule_data(schedule: Any) -> dict[str, Any]:
    from agentos.cli.terminal.output import plain

    data: dict[str, Any] = plain(schedule)
    return data


def _time(at: Any) -> str:
    return "-" if at is None else at.isoformat(sep=" ", timespec="minutes")


@workflows.command(epilog=examples("agentos workflows schedules", "agentos workflows schedules --json"))
@run_async
async def schedules(app: App) -> None:
    """List the schedules, and when each starts its workflow next."""
    async with working_host(app, **_FACTS) as host:
        found = await host.workflows.schedules()
    app.out.data({"schedules": [_schedule_data(one) for one in found]})
    rows = [
        ((one.id, "bold"), one.workflow, one.cron, one.timezone, one.missed, _time(one.next_at), _time(one.last_at))
        for one in found
    ]
    heads = ("schedule", "workflow", "cron", "time zone", "missed", "next", "last")
    app.out.table(heads, rows, empty="There are no schedules.")


@workflows.command(epilog=examples("agentos workflows unschedule nightly"))
@click.argument("id", shell_complete=completing(_known_schedules))
@run_async
async def unschedule(app: App, id: str) -> None:
    """Start nothing more by a schedule. Runs that began go on."""
    async with working_host(app, **_FACTS) as host:
        await host.workflows.unschedule(id)
    app.out.data({"id": id, "unscheduled": True})
    app.out.say(f"schedule {one_line(id)} starts nothing more")
