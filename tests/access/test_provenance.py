"""The audit log signed as it grows, and bundles of it that are verified with a public key alone."""

import io
import json

import attrs
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentos import PUBLIC, AgentOS, Descriptor, ExtensionPack, Principal, ToolCall, tool
from agentos.access.audit import record_hash
from agentos.access.audit_bundles import read_public_key, verify_bundle
from agentos.kinds.provenance import ProvenanceError

ADA = Principal("ada")


@tool(effect="read", required_access=PUBLIC)
async def look(n: int) -> int:
    """Look."""
    return n


@attrs.define(eq=False, slots=False)
class Signer:
    """Signs with a key of its own, and keeps what it anchored."""

    every_records: int = 5
    every_seconds: float = 3600.0
    key: Ed25519PrivateKey = attrs.field(factory=Ed25519PrivateKey.generate)
    anchored: list = attrs.field(factory=list)

    @property
    def public_key(self):
        return self.key.public_key().public_bytes_raw()

    async def sign(self, head):
        return self.key.sign(head)

    async def anchor(self, checkpoint):
        self.anchored.append(checkpoint)
        return f"receipt {len(self.anchored)}"


async def hosted(signer, store=None):
    host = AgentOS(store=store)
    await host.initialize()
    found = [] if signer is None else [Descriptor("provenance", "ours", signer)]
    await host.extensions.load_pack(ExtensionPack("signing", "1.0", [look, *found]))
    return host


async def looked(host, times):
    for number in range(times):
        await host.tools.process_tool_call(ToolCall("look", {"n": number}), ADA)
    await host.audit.commit()
    await host.provenance.look()


async def bundle_of(signer, store=None, rounds=4):
    """Return the lines of a bundle of a log with a few checkpoints in it."""
    host = await hosted(signer, store)
    try:
        for _ in range(rounds):
            await looked(host, 6)
        stream = io.StringIO()
        await host.provenance.export(stream)
    finally:
        await host.shutdown()
    return stream.getvalue().splitlines(keepends=True)


@pytest.fixture
def signer():
    return Signer()


@pytest.fixture
async def bundle(signer, anyio_backend):
    return await bundle_of(signer)


def wrong(lines, signer):
    """Return what a verification names."""
    verdict = verify_bundle(lines, signer.public_key)
    assert not verdict.ok
    return verdict.reason


def rewritten(lines, number, **changes):
    """Return a bundle in which a record is changed, and every hash from there on made to fit."""
    head, records = lines[0], [json.loads(line) for line in lines[1:]]
    records[number] |= changes
    for record, before in zip(records[number:], [records[number - 1], *records[number:]], strict=False):
        record["prev"] = before["hash"]
        record["hash"] = record_hash(record["seq"], record["prev"], record["body"])
    return [head, *(json.dumps(record) for record in records)]


# -- checkpoints -------------------------------------------------------------------------------------------------------


async def test_the_log_is_signed_as_it_grows(signer):
    host = await hosted(signer)
    try:
        await looked(host, 6)
        await looked(host, 1)
        await looked(host, 6)
        found = [one for one in await host.audit.records() if one.event == "checkpoint"]
    finally:
        await host.shutdown()

    assert len(found) == 2
    assert found[0].data["provenance"] == "signing:ours"
    assert [one.data["receipt"] for one in found] == ["receipt 1", "receipt 2"]
    assert found[1].data["signed"]["public_key"] == signer.public_key.hex()


async def test_what_is_left_is_signed_when_the_host_ends(signer, tmp_path):
    signer.every_records = 1_000
    host = await hosted(signer, tmp_path / "store.db")
    await host.tools.process_tool_call(ToolCall("look", {"n": 1}), ADA)
    await host.shutdown()
    lines = await bundle_of(signer, tmp_path / "store.db", rounds=0)

    events = [json.loads(json.loads(line)["body"])["event"] for line in lines[1:]]
    assert "checkpoint" in events
    assert verify_bundle(lines, signer.public_key).ok


async def test_nothing_new_is_not_signed_again(signer):
    host = await hosted(signer)
    try:
        await looked(host, 6)
        before = len(signer.anchored)
        await host.provenance.look(now=True)
        await host.provenance.look(now=True)
    finally:
        await host.shutdown()

    assert before == len(signer.anchored) == 1


async def test_a_signer_that_fails_costs_no_call(signer, caplog):
    async def fail(head):
        raise RuntimeError("no key today")

    signer.sign = fail
    host = await hosted(signer)
    try:
        await looked(host, 6)
        result = await host.tools.process_tool_call(ToolCall("look", {"n": 1}), ADA)
        with pytest.raises(ProvenanceError, match="signing:ours raised RuntimeError"):
            await host.provenance.export(io.StringIO())
    finally:
        await host.shutdown()

    assert result.success
    assert "no checkpoint of the audit log was made" in caplog.text


@pytest.mark.parametrize("payload", [object(), Signer, attrs.make_class("Mute", ["public_key"])(b"")])
async def test_what_can_not_sign_is_refused_when_it_is_loaded(payload):
    async with AgentOS() as host:
        bad = ExtensionPack("bad", "1.0", [Descriptor("provenance", "bad", payload)])
        outcome = await host.extensions.load_pack(bad)

    assert "expected an object with sign(head) and public_key" in str(outcome.error)


