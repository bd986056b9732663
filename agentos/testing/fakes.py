"""Stand-ins for what a test does not want to be real: time, and secrets."""

import hashlib
import itertools
import math
import string
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping

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


class FakeSecrets(UserDict[str, str]):
    """Secrets for a host that note who asked for them: `reads` has the ids in the order of asking.

    A host asks it for what its packs declare, and for nothing else. *answer* gives values for ids that are not in
    *values*; without it they are missing.
    """

    def __init__(self, values: Mapping[str, str] | None = None, answer: Callable[[str], str] | None = None) -> None:
        super().__init__(values or {})
        self._answer = answer
        self.reads: list[str] = []

    def __call__(self, id: str) -> str | None:
        """Answer a host."""
        self.reads.append(id)
        if id not in self and self._answer is not None:
            self[id] = self._answer(id)
        return self.get(id)

    def __repr__(self) -> str:
        return f"FakeSecrets({', '.join(self)})"


def fake_secrets(
    declared: ExtensionPack | Iterable[str] | None = None, values: Mapping[str, str] | None = None
) -> FakeSecrets:
    """Return canaries, values that can be recognised wherever they turn up, and *values* where they are given.

    *declared* are ids, or a pack whose descriptors declare them; None answers for every id that is asked for.
    """
    if declared is None:
        return FakeSecrets(values, canary_of)
    if isinstance(declared, ExtensionPack):
        declared = [need.id for one in declared.descriptors for need in one.required_secrets]
    return FakeSecrets({**{id: canary_of(id) for id in declared}, **(values or {})})


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
