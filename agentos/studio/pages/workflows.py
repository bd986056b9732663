"""Workflows: which are in force, how their runs are, and what a person decides about them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
from starlette.responses import Response

from agentos.errors import Problem, WorkflowError
from agentos.kinds.workflow import settings_of_workflow
from agentos.model.workflow import RunState, WorkflowRun
from agentos.model.workflow_definition import WorkflowDefinition
from agentos.stacks.entry import Entry
from agentos.studio.page import Page
from agentos.studio.view import PageView
from agentos.workflows.graph_pictures import graph_svg
from agentos.workflows.graphs import graph_of_definition, graph_of_run

RUNS_SHOWN: Final = 200
"""How many runs are on the page at most, the newest."""


@attrs.frozen(kw_only=True)
class WorkflowCard:
    """A workflow in force."""

    id: str
    version: str
    pack: str
    principal: str | None
    description: str
    definition: WorkflowDefinition | None
    problems: Sequence[Problem]
    """What keeps it from being started."""

    @property
    def inputs(self) -> str:
        """Return the inputs that a definition asks for, as JSON to be filled in."""
        schema = {} if self.definition is None else self.definition.inputs or {}
        names: Mapping[str, Any] = schema.get("properties", {})
        return json.dumps({name: one.get("default") for name, one in names.items() if isinstance(one, Mapping)})


@attrs.frozen(kw_only=True)
class RunFacts:
    """A run, and what can be decided about it."""

    run: WorkflowRun

    @property
    def why(self) -> str:
        """Return why it is in its state."""
        return str((self.run.error or {}).get("message") or self.run.reason or "")

    @property
    def acts(self) -> Sequence[tuple[str, str, Mapping[str, str]]]:
        """Return what can be done: its address, its name, and what is sent with it."""
        state, id = self.run.state, {"run": self.run.id}
        if state.is_over or state is RunState.CANCELLING:
            return ()
        found: list[tuple[str, str, Mapping[str, str]]] = []
        if state is RunState.UNKNOWN:
            found += [("resume", name, {**id, "unknown": said}) for said, name in _DECISIONS]
        elif state in (RunState.PAUSED, RunState.HELD):
            found.append(("resume", "Resume", id))
        else:
            found.append(("pause", "Pause", id))
        return [*found, ("cancel", "Cancel", id)]


_DECISIONS = (("retry", "Do it again"), ("done", "It is done"), ("fail", "It failed"))


async def show(view: PageView) -> Response:
    """Show the workflows in force and the runs that are wanted."""
    text, state, workflow = view.asked("text").strip().lower(), view.asked("state"), view.asked("workflow")
    runs = await view.host.workflows.list(workflow=workflow or None, state=state or None, limit=RUNS_SHOWN)
    rows = [row for row in map(_facts, runs) if text in f"{row.run.id} {row.run.workflow} {row.why}".lower()]
    cards = [_card(view, entry) for entry in view.host.extensions.registry("workflow").list_active()]
    return view.whole(
        "workflows.html",
        cards=cards,
        rows=rows,
        text=view.asked("text"),
        state=state,
        states=[one.value for one in RunState],
        workflow=workflow,
        workflows=sorted({card.id for card in cards} | {run.workflow for run in runs}),
        panel=await _panel(view, view.asked("run")) if view.asked("run") else None,
    )


async def one(view: PageView) -> Response:
    """Show all that is known of one run."""
    return view.part("workflow_run.html", panel=await _panel(view, view.asked("run")))


async def graph(view: PageView) -> Response:
    """Draw a run, or a workflow that is data."""
    if id := view.asked("run"):
        run = await view.host.workflows.get(id)
        entry = view.host.extensions.registry("workflow").get_active(run.workflow)
        drawn = graph_of_run(run, None if entry is None else _definition(entry))
    else:
        drawn = graph_of_definition(_require_definition(view, view.asked("workflow")))
    return Response(view.host.extensions.masker.mask(graph_svg(drawn)), media_type="image/svg+xml")


def _facts(run: WorkflowRun) -> RunFacts:
    return RunFacts(run=run)


async def _panel(view: PageView, id: str) -> RunFacts:
    return _facts(await view.host.workflows.get(id))


def _card(view: PageView, entry: Entry) -> WorkflowCard:
    settings, definition = settings_of_workflow(entry.payload), _definition(entry)
    text = (entry.payload.__doc__ or "") if definition is None else definition.description
    return WorkflowCard(
        id=entry.id,
        version="1" if settings is None else settings.version,
        pack=entry.pack,
        principal=None if settings is None else settings.principal,
        description=text,
        definition=definition,
        problems=view.host.workflows.check(entry.id),
    )


def _definition(entry: Entry) -> WorkflowDefinition | None:
    return entry.payload if isinstance(entry.payload, WorkflowDefinition) else None


def _require_definition(view: PageView, workflow: str) -> WorkflowDefinition:
    entry = view.host.extensions.registry("workflow").get_active(workflow)
    definition = None if entry is None else _definition(entry)
    if definition is None:
        raise WorkflowError(f"no workflow {workflow[:128]!r} that is data is in force: only its runs have a graph")
    return definition


# -- changes -----------------------------------------------------------------------------------------------------------


async def start(view: PageView) -> Response:
    """Start a workflow for whoever is signed in."""
    form = await view.form()
    workflow, said = form.get("workflow", ""), form.get("inputs", "").strip() or "{}"
    try:
        inputs = json.loads(said)
    except ValueError as error:
        raise WorkflowError(f"inputs: expected a JSON object such as {{}}: {error}") from None
    if not isinstance(inputs, dict):
        raise WorkflowError(f"inputs: expected a JSON object such as {{}}, got a {type(inputs).__name__}")
    run = await view.host.workflows.start(workflow, inputs, principal=view.principal)
    return await view.changed(f"{workflow} is started as run {run.id[:8]}.")


async def pause(view: PageView) -> Response:
    """Let no further step of a run begin."""
    run = await view.host.workflows.pause((await view.form()).get("run", ""), by=view.by)
    return await view.changed(f"No further step of run {run.id[:8]} begins.")


async def resume(view: PageView) -> Response:
    """Go on with a run, or decide on what is unknown of it."""
    form = await view.form()
    decided: Any = form.get("unknown") or None
    run = await view.host.workflows.resume(form.get("run", ""), unknown=decided, by=view.by)
    return await view.changed(f"Run {run.id[:8]} goes on.")


async def cancel(view: PageView) -> Response:
    """Stop a run, and undo what it did."""
    run = await view.host.workflows.cancel((await view.form()).get("run", ""), by=view.by)
    return await view.changed(f"Run {run.id[:8]} is being cancelled, and what it did undone.")


WORKFLOWS = Page(
    id="workflows",
    title="Workflows",
    question="What runs in steps, and how far is it?",
    group="What happens",
    show=show,
    parts={"one": one, "graph": graph},
    changes={"start": start, "pause": pause, "resume": resume, "cancel": cancel},
)
