"""Packs that leave models in the dark."""

from testing.parts import Text, pack

from agentos import PUBLIC, tool


def says_too_little():
    @tool(effect="read", required_access=PUBLIC)
    async def count_letters(text: Text) -> int:
        """Count letters."""
        return len(text)

    return pack(count_letters)


def registers_a_tool_without_description():
    @tool(effect="read", required_access=PUBLIC, description="")
    async def count_words(text: Text) -> int:
        return len(text.split())

    async def register(context):
        await context.tools.register_tool(count_words)

    return pack(on_activate=register)
