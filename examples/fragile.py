"""A pack that crashes its process, for `survive.py`: one of its tools jumps to where nothing is."""

import ctypes
import os

from agentos import PUBLIC, ExtensionPack, tool


@tool(effect="read", required_access=PUBLIC)
async def divide_numbers(a: float, b: float) -> dict[str, float]:
    """Divide a by b, and tell which process did."""
    return {"quotient": a / b, "process": os.getpid()}


@tool(effect="read", required_access=PUBLIC, idempotent=False)
async def read_memory(address: int) -> int:
    """Read a byte of memory, as faulty native code does."""
    return ctypes.string_at(address, 1)[0]


pack = ExtensionPack("fragile", "1.0.0", [divide_numbers, read_memory])
