"""What good and bad packs of these tests are made of."""

from typing import Annotated

from agentos import PUBLIC, ExtensionPack, Schema, tool

undo = []
"""What a test does afterwards, so that what a bad pack leaves does not stay."""

Text = Annotated[str, "What to look at, in plain words", Schema(maxLength=200)]
reads = tool(effect="read", required_access=PUBLIC)


@reads
async def count_letters(text: Text) -> int:
    """Count the letters of a text, blanks included."""
    return len(text)


def pack(*tools, name="example", **fields):
    """Return a pack with *tools*, or with one that is good."""
    return ExtensionPack(name, "1.0", tools or (count_letters,), description="A pack for a test.", **fields)
