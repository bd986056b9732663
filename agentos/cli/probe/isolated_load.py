"""Loading packs in a process of their own, so that a bad one can't take the command down.

`probe` loads the configuration in a child process, which tells how far it is. A pack that raises is told by the child
itself. One that exits, crashes or hangs ends the child: it is named, and the rest is loaded again without it.
Nothing is written to the store, and nothing is accepted at first sight.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import attrs

from agentos.cli.probe.child_process import ProbeProcess, describe_end
from agentos.errors import StoreError

if TYPE_CHECKING:
    from agentos.cli.layered_config import Config

HOLLOW = "wraps, but nothing is beneath it"
DEADLINE = 20.0
"""For how many seconds one pack may be loading."""
_START = 60.0
"""How many seconds Python and agentos may take to start, besides what a pack may take."""
_SOON = 1.0
"""After how many seconds it is worth telling for whom everybody waits."""


@attrs.frozen(kw_only=True)
class ProbedPack:
    """What became of one entry of the manifest.

    `status` is loaded, skipped, failed, exited, crashed or hung. `offers` has a mapping for each descriptor, `findings`
    what lint has to say.
    """

    index: int
    key: str
    status: str
    reason: str | None = None
    pack: str | None = None
    version: str | None = None
    origin: str | None = None
    offers: tuple[Mapping[str, Any], ...] = ()
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

    @property
    def active(self) -> ProbedEntry | None:
        """Return the entry in force at the top."""
        return next((entry for entry in self.entries if entry.state == "active"), None)

    @property
    def hollow(self) -> ProbedEntry | None:
        """Return the entry that wraps and has nothing beneath it, where it is the last one in force."""
        in_force = [entry for entry in self.entries if entry.state in ("active", "wrapped")]
        return in_force[-1] if in_force and in_force[-1].wraps else None


@attrs.frozen(kw_only=True)
class ProbeReport:
    """What was found: every pack of the manifest in order, every stack, and what waits to be accepted."""

    packs: tuple[ProbedPack, ...]
    stacks: tuple[ProbedStack, ...] = ()
    pending: tuple[Mapping[str, Any], ...] = ()
    store_error: str | None = None
    locked: tuple[Mapping[str, Any], ...] = ()
    """The fields of a LockedPack for every pack that was loaded, if locks were asked for."""

    @property
    def bad(self) -> list[ProbedPack]:
        """Return the packs that could not be loaded."""
        return [pack for pack in self.packs if pack.is_bad]

    def pack(self, key: str) -> ProbedPack | None:
        """Return what became of the pack of *key*, or of that name."""
        return next((one for one in self.packs if key in (one.key, one.pack)), None)


def probe(
    config: "Config",
    deadline: float = DEADLINE,
    *,
    only: Iterable[int] | None = None,
    lint: bool = False,
    locks: bool = False,
    without: Iterable[int] = (),
    waits: Callable[[str], None] = lambda _: None,
) -> ProbeReport:
    """Load *config*, or of its entries *only* some, in a child process, and report on every entry.

    *locks* asks for what a lock file says of each, whatever the store or a lock file of the manifest says already.
    *waits* is called with the key of a pack that takes its time.
    """
    wanted = set(range(len(config.entries)) if only is None else only) - set(without)
    fallen: dict[int, ProbedPack] = {}
    with _readable_store(config) as store:
        while True:
            asked = {"indexes": sorted(wanted - fallen.keys()), "lint": lint, "locks": locks, "store": store}
            run = _Run(config, asked, waits=waits)
            culprit = run.to_the_end(deadline)
            if culprit is None:
                return _report(run, fallen)
            fallen[culprit.index] = culprit


@contextmanager
def _readable_store(config: "Config") -> Iterator[str | None]:
    """Give where the store can be read. A copy is made by this process: it goes however the child ends."""
    place = config.manifest.store
    with ExitStack() as undo:
        if place is not None:
            from agentos.cli.read_only_stores import readable

            with suppress(OSError, StoreError):  # the child tells what is wrong
                place = undo.enter_context(readable(place))
        yield place


def _report(run: "_Run", fallen: Mapping[int, ProbedPack]) -> ProbeReport:
    packs = {**run.packs, **fallen}
    return ProbeReport(
        packs=tuple(packs[index] for index in sorted(packs)),
        stacks=tuple(_stack(raw) for raw in run.last.get("stacks", ())),
        pending=tuple(run.last.get("pending", ())),
        store_error=run.last.get("storeError"),
        locked=tuple(run.last.get("locked", ())),
    )


def _stack(raw: Mapping[str, Any]) -> ProbedStack:
    kind, id = raw["kind"], raw["id"]
    entries = [ProbedEntry(kind=kind, id=id, **_tuples(one)) for one in raw["entries"]]
    if hollow := ProbedStack(kind=kind, id=id, entries=tuple(entries)).hollow:
        entries[entries.index(hollow)] = attrs.evolve(hollow, reason=f"{hollow.reason}; it {HOLLOW}")
    return ProbedStack(kind=kind, id=id, entries=tuple(entries))


def _tuples(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in raw.items()}


class _Run:
    """One child process and what it told."""

    def __init__(self, config: "Config", asked: Mapping[str, Any], *, waits: Callable[[str], None]) -> None:
        self._request = {"manifest": str(config.path), **asked}
        self._labels = [entry.label for entry in config.entries]
        self._waits = waits
        self.packs: dict[int, ProbedPack] = {}
        self.last: dict[str, Any] = {}
        self._loading: int | None = None
        self._since = 0.0

    def to_the_end(self, deadline: float) -> ProbedPack | None:
        """Run the child. Return the pack that ended it; None if it got to its end."""
        with ProbeProcess(self._request) as child:
            message = self._next(child, deadline + _START)
            while message and message["event"] != "exited":
                self._take(message)
                if self.last:
                    child.wait()
                    return None
                message = self._next(child, deadline)
            return self._blame(child, message)

    def _next(self, child: ProbeProcess, patience: float) -> Mapping[str, Any] | None:
        message = child.next_message(min(_SOON, patience))
        if message is not None or patience <= _SOON:
            return message
        if self._loading is not None:
            self._waits(self._labels[self._loading])
        return child.next_message(patience - _SOON)

    def _take(self, message: Mapping[str, Any]) -> None:
        event = message["event"]
        if event == "start":
            self._loading, self._since = message["index"], time.monotonic()
        elif event == "done":
            self._loading = None
            self.packs[message["index"]] = self._probed(message)
        elif event == "stacks":
            self.last = dict(message)

    def _probed(self, message: Mapping[str, Any]) -> ProbedPack:
        fields = _tuples({key: value for key, value in message.items() if key != "event"})
        return ProbedPack(seconds=round(time.monotonic() - self._since, 3), **fields)

    def _blame(self, child: ProbeProcess, message: Mapping[str, Any] | None) -> ProbedPack:
        """Say which pack ended the child, and how. *message* is its last: empty at its end, None if none came in time.

        Its last words are told, too: they often say why.
        """
        status, reason = ("exited", f"called sys.exit({message['code']})") if message else describe_end(child, message)
        words = child.last_words()
        said = f"; its last words: {words}" if words else ""
        if self._loading is None:
            from agentos.cli.app import Fail

            raise Fail(f"packs could not be probed: the process {reason}{said}")
        return ProbedPack(
            index=self._loading,
            key=self._labels[self._loading],
            status=status,
            reason=f"while it was loaded, it {reason}{said}",
            seconds=round(time.monotonic() - self._since, 3),
        )
