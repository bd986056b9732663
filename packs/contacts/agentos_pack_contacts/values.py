"""What the tools give back."""

from typing import Literal

import attrs


@attrs.frozen(kw_only=True)
class Contact:
    """Somebody in the book."""

    id: str
    name: str
    email: str | None
    phone: str | None
    organisation: str | None
    notes: str | None
    changed_at: str


@attrs.frozen(kw_only=True)
class Match:
    """A contact that was found: by its words, or by a name that is spelled nearly so. `score` is 0 to 100."""

    contact: Contact
    by: Literal["words", "similar name"]
    score: float


@attrs.frozen(kw_only=True)
class Matches:
    """The best matches first; `truncated` tells that there are more."""

    matches: list[Match]
    truncated: bool


@attrs.frozen(kw_only=True)
class Deleted:
    """Whom a deletion took out of the book."""

    id: str
    name: str


@attrs.frozen(kw_only=True)
class Status:
    """Whether the tools of the book can be called, why not, and how many contacts there are."""

    bound: bool
    reason: str
    contacts: int | None
