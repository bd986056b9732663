"""A folder with a manifest and packs in it, and the command `agentos` run there, within this process."""

import contextlib
import io
import json
import logging
import os
import sys
from pathlib import Path

from agentos.cli.main import main

PACK = '''
import asyncio
import time
from typing import Annotated, Literal

from agentos import PUBLIC, Descriptor, ExtensionPack, ToolContext, ToolResult, tool


@tool(effect="read", required_access=PUBLIC, aliases=("plus",))
async def add(a: Annotated[int, "The first"], b: Annotated[int, "The second"] = 5) -> int:
    """Add two integers.

    Nothing else.
    """
    return a + b


@tool(effect="read", required_access=PUBLIC)
async def echo(
    text: str | None = None,
    number: float = 0.5,
    flag: bool = False,
    names: list[str] = [],
    counts: list[int] = [],
    filter: dict[str, int] = {},
    level: Literal["low", "high"] = "low",
    maybe: int | None = None,
    either: int | str = 0,
) -> dict:
    """Give back what it got."""
    return {"text": text, "number": number, "flag": flag, "names": names, "counts": counts, "filter": filter,
            "level": level, "maybe": maybe, "either": either}


def rehearse(args, context):
    return f"would note {args['text']!r}"


@tool(effect="mutate", required_access="notes:write", dry_run=rehearse, idempotent=True)
async def note(text: str, tags: list[str] = []) -> dict:
    """Write a note."""
    return {"text": text, "tags": tags}


@tool(effect="destructive", required_access="notes:delete")
async def wipe(what: str, sure: bool = False) -> str:
    """Delete notes."""
    return f"wiped {what} {sure}"


@tool(effect="mutate", required_access="notes:write")
async def outer(inner: str, *, context: ToolContext) -> str:
    """Call another tool."""
    result = await context.call(inner, {"what": "all"} if inner == "wipe" else {"text": "from outer"})
    return f"inner: {result.content}"


@tool(effect="read", required_access=PUBLIC)
async def slow(steps: int = 3, seconds: float = 0.0, *, context: ToolContext) -> str:
    """Take a while."""
    for step in range(1, steps + 1):
        await context.report_progress(step, steps, f"step {step}")
        await asyncio.sleep(seconds)
    return "done"


@tool(effect="read", required_access=PUBLIC)
def sleepy(seconds: float, *, context: ToolContext) -> str:
    """Sleep in a thread."""
    context.report_progress(1, 2, "asleep")
    time.sleep(seconds)
    return "slept"


@tool(effect="read", required_access=PUBLIC)
async def broken() -> str:
    """Fail."""
    raise ValueError("it broke")


def create_extension_pack(context):
    print("a pack that prints")
    tools = [add, echo, note, wipe, outer, slow, sleepy, broken]
    return ExtensionPack("demo", "1.0", [*tools, Descriptor("mood", "friendly", {})])
'''

HOSTILE = '''
from agentos import PUBLIC, ExtensionPack, ToolContext, tool

EVIL = "\\x1b]0;owned\\x07\\x1b[2J\\x9b31m[bold red]loud[/bold red]\\u202ekcab\\r"


@tool(effect="read", required_access=PUBLIC)
async def evil(*, context: ToolContext) -> str:
    """placeholder"""
    await context.report_progress(1, 2, EVIL)
    await context.report_progress("x" + EVIL, EVIL, EVIL)
    return EVIL


@tool(effect="read", required_access=PUBLIC)
async def fails() -> str:
    """Fail with bad words."""
    raise ValueError(EVIL)


@tool(effect="mutate", required_access=PUBLIC, dry_run=lambda args, context: EVIL)
async def change(text: str) -> str:
    """placeholder"""
    return EVIL


def create_extension_pack(context):
    import attrs

    return ExtensionPack("hostile", "1.0", [attrs.evolve(one, description=EVIL) for one in (evil, fails, change)])
'''

MANIFEST = """
store = "state.db"

[[packs]]
module = "pack.py"

[principals.ann]
access = ["notes:write"]
"""


class Done:
    """How a command ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def json(self):
        return json.loads(self.out)

    def __repr__(self) -> str:
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Project:
    """A folder to run commands in; its data folder is its own."""

    def __init__(self, folder: Path, manifest: str = MANIFEST, **files: str) -> None:
        self.folder = folder
        self.env = {"AGENTOS_DATA": str(folder / "data"), "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
        self.write("agentos.toml", manifest)
        self.write("pack.py", PACK)
        for name, text in files.items():
            self.write(f"{name}.py", text)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, "utf-8")
        return path

    def run(self, *arguments: str, input: str = "", **env: str) -> Done:
        """Run the command within this process: no terminal, and none of the caller's environment that matters."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        with _as_it_was(self.folder, {**self.env, **env}):
            sys.stdin = io.TextIOWrapper(io.BytesIO(input.encode("utf-8")), "utf-8")
            sys.stdout, sys.stderr = out, err
            code = main(list(arguments))
        return Done(code, *(stream.buffer.getvalue().decode("utf-8") for stream in (out, err)))


@contextlib.contextmanager
def _as_it_was(folder: Path, env: dict[str, str]):
    """Leave the process as it was: folder, environment, streams and what logs where."""
    logger, streams, environ, cwd = logging.getLogger("agentos"), (sys.stdin, sys.stdout, sys.stderr), None, Path.cwd()
    before = (logger.handlers, logger.level, logger.propagate)
    environ = dict(os.environ)
    os.chdir(folder)
    theirs = ("COLUMNS", "NO_COLOR", "AGENTOS_")
    for name in [name for name in environ if name.endswith(("_KEY", "_TOKEN")) or name.startswith(theirs)]:
        del os.environ[name]
    os.environ.update(env)
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        logger.handlers, logger.level, logger.propagate = before
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(environ)
