"""Packs whose samples do not work."""

from testing.parts import Text, pack, reads

SAMPLES = {"look_up": {"text": "Ada"}}


def does_not_know_its_own_sample():
    @reads
    async def look_up(text: Text) -> int:
        """Look a text up in the table of known ones."""
        raise ValueError(f"text: {text[:20]!r} is not known")

    return pack(look_up)
