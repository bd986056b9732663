"""Packs whose tools change something, and are not said to do so where it does no harm."""

from testing.parts import Text, pack

from agentos import PUBLIC, tool


def changes_things():
    @tool(effect="mutate", required_access=PUBLIC, dry_run=lambda args, context: "would post it")
    async def post_letters(text: Text) -> str:
        """Post a text to whoever is listening."""
        return "posted"

    return pack(post_letters)
