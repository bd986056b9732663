"""Grants: what a person allowed or forbade in advance, so that nobody is asked again."""

import asyncio
import functools
import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

import attrs

from agentos.access.audit import Audit, Link
from agentos.access.shared_runs import SharedRun
from agentos.base.canonical import canonical
from agentos.base.foreign import to_the_end
from agentos.errors import AgentOSError, StoreError
from agentos.model.field_checks import fault_of_name
from agentos.model.principal import Principal
from agentos.model.tool_pattern import ToolPattern
from agentos.rules.intervention import ArgumentPattern
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.store import Store
from agentos.store.rows import PlainSql, changes_one, fetch_one
from agentos.tools.ready import ReadyTool
from agentos.tools.tool import Tool

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

Decided = Literal["once", "session", "always", "never"]
DECISIONS = ("once", "session", "always", "never")
_LIMIT = 10_000
_FRESH = 0.2
"""For how many seconds a host trusts what it read, before it looks again whether another host added a grant."""
_PATIENCE = 1.0
"""How long a call waits for that look; what was known counts for it then."""
_RESPITE = 5.0
"""After how many seconds a store that did not answer is looked at again for the sake of a read."""

_pattern_of = functools.lru_cache(maxsize=_LIMIT)(ToolPattern)


class GrantError(AgentOSError, ValueError):
    """A grant that can't be made."""


@attrs.frozen(kw_only=True)
class Grant:
    """What a person decided about calls of one tool, before they are made.

    `tool` is the fully-qualified id; for `never` it may be a plain name, which means every tool of that name, or a
    pattern such as `files:*`. One that allows is tied to the definition that the tool had then: when that changes, it
    counts no more. `principal` None is everybody. `session` is the id of one session.
    """

    id: str
    tool: str
    decision: Decided
    principal: str | None = None
    arguments: ArgumentPattern | None = None
    session: str | None = None
    definition: str | None = None
    created_at: datetime
    created_by: str | None = None

    def __str__(self) -> str:
        scope = ["by everybody" if self.principal is None else f"by {self.principal}"]
        if self.arguments is not None:
            scope.append(f"where {self.arguments}")
        if self.session is not None:
            scope.append(f"in session {self.session}")
        return f"grant {self.id}: {self.decision} {self.tool} {' '.join(scope)}"

    def fits(self, prepared: ReadyTool, principal: str, session: str | None, arguments: Mapping[str, Any]) -> bool:
        """Tell whether this is about that call. Forbidding fits widely, allowing narrowly."""
        forbids = self.decision == "never"
        if not (self.names(prepared.tool, prepared.qualified_id) if forbids else self.tool == prepared.qualified_id):
            return False
        if self.principal not in (None, principal) or (self.session is not None and self.session != session):
            return False
        if not forbids and self.definition != prepared.definition:
            return False
        return self.arguments is None or self.arguments.matches(arguments, widely=forbids)

    def names(self, tool: Tool, qualified_id: str) -> bool:
        """Tell whether this is about a tool at all, where it forbids: by id, name, alias or pattern."""
        return _pattern_of(self.tool).fits(tool, qualified_id)

    @property
    def bars(self) -> bool:
        """Tell whether this forbids every call of what it names, in every session."""
        return self.decision == "never" and self.session is None and not (self.arguments and self.arguments.match)


