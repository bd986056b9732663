"""A channel in a process of its own: it delivers, is answered, and goes on in the next process if one ended."""

import contextlib
import json
import os
import signal

from bussing import until
from channelling import MANIFEST
from working import PACKS, PATIENT, worker_of

from agentos import AgentOS, ChannelMessage, Media


class Office:
    """The folder of a channel, from the outside."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "in").mkdir()

    def post(self, id, text, sender="u1"):
        written = self.folder / f"{id}.letter"
        written.write_text(json.dumps({"id": str(id), "text": text, "sender": sender}))
        written.rename(self.folder / "in" / str(id))

    @property
    def notes(self):
        file = self.folder / "notes"
        return [line.split("|") for line in file.read_text().splitlines()] if file.exists() else []

    def told(self, what):
        return [rest for _, word, *rest in self.notes if word == what]


@contextlib.asynccontextmanager
async def served(folder, handler, **options):
    office = Office(folder)
    module = str(PACKS / "postbox.py")
    pack = {"module": module, "isolation": "process", "options": {"folder": str(folder), **options}, "eager": True}
    host = AgentOS(extension_manifest={**MANIFEST, "packs": [pack]}, budget=None)
    host.workers.rules = PATIENT
    async with host:
        host.channels.handle(handler)
        await host.channels.start()
        yield host, office


async def echo(message, principal):
    return message.text


async def test_it_delivers_and_sends_from_its_process(tmp_path):
    async def with_a_note(message, principal):
        note = Media(data=f"for {principal.id}".encode(), mime="text/plain")
        return ChannelMessage(channel="post", conversation="c1", text=message.text.upper(), attachments=[note])

    async with served(tmp_path, with_a_note) as (host, office):
        office.post(1, "good day")
        await until(lambda: office.told("sent"))
        office.post(1, "good day again")
        await until(lambda: len(office.told("delivered")) == 2)
        assert {int(pid) for pid, *_ in office.notes} == {worker_of(host, "postbox").pid}

    assert office.told("delivered") == [["1 True"], ["1 False"]]
    assert [json.loads(said) for [said] in office.told("sent")] == [["GOOD DAY", "1", [["for ann", "text/plain"]]]]
    assert office.told("stopped") == [[]]


async def test_what_was_not_sent_is_known_as_such(tmp_path):
    async with served(tmp_path, echo) as (host, office):
        for id, text in ((1, "later"), (2, "never"), (3, "end")):
            office.post(id, text)
            await until(lambda id=id: len(office.told("delivered")) == id)
        await until(lambda: len(office.told("sent")) == 2)
        letters = await host.channels.letters()

    assert [json.loads(said)[0] for [said] in office.told("sent")] == ["later", "end"]
    assert [(one.state, one.reason) for one in letters] == [("dead", "no such address")]


async def test_it_goes_on_in_the_next_process_if_one_was_killed(tmp_path):
    async with served(tmp_path, echo) as (host, office):
        office.post(1, "before")
        await until(lambda: office.told("sent"))
        first = worker_of(host, "postbox").pid
        os.kill(first, signal.SIGKILL)
        office.post(2, "after")
        await until(lambda: len(office.told("sent")) == 2)

    [last] = {int(pid) for pid, word, *rest in office.notes if word == "sent" and "after" in rest[0]}
    assert last != first
    assert [json.loads(said)[0] for [said] in office.told("sent")] == ["before", "after"]


async def test_a_start_that_fails_is_told_as_from_the_host(tmp_path, caplog):
    async with served(tmp_path, echo, fails=True) as (host, _):
        await until(lambda: any("the post office is closed" in one.message for one in caplog.records))
        assert await host.channels.letters() == []
