"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "incident_list": Display(
        "table",
        title="Incidents",
        fields=(
            *("incidents[].id", "incidents[].severity", "incidents[].status", "incidents[].title"),
            *("incidents[].service", "incidents[].opened_at", "total"),
        ),
    ),
    "incident_get": Display(
        "table",
        title="Incident {args.id}: {output.title}",
        fields=(
            *("service", "severity", "status", "summary", "opened_at", "opened_by", "resolution", "timeline[].at"),
            *("timeline[].by", "timeline[].kind", "timeline[].text"),
        ),
    ),
    "incident_open": Display(
        "table",
        title="Open an incident: {args.title}",
        fields=("id", "severity", "status", "title", "changes[]"),
    ),
    "incident_update": Display(
        "table",
        title="Change incident {args.id}",
        fields=("id", "severity", "status", "title"),
    ),
    "incident_resolve": Display("table", title="Resolve incident {args.id}", fields=("id", "status", "title")),
    "incident_purge": Display(
        "table",
        title="Purge incidents",
        fields=(
            *("succeeded", "failed", "results[].success", "results[].output.id", "results[].output.title"),
            *("results[].error.message",),
        ),
    ),
}
