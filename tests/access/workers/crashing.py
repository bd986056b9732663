"""A process that starts others, each a host of its own that ends at a step it is told, as by `kill -9`."""

import asyncio
import gc
import importlib
import json
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from access.workers.recording import Log, host_at
from access.workers.serving import tell
from access.workers.steps import Steps

from agentos import AgentOS, ToolCall

Flow = Callable[..., Awaitable[None]]


async def start(host: AgentOS, awaited: str | None = None) -> None:
    """Start the host itself, which does what an earlier one left undone; wait for *awaited* to be applied again."""
    await host.initialize()
    if awaited is not None:
        await host.approvals.result(awaited)


async def approve(host: AgentOS, token: str) -> None:
    await host.approvals.approve(token)


async def approve_all(host: AgentOS, tokens: list[str], moment: float) -> None:
    """Approve one after another, until the kernel ends the process, in the middle of whatever it does."""
    signal.setitimer(signal.ITIMER_REAL, moment)
    for token in tokens:
        await host.approvals.approve(token)
    signal.setitimer(signal.ITIMER_REAL, 0)


async def edit(host: AgentOS, id: str, text: str) -> None:
    await host.approvals.edit(id, {"text": text})


async def reject(host: AgentOS, id: str) -> None:
    await host.approvals.reject(id, "not today")


async def call(host: AgentOS, tool: str, text: str, key: str | None = None) -> None:
    await host.tools.process_tool_call(ToolCall(tool, {"text": text}, id=text, idempotency_key=key))


async def grant(host: AgentOS, text: str) -> None:
    await host.grants.add("recorder:write", "once", arguments={"$.text": text})


async def revoke(host: AgentOS, id: str) -> None:
    await host.grants.revoke(id)


async def accept(host: AgentOS, tool: str) -> None:
    await host.pins.accept(tool)


async def disable(host: AgentOS, pack: str) -> None:
    await host.extensions.disable(pack)


FLOWS: dict[str, Flow] = {
    flow.__name__: flow for flow in (start, approve, approve_all, edit, reject, call, grant, revoke, accept, disable)
}


async def live(out: int, flow: str, fatal: int, finely: bool, host: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Be a host: start, do *flow*, and end, at the step *fatal* at the latest."""

    def say(**line: Any) -> None:
        os.write(out, json.dumps(line).encode() + b"\n")

    steps = Steps(fatal, lambda name: say(step=name), finely=finely)

    async def meanwhile(text: str) -> None:
        steps.reached("took effect")

    agent = host_at(host.pop("url"), Log(host.pop("log")), meanwhile=meanwhile, **host)
    if flow != "start":
        await agent.initialize()
    steps.armed = True
    await FLOWS[flow](agent, **arguments)
    steps.armed = False
    say(finished=True)
    if raised := await agent.shutdown():
        raise ExceptionGroup("shutdown", raised)


def spawn(**request: Any) -> dict[str, Any]:
    """Run a host in a process of its own and say how it ended: the steps it took, and whether it got through."""
    inside, out = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(inside)
        asyncio.run(live(out, **request))
        sys.stderr.flush()
        os._exit(0)
    os.close(out)
    with os.fdopen(inside) as stream:
        lines = [json.loads(line) for line in stream]
    _, status = os.waitpid(child, 0)
    steps = [line["step"] for line in lines if "step" in line]
    return {"code": os.waitstatus_to_exitcode(status), "steps": steps, "finished": {"finished": True} in lines}


async def warm_up() -> None:
    """Load what hosts load when they need it: it is then there in every process that is forked off."""
    for module in ("agentos.store.postgres", "psycopg", "sqlalchemy.dialects.postgresql.psycopg"):
        importlib.import_module(module)
    async with host_at(None, Log(os.devnull)) as host:
        token = (await host.tools.process_tool_call(ToolCall("write", {"text": ""}))).error.details["token"]
        await approve(host, token)


def main() -> None:
    asyncio.run(warm_up())
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join()  # a process that has threads must not be forked
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        id, _ = request.pop("id"), request.pop("do")
        tell(id=id, answer=spawn(**request))


main()
