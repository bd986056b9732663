"""parse_ics: real files, broken files and hostile ones."""

import contextlib

import pytest
from agentos_pack_datetime import ics
from agentos_pack_datetime.ics import Event, parse_ics
from hypothesis import given, settings
from hypothesis import strategies as st


def calendar(*lines):
    return "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", *lines, "END:VCALENDAR", ""])


def event(*lines):
    return ["BEGIN:VEVENT", *lines, "END:VEVENT"]


def only(*lines):
    (found,) = parse_ics(calendar(*event(*lines))).events
    return found


ZONE = [
    "BEGIN:VTIMEZONE",
    "TZID:Custom/Zone",
    "BEGIN:STANDARD",
    "DTSTART:19700101T000000",
    "TZOFFSETFROM:+0300",
    "TZOFFSETTO:+0300",
    "RRULE:FREQ=SECONDLY",
    "END:STANDARD",
    "END:VTIMEZONE",
]


def test_an_event_is_read():
    expected = Event(
        uid="1@example.org",
        summary="Stand-up, daily\nRoom; 2",
        start="2024-07-01T10:00:00+02:00",
        end="2024-07-01T10:15:00+02:00",
        all_day=False,
        tz="Europe/Berlin",
        location="Berlin",
        recurrence="FREQ=WEEKLY;BYDAY=MO,WE",
        problems=[],
    )

    found = only(
        "UID:1@example.org",
        "DTSTAMP:20240101T000000Z",
        r"SUMMARY:Stand-up\, daily\nRoo",
        r" m\; 2",
        "DTSTART;TZID=Europe/Berlin:20240701T100000",
        "DTEND;TZID=Europe/Berlin:20240701T101500",
        "LOCATION;LANGUAGE=de:Berlin",
        "RRULE:FREQ=WEEKLY;BYDAY=MO,WE",
        "ATTENDEE;CN=Someone:mailto:someone@example.org",
        "BEGIN:VALARM",
        "TRIGGER:-PT15M",
        "SUMMARY:not this one",
        "END:VALARM",
    )

    assert expected == found


@pytest.mark.parametrize(
    ("lines", "start", "end", "tz"),
    [
        (["DTSTART:20240701T100000Z"], "2024-07-01T10:00:00+00:00", "2024-07-01T10:00:00+00:00", "UTC"),
        (["DTSTART:20240701T100000"], "2024-07-01T10:00:00", "2024-07-01T10:00:00", None),
        (
            ["DTSTART:20240701T100000Z", "DURATION:PT1H30M"],
            "2024-07-01T10:00:00+00:00",
            "2024-07-01T11:30:00+00:00",
            "UTC",
        ),
        (
            ["DTSTART;TZID=W. Europe Standard Time:20240701T100000"],
            "2024-07-01T10:00:00+02:00",
            "2024-07-01T10:00:00+02:00",
            "Europe/Berlin",
        ),
        (
            ["DTSTART;TZID=/freeassociation.sourceforge.net/Europe/Berlin:20240701T100000"],
            "2024-07-01T10:00:00+02:00",
            "2024-07-01T10:00:00+02:00",
            "Europe/Berlin",
        ),
        (
            ['DTSTART;TZID="America/New_York":20240701T100000', "DTEND;TZID=Europe/Berlin:20240701T200000"],
            "2024-07-01T10:00:00-04:00",
            "2024-07-01T20:00:00+02:00",
            "America/New_York",
        ),
        (
            ["DTSTART;TZID=Europe/Berlin:20240330T120000", "DURATION:P1D"],
            "2024-03-30T12:00:00+01:00",
            "2024-03-31T12:00:00+02:00",
            "Europe/Berlin",
        ),
        (
            ["DTSTART;TZID=Europe/Berlin:20240330T120000", "DURATION:PT24H"],
            "2024-03-30T12:00:00+01:00",
            "2024-03-31T13:00:00+02:00",
            "Europe/Berlin",
        ),
        (
            ["DTSTART;TZID=Custom/Zone:20240701T100000", "DURATION:P1W"],
            "2024-07-01T10:00:00",
            "2024-07-08T10:00:00",
            "Custom/Zone",
        ),
    ],
)
def test_times_carry_their_zone(lines, start, end, tz):
    found = only(*lines)

    assert (start, end, tz, False, []) == (found.start, found.end, found.tz, found.all_day, found.problems)


@pytest.mark.parametrize(
    ("local", "start"),
    [("20240331T023000", "2024-03-31T03:30:00+02:00"), ("20241027T023000", "2024-10-27T02:30:00+02:00")],
)
def test_clock_changes_are_resolved_as_the_standard_says(local, start):
    """RFC 5545: the first of two equal times, and the offset from before a gap."""
    assert start == only(f"DTSTART;TZID=Europe/Berlin:{local}").start


