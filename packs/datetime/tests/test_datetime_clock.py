"""now: by a clock that stands still."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from agentos_pack_datetime.clock import CurrentTime, DateTimeTools, system_clock

NOON = DateTimeTools(lambda: datetime(2024, 7, 1, 12, 0, 0, 999_999, tzinfo=UTC))


def test_utc_is_the_default():
    expected = CurrentTime(
        time="2024-07-01T12:00:00+00:00",
        tz="UTC",
        abbreviation="UTC",
        weekday="Monday",
        utc="2024-07-01T12:00:00Z",
        unix_seconds=1719835200,
    )

    assert expected == NOON.now()


@pytest.mark.parametrize(
    ("tz", "time", "weekday"),
    [
        ("Europe/Berlin", "2024-07-01T14:00:00+02:00", "Monday"),
        ("America/New_York", "2024-07-01T08:00:00-04:00", "Monday"),
        ("Australia/Lord_Howe", "2024-07-01T22:30:00+10:30", "Monday"),
        ("Asia/Kathmandu", "2024-07-01T17:45:00+05:45", "Monday"),
        ("Pacific/Apia", "2024-07-02T01:00:00+13:00", "Tuesday"),
        ("Etc/GMT+12", "2024-07-01T00:00:00-12:00", "Monday"),
    ],
)
def test_the_time_is_told_in_any_zone(tz, time, weekday):
    result = NOON.now(tz)

    assert (time, weekday, tz) == (result.time, result.weekday, result.tz)


def test_the_clock_may_be_in_any_zone():
    clock = DateTimeTools(lambda: datetime(2024, 7, 1, 14, tzinfo=timezone(timedelta(hours=2))))

    assert clock.now().utc == "2024-07-01T12:00:00Z"


def test_the_same_hour_twice_is_told_apart():
    first = DateTimeTools(lambda: datetime(2024, 10, 27, 0, 30, tzinfo=UTC)).now("Europe/Berlin")
    second = DateTimeTools(lambda: datetime(2024, 10, 27, 1, 30, tzinfo=UTC)).now("Europe/Berlin")

    assert (first.time, first.abbreviation) == ("2024-10-27T02:30:00+02:00", "CEST")
    assert (second.time, second.abbreviation) == ("2024-10-27T02:30:00+01:00", "CET")


def test_the_second_is_cut_off_before_the_epoch_too():
    clock = DateTimeTools(lambda: datetime(1969, 12, 31, 23, 59, 59, 900_000, tzinfo=UTC))

    assert clock.now().unix_seconds == -1


@pytest.mark.parametrize("time", [datetime(2024, 7, 1), "2024-07-01", None])
def test_a_clock_without_a_zone_is_refused(time):
    with pytest.raises(ValueError, match="clock: expected an aware datetime"):
        DateTimeTools(lambda: time).now()


def test_the_system_clock_is_aware():
    assert system_clock().utcoffset() == timedelta(0)


@pytest.mark.parametrize("name", ["europe/berlin", "EUROPE/BERLIN", " Europe/Berlin "])
def test_the_case_of_a_zone_does_not_matter(name):
    assert NOON.now(name).tz == "Europe/Berlin"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Europe/Berln", "did you mean Europe/Berlin"),
        ("Berlin", "did you mean Europe/Berlin"),
        ("New York", "did you mean America/New_York"),
        ("America/Kathmandu", "Asia/Kathmandu"),
        ("PST", "an abbreviation may stand for several zones"),
        ("qqqqqqqqqq", "give an IANA name such as"),
        ("", "give an IANA name such as"),
    ],
)
def test_an_unknown_zone_is_answered_with_the_nearest(name, hint):
    with pytest.raises(ValueError, match=rf"^tz: unknown time zone '{name}'; .*{hint}"):
        NOON.now(name)


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/localtime",
        "America",
        "Europe/Berlin\x00",
        "localtime",
        "Factory",
        "x" * 9999,
    ],
)
def test_a_zone_is_never_a_path(name):
    with pytest.raises(ValueError, match="unknown time zone") as caught:
        NOON.now(name)
    assert len(str(caught.value)) < 300
