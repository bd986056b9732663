"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "slack_send": Display("table", title="Message to {args.channel}", fields=("channel", "messages", "characters")),
}