async def test_without_a_signer_there_is_no_bundle():
    host = await hosted(None)
    try:
        with pytest.raises(ProvenanceError, match="nothing signs the log"):
            await host.provenance.export(io.StringIO())
    finally:
        await host.shutdown()


# -- bundles -----------------------------------------------------------------------------------------------------------


def test_a_bundle_is_verified_with_the_public_key_alone(bundle, signer):
    verdict = verify_bundle(bundle, read_public_key(signer.public_key.hex()))

    assert (verdict.ok, verdict.records) == (True, len(bundle) - 1)


def test_a_changed_record_is_named(bundle, signer):
    bundle[4] = bundle[4].replace("look", "leak")

    assert wrong(bundle, signer) == "record 4 was changed: its hash does not fit its text"


def test_a_changed_record_with_a_hash_that_fits_is_named_by_its_successor(bundle, signer):
    record = json.loads(bundle[4])
    record["body"] = record["body"].replace("look", "leak")
    record["hash"] = record_hash(record["seq"], record["prev"], record["body"])
    bundle[4] = json.dumps(record)

    assert wrong(bundle, signer) == "record 5 does not follow the one before it: one of them was changed"


def test_a_log_that_was_rewritten_whole_is_named_by_the_first_checkpoint_after_it(bundle, signer):
    """The hashes all fit: who holds the store could have written it so."""
    body = json.loads(bundle[2])["body"].replace("look", "leak")
    lines = rewritten(bundle, 1, body=body)

    assert "is not the one that the checkpoint in record" in wrong(lines, signer)


def test_a_record_that_is_left_out_is_named(bundle, signer):
    del bundle[4]

    assert wrong(bundle, signer) == "record 4 is missing"


@pytest.mark.parametrize("number", [1, 7])
def test_a_record_that_was_added_is_named(bundle, signer, number):
    bundle.insert(number + 1, bundle[number])

    assert wrong(bundle, signer) == f"record {number} is there again, or was added"


def test_a_record_that_was_added_at_the_end_is_named(bundle, signer):
    last = json.loads(bundle[-1])
    added = {"seq": last["seq"] + 1, "prev": last["hash"], "body": last["body"]}
    added["hash"] = record_hash(added["seq"], added["prev"], added["body"])

    assert f"record {added['seq']} was added" in wrong([*bundle, json.dumps(added)], signer)


def test_records_that_were_swapped_are_named(bundle, signer):
    bundle[3], bundle[4] = bundle[4], bundle[3]

    assert wrong(bundle, signer) == "record 4 stands in the place of record 3"


@pytest.mark.parametrize(("cut", "words"), [(1, "record {last} is"), (3, "records {first} to {last} are")])
def test_records_that_were_cut_off_are_named(bundle, signer, cut, words):
    last = len(bundle) - 1
    said = words.format(first=last - cut + 1, last=last)

    assert wrong(bundle[:-cut], signer).startswith(f"{said} missing at the end")


def test_a_log_that_was_cut_at_a_checkpoint_is_no_bundle(bundle, signer):
    """A checkpoint signs less than a bundle: it can't stand at its beginning."""
    bodies = [json.loads(json.loads(line)["body"]) for line in bundle[1:]]
    head = next(body["signed"] for body in bodies if body["event"] == "checkpoint")

    cut = [json.dumps(head), *bundle[1 : head["seq"] + 1]]
    assert wrong(cut, signer) == "the statement at the beginning was changed: its signature does not fit"


def test_a_statement_of_less_does_not_fit(bundle, signer):
    head = json.loads(bundle[0])
    head |= {"seq": head["seq"] - 1, "hash": json.loads(bundle[-1])["prev"]}

    assert "its signature does not fit" in wrong([json.dumps(head), *bundle[1:-1]], signer)


def test_another_key_is_told(bundle):
    assert wrong(bundle, Signer()) == "the statement at the beginning is signed with another key"


@pytest.mark.parametrize("text", ["", "null", "[]", "{", '{"seq": 1}', '"x"'])
def test_what_is_no_bundle_is_told(text, signer):
    assert wrong(text.splitlines(), signer).startswith("this is no bundle that can be read")


@pytest.mark.parametrize(
    ("lines", "named"),
    [([], "it is empty"), (["{"], "its first line is not the signed"), (["{}"], "its first line is not the signed")],
)
def test_what_is_wrong_with_it_is_said_in_words(lines, named, signer):
    assert wrong(lines, signer).startswith(f"this is no bundle that can be read: {named}")


def test_a_record_that_is_no_record_is_told(bundle, signer):
    assert wrong([*bundle, '{"seq": "1"}'], signer).startswith("this is no bundle that can be read")


@pytest.mark.parametrize("text", ["", "ab", "g" * 64])
def test_what_is_no_public_key_is_refused(text):
    with pytest.raises(ValueError, match="expected a public key of 32 bytes"):
        read_public_key(text)
