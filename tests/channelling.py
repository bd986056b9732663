"""A messaging service in memory, its channel, and hosts that are on it."""

import asyncio
import contextlib

from agentos import AgentOS, ChannelMessage, Descriptor, ExtensionPack, NotSentError

MANIFEST = {
    "principals": {"ann": {}, "bob": {}},
    "channels": {"post": {"senders": {"u1": "ann", "u2": "bob"}}},
}


class Post:
    """A service: what was sent, and what goes wrong next."""

    def __init__(self):
        self.sent = []
        self.troubles = []
        self.deliver = None
        self.news = asyncio.Event()

    async def start(self, deliver):
        self.deliver = deliver
        self.news.set()

    async def send(self, message):
        if self.troubles and (trouble := self.troubles.pop(0)) is not None:
            raise trouble
        self.sent.append(message)
        self.news.set()
        return f"r{len(self.sent)}"

    async def stop(self):
        self.deliver = None

    async def until(self, condition):
        """Wait until something is so; looked at whenever the service hears something."""
        async with asyncio.timeout(60):
            while not condition():
                self.news.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await self.news.wait()


def message(id, text="hello", *, conversation="c1", sender="u1", **more):
    return ChannelMessage(channel="post", conversation=conversation, sender=sender, text=text, id=str(id), **more)


def pack(post, *more, name="post-office"):
    return ExtensionPack(name, "1.0.0", [Descriptor("messaging-channel", "post", post), *more])


@contextlib.asynccontextmanager
async def on_channels(*posts, store=None, manifest=MANIFEST, handler=None, more=(), **options):
    """Give one host for each of *posts*, at work; all of them on the same store."""
    async with contextlib.AsyncExitStack() as stack:
        hosts = []
        for post in posts:
            host = AgentOS(
                extension_manifest={**manifest, "packs": [{"factory": pack(post, *more)}]}, store=store, **options
            )
            await stack.enter_async_context(host)
            if handler is not None:
                host.channels.handle(handler)
            await host.channels.start()
            hosts.append(host)
        for post in posts:
            await post.until(lambda post=post: post.deliver is not None)
        yield hosts


def not_sent(**more):
    return NotSentError("the service is away", **more)