class Grants:
    """Adds, lists and revokes grants, and finds those that are about a call."""

    def __init__(
        self,
        store: Store,
        audit: Audit,
        *,
        find: Callable[[str], ReadyTool | None],
        masker: Masker,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._audit = audit
        self._masker = masker
        self._find = find
        self._clock = clock
        self._logger = MaskingLogger("agentos.access", masker)
        self._known: dict[str, Grant] = {}
        self._rows: list[dict[str, Any]] = []
        self._barring: tuple[int, tuple[Grant, ...]] = (-1, ())
        self._look: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._shared_read = SharedRun(self._refresh)
        self.version = 0
        """Goes up whenever what is granted changes."""
        self.fresh_until = 0.0
        """Until when, by the monotonic clock, what is known counts as what is granted."""

    # -- for people --------------------------------------------------------------------------------------------

    async def add(
        self,
        tool: str,
        decision: Decided,
        *,
        principal: Principal | str | None = None,
        arguments: Mapping[str, str] | ArgumentPattern | None = None,
        session: Mapping[str, Any] | str | None = None,
        by: Principal | str | None = None,
    ) -> Grant:
        """Decide in advance about calls of *tool*: allow them once, for a session, always, or never.

        No grant makes a destructive call, or one that its tool wants asked always, run unasked.
        """
        qualified, definition = self._tied(tool, decision)
        pattern = _pattern(arguments)
        if pattern is not None and self._masker.mask_data(pattern.as_json()) != pattern.as_json():
            raise GrantError("arguments: the pattern holds a secret, and grants are written down; leave it out")
        grant = Grant(
            id=uuid.uuid4().hex,
            tool=qualified,
            decision=decision,
            principal=_named("principal", principal),
            arguments=pattern,
            session=_session(session, decision, self._masker),
            definition=definition,
            created_at=datetime.fromtimestamp(self._clock(), UTC),
            created_by=_named("by", by),
        )
        if len(self._known) >= _LIMIT:
            raise GrantError(f"there are {_LIMIT} grants already; revoke some first")
        await to_the_end(self._add(grant))
        return grant

    async def _add(self, grant: Grant) -> None:
        async with self._turn:  # a reading that began before must not end after
            await self._write(grant)
            self._known[grant.id] = grant
            self.version += 1

    def _tied(self, tool: str, decision: str) -> tuple[str, str | None]:
        if decision not in DECISIONS:
            raise GrantError(f"decision: expected one of {', '.join(DECISIONS)}, got {decision!r}")
        if fault := fault_of_name(tool):
            raise GrantError(f"tool: {fault}")
        if decision == "never":
            return tool, None
        prepared = self._find(tool)
        if prepared is None and any(sign in tool for sign in "*?["):
            raise GrantError(
                f"tool: a grant that allows is about one tool, and {tool!r} is a pattern; add one for each tool. "
                "Only `never` takes a pattern"
            )
        if prepared is None:
            raise GrantError(
                f"tool: there is no tool called {tool!r} now; an allowing grant is tied to a definition, "
                "so load its pack first"
            )
        return prepared.qualified_id, prepared.definition

    async def _write(self, grant: Grant) -> None:
        from agentos.store import schema

        await self._store.open()
        row = {**_row(grant), "state": "active", "ended_at": None}
        row["seal"], link = self._store.seal(_sealed_text(row)), self._audit.link("grant", **_facts(grant))

        def insert(connection: "Connection") -> None:
            connection.execute(schema.grants.insert(), row)
            self._audit.extend(connection, link)

        await self._audit.write(insert)

    async def list(self, principal: Principal | str | None = None) -> list[Grant]:
        """Return the grants in force, oldest first; with *principal*, those that are about it."""
        who = _named("principal", principal)
        await self.refresh()
        return [one for one in self._known.values() if who is None or one.principal in (None, who)]

    async def revoke(self, id: str, by: Principal | str | None = None) -> bool:
        """Take a grant back; False if there is none of that id in force."""
        who = _named("by", by)
        return is_text(id) and await to_the_end(self._revoke(id, who))

    async def _revoke(self, id: str, by: str | None) -> bool:
        async with self._turn:
            await self._store.open()
            ended = await self._end(id, "revoked", self._audit.link("grant:revoked", grant=id, by=by))
            if ended:
                self._known.pop(id, None)
                self.version += 1
        return ended

    # -- for the gate ------------------------------------------------------------------------------------------

    def denying(
        self, prepared: ReadyTool, principal: str, session: str | None, arguments: Mapping[str, Any]
    ) -> Grant | None:
        """Return a `never` grant that is about the call."""
        return self._first(("never",), prepared, principal, session, arguments)

    def allowing(
        self, prepared: ReadyTool, principal: str, session: str | None, arguments: Mapping[str, Any]
    ) -> Grant | None:
        """Return a grant that allows the call; one that lasts before one that is used up."""
        return self._first(("always", "session"), prepared, principal, session, arguments) or self._first(
            ("once",), prepared, principal, session, arguments
        )

    def _first(
        self,
        decisions: Iterable[str],
        prepared: ReadyTool,
        principal: str,
        session: str | None,
        arguments: Mapping[str, Any],
    ) -> Grant | None:
        if not self._known:
            return None
        fitting = (one for one in self._known.values() if one.decision in decisions)
        return next((one for one in fitting if one.fits(prepared, principal, session, arguments)), None)

    def mentions(self, prepared: ReadyTool) -> bool:
        """Tell whether a grant that forbids is about this tool at all."""
        return any(
            one.decision == "never" and one.names(prepared.tool, prepared.qualified_id) for one in self._known.values()
        )

    def barring(self, principal: str | None) -> tuple[Grant, ...]:
        """Return the grants that forbid tools whatever the call, to *principal* or (None) to everybody."""
        version, barring = self._barring
        if version != self.version:
            barring = tuple(one for one in self._known.values() if one.bars)
            self._barring = (self.version, barring)
        return tuple(one for one in barring if one.principal in (None, principal)) if barring else ()

    async def take(self, grant: Grant, arguments: Mapping[str, Any], **facts: Any) -> bool:
        """Use a `once` grant up and record what for; False if somebody else, maybe elsewhere, was first."""
        async with self._turn:
            await self._store.open()
            link = self._audit.link("decision", arguments, **facts, grant=grant.id)
            taken = await self._end(grant.id, "used", link)
            self._known.pop(grant.id, None)
            self.version += 1
        return taken

    async def _end(self, id: str, state: str, link: Link) -> bool:
        """Let a grant be over, and record why; False if it is over already."""
        from agentos.store import schema

        grants, values = schema.grants, {"state": state, "ended_at": self._clock()}
        is_it = (grants.c.id == id, grants.c.state == "active")

        def end(connection: "Connection") -> bool:
            row = fetch_one(connection, grants.select().where(*is_it))
            if row is None or self._audit.is_closed(connection, id):
                return False
            # What somebody else wrote must not get a seal of ours.
            seal = self._store.seal(_sealed_text({**row, **values})) if self._is_sealed(row) else row["seal"]
            if not changes_one(connection, grants.update().where(*is_it).values(**values, seal=seal)):
                return False
            self._audit.extend(connection, link)
            return True

        return await self._audit.write(end)

    async def refresh(self) -> None:
        """Read again what is granted: other hosts may share the store. One reading does for all who wait for it."""
        await self._shared_read()

    async def _refresh(self) -> None:
        async with self._turn:
            await self._read_all()
            self.fresh_until = monotonic() + _FRESH

    async def look(self) -> None:
        """Do as `refresh` for a call that only reads: a store that fails, or takes long, does not stop it."""
        if self._look is None or self._look.done():
            self._look = asyncio.ensure_future(self._looked())
        ended, _ = await asyncio.wait([self._look], timeout=_PATIENCE)
        if not ended:
            self.fresh_until = monotonic() + _RESPITE

    async def _looked(self) -> None:
        try:
            await self.refresh()
        except StoreError as error:
            self.fresh_until = monotonic() + _RESPITE
            self._logger.warning("what other hosts granted is not known, because the store can't be read: %s", error)

    async def _read_all(self) -> None:
        known = self._rows if len(self._rows) == len(self._known) else None

        def read_rows(connection: "Connection") -> tuple[list[dict[str, Any]], frozenset[str]] | None:
            rows = _ACTIVE.all(connection)
            return None if rows == known else (rows, self._audit.closed(connection, [row["id"] for row in rows]))

        found = await self._store.read(read_rows)
        if found is None:
            return
        rows, over = found
        read = [self._read(row, is_over=row["id"] in over) for row in rows]
        in_force = {one.id: one for one in read if one is not None}
        self._rows = rows
        if in_force != self._known:
            self._known = in_force
            self.version += 1

    def _read(self, row: Mapping[str, Any], *, is_over: bool) -> Grant | None:
        """Return a stored grant. Without our seal one that forbids does so as widely as it can, and no other counts."""
        if self._is_sealed(row):
            return None if is_over and row["decision"] != "never" else _grant(row)
        self._logger.warning("grant %s was changed outside of agentos", row["id"])
        anybody = {"principal": None, "arguments": None, "session_id": None}
        return _grant({**row, **anybody}) if row["decision"] == "never" else None

    def _is_sealed(self, row: Mapping[str, Any]) -> bool:
        return self._store.is_sealed(_sealed_text(row), row["seal"])


_ACTIVE = PlainSql(f"SELECT * FROM grants WHERE state = 'active' ORDER BY created_at, id LIMIT {_LIMIT}")  # noqa: S608 - our own number
_SEALED = (
    *("id", "tool", "definition", "decision", "principal", "arguments", "session_id", "created_at", "created_by"),
    *("state", "ended_at"),
)


def _sealed_text(row: Mapping[str, Any]) -> str:
    return "grant\n" + canonical({key: row[key] for key in _SEALED})


def name_of(principal: Principal | str | None) -> str | None:
    """Return the key of a principal that is given as itself or by its key."""
    return principal.key if isinstance(principal, Principal) else principal


def _named(place: str, principal: Principal | str | None) -> str | None:
    """Return the key of a principal, or say what keeps it from being one: a misspelt one must not mean everybody."""
    name = name_of(principal)
    if name is not None and (fault := fault_of_name(name)):
        raise GrantError(f"{place}: {fault}; give a Principal, its key, or None")
    return name


def session_id(session: Mapping[str, Any] | None, masker: Masker) -> str | None:
    """Return the id of a session, which is its key `id`, as it may be written down."""
    id = None if session is None else session.get("id")
    return None if id is None or not str(id).strip() else writable(str(id), masker)


def is_text(value: object) -> bool:
    """Tell whether *value* is text that every store can hold: no half of a surrogate pair, no NUL."""
    try:
        return b"\0" not in str.encode(value)  # type: ignore[arg-type]  # what is no str raises
    except (TypeError, UnicodeEncodeError):
        return False


def writable(text: str, masker: Masker) -> str:
    """Return a caller's own id, or its hash if a secret or a NUL is in it: ids are compared and written down."""
    if masker.mask(text) == text and "\0" not in text:
        return text
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _session(session: Mapping[str, Any] | str | None, decision: str, masker: Masker) -> str | None:
    if session is not None and not isinstance(session, str | Mapping):
        raise GrantError(f"session: expected a session or its id, got {type(session).__name__}")
    id = session_id({"id": session} if isinstance(session, str) else session, masker)
    if decision == "session" and id is None:
        raise GrantError("session: a grant for a session needs the session, or its id; `id` is the key that counts")
    return id


def _pattern(arguments: Mapping[str, str] | ArgumentPattern | None) -> ArgumentPattern | None:
    if arguments is None or isinstance(arguments, ArgumentPattern):
        return arguments
    return ArgumentPattern(arguments)


def _row(grant: Grant) -> dict[str, Any]:
    return {
        "id": grant.id,
        "tool": grant.tool,
        "definition": grant.definition,
        "decision": grant.decision,
        "principal": grant.principal,
        "arguments": None if grant.arguments is None else canonical(grant.arguments.as_json()),
        "session_id": grant.session,
        "created_at": grant.created_at.timestamp(),
        "created_by": grant.created_by,
    }


def _grant(row: Mapping[str, Any]) -> Grant | None:
    """Return a stored grant; None for one that allows and whose pattern is no longer valid."""
    try:
        arguments = None if row["arguments"] is None else ArgumentPattern.from_json(json.loads(row["arguments"]))
    except ValueError:
        if row["decision"] != "never":
            return None
        arguments = None  # a denial that can't be read denies everything
    return Grant(
        id=row["id"],
        tool=row["tool"],
        decision=row["decision"],
        principal=row["principal"],
        arguments=arguments,
        session=row["session_id"],
        definition=row["definition"],
        created_at=datetime.fromtimestamp(row["created_at"], UTC),
        created_by=row["created_by"],
    )


def _facts(grant: Grant) -> dict[str, Any]:
    row = _row(grant)
    row["pattern"], row["grant"] = row.pop("arguments"), row.pop("id")
    return {key: value for key, value in row.items() if key != "created_at"}
