"""Packs whose tools never succeed, so that nothing that is checked of them says much."""

from testing.parts import Text, pack, reads


def always_refuses():
    @reads
    async def look_up(text: Text) -> str:
        """Look a text up in the table of known ones."""
        raise ValueError("no such text is in the table")

    return pack(look_up)