@pytest.mark.parametrize(
    ("lines", "end"),
    [
        ([], "2024-07-02"),
        (["DTEND;VALUE=DATE:20240704"], "2024-07-04"),
        (["DURATION:P2D"], "2024-07-03"),
    ],
)
def test_an_all_day_event_ends_before_the_day_it_names(lines, end):
    found = only("DTSTART;VALUE=DATE:20240701", *lines)

    assert ("2024-07-01", end, True, None) == (found.start, found.end, found.all_day, found.tz)


def test_the_number_of_events_is_limited_and_said():
    text = calendar(*(line for n in range(60) for line in event(f"UID:{n}", "DTSTART:20240701")))

    default, few, all_of_them = parse_ics(text), parse_ics(text, limit=2), parse_ics(text, limit=60)

    assert (len(default.events), default.total, default.truncated) == (50, 60, True)
    assert ([found.uid for found in few.events], few.truncated) == (["0", "1"], True)
    assert (len(all_of_them.events), all_of_them.truncated) == (60, False)


def test_several_calendars_are_one_list():
    text = calendar(*event("UID:1")) + calendar(*event("UID:2"))

    assert [found.uid for found in parse_ics(text).events] == ["1", "2"]


@pytest.mark.parametrize("text", ["\ufeff" + calendar(), calendar().lower(), calendar().replace("\r\n", "\n")])
def test_files_differ_in_details(text):
    assert parse_ics(text).total == 0


def test_only_events_of_the_calendar_count():
    text = calendar("BEGIN:VTODO", "UID:todo", "END:VTODO", "BEGIN:X-A", *event("UID:inner"), "END:X-A")

    assert parse_ics(text).total == 0


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("DTSTART:garbage", "cannot read DTSTART 'garbage'"),
        ("DTSTART:20241301", "cannot read DTSTART '20241301'"),
        ("DTSTART:P1D", "cannot read DTSTART 'P1D'"),
        ("DTSTART;TZID=A,B:20240701T100000", "cannot read DTSTART '20240701T100000'"),
        ("DTSTART;TZID=Pacific/Apia:00010101T000000", "cannot read DTSTART '00010101T000000'"),
        ("SUMMARY:no start", "DTSTART is missing"),
    ],
)
def test_a_start_that_cannot_be_read_is_told(line, problem):
    found = only(line)

    assert (None, None, [problem]) == (found.start, found.end, found.problems)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("DTEND:never", "cannot read DTEND 'never'"),
        ("DURATION:-PT1H", "cannot read DURATION '-PT1H'"),
        ("DURATION:P999999999D", "cannot read DURATION 'P999999999D'"),
        ("DURATION:P" + "9" * 5000 + "D", "cannot read DURATION 'P" + "9" * 79 + "'"),
    ],
)
def test_an_end_that_cannot_be_read_is_not_guessed(line, problem):
    found = only("DTSTART:20240701T100000Z", line)

    assert (None, [problem]) == (found.end, found.problems)


def test_other_problems_are_told_and_the_rest_is_read():
    found = only(
        "DTSTART:20240701T100000Z",
        "DTSTART:20240702T100000Z",
        "RRULE:garbage",
        "SUMMARY;;;:x",
        "this line was torn off",
        "LOCATION:Here",
    )

    assert (found.start, found.location) == ("2024-07-01T10:00:00+00:00", "Here")
    assert found.problems == [
        "DTSTART appears more than once; the first is used",
        "cannot read the line 'SUMMARY;;;:x'",
        "cannot read the line 'this line was torn off'",
        "cannot read RRULE 'garbage'",
    ]


def test_the_number_of_problems_is_limited():
    assert len(only(*["torn"] * 100).problems) == 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected an iCalendar file, which starts with BEGIN:VCALENDAR"),
        ("hello", "expected BEGIN:VCALENDAR, got 'hello' on content line 1"),
        ("<html></html>\n", "expected BEGIN:VCALENDAR"),
        ("\x00\x01\x02", "expected BEGIN:VCALENDAR"),
        ("\ud800", "expected BEGIN:VCALENDAR"),
        ("BEGIN:VEVENT\nEND:VEVENT\n", "expected BEGIN:VCALENDAR, got BEGIN:VEVENT"),
        ("BEGIN:VCALENDAR\nBEGIN:VEVENT\n", "VEVENT is not closed; the file may have been cut off"),
        ("END:VCALENDAR\n", "has END:VCALENDAR outside of everything"),
        ("BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR\n", "content line 3 has END:VCALENDAR inside VEVENT"),
        ("BEGIN:VCALENDAR\n" * 9 + "END:VCALENDAR\n" * 9, "content line 9 is nested deeper than 8 levels"),
        (calendar("X-LONG:" + "a" * 65_530), "content line 3 has 65,537 characters; at most 65,536"),
        (calendar("X-LONG:" + "\r\n aa" * 32_765), "content line 3 has 65,537 characters; at most 65,536"),
        ("a" * 262_145, "262,145 bytes; at most 262,144 are allowed"),
        ("\N{EURO SIGN}" * 90_000, "270,000 bytes; at most 262,144 are allowed"),
    ],
    ids=lambda value: value[:20].strip() if len(value) < 300 else "long",
)
def test_what_is_no_calendar_is_refused(text, message):
    with pytest.raises(ValueError, match=r"^text: ") as caught:
        parse_ics(text)

    assert message in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("limit", [0, -1, 501, True, 1.5, None])
