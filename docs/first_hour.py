"""The newcomer's first hour: every step done for real in an empty folder, timed, and written down as `first-hour.md`.

    python docs/first_hour.py

What a step asks is answered in a real terminal; what asks nothing runs through a pipe. A test does the same steps and
compares what they say with the page.
"""

import contextlib
import fcntl
import os
import platform
import pty
import re
import select
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import attrs

PAGE = Path(__file__).parent / "first-hour.md"
PATIENCE = 120.0
"""After how many seconds a step counts as stuck."""
_WIDE = 240
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")


@attrs.frozen
class File:
    """Something that the newcomer writes."""

    path: str
    text: str
    language: str = "py"


@attrs.frozen
class Command:
    """Something that the newcomer types; *answers* are typed when their question is there."""

    line: str
    answers: Sequence[tuple[str, str]] = ()
    code: int = 0


@attrs.frozen
class Step:
    """One part of the hour: what it is about, and what is done."""

    title: str
    text: str
    acts: Sequence[File | Command]


@attrs.frozen
class Done:
    """A command that ran: what it said, how it ended, and how long it took."""

    command: Command
    said: str
    code: int
    seconds: float


PACK = '''\
"""Finds GIFs and keeps a list of them."""

from pathlib import Path
from typing import Annotated

from agentos import PUBLIC, Descriptor, ExtensionPack, PackContext, ToolContext, tool

__version__ = "0.1.0"


@tool(effect="read", required_access=PUBLIC)
async def find_gif(words: Annotated[str, "What the GIF should show"], *, context: ToolContext) -> str:
    """Find a GIF.

    Use it to amuse somebody.
    """
    return f"a GIF of {words}, found with the key {context.secret('giphy.apiKey')}"


@tool(effect="mutate", required_access="gifs:keep", dry_run=lambda args, context: f"one more line: {args['title']}")
async def keep_gif(title: Annotated[str, "What the GIF is called"]) -> str:
    """Write the title of a GIF into the file gifs.txt.

    Use it when somebody wants to see a GIF again.
    """
    with Path("gifs.txt").open("a", encoding="utf-8") as file:
        file.write(f"{title}\\n")
    return f"kept {title}"


def create_extension_pack(context: PackContext) -> ExtensionPack:
    """Return what the pack offers."""
    finder = Descriptor("tool", "find_gif", find_gif, required_secrets=["giphy.apiKey"])
    return ExtensionPack("gif-finder", __version__, [finder, keep_gif])
'''
TESTS = """\
import asyncio

from agentos import AgentOS, ToolCall
from agentos_pack_gif_finder import create_extension_pack


def test_keeping_a_gif_asks_first():
    async def call():
        async with AgentOS(extension_manifest={"packs": [{"factory": create_extension_pack}]}) as host:
            return await host.tools.process_tool_call(ToolCall("keep_gif", {"title": "Dancing cat"}))

    assert asyncio.run(call()).error.type == "ApprovalRequired"
"""
CLIENT = """\
import asyncio

from mcp import Client, StdioServerParameters


async def main() -> None:
    server = StdioServerParameters(command="agentos", args=["serve"])
    async with Client(server) as client:
        print(client.protocol_version, sorted(tool.name for tool in (await client.list_tools()).tools))
        for name, arguments in (
            ("greet", {"name": "Ada"}),
            ("find_gif", {"words": "cats"}),
            ("keep_gif", {"title": "Sleepy dog"}),
        ):
            result = await client.call_tool(name, arguments)
            print(name, "-", result.content[0].text.partition(" It waits")[0])


asyncio.run(main())
"""
MODULE = "packs/gif-finder/agentos_pack_gif_finder"
STEPS = (
    Step(
        "A host",
        "An empty folder. `init` asks three questions; Enter takes what is proposed.",
        [
            Command(
                "agentos init",
                [("first pack [hello]: ", "\n"), ("[toml]: ", "\n"), ("[approve]: ", "\n")],
            ),
            Command("agentos tools list"),
            Command("agentos tools call greet name=Ada"),
            Command("agentos tools call greet nam=Ada", code=2),
        ],
    ),
    Step(
        "A pack of my own",
        "`new pack` makes a distribution whose tests pass. I replace its module and its tests by my own.",
        [
            Command("agentos new pack gif-finder --into packs"),
            File(f"{MODULE}/__init__.py", PACK),
            File("packs/gif-finder/tests/test_gif_finder.py", TESTS),
            Command("(cd packs/gif-finder && python -m pytest -q)"),
            Command(f"agentos packs add {MODULE}"),
        ],
    ),
    Step(
        "Where is my tool?",
        "`find_gif` is not in the list. `why` says what it waits for, and how to give it that; it is typed unseen.",
        [
            Command("agentos tools list"),
            Command("agentos why tool:find_gif"),
            Command("agentos secrets add giphy.apiKey", [("(not shown): ", "a-key-from-giphy\n")]),
            Command("agentos why tool:find_gif"),
            Command('agentos tools call find_gif words="a dancing cat"'),
        ],
    ),
    Step(
        "Something that changes something",
        "I am shown what exactly will run, and asked.",
        [
            Command('agentos tools call keep_gif title="Dancing cat"', [("or [l]ater? ", "a\n")]),
            Command("cat gifs.txt"),
        ],
    ),
    Step(
        "A real MCP client",
        "A client of the official SDK starts `agentos serve` and speaks to it over stdin and stdout.\n"
        "What the client wants to change waits for me.",
        [File("client.py", CLIENT), Command("python client.py")],
    ),
    Step(
        "Is anything wrong?",
        "The last look.",
        [Command("agentos doctor"), Command("agentos audit verify | cut -d: -f1")],
    ),
)


