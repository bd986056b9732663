"""A pack in one file: what `module = "hello.py"` in a manifest names."""

from typing import Annotated

from agentos import PUBLIC, ExtensionPack, PackContext, Persona, ToolContext, tool


@tool(effect="read", required_access=PUBLIC)
async def greet(name: Annotated[str, "Whom to greet"], *, context: ToolContext) -> str:
    """Greet a person by name."""
    return f"{context.options.get('word', 'Hello')}, {name}!"


def create_extension_pack(context: PackContext) -> ExtensionPack:
    """Return the pack; the word to greet with comes from the manifest entry's options."""
    context.logger.info("greeting with %r", context.options.get("word"))
    friendly = Persona("friendly", "Kind and short.", "Be kind, and answer in one sentence.", tools="greet")
    return ExtensionPack(
        name="hello",
        version="1.0.0",
        description="Greets people.",
        descriptors=[greet, friendly],
    )
