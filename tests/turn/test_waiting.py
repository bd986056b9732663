"""A turn that waits for a person: it ends, is decided on here or elsewhere, and goes on at the calls' own ids."""

import asyncio
import json
import sqlite3
import subprocess
import sys

import attrs
import pytest
from model_wires import Says, tools_of

from agentos import AgentOS, Principal, TurnError
from agentos.turn.turn_outcome import TurnOptions
from agentos.turn.waiting_turns import WaitingTurn, _data, _turn

ANN = Principal("ann")
ADD = ("c1", "add", '{"a": 1, "b": 2}')
SEND = ("c2", "send", '{"to": "bob"}')
OTHER = ("c3", "send", '{"to": "eve"}')


@pytest.fixture
def begin(wire, endpoint, host, client):
    """Return what begins a turn whose calls have to wait."""

    async def begin(*calls, host=host, **options):
        endpoint.script = [Says("One moment.", calls or (ADD, SEND)), Says("All is sent.")]
        return await host.turn(client, wire.asked(), model="m", principal=ANN, **wire.options, **options)

    return begin


def valid(wire, turn):
    assert wire.fault(wire.key(turn.messages)) is None
    return True


async def test_a_turn_that_waits_ends(begin, wire, host, log):
    turn = await begin()
    (waiting,) = await host.approvals.pending()

    assert (turn.stopped_by, turn.pending, turn.steps) == ("approval", (waiting.id,), 1)
    assert (waiting.call_id, log) == ("c2", [("add", 1, 2)])
    assert wire.answer_of(turn.messages, "c2").startswith("Pending:")
    assert valid(wire, turn)


async def test_it_goes_on_when_it_is_approved(begin, wire, host, client, endpoint, log):
    turn = await begin()
    await host.approvals.approve(turn.pending[0])
    after = await host.resume(turn, client)

    assert (after.stopped_by, after.content, after.steps) == ("answer", "All is sent.", 2)
    assert wire.answer_of(after.messages, "c2") == "sent to bob"
    assert wire.answer_of(after.messages, "c1") == '{"sum": 3}'
    assert [result.call_id for result in after.results] == ["c1", "c2"]
    assert log == [("add", 1, 2), ("send", "bob")]
    assert valid(wire, after)


async def test_it_goes_on_when_it_is_rejected(begin, wire, host, client):
    turn = await begin()
    await host.approvals.reject(turn.pending[0], "not today")
    after = await host.resume(turn.id, client)

    assert "a person refused the call: not today" in wire.answer_of(after.messages, "c2")
    assert after.stopped_by == "answer"


async def test_it_waits_on_until_everything_is_decided(begin, wire, host, client, endpoint, log):
    turn = await begin(SEND, OTHER)
    await host.approvals.approve(turn.pending[1])
    still = await host.resume(turn, client)

    assert (still.stopped_by, still.pending, still.id) == ("approval", turn.pending[:1], turn.id)
    assert wire.answer_of(still.messages, "c3") == "sent to eve"
    assert len(endpoint.requests) == 1
    assert valid(wire, still)

    await host.approvals.approve(turn.pending[0])
    after = await host.resume(still, client)

    assert [wire.answer_of(after.messages, id) for id in ("c2", "c3")] == ["sent to bob", "sent to eve"]
    assert log == [("send", "eve"), ("send", "bob")]


async def test_an_edited_call_is_followed_and_the_model_is_told_that_a_person_changed_it(begin, wire, host, client):
    turn = await begin()
    edited = await host.approvals.edit(turn.pending[0], {"to": "eve"})
    still = await host.resume(turn, client)
    await host.approvals.approve(edited.id)
    after = await host.resume(still, client)

    assert still.pending == (edited.id,)
    assert wire.answer_of(after.messages, "c2") == (
        'sent to eve\n\n[A person changed the arguments of this call before it ran. It ran with {"to": "eve"}]'
    )


async def test_a_turn_is_gone_on_with_once(begin, host, client):
    turn = await begin()
    await host.approvals.approve(turn.pending[0])
    await host.resume(turn, client)

    with pytest.raises(TurnError, match="there is no turn"):
        await host.resume(turn, client)
    with pytest.raises(TurnError, match="does not wait"):
        await host.resume(attrs.evolve(turn, id=None), client)


async def test_of_two_that_go_on_with_a_turn_at_once_one_does(begin, host, client, log):
    turn = await begin()
    await host.approvals.approve(turn.pending[0])
    ended = await asyncio.gather(*(host.resume(turn, client) for _ in range(2)), return_exceptions=True)

    assert sorted(type(one).__name__ for one in ended) == ["Turn", "TurnError"]
    assert log == [("add", 1, 2), ("send", "bob")]


