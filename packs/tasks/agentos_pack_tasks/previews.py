"""What the tools that change something would do, for whoever is asked to approve it.

A rehearsal runs the very statements of the change and keeps nothing of them, so that a preview can't promise what the
change then refuses. Of a run only the beginning is rehearsed: no tool is called.
"""

import sqlite3
from collections.abc import Sequence
from functools import partial

from agentos_pack_tasks import batches, records, runs
from agentos_pack_tasks.arguments import Edit, Member, New, Target, as_json, prose, shown_json
from agentos_pack_tasks.values import Actor, Changed, Deleted, Preview, TaskError

_LOST = "they can't be had back"


def of_create(db: sqlite3.Connection, new: New, actor: Actor, max_tasks: int) -> Preview:
    """Say what creating a task would do."""
    added = records.add(db, new, actor, max_tasks)
    return Preview(would=f"create the task {added.title!r}", details=_details_of_new(db, added.id, new))


def _details_of_new(db: sqlite3.Connection, id: int, new: New) -> list[str]:
    needs = records.neighbours(db, records.needs_of(db, id))
    details = [f"depends on: {need.id} {need.title!r} ({need.status})" for need in needs]
    if new.tool is not None:
        details.append(f"its tool: {new.tool} with {shown_json(as_json(new.arguments or {}))}")
    return details + [f"notes: {prose(new.notes)}"] * bool(prose(new.notes))


def of_edit(db: sqlite3.Connection, wanted: Edit, actor: Actor) -> Preview:
    """Say what editing a task would change."""
    named = _task_label(db, wanted.id, actor)
    changed = records.edit(db, wanted, actor)
    would = f"change {named}; it will be at version {changed.version}"
    return Preview(would=would, details=[*changed.changes, *_details_of_edit(wanted)])


def _details_of_edit(wanted: Edit) -> list[str]:
    given = {"notes": wanted.notes, "result": wanted.result}
    details = [f"new {name}: {prose(text)}" for name, text in given.items() if text]
    return details + ([] if wanted.arguments is None else [f"new arguments: {shown_json(as_json(wanted.arguments))}"])


def of_delete(db: sqlite3.Connection, id: int, version: int, actor: Actor) -> Preview:
    """Say what deleting a task would lose."""
    named, task = _task_label(db, id, actor), records.get(db, id, actor)
    records.delete(db, id, version, actor)
    lost = {"notes": task.notes, "result": task.result}
    details = [f"lost: its {name} of {len(text):,} characters" for name, text in lost.items() if text]
    return Preview(would=f"delete {named}; it can't be had back", details=details)


def of_run(db: sqlite3.Connection, id: int, version: int, actor: Actor) -> Preview:
    """Say what running a task would call."""
    named = _task_label(db, id, actor)
    started = runs.start(db, id, version, actor)
    if started.tool is None:
        return Preview(would=f"mark {named} as running", details=["it names no tool, so nothing is called"])
    arguments = shown_json(as_json(started.arguments))
    details = [
        f"arguments: {arguments}",
        f"the call is made with the rights of {actor.owner}, and is asked about by itself if it needs approval",
    ]
    return Preview(would=f"call {started.tool} for {named}, and keep what comes of it", details=details)


def _task_label(db: sqlite3.Connection, id: int, actor: Actor) -> str:
    row = records.find(db, id, actor)
    return f"task {id} {row['title']!r} ({row['status']}, version {row['version']})"


# -- batches -----------------------------------------------------------------------------------------------------


def of_create_each(db: sqlite3.Connection, members: Sequence[Member], actor: Actor, max_tasks: int) -> Preview:
    """Say which of several tasks would be created."""
    outcomes = batches.create(db, members, actor, max_tasks)
    details = []
    for index, (member, outcome) in enumerate(zip(members, outcomes, strict=True)):
        if isinstance(outcome, Changed):
            details.append("; ".join([f"create {outcome.title!r}", *_details_of_new(db, outcome.id, member)]))
        else:
            details.append(_refused("tasks", index, outcome))
    return _of_each("create", outcomes, details)


def of_edit_each(db: sqlite3.Connection, edits: Sequence[Edit], actor: Actor) -> Preview:
    """Say which of several tasks would be changed, and how."""
    outcomes = batches.edit_each(db, edits, actor)
    details = []
    for index, (wanted, outcome) in enumerate(zip(edits, outcomes, strict=True)):
        if isinstance(outcome, Changed):
            told = "; ".join([*outcome.changes, *_details_of_edit(wanted)])
            details.append(f"change {outcome.id} {outcome.title!r}: {told}")
        else:
            details.append(_refused("edits", index, outcome))
    return _of_each("change", outcomes, details)


def of_delete_each(db: sqlite3.Connection, targets: Sequence[Target], actor: Actor) -> Preview:
    """Say which of several tasks would be deleted, and which would stay."""
    outcomes = batches.delete_each(db, targets, actor)
    details = [
        f"lost: {outcome.id} {outcome.title!r}" if isinstance(outcome, Deleted) else _refused("tasks", index, outcome)
        for index, outcome in enumerate(outcomes)
    ]
    return _of_each("delete", outcomes, details)


def of_run_each(db: sqlite3.Connection, targets: Sequence[Target], actor: Actor) -> Preview:
    """Say which of several tasks would be run, if every tool that is called succeeds."""
    outcomes = {
        one.id: batches.attempt(db, partial(_run, db, one, actor)) for one in batches.order_of_runs(db, targets)
    }
    ordered = [outcomes[one.id] for one in targets]
    details = [
        _refused("tasks", index, one) if isinstance(one, TaskError) else "; ".join([one.would, *one.details])
        for index, one in enumerate(ordered)
    ]
    return _of_each("run", ordered, details)


def _run(db: sqlite3.Connection, target: Target, actor: Actor) -> Preview:
    """Rehearse a run: what depends on a task whose tool is called may be run after it."""
    told = of_run(db, target.id, target.version, actor)
    if records.find(db, target.id, actor)["tool"] is not None:
        records.write(db, target.id, {"status": "done", "done_at": actor.at}, actor)
    return told


def _refused(place: str, index: int, error: TaskError) -> str:
    return f"refused: {place}[{index}]: {error}"


def _of_each(verb: str, outcomes: Sequence[Changed | Deleted | Preview | TaskError], details: list[str]) -> Preview:
    done = sum(not isinstance(outcome, TaskError) for outcome in outcomes)
    tasks = "1 task" if done == 1 else f"{done} tasks"
    would = f"{verb} {tasks}" if done else f"{verb} nothing"
    if len(outcomes) > done:
        would += f", and refuse {len(outcomes) - done}"
    return Preview(would=f"{would}; {_LOST}" if verb == "delete" and done else would, details=details)
