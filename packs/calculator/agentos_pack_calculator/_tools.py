"""The functions as tools. They compute, and may take long: in a thread, with a timeout."""

from agentos import PUBLIC, tool
from agentos_pack_calculator.arithmetic import calculate
from agentos_pack_calculator.summary import statistics
from agentos_pack_calculator.units import convert_units

_reads = tool(effect="read", required_access=PUBLIC, timeout=20, idempotent=True, category="calculation")

TOOLS = tuple(_reads(function) for function in (calculate, convert_units, statistics))
