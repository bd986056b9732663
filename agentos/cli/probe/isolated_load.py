"""Loading packs in a process of their own, so that a bad one can't take the command down.

`probe` loads the configuration in a child process, which tells how far it is. A pack that raises is told by the child
itself. One that exits, crashes or hangs ends the child: it is named, and the rest is loaded again without it.
Nothing is written to the store, and nothing is accepted at first sight.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from agentos.checks.probed import ProbedPack, ProbeReport, report_of, tuples
from agentos.cli.probe.child_process import ProbeProcess, describe_end
from agentos.errors import StoreError

if TYPE_CHECKING:
    from agentos.cli.layered_config import Config

DEADLINE = 20.0
"""For how many seconds one pack may be loading."""
_START = 60.0
"""How many seconds Python and agentos may take to start, besides what a pack may take."""
_SOON = 1.0
"""After how many seconds it is worth telling for whom everybody waits."""


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
                packs = {**run.packs, **fallen}
                return report_of((packs[index] for index in sorted(packs)), run.last)
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
        fields = tuples({key: value for key, value in message.items() if key != "event"})
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
