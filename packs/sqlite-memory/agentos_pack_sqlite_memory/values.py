"""What the memory gives back."""

from collections.abc import Mapping

import attrs

Plain = str | int | float | bool | None
"""What a value of the metadata may be."""


@attrs.frozen(kw_only=True)
class Memory:
    """One memory, as somebody who may see it gets it.

    `mine` tells whether the reader saved it; `truncated` that `text` is only its beginning. `score` says how well it
    fits among the results of one search, and is null when nothing was searched for. Times are in UTC.
    """

    id: str
    text: str
    truncated: bool
    namespace: str
    tags: list[str]
    metadata: Mapping[str, Plain]
    shared: bool
    mine: bool
    saved_at: str
    expires_at: str | None
    score: float | None


@attrs.frozen(kw_only=True)
class Saved:
    """What became of a text: `created` is false when it was known already and is now fresh again.

    `durable` is false when the memory is not kept in a file and ends with the process.
    """

    id: str
    created: bool
    namespace: str
    shared: bool
    expires_at: str | None
    durable: bool


@attrs.frozen(kw_only=True)
class Found:
    """The memories that fit best, the best first; `truncated` tells that more fit than were asked for."""

    memories: list[Memory]
    truncated: bool


@attrs.frozen(kw_only=True)
class Forgotten:
    """How many memories were deleted, the ids of the first hundred, and the ids that were not there to delete."""

    count: int
    ids: list[str]
    missing: list[str]


@attrs.frozen(kw_only=True)
class Stats:
    """What a principal has in the memory, and how large the memory is in all."""

    memories: int
    shared: int
    namespaces: Mapping[str, int]
    oldest_at: str | None
    newest_at: str | None
    bytes: int
    durable: bool
