"""`agentos serve` runs the channels that the manifest turns on: they answer, are stopped in time, and lose nothing."""

import json
import re
import signal
import threading
import uuid

import httpx2
import pytest
from commanding import Project
from model_wires import WIRES, Says, serving
from terminal import PATIENCE

CHAT = "/packs/webchat/webchat/"
HEAD = 'store = "state.db"\n[principals.ann]\n[channels.webchat.senders]\nann = "ann"\n'
PACK = '\n[[packs]]\nmodule = "agentos_pack_webchat"\n'
HTTP = ("serve", "--http", "--port", "0", "--principal", "ann")
BAD = """
import asyncio

from agentos import Descriptor, ExtensionPack


class Bad:
    timeout = 1000.0

    async def start(self, deliver): raise RuntimeError("it never starts")
    async def send(self, message): return ""
    async def stop(self): await asyncio.Event().wait()


def create_extension_pack():
    return ExtensionPack("bad", "1.0", [Descriptor("messaging-channel", "bad", Bad())])
"""
BAD_MANIFEST = (
    'store = "state.db"\n[principals.ann]\n[channels.bad]\n[channels.absent]\nmodel = "any"\n'
    '[channels.off]\nenabled = false\n[[packs]]\nmodule = "bad.py"\n'
)


@pytest.fixture
def endpoint():
    with serving(WIRES["chat"]) as endpoint:
        endpoint.script = [Says("Hello, Ann.")]
        yield endpoint


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path, HEAD + PACK)


def with_model(project, endpoint):
    said = f'[channels.webchat]\nmodel = "any"\nbaseUrl = "{endpoint.url}/v1"\n'
    project.write(
        "agentos.toml", HEAD.replace("[channels.webchat.senders]", f"{said}[channels.webchat.senders]") + PACK
    )
    project.env["OPENAI_API_KEY"] = "k-1234567890"


@pytest.fixture
def begun(project, started):
    """Return a function that starts a command in the project."""
    return lambda *arguments: started(*arguments, cwd=project.folder, env=project.env)


def client_of(child):
    address = re.search(r"http://\S+", child.until("serving"))[0].removesuffix("/mcp")
    return httpx2.Client(base_url=address, trust_env=False, timeout=PATIENCE)


def say(client, text="hello"):
    """Post a message, until the channel is there to take it."""
    said = {"id": str(uuid.uuid4()), "conversation": "main", "text": text}
    while (answer := client.post(CHAT + "messages", json=said)).status_code == 503:
        pass
    return answer


def heard(client):
    """Return the first answer that a page is told of, and take it."""
    with client.stream("GET", CHAT + "events?conversation=main") as answer:
        assert answer.status_code == 200
        last = None
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if name == "id":
                last = value
            elif name == "data" and (said := json.loads(value))["from"] == "agent":
                client.post(CHAT + "taken", json={"conversation": "main", "last": last})
                return said["text"]
    raise AssertionError("the stream ended without an answer")


def state_of(project):
    (one,) = json.loads(project.run("channels", "list", "--json").out)["channels"]
    return one["waiting"], one["toSend"], one["letters"]


def test_a_channel_answers_by_turns_while_it_is_served(project, begun, endpoint):
    with_model(project, endpoint)
    child = begun(*HTTP)
    assert "running the channel webchat" in child.until("running")
    with client_of(child) as client:
        assert say(client).status_code == 202
        assert heard(client) == "Hello, Ann."
    code, _, err = child.end(signal.SIGTERM)

    assert (code, err) == (0, "")
    assert state_of(project) == (0, 0, 0)


def test_what_is_not_answered_when_it_ends_is_answered_by_the_next(project, begun, endpoint, monkeypatch):
    with_model(project, endpoint)
    asked, go = threading.Event(), threading.Event()
    answer = type(endpoint).answer

    def held(self, path, body):
        asked.set()
        go.wait(PATIENCE)
        return answer(self, path, body)

    monkeypatch.setattr(type(endpoint), "answer", held)
    first = begun(*HTTP)
    with client_of(first) as client:
        say(client)
        assert asked.wait(PATIENCE)
        code = first.end(signal.SIGTERM)[0]
    go.set()
    between = state_of(project)
    second = begun(*HTTP)
    with client_of(second) as client:
        told = heard(client)

    assert (code, between, told) == (0, (1, 0, 0), "Hello, Ann.")


def test_a_channel_that_nothing_answers_is_said_and_what_comes_in_waits(project, begun):
    child = begun(*HTTP)
    assert "names no model" in child.until("channel webchat")
    with client_of(child) as client:
        assert say(client).status_code == 202
    assert child.end(signal.SIGTERM)[0] == 0

    assert state_of(project) == (1, 0, 0)


def test_channels_may_be_left_out(project, begun):
    child = begun(*HTTP, "--no-channels")
    with client_of(child) as client:
        told = client.post(CHAT + "messages", json={"id": str(uuid.uuid4()), "conversation": "main", "text": "x"})
    assert child.end(signal.SIGTERM)[:2] == (0, "")

    assert (told.status_code, told.json()["error"]) == (503, "channel_off")


def test_a_channel_that_fails_ends_nothing_and_keeps_nothing_from_ending(tmp_path, started):
    project = Project(tmp_path, BAD_MANIFEST, bad=BAD)
    child = started(*HTTP, "--limit", "stop=1", cwd=project.folder, env=project.env)
    told = ""
    while "serving" not in told or "could not be started" not in told:
        told += child.stderr.readline()
    address = re.search(r"http://\S+", told)[0]
    with httpx2.Client(trust_env=False) as client:
        assert client.get(address.replace("/mcp", "/health")).status_code == 200
    code = child.end(signal.SIGTERM)[0]

    for words in ("no pack that is in force offers the channel absent", "bad knows no senders", "bad names no model"):
        assert words in told
    assert "running the channels absent, bad\n" in told
    assert code == 0


@pytest.mark.parametrize(("store", "said"), [(True, "running the channel webchat"), (False, "not running the channel")])
def test_over_stdio_channels_run_if_a_store_keeps_what_waits(project, begun, store, said):
    if not store:
        project.write("agentos.toml", (HEAD + PACK).partition("\n")[2])
    child = begun("serve", "--log-format", "json")
    out, err = child.communicate("", timeout=PATIENCE)

    assert (child.returncode, out) == (0, "")
    assert any(json.loads(line)["message"].startswith(said) for line in err.splitlines())


def test_without_a_channel_nothing_is_said_of_any(tmp_path, started):
    project = Project(tmp_path, "[channels.webchat]\nenabled = false\n")
    child = started("serve", cwd=project.folder, env=project.env)
    err = child.communicate("", timeout=PATIENCE)[1]

    assert child.returncode == 0
    assert "channel" not in err
