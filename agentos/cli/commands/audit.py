"""`agentos audit`: list, verify and export the log of every decision and call. No pack is loaded."""

import codecs
import contextlib
import fnmatch
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import attrs
import click

from agentos.base.atomic_files import replacing
from agentos.cli.app import App, Fail, examples, pass_app, run_async
from agentos.cli.host_session import FAILED, UNUSABLE, working_host
from agentos.cli.terminal.harmless_text import clean, counted, one_line

if TYPE_CHECKING:
    from agentos.access.audit import Audit, AuditHead, AuditRecord

_PAGE = 1_000
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@click.group(
    epilog=examples("agentos audit list --limit 20", "agentos audit verify", "agentos audit export audit.jsonl"),
)
def audit() -> None:
    """List, verify and export the audit log: every decision and call, in a chain that can't be changed unseen."""


# -- list --------------------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class RecordFilter:
    """Which records are wanted."""

    tool: str | None = None
    principal: str | None = None
    event: str | None = None
    since: datetime | None = None

    def fits(self, record: "AuditRecord") -> bool:
        """Tell whether a record is wanted."""
        data = record.data
        return (
            (self.tool is None or _matches(data.get("tool"), self.tool))
            and (self.principal is None or data.get("principal") == self.principal)
            and (self.event is None or _matches(record.event, self.event))
            and (self.since is None or record.at >= self.since)
        )


def _matches(name: object, pattern: str) -> bool:
    names = (str(name), str(name).partition(":")[2])
    return name is not None and any(fnmatch.fnmatchcase(one, pattern) for one in names if one)


def _parse_time(context: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:  # noqa: ARG001
    """Read a time: a date, a time with or without its zone, or how long ago, such as 90m or 2d."""
    if value is None:
        return None
    ago = re.fullmatch(r"(\d{1,6})([smhdw])", value.strip())
    try:
        if ago is not None:
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        moment = datetime.fromisoformat(value.strip())
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{value!r} is no time; write 2027-01-31, 2027-01-31T12:00:00Z, or how long ago: 30m, 2h, 7d"
        ) from None
    return moment if moment.tzinfo is not None else moment.astimezone()


@audit.command(
    "list",
    epilog=examples(
        "agentos audit list",
        "agentos audit list --tool 'mail:*' --since 2h",
        "agentos audit list --principal ann --since 2027-01-31 --limit 1000 --json",
    ),
)
@click.option("--tool", metavar="PATTERN", help="Only records of tools of that name; * stands for anything.")
@click.option("--principal", metavar="ID", help="Only records of calls for that principal, whoever it is.")
@click.option("--event", metavar="PATTERN", help="Only records of that event, such as call, decision or proposal*.")
@click.option("--since", metavar="TIME", callback=_parse_time, help="Only since then: a time, or 30m, 2h, 7d ago.")
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=50, show_default=True, help="The newest so many.")
@run_async
async def list_(
    app: App, tool: str | None, principal: str | None, event: str | None, since: datetime | None, limit: int
) -> None:
    """List the newest records, oldest first."""
    wanted = RecordFilter(tool=tool, principal=principal, event=event, since=since)
    out, found = app.out, list["AuditRecord"]()
    async with _open_log(app) as log:
        if log is not None:
            found = await _newest(log, wanted, limit)
    out.data({"records": [_data(record) for record in found]})
    rows = [_row(record) for record in found]
    out.table(("nr", "time", "event", "tool", "for", "how it went"), rows, empty="There are no such records.")


async def _newest(log: "Audit", wanted: RecordFilter, limit: int) -> list["AuditRecord"]:
    """Return the newest records that are wanted, oldest first: read from the end, page by page."""
    end, found = (await log.head()).seq, list["AuditRecord"]()
    while end > 0 and len(found) < limit:
        begin = max(0, end - _PAGE)
        page = await log.records(after=begin, limit=end - begin)
        found = [*(one for one in page if wanted.fits(one)), *found]
        if not page or (wanted.since is not None and page[0].at < wanted.since):
            break
        end = begin
    return found[-limit:]


def _data(record: "AuditRecord") -> dict[str, Any]:
    return {"seq": record.seq, "at": record.at, "event": record.event, **record.data, "hash": record.hash}


def _row(record: "AuditRecord") -> tuple[Any, ...]:
    data = record.data
    how, style = _outcome_text(data)
    at = record.at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return str(record.seq), at, record.event, data.get("tool"), data.get("principal"), (how, style)


def _outcome_text(data: Mapping[str, Any]) -> tuple[str, str]:
    """Put into words how a decision or a call went."""
    outcome = data.get("outcome")
    error = data.get("error") or (outcome.get("error") if isinstance(outcome, Mapping) else None)
    said = [str(data[name]) for name in ("answer", "decision", "reason") if data.get(name)]
    if error:
        return one_line(f"{error} {' '.join(said)}"), "red"
    by = f"by {data['by']}" if data.get("by") else ""
    return one_line(" ".join([*said, by])), "yellow" if data.get("answer") in ("ask", "refuse") else ""


@contextlib.asynccontextmanager
async def _open_log(app: App) -> "AsyncIterator[Audit | None]":
    """Give the audit log; None if nothing was ever recorded."""
    from agentos.cli.store_records import records

    async with records(app.config) as found:
        yield None if found is None else found.audit


# -- verify ------------------------------------------------------------------------------------------------------------


