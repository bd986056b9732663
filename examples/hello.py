"""A pack in one file: what `module = "hello.py"` in a manifest names."""

from collections.abc import Mapping
from typing import Any

from agentos import Descriptor, ExtensionPack, LifecycleContext, PackContext


class Greeting:
    """Greets a person by name."""

    name = "greet"
    description = "Greet a person by name."
    input_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {"name": {"type": "string", "description": "Whom to greet", "minLength": 1}},
        "required": ["name"],
        "additionalProperties": False,
    }
    effect = "read"

    def __init__(self, word: str) -> None:
        self.word = word

    async def execute(self, args: Mapping[str, Any], context: object) -> dict[str, str]:  # noqa: ARG002
        """Return the greeting."""
        return {"greeting": f"{self.word}, {args['name']}!"}


def create_extension_pack(context: PackContext) -> ExtensionPack:
    """Return the pack; the word to greet with comes from the manifest entry's options."""
    word = context.options.get("word", "Hello")
    return ExtensionPack(
        name="hello",
        version="1.0.0",
        description="Greets people.",
        descriptors=[
            Descriptor("tool", "greet", Greeting(word), on_activate=_say_so),
            Descriptor("persona", "friendly", {"tone": "friendly"}),
        ],
    )


def _say_so(context: LifecycleContext) -> None:
    context.logger.info("%s is in force", context.entry.id)
