"""What the tools that change something would do, for whoever is asked to approve it.

A rehearsal runs the very statements of the change and keeps nothing of them, so that a preview can't promise what the
change then refuses.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from agentos_pack_incidents import records
from agentos_pack_incidents.values import Actor, Draft, IncidentError, Preview, Question

_SIMILAR = 3


def of_open(db: sqlite3.Connection, draft: Draft, actor: Actor) -> Preview:
    """Say what opening an incident would do, and which unresolved ones may be the same."""
    added = records.add(db, draft, actor)
    details = [f"service: {draft.service}"] * bool(draft.service) + [f"summary: {draft.summary}"] * bool(draft.summary)
    asked = Question(status="unresolved", text=draft.service or draft.title, limit=_SIMILAR + 1)
    similar = [line for line in records.search(db, asked).incidents if line.id != added.id]
    details += [f"may be the same: {line.id} {line.title!r} ({line.severity}, {line.status})" for line in similar]
    return Preview(would=f"open a new incident of severity {draft.severity}: {draft.title!r}", details=details)


def of_update(
    db: sqlite3.Connection, id: int, version: int, fields: Mapping[str, str], note: str, actor: Actor
) -> Preview:
    """Say what updating an incident would change."""
    named = _incident_label(db, id)
    changed = records.update(db, id, version, fields, note, actor)
    verb = "change" if changed.changes else "add a note to"
    details = [*changed.changes, *([f"note: {note}"] if note else [])]
    return Preview(would=f"{verb} {named}; it will be at version {changed.version}", details=details)


def of_resolve(db: sqlite3.Connection, id: int, version: int, resolution: str, actor: Actor) -> Preview:
    """Say what resolving an incident would end."""
    named, row = _incident_label(db, id), records.find(db, id)
    changed = records.resolve(db, id, version, resolution, actor)
    lasted = _duration(datetime.fromisoformat(actor.at) - datetime.fromisoformat(row["opened_at"]))
    details = [*changed.changes, f"it was open for {lasted}", f"resolution: {resolution}"]
    return Preview(would=f"resolve {named}; it will be at version {changed.version}", details=details)


def of_purge(db: sqlite3.Connection, targets: Sequence[tuple[int, int]]) -> Preview:
    """Say what purging would delete, and what it would leave."""
    gone, kept = [], []
    for id, version in targets:
        try:
            gone.append(records.purge(db, id, version))
        except IncidentError as error:
            kept.append(f"stays: {error}")
    entries = sum(one.timeline_total for one in gone)
    lost = [f"lost: {one.id} {one.title!r} with {_count(one.timeline_total, 'timeline entry')}" for one in gone]
    would = f"delete {_count(len(gone), 'incident')} with {_count(entries, 'timeline entry')}; they can't be had back"
    return Preview(would=would if gone else "delete nothing", details=[*lost, *kept])


def _incident_label(db: sqlite3.Connection, id: int) -> str:
    row = records.find(db, id)
    return f"incident {id} {row['title']!r} ({row['severity']}, {row['status']}, version {row['version']})"


def _count(number: int, word: str) -> str:
    if number == 1:
        return f"1 {word}"
    return f"{number} {word[:-1]}ies" if word.endswith("y") else f"{number} {word}s"


def _duration(time: timedelta) -> str:
    minutes = max(0, int(time.total_seconds() // 60))
    hours, days = minutes // 60, minutes // 1440
    if days:
        return f"{days} d {hours % 24} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"
