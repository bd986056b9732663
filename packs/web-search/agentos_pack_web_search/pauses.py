"""How long a provider wants to be left alone, as far as it says so."""

import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

_LONGEST = 3_600.0
_NUMBER = re.compile(r"[0-9]{1,9}")


class Pauses:
    """Remembers until when each provider is left alone. A pause is for one key: a new one may be used at once."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: dict[str, tuple[float, str]] = {}

    def begin(self, provider: str, credential: str, seconds: float) -> None:
        """Leave *provider* alone for some time, at most an hour."""
        self._until[provider] = (self._clock() + min(max(seconds, 1.0), _LONGEST), credential)

    def left(self, provider: str, credential: str) -> float:
        """Return for how many more seconds *provider* is left alone."""
        until, known = self._until.get(provider, (0.0, credential))
        seconds = until - self._clock()
        # A clock that was set back must not stretch a pause beyond the longest there is.
        return min(seconds, _LONGEST) if known == credential and seconds > 0 else 0.0


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that the header Retry-After asks to wait, in either of its forms."""
    said = headers.get("retry-after", "").strip()
    if _NUMBER.fullmatch(said):
        return float(said)
    try:
        return max(parsedate_to_datetime(said).timestamp() - now, 0.0) if said else None
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def rate_limit_reset(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until what is used up comes back.

    Brave tells it per limit: `X-RateLimit-Remaining: 0, 1000` with `X-RateLimit-Reset: 1, 1419704`.
    """
    left = _NUMBER.findall(headers.get("x-ratelimit-remaining", "")[:200])
    reset = [float(number) for number in _NUMBER.findall(headers.get("x-ratelimit-reset", "")[:200])]
    used_up = [seconds for rest, seconds in zip(left, reset, strict=False) if int(rest) == 0]
    return max(used_up or reset[:1], default=None)
