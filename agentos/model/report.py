"""What became of packs: one outcome for every entry, one record for every loaded pack."""

from datetime import datetime
from typing import Literal

import attrs

from agentos.model.source import Source


@attrs.frozen
class PackOutcome:
    """What became of one entry. Reasons of "skipped" are "disabled" and "already_loaded"."""

    status: Literal["loaded", "skipped", "failed"]
    key: str
    pack: str | None = None
    reason: str | None = None
    error: Exception | None = None

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"{self.key} {self.status}{why}"


@attrs.frozen
class LoadReport:
    """What became of every entry of a manifest, in order."""

    outcomes: list[PackOutcome]

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
            raise ExceptionGroup("some packs could not be loaded", errors)

    def __str__(self) -> str:
        return "\n".join(str(outcome) for outcome in self.outcomes)


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
