"""date_math: adding, and measuring."""

from datetime import date, datetime, timedelta

import pytest
from agentos_pack_datetime.arithmetic import LIMITS, DateMath, Difference, date_math
from hypothesis import assume, given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("start", "amounts", "result"),
    [
        ("2024-01-31", {"months": 1}, "2024-02-29"),
        ("2023-01-31", {"months": 1}, "2023-02-28"),
        ("2024-02-29", {"years": 1}, "2025-02-28"),
        ("2024-03-31", {"months": -1}, "2024-02-29"),
        ("2024-01-31", {"months": 1, "days": 1}, "2024-03-01"),
        ("2024-01-31", {"months": 1, "days": -3}, "2024-02-26"),
        ("2024-12-31", {"days": 1}, "2025-01-01"),
        ("2024-01-01", {"weeks": -1, "days": 7}, "2024-01-01"),
        ("20240101", {"years": -2023}, "0001-01-01"),
        ("2024-01-31T09:00", {"hours": 20}, "2024-02-01T05:00:00"),
        ("2024-01-31T09:00", {"months": 1, "minutes": -1}, "2024-02-29T08:59:00"),
        ("2024-03-30T12:00", {"days": 1}, "2024-03-31T12:00:00"),
        ("2024-03-30T12:00+01:00", {"days": 1, "hours": 24}, "2024-04-01T12:00:00+01:00"),
        ("2024-03-30T12:00:00.25Z", {"seconds": 1}, "2024-03-30T12:00:01.25+00:00"),
    ],
)
def test_amounts_are_added(start, amounts, result):
    assert result == date_math(start, **amounts).result


def test_the_result_says_what_day_it_is():
    expected = DateMath(result="2024-02-29", tz=None, weekday="Thursday", difference=None)

    assert expected == date_math("2024-01-31", months=1)


class TestInAZone:
    def test_a_day_keeps_the_time_of_day(self):
        assert date_math("2024-03-30T12:00", days=1, tz="Europe/Berlin").result == "2024-03-31T12:00:00+02:00"

    def test_24_hours_are_24_hours(self):
        assert date_math("2024-03-30T12:00", hours=24, tz="Europe/Berlin").result == "2024-03-31T13:00:00+02:00"

    def test_days_go_before_hours(self):
        result = date_math("2024-03-30T02:00", days=1, hours=-1, tz="Europe/Berlin", disambiguate="later")

        assert result.result == "2024-03-31T01:00:00+01:00"

    def test_a_start_with_an_offset_is_moved_there(self):
        result = date_math("2024-07-01T12:00Z", days=1, tz="europe/berlin")

        assert (result.result, result.tz) == ("2024-07-02T14:00:00+02:00", "Europe/Berlin")

    def test_the_second_of_two_equal_times_is_kept(self):
        assert date_math("2024-10-27T02:30+01:00", hours=0, tz="Europe/Berlin").result == "2024-10-27T02:30:00+01:00"

    @pytest.mark.parametrize(
        ("tz", "start", "days", "earlier", "later"),
        [
            (
                "Europe/Berlin",
                "2024-03-30T02:30",
                1,
                "2024-03-31T01:30:00+01:00",
                "2024-03-31T03:30:00+02:00",
            ),
            (
                "Europe/Berlin",
                "2024-10-26T02:30",
                1,
                "2024-10-27T02:30:00+02:00",
                "2024-10-27T02:30:00+01:00",
            ),
            (
                "America/New_York",
                "2024-03-11T02:30",
                -1,
                "2024-03-10T01:30:00-05:00",
                "2024-03-10T03:30:00-04:00",
            ),
            (
                "Australia/Lord_Howe",
                "2024-10-05T02:15",
                1,
                "2024-10-06T01:45:00+10:30",
                "2024-10-06T02:45:00+11:00",
            ),
            (
                "Asia/Kathmandu",
                "1985-12-31T00:10",
                1,
                "1985-12-31T23:55:00+05:30",
                "1986-01-01T00:25:00+05:45",
            ),
            ("Pacific/Apia", "2011-12-29T12:00", 1, "2011-12-29T12:00:00-10:00", "2011-12-31T12:00:00+14:00"),
        ],
    )
    def test_landing_in_a_clock_change_is_the_callers_choice(self, tz, start, days, earlier, later):
        with pytest.raises(ValueError, match=rf"^start, with the days added: .* in {tz} by a clock change") as caught:
            date_math(start, days=days, tz=tz)

        assert f"'earlier' is {earlier}, 'later' is {later}" in str(caught.value)
        assert earlier == date_math(start, days=days, tz=tz, disambiguate="earlier").result
        assert later == date_math(start, days=days, tz=tz, disambiguate="later").result

    def test_a_start_that_was_skipped_is_the_callers_choice_too(self):
        with pytest.raises(ValueError, match=r"^start: 2024-03-31T02:30:00 is skipped in Europe/Berlin"):
            date_math("2024-03-31T02:30", hours=1, tz="Europe/Berlin")

    def test_a_day_of_the_date_line_is_jumped_over(self):
        result = date_math("2011-12-29T12:00", tz="Pacific/Apia", until="2011-12-31T12:00")

        assert (result.difference.total_days, result.difference.total_seconds) == (2, 86_400)


