"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "web_search": Display(
        "table",
        title="{args.query}",
        fields=("results[].title", "results[].url", "results[].snippet", "results[].published"),
    ),
    "search_providers": Display(
        "table",
        title="Providers of searches",
        fields=("providers[].name", "providers[].state", "providers[].detail"),
    ),
}
