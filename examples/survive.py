"""A pack crashes its process, and the host goes on: what `isolation = "process"` is for."""

import asyncio
import os
from pathlib import Path

from agentos import AgentOS, ToolCall

MANIFEST = {
    "packs": [
        {"module": "hello.py"},
        {"module": "fragile.py", "identifier": "fragile", "isolation": "process"},
    ]
}


async def main() -> None:
    """Call a tool that works, one that crashes its process, and others after it."""
    os.chdir(Path(__file__).parent)
    async with AgentOS(extension_manifest=MANIFEST) as host:
        host.extensions.on(lambda event: print(f"  {event.type}") if event.type.startswith("worker:") else None)

        async def show(name: str, /, **arguments: object) -> None:
            print(f"\n{name}({', '.join(f'{key}={value}' for key, value in arguments.items())})", flush=True)
            result = await host.tools.process_tool_call(ToolCall(name, arguments))
            print(f"  {result.content}")

        print(f"This host is process {os.getpid()}.")
        await show("divide_numbers", a=1, b=4)
        await show("read_memory", address=8)
        await show("greet", name="Ada")
        await show("divide_numbers", a=3, b=4)
        for worker in host.workers.list():
            print(f"\n{worker.pack} is {worker.state}, started again {worker.restarts} times: {worker.reason}")


if __name__ == "__main__":
    asyncio.run(main())
