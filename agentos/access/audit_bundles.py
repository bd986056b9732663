"""Signed heads of the audit log, and bundles of it that are verified with a public key alone.

A bundle is a file of JSON lines: a statement of which records follow, signed, and then each record. Checkpoints among
the records are signed as well, so that who rewrites the log before one needs the signer's key.
"""

import binascii
import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from agentos.access.audit import AuditExtent, AuditVerdict, record_hash
from agentos.base.extras import import_extra

CHECKPOINT = "checkpoint"
"""The event of a record that signs what is before it."""
_ALGORITHM = "ed25519"
_KEY_BYTES = 32


def signed_text(purpose: str, extent: AuditExtent, at: str) -> bytes:
    """Return what is signed of a log; *purpose* keeps a checkpoint from standing for a whole bundle."""
    facts = (extent.first_seq, extent.first_prev, extent.seq, extent.hash, at)
    return "\n".join([f"agentos audit {purpose} 1", *map(str, facts)]).encode()


def statement(extent: AuditExtent, at: str, public_key: bytes, signature: bytes) -> dict[str, Any]:
    """Return a signed head as JSON."""
    signed = {"algorithm": _ALGORITHM, "public_key": public_key.hex(), "signature": signature.hex()}
    return {**attrs.asdict(extent), "at": at, **signed}


def verify_bundle(lines: Iterable[str], public_key: bytes) -> AuditVerdict:
    """Say whether a bundle is as it was signed; if not, name the first record that was changed, left out or added."""
    read = iter(lines)
    try:
        head = _SignedHead.of_line(next(read, ""))
        fault = head.fault("bundle", public_key)
        if fault is not None:
            return AuditVerdict(ok=False, reason=f"the statement at the beginning {fault}")
        rows = [_row(line) for line in read if line.strip()]
        walk = _BundleWalk(head.extent, public_key, {row["seq"] for row in rows})
        wrong = next(filter(None, map(walk.step, rows)), None) or walk.fault_of_end()
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        return AuditVerdict(ok=False, reason=f"this is no bundle that can be read: {error}")
    if wrong is not None:
        return AuditVerdict(ok=False, broken_at=walk.last + 1, reason=wrong, records=walk.count)
    return AuditVerdict(ok=True, records=walk.count)


def _row(line: str) -> dict[str, Any]:
    row = json.loads(line)
    if type(row["seq"]) is not int or not all(type(row[key]) is str for key in ("prev", "hash", "body")):
        raise ValueError("a value of a record is not of its type")
    return {key: row[key] for key in ("seq", "prev", "hash", "body")}


@attrs.frozen
class _SignedHead:
    """A signed head, as it was read."""

    extent: AuditExtent
    at: str
    algorithm: str
    public_key: str
    signature: str

    @classmethod
    def of_line(cls, line: str) -> "_SignedHead":
        """Return the signed statement that a bundle begins with; raise ValueError if the line is another."""
        if not line.strip():
            raise ValueError("it is empty")
        try:
            return cls.of(json.loads(line))
        except (ValueError, TypeError, LookupError) as error:
            raise ValueError("its first line is not the signed statement") from error

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "_SignedHead":
        extent = AuditExtent(int(data["first_seq"]), str(data["first_prev"]), int(data["seq"]), str(data["hash"]))
        return cls(extent, *(str(data[key]) for key in ("at", "algorithm", "public_key", "signature")))

    def fault(self, purpose: str, public_key: bytes) -> str | None:
        """Say what is wrong with the signature; None if the owner of *public_key* made it."""
        if self.algorithm != _ALGORITHM:
            return f"is signed by {self.algorithm[:40]}, which is not known here"
        if self.public_key != public_key.hex():
            return "is signed with another key"
        if not _is_signed(signed_text(purpose, self.extent, self.at), self.signature, public_key):
            return "was changed: its signature does not fit"
        return None


def _is_signed(text: bytes, signature: str, public_key: bytes) -> bool:
    ed25519 = import_extra("cryptography.hazmat.primitives.asymmetric.ed25519", "secrets")
    exceptions = import_extra("cryptography.exceptions", "secrets")
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(public_key).verify(bytes.fromhex(signature), text)
    except (exceptions.InvalidSignature, ValueError):
        return False
    return True


class _BundleWalk:
    """Where a verification is: after which record, with which hash."""

    def __init__(self, extent: AuditExtent, public_key: bytes, there: set[int]) -> None:
        self._extent = extent
        self._public_key = public_key
        self._there = there
        self._hashes: dict[int, str] = {}
        self._previous = extent.first_prev
        self.last = extent.first_seq - 1
        self.count = 0

    def step(self, row: Mapping[str, Any]) -> str | None:
        """Go on to *row*; say what is wrong with it instead."""
        fault = self._fault_of_place(row["seq"]) or self._fault_of_text(row) or self._fault_of_checkpoint(row)
        if fault is not None:
            return fault
        self.last, self._previous = row["seq"], row["hash"]
        self._hashes[self.last] = self._previous
        self.count += 1
        return None

    def _fault_of_place(self, seq: int) -> str | None:
        expected = self.last + 1
        if seq > self._extent.seq or seq < self._extent.first_seq:
            return f"record {seq} was added: the signed log goes from {self._extent.first_seq} to {self._extent.seq}"
        if seq < expected:
            return f"record {seq} is there again, or was added"
        if seq == expected:
            return None
        if expected in self._there:
            return f"record {seq} stands in the place of record {expected}"
        return f"record {expected} is missing"

    def _fault_of_text(self, row: Mapping[str, Any]) -> str | None:
        if row["hash"] != record_hash(row["seq"], row["prev"], row["body"]):
            return f"record {row['seq']} was changed: its hash does not fit its text"
        if row["prev"] != self._previous:
            return f"record {row['seq']} does not follow the one before it: one of them was changed"
        return None

    def _fault_of_checkpoint(self, row: Mapping[str, Any]) -> str | None:
        """Hold a checkpoint of the same signer against the records before it."""
        data = json.loads(row["body"])
        if data["event"] != CHECKPOINT or data["signed"]["public_key"] != self._public_key.hex():
            return None
        signed = _SignedHead.of(data["signed"])
        if (fault := signed.fault(CHECKPOINT, self._public_key)) is not None:
            return f"the checkpoint in record {row['seq']} {fault}"
        seq = signed.extent.seq
        if seq >= self._extent.first_seq and self._hashes.get(seq) != signed.extent.hash:
            return f"the log up to record {seq} is not the one that the checkpoint in record {row['seq']} signed"
        return None

    def fault_of_end(self) -> str | None:
        """Say what is wrong with where the walk ended."""
        last, seq = self.last, self._extent.seq
        if last < seq:
            missing = f"record {last + 1} is" if seq == last + 1 else f"records {last + 1} to {seq} are"
            return f"{missing} missing at the end: the signed statement says that the last one is {seq}"
        if self._previous != self._extent.hash:
            return "the last record is not the one that was signed: records were rewritten"
        return None


def read_public_key(text: str) -> bytes:
    """Return a public key from its hexadecimal digits; raise ValueError if it is invalid."""
    try:
        key = binascii.unhexlify(text.strip())
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise ValueError(f"expected a public key of {_KEY_BYTES} bytes as hexadecimal digits")
    return key
