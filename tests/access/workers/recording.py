"""A pack whose every run leaves a line in a file, and hosts that load it."""

import itertools
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agentos import PUBLIC, AgentOS, ExtensionPack, Tool

KEY = "a key that only the tests have"
_SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
_NUMBERS = itertools.count(1)

Meanwhile = Callable[[str], Awaitable[None]]


class Log:
    """Lines that several processes append to: one write each, so none is torn."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def append(self, line: str) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)

    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []

    def count(self, line: str) -> int:
        return self.lines().count(line)


async def nothing(text: str) -> None:
    """Take no time."""


def recording_pack(
    log: Log, meanwhile: Meanwhile = nothing, wording: str = "", name: str = "recorder"
) -> ExtensionPack:
    """Return tools that append their text to *log* and await *meanwhile*; each run has an output of its own."""

    async def run(args: dict[str, Any], context: Any) -> str:
        log.append(args["text"])
        await meanwhile(args["text"])
        return f"{args['text']} by {os.getpid()} as number {next(_NUMBERS)}"

    async def look(args: dict[str, Any], context: Any) -> str:
        return args["text"]

    def made(name: str, effect: str, execute: Any, **fields: Any) -> Tool:
        said = {"description": f"{name} a text{wording}", "input_schema": _SCHEMA, "required_access": PUBLIC}
        return Tool.from_schema(name=name, effect=effect, execute=execute, **said, **fields)

    tools = [made("write", "mutate", run), made("put", "mutate", run, idempotent=True), made("look", "read", look)]
    return ExtensionPack(name, "1.0", tools)


def host_at(url: str | None, log: Log, *, meanwhile: Meanwhile = nothing, **options: Any) -> AgentOS:
    """Return a host with the pack, on the store at *url*, which counts no calls."""
    said = {key: options.pop(key) for key in ("wording", "name") if key in options}
    manifest = {"packs": [{"factory": lambda: recording_pack(log, meanwhile, **said)}]}
    return AgentOS(store=url, store_key=KEY, extension_manifest=manifest, **{"budget": None, **options})
