"""What was found of packs and stacks, as plain values: told by a process of its own, or by a host at work."""

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from agentos.model.trouble import Trouble
from agentos.secrets.catalog import SecretDefinition
from agentos.secrets.known_secrets import merged
from agentos.stacks.reasons import HOLLOW


@attrs.frozen(kw_only=True)
class ProbedPack:
    """What became of one entry of the manifest.

    `status` is loaded, skipped, failed, exited, crashed or hung. `offers` has a mapping for each descriptor,
    `options` one for each option that it declares, `warnings` what the load has to say, `findings` what lint has.
    """

    index: int
    key: str
    status: str
    reason: str | None = None
    pack: str | None = None
    version: str | None = None
    origin: str | None = None
    offers: tuple[Mapping[str, Any], ...] = ()
    options: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    findings: tuple[Mapping[str, str], ...] = ()
    seconds: float = 0.0

    @property
    def is_bad(self) -> bool:
        """Tell whether it could not be loaded."""
        return self.status not in ("loaded", "skipped")


@attrs.frozen(kw_only=True)
class ProbedEntry:
    """An entry on its stack; the same fields as agentos.Entry, as plain values.

    `secrets` says which are there, `rules` what a principal needs to call it: nothing if everybody may, None for what
    is no tool.
    """

    kind: str
    id: str
    pack: str
    version: str | None
    origin: str
    priority: int
    state: str
    reason: str
    wraps: bool = False
    secrets: tuple[Mapping[str, Any], ...] = ()
    rules: tuple[str, ...] | None = None

    @property
    def is_public(self) -> bool:
        """Tell whether everybody may call it. With `required_access` it is a tool to `Principal.missing`."""
        return not self.rules

    @property
    def required_access(self) -> tuple[str, ...]:
        """Return the rules that a principal needs to call it."""
        return self.rules or ()


@attrs.frozen(kw_only=True)
class ProbedStack:
    """Every entry of one stack, strongest first."""

    kind: str
    id: str
    entries: tuple[ProbedEntry, ...]
    troubles: tuple[Trouble, ...] = ()
    """What those in force find wrong with themselves."""

    @property
    def active(self) -> ProbedEntry | None:
        """Return the entry in force at the top."""
        return next((entry for entry in self.entries if entry.state == "active"), None)

    @property
    def hollow(self) -> ProbedEntry | None:
        """Return the strongest entry that is gated because it wraps and has nothing beneath it."""
        return next((entry for entry in self.entries if entry.reason == HOLLOW), None)


@attrs.frozen(kw_only=True)
class ProbeReport:
    """What was found: every pack of the manifest in order, every stack, and what waits to be accepted."""

    packs: tuple[ProbedPack, ...]
    stacks: tuple[ProbedStack, ...] = ()
    pending: tuple[Mapping[str, Any], ...] = ()
    store_error: str | None = None
    locked: tuple[Mapping[str, Any], ...] = ()
    """The fields of a LockedPack for every pack that was loaded, if locks were asked for."""
    troubles: tuple[Trouble, ...] = ()
    """What loaded packs find wrong with themselves."""
    unmatched: tuple[Trouble, ...] = ()
    """What names something, such as an override or a denial, and matches nothing."""

    @property
    def bad(self) -> list[ProbedPack]:
        """Return the packs that could not be loaded."""
        return [pack for pack in self.packs if pack.is_bad]

    @property
    def absent(self) -> list[ProbedPack]:
        """Return the packs that are not there: those that could not be loaded, and those that the manifest disables."""
        return [pack for pack in self.packs if pack.is_bad or pack.reason == "disabled"]

    @property
    def secrets(self) -> dict[str, SecretDefinition]:
        """Return what is known of the secrets that entries declare, by id: of what packs say, all of it."""
        found: dict[str, SecretDefinition] = {}
        for one in (one for stack in self.stacks for entry in stack.entries for one in entry.secrets):
            if one["definition"] is not None:
                known = SecretDefinition(**tuples(one["definition"]))
                found[known.id] = merged(found.get(known.id), known)
        return found

    def pack(self, key: str) -> ProbedPack | None:
        """Return what became of the pack of *key*, or of that name."""
        return next((one for one in self.packs if key in (one.key, one.pack)), None)


def report_of(packs: Iterable[ProbedPack], told: Mapping[str, Any]) -> ProbeReport:
    """Return a report of *packs* from what was told of all of them together."""
    return ProbeReport(
        packs=tuple(packs),
        stacks=tuple(_stack(raw) for raw in told.get("stacks", ())),
        pending=tuple(told.get("pending", ())),
        store_error=told.get("storeError"),
        locked=tuple(told.get("locked", ())),
        troubles=tuple(Trouble(**raw) for raw in told.get("troubles", ())),
        unmatched=tuple(Trouble(**raw) for raw in told.get("unmatched", ())),
    )


def _stack(raw: Mapping[str, Any]) -> ProbedStack:
    kind, id = raw["kind"], raw["id"]
    entries = [ProbedEntry(kind=kind, id=id, **tuples(one)) for one in raw["entries"]]
    troubles = tuple(Trouble(**one) for one in raw.get("troubles", ()))
    return ProbedStack(kind=kind, id=id, entries=tuple(entries), troubles=troubles)


def tuples(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return *raw*, which came as JSON, with tuples for lists."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in raw.items()}
