"""When a process is started and when it is left alone: a pure state machine, driven by a clock in hand."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agentos.model.isolation import WorkerState
from agentos.processes.supervision import NotDueError, Supervision, SupervisionRules

DORMANT, MOUNTING, READY, DEGRADED = WorkerState


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def process(clock):
    return Supervision(SupervisionRules(), clock)


def die(process, times=1, *, mounted=True):
    for _ in range(times):
        mount = process.begin()
        if mounted:
            process.mounted(mount)
        process.struck(mount, "it died")


def test_it_is_dormant_until_it_is_begun(process):
    assert process.state is DORMANT
    process.begin()
    assert process.state is MOUNTING


def test_a_start_that_succeeds_is_ready(process):
    process.mounted(process.begin())

    assert process.state is READY


def test_a_start_is_not_begun_twice(process):
    process.begin()

    with pytest.raises(NotDueError):
        process.begin()


def test_a_death_or_two_leave_it_to_whoever_needs_it_next(process):
    die(process, 2)

    assert (process.state, process.strikes) == (DORMANT, 2)


def test_the_third_strike_has_it_left_alone_for_thirty_seconds(process, clock):
    die(process, 3)

    assert (process.state, process.retry_at, process.reason) == (DEGRADED, clock.now + 30.0, "it died")
    with pytest.raises(NotDueError):
        process.begin()


def test_a_missed_deadline_is_a_strike_like_a_death(process):
    die(process, 2, mounted=False)
    die(process)

    assert process.state is DEGRADED


def test_strikes_are_forgotten_after_five_minutes(process, clock):
    die(process, 2)
    clock.now += 300.0
    die(process, 2)

    assert (process.state, process.strikes) == (DORMANT, 2)


def test_each_trial_that_fails_doubles_the_delay_up_to_an_hour(process, clock):
    die(process, 3)
    delays = []
    for _ in range(9):
        clock.now = process.retry_at
        die(process)
        delays.append(process.retry_at - clock.now)

    assert delays == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


def test_one_success_ends_it(process, clock):
    die(process, 3)
    clock.now = process.retry_at
    mount = process.begin()
    process.mounted(mount)
    process.succeeded(mount)
    process.struck(mount, "it died again")

    assert (process.state, process.strikes) == (DORMANT, 1)


def test_to_be_ready_alone_is_no_success(process, clock):
    die(process, 3)
    clock.now = process.retry_at
    die(process)

    assert process.retry_at == clock.now + 60.0


def test_a_success_does_not_forgive_what_is_not_degraded_yet(process):
    for _ in range(3):
        mount = process.begin()
        process.mounted(mount)
        process.succeeded(mount)
        process.struck(mount, "it died")

    assert process.state is DEGRADED


def test_to_be_ready_for_long_is_a_success(process, clock):
    die(process, 3)
    clock.now = process.retry_at
    mount = process.begin()
    process.mounted(mount)
    clock.now += 300.0
    process.struck(mount, "it died")

    assert process.state is DORMANT


def test_what_is_told_of_an_older_start_changes_nothing(process):
    old = process.begin()
    process.struck(old, "it died")
    new = process.begin()

    assert not process.mounted(old)
    assert not process.struck(old, "late")
    assert (process.state, process.mount, process.strikes) == (MOUNTING, new, 1)


def test_a_death_counts_once(process):
    mount = process.begin()
    process.struck(mount, "it died")

    assert not process.struck(mount, "it died")
    assert process.strikes == 1


def test_stopping_holds_nothing_against_it(process):
    die(process, 3)
    process.stopped()

    assert (process.state, process.strikes, process.reason) == (DORMANT, 0, None)
    assert process.begin() == 4


class Supervised(RuleBasedStateMachine):
    """Whatever happens in whatever order."""

    @initialize()
    def start(self):
        self.clock = Clock()
        self.rules = SupervisionRules()
        self.process = Supervision(self.rules, self.clock)
        self.mounts = []
        self.delay = None

    @rule(seconds=st.floats(0.0, 4_000.0))
    def wait(self, seconds):
        self.clock.now += seconds

    @rule()
    def begin(self):
        is_due = self.process.state is DORMANT or (
            self.process.state is DEGRADED and self.clock.now >= self.process.retry_at
        )
        try:
            mount = self.process.begin()
        except NotDueError:
            assert not is_due
        else:
            assert is_due
            assert not self.mounts or mount > self.mounts[-1]
            self.mounts.append(mount)

    @precondition(lambda self: self.mounts)
    @rule(data=st.data(), what=st.sampled_from(["mounted", "succeeded", "struck"]))
    def tell(self, data, what):
        mount = data.draw(st.sampled_from(self.mounts[-3:]))
        before = (self.process.state, self.process.strikes, self.process.retry_at)
        getattr(self.process, what)(*[mount, "it died"][: 2 if what == "struck" else 1])
        if mount != self.process.mount:
            assert before == (self.process.state, self.process.strikes, self.process.retry_at)

    @rule()
    def stop(self):
        self.process.stopped()

    @invariant()
    def a_time_to_retry_is_known_when_degraded_and_only_then(self):
        assert (self.process.retry_at is not None) == (self.process.state is DEGRADED)
        if self.process.retry_at is not None:
            assert 30.0 <= self.process.retry_at - self.process.since <= 3_600.0

    @invariant()
    def strikes_are_bounded_and_enough_of_them_are_never_passed_over(self):
        assert 0 <= self.process.strikes <= self.rules.strikes
        if self.process.state is DORMANT:
            assert self.process.strikes < self.rules.strikes


TestSupervised = Supervised.TestCase
TestSupervised.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
