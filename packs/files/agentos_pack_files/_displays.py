"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "read_file": Display("text", title="{args.path}", fields=("text",)),
    "list_dir": Display(
        "table",
        title="{output.path}",
        fields=("entries[].path", "entries[].kind", "entries[].size", "entries[].modified", "stopped", "truncated"),
    ),
    "search_files": Display(
        "table",
        title="Files for {args.query}",
        fields=("matches[].path", "matches[].kind", "matches[].size", "matches[].modified", "searched", "stopped"),
    ),
    "grep_files": Display(
        "table",
        title="{args.pattern}",
        fields=("matches[].path", "matches[].line", "matches[].text", "files_searched", "stopped"),
    ),
    "write_file": Display("diff", title="Write {args.path}", fields=("diff",)),
    "edit_file": Display("diff", title="Edit {args.path}", fields=("diff",)),
    "move_file": Display(
        "table",
        title="Move {args.source} to {args.destination}",
        fields=("source", "destination", "kind", "replaced", "applied"),
    ),
    "delete_file": Display(
        "table",
        title="Delete {args.path}",
        fields=("path", "kind", "size", "modified", "sha256", "applied"),
    ),
}
