"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "email_send": Display(
        "table",
        title="Mail to {args.to}: {args.subject}",
        fields=("to[]", "subject", "characters", "message_id"),
    ),
    "email_list": Display(
        "table",
        title="The newest mails",
        fields=(
            *("mails[].date", "mails[].sender", "mails[].subject", "mails[].unread", "mails[].verified"),
            *("mails[].id", "total"),
        ),
    ),
    "email_read": Display("text", title="{output.subject}", fields=("sender", "to", "date", "text")),
    "email_search": Display(
        "table",
        title="Mails that fit",
        fields=(
            *("mails[].date", "mails[].sender", "mails[].subject", "mails[].unread", "mails[].verified"),
            *("mails[].id", "total"),
        ),
    ),
}
