"""Packs whose tools do something else than they say."""

from pathlib import Path

from testing.parts import Text, pack, reads


def deletes_by_name():
    @reads
    async def delete_note(title: Text) -> str:
        """Delete the note of a title, if there is one."""
        return "gone"

    return pack(delete_note)


def writes():
    @reads
    async def look_up(text: Text) -> str:
        """Look a text up, and keep a note of it."""
        with Path("visitors.txt").open("a") as file:
            file.write("one more\n")
        Path("visitors.txt").write_text("x" * len(Path("visitors.txt").read_text()) + "y")
        return "found"

    async def tidy():
        Path("visitors.txt").unlink(missing_ok=True)

    return pack(look_up, on_deactivate=tidy)
