"""What became of packs: one outcome for every entry, one record for every loaded pack."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import attrs

from agentos.model.source import Source
from agentos.model.trouble import Trouble


@attrs.frozen
class PackOutcome:
    """What became of one entry. Reasons of "skipped" are "disabled" and "already_loaded".

    `warnings` say what somebody should look at in what was loaded.
    """

    status: Literal["loaded", "skipped", "failed"]
    key: str
    pack: str | None = None
    reason: str | None = None
    error: Exception | None = None
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        why = "; ".join([*([self.reason] if self.reason else []), *self.warnings])
        return f"{self.key} {self.status}{f': {why}' if why else ''}"


@attrs.frozen
class LoadReport:
    """What became of every entry of a manifest, in order, and what is wrong although it could be loaded.

    `troubles` names what matches nothing that is there, such as an override or a denial, and what packs find wrong with
    themselves.
    """

    outcomes: list[PackOutcome]
    troubles: list[Trouble] = attrs.field(factory=list)

    @property
    def loaded(self) -> list[PackOutcome]:
        """Return what was loaded."""
        return [outcome for outcome in self.outcomes if outcome.status == "loaded"]

    @property
    def skipped(self) -> list[PackOutcome]:
        """Return what was passed over."""
        return [outcome for outcome in self.outcomes if outcome.status == "skipped"]

    @property
    def failed(self) -> list[PackOutcome]:
        """Return what could not be loaded."""
        return [outcome for outcome in self.outcomes if outcome.status == "failed"]

    def raise_on_failure(self) -> None:
        """Raise the errors of what could not be loaded, if any, as one group."""
        if errors := [outcome.error for outcome in self.failed if outcome.error is not None]:
            raise load_failures("some packs could not be loaded", errors)

    def __str__(self) -> str:
        return "\n".join(str(one) for one in (*self.outcomes, *self.troubles))


@attrs.frozen
class PackRecord:
    """A loaded pack, as it stands now."""

    key: str
    name: str
    version: str | None
    source: Source
    enabled: bool
    loaded_at: datetime
    descriptors: list[tuple[str, str]]


def load_failures(title: str, errors: Sequence[Exception]) -> ExceptionGroup[Exception]:
    """Return the errors of packs as one group; its own message has every reason, since not all show what is in it."""
    reasons = "".join(f"\n  {error}" for error in errors)
    return ExceptionGroup(f"{title}:{reasons}", errors)
