"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "calculate": Display("text", title="{args.expression}", fields=("text",)),
    "convert_units": Display("text", title="{args.value} {args.from} in {args.to}", fields=("text",)),
    "statistics": Display(
        "table",
        title="Statistics",
        fields=(
            *("count", "sum", "mean", "median", "min", "max", "population_stdev", "sample_stdev", "first_quartile"),
            *("third_quartile",),
        ),
    ),
}
