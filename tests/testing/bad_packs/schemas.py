"""Packs whose tools take anything, or do not say what."""

from typing import Annotated

from testing.parts import pack, reads

from agentos import PUBLIC, Schema, Tool

DESCRIBED = {"text": {"type": "string", "maxLength": 9, "description": "What to look at, in plain words"}}


async def answer(args, context):
    return 1


def made(schema):
    return pack(
        Tool.from_schema(
            name="count_letters",
            description="Count the letters of a text, blanks included.",
            input_schema=schema,
            effect="read",
            required_access=PUBLIC,
            execute=answer,
        )
    )


def takes_unknown_keys():
    return made({"type": "object", "properties": DESCRIBED, "additionalProperties": True, "maxProperties": 5})


def does_not_describe_a_parameter():
    return made({"type": "object", "properties": {"text": {"type": "string", "maxLength": 9}}})


def has_a_default_that_does_not_fit():
    text = {**DESCRIBED["text"], "default": "too long for itself"}
    return made({"type": "object", "properties": {"text": text}})


def has_an_example_that_does_not_fit():
    @reads
    async def count_letters(
        text: Annotated[str, "What to look at, in plain words", Schema(maxLength=9, examples=["ok", 5])] = "",
    ) -> int:
        """Count the letters of a text, blanks included."""
        return len(text)

    return pack(count_letters)
