"""Many changes as one call. Each is done or refused by itself, all in one transaction, results in the order asked.

Tasks that are created together can depend on each other by their keys, whatever their order. Tasks that are deleted
together are deleted before what they depend on. Runs alone are no transaction, since they call tools: each is one by
itself, after those that it depends on.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from agentos_pack_tasks.arguments import Edit, Member, Target
from agentos_pack_tasks.graph import cycle_through
from agentos_pack_tasks.records import add, delete, dependents, edit, needs_of
from agentos_pack_tasks.values import Actor, Changed, CycleError, Deleted, TaskError, listed

T = TypeVar("T")


def attempt(db: sqlite3.Connection, work: Callable[[], T]) -> T | TaskError:
    """Do *work*, or leave everything as it was and return what it was refused for."""
    db.execute("SAVEPOINT one")
    try:
        done = work()
    except TaskError as error:
        db.execute("ROLLBACK TO one")
        db.execute("RELEASE one")
        return error
    db.execute("RELEASE one")
    return done


# -- creating ----------------------------------------------------------------------------------------------------


def create(
    db: sqlite3.Connection, members: Sequence[Member], actor: Actor, max_tasks: int
) -> list[Changed | TaskError]:
    """Create tasks, each after those that it depends on."""
    keys = _by_key(members)
    local = [[keys[key] for key in one.depends_on_keys if key in keys] for one in members]
    outcomes: dict[int, Changed | TaskError] = {**_in_cycles(members, local)}
    for one in _order({one: needs for one, needs in enumerate(local) if one not in outcomes}):
        outcomes[one] = attempt(db, partial(_create, db, members[one], keys, outcomes, actor, max_tasks))
    return [outcomes[one] for one in range(len(members))]


def _order(needs: Mapping[int, Sequence[int]]) -> list[int]:
    """Return the keys of *needs* in their order, but each after those that it needs; there are no cycles in it."""
    ordered: dict[int, None] = {}

    def visit(one: int) -> None:
        for need in needs[one]:
            if need in needs and need not in ordered:
                visit(need)
        ordered[one] = None

    for one in needs:
        visit(one)
    return list(ordered)


def _by_key(members: Sequence[Member]) -> dict[str, int]:
    given = [one.key for one in members if one.key is not None]
    twice = sorted({key for key in given if given.count(key) > 1})
    if twice:
        raise TaskError(f"tasks: the key {listed(map(repr, twice))} is given more than once; give each task its own")
    return {one.key: index for index, one in enumerate(members) if one.key is not None}


def _in_cycles(members: Sequence[Member], local: Sequence[Sequence[int]]) -> dict[int, TaskError]:
    """Refuse those that would wait for themselves."""
    cycles = [cycle_through(one, needs, local.__getitem__) for one, needs in enumerate(local)]
    return {
        one: CycleError([repr(members[each].key) for each in cycle], "depends_on_keys")
        for one, cycle in enumerate(cycles)
        if cycle is not None
    }


def _create(
    db: sqlite3.Connection,
    member: Member,
    keys: dict[str, int],
    outcomes: dict[int, Changed | TaskError],
    actor: Actor,
    max_tasks: int,
) -> Changed:
    needs = []
    for key in member.depends_on_keys:
        if key not in keys:
            raise TaskError(f"depends_on_keys: no task of this call has the key {key!r}; depends_on takes numbers")
        outcome = outcomes[keys[key]]
        if isinstance(outcome, TaskError):
            raise TaskError(f"depends_on_keys: {key!r} was not created, so this was not either; mend that one first")
        needs.append(outcome.id)
    return add(db, member, actor, max_tasks, needs)


# -- editing, deleting, running -----------------------------------------------------------------------------------


def edit_each(db: sqlite3.Connection, edits: Sequence[Edit], actor: Actor) -> list[Changed | TaskError]:
    """Change tasks, in the order in which they are given."""
    _check_distinct([one.id for one in edits], "edits")
    return [attempt(db, partial(edit, db, one, actor)) for one in edits]


def delete_each(db: sqlite3.Connection, targets: Sequence[Target], actor: Actor) -> list[Deleted | TaskError]:
    """Delete tasks, each after those that depend on it."""
    _check_distinct([one.id for one in targets], "tasks")
    versions = {one.id: one.version for one in targets}
    order = _order({id: dependents(db, id) for id in versions})
    outcomes = {id: attempt(db, partial(delete, db, id, versions[id], actor)) for id in order}
    return [outcomes[one.id] for one in targets]


def order_of_runs(db: sqlite3.Connection, targets: Sequence[Target]) -> list[Target]:
    """Return tasks in the order in which they are given, but each after those that it depends on."""
    _check_distinct([one.id for one in targets], "tasks")
    found = {one.id: one for one in targets}
    return [found[id] for id in _order({id: needs_of(db, id) for id in found})]


def _check_distinct(ids: Sequence[int], place: str) -> None:
    twice = sorted({id for id in ids if ids.count(id) > 1})
    if twice:
        raise TaskError(f"{place}: {listed(twice)} named more than once; name each once")
