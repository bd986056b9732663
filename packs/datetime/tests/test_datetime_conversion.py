"""convert_time: also when the clocks change."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from agentos_pack_datetime.conversion import TimeConversion, convert_time
from hypothesis import given, settings
from hypothesis import strategies as st

ZONES = [
    "UTC",
    "Europe/Berlin",
    "Europe/Dublin",
    "America/New_York",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Asia/Tehran",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Africa/Casablanca",
    "Antarctica/Troll",
]

SKIPPED = [
    ("Europe/Berlin", "2024-03-31T02:30:00", "2024-03-31T01:30:00+01:00", "2024-03-31T03:30:00+02:00"),
    ("America/New_York", "2024-03-10T02:30:00", "2024-03-10T01:30:00-05:00", "2024-03-10T03:30:00-04:00"),
    ("Australia/Lord_Howe", "2024-10-06T02:15:00", "2024-10-06T01:45:00+10:30", "2024-10-06T02:45:00+11:00"),
    ("Asia/Kathmandu", "1986-01-01T00:10:00", "1985-12-31T23:55:00+05:30", "1986-01-01T00:25:00+05:45"),
    ("Pacific/Apia", "2011-12-30T12:00:00", "2011-12-29T12:00:00-10:00", "2011-12-31T12:00:00+14:00"),
]
REPEATED = [
    ("Europe/Berlin", "2024-10-27T02:30:00", "2024-10-27T02:30:00+02:00", "2024-10-27T02:30:00+01:00"),
    ("America/New_York", "2024-11-03T01:30:00", "2024-11-03T01:30:00-04:00", "2024-11-03T01:30:00-05:00"),
    ("Australia/Lord_Howe", "2024-04-07T01:45:00", "2024-04-07T01:45:00+11:00", "2024-04-07T01:45:00+10:30"),
    ("Pacific/Apia", "2011-04-02T03:30:00", "2011-04-02T03:30:00-10:00", "2011-04-02T03:30:00-11:00"),
]
BOTH = [(*row, "skipped") for row in SKIPPED] + [(*row, "repeated") for row in REPEATED]


def test_a_local_time_is_converted():
    expected = TimeConversion(
        from_time="2024-07-01T20:30:00+02:00",
        from_tz="Europe/Berlin",
        to_time="2024-07-02T03:30:00+09:00",
        to_tz="Asia/Tokyo",
        utc="2024-07-01T18:30:00Z",
        weekday="Tuesday",
        day_shift=1,
        local_time="unique",
    )

    assert expected == convert_time("2024-07-01T20:30", "Europe/Berlin", "Asia/Tokyo")


def test_a_time_with_an_offset_needs_no_zone():
    result = convert_time("2024-07-01T20:30-04:00", to_tz="Asia/Kathmandu")

    assert (result.from_tz, result.to_time) == (None, "2024-07-02T06:15:00+05:45")


@pytest.mark.parametrize(
    "text",
    [
        "2024-07-01T12:00:00Z",
        "2024-07-01t12:00:00z",
        "2024-07-01 12:00Z",
        "2024-07-01T12Z",
        "20240701T120000Z",
        "2024-07-01T14:00+02:00",
        "2024-07-01T14:00+0200",
        "2024-07-01T14:00+02",
        "2024-07-01T12:00:00.000+00:00",
        " 2024-07-01T12:00:00,0-00:00 ",
    ],
)
def test_iso_8601_has_many_spellings(text):
    assert convert_time(text).utc == "2024-07-01T12:00:00Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "tomorrow 5pm",
        "1719835200",
        "07/01/2024 12:00",
        "2024-7-1T12:00",
        "2024-07-01T12:00:60",  # whenever alone reads this as second 59
        "2024-07-01T12:00+02:00[Asia/Tokyo]",  # and this without its zone
        "2024-07-01T12:00:00.1234567890",
        "2024-W27-1T12:00",
        "\N{ARABIC-INDIC DIGIT TWO}024-07-01T12:00",
        "2024-07-01T12:00" + "0" * 9999,
    ],
)
def test_other_text_is_refused(text):
    with pytest.raises(ValueError, match=r"^time: expected ISO 8601 such as") as caught:
        convert_time(text, "UTC")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", ["2024-02-30T12:00", "2024-13-01T12:00", "2024-07-01T24:00", "0000-01-01T00:00"])
def test_what_no_calendar_has_is_refused(text):
    with pytest.raises(ValueError, match=r"^time: there is no such date or time"):
        convert_time(text, "UTC")


def test_a_date_is_not_a_time():
    with pytest.raises(ValueError, match=r"^time: '2024-07-01' has no time of day; write it such as 2024-07-01T09:00"):
        convert_time("2024-07-01", "UTC")


def test_a_local_time_needs_a_zone():
    with pytest.raises(ValueError, match=r"^from_tz: '2024-07-01T12:00' has no offset"):
        convert_time("2024-07-01T12:00", to_tz="Asia/Tokyo")


@pytest.mark.parametrize("place", ["from_tz", "to_tz"])
def test_an_unknown_zone_is_named_with_its_parameter(place):
    with pytest.raises(ValueError, match=rf"^{place}: unknown time zone 'Mars/Olympus'"):
        convert_time("2024-07-01T12:00", **{"from_tz": "UTC", "to_tz": "UTC", place: "Mars/Olympus"})


def test_an_offset_that_contradicts_the_zone_is_refused():
    with pytest.raises(ValueError, match=r"contradicts from_tz, Europe/Berlin has 2024-07-01T14:00:00\+02:00"):
        convert_time("2024-07-01T12:00Z", "Europe/Berlin")


@pytest.mark.parametrize(("tz", "local", "earlier", "later", "kind"), BOTH)
class TestClockChange:
    def test_it_is_answered_with_both_candidates(self, tz, local, earlier, later, kind):
        with pytest.raises(ValueError, match=rf"^time: {local} is {kind} in {tz}") as caught:
            convert_time(local, tz)

        assert f"'earlier' is {earlier}, 'later' is {later}" in str(caught.value)

    def test_the_earlier_can_be_chosen(self, tz, local, earlier, later, kind):
        result = convert_time(local, tz, disambiguate="earlier")

        assert (earlier, kind) == (result.from_time, result.local_time)

    def test_the_later_can_be_chosen(self, tz, local, earlier, later, kind):
        result = convert_time(local, tz, disambiguate="later")

        assert (later, kind) == (result.from_time, result.local_time)


@pytest.mark.parametrize(("tz", "local", "earlier", "later"), REPEATED)
def test_an_offset_tells_repeated_times_apart(tz, local, earlier, later):
    assert convert_time(earlier, tz).utc < convert_time(later, tz).utc


def test_the_day_that_never_was_is_two_days_wide():
    before = convert_time("2011-12-30T09:59:59Z", to_tz="Pacific/Apia")
    after = convert_time("2011-12-30T10:00:00Z", to_tz="Pacific/Apia")

    assert (before.to_time, after.to_time) == ("2011-12-29T23:59:59-10:00", "2011-12-31T00:00:00+14:00")
    assert (before.day_shift, after.day_shift) == (-1, 1)


def test_another_choice_is_refused():
    with pytest.raises(ValueError, match=r"^disambiguate: expected reject, earlier, later, got 'both'"):
        convert_time("2024-07-01T12:00", "UTC", disambiguate="both")


@pytest.mark.parametrize(
    ("text", "source", "target"),
    [
        ("0001-01-01T00:00", "UTC", "America/New_York"),
        ("9999-12-31T23:00", "UTC", "Asia/Tokyo"),
        ("9999-12-31T23:00", "America/New_York", "UTC"),
        ("0001-01-01T00:00Z", "America/New_York", "UTC"),
    ],
)
def test_the_ends_of_time_are_refused(text, source, target):
    with pytest.raises(ValueError, match=r"^time: .*is outside the years 1 to 9999"):
        convert_time(text, source, target)


instants = st.datetimes(datetime(1975, 1, 1), datetime(2037, 1, 1)).map(lambda t: t.replace(microsecond=0, tzinfo=UTC))
locals_ = st.datetimes(datetime(1975, 1, 1), datetime(2037, 1, 1)).map(lambda t: t.replace(microsecond=0))
changes = st.sampled_from([datetime.fromisoformat(row[1]) for row in SKIPPED + REPEATED])
near_changes = st.builds(lambda t, m: t + timedelta(minutes=m), changes, st.integers(-2000, 2000))


@settings(deadline=None)
@given(instants, st.sampled_from(ZONES))
def test_it_agrees_with_the_standard_library(instant, tz):
    result = convert_time(instant.isoformat(), to_tz=tz)

    assert instant.astimezone(ZoneInfo(tz)).isoformat() == result.to_time


@settings(deadline=None)
@given(instants, st.sampled_from(ZONES), st.sampled_from(ZONES))
def test_there_and_back_is_the_same_moment(instant, first, second):
    there = convert_time(instant.isoformat(), to_tz=first)
    back = convert_time(there.to_time, first, second)

    assert instant == datetime.fromisoformat(back.to_time)


@settings(deadline=None)
@given(locals_ | near_changes, st.sampled_from(ZONES))
def test_every_local_time_is_unique_skipped_or_repeated(local, tz):
    first, second = (local.replace(tzinfo=ZoneInfo(tz), fold=fold).utcoffset() for fold in (0, 1))
    expected = "unique" if first == second else "repeated" if first > second else "skipped"

    results = [convert_time(local.isoformat(), tz, disambiguate=choice) for choice in ("earlier", "later")]

    assert {expected} == {result.local_time for result in results}
    assert sorted(local - offset for offset in (first, second)) == [
        datetime.fromisoformat(result.utc).replace(tzinfo=None) for result in results
    ]
