"""The pack that `workers.py` measures: it imports no more than a pack needs."""

from agentos import PUBLIC, ExtensionPack, tool


@tool(effect="read", required_access=PUBLIC)
async def add_numbers(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


pack = ExtensionPack("measured", "1.0", [add_numbers])
