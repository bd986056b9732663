"""The kind `provenance`: signs the audit log, so that others can verify it who have neither the store nor its key.

A payload is an object with `sign(head)`, which returns the signature (Ed25519) of some bytes, and `public_key`. It may
have `anchor(checkpoint)`, which gives a checkpoint to somebody outside and returns a receipt, and the attributes
`every_records`, `every_seconds` and `timeout`. The log is signed by every active one, in their order.
"""

import asyncio
import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any

from agentos.base.foreign import Border, type_name
from agentos.errors import AgentOSError, DescriptorError, StoreError
from agentos.model.crossing import Crossing
from agentos.model.descriptor import Descriptor
from agentos.model.guarding import fault_of_parameters, fault_of_seconds
from agentos.model.kind import Kind, declare_own_kind
from agentos.payloads.asked_payload import Finds, ask_payload
from agentos.payloads.foreign_job import Threads
from agentos.payloads.payload_context import active_in_order
from agentos.secrets.masking import MaskingLogger, safe_str
from agentos.stacks.entry import Entry

if TYPE_CHECKING:
    from agentos.access.audit import Audit, AuditExtent
    from agentos.extensions.manager import ExtensionManager

_RECORDS, _SECONDS, _TIMEOUT = 1_000, 300.0, 10.0
_KEY_BYTES, _SIGNATURE_BYTES = 32, 64
_RECEIPT_LIMIT = 10_000


class ProvenanceError(AgentOSError):
    """A log that could not be signed."""


def _check(descriptor: Descriptor[Any]) -> None:
    payload = descriptor.payload
    fault = "expected an object, got a class" if isinstance(payload, type) else None
    fault = fault or fault_of_parameters(getattr(payload, "sign", None), 1) or fault_of_seconds(_timeout(payload))
    fault = fault or (
        None if hasattr(type(payload), "public_key") or hasattr(payload, "public_key") else "no public_key"
    )
    if getattr(payload, "anchor", None) is not None:
        fault = fault or fault_of_parameters(payload.anchor, 1)
    if fault is not None:
        expected = "expected an object with sign(head) and public_key"
        raise DescriptorError(f"provenance {descriptor.id!r}: {expected}; {fault}")


def _timeout(payload: Any) -> Any:
    return getattr(payload, "timeout", _TIMEOUT)


