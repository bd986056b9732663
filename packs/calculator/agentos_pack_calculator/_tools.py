"""The functions as tools. They compute, and may take long: in a thread, with a timeout."""

from collections.abc import Mapping

import attrs

from agentos import PUBLIC, Tool, tool
from agentos_pack_calculator.arithmetic import calculate
from agentos_pack_calculator.summary import statistics
from agentos_pack_calculator.units import convert_units

_reads = tool(effect="read", required_access=PUBLIC, timeout=20, idempotent=True, category="calculation")


@attrs.frozen
class Options:
    """What a manifest may say: nothing."""


def _spelled(made: Tool, spellings: Mapping[str, str]) -> Tool:
    """Return a tool some of whose parameters have names that Python keeps for itself, such as `from`."""
    back = {spelling: name for name, spelling in spellings.items()}
    schema, execute = made.input_schema, made.execute
    properties = {spellings.get(name, name): one for name, one in schema["properties"].items()}
    required = [spellings.get(name, name) for name in schema["required"]]

    def run(args: Mapping[str, object], context: object) -> object:
        assert execute is not None  # noqa: S101 - it was made of a function
        return execute({back.get(name, name): value for name, value in args.items()}, context)

    return attrs.evolve(made, input_schema={**schema, "properties": properties, "required": required}, execute=run)


TOOLS = (
    _reads(calculate),
    _spelled(_reads(convert_units), {"from_unit": "from", "to_unit": "to"}),
    _reads(statistics),
)
