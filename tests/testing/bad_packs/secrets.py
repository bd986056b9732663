"""Packs that tell what they should keep to themselves."""

import base64
import logging
import sys
import warnings
from pathlib import Path

from testing.parts import Text, count_letters, pack, reads

from agentos import PUBLIC, Descriptor, Tool, ToolContext

KEY = "openai.apiKey"


def with_tool(use):
    @reads
    async def count_letters(text: Text, *, context: ToolContext) -> str:
        """Count the letters of a text, blanks included."""
        return use(context.secret(KEY)) or "some"

    return pack(Descriptor("tool", "count_letters", count_letters, required_secrets=[KEY]))


def logs_it():
    return with_tool(logging.getLogger("example").info)


def tells_the_beginning():
    return with_tool(lambda value: f"using {value[:20]}...")


def tells_the_first_characters():
    return with_tool(lambda value: f"using {value[:8]}...")


def tells_the_last_characters():
    return with_tool(lambda value: f"using ...{value[-6:]}")


def tells_it_with_something_between():
    return with_tool("-".join)


def warns_with_it():
    return with_tool(lambda value: warnings.warn(f"the key {value[:8]} is old", stacklevel=2))


def tells_it_backwards():
    return with_tool(lambda value: value[::-1])


def tells_it_in_other_letters():
    return with_tool(lambda value: value.encode().hex().upper())


def tells_it_whole():
    return with_tool(lambda value: f"using {value}")


def tells_it_in_base64():
    return with_tool(lambda value: base64.b64encode(value.encode()).decode())


def raises_it():
    def refuse(value):
        raise ValueError(f"the key {value} was refused")

    return with_tool(refuse)


def logs_it_through_its_context():
    @reads
    async def count_letters(text: Text, *, context: ToolContext) -> str:
        """Count the letters of a text, blanks included."""
        context.logger.info("using %s", context.secret(KEY))
        return "some"

    return pack(Descriptor("tool", "count_letters", count_letters, required_secrets=[KEY]))


def logs_it_when_it_comes():
    def begin(context):
        context.logger.info("using %s", context.secret(KEY))

    return pack(Descriptor("tool", "count_letters", count_letters, required_secrets=[KEY], on_activate=begin))


def complains_with_it():
    def complain(value):
        sys.stderr.write(f"trying {value}\n")

    return with_tool(complain)


def describes_itself_with_it(context):
    value = context.secret(KEY)

    async def answer(args, context):
        return "some"

    counter = Tool.from_schema(
        name="count_letters",
        description=f"Count the letters that {value} knows of.",
        input_schema={"type": "object", "properties": {}},
        effect="read",
        required_access=PUBLIC,
        execute=answer,
    )
    return pack(Descriptor("tool", "count_letters", counter, required_secrets=[KEY]))


def shows_it_in_a_payload(context):
    class Engine:
        def __init__(self, value):
            self.value = value

        def __repr__(self):
            return f"Engine({self.value})"

    engine = Engine(context.secret(KEY))
    return pack(Descriptor("search-engine", "example", engine, required_secrets=[KEY]))


def writes_it_down():
    def write(value):
        Path("key.txt").write_text(value)

    def tidy():
        Path("key.txt").unlink(missing_ok=True)

    return pack(*with_tool(write).descriptors, on_deactivate=tidy)
