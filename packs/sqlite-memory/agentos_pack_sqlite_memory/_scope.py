"""Whose a memory is, and who may see it.

Full-text indexes can't be narrowed by an ordinary column before they rank. So what narrows stands in the index as
words of its own: a letter and a number made of the owner, the namespace or the tag. They are digits, so that no stemmer
changes them, and whatever is found is checked against the real columns.
"""

import hashlib
from collections.abc import Iterable
from typing import Literal

import attrs

from agentos import Principal

Scope = Literal["all", "mine", "shared"]
SHARE_RULE = "memory:share"
_SHARED = "s1"


def owner_of(principal: Principal) -> str:
    """Name the owner that a principal is: a user and a service may have the same id."""
    return f"{principal.kind}:{principal.id}"


def may_share(principal: Principal) -> bool:
    """Tell whether a principal may write what everybody reads."""
    return bool({SHARE_RULE, "*"} & principal.held)


def scope_words(owner: str, namespace: str, tags: Iterable[str], *, shared: bool) -> str:
    """Return the words by which a memory is narrowed to."""
    words = [_word("o", owner), _word("n", namespace), *(_word("t", tag) for tag in tags)]
    return " ".join([*words, _SHARED] if shared else words)


@attrs.frozen(kw_only=True)
class Filter:
    """What a reader may see and asked to see."""

    owner: str
    scope: Scope = "all"
    namespace: str | None = None
    tags: tuple[str, ...] = ()
    now: float = 0.0
    """What has had its time by then is not seen."""

    @property
    def words(self) -> str:
        """Return the full-text expression of it."""
        mine = f'"{_word("o", self.owner)}"'
        seen = {"mine": mine, "shared": f'"{_SHARED}"', "all": f'({mine} OR "{_SHARED}")'}[self.scope]
        narrow = [_word("t", tag) for tag in self.tags]
        if self.namespace is not None:
            narrow.append(_word("n", self.namespace))
        return "scope : (" + " AND ".join([seen, *(f'"{word}"' for word in narrow)]) + ")"

    @property
    def condition(self) -> tuple[str, dict[str, str]]:
        """Return the same as a condition on the table; tags are checked in `admits`."""
        parts = {"mine": "owner = :owner", "shared": "shared", "all": "(owner = :owner OR shared)"}[self.scope]
        values = {"owner": self.owner}
        if self.namespace is not None:
            parts += " AND namespace = :namespace"
            values["namespace"] = self.namespace
        return parts, values

    def admits(self, tags: Iterable[str]) -> bool:
        """Tell whether a memory with *tags* has all that were asked for."""
        return set(self.tags) <= set(tags)


def _word(letter: str, value: str) -> str:
    digest = hashlib.blake2b(value.encode(), digest_size=7).digest()
    return f"{letter}{int.from_bytes(digest, 'big')}"