# -- doing it ----------------------------------------------------------------------------------------------------------


def run(folder: Path) -> list[list[File | Done]]:
    """Do every step in an empty home beneath *folder*; return what was written and what was said, step by step."""
    home = folder / "home"
    here = home / "demo"
    here.mkdir(parents=True)
    env = _environment(folder, home)
    return [[_act(act, here, env, home) for act in step.acts] for step in STEPS]


def _environment(folder: Path, home: Path) -> dict[str, str]:
    """Return what a newcomer's shell has: nothing of whoever runs this, and the command on the path."""
    program = folder / "bin" / "agentos"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m agentos.cli "$@"\n')
    program.chmod(0o755)
    return {
        "PATH": f"{program.parent}:{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(home),
        "PYTHONUTF8": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",  # a made-up key has no place in a real keyring
        "TERM": "xterm",
        "NO_COLOR": "1",
    }


def _act(act: File | Command, here: Path, env: dict[str, str], home: Path) -> File | Done:
    if isinstance(act, File):
        (here / act.path).write_text(act.text, "utf-8")
        return act
    begun = time.perf_counter()
    said, code = (_at_terminal if act.answers else _piped)(act, here, env)
    return Done(act, _shown(said, home), code, time.perf_counter() - begun)


def _piped(command: Command, here: Path, env: dict[str, str]) -> tuple[str, int]:
    done = subprocess.run(  # noqa: S603 - the lines above
        ["/bin/bash", "-c", command.line],
        cwd=here,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.stdout, done.returncode


def _at_terminal(command: Command, here: Path, env: dict[str, str]) -> tuple[str, int]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, _WIDE, 0, 0))
    child = subprocess.Popen(  # noqa: S603 - the lines above
        ["/bin/bash", "-c", f"exec {command.line}"],
        cwd=here,
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one thread; the child needs a terminal
    )
    os.close(theirs)
    try:
        said = _conversation(ours, list(command.answers))
        return said, child.wait(PATIENCE)
    finally:
        child.kill()
        child.wait()
        os.close(ours)


