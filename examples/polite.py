"""A pack that wraps another one's tool: `greet` of hello.py, and steps aside when it is unloaded."""

from agentos import PUBLIC, Descriptor, ExtensionPack, ToolContext, tool


@tool(effect="read", required_access=PUBLIC, name="greet")
async def greet_politely(name: str, *, context: ToolContext) -> str:
    """Greet a person by name, politely."""
    beneath = await context.below({"name": name})
    return f"{beneath.output} How do you do?"


def create_extension_pack() -> ExtensionPack:
    """Return the pack."""
    wrapper = Descriptor("tool", "greet", greet_politely, priority=10, wraps=True)
    return ExtensionPack("polite", "0.1.0", [wrapper], description="Greets with manners.")
