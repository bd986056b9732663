"""What waits for what among the tasks of a definition."""

import graphlib
from collections.abc import Iterable, Mapping, Sequence

import attrs

from agentos.model.workflow_definition import ROOTS, Task
from agentos.workflows.conditions import BadConditionError, parse_condition, references_of
from agentos.workflows.task_references import Reference, ReferencePlace, places_in

STATES = ("state", "error")
"""What a `when` asks a task for to see to it that it failed or was skipped."""
Needs = Mapping[str, tuple[str, ...]]
"""The ids of the tasks that each task waits for."""


@attrs.frozen
class Waiting:
    """What one task waits for."""

    needs: tuple[str, ...]
    """Every task that has to end before it, in the order in which they are named."""
    asked: frozenset[str]
    """Those of them whose state its `when` asks for: it is not skipped because of these."""


def references_to_fill(task: Task) -> list[Reference]:
    """Return the references in what a task is done with, as far as they can be read."""
    places = places_in({"human": task.human, "arguments": task.arguments})
    return [one for place in places if isinstance(place, ReferencePlace) for one in place.references]


def references_of_when(task: Task) -> list[Reference]:
    """Return the references in a task's `when`, as far as it can be read."""
    try:
        return [] if task.when is None else list(references_of(parse_condition(task.when)))
    except BadConditionError:
        return []


def waiting_of(task: Task) -> Waiting:
    """Return what *task* waits for: what it says, and what its references name."""
    conditions = references_of_when(task)
    named = (one.root for one in (*references_to_fill(task), *conditions) if one.root not in ROOTS)
    asked = frozenset(one.root for one in conditions if one.path[:1] and one.path[0] in STATES)
    return Waiting(tuple(dict.fromkeys((*task.needs, *named))), asked)


def needs_of(tasks: Iterable[Task]) -> dict[str, tuple[str, ...]]:
    """Return what each task waits for, as far as it is there."""
    listed = {task.id: task for task in tasks}
    return {id: tuple(one for one in waiting_of(task).needs if one in listed) for id, task in listed.items()}


def cycles_in(needs: Needs) -> list[list[str]]:
    """Return cycles, one for all that touch each other; each begins with its first task, and ends with it."""
    left = dict(needs)
    order = {id: number for number, id in enumerate(needs)}
    cycles: list[list[str]] = []
    while cycle := _cycle_in(left):
        first = min(cycle, key=order.__getitem__)
        at = cycle.index(first)
        cycles.append([*cycle[at:-1], *cycle[:at], first])
        left = {id: named for id, named in left.items() if id not in cycle}
    return sorted(cycles, key=lambda one: order[one[0]])


def _cycle_in(needs: Needs) -> list[str]:
    known = {id: [one for one in named if one in needs] for id, named in needs.items()}
    try:
        graphlib.TopologicalSorter(known).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def layers_of(needs: Needs) -> list[list[str]]:
    """Return the tasks in layers: each as far from the beginning as the longest way to it."""
    depth: dict[str, int] = {}
    for id in graphlib.TopologicalSorter(needs).static_order():
        depth[id] = max((depth[one] + 1 for one in needs.get(id, ())), default=0)
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for id in needs:
        layers[depth[id]].append(id)
    return layers


def above(id: str, needs: Needs) -> set[str]:
    """Return every task that is over before *id* begins."""
    found: set[str] = set()
    waiting = list(needs.get(id, ()))
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting.extend(needs.get(one, ()))
    return found


def last_of(tasks: Sequence[Task]) -> list[str]:
    """Return the tasks that no other waits for."""
    needed = {one for named in needs_of(tasks).values() for one in named}
    return [task.id for task in tasks if task.id not in needed]


def handled_of(tasks: Iterable[Task]) -> frozenset[str]:
    """Return the tasks whose failure another one asks for: it does not make the run fail."""
    return frozenset(one for task in tasks for one in waiting_of(task).asked)
