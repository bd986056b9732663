"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "giphy_search": Display(
        "table",
        title="Pictures for {args.query}",
        fields=(
            *("gifs[].title", "gifs[].url", "gifs[].page_url", "gifs[].rating", "gifs[].width", "gifs[].height"),
            *("total",),
        ),
    ),
}