def test_the_limit_has_limits(limit):
    with pytest.raises(ValueError, match=r"^limit: expected a whole number from 1 to 500"):
        parse_ics(calendar(), limit=limit)


def test_a_path_is_not_opened(tmp_path):
    """icalendar alone opens a text without line breaks as a file."""
    path = tmp_path / "calendar.ics"
    path.write_text(calendar(*event("UID:1")))

    with pytest.raises(ValueError, match="expected BEGIN:VCALENDAR"):
        parse_ics(str(path))


@pytest.mark.parametrize("name", ["America", "../../etc/passwd", "/etc/passwd", "a" * 5000, "\x00", "."])
def test_a_zone_is_not_a_path(name):
    """icalendar alone raises an OSError for some of these, since it opens them."""
    found = only(f"DTSTART;TZID={name}:20240701T100000")

    assert found.start in {"2024-07-01T10:00:00", None}


def test_a_zone_of_one_file_does_not_reach_the_next():
    """icalendar alone keeps the zones that a file defines, for the whole process."""
    using = event("DTSTART;TZID=Custom/Zone:20240701T100000")

    first, second = parse_ics(calendar(*ZONE, *using)), parse_ics(calendar(*using))

    assert first == second
    assert first.events[0].start == "2024-07-01T10:00:00"


HOSTILE = {
    "deep": "'BEGIN:VEVENT\\n' * 9000",
    "deep and closed": "'BEGIN:A\\n' * 9000 + 'END:A\\n' * 9000",
    "garbage": "'\\x00\\xff;:\"\\\\' * 40000",
    "one huge line": "'A' * 262000",
    "one huge event line": "cal('SUMMARY:' + 'a' * 261000)",
    "quotes": "cal('SUMMARY;X=' + chr(34) * 60000 + ':x')",
    "parameters": "cal('SUMMARY;' + 'A=B;' * 16000 + ':x')",
    "commas": "cal('SUMMARY;A=' + ',' * 60000 + ':x')",
    "backslashes": "cal('SUMMARY:' + chr(92) * 60000)",
    "folds": "cal('SUMMARY:' + '\\n ' * 120000)",
    "blank lines": "'\\n' * 262000",
    "many events": "cal('X:1\\nEND:VEVENT\\nBEGIN:VEVENT\\n' * 9000)",
    "many lines": "cal('DTSTART:1\\n' * 26000)",
    "a rule of rules": "cal('DTSTART:20240101\\nRRULE:' + 'FREQ=DAILY;' * 5500)",
    "an endless rule": "cal('DTSTART:20240101\\nRRULE:FREQ=SECONDLY')",
    "an endless zone": "'BEGIN:VCALENDAR\\n' + ZONE + cal('DTSTART;TZID=Z:20240101T000000')[16:]",
    "digits": "cal('DURATION:P' + '9' * 60000 + 'D')",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_answered_at_once(run_python, text):
    code = (
        "from agentos_pack_datetime.ics import parse_ics\n"
        "cal = lambda body: f'BEGIN:VCALENDAR\\nBEGIN:VEVENT\\n{body}\\nEND:VEVENT\\nEND:VCALENDAR\\n'\n"
        "ZONE = ('BEGIN:VTIMEZONE\\nTZID:Z\\nBEGIN:STANDARD\\nDTSTART:00010101T000000\\n'\n"
        "    'TZOFFSETFROM:+0000\\nTZOFFSETTO:+0100\\nRRULE:FREQ=SECONDLY;BYSECOND=61\\n'\n"
        "    'END:STANDARD\\nEND:VTIMEZONE\\n')\n"
        "try:\n"
        f"    print('read', parse_ics({text}, limit=500).total)\n"
        "except ValueError as exc:\n"
        "    print('refused', len(str(exc)) < 300, str(exc).startswith('text: '))"
    )

    assert run_python(code).split()[0:2] in (["refused", "True"], ["read", "1"], ["read", "9001"])


names = st.sampled_from([*sorted(ics._READ), "X-OTHER"])
values = st.text(max_size=30) | st.sampled_from(["20240101", "20240101T000000Z", "P1D", "FREQ=DAILY", "PT5M"])
parameters = st.sampled_from(["", ";TZID=Europe/Berlin", ";VALUE=DATE", ";TZID=America", ';X="a:b"', ";", ";TZID="])
lines = st.builds(lambda name, more, value: f"{name}{more}:{value}", names, parameters, values)


@settings(deadline=None)
@given(st.lists(lines, max_size=8))
def test_any_event_is_read_or_refused(content):
    with contextlib.suppress(ValueError):
        parse_ics(calendar(*event(*content)))


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(ValueError):
        parse_ics(text)