@audit.command(epilog=examples("agentos audit verify", "agentos audit verify --known 1204:9f2c... --json"))
@click.option("--known", metavar="NR:HASH", help="The end of the log as it was verified earlier and noted elsewhere.")
@run_async
async def verify(app: App, known: str | None) -> int:
    """Recompute the whole chain. Exits 1 and names the first link that is broken, 3 if the log can't be read now.

    The end of the log is told: kept elsewhere and given as --known, it shows whether the whole log was rolled back.
    """
    from agentos.access.audit import GENESIS, AuditHead, AuditVerdict

    out, noted = app.out, _parse_head(known)
    async with _open_log(app) as log:
        empty = AuditVerdict(ok=noted is None or noted.seq == 0, reason="there is no log at all", broken_at=1)
        verdict = empty if log is None else await log.verify(known=noted)
        head = AuditHead(0, GENESIS) if log is None or not verdict.ok else await log.head()
    out.data(
        {
            "ok": verdict.ok,
            "records": verdict.records,
            "brokenAt": None if verdict.ok else verdict.broken_at,
            "reason": None if verdict.ok else verdict.reason,
            "head": f"{head.seq}:{head.hash}" if verdict.ok else None,
        }
    )
    if verdict.ok:
        out.say(f"The chain is whole: {counted(verdict.records, 'record')}. It ends at {head.seq}:{head.hash}")
        return 0
    is_broken = verdict.broken_at is not None
    if not out.is_json:
        out.fail(
            f"the chain is broken at record {verdict.broken_at}: {verdict.reason}" if is_broken else verdict.reason
        )
    return FAILED if is_broken else UNUSABLE


def _parse_head(known: str | None) -> "AuditHead | None":
    from agentos.access.audit import AuditHead

    if known is None:
        return None
    seq, colon, hash = known.partition(":")
    if not colon or not seq.isdecimal() or not re.fullmatch("[0-9a-f]{64}", hash):
        raise Fail("--known: expected NR:HASH, as `agentos audit verify` tells it", code=2)
    return AuditHead(int(seq), hash)


# -- export ------------------------------------------------------------------------------------------------------------


@audit.command(
    epilog=examples(
        "agentos audit export audit.jsonl",
        "agentos audit export - | gzip > audit.jsonl.gz",
        "agentos audit export --bundle log.bundle",
    ),
)
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True), default="-")
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@click.option("--bundle", is_flag=True, help="Sign it: loads the packs, of which one has to offer provenance.")
@run_async
async def export(app: App, file: str, force: bool, bundle: bool) -> None:
    """Write every record as a line of JSON to FILE or stdout: number, hashes and text, enough to verify it.

    A bundle begins with a signed statement of what follows: `agentos audit verify-bundle` needs nothing but the public
    key of whoever signed it.
    """
    if file != "-" and Path(file).exists() and not force:  # noqa: ASYNC240 - nothing else runs yet
        raise Fail(f"{file} is there already", hint="--force replaces it")
    out, stdout = app.out, sys.stdout
    target: Any = _CleanedStream(stdout) if stdout.isatty() else stdout
    async with _exporting(app, bundle=bundle) as write:
        if file == "-":
            count = await write(target)
            stdout.flush()
            return
        with replacing(Path(file), private=True) as draft:
            count = await write(codecs.getwriter("utf-8")(draft))
    out.data({"file": file, "records": count})
    out.say(f"{counted(count, 'record')} in {file}")


@contextlib.asynccontextmanager
async def _exporting(app: App, *, bundle: bool) -> "AsyncIterator[Callable[[Any], Awaitable[int]]]":
    """Give what writes the log, or a bundle of it, and says how many records that were."""
    if bundle:
        async with working_host(app, tells_held_back=False, starts_servers=False) as host:
            yield host.provenance.export
        return

    async def nothing(target: Any) -> int:  # noqa: ARG001 - as the others
        return 0

    async with _open_log(app) as log:
        yield nothing if log is None else log.export


# -- verify-bundle -----------------------------------------------------------------------------------------------------


@audit.command("verify-bundle", epilog=examples("agentos audit verify-bundle log.bundle --public-key 8f3a..."))
@click.argument("file", type=click.Path(dir_okay=False, exists=True))
@click.option("--public-key", "key", metavar="HEX", required=True, help="The signer's public key: 64 digits.")
@pass_app
def verify_bundle_(app: App, file: str, key: str) -> int:
    """Verify a bundle with the public key alone: no store, no manifest and no pack is needed.

    Exits 1 and names the first record that was changed, left out, added or moved, or how many are cut off at the end.
    """
    from agentos.access.audit_bundles import read_public_key, verify_bundle

    out = app.out
    try:
        public_key = read_public_key(key)
    except ValueError as error:
        raise Fail(f"--public-key: {error}", code=2) from None
    with Path(file).open(encoding="utf-8", errors="replace") as lines:
        verdict = verify_bundle(lines, public_key)
    broken_at = None if verdict.ok else verdict.broken_at
    reason = None if verdict.ok else verdict.reason
    out.data({"ok": verdict.ok, "records": verdict.records, "brokenAt": broken_at, "reason": reason})
    if verdict.ok:
        out.say(f"The bundle is whole and signed: {counted(verdict.records, 'record')}.")
    elif not out.is_json:
        out.fail(verdict.reason)
    return 0 if verdict.ok else FAILED


class _CleanedStream:
    """A terminal as a stream: what it would obey is written out."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write *text*."""
        return self._stream.write(clean(text))
