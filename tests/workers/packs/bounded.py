"""A pack that wants more than it may have, and says what it got."""

import socket
from pathlib import Path

from agentos import PUBLIC, ExtensionPack, tool


@tool(effect="read", required_access=PUBLIC)
def hoard(mebibytes: int) -> int:
    """Take memory and keep it."""
    return len([bytearray(1024 * 1024) for _ in range(mebibytes)])


@tool(effect="read", required_access=PUBLIC)
async def compute() -> None:
    """Compute without end."""
    while True:
        pass


@tool(effect="read", required_access=PUBLIC)
def connect(port: int) -> str:
    """Connect to a port of this machine."""
    with socket.create_connection(("127.0.0.1", port)):
        return "connected"


@tool(effect="read", required_access=PUBLIC)
def write(path: str) -> str:
    """Write a file."""
    Path(path).write_text("written")
    return "written"


def create_extension_pack() -> ExtensionPack:
    return ExtensionPack("bounded", "1.0", [hoard, compute, connect, write])
