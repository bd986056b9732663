"""Which file a program's name stands for."""

import os
import posixpath

import attrs
from agentos_pack_common import find_program


@attrs.frozen
class Program:
    """A program as a rule names it, and the file that it was when the rule was read.

    A name alone is not enough: another file may be put where it is looked for. The file alone is not enough either:
    with busybox one file is every program. So both must fit.
    """

    word: str
    """A plain name, or a whole path."""
    path: str | None
    """Where it is started from; None if it is not installed."""
    real: str | None
    """What is there, all links followed."""

    @classmethod
    def find(cls, word: str) -> "Program":
        """Look for a program: a plain name in the safe folders, a whole path where it says."""
        path = find_program(word) if "/" not in word else find_program(*reversed(posixpath.split(word)))
        return cls(word, path, None if path is None else os.path.realpath(path))

    @property
    def name(self) -> str:
        """Return the name alone."""
        return posixpath.basename(self.word)

    def is_meant_by(self, word: str) -> bool:
        """Tell whether *word*, the first of a call, is this program, by its name and by what that leads to."""
        if "/" not in word:
            return word == self.name
        return posixpath.basename(word) == self.name and self.real is not None and os.path.realpath(word) == self.real

    @property
    def is_unchanged(self) -> bool:
        """Tell whether its path still leads to the file that it led to."""
        return self.path is not None and os.path.realpath(self.path) == self.real
