"""Packs whose parameters have no bounds."""

from typing import Annotated, Any

from testing.parts import pack, reads

from agentos import Schema


def with_parameter(kind):
    @reads
    async def look_at(value: kind) -> str:
        """Look at a value and say what there is to see."""
        return "nothing"

    return pack(look_at)


def endless_text():
    return with_parameter(Annotated[str, "What to look at, in plain words"])


def endless_text_of_a_pattern():
    return with_parameter(Annotated[str, "What to look at, in plain words", Schema(pattern="^a+$")])


def endless_count():
    return with_parameter(Annotated[int, "How many to look at"])


def endless_list():
    return with_parameter(Annotated[list[bool], "What to look at, one after another"])


def endless_items():
    return with_parameter(Annotated[list[str], "What to look at, one after another", Schema(maxItems=3)])


def endless_object():
    return with_parameter(Annotated[dict[str, bool], "What to look at, by name"])


def anything():
    return with_parameter(Annotated[Any, "What to look at, whatever it is"])


def endless_when_it_is_given():
    return with_parameter(Annotated[str | None, "What to look at, in plain words"])
