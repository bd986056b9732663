"""A pack that is loaded in a process of its own, and can be made to die."""

import asyncio
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

from agentos import PUBLIC, ExtensionPack, ToolContext, tool


def create_extension_pack(context):
    folder = Path(context.options.get("folder", "."))
    if context.options.get("slow"):
        time.sleep(context.options["slow"])

    def note(text):
        with (folder / "notes").open("a") as file:
            file.write(f"{text}\n")

    @tool(effect="read", required_access=PUBLIC)
    def pid() -> int:
        """Return the number of the process."""
        return os.getpid()

    @tool(effect="read", required_access=PUBLIC)
    async def echo(text: str) -> str:
        """Return the text."""
        return text

    @tool(effect="read", required_access=PUBLIC)
    def die() -> str:
        """End the process in the middle of the call."""
        note("die")
        sys.stderr.write("my last words\n")
        sys.stderr.flush()
        os._exit(3)

    @tool(effect="read", required_access=PUBLIC, idempotent=True)
    def die_once() -> str:
        """End the process, but only the first time."""
        note("ran")
        if (folder / "notes").read_text().count("ran") == 1:
            os._exit(4)
        return "the second time"

    @tool(effect="read", required_access=PUBLIC, idempotent=True)
    def die_always() -> str:
        """End the process every time."""
        note("always")
        os._exit(5)

    @tool(effect="read", required_access=PUBLIC)
    async def wait(context: ToolContext) -> str:
        """Never return."""
        context.report_progress(1)
        await asyncio.Event().wait()
        return ""

    @tool(effect="read", required_access=PUBLIC)
    def say(text: str) -> str:
        """Print, and log."""
        print(f"printed {text}", flush=True)  # noqa: T201
        sys.stderr.write(f"wrote {text}\n")
        sys.stderr.flush()
        logging.getLogger("fragile").warning("logged %s", text)
        logging.getLogger("fragile").log(33, "at a level of its own %s", text)
        context.logger.info("noted %s", text)
        return text

    @tool(effect="read", required_access=PUBLIC)
    def start_child() -> int:
        """Start a process that nothing but its end can end."""
        return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid

    def activated():
        note("activated")

    def deactivated():
        note("deactivated")

    return ExtensionPack(
        "fragile",
        version="1.0",
        descriptors=[pid, echo, die, die_once, die_always, wait, say, start_child],
        on_activate=activated,
        on_deactivate=deactivated,
    )
