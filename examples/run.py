"""What `make run` shows: a manifest is loaded, and every stack says who is active and why."""

import asyncio
from pathlib import Path

import attrs
from rich.console import Console

from agentos import AgentOS, Descriptor, ExtensionManifest, ExtensionPack, PackEntry
from agentos.cli.picture import draw_report, draw_stacks


def create_polite_pack() -> ExtensionPack:
    """Return a pack of the host's own: it wraps `greet`, and steps aside when it is unloaded."""
    return ExtensionPack(
        name="polite",
        version="0.1.0",
        descriptors=[Descriptor("tool", "greet", payload="greets twice", priority=10, wraps=True)],
    )


async def main() -> None:
    """Load the example manifest and a factory of ours, then change a few facts."""
    console = Console()
    manifest = ExtensionManifest.from_file(Path(__file__).with_name("manifest.toml"))
    manifest = attrs.evolve(manifest, packs=[*manifest.packs, PackEntry(factory=create_polite_pack)])

    async with AgentOS(extension_manifest=manifest) as host:
        manager = host.extensions
        console.rule("[bold]1. The manifest is loaded, in order")
        console.print(draw_report(manager.report))
        console.rule("[bold]2. Every stack: who is active, and why")
        console.print(draw_stacks(manager))

        console.rule("[bold]3. A secret arrives, an override changes, a pack is disabled")
        await manager.set_secret("giphy.apiKey", "a-value-that-is-never-shown")
        await manager.set_override("tools", "statistics", {"enabled": True})
        await manager.disable("polite")
        for id in ("gif_search", "statistics", "greet"):
            console.print(str(manager.explain("tool", id)), highlight=False, markup=False)
    console.print("\nTry next: set GIPHY_API_KEY, correct 'calculater' in examples/manifest.toml, run again.")


if __name__ == "__main__":
    asyncio.run(main())
