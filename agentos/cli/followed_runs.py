"""A run of a workflow that a command waits for: its steps told as they end, and whom it waits for."""

import asyncio
from typing import TYPE_CHECKING

from agentos.cli.app import App
from agentos.cli.host_session import FAILED, REFUSED, SHORT_ID
from agentos.cli.terminal.harmless_text import one_line
from agentos.cli.terminal.line_input import can_ask
from agentos.model.workflow import RunState, WorkflowRun

if TYPE_CHECKING:
    from agentos.extensions.event import Event
    from agentos.host import AgentOS

SIGNS = {"done": "✓", "failed": "✗", "skipped": "-"}
_LOOK = 0.5
"""After how many seconds it is looked how a run is that another host carries."""
_RESTS = (RunState.PAUSED, RunState.HELD, RunState.UNKNOWN)


async def follow(app: App, host: "AgentOS", id: str) -> int:
    """Wait for a run, tell its steps and how it ended, and return the exit code."""
    return tell_end(app, await watched(app, host, id))


async def watched(app: App, host: "AgentOS", id: str) -> WorkflowRun:
    """Wait for a run, telling its steps, and return it as it is then. Ctrl-C ends the waiting, not the run."""
    changed = asyncio.Event()

    def hear(event: "Event") -> None:
        if getattr(event, "run", None) == id:
            changed.set()
            if event.type == "workflow:step":
                _tell_step(app, event)

    host.extensions.on(hear)
    try:
        return await _until_it_rests(app, host, id, changed)
    except asyncio.CancelledError:
        app.out.note(f"the run goes on where a host carries runs, such as `agentos serve`; {ways_to_look(app, id)}")
        raise
    finally:
        host.extensions.off(hear)


def ways_to_look(app: App, id: str) -> str:
    """Return the commands that show a run, and carry it."""
    short = id[:SHORT_ID]
    show, carry = app.same_place("workflows", "show", short), app.same_place("workflows", "follow", short)
    return f"`{show}` shows it, `{carry}` goes on with it here"


def _tell_step(app: App, event: "Event") -> None:
    name, state = one_line(getattr(event, "name", "")), getattr(event, "state", "")
    error = getattr(event, "error", None)
    app.out.note(
        f"{SIGNS.get(state, '·')} {name}{f': {state}' if state != 'done' else ''}{f', {error}' if error else ''}"
    )


async def _until_it_rests(app: App, host: "AgentOS", id: str, changed: asyncio.Event) -> WorkflowRun:
    """Return the run once it is over, or nothing will happen without somebody who is not here."""
    told = ""
    while True:
        changed.clear()
        run = await host.workflows.get(id)
        if run.state.is_over or run.state in _RESTS:
            return run
        if run.state == RunState.WAITING:
            way = _ways_to_decide(app, run)
            if way is not None and not can_ask(app.out):
                return run
            if run.reason and run.reason != told:
                told = run.reason
                app.out.note(f"… {one_line(run.reason)}{'' if way is None else f'; {way}'}")
        try:
            await asyncio.wait_for(changed.wait(), _LOOK)
        except TimeoutError:
            continue


def _ways_to_decide(app: App, run: WorkflowRun) -> str | None:
    """Return the commands that approve what a run waits for, in the name of whom it is asked for."""
    known = app.config.manifest.settings.principals
    who = [id for id, one in known.items() if one.key == run.principal and not app.named_principal]
    words = ["--principal", who[0]] if who else []
    proposals = [step.proposal for step in run.steps if step.state == "waiting" and step.proposal]
    commands = [f"`{app.same_place('approvals', 'approve', one[:SHORT_ID], *words)}`" for one in proposals]
    return f"{' and '.join(commands)} approves it" if commands else None


def tell_end(app: App, run: WorkflowRun) -> int:
    """Tell how a run is, and return the exit code that says so."""
    app.out.data(run_data(run))
    if run.state == RunState.FINISHED:
        app.out.say(_shown(run.output))
        return 0
    error = run.error or {}
    why = error.get("message") or run.reason or ""
    if not app.out.is_json:
        hint = _ways_to_decide(app, run) or _hints(app, run)
        app.out.fail(f"the run {run.id[:SHORT_ID]} is {run.state}{f': {one_line(why)}' if why else ''}", hint)
    return REFUSED if run.state == RunState.WAITING else FAILED


def _hints(app: App, run: WorkflowRun) -> str:
    resume = app.same_place("workflows", "resume", run.id[:SHORT_ID])
    if run.state == RunState.UNKNOWN:
        return f"find out whether it took effect, then `{resume} --unknown retry`, `done` or `fail`"
    if run.state == RunState.PAUSED:
        return f"`{resume}` goes on with it"
    return ways_to_look(app, run.id)


def _shown(output: object) -> str:
    import json

    return output if isinstance(output, str) else json.dumps(output, indent=2, ensure_ascii=False)


def run_data(run: WorkflowRun) -> dict[str, object]:
    """Return a run as JSON shows it, whole."""
    from agentos.cli.terminal.output import plain

    steps = [{**plain(step), "output": step.output} for step in run.steps]
    return {**plain(run), "inputs": dict(run.inputs), "output": run.output, "steps": steps}
