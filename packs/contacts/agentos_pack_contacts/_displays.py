"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "contacts_search": Display(
        "table",
        title="Contacts for {args.query}",
        fields=(
            *("matches[].contact.name", "matches[].contact.email", "matches[].contact.phone"),
            *("matches[].contact.organisation", "matches[].contact.id", "truncated"),
        ),
    ),
    "contacts_get": Display(
        "table",
        title="{output.name}",
        fields=("name", "email", "phone", "organisation", "notes", "changed_at", "id"),
    ),
    "contacts_create": Display(
        "table",
        title="Add {args.name}",
        fields=("name", "email", "phone", "organisation", "notes", "id"),
    ),
    "contacts_update": Display(
        "table",
        title="Change the contact {args.id}",
        fields=("name", "email", "phone", "organisation", "notes", "id"),
    ),
    "contacts_delete": Display("table", title="Delete the contact {args.id}", fields=("name", "id")),
    "contacts_status": Display("table", title="The address book", fields=("bound", "contacts", "reason")),
}
