"""Where a moment is reckoned."""

from typing import Literal

import attrs
from whenever import Date, OffsetDateTime, PlainDateTime, Time, TimeDelta, ZonedDateTime

from agentos_pack_datetime._moments import OUT_OF_RANGE, Disambiguate, iso, place_in

_EXPECTED = {
    "date": "a date, as start is one",
    "local": "a time without an offset, as start is one; or give tz",
    "offset": "a time with an offset, as start is one; or give tz",
    "zone": "a time, as start is one",
}


@attrs.frozen
class Frame:
    """A time zone to reckon in; for what has no zone that is UTC, where every day has 24 hours."""

    kind: Literal["date", "local", "offset", "zone"]
    tz: str = "UTC"
    offset: TimeDelta = TimeDelta.ZERO

    @classmethod
    def of(cls, found: Date | PlainDateTime | OffsetDateTime, tz: str | None) -> "Frame":
        """Return the frame for what somebody wrote; a date needs no zone."""
        if isinstance(found, Date):
            return cls("date")
        if tz is not None:
            return cls("zone", tz=tz)
        if isinstance(found, OffsetDateTime):
            return cls("offset", offset=found.offset)
        return cls("local")

    def enter(
        self, found: Date | PlainDateTime | OffsetDateTime, place: str, disambiguate: Disambiguate
    ) -> ZonedDateTime:
        """Return the moment to reckon with."""
        match self.kind, found:
            case "date", Date():
                return _in_utc(found.at(Time.MIDNIGHT))
            case "local", PlainDateTime():
                return _in_utc(found)
            case "zone", PlainDateTime():
                return place_in(found, self.tz, disambiguate, place)[0]
            case (("offset" | "zone"), OffsetDateTime()):
                return self._moved_here(found, place)
        raise ValueError(f"{place}: expected {_EXPECTED[self.kind]}, got {iso(found)!r}")

    def leave(self, moment: ZonedDateTime) -> str:
        """Return *moment* in the form that came in."""
        match self.kind:
            case "date":
                return iso(moment.date())
            case "local":
                return iso(moment.to_plain())
            case "offset":
                return self._with_offset(moment.to_plain())
            case "zone":
                return iso(moment)

    def _moved_here(self, found: OffsetDateTime, place: str) -> ZonedDateTime:
        try:
            if self.kind == "zone":
                return found.to_tz(self.tz)
            return _in_utc(found.to_fixed_offset(self.offset).to_plain())
        except ValueError:
            raise ValueError(f"{place}: {iso(found)}, seen from start, {OUT_OF_RANGE}") from None

    def _with_offset(self, local: PlainDateTime) -> str:
        try:
            return iso(local.assume_fixed_offset(self.offset))
        except ValueError:
            raise ValueError(f"start: the result {OUT_OF_RANGE}") from None


def _in_utc(local: PlainDateTime) -> ZonedDateTime:
    return local.assume_tz("UTC", disambiguation="raise")
