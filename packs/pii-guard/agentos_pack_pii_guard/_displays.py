"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "pii_scan": Display("table", title="Personal data", fields=("[].type", "[].start", "[].end")),
    "pii_redact": Display("text", title="Without personal data"),
}
