"""Stand-ins for what a test does not want to be real: time, and secrets."""

import hashlib
import itertools
import math
import string
from collections.abc import Callable, Iterable, Iterator, Mapping

from agentos import ExtensionPack


class FakeClock:
    """Time that goes on when it is told to. Give it to a host as `clock=`."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = float(now)

    def __call__(self) -> float:
        """Tell the time."""
        return self.now

    def advance(self, seconds: float) -> float:
        """Let *seconds* pass, and return what time it is then."""
        if not 0 <= seconds < math.inf:
            raise ValueError(f"time does not go back: advance() takes seconds from 0 on, got {seconds}")
        self.now += seconds
        return self.now

    def __repr__(self) -> str:
        return f"FakeClock({self.now})"


class FakeSecrets(Mapping[str, str]):
    """Secrets for a host that note who asked for them: `reads` has the ids in the order of asking.

    A host asks it for what its packs declare, and for nothing else. *answer* gives values for ids that are not in
    *values*; without it they are missing.
    """

    def __init__(self, values: Mapping[str, str] | None = None, answer: Callable[[str], str] | None = None) -> None:
        self._values = dict(values or {})
        self._answer = answer
        self.reads: list[str] = []

    def __call__(self, id: str) -> str | None:
        """Answer a host."""
        self.reads.append(id)
        if id not in self._values and self._answer is not None:
            self._values[id] = self._answer(id)
        return self._values.get(id)

    def __getitem__(self, id: str) -> str:
        return self._values[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"FakeSecrets({', '.join(self._values)})"


def fake_secrets(
    declared: ExtensionPack | Iterable[str] | None = None, values: Mapping[str, str] | None = None
) -> FakeSecrets:
    """Return canaries, values that can be recognised wherever they turn up, and *values* where they are given.

    *declared* are ids, or a pack whose descriptors declare them; None answers for every id that is asked for.
    """
    if declared is None:
        return FakeSecrets(values, canary_of)
    ids = _declared_by(declared) if isinstance(declared, ExtensionPack) else declared
    return FakeSecrets({**{id: canary_of(id) for id in ids}, **(values or {})})


def canary_of(id: str) -> str:
    """Return the value that stands for the secret *id*: the same every time.

    A small letter, a digit and a capital letter take turns, and no letter is a hexadecimal digit. So a few characters
    of it are neither in a sentence nor in a hash.
    """
    digest = hashlib.sha512(id.encode()).digest()[:_LENGTH]
    turns = itertools.cycle((_LETTERS, string.digits, _LETTERS.upper()))
    return "".join(alphabet[byte % len(alphabet)] for byte, alphabet in zip(digest, turns, strict=False))


_LENGTH = 48
_LETTERS = "ghijklmnopqrstuvwxyz"


def _declared_by(pack: ExtensionPack) -> list[str]:
    return list(dict.fromkeys(need.id for one in pack.descriptors for need in one.required_secrets))