class TestDifference:
    def test_it_has_parts_and_totals(self):
        expected = Difference(
            until="2025-03-16T11:15:30",
            years=1,
            months=2,
            days=15,
            hours=1,
            minutes=15,
            seconds=30,
            total_days=440,
            total_seconds=38_020_530,
        )

        assert expected == date_math("2024-01-01T10:00", until="2025-03-16T11:15:30").difference

    def test_dates_are_whole_days(self):
        result = date_math("2024-01-01", until="2024-12-25").difference

        assert (result.months, result.days, result.total_days) == (11, 24, 359)

    def test_it_is_measured_from_the_result(self):
        assert date_math("2024-01-01", days=10, until="2024-01-31").difference.total_days == 20

    def test_backwards_is_negative(self):
        result = date_math("2024-03-30", until="2023-01-01").difference

        assert (result.years, result.months, result.days, result.total_days) == (-1, -2, -29, -454)

    def test_a_day_may_have_23_hours(self):
        plain = date_math("2024-03-30T12:00", until="2024-03-31T12:00").difference
        zoned = date_math("2024-03-30T12:00", until="2024-03-31T12:00", tz="Europe/Berlin").difference

        assert (plain.total_days, plain.total_seconds) == (1, 86_400)
        assert (zoned.total_days, zoned.total_seconds) == (1, 82_800)

    def test_times_with_different_offsets_are_compared(self):
        result = date_math("2024-01-01T00:00Z", until="2024-01-01T00:00-05:00").difference

        assert (result.hours, result.until) == (5, "2024-01-01T05:00:00+00:00")

    def test_parts_of_a_second_are_kept(self):
        result = date_math("2024-01-01T00:00:00Z", until="2023-12-31T23:59:58.5Z").difference

        assert (result.seconds, result.total_seconds) == (-1.5, -1.5)

    def test_a_repeated_until_is_the_callers_choice(self):
        with pytest.raises(ValueError, match=r"^until: 2024-10-27T02:30:00 is repeated in Europe/Berlin"):
            date_math("2024-10-27T00:00", until="2024-10-27T02:30", tz="Europe/Berlin")

    @pytest.mark.parametrize(
        ("start", "until", "tz", "text"),
        [
            ("2024-01-01", "2024-01-02T00:00", None, "expected a date, as start is one"),
            ("2024-01-01T00:00", "2024-01-02", None, "expected a time without an offset"),
            ("2024-01-01T00:00", "2024-01-02T00:00Z", None, "expected a time without an offset"),
            ("2024-01-01T00:00Z", "2024-01-02T00:00", None, "expected a time with an offset"),
            ("2024-01-01T00:00", "2024-01-02", "UTC", "expected a time, as start is one"),
            ("2024-01-01T00:00-05:00", "0001-01-01T00:00Z", None, "is outside the years 1 to 9999"),
            ("2024-01-01T00:00", "0001-01-01T00:00Z", "America/New_York", "is outside the years 1 to 9999"),
            ("2024-01-01", "soon", None, "expected ISO 8601"),
        ],
    )
    def test_only_like_is_measured_with_like(self, start, until, tz, text):
        with pytest.raises(ValueError, match=rf"^until: .*{text}"):
            date_math(start, until=until, tz=tz)


@pytest.mark.parametrize("unit", ["hours", "minutes", "seconds"])
def test_a_date_has_no_hours(unit):
    with pytest.raises(ValueError, match=r"^start: '2024-01-31' has no time of day"):
        date_math("2024-01-31", **{unit: 1})


