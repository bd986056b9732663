"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "memory_save": Display(
        "table",
        title="Remember",
        fields=("id", "namespace", "created", "shared", "durable", "expires_at"),
    ),
    "memory_search": Display(
        "table",
        title="Memories of {args.query}",
        fields=("memories[].text", "memories[].namespace", "memories[].tags[]", "memories[].saved_at", "memories[].id"),
    ),
    "memory_forget": Display("table", title="Forget memories", fields=("count", "ids[]")),
}
