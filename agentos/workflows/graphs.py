"""Workflows and their runs as graphs: made here, drawn in the modules beside.

A definition is a graph of its tasks. A run of one is the same, with the state of each; a run of a function is the graph
of the steps that it has recorded so far.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from agentos.model.workflow import StepRecord, WorkflowRun
from agentos.model.workflow_definition import Task, WorkflowDefinition
from agentos.workflows.task_order import cycles_in, layers_of, needs_of

LABEL_LIMIT = 60
"""How many characters of a foreign text stand in a graph."""
NODE_LIMIT = 1_000
"""How many nodes are drawn; of a run with more steps, the first ones."""
STATES = ("done", "running", "waiting", "failed", "unknown", "skipped")
"""In what states nodes are drawn. One without a state has not begun, or is of a definition."""


@attrs.frozen(kw_only=True)
class GraphNode:
    """A task or a step."""

    id: str
    name: str
    action: str = ""
    """What is done: a tool, a workflow, a person."""
    state: str | None = None
    note: str = ""
    """Why it is in this state."""


@attrs.frozen(kw_only=True)
class WorkflowGraph:
    """Nodes, and which comes before which."""

    title: str
    nodes: tuple[GraphNode, ...]
    needs: Mapping[str, tuple[str, ...]]
    """The ids of the nodes before each."""
    left_out: int = 0
    """How many nodes there are besides these."""

    @property
    def layers(self) -> list[list[str]]:
        """Return the ids of the nodes in layers, each as far from the beginning as the longest way to it."""
        return layers_of(self.needs)

    def node(self, id: str) -> GraphNode:
        """Return the node of an id."""
        return next(one for one in self.nodes if one.id == id)


def graph_of_definition(definition: WorkflowDefinition) -> WorkflowGraph:
    """Return the graph of a definition. Of tasks that wait for each other, one is drawn as if it did not wait."""
    nodes = tuple(GraphNode(id=task.id, name=task.id, action=_action(task)) for task in _once(definition.tasks))
    needs = _without_cycles(needs_of(definition.tasks))
    return WorkflowGraph(title=f"{definition.id}, version {definition.version}", nodes=nodes, needs=needs)


def graph_of_run(run: WorkflowRun, definition: WorkflowDefinition | None = None) -> WorkflowGraph:
    """Return the graph of a run: of the tasks of its *definition* if it has one, else of the steps it has recorded."""
    title = f"{run.workflow}, version {run.version}: run {run.id}, {run.state}"
    if definition is None or definition.version != run.version:
        return attrs.evolve(_graph_of_steps(run.steps), title=title)
    steps = {step.name: step for step in run.steps if step.kind not in _APART}
    graph = graph_of_definition(definition)
    nodes = tuple(
        attrs.evolve(node, state=steps[node.id].state, note=_note(steps[node.id])) if node.id in steps else node
        for node in graph.nodes
    )
    return _with_undone(attrs.evolve(graph, title=title, nodes=nodes), run.steps)


_APART = ("undo", "now")
"""Kinds of steps that are no task of a definition."""


def _once(tasks: Iterable[Task]) -> list[Task]:
    return list({task.id: task for task in tasks}.values())


def _without_cycles(needs: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    left = dict(needs)
    while cycles := cycles_in(left):
        for first, second, *_ in cycles:
            left[second] = tuple(one for one in left[second] if one != first)
    return left


def _action(task: Task) -> str:
    if task.tool is not None:
        return task.tool
    if task.human is not None:
        return f"a person: {task.human}"
    named = [f"{name} {getattr(task, name)}" for name in task.actions]
    return " and ".join(named) or "nothing"


def _note(step: StepRecord) -> str:
    if step.error is not None:
        return f"{step.error.get('type', 'Error')}: {step.error.get('message', '')}"
    return step.reason or ""


# -- the steps of a run ------------------------------------------------------------------------------------------------

Ends = tuple[str, ...]


def _graph_of_steps(steps: Sequence[StepRecord]) -> WorkflowGraph:
    """Return recorded steps as a graph: one after another, and the branches of a gather side by side."""
    drawn = {step.key: step for step in steps[:NODE_LIMIT]}
    needs: dict[str, Ends] = {}
    ends = _chain([(_place(key), key) for key in drawn if drawn[key].kind != "undo"], (), needs)
    for key, step in drawn.items():
        if step.kind == "undo":  # one after another, after everything else
            needs[key], ends = ends, (key,)
    nodes = tuple(
        GraphNode(id=key, name=step.name, action=_step_action(step), state=step.state, note=_note(step))
        for key, step in drawn.items()
    )
    return WorkflowGraph(
        title="", nodes=nodes, needs={key: needs[key] for key in drawn}, left_out=len(steps) - len(nodes)
    )


def _step_action(step: StepRecord) -> str:
    kinds = {"call": "", "step": "a function", "execute": "an executor", "approve": "a person", "now": "the time"}
    return step.tool or kinds.get(step.kind, step.kind)


Placed = tuple[tuple[int, ...], str]


def _place(key: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else -1 for part in key.split("."))


def _chain(steps: Sequence[Placed], before: Ends, needs: dict[str, Ends]) -> Ends:
    """Put the steps of one branch after *before*, one after another; return what comes last."""
    for group in _grouped(steps):
        here = [key for place, key in group if len(place) <= 1]
        for key in here:
            needs[key] = before
            before = (key,)
        branches = _grouped([(place[1:], key) for place, key in group if len(place) > 1])
        ends = [_chain([(place[1:] or (0,), key) for place, key in branch], before, needs) for branch in branches]
        if ends:
            before = tuple(dict.fromkeys(end for one in ends for end in one))
    return before


def _grouped(steps: Sequence[Placed]) -> list[list[Placed]]:
    """Return steps by the first part of their places, in its order."""
    groups: dict[int, list[Placed]] = {}
    for place, key in steps:
        groups.setdefault(place[0], []).append((place, key))
    return [groups[number] for number in sorted(groups)]


def _with_undone(graph: WorkflowGraph, steps: Sequence[StepRecord]) -> WorkflowGraph:
    """Say of tasks that they were taken back."""
    undone = {step.name: step.state for step in steps if step.kind == "undo"}
    nodes = []
    for node in graph.nodes:
        state = undone.get(node.name)
        note = {None: node.note, "done": "undone", "failed": "its undoing failed"}.get(state, "being undone")
        nodes.append(attrs.evolve(node, note=note))
    return attrs.evolve(graph, nodes=tuple(nodes))


def short(text: Any) -> str:
    """Return foreign text for a graph: one line, and not longer than what fits."""
    line = " ".join("".join(char if char.isprintable() else " " for char in str(text)).split())
    return line if len(line) <= LABEL_LIMIT else f"{line[: LABEL_LIMIT - 1]}…"
