"""A pack with a channel whose service is a folder: letters come as files in `in`, answers go as files to `out`."""

import asyncio
import contextlib
import json
import os
from pathlib import Path

from agentos import ChannelMessage, Descriptor, ExtensionPack, NotSentError


class Postbox:
    timeout = 20.0

    def __init__(self, folder, fails):
        self._folder = folder
        self._fails = fails
        self._task = None

    async def start(self, deliver):
        if self._fails:
            raise RuntimeError("the post office is closed")
        self._note("started")
        self._task = asyncio.create_task(self._watch(deliver))

    async def send(self, message):
        if message.text == "never":
            raise NotSentError("no such address", is_final=True)
        if message.text == "later" and not (self._folder / "asked").exists():
            (self._folder / "asked").touch()
            raise NotSentError("the van is full", retry_after=0.0)
        said = [message.text, message.reply_to, [[one.data.decode(), one.mime] for one in message.attachments]]
        self._note("sent", json.dumps(said))
        return f"receipt {message.reply_to}"

    async def stop(self):
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._note("stopped")

    async def _watch(self, deliver):
        while True:
            for letter in sorted((self._folder / "in").iterdir()):
                said = json.loads(letter.read_text())
                is_new = await deliver(ChannelMessage(channel="post", conversation="c1", **said))
                self._note("delivered", f"{said['id']} {is_new}")
                letter.unlink()
                await deliver.resume("c1")
            await asyncio.sleep(0.02)

    def _note(self, *words):
        with (self._folder / "notes").open("a") as notes:
            notes.write("|".join([str(os.getpid()), *words]) + "\n")


def create_extension_pack(context):
    channel = Postbox(Path(context.options["folder"]), context.options.get("fails", False))
    return ExtensionPack("postbox", "1.0", [Descriptor("messaging-channel", "post", channel)])
