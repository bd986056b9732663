"""Packs whose tools are called what providers refuse."""

import attrs
from testing.parts import count_letters, pack


def dotted():
    return pack(attrs.evolve(count_letters, name="letters.count"))


def odd_alias():
    return pack(attrs.evolve(count_letters, aliases=("zähle",)))