async def test_after_an_error_of_the_client_it_can_be_gone_on_with_again(begin, wire, host, client, endpoint, log):
    turn = await begin()
    await host.approvals.approve(turn.pending[0])
    endpoint.script = [Says("", ended="cut")]
    with pytest.raises(Exception):  # noqa: B017 - the SDK's own, or ours
        async for _ in host.resume(turn, client, stream=True):
            pass
    endpoint.script = [Says("All is sent.")]
    after = await host.resume(turn, client)

    assert (after.content, log) == ("All is sent.", [("add", 1, 2), ("send", "bob")])
    assert valid(wire, after)


async def test_a_stream_tells_of_the_approval_and_goes_on(wire, endpoint, host, client):
    endpoint.script = [Says("One moment.", (ADD, SEND)), Says("All is sent.")]
    options = {"model": "m", "principal": ANN, **wire.options}
    first = [event async for event in host.turn(client, wire.asked(), stream=True, **options)]
    approval = next(event for event in first if event.type == "approval")
    await host.approvals.approve(approval.proposal)
    then = [event async for event in host.resume(first[-1].turn, client, stream=True)]

    assert [event.type for event in first if event.type != "text"] == [
        *("tool_call", "tool_call", "tool_result", "approval", "end"),
    ]
    assert [event.result.content for event in then if event.type == "tool_result"] == ["sent to bob"]
    assert "".join(event.text for event in then) == "All is sent."
    assert then[-1].turn.stopped_by == "answer"


async def test_a_waiting_turn_that_was_changed_in_the_store_is_refused(begin, wire, client, log, tmp_path):
    async with AgentOS(store=tmp_path / "s.db") as host:
        await host.tools_service().sync(tools_of(log))
        turn = await begin(host=host)
        await host.approvals.approve(turn.pending[0])
    connection = sqlite3.connect(tmp_path / "s.db")
    connection.execute("UPDATE turns SET data = replace(data, 'bob', 'eve')")
    connection.commit()
    connection.close()
    async with AgentOS(store=tmp_path / "s.db") as host:
        with pytest.raises(TurnError, match="there is no turn"):
            await host.resume(turn.id, client)


async def test_a_known_secret_is_not_written(wire, endpoint, client, log, tmp_path):
    endpoint.script = [Says("", (SEND,)), Says("done")]
    async with AgentOS(store=tmp_path / "s.db") as host:
        await host.tools_service().sync(tools_of(log))
        host.extensions.masker.learn("hunter2-hunter2")
        asked = wire.asked("my password is hunter2-hunter2")
        turn = await host.turn(client, asked, model="m", principal=ANN, **wire.options)
        await host.approvals.approve(turn.pending[0])
        after = await host.resume(turn, client)
        assert "hunter2-hunter2" in str(after.messages)

    assert b"hunter2" not in b"".join(path.read_bytes() for path in tmp_path.glob("s.db*") if path.is_file())


# -- in another process --------------------------------------------------------------------------------------------

PACK = '''
from agentos import PUBLIC, Descriptor, ExtensionPack, tool


@tool(effect="mutate", required_access=PUBLIC)
async def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


def create_extension_pack(context):
    return ExtensionPack(name="letters", descriptors=[Descriptor(kind="tool", id="send", payload=send)])
'''


@pytest.mark.proof
async def test_ask_restart_approve_by_the_command_resume(wire, endpoint, client, tmp_path, monkeypatch):
    """The model gets the result at its own call id, in a process that never saw the question."""
    monkeypatch.setenv("AGENTOS_DATA", str(tmp_path / "data"))
    (tmp_path / "letters.py").write_text(PACK)
    manifest = tmp_path / "agentos.toml"
    manifest.write_text('store = "store.db"\n\n[[packs]]\nmodule = "./letters.py"\n\n[principals.ann]\n')
    endpoint.script = [Says("One moment.", (SEND,)), Says("All is sent.")]
    async with AgentOS(extension_manifest=manifest) as host:
        turn = await host.turn(client, wire.asked(), model="m", principal=ANN, session={"id": "s"}, **wire.options)
    id, (proposal,) = turn.id, turn.pending
    del turn, host

    code = "from agentos.cli.main import main; raise SystemExit(main())"
    command = [sys.executable, "-c", code, "approvals", "approve", proposal[:12], "--yes", "--json"]
    done = await asyncio.to_thread(
        lambda: subprocess.run(
            [*command, "--principal", "ann"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["success"]

    async with AgentOS(extension_manifest=manifest) as host:
        after = await host.resume(id, client)

    assert (after.stopped_by, after.content) == ("answer", "All is sent.")
    assert wire.answer_of(after.messages, "c2") == "sent to bob"
    assert wire.fault(wire.key(after.messages)) is None


@pytest.mark.parametrize("session", ["s1", None])
def test_a_turn_that_is_read_again_has_its_session(session):
    turn = WaitingTurn(
        id="t", api="chat", messages=[], calls=(), results=(), earlier=(), steps=1, tokens=None,
        principal=ANN, session=None, options=TurnOptions(), plan=None,
    )  # fmt: skip
    read = _turn("t", json.loads(json.dumps(_data(turn, session))))

    assert read.session == (None if session is None else {"id": session})