class Provenance:
    """Signs the log as it grows, and writes bundles of it."""

    def __init__(
        self, manager: "ExtensionManager", audit: "Audit", threads: Threads, clock: Callable[[], float]
    ) -> None:
        self._registry = manager.registry(PROVENANCE.name)
        self._audit = audit
        self._threads = threads
        self._clock = clock
        self._masker = manager.masker
        self._logger = MaskingLogger("agentos.provenance", manager.masker)
        self._signed: dict[str, tuple[int, float]] = {}
        """Up to which record each signer has signed, its own checkpoint included, and when."""
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    # -- checkpoints -------------------------------------------------------------------------------------------

    async def look(self, *, now: bool = False) -> None:
        """Make the checkpoints that are due: of each signer that has so many records or seconds; *now*, of any."""
        entries = active_in_order(self._registry)
        if not entries:
            return
        for entry in entries:
            extent = await self._audit.extent()
            waits = self._seconds_left(entry, extent)
            if waits is not None and (now or waits <= 0):
                await self._checkpoint(entry, extent)
            elif waits is not None:
                self._look_again(waits)

    def _seconds_left(self, entry: Entry, extent: "AuditExtent") -> float | None:
        """Return in how many seconds a checkpoint is due; None if nothing was recorded since the last one."""
        loop = asyncio.get_running_loop()
        seq, at = self._signed.setdefault(_name(entry), (0, loop.time()))
        if extent.seq <= seq:
            return None
        if extent.seq - seq >= _number(entry, "every_records", _RECORDS):
            return 0.0
        return max(0.0, at + _number(entry, "every_seconds", _SECONDS) - loop.time())

    def _look_again(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._start)

    def _start(self) -> None:
        self._timer = None
        self._task = asyncio.ensure_future(self.look())

    async def close(self) -> None:
        """Sign what is left: whoever signs goes away after this."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is not None:
            await asyncio.wait([self._task])
        await self.look(now=True)

    async def _checkpoint(self, entry: Entry, extent: "AuditExtent") -> None:
        """Sign the log as it is now, and record that; a signer that fails is told of, and tried again when due."""
        from agentos.access.audit_bundles import CHECKPOINT

        try:
            signed = await self._sign(entry, CHECKPOINT, extent)
            receipt = await self._anchored(entry, signed)
            await self._audit.record(CHECKPOINT, None, provenance=_name(entry), receipt=receipt, signed=signed)
            extent = await self._audit.extent()
        except (ProvenanceError, StoreError) as error:
            self._logger.warning("no checkpoint of the audit log was made: %s", error)
        self._signed[_name(entry)] = (extent.seq, asyncio.get_running_loop().time())

    async def _sign(self, entry: Entry, purpose: str, extent: "AuditExtent") -> dict[str, Any]:
        from agentos.access.audit_bundles import signed_text, statement

        at = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="seconds")
        text = signed_text(purpose, extent, at)
        signature = await self._asked(entry, "sign", text)
        key = await self._public_key(entry)
        if type(signature) is not bytes or type(key) is not bytes:
            raise ProvenanceError(f"{_name(entry)} gave no signature as bytes")
        if (len(key), len(signature)) != (_KEY_BYTES, _SIGNATURE_BYTES):
            raise ProvenanceError(f"{_name(entry)} gave a key or a signature that is not Ed25519's")
        return statement(extent, at, key, signature)

    async def _public_key(self, entry: Entry) -> Any:
        """Return the key as it is now: an attribute, or of a pack in a process of its own a function."""
        return await self._asked(entry, _public_key)

    async def _anchored(self, entry: Entry, signed: dict[str, Any]) -> str | None:
        """Return the receipt of whoever a checkpoint was given to; None if nobody is, or if that failed."""
        try:
            receipt = await self._asked(entry, _anchor, dict(signed))
        except ProvenanceError as error:
            self._logger.warning("a checkpoint of the audit log was not anchored: %s", error)
            return None
        return None if receipt is None else self._masker.mask(safe_str(receipt))[:_RECEIPT_LIMIT]

    async def _asked(self, entry: Entry, finds: str | Finds, *given: Any) -> Any:
        answer, error = await ask_payload(entry, finds, *given, threads=self._threads, seconds=_TIMEOUT)
        if error is not None:
            raise ProvenanceError(f"{_name(entry)} raised {type_name(error)}") from error
        return answer

    # -- bundles -----------------------------------------------------------------------------------------------

    async def export(self, stream: IO[str]) -> int:
        """Write the log as it is now as a bundle that `verify_bundle` checks; return how many records it has."""
        entries = active_in_order(self._registry)
        if not entries:
            raise ProvenanceError("nothing signs the log; load a pack that offers provenance")
        extent = await self._audit.extent()
        signed = await self._sign(entries[0], "bundle", extent)
        stream.write(json.dumps(signed) + "\n")
        return await self._audit.export(stream, last=extent.seq)


def _number(entry: Entry, name: str, default: float) -> float:
    """Return a number that a payload says of itself, or the default if it says none."""
    with Border():
        said = getattr(entry.payload, name, default)
        if type(said) in (int, float) and math.isfinite(said):
            return float(said)
    return default


def _public_key(payload: Any) -> Callable[[], Any]:
    key = payload.public_key
    return key if callable(key) else lambda: key


def _anchor(payload: Any) -> Callable[[Any], Any]:
    anchor = getattr(payload, "anchor", None)
    return _to_nobody if anchor is None else anchor


async def _to_nobody(_: Any) -> None:
    """Give a checkpoint to nobody."""


def _name(entry: Entry) -> str:
    return f"{entry.source.pack}:{entry.id}"


def _describe(payload: Any) -> dict[str, Any]:
    return {
        name: getattr(payload, name) for name in ("every_records", "every_seconds", "timeout") if hasattr(payload, name)
    }


def _functions(payload: Any) -> dict[str, Callable[..., Any]]:
    """Return what may be asked of a payload. Its key is one of them: it may need a secret that is not there yet."""
    anchor = getattr(payload, "anchor", None)
    more = {} if anchor is None else {"anchor": anchor}
    return {"sign": payload.sign, "public_key": lambda: payload.public_key, **more}


PROVENANCE = declare_own_kind(
    Kind(
        "provenance",
        check=_check,
        reader="the audit log: signed checkpoints and bundles",
        crossing=Crossing(describe=_describe, functions=_functions),
    )
)
