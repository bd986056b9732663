"""The tools. What each may do is said once, where it is made: effect, access, dry run, and when to ask."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import attrs
from agentos_pack_common import plain
from agentos_pack_common.sqlite import Database

from agentos import Batch, InterventionRule, Schema, Tool, ToolContext, ToolResult, Toolset, tool
from agentos_pack_incidents import previews, records
from agentos_pack_incidents.values import (
    SEVERITIES,
    Actor,
    Asked,
    Changed,
    Draft,
    Incident,
    IncidentError,
    Lines,
    Preview,
    Question,
    Severity,
)

MAX_LINE = 200
MAX_PROSE = 4_000
MAX_PURGE = 50
_LARGEST = 2**53 - 1
_TIMEOUT = 20
_PROMPT = """\
Incidents: look for one with incident_list before you open another for the same trouble. Read it with incident_get \
before you change it: every change names the version that you read, and is refused if somebody changed it since. To \
end an incident use incident_resolve, which needs a resolution; incident_update changes anything else, and reopens. \
incident_purge destroys records and is not a way to close incidents."""


@attrs.frozen
class Options:
    """What an operator says of the pack."""

    path: Path | None = None


_Id = Annotated[int, "The incident's number, as incident_list shows it", Schema(minimum=1, maximum=_LARGEST)]
_Version = Annotated[
    int,
    "The version that you read; if the incident is at another one, nothing is done",
    Schema(minimum=1, maximum=_LARGEST),
]
_Severity = Annotated[Severity, "critical: an outage for many; high: for some; medium: a nuisance; low: none notices"]
_Working = Literal["open", "investigating", "monitoring"]


@attrs.frozen
class Target:
    """One incident to purge."""

    id: _Id
    version: _Version


@attrs.frozen
class IncidentTools:
    """The tools on one book of incidents."""

    book: Database

    # -- reading -----------------------------------------------------------------------------------------------

    async def incident_list(
        self,
        status: Annotated[Asked, "Which to list; unresolved: all but the resolved ones"] = "unresolved",
        severity: Annotated[Severity | None, "Only those of this severity"] = None,
        text: Annotated[str, "Only those with this in title, service or summary", Schema(maxLength=MAX_LINE)] = "",
        before: Annotated[
            int | None,
            "Only incidents with a smaller number: the last one of the page before",
            Schema(minimum=1, maximum=_LARGEST),
        ] = None,
        limit: Annotated[int, "How many to list at most", Schema(minimum=1, maximum=100)] = 20,
    ) -> Lines:
        """List incidents, the newest first, each in one line with its number, version, severity and status.

        Use it to find an incident or to see whether there is one already. For timeline, summary and resolution use
        incident_get. `text` is searched as it is, without wildcards; case does not matter for A to Z.
        """
        question = Question(status=status, severity=severity, text=plain(text), before=before, limit=limit)
        return await self.book.read(lambda db: records.search(db, question))

    async def incident_get(
        self,
        id: _Id,
        entries: Annotated[int, "How many timeline entries to show, from the end", Schema(minimum=1, maximum=200)] = 50,
    ) -> Incident:
        """Read one incident whole: summary, severity, status, resolution, version and the end of its timeline.

        Use it before you change an incident, since a change has to name the version that it was made for.
        """
        return await self.book.read(lambda db: records.get(db, id, entries))

    # -- changing ----------------------------------------------------------------------------------------------

    async def incident_open(
        self,
        title: Annotated[str, "What is wrong, in one line", Schema(minLength=1, maxLength=MAX_LINE)],
        severity: _Severity,
        service: Annotated[str, "What it is wrong with, such as billing", Schema(maxLength=MAX_LINE)] = "",
        summary: Annotated[
            str, "What is known: since when, who notices, what was seen", Schema(maxLength=MAX_PROSE)
        ] = "",
        *,
        context: ToolContext,
    ) -> Changed:
        """Open a new incident, with status open and version 1.

        Look with incident_list first: more about a known incident goes into its timeline, by incident_update.
        """
        draft, actor = _draft(title, severity, service, summary), _actor(context)
        return await self.book.write(lambda db: records.add(db, draft, actor))

    async def incident_update(
        self,
        id: _Id,
        version: _Version,
        severity: Annotated[Severity | None, "The new severity"] = None,
        status: Annotated[_Working | None, "The new status; of a resolved incident it reopens it"] = None,
        title: Annotated[str | None, "The new title, in one line", Schema(minLength=1, maxLength=MAX_LINE)] = None,
        note: Annotated[str, "What happened or was found out, for the timeline", Schema(maxLength=MAX_PROSE)] = "",
        *,
        context: ToolContext,
    ) -> Changed:
        """Change an incident's severity, status or title, or add a note to its timeline; what is left out stays.

        Nothing is taken out of a timeline. It can't resolve: that is incident_resolve, which asks for a resolution.
        """
        fields, said, actor = _fields(severity, status, title), _prose(note), _actor(context)
        return await self.book.write(lambda db: records.update(db, id, version, fields, said, actor))

    async def incident_resolve(
        self,
        id: _Id,
        version: _Version,
        resolution: Annotated[str, "What the cause was and what ended it", Schema(minLength=1, maxLength=MAX_PROSE)],
        *,
        context: ToolContext,
    ) -> Changed:
        """End an incident: its status becomes resolved, and the resolution is kept with it.

        Use it once the trouble is over. A resolved incident stays readable, and incident_update can reopen it.
        """
        said, actor = _needed("resolution", _prose(resolution)), _actor(context)
        return await self.book.write(lambda db: records.resolve(db, id, version, said, actor))

    async def incident_purge(
        self,
        incidents: Annotated[
            list[Target], "Which to delete, each with the version that you read", Schema(minItems=1, maxItems=MAX_PURGE)
        ],
    ) -> ToolResult:
        """Delete resolved incidents with their timelines for good, for instance when their time of keeping is over.

        Each is deleted or not by itself; `results` says which. To close an incident use incident_resolve instead.
        """
        targets = _distinct([(one.id, one.version) for one in incidents])
        return Batch.of([await self._purge(id, version) for id, version in targets])

    async def _purge(self, id: int, version: int) -> ToolResult:
        try:
            gone = await self.book.write(lambda db: records.purge(db, id, version))
        except IncidentError as error:
            return ToolResult.fail(type(error).__name__, str(error))
        return ToolResult.ok(attrs.asdict(gone))

    # -- dry runs ----------------------------------------------------------------------------------------------

    async def preview_open(self, args: Mapping[str, Any], context: ToolContext) -> Preview:
        """Say what incident_open would do."""
        draft, actor = _draft(args["title"], args["severity"], args["service"], args["summary"]), _actor(context)
        return await self.book.rehearse(lambda db: previews.of_open(db, draft, actor))

    async def preview_update(self, args: Mapping[str, Any], context: ToolContext) -> Preview:
        """Say what incident_update would do."""
        fields = _fields(args["severity"], args["status"], args["title"])
        said, actor = _prose(args["note"]), _actor(context)
        return await self.book.rehearse(
            lambda db: previews.of_update(db, args["id"], args["version"], fields, said, actor)
        )

    async def preview_resolve(self, args: Mapping[str, Any], context: ToolContext) -> Preview:
        """Say what incident_resolve would do."""
        said, actor = _needed("resolution", _prose(args["resolution"])), _actor(context)
        return await self.book.rehearse(lambda db: previews.of_resolve(db, args["id"], args["version"], said, actor))

    async def preview_purge(self, args: Mapping[str, Any], context: ToolContext) -> Preview:  # noqa: ARG002 - a dry run
        """Say what incident_purge would do."""
        targets = _distinct([(one["id"], one["version"]) for one in args["incidents"]])
        return await self.book.rehearse(lambda db: previews.of_purge(db, targets))

    # -- when to ask -------------------------------------------------------------------------------------------

    async def asking(self, args: Mapping[str, Any], context: ToolContext) -> str | None:  # noqa: ARG002 - as agentos has it
        """Say `required` where an incident is critical, or would be: then a mode can't waive the question."""
        row = await self.book.read(lambda db: records.find(db, args["id"]))
        return "required" if "critical" in (row["severity"], args.get("severity")) else None


