"""Options among the words of a command: which are there, however they are written.

What a program makes of its words only the program knows. So nothing is taken for granted: not that `--` ends the
options, not that a value is no option, not that an option is written out.
"""

import re
from collections.abc import Collection, Sequence

_FLAG = re.compile(r"-[^\s=-]|--?[^\s=-][^\s=]+")


def fault_of_flag(flag: str) -> str | None:
    """Say why *flag* can't stand in a rule."""
    if _FLAG.fullmatch(flag):
        return None
    return f"expected options such as -x, -name or --name, without a value, got {flag[:60]!r}"


def unlisted(words: Sequence[str], flags: Collection[str]) -> str | None:
    """Return the first of *words* that is, or may be, an option that *flags* does not list."""
    return next((word for word in words if _is_option(word) and not _is_listed(word, flags)), None)


def _is_option(word: str) -> bool:
    return word.startswith("-") and word not in ("-", "--")


def _is_listed(word: str, flags: Collection[str]) -> bool:
    """Tell whether *word* is one of *flags*, with or without a value behind `=`, or several short ones in one word.

    A value that is glued to a short option (`-ofile`) is not told from more options; an abbreviation is not listed.
    """
    if word.partition("=")[0] in flags:
        return True
    return not word.startswith("--") and all(f"-{letter}" in flags for letter in word[1:])


def forbidden(words: Sequence[str], flags: Collection[str]) -> tuple[str, str] | None:
    """Return the first of *words* that is, or may be, one of *flags*, and which."""
    return next(((word, flag) for word in words for flag in flags if _is_option(word) and _may_be(word, flag)), None)


def _may_be(word: str, flag: str) -> bool:
    """Tell whether *word* may mean *flag*: cut short (`--out`), among others (`-xI`), with its value behind it."""
    name, written = flag.lstrip("-"), word.lstrip("-").partition("=")[0]
    if len(name) == 1:
        return written == name or (not word.startswith("--") and name in word[1:])
    return written == name or (word.startswith("--") and bool(written) and name.startswith(written))
