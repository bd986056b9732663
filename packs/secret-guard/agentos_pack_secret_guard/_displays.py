"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "scan_secrets": Display("table", title="Secrets in a text", fields=("[].format", "[].start", "[].end")),
}
