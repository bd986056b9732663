"""Serve a Bot API of our own on loopback, and hosts whose bot it has."""

import asyncio
import json
import threading
from contextlib import asynccontextmanager

import pytest
from loopback import Site, serving

from agentos import AgentOS

TOKEN = "4242:not-for-others"
JSON = {"Content-Type": "application/json"}
ANN = 4242


def message(number, text="hello", *, sender=ANN, chat=ANN, **more):
    """Return a message as Telegram tells of it."""
    return {
        "message_id": number,
        "from": {"id": sender, "is_bot": False, "first_name": "Ann", "username": "ann"},
        "chat": {"id": chat, "type": "private"},
        "date": 1,
        "text": text,
        **more,
    }


def refusal(status, description="no", **parameters):
    body = {"ok": False, "error_code": status, "description": description, "parameters": parameters}
    return status, JSON, json.dumps(body).encode()


class BotServer(Site):
    """Speaks the part of the Bot API that the pack uses; `troubles[method]` are answers that come first."""

    def __init__(self):
        super().__init__()
        self.token = TOKEN
        self.updates = []
        self.is_deaf = False
        """Whether it forgets what was confirmed."""
        self.sent = []
        self.asked = []
        self.troubles = {}
        self.files = {}
        self.is_closed = False
        self.news = threading.Condition()
        self.pages = self

    def get(self, path, default):
        _, _, rest = path.partition(f"/bot{self.token}/")
        if path.startswith("/file/"):
            return (200, {}, self.files[rest]) if rest in self.files else refusal(404)
        return (lambda request: self.answer(rest, request)) if rest else refusal(401, "Unauthorized")

    def answer(self, method, request):
        said = json.loads(request.body) if request.header("content-type") == "application/json" else request.body
        self.asked.append((method, said))
        if self.troubles.get(method):
            trouble = self.troubles[method].pop(0)
            return trouble(method, said) if callable(trouble) else trouble
        return 200, JSON, json.dumps({"ok": True, "result": getattr(self, method)(said)}).encode()

    def calls(self, method):
        return [said for name, said in self.asked if name == method]

    def write(self, *messages, kind="message"):
        """Let people write."""
        with self.news:
            for one in messages:
                self.updates.append({"update_id": 100 + len(self.updates), kind: one})
            self.news.notify_all()

    def getUpdates(self, said):  # noqa: N802 - as Telegram calls it
        first = 0 if self.is_deaf else said.get("offset", 0)
        with self.news:
            if not self.waiting(first) and not self.is_closed:
                self.news.wait(said["timeout"])
            return self.waiting(first)

    def waiting(self, first):
        numbered = [one for one in self.updates if isinstance(one, dict) and isinstance(one.get("update_id"), int)]
        garbage = [one for one in self.updates if one not in numbered]
        news = [one for one in numbered if one["update_id"] >= first]
        return [*garbage, *news] if news else []

    def sendMessage(self, said):  # noqa: N802
        self.sent.append(said)
        return {"message_id": 900 + len(self.sent), "chat": {"id": said["chat_id"]}}

    def sendDocument(self, said):  # noqa: N802
        self.sent.append(said)
        return {"message_id": 900 + len(self.sent)}

    sendPhoto = sendDocument  # noqa: N815

    def getFile(self, said):  # noqa: N802
        return {"file_id": said["file_id"], "file_path": f"files/{said['file_id']}"}


@pytest.fixture
def bot():
    with serving(BotServer()) as site:
        yield site
        with site.news:
            site.is_closed = True
            site.news.notify_all()


@pytest.fixture
def until():
    """Return a function that waits until something is so."""

    async def wait(condition):
        async with asyncio.timeout(60):
            while not (found := condition()):  # noqa: ASYNC110 - what is waited for happens in a thread
                await asyncio.sleep(0.01)
        return found

    return wait


@pytest.fixture
def hosting(bot):
    """Return a context manager for a host with the pack, on the Bot API of ours, which echoes what it is told."""

    @asynccontextmanager
    async def host(*, handler=None, token=TOKEN, channels=True, chats=None, mode="auto", isolation="inline", **options):
        entry = {
            "module": "agentos_pack_telegram",
            "options": {"baseUrl": bot.url, "poll": 20, "chats": chats or {}, **options},
            "required": True,
            "isolation": isolation,
        }
        manifest = {
            "principals": {"ann": {}},
            "channels": {"telegram": {"senders": {str(ANN): "ann"}}},
            "packs": [entry],
        }

        async def echo(message, principal):
            return f"{principal.id}: {message.text}"

        secrets = {"telegram.botToken": token}
        async with AgentOS(extension_manifest=manifest, extension_secrets=secrets, mode=mode) as made:
            made.channels.handle(handler or echo)
            if channels:
                await made.channels.start()
            yield made

    return host