def _conversation(terminal: int, answers: list[tuple[str, str]]) -> str:
    """Read until the other end is closed; type each answer when its question was asked."""
    raw, seen, end = b"", 0, time.monotonic() + PATIENCE
    while True:
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise TimeoutError(f"stuck after:\n{raw.decode('utf-8', 'replace')}")
        chunk = b""
        with contextlib.suppress(OSError):  # raised when nobody is at the other end any more
            chunk = os.read(terminal, 65_536)
        if not chunk:
            return raw.decode("utf-8", "replace")
        raw += chunk
        while answers and (at := raw.find(answers[0][0].encode(), seen)) >= 0:
            seen = at + len(answers[0][0].encode())
            os.write(terminal, answers.pop(0)[1].encode())


def _shown(said: str, home: Path) -> str:
    """Return what was said without what only a terminal needs, and without what differs from machine to machine."""
    text = _ESCAPES.sub("", said.replace("\r\n", "\n")).replace(str(home), "~")
    text = "\n".join(line.rpartition("\r")[2].rstrip() for line in text.splitlines())
    return re.sub(r"Python 3\.\d+\.\d+\w*", "Python 3", re.sub(r"\bin \d+\.\d+s\b", "in ... s", text)).strip("\n")


# -- writing it down ---------------------------------------------------------------------------------------------------


def render(hour: list[list[File | Done]], measured: str) -> str:
    """Return the page."""
    parts = [_HEAD.format(measured=measured)]
    for number, (step, acts) in enumerate(zip(STEPS, hour, strict=True), start=1):
        parts.append(f"## {number}. {step.title}\n\n{step.text}\n")
        parts += [_file(act) if isinstance(act, File) else _command(act) for act in acts]
    parts.append("## How long it took\n\n" + "\n".join(_times(hour)) + "\n")
    return "\n".join(parts)


_HEAD = """\
# The newcomer's first hour

What a person sees who has never used agentos: an empty folder, the real commands, a real MCP client, and how long each
took. This page was written by `docs/first_hour.py`, which does all of it; a test does it again and compares. Commands
that ask something were run in a terminal, the others through a pipe. `~` is the newcomer's home.

{measured}

Reading, thinking and typing come on top: the times here are those of the machine. Each step is explained in
[your first pack in ten minutes](first-pack.md).
"""


def _file(file: File) -> str:
    return f"`{file.path}`:\n\n```{file.language}\n{file.text}```\n"


def _command(done: Done) -> str:
    said = f"{done.said}\n" if done.said else ""
    ended = f", exit code {done.code}" if done.code else ""
    return f"```console\n$ {done.command.line}\n{said}```\n\n*{done.seconds:.1f} s{ended}*\n"


def _times(hour: list[list[File | Done]]) -> Iterator[str]:
    yield "| step | commands | lines written | seconds |"
    yield "|---|---|---|---|"
    total = 0.0
    for step, acts in zip(STEPS, hour, strict=True):
        commands = [act for act in acts if isinstance(act, Done)]
        lines = sum(act.text.count("\n") for act in acts if isinstance(act, File))
        seconds = sum(one.seconds for one in commands)
        total += seconds
        yield f"| {step.title} | {len(commands)} | {lines} | {seconds:.1f} s |"
    yield f"| all of it | | | {total:.1f} s |"


def untimed(page: str) -> str:
    """Return a page without what differs from run to run."""
    page = re.sub(r"\b\d+\.\d s\b", "... s", re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "...", page))
    return re.sub(r"^Measured .*$", "Measured.", page, flags=re.MULTILINE)


def measured() -> str:
    """Say when and on what this is measured."""
    today, python = datetime.now(UTC).date().isoformat(), platform.python_version()
    return f"Measured {today}, {platform.system()}, {os.cpu_count()} cores shared with other work, Python {python}."


def main() -> None:
    """Do the steps and write the page; end with what went wrong, if a command ended otherwise than it should."""
    with tempfile.TemporaryDirectory() as folder:
        hour = run(Path(folder))
    for act in (act for acts in hour for act in acts):
        if isinstance(act, Done) and act.code != act.command.code:
            raise SystemExit(f"{act.command.line} ended with {act.code}:\n{act.said}")
    PAGE.write_text(render(hour, measured()), "utf-8")


if __name__ == "__main__":
    main()
