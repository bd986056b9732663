"""Packs that have nothing to mend."""

import asyncio
import os
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Annotated

from testing.parts import Text, count_letters, pack, reads

from agentos import PUBLIC, Descriptor, Schema, Tool, ToolContext, Toolset, tool


def plain():
    return pack()


def with_a_thread():
    @reads
    def count_words(text: Text) -> int:
        """Count the words of a text in a thread."""
        return len(text.split())

    return pack(count_words)


def with_notes():
    async def notes(context):
        return await context.services.get_or_create("example.notes", dict)

    async def preview(arguments, context):
        verb = "replace" if arguments["title"] in await notes(context) else "write"
        return f"would {verb} it"

    @tool(effect="mutate", required_access=["notes"], dry_run=preview, intervention="never")
    async def write_note(title: Text, text: Text, *, context: ToolContext) -> str:
        """Write a note down under a title."""
        (await notes(context))[title] = text
        return "noted"

    @tool(effect="read", required_access=["notes"])
    async def read_note(title: Text, *, context: ToolContext) -> str:
        """Read the note of a title again."""
        kept = await notes(context)
        if title not in kept:
            raise ValueError(f"title: nothing is called {title[:20]!r}")
        return kept[title]

    return pack(Toolset("notes", [write_note, read_note], system_prompt="Notes last as long as the program."))


def with_a_wrapper():
    @reads
    async def count_letters(text: Text, *, context: ToolContext) -> int:
        """Count the letters of a text as the tool beneath does."""
        result = await context.below({"text": text})
        if not result.success:
            raise ValueError(f"the tool beneath failed: {result.error.type}")
        return result.output

    return pack(Descriptor("tool", "count_letters", count_letters, wraps=True, priority=100), name="wrapper")


def with_helpers():
    """Hold a task, a thread, a file and a process for as long as the pack is loaded."""
    held = {}

    async def begin():
        held["over"] = threading.Event()
        held["thread"] = threading.Thread(target=held["over"].wait, name="helper")
        held["thread"].start()
        held["task"] = asyncio.create_task(asyncio.sleep(3600))
        handle, held["path"] = tempfile.mkstemp()
        os.close(handle)
        held["process"] = subprocess.Popen(["sleep", "60"])

    async def end():
        held["over"].set()
        held["thread"].join()
        held["task"].cancel()
        await asyncio.wait([held["task"]])
        Path(held["path"]).unlink()
        held["process"].kill()
        held["process"].wait()

    return pack(on_activate=begin, on_deactivate=end)


def with_a_secret():
    class Engine:
        key = None

    engine = Engine()

    def connect(context):
        engine.key = context.secret("openai.apiKey")

    def disconnect():
        engine.key = None

    return pack(
        Descriptor(
            "search-engine",
            "example",
            engine,
            required_secrets=["openai.apiKey"],
            on_activate=connect,
            on_deactivate=disconnect,
        ),
        count_letters,
    )


def with_tools_that_come_later():
    declared = Tool.from_schema(
        name="count_lines",
        description="Count the lines of a text, the last one included.",
        input_schema={
            "type": "object",
            "properties": {"text": {"type": "string", "maxLength": 50, "description": "What to look at"}},
            "required": ["text"],
        },
        effect="read",
        required_access=PUBLIC,
    )
    waiting = Tool.from_schema(
        name="count_pages",
        description="Count the pages of a book, once somebody says how.",
        input_schema={"type": "object", "properties": {}},
        effect="read",
        required_access=PUBLIC,
    )

    async def begin(context):
        await context.tools.register_tool(count_letters)

    return pack(waiting, declared, name="later", on_activate=begin)


def with_a_shape():
    @reads
    async def look_up(
        code: Annotated[str, "A code of three letters and four digits", Schema(pattern="^[A-Z]{3}-[0-9]{4}$")],
        day: Annotated[str, "The day it was given out on", Schema(format="date")],
        rooms: Annotated[list[Text], "The rooms it opens", Schema(maxItems=5)],
    ) -> str:
        """Look up who was given a code."""
        return f"{code} {day} {len(rooms)}"

    return pack(look_up)


def switched_off():
    return pack(Descriptor("tool", "count_letters", count_letters, enabled_by_default=False))