@pytest.mark.parametrize("unit", sorted(LIMITS))
@pytest.mark.parametrize("amount", [10**30, -(10**30), 1.5, True, "1", None])
def test_amounts_are_whole_and_bounded(unit, amount):
    with pytest.raises(ValueError, match=rf"^{unit}: expected a whole number from -"):
        date_math("2024-01-31T00:00", **{unit: amount})


@pytest.mark.parametrize(
    ("start", "amounts"),
    [
        ("9999-12-31", {"days": 1}),
        ("0001-01-01", {"months": -1}),
        ("2024-01-01", {"years": 10_000}),
        ("2024-01-01T00:00", {"seconds": 400_000_000_000}),
        ("9999-12-31T00:00", {"days": 1, "tz": "Europe/Berlin"}),
        ("9999-12-31T00:00", {"hours": 24, "tz": "Europe/Berlin"}),
        ("9999-12-30T23:00-05:00", {"days": 1}),
    ],
)
def test_the_ends_of_time_are_refused(start, amounts):
    with pytest.raises(ValueError, match=r"^start: the result is outside the years 1 to 9999"):
        date_math(start, **amounts)


def test_an_unknown_zone_is_refused_for_a_date_as_well():
    with pytest.raises(ValueError, match=r"^tz: unknown time zone 'Europe/Berln'; did you mean Europe/Berlin"):
        date_math("2024-01-31", tz="Europe/Berln")


dates = st.dates(date(1600, 1, 1), date(2400, 1, 1))
times = st.datetimes(datetime(1980, 1, 1), datetime(2037, 1, 1)).map(lambda t: t.replace(microsecond=0))
zones = st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"])


@settings(deadline=None)
@given(dates, st.integers(-100_000, 100_000))
def test_days_are_undone_by_taking_them_away(start, days):
    there = date_math(start.isoformat(), days=days).result

    assert (start + timedelta(days=days)).isoformat() == there
    assert start.isoformat() == date_math(there, days=-days).result


@settings(deadline=None)
@given(times, zones, st.integers(-100_000, 100_000), st.integers(-10_000, 10_000))
def test_time_that_passes_is_undone_in_every_zone(start, tz, hours, seconds):
    first = date_math(f"{start.isoformat()}Z", tz=tz).result
    there = date_math(first, hours=hours, seconds=seconds, tz=tz).result
    back = date_math(there, hours=-hours, seconds=-seconds, tz=tz).result

    assert first == back


@settings(deadline=None)
@given(times, zones, st.integers(-1000, 1000))
def test_days_keep_the_local_time_unless_a_clock_change_forbids_it(start, tz, days):
    first = date_math(f"{start.isoformat()}Z", tz=tz).result
    earlier = date_math(first, days=days, tz=tz, disambiguate="earlier").result
    later = date_math(first, days=days, tz=tz, disambiguate="later").result
    assume(earlier == later)

    wanted = datetime.fromisoformat(first).replace(tzinfo=None) + timedelta(days=days)
    assert wanted == datetime.fromisoformat(later).replace(tzinfo=None)


@settings(deadline=None)
@given(dates, dates)
def test_the_difference_leads_from_one_date_to_the_other(start, until):
    difference = date_math(start.isoformat(), until=until.isoformat()).difference

    parts = {unit: getattr(difference, unit) for unit in ("years", "months", "days")}
    assert until.isoformat() == date_math(start.isoformat(), **parts).result
    assert (until - start).days == difference.total_days


@settings(deadline=None)
@given(times, times)
def test_the_total_is_what_the_standard_library_says(start, until):
    difference = date_math(start.isoformat(), until=until.isoformat()).difference

    assert (until - start).total_seconds() == difference.total_seconds


@settings(deadline=None)
@given(times, times, zones)
def test_the_difference_leads_there_in_every_zone(start, until, tz):
    first = date_math(f"{start.isoformat()}Z", tz=tz).result
    difference = date_math(first, until=f"{until.isoformat()}Z", tz=tz).difference

    units = ("years", "months", "days", "hours", "minutes", "seconds")
    parts = {unit: getattr(difference, unit) for unit in units}
    results = {date_math(first, **parts, tz=tz, disambiguate=choice).result for choice in ("earlier", "later")}
    assert difference.until in results
    assert (until - start).total_seconds() == difference.total_seconds
