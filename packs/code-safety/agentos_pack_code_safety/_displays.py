"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "scan_code": Display(
        "table",
        title="What is dangerous in this code",
        fields=("[].severity", "[].rule", "[].reason"),
    ),
}
