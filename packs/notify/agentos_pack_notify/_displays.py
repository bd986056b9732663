"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "notify_targets": Display("table", title="Whom messages can reach", fields=("targets[].name", "targets[].service")),
    "notify_send": Display(
        "table",
        title="Message to {args.target}: {args.title}",
        fields=("target", "title", "characters"),
    ),
    "notify_schedule": Display(
        "table",
        title="Message to {args.target} at {args.at}",
        fields=("id", "target", "title", "due", "state"),
    ),
    "notify_scheduled": Display(
        "table",
        title="Messages that wait",
        fields=(
            *("messages[].due", "messages[].target", "messages[].title", "messages[].state", "messages[].attempts"),
            *("messages[].reason", "messages[].id", "total"),
        ),
    ),
    "notify_cancel": Display(
        "table",
        title="Take back the message {args.id}",
        fields=("id", "target", "title", "due", "state"),
    ),
}
