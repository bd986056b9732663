"""Making a lock of what is loaded."""

from collections.abc import Iterable

from agentos.access.lock import Lock, LockedPack, OriginKind
from agentos.base.canonical import digest
from agentos.loading.pack_files import files_of, hash_files
from agentos.model.kind import kind_of
from agentos.model.manifest import PackEntry
from agentos.model.report import PackRecord
from agentos.stacks.entry import Entry


def lock_of(loaded: Iterable[tuple[PackRecord, PackEntry | None]], entries: Iterable[Entry]) -> Lock:
    """Return a lock of the packs that are *loaded*, with the definitions of what they have on stacks (*entries*)."""
    standing = list(entries)
    return Lock([_locked(record, entry, standing) for record, entry in loaded])


def _locked(record: PackRecord, entry: PackEntry | None, standing: Iterable[Entry]) -> LockedPack:
    found = None if entry is None else files_of(entry)
    tools = {}
    for one in standing:
        definition = kind_of(one.kind).definition(one.payload) if one.source.pack == record.name else None
        if definition is not None:
            tools[one.id] = digest(definition)
    return LockedPack(
        key=record.key,
        name=record.name,
        version=record.version if found is None else found.version or record.version,
        origin_kind=_origin(entry),
        files={} if found is None else hash_files(found),
        tools=tools,
    )


def _origin(entry: PackEntry | None) -> OriginKind:
    if entry is not None and entry.module is not None:
        return "module"
    return "package" if entry is not None and entry.package is not None else "factory"
