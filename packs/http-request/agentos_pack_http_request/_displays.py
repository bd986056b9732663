"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "http_get": Display("text", title="{args.url}", fields=("status", "media_type", "body")),
    "http_request": Display("text", title="{args.method} {args.url}", fields=("status", "media_type", "body")),
}
