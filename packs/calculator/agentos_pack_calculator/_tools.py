"""The functions as tools: names, schemas, and the call."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from agentos_pack_calculator.arithmetic import calculate
from agentos_pack_calculator.summary import statistics
from agentos_pack_calculator.units import convert_units

PUBLIC = "*public*"
"""Stands in for the core's own PUBLIC."""


@attrs.frozen(kw_only=True)
class FunctionTool:
    """A function that a model may call."""

    name: str
    description: str
    input_schema: Mapping[str, Any] = attrs.field(repr=False)
    function: Callable[..., Any] = attrs.field(repr=False)
    effect: str = "read"
    required_access: str = PUBLIC

    async def execute(self, args: Mapping[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG002
        """Call the function and return its result as plain data."""
        return attrs.asdict(self.function(**args))


def _closed(required: list[str], **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


TOOLS = (
    FunctionTool(
        name="calculate",
        description=calculate.__doc__ or "",
        function=calculate,
        input_schema=_closed(
            ["expression"],
            expression={
                "type": "string",
                "minLength": 1,
                "maxLength": 1000,
                "description": "Arithmetic with + - * / // % **, parentheses and comparisons, such as "
                "(2 + 3) * sqrt(16) / 7. Functions: sqrt abs round min max sin cos tan asin acos atan log "
                "log10 log2 exp floor ceil factorial gcd. Constants: pi e tau. Angles are in radians; log(x) "
                "is the natural logarithm, log(x, b) the one to base b.",
            },
        ),
    ),
    FunctionTool(
        name="convert_units",
        description=convert_units.__doc__ or "",
        function=convert_units,
        input_schema=_closed(
            ["value", "from_unit", "to_unit"],
            value={
                "anyOf": [{"type": "number"}, {"type": "string", "minLength": 1, "maxLength": 100}],
                "description": "The number to convert, such as 12.5; as text it keeps all its digits",
            },
            from_unit={
                "type": "string",
                "minLength": 1,
                "maxLength": 200,
                "description": "The unit it is in: names or symbols joined by * and /, with powers such as "
                "^2, for example km/h, kg*m^2, degC, mmHg. Case matters: mW is not MW",
            },
            to_unit={
                "type": "string",
                "minLength": 1,
                "maxLength": 200,
                "description": "The unit to convert to, written the same way",
            },
        ),
    ),
    FunctionTool(
        name="statistics",
        description=statistics.__doc__ or "",
        function=statistics,
        input_schema=_closed(
            ["values"],
            values={
                "type": "array",
                "items": {"type": "number", "minimum": -1e100, "maximum": 1e100},
                "minItems": 1,
                "maxItems": 10_000,
                "description": "1 to 10,000 finite numbers between -1e100 and 1e100, in any order",
            },
        ),
    ),
)
