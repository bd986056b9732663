"""A host in a process of its own that does what it is told at the same moment as another one."""

import asyncio
import socket
import sys
from typing import Any

from access.workers.recording import Log, host_at
from access.workers.serving import serve, tell

from agentos import AgentOS, ToolCall, ToolResult
from agentos.access.grants import Grants
from agentos.access.idempotency import Idempotency
from agentos.access.proposals import Proposals


def summary(result: ToolResult) -> dict[str, Any]:
    """Return what a test wants to know of a result."""
    error = result.error
    return {
        "success": result.success,
        "output": result.output,
        "replayed": bool(result.meta.get("replayed")),
        "error": error and error.type,
        "message": error and error.message,
    }


def _groups(items: list[Any]) -> list[list[Any]]:
    return [items[start : start + 10] for start in range(0, len(items), 10)]


class Racer:
    """Handles the requests; `meet` is where both are at the same moment."""

    _host: AgentOS

    def __init__(self, peer: socket.socket) -> None:
        self._peer = peer
        self._peer.setblocking(False)
        self._released = asyncio.Event()
        self._released.set()
        self._meets_within = False
        self._meet_before(Proposals, "claim")
        self._meet_before(Grants, "take")
        self._tell_of_waiting()

    def _meet_before(self, owner: type, name: str) -> None:
        original = getattr(owner, name)

        async def meeting(*args: Any, **kwargs: Any) -> Any:
            if self._meets_within:
                await self._meet()
            return await original(*args, **kwargs)

        setattr(owner, name, meeting)

    def _tell_of_waiting(self) -> None:
        original = Idempotency._wait

        async def wait(*args: Any) -> float:
            tell(event="waiting")
            return await original(*args)

        Idempotency._wait = wait

    async def _meanwhile(self, text: str) -> None:
        if not self._released.is_set():
            tell(event="running", text=text)
            await self._released.wait()

    async def _meet(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._peer, b".")
        if await loop.sock_recv(self._peer, 1) != b".":
            raise ConnectionError("the other worker is gone")

    # -- requests ----------------------------------------------------------------------------------------------

    async def start(self, url: str, log: str, mode: str) -> None:
        """Start a host on a store."""
        self._host = host_at(url, Log(log), mode=mode, meanwhile=self._meanwhile)
        self._meets_within = False
        await self._host.initialize()

    async def stop(self) -> None:
        """Stop the host."""
        if raised := await self._host.shutdown():
            raise ExceptionGroup("shutdown", raised)

    async def propose(self, texts: list[str]) -> list[str]:
        """Call a tool that has to be approved, with each of *texts*; return the tokens."""
        calls = [ToolCall("write", {"text": text}) for text in texts]
        results = [one for some in _groups(calls) for one in await self._host.tools.process_tool_calls(some)]
        return [result.error.details["token"] for result in results]

    async def approve(self, tokens: list[str]) -> list[dict[str, Any]]:
        """Approve *tokens* when the other does, a few at a time."""
        found = []
        for some in _groups(tokens):
            await self._meet()
            found += await asyncio.gather(*map(self._host.approvals.approve, some))
        return [summary(result) for result in found]

    async def claim(self, tokens: list[str]) -> list[dict[str, Any]]:
        """Approve each of *tokens*, and take it at the moment when the other does."""
        self._meets_within = True
        return [summary(await self._host.approvals.approve(token)) for token in tokens]

    async def call(self, tool: str, texts: list[str]) -> list[dict[str, Any]]:
        """Call *tool* with *texts* when the other does, a few at a time."""
        return [result for some in _groups(texts) for result in await self._call_at_once(tool, some)]

    async def call_keyed(self, tool: str, texts: list[str]) -> list[dict[str, Any]]:
        """Do the same; the text is the idempotency key as well."""
        return [result for some in _groups(texts) for result in await self._call_at_once(tool, some, keyed=True)]

    async def _call_at_once(self, tool: str, texts: list[str], *, keyed: bool = False) -> list[dict[str, Any]]:
        await self._meet()
        return await asyncio.gather(*(self.call_alone(tool, text, text if keyed else None) for text in texts))

    async def take(self, tool: str, texts: list[str]) -> list[dict[str, Any]]:
        """Call *tool* with each of *texts*, and take its grant at the moment when the other does."""
        self._meets_within = True
        return [await self.call_alone(tool, text) for text in texts]

    async def call_alone(self, tool: str, text: str, key: str | None = None) -> dict[str, Any]:
        """Call *tool* whatever the other does."""
        call = ToolCall(tool, {"text": text}, idempotency_key=key)
        return summary(await self._host.tools.process_tool_call(call))

    async def hold(self) -> None:
        """Let tools run on and on, until `release`."""
        self._released.clear()

    async def release(self) -> None:
        """Let tools end."""
        self._released.set()


async def main() -> None:
    with socket.socket(fileno=int(sys.argv[1])) as peer:
        racer = Racer(peer)
        names = [name for name in vars(Racer) if not name.startswith("_")]
        await serve({name: getattr(racer, name) for name in names})


asyncio.run(main())
