"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "zip_create": Display(
        "table",
        title="Pack {args.name}",
        fields=("path", "files", "folders", "bytes", "replaced", "left_out[].path", "left_out[].reason"),
    ),
    "zip_extract": Display(
        "table",
        title="Unpack {args.path}",
        fields=("destination", "files", "folders", "bytes", "overwritten_count", "skipped[].name", "skipped[].reason"),
    ),
    "zip_list": Display(
        "table",
        title="What is in {args.path}",
        fields=(
            *("members[].name", "members[].kind", "members[].size", "members[].modified", "members[].problem"),
            *("total", "total_size", "stopped"),
        ),
    ),
}
