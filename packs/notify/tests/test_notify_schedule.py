"""Messages that wait: they go out once, also after a restart."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from agentos_pack_notify import schedule as module
from agentos_pack_notify.schedule import Schedule
from agentos_pack_notify.targets import DeliveryError, UncertainError

from agentos import Principal

# apprise imports a module of Python that is going away, on Pythons that still have it.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
SUE = Principal("sue", access={"notify:send", "notify:read"})
BOB = Principal("bob", access={"notify:send", "notify:read"})
START = datetime(2030, 1, 1, tzinfo=UTC)


class Place:
    """Takes messages, or refuses them; a clock that stands still until it is set."""

    def __init__(self):
        self.now = START.timestamp()
        self.taken = []
        self.refuses = None
        self.holds = None
        self.began = asyncio.Event()

    async def deliver(self, target, title, body):
        self.began.set()
        if self.holds is not None:
            await self.holds.wait()
        if self.refuses:
            raise self.refuses(f"{target}: not now")
        self.taken.append((target, title, body))


@pytest.fixture
def place():
    return Place()


@pytest.fixture
def opened(place, tmp_path):
    """Return a function that opens the schedule's file; its own sending stands still, the test calls it."""
    schedules = []

    async def opening(**more):
        schedule = Schedule(tmp_path / "notify.db", place.deliver, clock=lambda: place.now, **more)
        await schedule._database.open()
        schedules.append(schedule)
        return schedule

    yield opening
    for schedule in schedules:
        assert not schedule._database.is_open, "the test left a schedule open"


async def added(schedule, days=1, principal="sue", title="T"):
    return await schedule.add(principal, "ops", title, "B", START + timedelta(days=days))


async def state_of(schedule, id):
    message = await schedule.find(id, "", everybody=True)
    return message.state, message.attempts, message.reason


class TestSending:
    async def test_nothing_goes_out_before_its_time(self, opened, place):
        schedule = await opened()
        await added(schedule)

        assert (await schedule.send_due(), place.taken) == (0, [])
        await schedule.stop()

    async def test_what_is_due_goes_out_once_in_order(self, opened, place):
        schedule = await opened()
        await added(schedule, 2, title="later")
        await added(schedule, 1, title="sooner")
        place.now += timedelta(days=3).total_seconds()
        await schedule.send_due()
        await schedule.send_due()

        assert [title for _, title, _ in place.taken] == ["sooner", "later"]
        await schedule.stop()

    @pytest.mark.parametrize("days", [25, 400, 3_650])
    async def test_a_message_far_away_waits_as_long(self, opened, place, days):
        schedule = await opened()
        message = await added(schedule, days)
        place.now += timedelta(days=days).total_seconds() - 1
        before = await schedule.send_due()
        place.now += 2
        after = await schedule.send_due()

        assert (before, after, (await state_of(schedule, message.id))[0]) == (0, 1, "sent")
        await schedule.stop()

    async def test_it_survives_a_restart(self, opened, place):
        schedule = await opened()
        await added(schedule)
        await schedule.stop()
        place.now += timedelta(days=40).total_seconds()
        again = await opened()
        await again.send_due()

        assert place.taken == [("ops", "T", "B")]
        await again.stop()

    async def test_of_two_processes_one_sends(self, opened, place):
        one, other = await opened(), await opened()
        for _ in range(20):
            await added(one)
        place.now += timedelta(days=2).total_seconds()
        counts = await asyncio.gather(one.send_due(), other.send_due())

        assert (sum(counts), len(place.taken)) == (20, 20)
        await one.stop()
        await other.stop()


class TestFailing:
    async def test_a_refused_message_is_tried_again_later_and_later_and_then_failed(self, opened, place):
        schedule = await opened(attempts=3)
        message = await added(schedule)
        place.refuses = DeliveryError
        place.now += timedelta(days=2).total_seconds()
        seen = []
        for pause in (0, 59, 2, 298, 3):
            place.now += pause
            seen.append((await schedule.send_due(), *await state_of(schedule, message.id)))

        assert [(tried, state, attempts) for tried, state, attempts, _ in seen] == [
            (1, "waiting", 1),
            (0, "waiting", 1),
            (1, "waiting", 2),
            (0, "waiting", 2),
            (1, "failed", 3),
        ]
        assert seen[-1][3] == "ops: not now"
        await schedule.stop()

    async def test_one_that_got_no_answer_is_unknown_and_not_sent_again(self, opened, place):
        schedule = await opened()
        message = await added(schedule)
        place.refuses = UncertainError
        place.now += timedelta(days=2).total_seconds()
        tried = [await schedule.send_due()]
        place.now += timedelta(days=2).total_seconds()
        tried.append(await schedule.send_due())

        assert (tried, (await state_of(schedule, message.id))[0]) == ([1, 0], "unknown")
        await schedule.stop()

    async def test_what_was_being_sent_when_its_process_died_is_unknown_and_not_sent_again(self, opened, place):
        schedule = await opened()
        message = await added(schedule)
        place.now += timedelta(days=2).total_seconds()
        await schedule._database.write(schedule._take)  # and then the process is gone
        await schedule.stop()
        again = await opened()
        place.now += module.LEASE - 1
        early = await again.send_due(), (await state_of(again, message.id))[0]
        place.now += 2
        late = await again.send_due(), (await state_of(again, message.id))[0]

        assert (early, late, place.taken) == ((0, "sending"), (0, "unknown"), [])
        await again.stop()

    async def test_one_cut_off_by_a_stop_is_unknown(self, opened, place):
        schedule = await opened()
        message = await added(schedule)
        place.now += timedelta(days=2).total_seconds()
        place.holds = asyncio.Event()
        await schedule.start()
        await place.began.wait()
        await schedule.stop()
        again = await opened()

        assert (await state_of(again, message.id))[0] == "unknown"
        await again.stop()

    async def test_there_is_an_end_to_what_waits(self, opened, monkeypatch):
        monkeypatch.setattr(module, "MAX_WAITING", 2)
        schedule = await opened()
        await added(schedule)
        await added(schedule)

        with pytest.raises(ValueError, match="2 messages are waiting already; cancel some first"):
            await added(schedule)
        await schedule.stop()

    async def test_what_is_over_is_forgotten_in_the_end(self, opened, place, monkeypatch):
        monkeypatch.setattr(module, "MAX_KEPT", 2)
        schedule = await opened()
        messages = [await added(schedule, day) for day in (1, 2, 3)]
        for _ in messages:
            place.now += timedelta(days=1).total_seconds()
            await schedule.send_due()

        with pytest.raises(ValueError, match="no message"):
            await state_of(schedule, messages[0].id)
        assert (await state_of(schedule, messages[2].id))[0] == "sent"
        await schedule.stop()


