"""What `make run` shows: a manifest is loaded, every stack says who is active and why, and calls get one result."""

import asyncio
from pathlib import Path

import attrs
from rich.console import Console

from agentos import (
    PUBLIC,
    AgentOS,
    Descriptor,
    ExtensionManifest,
    ExtensionPack,
    PackEntry,
    Principal,
    ToolCall,
    ToolContext,
    tool,
)
from agentos.cli.picture import draw_report, draw_stacks

CALLS = [
    ToolCall("greet", '{"name": "Ada"}'),
    ToolCall("calculate", '{"expression": "(2 + 3) * sqrt(16) / 7"}'),
    ToolCall("convert_time", {"time": "2026-03-29T02:30", "from_tz": "Europe/Berlin", "to_tz": "Asia/Tokyo"}),
    ToolCall("convert_units", '{"value": 12, "from_unit": "km/h", "to_unti": "m/s"}'),
    ToolCall("gif_search", {"query": "cats"}),
    ToolCall("calculat", "{}"),
]


@tool(effect="read", required_access=PUBLIC, name="greet")
async def greet_politely(name: str, *, context: ToolContext) -> str:
    """Greet a person by name, politely."""
    beneath = await context.below({"name": name})
    return f"{beneath.output} How do you do?"


def create_polite_pack() -> ExtensionPack:
    """Return a pack of the host's own: it wraps `greet`, and steps aside when it is unloaded."""
    wrapper = Descriptor("tool", "greet", greet_politely, priority=10, wraps=True)
    return ExtensionPack(name="polite", version="0.1.0", descriptors=[wrapper])


async def main() -> None:
    """Load the example manifest and a factory of ours, change a few facts, and make some calls."""
    console = Console()
    manifest = ExtensionManifest.from_file(Path(__file__).with_name("manifest.toml"))
    manifest = attrs.evolve(manifest, packs=[*manifest.packs, PackEntry(factory=create_polite_pack)])

    async with AgentOS(extension_manifest=manifest) as host:
        manager = host.extensions
        console.rule("[bold]1. The manifest is loaded, in order")
        console.print(draw_report(manager.report))
        console.rule("[bold]2. Every stack: who is active, and why")
        console.print(draw_stacks(manager))

        console.rule("[bold]3. A secret arrives, an override changes")
        await manager.set_secret("giphy.apiKey", "a-value-that-is-never-shown")
        await manager.set_override("tools", "statistics", {"enabled": True})
        for id in ("gif_search", "statistics"):
            console.print(str(manager.explain("tool", id)), highlight=False, markup=False)

        console.rule("[bold]4. Calls: each ends in one result")
        for result in await host.tools.process_tool_calls(CALLS, Principal("ada")):
            style = "green" if result.success else "red"
            console.print(result.content, style=style, highlight=False, markup=False)
    console.print("\nTry next: set GIPHY_API_KEY, correct 'calculater' in examples/manifest.toml, run again.")


if __name__ == "__main__":
    asyncio.run(main())
