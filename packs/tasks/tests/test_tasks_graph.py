"""What holds always, whatever is asked in whatever order: no cycles, and nothing started before its dependencies."""

import asyncio
import itertools
from graphlib import CycleError as Circular
from graphlib import TopologicalSorter

import pytest
from agentos_pack_tasks import batches, records, runs
from agentos_pack_tasks.arguments import Edit, Member, New, Target
from agentos_pack_tasks.graph import cycle_through
from agentos_pack_tasks.records import open_book
from agentos_pack_tasks.values import Actor, Changed, CycleError, Deleted, TaskError
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

ANN = Actor("user:ann")
NODES = range(6)
GRAPHS = st.dictionaries(st.sampled_from(NODES), st.sets(st.sampled_from(NODES)))
NUMBERS = st.integers(0, 5)
PICKS = st.lists(NUMBERS, max_size=3)


def is_circular(graph):
    try:
        TopologicalSorter(graph).prepare()
    except Circular:
        return True
    return False


@given(GRAPHS, st.sampled_from(NODES), st.sets(st.sampled_from(NODES)))
def test_a_cycle_is_found_exactly_where_there_is_one(graph, node, needs):
    others = {one: wanted - {one} for one, wanted in graph.items() if one != node}
    if is_circular(others):
        return
    found = cycle_through(node, needs, lambda one: others.get(one, ()))

    assert (found is not None) == is_circular({**others, node: needs})


@given(GRAPHS, st.sampled_from(NODES))
def test_a_cycle_that_is_found_is_one(graph, node):
    found = cycle_through(node, graph.get(node, ()), lambda one: graph.get(one, ()))

    if found is not None:
        assert (found[0], found[-1]) == (node, node)
        assert all(need in graph[one] for one, need in itertools.pairwise(found))
        assert len(set(found)) == len(found) - 1


def test_a_long_chain_is_no_trouble():
    chain = {n: [n + 1] for n in range(50_000)}

    assert len(cycle_through(50_000, [0], lambda one: chain.get(one, ()))) == 50_002


