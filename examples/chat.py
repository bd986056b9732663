"""The chat loop against an endpoint that plays a script: no key, no network, but the real `openai` SDK.

A model asks for two things at once, reads the answers, asks for a third, and answers. Tools are shown as they run.
"""

import asyncio
import contextlib
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any, ClassVar

from agentos import PUBLIC, AgentOS, Event, Principal, ToolContext, tool
from agentos.turn.chat import run_turn

try:
    from openai import AsyncOpenAI
except ModuleNotFoundError:
    sys.exit("This example needs the openai SDK: pip install 'agentos-host[openai]'")


@tool(effect="read", required_access=PUBLIC)
async def view_weather(city: Annotated[str, "The name of a city"], *, context: ToolContext) -> dict[str, Any]:
    """Tell the weather of a city."""
    await context.report_progress(1, 2, f"asking the station in {city}")
    return {"city": city, "degrees": {"Oslo": 4, "Rome": 19}.get(city)}


@tool(effect="read", required_access=PUBLIC)
async def get_difference(a: float, b: float) -> float:
    """Subtract b from a."""
    return a - b


def calls(*wanted: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a message in which the model makes calls."""
    made = [
        {"id": f"call_{name}_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for number, (name, given) in enumerate(wanted)
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


class Script(BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint that says one line of its script after the other."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    lines: ClassVar[list[dict[str, Any]]] = [
        calls(("view_weather", {"city": "Oslo"}), ("view_weather", {"city": "Rome"})),
        calls(("get_difference", {"a": 19, "b": 4})),
        {"role": "assistant", "content": "Rome is 15 degrees warmer than Oslo."},
    ]

    def do_POST(self) -> None:
        """Say the next line."""
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = json.dumps({"id": "1", "object": "chat.completion", "choices": [{"message": self.lines.pop(0)}]})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def endpoint() -> Iterator[str]:
    """Serve the script on loopback; give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Script)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def show(event: Event) -> None:
    """Show what a tool does, as it happens."""
    if event.type.startswith("tool:"):
        told = {
            name: getattr(event, name) for name in ("tool", "call_id", "message", "success") if hasattr(event, name)
        }
        print(f"  {event.type:14} {' '.join(str(value) for value in told.values())}")


async def main() -> None:
    """Run one turn and show how it went."""
    with endpoint() as address:
        async with AgentOS() as host, AsyncOpenAI(base_url=address, api_key="none needed") as client:
            await host.tools_service().sync([view_weather, get_difference])
            host.extensions.on(show)
            question = "How much warmer is Rome than Oslo?"
            print(f"user: {question}")
            messages = [{"role": "user", "content": question}]
            turn = await run_turn(host, client, messages, model="scripted", principal=Principal("ada"))
            print(f"assistant: {turn.content}")
            print(f"{turn.steps} steps, {len(turn.results)} calls, stopped by {turn.stopped_by}")


if __name__ == "__main__":
    asyncio.run(main())
