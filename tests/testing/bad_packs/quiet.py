"""Packs that speak where a protocol may be spoken."""

import os
import subprocess

from testing.parts import Text, pack, reads


def prints_in_a_call():
    @reads
    async def count_letters(text: Text) -> int:
        """Count the letters of a text, blanks included."""
        print("counting")  # noqa: T201 - that is what is wrong
        return len(text)

    return pack(count_letters)


def prints_when_it_comes():
    return pack(on_activate=lambda: print("hello"))  # noqa: T201 - as above


def writes_to_the_descriptor():
    @reads
    async def count_letters(text: Text) -> int:
        """Count the letters of a text, blanks included."""
        os.write(1, b"counting")
        return len(text)

    return pack(count_letters)


def has_a_child_that_prints():
    @reads
    def count_letters(text: Text) -> int:
        """Count the letters of a text, blanks included."""
        subprocess.run(["echo", "counting"], check=True)
        return len(text)

    return pack(count_letters)
