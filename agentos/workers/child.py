"""The process of a pack: `python -m agentos.workers.child READ WRITE [LIMIT]`, with two inherited descriptors.

It makes the pack when it is asked to, and then runs its functions. Standard output and error are the pack's own.
"""

import asyncio
import importlib
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import agentos.kinds  # noqa: F401 - declares how each kind crosses
from agentos.base.foreign import call_with, settled
from agentos.base.locks import ChangeLocks
from agentos.calls.threads import ToolThreads
from agentos.extensions.services import ServiceHub
from agentos.loading.finder import Finder
from agentos.model.extension_pack import ExtensionPack
from agentos.model.kind import kind_of
from agentos.model.manifest import PackEntry
from agentos.model.pack_context import PackContext
from agentos.model.source import Source
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.tools.tool import is_async
from agentos.workers.channel import Channel
from agentos.workers.child_contexts import LOGGERS, Key, PackHome, in_thread
from agentos.workers.declaration import declare, troubles_of
from agentos.workers.frames import MESSAGE_LIMIT
from agentos.workers.peer import Peer
from agentos.workers.process_limits import end_if_out_of_memory
from agentos.workers.wire_values import decode_error, encode_error, whole_or_nothing


class _LogToHost(logging.Handler):
    """Tells the host what is logged here."""

    def __init__(self, peer: Peer) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter())  # the host says level and name, as for any pack
        self._peer = peer

    def emit(self, record: logging.LogRecord) -> None:
        name = "" if record.name.startswith(LOGGERS) else record.name
        self._peer.notify("log", {"name": name, "level": record.levelno, "text": whole_or_nothing(self.format(record))})


class PackServer:
    """Serves one pack: makes it, runs its hooks, and calls its functions."""

    def __init__(self, channel: Channel, limit: int) -> None:
        self._threads = ToolThreads()
        self._peer = Peer(channel.write, self._handle, limit=limit)
        self._home = PackHome(channel, self._peer, self._threads)
        self._peer.readers = self._home.readers
        self._pack: ExtensionPack | None = None
        self._services = ServiceHub(ChangeLocks(), Masker(), MaskingLogger("agentos.services", Masker()))
        self._functions: dict[tuple[Key, str], tuple[Any, Callable[..., Any], bool]] = {}
        channel.start(self._peer)

    async def _handle(self, op: str, body: Any) -> Any:
        if op == "call":
            return await self._call(tuple(body["key"]), body["function"], body["args"], body.get("kwargs", {}))
        if op == "make":
            return await self._make(**body)
        if op == "hook":
            return await self._run_hook(body["of"], body["name"], body["context"])
        if op == "check":
            return troubles_of(self._owner(body))
        if op == "sign":
            return None
        if op == "end":
            return [str(error) for error in await self._services.release_all(self)]
        raise ValueError(f"the process of a pack knows no operation {op!r}")

    # -- making the pack -----------------------------------------------------------------------------------------------

    async def _make(self, entry: Mapping[str, Any], source: Source, log_level: int) -> dict[str, Any]:
        """Make the pack, anew if it was made before; return its declaration."""
        logging.basicConfig(level=log_level, handlers=[_LogToHost(self._peer)], force=True)
        here = _entry(entry)
        logger: Any = logging.getLogger(f"{LOGGERS}{source.pack}")
        self._home.context = context = PackContext(
            options=here.options,
            services=self._services.handle(self, source.pack),
            logger=logger,
            manifest_entry=here,
            source=source,
            secrets=self._home.secrets,  # type: ignore[arg-type]  # as much of it as a pack can reach
        )
        pack = await Finder().find(here).make(here.label, context)
        self._pack, self._functions = pack, {}
        self._home.be(pack.name, pack.version)
        self._home.descriptors.clear()
        self._home.descriptors.update({one.key: one for one in pack.descriptors})
        return declare(pack, here.options)

    # -- calling it ----------------------------------------------------------------------------------------------------

    async def _call(self, key: Key, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        function, on_loop = self._function(key, name)
        try:
            if on_loop:
                return await function(*args, **kwargs)
            return await self._in_thread(function, args, kwargs)
        except MemoryError:
            end_if_out_of_memory()
            raise
        except asyncio.CancelledError:
            for one in args:
                call: Any = getattr(one, "_call", None)
                if hasattr(call, "is_cancelled"):
                    call.is_cancelled = True
            raise

    def _function(self, key: Key, name: str) -> tuple[Callable[..., Any], bool]:
        descriptor = self._home.descriptors.get(key)
        if descriptor is None:
            raise LookupError(f"the pack has no {key[0]} {key[1]!r} any more")
        found = self._functions.get((key, name))
        if found is None or found[0] is not descriptor:
            function = kind_of(key[0]).crossing.functions(descriptor.payload)[name]
            found = self._functions[key, name] = descriptor, function, is_async(function)
        return found[1:]

    async def _in_thread(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        given: list[Any] = []
        job = self._threads.job(lambda: function(*given, **kwargs))
        given += in_thread(self._threads, job, args)
        self._threads.start(job)
        try:
            value, error = await job.future
        except asyncio.CancelledError:
            self._threads.abandon(job)
            raise
        if isinstance(error, StopIteration):
            raise decode_error(encode_error(error))  # a coroutine can't raise it
        if error is not None:
            raise error
        return await settled(value)

    # -- whose hooks ---------------------------------------------------------------------------------------------------

    def _owner(self, of: str) -> Any:
        kind, _, id = of.partition(":")
        return self._home.descriptors[kind, id] if of else self._pack

    async def _run_hook(self, of: str, name: str, context: Mapping[str, Any]) -> None:
        await settled(call_with(getattr(self._owner(of), name), self._home.hook_context(context)))


def _entry(said: Mapping[str, Any]) -> PackEntry:
    """Return the manifest's entry of the pack, with its factory imported."""
    given = dict(said)
    if given["factory"] is not None:
        module, _, name = given["factory"].partition(":")
        given["factory"] = importlib.import_module(module)
        for part in name.split("."):
            given["factory"] = getattr(given["factory"], part)
    if given["base_path"] is not None:
        given["base_path"] = Path(given["base_path"])
    return PackEntry(**given, isolation="process")


async def _serve(read: int, write: int, limit: int) -> None:
    channel = Channel(read, write, limit)
    PackServer(channel, limit)
    await channel.closed.wait()


def main() -> None:
    """Serve until the host is gone; then leave at once, whatever tasks and threads of the pack still do."""
    read, write, *limit = map(int, sys.argv[1:])
    for descriptor in (read, write):
        os.set_inheritable(descriptor, False)
    asyncio.new_event_loop().run_until_complete(_serve(read, write, limit[0] if limit else MESSAGE_LIMIT))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
