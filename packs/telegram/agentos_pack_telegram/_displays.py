"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "telegram_send": Display("table", title="Message to {args.chat}", fields=("chat", "messages", "characters")),
}
