"""Who a principal is now: what it held when it asked may have been taken from it since."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs

from agentos.access.proposals import ProposalError
from agentos.base.foreign import Border, settled
from agentos.model.principal import EVERYTHING, SYSTEM, Principal
from agentos.secrets.masking import MaskingLogger

Principals = Mapping[str, Principal] | Callable[[Principal], Principal | Awaitable[Principal | None] | None]
"""Principals by id or key; or a function, sync or async, of a principal as it was stored."""


@attrs.frozen
class Present:
    """Knows the host's principals as they are now, if the host tells."""

    _principals: Principals | None
    _logger: MaskingLogger

    def __attrs_post_init__(self) -> None:
        given = self._principals
        if not (given is None or callable(given) or isinstance(given, Mapping)):
            raise TypeError(f"principals: expected a mapping or a function, got {type(given).__name__}")

    async def of(self, stored: Principal) -> Principal:
        """Return *stored* with no more than it held then and holds now; raise ProposalError if it is unknown now.

        The host itself is not asked about: it is who it is.
        """
        if self._principals is None or stored.key == SYSTEM.key:
            return stored
        with Border() as border:  # the host's own function, and nothing may run on a guess
            now = await self._found(stored)
        if border.error is not None:
            self._logger.error("who %s is now could not be told", stored.key, exc_info=border.error)
            raise ProposalError(f"who {stored.key!r} is now could not be told; the host's log says why")
        if now is None:
            raise ProposalError(f"{stored.key!r}, for whom this was proposed, is unknown to the host now")
        return narrower(stored, now)

    async def _found(self, stored: Principal) -> Principal | None:
        given = self._principals
        if isinstance(given, Mapping):
            found: Any = given.get(stored.key) or given.get(stored.id)
            return found if isinstance(found, Principal) and found.key == stored.key else None
        found = None if given is None else await settled(given(stored))
        if found is not None and (not isinstance(found, Principal) or found.key != stored.key):
            raise TypeError(f"principals: expected {stored.key!r} as a Principal or None, got {found!r:.80}")
        return found


def narrower(proposer: Principal, other: Principal | str | None) -> Principal:
    """Return *proposer* with no more than it holds as *other*; as it is, if that is somebody else or only a name."""
    if not isinstance(other, Principal) or other.key != proposer.key or other == proposer:
        return proposer
    narrowed = other if EVERYTHING in proposer.held else other.narrow(proposer.held)
    return narrowed.within(*proposer.bounds)
