"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "fetch_page": Display("markdown", title="{output.title}", fields=("text",)),
    "extract_links": Display(
        "table",
        title="Links of {args.url}",
        fields=("links[].text", "links[].url", "links[].same_site", "total"),
    ),
    "extract_pdf": Display(
        "table",
        title="{output.source}",
        fields=("title", "author", "page_count", "pages[].number", "pages[].text"),
    ),
}
