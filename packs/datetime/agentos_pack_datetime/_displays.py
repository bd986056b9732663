"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "now": Display("table", title="Now in {output.tz}", fields=("time", "weekday", "tz", "abbreviation", "utc")),
    "convert_time": Display(
        "table",
        title="{args.time} in {args.to_tz}",
        fields=("to_time", "to_tz", "weekday", "day_shift", "from_time", "from_tz", "utc"),
    ),
    "date_math": Display(
        "table",
        title="From {args.start}",
        fields=(
            *("result", "weekday", "tz", "difference.total_days", "difference.years", "difference.months"),
            *("difference.days", "difference.hours", "difference.minutes", "difference.seconds"),
        ),
    ),
    "parse_ics": Display(
        "table",
        title="{output.total} events",
        fields=(
            *("events[].summary", "events[].start", "events[].end", "events[].location", "events[].recurrence"),
            *("events[].problems[]", "truncated"),
        ),
    ),
}