class Tasks(RuleBasedStateMachine):
    """A book of tasks beside a model of it, which knows nothing but sets: whatever is asked, both answer the same."""

    def __init__(self):
        super().__init__()
        self.runner = asyncio.Runner()
        self.book = open_book(None)
        self.runner.run(self.book.open())
        self.needs, self.status, self.version = {}, {}, {}
        self.seen = None

    def teardown(self):
        self.runner.run(self.book.close())
        self.runner.close()

    def write(self, work):
        """Return what came of a change, or what it was refused for."""
        self.seen = None
        try:
            return self.runner.run(self.book.write(work))
        except TaskError as error:
            return error

    def pick(self, numbers):
        ids = sorted(self.needs)
        return [ids[number % len(ids)] for number in numbers] if ids else []

    # -- the model ---------------------------------------------------------------------------------------------

    def added(self, id, needs):
        self.needs[id], self.status[id], self.version[id] = set(needs), "open", 1

    def removed(self, id):
        for facts in (self.needs, self.status, self.version):
            del facts[id]

    def is_done(self, ids):
        return all(self.status[id] == "done" for id in ids)

    def may_edit(self, id, needs, status):
        if is_circular({**self.needs, id: needs}) or (needs, status) == (self.needs[id], self.status[id]):
            return False
        if status != "open" and not self.is_done(needs):
            return False
        started = [one for one in self.needs if id in self.needs[one] and self.status[one] != "open"]
        return status == "done" or not started

    def dependents(self, id):
        return {one for one in self.needs if id in self.needs[one]}

    def agree(self, outcome, kind, *, expected):
        assert isinstance(outcome, kind if expected else TaskError), outcome

    # -- what can be asked -------------------------------------------------------------------------------------

    @rule(picks=PICKS)
    def create(self, picks):
        needs = self.pick(picks)
        outcome = self.write(lambda db: records.add(db, New(title="x", depends_on=needs), ANN, 1_000))

        self.agree(outcome, Changed, expected=True)
        self.added(outcome.id, needs)

    @rule(links=st.lists(st.sets(st.integers(0, 4)), min_size=1, max_size=4), picks=PICKS)
    def create_many(self, links, picks):
        needs = self.pick(picks)
        local = {n: {key for key in links[n] if key < len(links)} for n in range(len(links))}
        members = [
            Member(title="x", key=str(n), depends_on=needs, depends_on_keys=[str(key) for key in sorted(links[n])])
            for n in range(len(links))
        ]
        outcomes = self.write(lambda db: batches.create(db, members, ANN, 1_000))

        bad = {n for n in local if local[n] != links[n]}
        while more := {n for n in local if n not in bad and (local[n] & bad or self.is_in_cycle(n, local))}:
            bad |= more
        for n, outcome in enumerate(outcomes):
            self.agree(outcome, Changed, expected=n not in bad)
            assert isinstance(outcome, CycleError) == self.is_in_cycle(n, local)
        for n, outcome in enumerate(outcomes):
            if n not in bad:
                self.added(outcome.id, [*needs, *(outcomes[key].id for key in local[n])])

    @staticmethod
    def is_in_cycle(node, graph):
        reached, waiting = set(), set(graph[node])
        while waiting:
            reached |= waiting
            waiting = {need for one in waiting for need in graph[one]} - reached
        return node in reached

    @rule(number=NUMBERS, picks=PICKS, status=st.sampled_from([None, "open", "done"]))
    def depend(self, number, picks, status):
        for id in self.pick([number]):
            self.edit(id, set(self.pick(picks)), status)

    @rule(number=NUMBERS, status=st.sampled_from(["open", "done"]))
    def mark(self, number, status):
        for id in self.pick([number]):
            self.edit(id, None, status)

    def edit(self, id, needs, status):
        after = self.needs[id] if needs is None else needs, status or self.status[id]
        expected = self.may_edit(id, *after)
        wanted = Edit(
            id=id, version=self.version[id], status=status, depends_on=None if needs is None else sorted(needs)
        )
        outcome = self.write(lambda db: records.edit(db, wanted, ANN))

        self.agree(outcome, Changed, expected=expected)
        if expected:
            self.needs[id], self.status[id] = after
            self.version[id] += 1

    @rule(number=NUMBERS)
    def run(self, number):
        for id in self.pick([number]):
            expected = self.status[id] == "open" and self.is_done(self.needs[id])
            outcome = self.write(lambda db, id=id: runs.start(db, id, self.version[id], ANN))

            self.agree(outcome, runs.Started, expected=expected)
            if expected:
                self.status[id] = "running"
                self.version[id] += 1

    @rule(numbers=st.lists(NUMBERS, min_size=1, max_size=4))
    def delete_many(self, numbers):
        ids = list(dict.fromkeys(self.pick(numbers)))
        if not ids:
            return
        targets = [Target(id, self.version[id]) for id in ids]
        outcomes = self.write(lambda db: batches.delete_each(db, targets, ANN))

        gone = {id for id in ids if self.status[id] != "running"}
        while kept := {id for id in gone if self.dependents(id) - gone}:
            gone -= kept
        for id, outcome in zip(ids, outcomes, strict=True):
            self.agree(outcome, Deleted, expected=id in gone)
        for id in gone:
            self.removed(id)

    # -- what holds always -------------------------------------------------------------------------------------

    def kept(self):
        def read(db):
            tasks = {
                id: (status, version) for id, status, version in db.execute("SELECT id, status, version FROM tasks")
            }
            return tasks, {id: set(records.needs_of(db, id)) for id in tasks}

        if self.seen is None:
            self.seen = self.runner.run(self.book.read(read))
        return self.seen

    @invariant()
    def what_is_kept_is_what_was_asked(self):
        tasks, needs = self.kept()

        assert tasks == {id: (self.status[id], self.version[id]) for id in self.needs}
        assert needs == self.needs

    @invariant()
    def there_is_no_cycle(self):
        assert not is_circular(self.kept()[1])

    @invariant()
    def whatever_was_started_has_its_dependencies_done(self):
        tasks, needs = self.kept()
        started = [id for id, (status, _) in tasks.items() if status != "open"]

        assert all(tasks[need][0] == "done" for id in started for need in needs[id])


Tasks.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestTasks = pytest.mark.timeout(120)(Tasks.TestCase)