def create_tools(book: Database) -> Toolset:
    """Return the tools on *book*, under one prompt that tells them apart."""
    tools = IncidentTools(book)
    reads = _declared("read", "incidents:read", idempotent=True)
    opens = _declared(
        "mutate",
        "incidents:write",
        dry_run=tools.preview_open,
        intervention=[InterventionRule("required", {"$.severity": SEVERITIES[0]})],
    )
    updates = _declared("mutate", "incidents:write", dry_run=tools.preview_update, intervention=tools.asking)
    resolves = _declared("mutate", "incidents:write", dry_run=tools.preview_resolve, intervention=tools.asking)
    purges = _declared("destructive", "incidents:admin", dry_run=tools.preview_purge, output_schema=_BATCH)
    made = (
        reads(tools.incident_list),
        reads(tools.incident_get),
        opens(tools.incident_open),
        updates(tools.incident_update),
        resolves(tools.incident_resolve),
        purges(tools.incident_purge),
    )
    return Toolset("incidents", made, system_prompt=_PROMPT)


def _declared(effect: Any, access: str, **fields: Any) -> Callable[[Callable[..., Awaitable[Any]]], Tool]:
    return tool(effect=effect, required_access=access, timeout=_TIMEOUT, category="incidents", **fields)


_BATCH = {
    "type": "object",
    "properties": {
        "succeeded": {"type": "integer"},
        "failed": {"type": "integer"},
        "results": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "success": {"type": "boolean"},
                    "output": {
                        "type": ["object", "null"],
                        "properties": {
                            "id": {"type": "integer"},
                            "title": {"type": "string"},
                            "timeline_total": {"type": "integer"},
                        },
                        "additionalProperties": False,
                    },
                    "error": {
                        "type": "object",
                        "properties": {"type": {"type": "string"}, "message": {"type": "string"}},
                        "additionalProperties": False,
                    },
                },
                "required": ["success", "output"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["succeeded", "failed", "results"],
    "additionalProperties": False,
}


# -- arguments ---------------------------------------------------------------------------------------------------


def _actor(context: ToolContext) -> Actor:
    return Actor(by=context.principal.id, proposal=context.approved)


def _draft(title: str, severity: Severity, service: str, summary: str) -> Draft:
    return Draft(
        title=_needed("title", _line(title)), severity=severity, service=_line(service), summary=_prose(summary)
    )


def _fields(severity: str | None, status: str | None, title: str | None) -> dict[str, str]:
    named = None if title is None else _needed("title", _line(title))
    given = {"severity": severity, "status": status, "title": named}
    return {name: value for name, value in given.items() if value is not None}


def _distinct(targets: list[tuple[int, int]]) -> list[tuple[int, int]]:
    ids = [id for id, _ in targets]
    twice = sorted({id for id in ids if ids.count(id) > 1})
    if twice:
        raise IncidentError(f"incidents: {', '.join(map(str, twice))} named more than once; name each once")
    return targets


def _line(text: str) -> str:
    return " ".join(plain(text).split())


def _prose(text: str) -> str:
    return plain(text).strip()


def _needed(name: str, text: str) -> str:
    if not text:
        raise IncidentError(f"{name}: expected text that can be seen, got none; say it in words")
    return text
