"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "sql_schema": Display(
        "table",
        title="Tables",
        fields=("tables[].name", "tables[].kind", "tables[].columns[].name", "tables[].problem", "dialect"),
    ),
    "sql_query": Display("table", title="{args.sql}"),
}