class TestTools:
    def soon(self, **delta):
        return (datetime.now(UTC) + timedelta(**delta)).isoformat()

    def url(self, hook):
        return f"ops=json://127.0.0.1:{hook.port}"

    async def test_a_scheduled_message_arrives_by_itself(self, hosting, call, hook):
        async with hosting(self.url(hook)) as host:
            result = await call(
                host, "notify_schedule", SUE, target="ops", title="T", body="B", at=self.soon(milliseconds=300)
            )
            assert result.success, result.content
            arrived = await asyncio.wait_for(hook.arrived.get(), 60)

        assert (arrived["title"], arrived["message"]) == ("T", "B")

    async def test_it_is_listed_and_cancelled(self, hosting, call, hook):
        async with hosting(self.url(hook)) as host:
            made = await call(host, "notify_schedule", SUE, target="ops", title="T", body="B", at=self.soon(days=30))
            before = await call(host, "notify_scheduled", SUE)
            gone = await call(host, "notify_cancel", SUE, id=made.output["id"])
            after = await call(host, "notify_scheduled", SUE)

        assert [one["id"] for one in before.output["messages"]] == [made.output["id"]]
        assert (gone.output["state"], after.output["total"]) == ("cancelled", 0)

    async def test_somebody_else_does_not_see_it(self, hosting, call, hook):
        async with hosting(self.url(hook)) as host:
            made = await call(host, "notify_schedule", SUE, target="ops", title="T", body="B", at=self.soon(days=30))
            seen = await call(host, "notify_scheduled", BOB)
            result = await call(host, "notify_cancel", BOB, id=made.output["id"])
            everything = await call(host, "notify_scheduled")

        assert (seen.output["total"], result.success, everything.output["total"]) == (0, False, 1)
        assert (
            result.error.message
            == f"ValueError: id: no message '{made.output['id']}'; notify_scheduled lists those that wait"
        )

    async def test_a_longer_list_says_so(self, hosting, call, hook):
        async with hosting(self.url(hook)) as host:
            for _ in range(3):
                await call(host, "notify_schedule", SUE, target="ops", title="T", body="B", at=self.soon(days=30))
            listed = await call(host, "notify_scheduled", SUE, limit=2)

        assert (len(listed.output["messages"]), listed.output["total"], listed.output["truncated"]) == (2, 3, True)

    @pytest.mark.parametrize(
        ("at", "message"),
        [
            ("tomorrow morning", "at: expected a date and time such as"),
            ("2030-05-01T09:00:00", "at: has no offset from UTC; add one, such as Z or +02:00"),
            ("2020-05-01T09:00:00Z", "has passed"),
            ("2090-05-01T09:00:00Z", "at: is more than ten years away"),
            ("9999-12-31T23:59:59-23:59", "at: is out of range"),
        ],
        ids=["words", "naive", "past", "far", "beyond"],
    )
    async def test_a_wrong_time_is_told(self, hosting, call, hook, at, message):
        async with hosting(self.url(hook)) as host:
            result = await call(host, "notify_schedule", SUE, target="ops", title="T", body="B", at=at)

        assert message in result.error.message

    async def test_previews_say_what_would_happen(self, hosting, call, hook):
        async with hosting(self.url(hook)) as host:
            made = await call(
                host, "notify_schedule", SUE, target="ops", title="T", body="B", at="2035-01-01T00:00:00Z"
            )
        async with hosting(self.url(hook), mode="approve") as host:
            await call(host, "notify_schedule", SUE, target="ops", title="T", body="B", at="2035-01-01T01:00:00+01:00")
            await call(host, "notify_cancel", SUE, id=made.output["id"])
            previews = [proposal.preview["would"] for proposal in await host.approvals.pending()]

        assert previews == [
            "send to ops by json at 2035-01-01T00:00:00+00:00",
            f"cancel the message {made.output['id']} to ops, due 2035-01-01T00:00:00+00:00",
        ]
