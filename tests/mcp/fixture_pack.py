"""A pack with one tool for each thing that an MCP server has to get right, and a program that serves it over stdio.

python fixture_pack.py [--many N] [--user] [--search N]
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from agentos import PUBLIC, AgentOS, ExtensionPack, Principal, Tool, ToolContext, ToolResult, Toolset, tool

USER = Principal("ada", access={"files:write"})
SECRET = "a-value-that-never-leaves"
seen: list[str] = []
"""What the tools did, in their order."""


@tool(effect="read", required_access=PUBLIC)
async def add(a: Annotated[int, "The first number"], b: int = 10) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


@tool(effect="read", required_access=PUBLIC)
def words(text: str) -> list[str]:
    """Split a text into its words."""
    return text.split()


@tool(effect="read", required_access=PUBLIC)
async def maybe(value: str | None = None) -> str | None:
    """Return what is given, or nothing."""
    return value


@tool(effect="read", required_access=PUBLIC)
async def stateful() -> ToolResult:
    """Return a result with parts that are nobody's business."""
    return ToolResult.ok({"shown": 1}, "what the model reads", state={"hidden": SECRET})


@tool(effect="read", required_access=PUBLIC)
async def fail() -> None:
    """Fail every time."""
    raise RuntimeError("no luck today")


@tool(effect="read", required_access=PUBLIC)
async def surrogates() -> dict[str, str]:
    """Return text that has no UTF-8 form."""
    return {"half \ud800": "a pair \udfff"}


@tool(effect="read", required_access=PUBLIC)
async def huge(size: int) -> dict[str, str]:
    """Return a text of that many characters."""
    return {"text": "x" * size}


@tool(effect="read", required_access=PUBLIC)
def chatty() -> str:
    """Print to stdout, where messages go."""
    print("this is not JSON")  # noqa: T201
    sys.stdout.flush()
    return "printed"


@tool(effect="read", required_access=PUBLIC)
async def count(to: int, *, context: ToolContext) -> int:
    """Count, and tell how far it is."""
    for number in range(1, to + 1):
        await context.report_progress(number, to, f"{number} of {to}")
    return to


@tool(effect="read", required_access=PUBLIC)
def count_in_thread(to: int, *, context: ToolContext) -> int:
    """Count in a thread, and tell how far it is."""
    for number in range(1, to + 1):
        context.report_progress(number, to, f"{number} of {to}")
    return to


@tool(effect="read", required_access=PUBLIC)
async def strange_progress(*, context: ToolContext) -> str:
    """Report progress that is none, that does not grow, and that is too long."""
    for done, total, message in (
        (2, 4, "two"),
        (1, 4, "back"),
        (float("nan"), 4, "nan"),
        ("x", 4, "x"),
        (3, "y", "z" * 9_999),
    ):
        await context.report_progress(done, total, message)  # type: ignore[arg-type]
    return "done"


@tool(effect="read", required_access=PUBLIC)
async def wait(*, context: ToolContext) -> str:
    """Wait until cancelled, and clean up for a while."""
    seen.append("waiting")
    await context.report_progress(1, 2, "waiting")
    try:
        await asyncio.Event().wait()
    finally:
        for _ in range(3):
            await asyncio.sleep(0)
        seen.append("cleaned up")
    return "never"


@tool(effect="read", required_access=PUBLIC)
async def history() -> list[str]:
    """Return what the tools did."""
    return list(seen)


@tool(effect="read", required_access=PUBLIC)
async def whoami(*, context: ToolContext) -> dict[str, Any]:
    """Tell who calls."""
    return {"principal": context.principal.id, "call": context.tool_call.id, "session": dict(context.session)}


@tool(effect="mutate", required_access=("files:write",), idempotent=True, display_name="Write a file")
async def write(path: str, text: str = "", *, context: ToolContext) -> dict[str, str]:
    """Write a file."""
    await context.report_progress(1, 1, "writing")
    seen.append(f"wrote {path}")
    return {"path": path, "text": text}


@tool(
    effect="destructive", required_access=("files:write",), dry_run=lambda args, context: f"would remove {args['path']}"
)
async def remove(path: str) -> str:
    """Remove a file."""
    seen.append(f"removed {path}")
    return f"removed {path}"


@tool(effect="read", required_access=("vault:read",))
async def vault() -> str:
    """Look into the vault."""
    return "gold"


odd = Tool.from_schema(
    name="größe messen",
    description="Measure a size.",
    input_schema={"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]},
    effect="read",
    required_access=PUBLIC,
    execute=lambda args, context: f"the size of {args['of']}",
)
dotted = Tool.from_schema(
    name="math.double",
    description="Double a number.",
    input_schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    output_schema={"type": "integer"},
    effect="read",
    required_access=PUBLIC,
    execute=lambda args, context: args["n"] * 2,
)

TOOLS = (add, words, maybe, stateful, fail, surrogates, huge, chatty, count, count_in_thread, strange_progress, wait)
MORE = (history, whoami, write, remove, vault, odd, dotted)


@tool(effect="read", required_access=PUBLIC, system_prompt="Say the date first.")
async def read_diary() -> str:
    """Read the diary."""
    return "Dear diary"


@tool(effect="read", required_access=("vault:read",))
async def read_secret_diary() -> str:
    """Read the secret diary."""
    return "Dear diary!"


DIARY = Toolset("diary", [read_diary, read_secret_diary], system_prompt="The diary is private.")


def create_extension_pack() -> ExtensionPack:
    """Return the pack."""
    return ExtensionPack("fixture", "1.2", [*TOOLS, *MORE, DIARY], description="What the tests call.")


@asynccontextmanager
async def hosted(**options: Any) -> AsyncIterator[AgentOS]:
    """Yield a host with the pack loaded."""
    seen.clear()
    async with AgentOS(**{"budget": None, **options}) as host:
        await host.extensions.load_pack(create_extension_pack())
        yield host


def many(number: int, name: str = "many") -> ExtensionPack:
    """Return a pack of tools that nobody wants to see listed."""
    return ExtensionPack(name, "1.0", [_numbered(place) for place in range(number)])


def _numbered(place: int) -> Tool:
    return Tool.from_schema(
        name=f"tool_{place}",
        description=f"Turn the wheel with the number {place}.",
        input_schema={"type": "object", "properties": {"turns": {"type": "integer", "description": "How often"}}},
        effect="read",
        required_access=PUBLIC,
        execute=lambda args, context: place,
    )


async def serve(options: argparse.Namespace) -> None:
    """Serve the pack to whoever started this process."""
    from agentos.mcp import serve_stdio

    async with hosted() as host:
        if options.many:
            await host.extensions.load_pack(many(options.many))
        await serve_stdio(host, principal=USER if options.user else None, search_above=options.search)
    print("ended in good order", file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--many", type=int, default=0)
    parser.add_argument("--search", type=int, default=None)
    parser.add_argument("--user", action="store_true")
    asyncio.run(serve(parser.parse_args()))
