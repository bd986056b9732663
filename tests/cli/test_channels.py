"""`agentos channels`: list them, and see to dead letters."""

import json

import pytest
from commanding import Project

PACK = """
from agentos import ChannelMessage, Descriptor, ExtensionPack, NotSentError


class Away:
    async def start(self, deliver): await deliver(ChannelMessage(channel="away", conversation="c", sender="u", id="1"))
    async def send(self, message): raise NotSentError("gone for good", is_final=True)
    async def stop(self): pass


def create_extension_pack():
    return ExtensionPack("away", "1.0", [Descriptor("messaging-channel", "away", Away())])
"""
MANIFEST = 'store = "store.db"\n[principals.ann]\n[channels.away.senders]\nu = "ann"\n[[packs]]\nmodule = "away.py"\n'


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path, MANIFEST, away=PACK)


@pytest.fixture
def letter(project):
    """Return a dead letter of the project's store."""
    import asyncio

    from agentos import AgentOS

    async def leave():
        async with AgentOS(extension_manifest=project.folder / "agentos.toml") as host:
            host.channels.handle(lambda message, principal: "an answer\n\x1b[2J")
            await host.channels.start()
            async with asyncio.timeout(60):
                while not (found := await host.channels.letters()):
                    await asyncio.sleep(0.02)
            return found[0]

    return asyncio.run(leave())


def test_list_shows_channels_and_what_waits(project, letter):
    done = project.run("channels", "list", "--json")

    assert json.loads(done.out)["channels"] == [
        {
            "id": "away",
            "pack": "away",
            "isOn": True,
            "isRunning": False,
            "senders": 1,
            "answeredBy": "handler",
            "waiting": 0,
            "toSend": 0,
            "letters": 1,
        }
    ]
    assert "away" in project.run("channels", "list").out


def test_letters_and_show_tell_why(project, letter):
    listed = project.run("channels", "letters")
    shown = project.run("channels", "show", letter.id[:8])

    assert "gone for good" in listed.out
    assert "gone for good" in shown.out
    assert "\x1b[2J" not in listed.out + shown.out
    told = json.loads(project.run("channels", "show", letter.id, "--json").out)
    assert (told["state"], told["message"]["replyTo"]) == ("dead", "1")


def test_retry_puts_a_letter_back(project, letter):
    assert project.run("channels", "retry", letter.id[:8]).code == 0
    assert json.loads(project.run("channels", "list", "--json").out)["channels"][0]["toSend"] == 1
    again = project.run("channels", "retry", letter.id[:8])
    assert (again.code, "is unknown" in again.err) == (1, True)


def test_drop_gives_a_letter_up(project, letter):
    assert project.run("channels", "drop", letter.id[:8]).code == 0
    assert project.run("channels", "letters").out.strip() == "There are no dead letters."


def test_run_says_what_is_missing(tmp_path):
    done = Project(tmp_path, "[principals.ann]\n").run("channels", "run")

    assert (done.code, "no channel is turned on" in done.err) == (3, True)
